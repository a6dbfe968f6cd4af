//! How one exchange of ours went, copy by copy.

use std::time::Duration;

use coapway_message::Token;
use coapway_time::Instant;
use smallvec::SmallVec;

use crate::peer::Peer;

/// One copy that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// When.
    pub sent: Instant,
    /// How long an Acknowledgement was waited for before the next; zero for Non-confirmable.
    pub timeout: Duration,
}

/// How an exchange went, for records and estimators.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// To whom.
    pub peer: Peer,
    /// Our Message ID.
    pub message_id: u16,
    /// Our token, or the one the caller gave.
    pub token: Token,
    /// Whether it was Confirmable.
    pub confirmable: bool,
    /// The copies, first to last.
    pub copies: SmallVec<[Copy; 2]>,
    /// When the first Acknowledgement came, with or without a response.
    pub first_ack: Option<Instant>,
    /// Acknowledgements that came.
    pub acks: u32,
    /// How the response came.
    pub answer: Option<AnswerKind>,
    /// Bytes of one copy.
    pub bytes: u32,
}

/// How a response came (RFC 7252 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// In the Acknowledgement.
    Piggybacked,
    /// In a Confirmable message of its own.
    Separate,
    /// In a Non-confirmable message.
    NonConfirmable,
}

impl AnswerKind {
    /// The word for records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Piggybacked => "piggybacked",
            Self::Separate => "separate",
            Self::NonConfirmable => "non",
        }
    }
}
