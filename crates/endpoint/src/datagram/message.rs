//! One message of ours under way, in as few bytes as it takes: there may be many that are
//! acknowledged and wait for their response.

use std::time::Duration;

use coapway_message::ExchangeId;
use coapway_time::{Instant, TimerId};

use super::duplicates::EntryId;
use super::peers::PeerNumber;
use super::pending::ShortToken;
use super::retransmission::Schedule;
use super::slots::{Slot, Use};
use crate::trace::{AnswerKind, Copy};

/// A place keeps this much of its buffer for the next message.
const KEPT_BUFFER: usize = 256;

/// What a message of ours is. All but one are Confirmable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request.
    #[default]
    Request,
    /// A Non-confirmable request.
    NonConfirmable,
    /// A separate response.
    Response,
    /// An Empty Confirmable message.
    Ping,
}

/// The request that a separate response answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) request: ExchangeId,
    pub(super) entry: EntryId,
    /// Whether the address it came from is believed.
    pub(super) verified: bool,
}

/// What is to be thought of when a message ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Bond {
    #[default]
    None,
    /// It counts against the window towards its peer.
    InTurn,
    /// Its token is one of the caller's.
    Preserved,
}

/// A message of ours under way.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) deadline: Instant,
    /// When the first copy left.
    pub(super) sent: Instant,
    /// How long its Acknowledgement was waited for, in µs.
    pub(super) timeout: u64,
    /// [`Instant::FAR_FUTURE`] until there is one.
    first_ack: Instant,
    buffer: Box<[u8]>,
    pub(super) token: ShortToken,
    pub(super) kind: Kind,
    pub(super) answer: Option<AnswerKind>,
    pub(super) bond: Bond,
    pub(super) timer: Option<TimerId>,
    pub(super) peer: PeerNumber,
    place: Use,
    /// Of the buffer.
    length: u32,
    /// Where its active part is, while it has one.
    pub(super) active: Option<ActiveNumber>,
    /// Of the first copy, as all others unless the schedule gives each its own.
    pub(super) message_id: u16,
    pub(super) acks: u8,
    /// Which copy left first under the Message ID of the first Acknowledgement, from 0 on.
    first_acked: u8,
}

impl Slot for Message {
    #[inline]
    fn place(&self) -> Use {
        self.place
    }

    #[inline]
    fn place_mut(&mut self) -> &mut Use {
        &mut self.place
    }
}

impl Message {
    /// Another message begins in this place. Its times are still to be said.
    #[inline]
    pub(super) fn begin(
        &mut self,
        kind: Kind,
        peer: PeerNumber,
        message_id: u16,
        token: ShortToken,
        datagram: &[u8],
    ) {
        (self.kind, self.peer, self.message_id, self.token) = (kind, peer, message_id, token);
        self.bond = if kind == Kind::Response { Bond::InTurn } else { Bond::None };
        (self.first_ack, self.acks, self.first_acked, self.answer) = (Instant::FAR_FUTURE, 0, 0, None);
        (self.timer, self.active) = (None, None);
        self.keep(datagram);
    }

