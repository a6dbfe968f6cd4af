//! What is remembered of one message, in as few bytes as it takes.

use coapway_message::ExchangeId;
use coapway_time::Instant;

use super::replies::Extent;
use crate::datagram::account::Account;
use crate::datagram::peers::PeerNumber;

/// What a repeat of a message gets.
#[derive(Clone, Copy, Debug)]
pub(in crate::datagram) enum Reply {
    /// Nothing yet: the request is not answered.
    Open(ExchangeId),
    /// An empty Acknowledgement, now and for ever.
    EmptyAcknowledgement,
    /// The same, and the separate response while it is under way.
    Separate(ExchangeId),
    /// The bytes that [`Duplicates::datagram`](super::Duplicates::datagram) finds here.
    Datagram(Extent),
    /// Nothing: the message was Non-confirmable.
    Silence,
}

impl Reply {
    /// Bytes that are stored for it.
    #[inline]
    pub(super) const fn stored(self) -> usize {
        match self {
            Self::Datagram(extent) => extent.len(),
            Self::Open(_) | Self::EmptyAcknowledgement | Self::Separate(_) | Self::Silence => 0,
        }
    }
}

/// How long and how firmly a message is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::datagram) enum Class {
    /// Confirmable, must not be done twice.
    #[default]
    Kept = 0,
    /// Confirmable, may be done again in need.
    Confirmable = 1,
    /// Non-confirmable, may be done again in need.
    NonConfirmable = 2,
    /// Non-confirmable, must not be done twice.
    KeptNonConfirmable = 3,
}

impl Class {
    pub(super) const ALL: [Self; 4] =
        [Self::Kept, Self::Confirmable, Self::NonConfirmable, Self::KeptNonConfirmable];

    #[inline]
    pub(super) fn is_kept(self) -> bool {
        matches!(self, Self::Kept | Self::KeptNonConfirmable)
    }

    /// Which of the two memories of datagrams.
    #[inline]
    pub(super) const fn memory(self) -> usize {
        match self {
            Self::Kept | Self::KeptNonConfirmable => 0,
            Self::Confirmable | Self::NonConfirmable => 1,
        }
    }
}

/// Names an entry; stale once it was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::datagram) struct EntryId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) digest: u64,
    pub(super) expires: Instant,
    pub(super) account: Account,
    /// `None` when it is forgotten.
    pub(super) reply: Option<Reply>,
    pub(super) peer: PeerNumber,
    pub(super) generation: u32,
    pub(super) message_id: u16,
    pub(super) class: Class,
}

impl Entry {
    #[inline]
    pub(super) fn is_remembered_as(&self, id: EntryId) -> bool {
        self.generation == id.generation && self.reply.is_some()
    }
}

/// A time in steps of 2²⁰ µs, rounded up: half the bytes of an [`Instant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(u32);

impl Moment {
    const SHIFT: u32 = 20;
    pub(super) const NEVER: Self = Self(u32::MAX);

    #[inline]
    pub(super) fn at_or_after(instant: Instant) -> Self {
        Self(u32::try_from(instant.as_micros().div_ceil(1 << Self::SHIFT)).unwrap_or(u32::MAX))
    }

    #[inline]
    pub(super) const fn is_over(self, now: Instant) -> bool {
        self.0 as u64 <= now.as_micros() >> Self::SHIFT
    }

    pub(super) const fn instant(self) -> Instant {
        Instant::from_micros((self.0 as u64) << Self::SHIFT)
    }
}
