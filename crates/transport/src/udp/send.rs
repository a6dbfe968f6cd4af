//! Datagrams that are to go out, in one arena.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::icmp::QUOTE_SIZE;
use super::receive::SLOT_SIZE;
use crate::control::{self, TOLD_SIZE};
use crate::envelope::{BATCH, Envelope};
use crate::sockaddr::{self, Family, NAME_SIZE};

/// The longest datagram that may be one of a run, in bytes: what every IPv6 path carries whole. The
/// kernel cuts a run but never fragments its datagrams.
const LONGEST_IN_RUN: usize = 1280 - 40 - 8;
/// The most datagrams in a run.
/// Source: Linux, `UDP_MAX_SEGMENTS`.
const LONGEST_RUN: usize = 64;
/// The most bytes in a run: what fits into one IP packet, less all headers.
const LARGEST_RUN: usize = 65_535 - 60 - 8;

/// Datagrams that wait to be sent, one after the other in one arena.
///
/// Made once and filled again and again: the arena keeps its room. Datagrams leave in the order they
/// were pushed in. Neighbours of one length, from one address to one peer, are a run: the kernel takes
/// it in one piece and cuts it apart below the IP layer, for less than half the work.
#[derive(Debug)]
pub struct SendBatch {
    bytes: Vec<u8>,
    outgoing: Vec<Outgoing>,
    /// Those before it are dealt with: sent, or reported as failed.
    next: usize,
    /// How often the datagram at `next` has been held up by a full device.
    pub(super) held_up: u32,
    /// Whether the kernel is given no runs, because it refused one.
    one_by_one: bool,
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
            one_by_one: false,
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
        self.one_by_one = false;
    }

    /// Addresses what comes next, in at most [`BATCH`] envelopes, for a socket; their bytes follow each other.
    pub(super) fn prepare(&mut self, family: Family, wildcard: bool, runs: bool) -> (&[Envelope], &[u8]) {
        let runs = runs && !self.one_by_one;
        let first = self.start();
        let (mut start, mut next) = (first, self.next);
        self.envelopes.clear();
        while self.envelopes.len() < BATCH
            && let Some(outgoing) = self.outgoing.get(next)
        {
            let datagrams = if runs { run(start, self.outgoing.get(next..).unwrap_or_default()) } else { 1 };
            let size = outgoing.end - start;
            let end = self.outgoing.get(next + datagrams - 1).map_or(outgoing.end, |last| last.end);
            self.envelopes.push(outgoing.envelope(family, wildcard, datagrams, size, end - start));
            (start, next) = (end, next + datagrams);
        }
        (&self.envelopes, self.bytes.get(first..start).unwrap_or_default())
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
        let outgoing = self.outgoing.get(self.next)?;
        let quote = self.bytes.get(self.start()..outgoing.end).unwrap_or_default();
        let quote = quote.get(..QUOTE_SIZE).unwrap_or(quote).into();
        let failure = SendFailure { index: self.next, to: outgoing.to, from: outgoing.from, quote, error };
        self.next += 1;
        self.held_up = 0;
        Some(failure)
    }

    fn start(&self) -> usize {
        self.next.checked_sub(1).and_then(|before| self.outgoing.get(before)).map_or(0, |before| before.end)
    }
}

/// How many of `outgoing`, from the first, which begins at `start`, make a run.
fn run(start: usize, outgoing: &[Outgoing]) -> usize {
    let Some(first) = outgoing.first() else { return 0 };
    let size = first.end - start;
    if size > LONGEST_IN_RUN {
        return 1;
    }
    let (mut before, mut count) = (first.end, 1);
    for next in outgoing.iter().skip(1).take(LONGEST_RUN - 1) {
        let length = next.end - before;
        let fits = length > 0 && length <= size && next.end - start <= LARGEST_RUN;
        if !fits || next.to != first.to || next.from != first.from {
            break;
        }
        (before, count) = (next.end, count + 1);
        if length < size {
            // Only the last may be shorter.
            break;
        }
    }
    count
}