    #[inline]
    pub(super) fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Request | Kind::NonConfirmable)
    }

    #[inline]
    pub(super) fn is_confirmable(&self) -> bool {
        self.kind != Kind::NonConfirmable
    }

    /// Its bytes.
    #[inline]
    pub(super) fn datagram(&self) -> &[u8] {
        self.buffer.get(..self.length as usize).unwrap_or_default()
    }

    /// Keeps its bytes, in the buffer of the message before where it is large enough and no waste.
    #[inline]
    fn keep(&mut self, datagram: &[u8]) {
        let length = datagram.len();
        if self.buffer.len() < length || self.buffer.len() > KEPT_BUFFER.max(length + 16) {
            self.buffer = buffer_for(length);
        }
        if let Some(place) = self.buffer.get_mut(..length) {
            place.copy_from_slice(datagram);
            self.length = length as u32;
        }
    }

    #[inline]
    pub(super) fn first_ack(&self) -> Option<Instant> {
        (self.first_ack != Instant::FAR_FUTURE).then_some(self.first_ack)
    }

    #[inline]
    pub(super) fn is_acknowledged(&self) -> bool {
        self.first_ack != Instant::FAR_FUTURE
    }

    /// An Acknowledgement came for this copy; of the first one the time counts.
    #[inline]
    pub(super) fn acknowledged(&mut self, copy: u8, now: Instant) {
        if !self.is_acknowledged() {
            (self.first_ack, self.first_acked) = (now, copy);
        }
        self.acks = self.acks.saturating_add(1);
    }

    /// The first copy.
    #[inline]
    pub(super) const fn first_copy(&self) -> Copy {
        Copy::new(self.sent, Duration::from_micros(self.timeout), self.message_id)
    }

    /// The Message ID of the first Acknowledgement, where these are the copies after the first.
    #[inline]
    pub(super) fn first_ack_id(&self, further: &[Copy]) -> Option<u16> {
        let copy = usize::from(self.first_acked).checked_sub(1).and_then(|place| further.get(place));
        self.is_acknowledged().then(|| copy.map_or(self.message_id, |copy| copy.message_id))
    }

    /// The bytes carry this Message ID from now on.
    pub(super) fn rename(&mut self, message_id: u16) {
        if let Some(place) = self.buffer.get_mut(2..4) {
            place.copy_from_slice(&message_id.to_be_bytes());
        }
    }
}

/// As many bytes as the allocator takes for so many anyway.
fn buffer_for(length: usize) -> Box<[u8]> {
    vec![0; (length + 8).next_multiple_of(16).max(32) - 8].into_boxed_slice()
}

/// Names an active part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ActiveNumber(std::num::NonZeroU32);

/// What a message needs only until it is acknowledged, or because more than one copy left.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) schedule: Schedule,
    /// As it was drawn.
    pub(super) first_wait: Duration,
    /// The copies after the first.
    pub(super) further: Vec<Copy>,
    /// Of a separate response.
    pub(super) answered: Option<Answered>,
}

impl Active {
    /// Which copy of the message was the first under this Message ID, from 0 on.
    pub(super) fn copy_under(&self, message_id: u16) -> u8 {
        let place = self.further.iter().position(|copy| copy.message_id == message_id);
        place.map_or(0, |place| u8::try_from(place + 1).unwrap_or(u8::MAX))
    }

    /// The Message ID of the last copy of the message.
    pub(super) fn last_id(&self, message: &Message) -> u16 {
        self.further.last().map_or(message.message_id, |copy| copy.message_id)
    }

    /// The Message IDs that copies have of their own beside that of the first.
    pub(super) fn own_ids(&self, message: &Message) -> impl Iterator<Item = u16> {
        let mut before = message.message_id;
        let ids = self.further.iter().map(|copy| copy.message_id);
        ids.filter(move |&id| std::mem::replace(&mut before, id) != id)
    }

    /// Whether a further copy of the message may leave at `now`: not sooner than the shortest timeout
    /// after the last, not outside the span (RFC 7252 §4.2).
    pub(super) fn may_leave_at(&self, message: &Message, now: Instant) -> bool {
        let last = self.further.last().map_or(message.sent, |copy| copy.sent);
        now < self.schedule.deadline
            && now <= self.schedule.last_copy_before
            && last + self.schedule.timeout <= now
            && now <= message.sent + self.schedule.latest_offset()
    }
}

/// The active parts of messages; a place keeps what was in it until it is used again.
#[derive(Debug, Default)]
pub(super) struct ActiveParts {
    places: Vec<Active>,
    free: Vec<ActiveNumber>,
}

impl ActiveParts {
    #[inline]
    pub(super) fn begin(
        &mut self,
        schedule: &Schedule,
        first_wait: Duration,
        answered: Option<Answered>,
    ) -> ActiveNumber {
        let Some(number) = self.free.pop() else { return self.add(schedule, first_wait, answered) };
        if let Some(place) = self.get_mut(number) {
            place.schedule = *schedule;
            place.first_wait = first_wait;
            place.further.clear();
            place.answered = answered;
        }
        number
    }

