//! Datagrams that are to go out, in one arena.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;

use super::icmp::QUOTE_SIZE;
use super::outgoing::{Outgoing, Way};
use super::receive::SLOT_SIZE;
use super::runs;
use crate::control::{self, TOLD_SIZE};
use crate::envelope::{BATCH, Envelope};
use crate::sockaddr::{self, Family, NAME_SIZE};

/// A datagram without an order is compared with so many ways to find others that go the same.
const LOOKED_AT: usize = 8;

/// Datagrams that wait to be sent, one after the other in one arena.
///
/// Made once and filled again and again: the arena keeps its room. Datagrams leave in the order they
/// were pushed in, unless they were [pushed without](Self::push_unordered). Neighbours of one length, from
/// one address to one peer, are a run: the kernel takes it in one piece and cuts it apart below the IP
/// layer, for less than half the work.
#[derive(Debug)]
pub struct SendBatch {
    bytes: Vec<u8>,
    ways: Vec<Way>,
    outgoing: Vec<Outgoing>,
    /// Places in `outgoing` in the order in which they leave.
    order: Vec<u32>,
    /// Those before it are dealt with: sent, or reported as failed. A place in `order`.
    next: usize,
    /// Whether some that have no order may have a better one than they were pushed in.
    is_mixed: bool,
    /// How often the datagram at `next` has been held up by a full device.
    pub(super) held_up: u32,
    /// Whether the kernel is given no runs, because it refused one.
    one_by_one: bool,
    envelopes: Vec<Envelope>,
    /// Where in `bytes` is what the envelopes hold.
    pieces: Vec<Range<usize>>,
    /// Room to sort in.
    keys: Vec<u64>,
    limit: usize,
    /// The same in bytes.
    byte_limit: usize,
}

impl SendBatch {
    /// Makes a batch that is full at `datagrams` datagrams or at 2 KiB for each of them.
    pub fn new(datagrams: usize) -> Self {
        let limit = datagrams.max(1);
        Self {
            bytes: Vec::with_capacity(limit.saturating_mul(SLOT_SIZE)),
            ways: Vec::with_capacity(limit),
            outgoing: Vec::with_capacity(limit),
            order: Vec::with_capacity(limit),
            next: 0,
            is_mixed: false,
            held_up: 0,
            one_by_one: false,
            envelopes: Vec::with_capacity(limit.min(BATCH)),
            pieces: Vec::with_capacity(limit.min(BATCH)),
            keys: Vec::with_capacity(limit.min(BATCH)),
            limit,
            byte_limit: limit.saturating_mul(SLOT_SIZE),
        }
    }

    /// Adds a copy of `datagram`, to be sent to `to`.
    ///
    /// On a socket bound to a wildcard address it leaves from `from`; give what
    /// [`Received::to`](super::receive::Received::to) said, and the peer gets its answer from the
    /// address it asked. Other sockets have one address and leave `from` aside, as all do when it is
    /// a group, which nothing can be sent from.
    /// Shape:  a full batch takes it all the same and grows; ask [`is_full`](Self::is_full) before.
    #[inline]
    pub fn push(&mut self, to: SocketAddr, from: Option<IpAddr>, datagram: &[u8]) {
        let way = self.way(Way { to, from }, 1);
        self.add(way, datagram, false);
    }

    /// The same for a datagram that may leave before or after others that were pushed so, as long as none
    /// lies between them that was not: they are sorted by length to make longer runs.
    #[inline]
    pub fn push_unordered(&mut self, to: SocketAddr, from: Option<IpAddr>, datagram: &[u8]) {
        let way = self.way(Way { to, from }, LOOKED_AT);
        if let Some(before) = self.outgoing.last() {
            self.is_mixed |= before.way != way || before.length < datagram.len();
        }
        self.add(way, datagram, true);
    }

    #[inline]
    fn add(&mut self, way: u32, datagram: &[u8], unordered: bool) {
        self.order.push(self.outgoing.len() as u32);
        self.outgoing.push(Outgoing { start: self.bytes.len(), length: datagram.len(), way, unordered });
        self.bytes.extend_from_slice(datagram);
    }

    /// The number of a way: that of one of so many newest ways, or a new one.
    #[inline]
    fn way(&mut self, way: Way, looked_at: usize) -> u32 {
        let (mut number, least) = (self.ways.len(), self.ways.len().saturating_sub(looked_at));
        while number > least {
            number -= 1;
            if self.ways.get(number).is_some_and(|known| known.is(&way)) {
                return number as u32;
            }
        }
        self.ways.push(way);
        self.ways.len() as u32 - 1
    }

