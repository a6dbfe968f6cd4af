//! What an endpoint waits for: to answer a request, and for a timer to fire.

use coapway_message::ExchangeId;
use coapway_time::TimerId;
use slab::Slab;

use super::duplicates::EntryId;
use super::peers::PeerNumber;
use super::slots::{Slot, Slots, Use};

/// What a timer is for, and the slot of what it belongs to, in one word. A timer ends with what it
/// belongs to, so that the slot says enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline(u32);

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Acknowledge this request although it is not answered.
    Acknowledge(u32),
    /// The wait of this message of ours is over.
    Message(u32),
    /// This separate response has waited for its turn long enough.
    Turn(u32),
}

impl Deadline {
    /// For a slot below 2³⁰.
    #[inline]
    pub(super) const fn new(due: Due) -> Self {
        match due {
            Due::Acknowledge(slot) => Self(slot << 2),
            Due::Message(slot) => Self(slot << 2 | 1),
            Due::Turn(slot) => Self(slot << 2 | 2),
        }
    }

    #[inline]
    pub(super) const fn due(self) -> Due {
        let slot = self.0 >> 2;
        match self.0 & 3 {
            0 => Due::Acknowledge(slot),
            1 => Due::Message(slot),
            _ => Due::Turn(slot),
        }
    }
}

/// How a request can be answered now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Answerable {
    /// In the Acknowledgement, until its time comes.
    #[default]
    Piggybacked,
    /// In a Confirmable message: the Acknowledgement left empty.
    Separate,
    /// In a Non-confirmable message.
    NonConfirmable,
}

/// A request of a peer that is not answered yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    pub(super) peer: PeerNumber,
    place: Use,
    pub(super) entry: EntryId,
    /// Where its time does not come in order with that of others.
    pub(super) timer: Option<TimerId>,
    token: ShortToken,
    pub(super) answerable: Answerable,
    pub(super) message_id: u16,
    /// Whether the address it came from is believed.
    pub(super) verified: bool,
}

impl Pending {
    /// One that is to be acknowledged, without a timer of its own.
    #[inline]
    pub(super) fn new(peer: PeerNumber, message_id: u16, entry: EntryId, verified: bool) -> Self {
        Self { peer, message_id, entry, verified, ..Self::default() }
    }

    /// Whether it is still to be acknowledged.
    #[inline]
    pub(super) fn is_acknowledged_later(&self) -> bool {
        self.answerable == Answerable::Piggybacked
    }
}

impl Slot for Pending {
    #[inline]
    fn place(&self) -> Use {
        self.place
    }

    #[inline]
    fn place_mut(&mut self) -> &mut Use {
        &mut self.place
    }
}

/// Requests of peers that are not answered yet, and their tokens.
#[derive(Debug)]
pub(super) struct PendingRequests {
    slots: Slots<Pending>,
    long_tokens: Slab<Box<[u8]>>,
}

/// A token that is no longer kept.
#[derive(Debug)]
pub(super) enum Taken {
    Short(ShortToken),
    Long(Box<[u8]>),
}

impl Taken {
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short(token) => token.as_bytes(),
            Self::Long(token) => token,
        }
    }
}