    #[cold]
    fn add(&mut self, schedule: &Schedule, first_wait: Duration, answered: Option<Answered>) -> ActiveNumber {
        let schedule = *schedule;
        self.places.push(Active { schedule, first_wait, further: Vec::new(), answered });
        let number = u32::try_from(self.places.len()).ok().and_then(std::num::NonZeroU32::new);
        ActiveNumber(number.expect("from 1 on, and fewer than 2^32 fit into memory"))
    }

    #[inline]
    pub(super) fn get(&self, number: ActiveNumber) -> Option<&Active> {
        self.places.get(number.0.get() as usize - 1)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: ActiveNumber) -> Option<&mut Active> {
        self.places.get_mut(number.0.get() as usize - 1)
    }

    #[inline]
    pub(super) fn end(&mut self, number: ActiveNumber) {
        self.free.push(number);
    }

    pub(super) const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_88_bytes_and_a_copy_of_it_24() {
        assert_eq!((size_of::<Message>(), size_of::<Copy>()), (88, 24));
    }

    #[test]
    fn a_buffer_is_used_again_and_wastes_little() {
        let mut message = Message::default();
        for (length, capacity) in
            [(0, 0), (1, 24), (24, 24), (25, 40), (41, 56), (30, 56), (2000, 2008), (1995, 2008), (3, 24)]
        {
            let bytes = vec![length as u8; length];
            message.keep(&bytes);
            assert_eq!((message.datagram(), message.buffer.len()), (&bytes[..], capacity));
        }
        message.keep(&[1; 240]);
        message.keep(&[1; 3]);
        assert_eq!(message.buffer.len(), 248, "as much as most need");
    }

    #[test]
    fn the_first_acknowledgement_counts() {
        let mut message = Message::default();
        message.begin(Kind::Request, PeerNumber::default(), 7, ShortToken::default(), &[]);
        assert_eq!((message.first_ack(), message.is_acknowledged()), (None, false));
        message.acknowledged(1, Instant::from_micros(5));
        message.acknowledged(0, Instant::from_micros(7));
        assert_eq!((message.first_ack(), message.is_acknowledged()), (Some(Instant::from_micros(5)), true));
        assert_eq!(message.acks, 2);
        let further = [Copy::new(Instant::ZERO, Duration::ZERO, 9)];
        assert_eq!((message.first_ack_id(&further), message.first_ack_id(&[])), (Some(9), Some(7)));
    }

    #[test]
    fn copies_are_told_by_the_message_ids_they_have_of_their_own() {
        let mut message = Message::default();
        message.begin(Kind::Request, PeerNumber::default(), 7, ShortToken::default(), &[0x40, 1, 0, 7]);
        let schedule = Schedule::new(&Default::default(), Instant::ZERO);
        let further = [7, 8, 8, 9].map(|id| Copy::new(Instant::ZERO, Duration::ZERO, id));
        let mut active = Active { schedule, first_wait: Duration::ZERO, further: Vec::new(), answered: None };
        assert_eq!((active.last_id(&message), active.own_ids(&message).next()), (7, None));
        active.further.extend(further);
        assert_eq!(active.own_ids(&message).collect::<Vec<_>>(), [8, 9]);
        assert_eq!([7, 8, 9].map(|id| active.copy_under(id)), [1, 2, 4]);
        message.rename(active.last_id(&message));
        assert_eq!(message.datagram(), [0x40, 1, 0, 9]);
    }

    #[test]
    fn active_parts_are_used_again() {
        let schedule = Schedule::new(&Default::default(), Instant::ZERO);
        let mut parts = ActiveParts::default();
        let [first, second] = [(); 2].map(|()| parts.begin(&schedule, Duration::ZERO, None));
        let copy = Copy::new(Instant::ZERO, Duration::from_secs(1), 7);
        parts.get_mut(first).expect("active").further.push(copy);
        parts.end(first);
        assert_eq!((parts.len(), &parts.get(first).expect("kept").further[..]), (1, &[copy][..]));
        assert_eq!(parts.begin(&schedule, Duration::ZERO, None), first);
        assert!(parts.get(first).expect("active").further.is_empty() && first != second);
        assert_eq!(size_of::<Option<ActiveNumber>>(), 4);
    }
}
