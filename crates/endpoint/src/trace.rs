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
    /// In nanoseconds, so that a copy takes 24 bytes with its Message ID.
    timeout: u64,
    /// Under which Message ID: that of the first copy, unless the schedule gives each its own.
    pub message_id: u16,
}

impl Copy {
    /// One that left at `sent` under this Message ID; its Acknowledgement was waited for so long, up to 584
    /// years.
    pub const fn new(sent: Instant, timeout: Duration, message_id: u16) -> Self {
        let nanos = timeout.as_secs().saturating_mul(1_000_000_000);
        Self { sent, timeout: nanos.saturating_add(timeout.subsec_nanos() as u64), message_id }
    }

    /// How long an Acknowledgement was waited for before the next; zero for Non-confirmable.
    pub const fn timeout(&self) -> Duration {
        Duration::from_nanos(self.timeout)
    }
}

/// How an exchange went, for records and estimators.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// To whom.
    pub peer: Peer,
    /// Our token, or the one the caller gave.
    pub token: Token,
    /// Whether it was Confirmable.
    pub confirmable: bool,
    /// The copies, first to last.
    pub copies: SmallVec<[Copy; 2]>,
    /// When the first Acknowledgement came, with or without a response.
    pub first_ack: Option<Instant>,
    /// The Message ID it carried.
    pub first_ack_id: Option<u16>,
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
