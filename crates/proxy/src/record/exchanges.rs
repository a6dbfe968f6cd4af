//! What a record keeps of the exchanges with origins.

use coapway_endpoint::{AnswerKind, Copy, Course, Local, Peer, SocketId, Trace};
use coapway_message::Token;
use coapway_time::Instant;
use smallvec::SmallVec;
use std::net::SocketAddr;
use std::time::Duration;

/// The exchanges that a forward led to, first to last.
///
/// Most forwards lead to one whose only copy leaves at once and whose response is piggybacked; of it
/// little is to be kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Exchanges {
    /// None.
    #[default]
    None,
    /// One that went as most do.
    Plain(Plain),
    /// Any.
    Any(Vec<Trace>),
}

/// An exchange with one copy that left when the request came, and a piggybacked response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    pub(super) origin: SocketAddr,
    pub(super) socket: SocketId,
    pub(super) message_id: u16,
    pub(super) token: Few,
    pub(super) sent: Instant,
    pub(super) timeout: Duration,
    pub(super) answered: Instant,
    bytes: u32,
}

/// Up to eight bytes, the first one lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Few {
    pub(super) bytes: u64,
    pub(super) length: usize,
}

impl Few {
    /// `None` for more.
    #[inline(always)]
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let length = bytes.len();
        let bytes = match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
            (Some(&eight), _) if length == 8 => u64::from_le_bytes(eight),
            (None, Some(&four)) if length == 4 => u32::from_le_bytes(four).into(),
            _ if length < 8 => bytes.iter().rfold(0, |above, &byte| above << 8 | u64::from(byte)),
            _ => return None,
        };
        Some(Self { bytes, length })
    }
}

impl Plain {
    /// `None` for an exchange that went otherwise.
    #[inline(always)]
    fn new(course: &Course<'_>, received: Instant) -> Option<Self> {
        let first = course.first();
        let (sent, timeout) = (first.sent, first.timeout());
        let is_plain = sent == received
            && course.further().is_empty()
            && course.acks() == 1
            && course.answer() == Some(AnswerKind::Piggybacked)
            && course.is_confirmable();
        if !is_plain {
            return None;
        }
        let Peer { local: Local { socket, address: None }, remote } = course.peer() else { return None };
        Some(Self {
            origin: remote,
            socket,
            message_id: course.message_id(),
            token: Few::new(course.token())?,
            sent,
            timeout,
            answered: course.first_ack()?,
            bytes: course.bytes(),
        })
    }

    fn trace(&self) -> Trace {
        let Few { bytes, length } = self.token;
        Trace {
            peer: Peer { local: Local { socket: self.socket, address: None }, remote: self.origin },
            token: Token::new(bytes.to_le_bytes().get(..length).unwrap_or_default()),
            confirmable: true,
            copies: [Copy::new(self.sent, self.timeout, self.message_id)].into_iter().collect(),
            first_ack: Some(self.answered),
            first_ack_id: Some(self.message_id),
            acks: 1,
            answer: Some(AnswerKind::Piggybacked),
            bytes: self.bytes,
        }
    }
}

impl Exchanges {
    /// Adds one of a request that came at `received`.
    #[inline(always)]
    pub(crate) fn add(&mut self, course: &Course<'_>, received: Instant) {
        if matches!(self, Self::None)
            && let Some(plain) = Plain::new(course, received)
        {
            *self = Self::Plain(plain);
            return;
        }
        self.add_any(course);
    }

    #[inline(never)]
    fn add_any(&mut self, course: &Course<'_>) {
        if !matches!(self, Self::Any(_)) {
            *self = Self::Any(self.traces().into_vec());
        }
        if let Self::Any(traces) = self {
            traces.push(course.trace());
        }
    }

    /// All of them.
    pub fn traces(&self) -> SmallVec<[Trace; 1]> {
        match self {
            Self::None => SmallVec::new(),
            Self::Plain(plain) => SmallVec::from_buf([plain.trace()]),
            Self::Any(traces) => traces.iter().cloned().collect(),
        }
    }

    /// The origin of the last one, and our socket towards it.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<(&SocketAddr, SocketId)> {
        match self {
            Self::None => None,
            Self::Plain(plain) => Some((&plain.origin, plain.socket)),
            Self::Any(traces) => traces.last().map(|trace| (&trace.peer.remote, trace.peer.local.socket)),
        }
    }

    /// The copies that left.
    pub(super) fn copies(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Plain(_) => 1,
            Self::Any(traces) => traces.iter().map(|trace| trace.copies.len()).sum(),
        }
    }
}

impl FromIterator<Trace> for Exchanges {
    fn from_iter<T: IntoIterator<Item = Trace>>(traces: T) -> Self {
        Self::Any(traces.into_iter().collect())
    }
}
