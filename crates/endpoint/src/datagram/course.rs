//! How exchanges of ours go and went, and what was sent in them.

use std::time::Duration;

use coapway_message::{Content, Datagram, ExchangeId, Token};
use coapway_time::Instant;

use super::endpoint::Endpoint;
use super::message::Message;
use super::peers::Peers;
use crate::peer::Peer;
use crate::trace::{AnswerKind, Copy, Trace};

/// How an exchange goes or went, as its endpoint knows it. At least one copy left.
#[derive(Clone, Copy, Debug)]
pub struct Course<'e>(Of<'e>);

#[derive(Clone, Copy, Debug)]
enum Of<'e> {
    /// One in an endpoint, and its copies after the first.
    Message(&'e Message, &'e [Copy], &'e Peers),
    /// One that was kept, with its first copy.
    Trace(&'e Trace, Copy),
}

impl Trace {
    /// See [`Course::exact_round_trip`].
    pub fn exact_round_trip(&self) -> Option<Duration> {
        self.course()?.exact_round_trip()
    }

    /// The same, borrowed; `None` when no copy left.
    pub fn course(&self) -> Option<Course<'_>> {
        Course::of_trace(self)
    }
}

impl<'e> Course<'e> {
    pub(crate) fn of_trace(trace: &'e Trace) -> Option<Self> {
        Some(Self(Of::Trace(trace, *trace.copies.first()?)))
    }

    /// To whom.
    #[inline]
    pub fn peer(&self) -> Peer {
        match self.0 {
            Of::Message(message, _, peers) => peers.get(message.peer),
            Of::Trace(trace, _) => trace.peer,
        }
    }

    /// The Message ID of the first copy.
    #[inline]
    pub const fn message_id(&self) -> u16 {
        match self.0 {
            Of::Message(message, ..) => message.message_id,
            Of::Trace(_, first) => first.message_id,
        }
    }

    /// Our token, or the one the caller gave.
    #[inline]
    pub fn token(&self) -> &'e [u8] {
        match self.0 {
            Of::Message(message, ..) => message.token.as_bytes(),
            Of::Trace(trace, _) => trace.token.as_bytes(),
        }
    }

    /// Whether it was Confirmable.
    #[inline]
    pub fn is_confirmable(&self) -> bool {
        match self.0 {
            Of::Message(message, ..) => message.is_confirmable(),
            Of::Trace(trace, _) => trace.confirmable,
        }
    }

    /// The first copy.
    #[inline]
    pub const fn first(&self) -> Copy {
        match self.0 {
            Of::Message(message, ..) => message.first_copy(),
            Of::Trace(_, first) => first,
        }
    }

    /// The copies after the first.
    #[inline]
    pub fn further(&self) -> &'e [Copy] {
        match self.0 {
            Of::Message(_, further, _) => further,
            Of::Trace(trace, _) => trace.copies.get(1..).unwrap_or_default(),
        }
    }

    /// How many copies left.
    #[inline]
    pub fn copies(&self) -> u32 {
        1 + self.further().len() as u32
    }

    /// When the first Acknowledgement came, with or without a response.
    #[inline]
    pub fn first_ack(&self) -> Option<Instant> {
        match self.0 {
            Of::Message(message, ..) => message.first_ack(),
            Of::Trace(trace, _) => trace.first_ack,
        }
    }

    /// The Message ID of the first Acknowledgement.
    #[inline]
    pub fn first_ack_id(&self) -> Option<u16> {
        match self.0 {
            Of::Message(message, further, _) => message.first_ack_id(further),
            Of::Trace(trace, _) => trace.first_ack_id,
        }
    }

    /// Acknowledgements that came; from 255 on they are not counted.
    #[inline]
    pub fn acks(&self) -> u32 {
        match self.0 {
            Of::Message(message, ..) => message.acks.into(),
            Of::Trace(trace, _) => trace.acks,
        }
    }

    /// How the response came.
    #[inline]
    pub const fn answer(&self) -> Option<AnswerKind> {
        match self.0 {
            Of::Message(message, ..) => message.answer,
            Of::Trace(trace, _) => trace.answer,
        }
    }

    /// Bytes of one copy.
    #[inline]
    pub fn bytes(&self) -> u32 {
        match self.0 {
            Of::Message(message, ..) => message.datagram().len() as u32,
            Of::Trace(trace, _) => trace.bytes,
        }
    }

    /// The time to the first Acknowledgement from the only copy that left under its Message ID: an exact
    /// sample (Karn; R-USR-17).
    #[inline]
    pub fn exact_round_trip(&self) -> Option<Duration> {
        let first_ack = self.first_ack()?;
        if self.further().is_empty() {
            return Some(first_ack.since(self.first().sent));
        }
        self.round_trip_of_one(first_ack)
    }

    #[inline(never)]
    fn round_trip_of_one(&self, first_ack: Instant) -> Option<Duration> {
        let id = self.first_ack_id()?;
        let all = std::iter::once(self.first()).chain(self.further().iter().copied());
        let mut under_it = all.filter(|copy| copy.message_id == id);
        match (under_it.next(), under_it.next()) {
            (Some(copy), None) => Some(first_ack.since(copy.sent)),
            _ => None,
        }
    }

    /// All of it, to be kept.
    pub fn trace(&self) -> Trace {
        Trace {
            peer: self.peer(),
            token: Token::new(self.token()),
            confirmable: self.is_confirmable(),
            copies: std::iter::once(self.first()).chain(self.further().iter().copied()).collect(),
            first_ack: self.first_ack(),
            first_ack_id: self.first_ack_id(),
            acks: self.acks(),
            answer: self.answer(),
            bytes: self.bytes(),
        }
    }
}

