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

impl Trace {
    /// The time to the first Acknowledgement when exactly one copy had left: an exact sample
    /// (Karn; R-USR-17).
    pub fn exact_round_trip(&self) -> Option<Duration> {
        self.course()?.exact_round_trip()
    }

    /// The same, borrowed; `None` when no copy left.
    pub fn course(&self) -> Option<Course<'_>> {
        let (&first, further) = self.copies.split_first()?;
        Some(Course {
            peer: &self.peer,
            message_id: self.message_id,
            token: self.token.as_bytes(),
            confirmable: self.confirmable,
            first,
            further,
            first_ack: self.first_ack,
            acks: self.acks,
            answer: self.answer,
            bytes: self.bytes,
        })
    }
}

/// How an exchange goes or went, as its endpoint knows it; at least one copy left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course<'e> {
    /// To whom.
    pub peer: &'e Peer,
    /// Our Message ID.
    pub message_id: u16,
    /// Our token, or the one the caller gave.
    pub token: &'e [u8],
    /// Whether it was Confirmable.
    pub confirmable: bool,
    /// The first copy.
    pub first: Copy,
    /// Those after it.
    pub further: &'e [Copy],
    /// When the first Acknowledgement came, with or without a response.
    pub first_ack: Option<Instant>,
    /// Acknowledgements that came.
    pub acks: u32,
    /// How the response came.
    pub answer: Option<AnswerKind>,
    /// Bytes of one copy.
    pub bytes: u32,
}

impl Course<'_> {
    /// How many copies left.
    #[inline]
    pub const fn copies(&self) -> u32 {
        1 + self.further.len() as u32
    }

    /// The time to the first Acknowledgement when exactly one copy had left: an exact sample
    /// (Karn; R-USR-17).
    #[inline]
    pub fn exact_round_trip(&self) -> Option<Duration> {
        let first_ack = self.first_ack.filter(|_| self.further.is_empty())?;
        Some(first_ack.since(self.first.sent))
    }

    /// All of it, to be kept.
    pub fn trace(&self) -> Trace {
        Trace {
            peer: *self.peer,
            message_id: self.message_id,
            token: Token::new(self.token),
            confirmable: self.confirmable,
            copies: std::iter::once(self.first).chain(self.further.iter().copied()).collect(),
            first_ack: self.first_ack,
            acks: self.acks,
            answer: self.answer,
            bytes: self.bytes,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_borrowed_says_the_same_as_what_is_kept() {
        let copy = |millis| Copy {
            sent: Instant::ZERO + Duration::from_millis(millis),
            timeout: Duration::from_secs(2),
        };
        let once = Trace {
            peer: Peer { local: Default::default(), remote: ([127, 0, 0, 1], 5683).into() },
            message_id: 7,
            token: Token::new(b"token"),
            confirmable: true,
            copies: [copy(10)].into_iter().collect(),
            first_ack: Some(copy(60).sent),
            acks: 1,
            answer: Some(AnswerKind::Piggybacked),
            bytes: 40,
        };
        let twice = Trace { copies: [copy(10), copy(2010)].into_iter().collect(), ..once.clone() };
        let never = Trace { first_ack: None, ..once.clone() };
        for (trace, copies, exact) in [(&once, 1, Some(50)), (&twice, 2, None), (&never, 1, None)] {
            let course = trace.course().expect("a copy left");
            assert_eq!((&course.trace(), course.copies()), (trace, copies));
            let exact = exact.map(Duration::from_millis);
            assert_eq!((course.exact_round_trip(), trace.exact_round_trip()), (exact, exact));
        }
        assert_eq!(Trace { copies: SmallVec::new(), ..once }.course(), None);
    }
}
