//! Datagrams that are to go out, in one arena.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::icmp::QUOTE_SIZE;
use super::receive::SLOT_SIZE;
use crate::control::{self, SOURCE_SIZE};
use crate::envelope::{BATCH, Envelope};
use crate::sockaddr::{self, Family, NAME_SIZE};

/// Datagrams that wait to be sent, one after the other in one arena.
///
/// Made once and filled again and again: the arena keeps its room. Datagrams leave in the order they
/// were pushed in.
#[derive(Debug)]
pub struct SendBatch {
    bytes: Vec<u8>,
    outgoing: Vec<Outgoing>,
    /// Those before it are dealt with: sent, or reported as failed.
    next: usize,
    /// How often the datagram at `next` has been held up by a full device.
    pub(super) held_up: u32,
    envelopes: Vec<Envelope>,
    limit: usize,
}

#[derive(Debug)]
struct Outgoing {
    to: SocketAddr,
    /// As it was given.
    from: Option<IpAddr>,
    end: usize,
}

impl SendBatch {
    /// Makes a batch that is full at `datagrams` datagrams or at 2 KiB for each of them.
    pub fn new(datagrams: usize) -> Self {
        let limit = datagrams.max(1);
        Self {
            bytes: Vec::with_capacity(limit.saturating_mul(SLOT_SIZE)),
            outgoing: Vec::with_capacity(limit),
            next: 0,
            held_up: 0,
            envelopes: Vec::with_capacity(limit.min(BATCH)),
            limit,
        }
    }

    /// Adds a copy of `datagram`, to be sent to `to`.
    ///
    /// On a socket bound to a wildcard address it leaves from `from`; give what
    /// [`Received::to`](super::receive::Received::to) said, and the peer gets its answer from the
    /// address it asked. Other sockets have one address and leave `from` aside, as all do when it is
    /// a group, which nothing can be sent from.
    /// Shape:  a full batch takes it all the same and grows; ask [`is_full`](Self::is_full) before.
    pub fn push(&mut self, to: SocketAddr, from: Option<IpAddr>, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.outgoing.push(Outgoing { to, from, end: self.bytes.len() });
    }

    /// Whether it is time to send before more is pushed.
    pub fn is_full(&self) -> bool {
        self.outgoing.len() >= self.limit || self.bytes.len() >= self.limit.saturating_mul(SLOT_SIZE)
    }

    /// How many datagrams still wait to be sent.
    pub fn len(&self) -> usize {
        self.outgoing.len() - self.next
    }

    /// Whether nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all datagrams, unsent ones too, and keeps the room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.outgoing.clear();
        self.next = 0;
        self.held_up = 0;
    }

    /// Addresses the next [`BATCH`] datagrams for a socket; their bytes follow each other.
    pub(super) fn prepare(&mut self, family: Family, wildcard: bool) -> (&[Envelope], &[u8]) {
        let mut start = self.start();
        let first = start;
        self.envelopes.clear();
        for outgoing in self.outgoing.iter().skip(self.next).take(BATCH) {
            let mut envelope = Envelope {
                name: [0; NAME_SIZE],
                name_length: 0,
                control: [0; SOURCE_SIZE],
                control_length: 0,
                length: outgoing.end - start,
            };
            envelope.name_length = sockaddr::encode(outgoing.to, family, &mut envelope.name);
            if let Some(from) = outgoing.from.filter(|from| wildcard && !is_group(*from)) {
                let scope = match outgoing.to {
                    SocketAddr::V6(to) => to.scope_id(),
                    SocketAddr::V4(_) => 0,
                };
                envelope.control_length = control::encode_source(from, scope, family, &mut envelope.control);
            }
            start = outgoing.end;
            self.envelopes.push(envelope);
        }
        (&self.envelopes, self.bytes.get(first..start).unwrap_or_default())
    }

    /// Takes note that the next `count` datagrams are dealt with.
    pub(super) fn advance(&mut self, count: usize) {
        self.next += count;
        self.held_up = 0;
        debug_assert!(self.next <= self.outgoing.len());
    }

    /// Takes note that the next datagram cannot be sent.
    pub(super) fn fail(&mut self, error: io::Error) -> Option<SendFailure> {
        let outgoing = self.outgoing.get(self.next)?;
        let quote = self.bytes.get(self.start()..outgoing.end).unwrap_or_default();
        let quote = quote.get(..QUOTE_SIZE).unwrap_or(quote).into();
        let failure = SendFailure { index: self.next, to: outgoing.to, from: outgoing.from, quote, error };
        self.advance(1);
        Some(failure)
    }

    fn start(&self) -> usize {
        self.next.checked_sub(1).and_then(|before| self.outgoing.get(before)).map_or(0, |before| before.end)
    }
}

/// Whether nothing can be sent from there: to leave it to the kernel is right then.
fn is_group(address: IpAddr) -> bool {
    address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// How far a send came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a blocked batch still holds datagrams"]
pub enum Progress {
    /// Each datagram was sent or reported as failed, and the batch is cleared.
    Done,
    /// The kernel has no room. The batch holds the rest: wait for
    /// [`poll_writable`](super::UdpSocket::poll_writable), then send it again.
    Blocked,
}

/// A datagram that was not sent.
#[derive(Debug, thiserror::Error)]
#[error("datagram {index} to {to} was not sent: {error}")]
pub struct SendFailure {
    /// Its place in the batch, counted in pushes since the batch was last clear.
    pub index: usize,
    /// Where it was to go.
    pub to: SocketAddr,
    /// Where it was to leave from, as it was pushed.
    pub from: Option<IpAddr>,
    /// How it began, up to 64 bytes.
    pub quote: Box<[u8]>,
    /// Why: an error of the operating system.
    #[source]
    pub error: io::Error,
}