impl Endpoint {
    /// How an exchange went so far.
    #[inline]
    pub fn trace(&self, exchange: ExchangeId) -> Option<Course<'_>> {
        self.messages.get(exchange).map(|message| self.course(message))
    }

    /// How an exchange went that has just ended; until another begins or a datagram comes.
    #[inline]
    pub fn ended(&self, exchange: ExchangeId) -> Option<Course<'_>> {
        self.messages.removed(exchange).map(|message| self.course(message))
    }

    /// The content of a request of ours that is under way or has just ended.
    pub fn sent_content(&self, exchange: ExchangeId) -> Option<Content<'_>> {
        let message = self.messages.get(exchange).or_else(|| self.messages.removed(exchange))?;
        message
            .is_request()
            .then(|| Datagram::parse(message.datagram()).ok())?
            .map(|datagram| datagram.content)
    }

    #[inline]
    fn course<'e>(&'e self, message: &'e Message) -> Course<'e> {
        let active = message.active.and_then(|number| self.active.get(number));
        Course(Of::Message(message, active.map_or(&[], |active| &active.further), &self.peers))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_borrowed_says_the_same_as_what_is_kept() {
        let copy_under = |message_id: u16, millis| {
            Copy::new(Instant::ZERO + Duration::from_millis(millis), Duration::from_secs(2), message_id)
        };
        let copy = |millis| copy_under(7, millis);
        let once = Trace {
            peer: Peer { local: Default::default(), remote: ([127, 0, 0, 1], 5683).into() },
            token: Token::new(b"token"),
            confirmable: true,
            copies: [copy(10)].into_iter().collect(),
            first_ack: Some(copy(60).sent),
            first_ack_id: Some(7),
            acks: 1,
            answer: Some(AnswerKind::Piggybacked),
            bytes: 40,
        };
        let twice = Trace { copies: [copy(10), copy(2010)].into_iter().collect(), ..once.clone() };
        let never = Trace { first_ack: None, first_ack_id: None, ..once.clone() };
        let copies = [copy(10), copy_under(8, 30), copy_under(9, 50)];
        let first = Trace { copies: copies[..2].iter().copied().collect(), ..once.clone() };
        let third = Trace { copies: copies.into_iter().collect(), first_ack_id: Some(9), ..once.clone() };
        for (trace, copies, exact) in [
            (&once, 1, Some(50)),
            (&twice, 2, None),
            (&never, 1, None),
            (&first, 2, Some(50)),
            (&third, 3, Some(10)),
        ] {
            let course = trace.course().expect("a copy left");
            assert_eq!((&course.trace(), course.copies()), (trace, copies));
            assert!(course.first() == copy(10) && course.further() == &trace.copies[1..]);
            let exact = exact.map(Duration::from_millis);
            assert_eq!((course.exact_round_trip(), trace.exact_round_trip()), (exact, exact));
        }
        assert!(Trace { copies: Default::default(), ..once }.course().is_none());
    }
}
