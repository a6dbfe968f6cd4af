//! What an endpoint waits for: to answer a request, and for a timer to fire.

use coapway_message::{ExchangeId, Token};
use coapway_time::TimerId;

use super::duplicates::EntryId;
use crate::peer::Peer;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deadline {
    /// Acknowledge this request although it is not answered.
    Acknowledge(ExchangeId),
    /// The wait of this message of ours is over.
    Transmission(ExchangeId),
    /// This separate response has waited for its turn long enough.
    Turn(ExchangeId),
}

/// How a request can be answered now.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answerable {
    /// In the Acknowledgement, until its time comes: in order with others, or by a timer of its own.
    Piggybacked(Option<TimerId>),
    /// In a Confirmable message: the Acknowledgement left empty.
    Separate,
    /// In a Non-confirmable message.
    NonConfirmable,
}

/// A request of a peer that is not answered yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) peer: Peer,
    pub(super) message_id: u16,
    pub(super) token: Token,
    pub(super) entry: EntryId,
    /// Whether the address it came from is believed.
    pub(super) verified: bool,
    pub(super) answerable: Answerable,
}

impl Pending {
    /// Whether it is still to be acknowledged.
    pub(super) const fn is_acknowledged_later(&self) -> bool {
        matches!(self.answerable, Answerable::Piggybacked(_))
    }

    /// Whether a timer of its own waits to acknowledge it.
    pub(super) const fn has_timer(&self) -> bool {
        matches!(self.answerable, Answerable::Piggybacked(Some(_)))
    }
}