impl Outgoing {
    /// For this datagram of `size` bytes and those that follow it, `length` bytes in all.
    fn envelope(
        &self,
        family: Family,
        wildcard: bool,
        datagrams: usize,
        size: usize,
        length: usize,
    ) -> Envelope {
        let mut envelope = Envelope {
            name: [0; NAME_SIZE],
            name_length: 0,
            control: [0; TOLD_SIZE],
            control_length: 0,
            length,
            datagrams,
        };
        envelope.name_length = sockaddr::encode(self.to, family, &mut envelope.name);
        if let Some(from) = self.from.filter(|from| wildcard && !is_group(*from)) {
            let scope = match self.to {
                SocketAddr::V6(to) => to.scope_id(),
                SocketAddr::V4(_) => 0,
            };
            envelope.control_length = control::encode_source(from, scope, family, &mut envelope.control);
        }
        if datagrams > 1 {
            let used = envelope.control_length;
            envelope.control_length = control::encode_segment_size(size as u16, used, &mut envelope.control);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths of the runs that datagrams of these lengths make, each to a peer of this number.
    fn runs(datagrams: &[(u8, usize)]) -> Vec<usize> {
        let mut batch = SendBatch::new(datagrams.len());
        for &(peer, length) in datagrams {
            batch.push(SocketAddr::from(([127, 0, 0, peer], 5683)), None, &vec![peer; length]);
        }
        let (envelopes, bytes) = batch.prepare(Family::V4, true, true);
        assert_eq!(bytes.len(), envelopes.iter().map(|envelope| envelope.length).sum());
        envelopes.iter().map(|envelope| envelope.datagrams).collect()
    }

    #[test]
    fn neighbours_of_one_length_to_one_peer_are_a_run() {
        assert_eq!(runs(&[(1, 20), (1, 20), (1, 20)]), [3]);
        assert_eq!(runs(&[(1, 20), (2, 20), (1, 20)]), [1, 1, 1]);
        assert_eq!(runs(&[(1, 20), (1, 20), (2, 20), (2, 20), (2, 20)]), [2, 3]);
    }

    #[test]
    fn only_the_last_of_a_run_may_be_shorter() {
        assert_eq!(runs(&[(1, 20), (1, 20), (1, 19), (1, 19), (1, 20)]), [3, 1, 1]);
        assert_eq!(runs(&[(1, 20), (1, 21), (1, 21)]), [1, 2]);
        assert_eq!(runs(&[(1, 20), (1, 0), (1, 20)]), [1, 1, 1], "an empty datagram is no part of a run");
    }

    #[test]
    fn a_run_is_no_longer_than_the_kernel_takes() {
        assert_eq!(runs(&[(1, 4); 150]), [64, 64, 22]);
        assert_eq!(runs(&[(1, 1232); 60]), [53, 7]);
        assert_eq!(runs(&[(1, 1233); 2]), [1, 1], "a router may have to fragment it");
    }

    #[test]
    fn a_run_leaves_from_one_address() {
        let mut batch = SendBatch::new(3);
        let to = SocketAddr::from(([127, 0, 0, 1], 5683));
        for from in [7, 8, 8] {
            batch.push(to, Some(IpAddr::from([127, 0, 0, from])), b"x");
        }
        let (envelopes, _) = batch.prepare(Family::V4, true, true);
        assert_eq!(envelopes.iter().map(|envelope| envelope.datagrams).collect::<Vec<_>>(), [1, 2]);
        let told = |envelope: &Envelope| {
            control::messages(&envelope.control[..envelope.control_length])
                .map(|message| (message.level, message.kind, message.data.len()))
                .collect::<Vec<_>>()
        };
        let source = (libc::IPPROTO_IP, libc::IP_PKTINFO, 12);
        assert_eq!(told(&envelopes[0]), [source]);
        assert_eq!(told(&envelopes[1]), [source, (libc::SOL_UDP, libc::UDP_SEGMENT, 2)]);
    }
}