    /// Whether it is time to send before more is pushed.
    pub fn is_full(&self) -> bool {
        self.outgoing.len() >= self.limit || self.bytes.len() >= self.byte_limit
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
        self.ways.clear();
        self.outgoing.clear();
        self.order.clear();
        self.next = 0;
        self.is_mixed = false;
        self.held_up = 0;
        self.one_by_one = false;
    }

    /// Addresses the next [`BATCH`] datagrams for a socket: envelopes, where in the bytes is what they
    /// hold, and the bytes.
    pub(super) fn prepare(
        &mut self,
        family: Family,
        wildcard: bool,
        runs: bool,
    ) -> (&[Envelope], &[Range<usize>], &[u8]) {
        let runs = runs && !self.one_by_one;
        let end = self.order.len().min(self.next + BATCH);
        let order = self.order.get_mut(self.next..end).unwrap_or_default();
        if runs && self.is_mixed {
            runs::sort(&self.outgoing, order, &mut self.keys);
        }
        self.envelopes.clear();
        self.pieces.clear();
        let mut order = &*order;
        while let Some(first) = order.first().and_then(|&place| self.outgoing.get(place as usize)) {
            let datagrams = if runs { runs::length(&self.outgoing, order) } else { 1 };
            let (run, rest) = order.split_at(datagrams);
            let before = self.pieces.len();
            self.pieces.push(first.start..first.start + first.length);
            for Outgoing { start, length, .. } in
                run.iter().skip(1).filter_map(|&place| self.outgoing.get(place as usize))
            {
                match self.pieces.last_mut() {
                    Some(piece) if piece.end == *start => piece.end += length,
                    _ => self.pieces.push(*start..start + length),
                }
            }
            let pieces = self.pieces.len() - before;
            let Some(way) = self.ways.get(first.way as usize) else { break };
            let mut envelope = way.envelope(family, wildcard, datagrams, pieces);
            if datagrams > 1 {
                let used = envelope.control_length;
                envelope.control_length =
                    control::encode_segment_size(first.length as u16, used, &mut envelope.control);
            }
            self.envelopes.push(envelope);
            order = rest;
        }
        (&self.envelopes, &self.pieces, &self.bytes)
    }

    /// Takes note that so many envelopes, from the first, are dealt with.
    pub(super) fn advance(&mut self, envelopes: usize) -> usize {
        let datagrams = self.envelopes.iter().take(envelopes).map(|envelope| envelope.datagrams).sum();
        self.next += datagrams;
        self.held_up = 0;
        debug_assert!(self.next <= self.outgoing.len());
        datagrams
    }

    /// Splits the first envelope, if it is a run: from now on each datagram goes by itself.
    pub(super) fn split(&mut self) -> bool {
        let is_run = self.envelopes.first().is_some_and(|envelope| envelope.datagrams > 1);
        self.one_by_one |= is_run;
        is_run
    }

    /// Takes note that the next datagram cannot be sent.
    pub(super) fn fail(&mut self, error: io::Error) -> Option<SendFailure> {
        let index = *self.order.get(self.next)? as usize;
        let &Outgoing { start, length, way, .. } = self.outgoing.get(index)?;
        let &Way { to, from } = self.ways.get(way as usize)?;
        let quote = self.bytes.get(start..start + length.min(QUOTE_SIZE)).unwrap_or_default().into();
        self.next += 1;
        self.held_up = 0;
        Some(SendFailure { index, to, from, quote, error })
    }
}

impl Way {
    /// For a datagram, or for a run of them.
    fn envelope(&self, family: Family, wildcard: bool, datagrams: usize, pieces: usize) -> Envelope {
        let mut envelope = Envelope {
            name: [0; NAME_SIZE],
            name_length: 0,
            control: [0; TOLD_SIZE],
            control_length: 0,
            datagrams,
            pieces,
        };
        envelope.name_length = sockaddr::encode(self.to, family, &mut envelope.name);
        if let Some(from) = self.from.filter(|from| wildcard && !is_group(*from)) {
            let scope = match self.to {
                SocketAddr::V6(to) => to.scope_id(),
                SocketAddr::V4(_) => 0,
            };
            envelope.control_length = control::encode_source(from, scope, family, &mut envelope.control);
        }
        envelope
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