impl PendingRequests {
    pub(super) fn new() -> Self {
        Self { slots: Slots::new(), long_tokens: Slab::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The name the next [`PendingRequests::add`] gives out.
    pub(super) fn next_id(&self) -> ExchangeId {
        self.slots.next_id()
    }

    /// The name of the one in this slot.
    pub(super) fn id(&self, slot: u32) -> ExchangeId {
        self.slots.id(slot)
    }

    /// Adds one that carries this token.
    #[inline(always)]
    pub(super) fn add(&mut self, pending: Pending, token: &[u8]) -> ExchangeId {
        let token = ShortToken::new(token).unwrap_or_else(|| self.keep_long(token));
        let (id, slot) = self.slots.claim();
        *slot = Pending { token, place: slot.place, ..pending };
        id
    }

    #[cold]
    fn keep_long(&mut self, token: &[u8]) -> ShortToken {
        ShortToken::long(self.long_tokens.insert(token.into()))
    }

    #[inline]
    pub(super) fn get(&self, id: ExchangeId) -> Option<&Pending> {
        self.slots.get(id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut Pending> {
        self.slots.get_mut(id)
    }

    /// How many bytes its token has.
    pub(super) fn token_length(&self, pending: &Pending) -> usize {
        match pending.token.long_number() {
            Some(number) => self.long_tokens.get(number).map_or(0, |token| token.len()),
            None => pending.token.as_bytes().len(),
        }
    }

    /// Takes out one that is there; this is its token.
    #[inline]
    pub(super) fn end(&mut self, id: ExchangeId, pending: &Pending) -> Taken {
        self.slots.end(id.slot);
        match pending.token.long_number() {
            Some(number) => Taken::Long(self.long_tokens.try_remove(number).unwrap_or_default()),
            None => Taken::Short(pending.token),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.slots.iter()
    }

    /// Panics when a token belongs to no request.
    pub(super) fn check_invariants(&self) {
        let long = self.iter().filter(|pending| pending.token.long_number().is_some());
        assert_eq!(long.count(), self.long_tokens.len());
    }
}

/// A token of up to eight bytes, which nearly all have, or the number of one that is longer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShortToken {
    bytes: [u8; 8],
    length: u8,
}

impl ShortToken {
    const LONG: u8 = u8::MAX;

    /// `None` for one that is longer.
    #[inline]
    pub(super) fn new(token: &[u8]) -> Option<Self> {
        let mut bytes = [0; 8];
        match (token.first_chunk(), token.len()) {
            (Some(&eight), 8) => bytes = eight,
            (_, length) => bytes.get_mut(..length)?.copy_from_slice(token),
        }
        Some(Self { bytes, length: token.len() as u8 })
    }

    const fn long(number: usize) -> Self {
        Self { bytes: (number as u64).to_le_bytes(), length: Self::LONG }
    }

    #[inline]
    fn long_number(self) -> Option<usize> {
        (self.length == Self::LONG).then(|| u64::from_le_bytes(self.bytes) as usize)
    }

    /// Whether these are its bytes.
    #[inline]
    pub(super) fn is(&self, token: &[u8]) -> bool {
        match token.first_chunk() {
            Some(&eight) if token.len() == 8 => self.length == 8 && self.bytes == eight,
            _ => self.as_bytes() == token,
        }
    }

    /// Its bytes; of a long one none.
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl From<[u8; 8]> for ShortToken {
    #[inline]
    fn from(bytes: [u8; 8]) -> Self {
        Self { bytes, length: 8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_40_bytes() {
        assert_eq!(size_of::<Pending>(), 40);
    }

    #[test]
    fn what_a_timer_is_for_fits_in_a_word() {
        for slot in [0, 1, 77, (1 << 30) - 1] {
            for due in [Due::Acknowledge(slot), Due::Message(slot), Due::Turn(slot)] {
                assert_eq!(Deadline::new(due).due(), due);
            }
        }
        assert_eq!(size_of::<Deadline>(), 4);
    }

    #[test]
    fn a_token_is_no_other_one_that_begins_like_it() {
        let eight = ShortToken::from([7; 8]);
        assert!(eight.is(&[7; 8]));
        assert!([&[7; 7][..], &[7; 9], &[7; 16], &[]].iter().all(|other| !eight.is(other)));
    }

    #[test]
    fn tokens_of_any_length_are_kept() {
        let mut requests = PendingRequests::new();
        let tokens: Vec<Vec<u8>> = (0..20).chain([300, 0, 8, 9]).map(|length| vec![7; length]).collect();
        for round in 0..3 {
            let add = |token: &Vec<u8>| requests.add(Pending::default(), token);
            let ids: Vec<_> = tokens.iter().map(add).collect();
            requests.check_invariants();
            assert_eq!(requests.len(), tokens.len());
            for (&id, token) in ids.iter().zip(&tokens) {
                let pending = *requests.get(id).expect("pending");
                assert_eq!((requests.token_length(&pending), id.generation), (token.len(), round));
                assert_eq!(requests.end(id, &pending).as_bytes(), token);
                assert!(requests.get(id).is_none());
            }
            requests.check_invariants();
        }
        assert!(requests.long_tokens.is_empty());
    }
}
