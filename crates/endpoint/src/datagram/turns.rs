//! Whose turn it is: NSTART towards clients (RFC 7252 §4.7; R-CCN-05).
//!
//! A peer has at most its window of separate responses unacknowledged; the others wait in order, in
//! a line of their own for each peer. What waits too long, or finds the line full, leaves once and
//! Non-confirmable (RFC 7252 §5.2.3): each answer has left at least once. A line exists only while
//! something is under way or waits, and what its window learned goes with it.

use std::collections::VecDeque;
use std::time::Duration;

use coapway_time::{Instant, TimerId};
use hashbrown::HashMap;
use slab::Slab;

use super::congestion::{Loss, Window};
use super::message::Answered;
use super::peers::{PeerNumber, Peers};
use crate::parameters::Nstart;
use crate::trace::Copy;

/// Responses that wait in one line.
pub(super) const MOST_WAITING_FOR_ONE: usize = 64;
/// Responses that wait in all lines.
pub(super) const MOST_WAITING: usize = 4096;

/// When a separate response may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// At once; it counts as under way.
    Now,
    /// After others.
    Later,
    /// Too many wait.
    Never,
}

/// A separate response that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) peer: PeerNumber,
    pub(super) answered: Answered,
    /// The Confirmable message; its Message ID is still to be written.
    pub(super) datagram: Vec<u8>,
    /// When it has waited long enough.
    pub(super) timer: TimerId,
}

#[derive(Debug)]
struct Line {
    window: Window,
    waiting: VecDeque<u32>,
    exact_samples: u64,
}

#[derive(Debug)]
pub(super) struct Turns {
    /// Each refers to its peer.
    lines: HashMap<PeerNumber, Line, ahash::RandomState>,
    waiting: Slab<Waiting>,
}

impl Turns {
    pub(super) fn new(hasher: ahash::RandomState) -> Self {
        Self { lines: HashMap::with_hasher(hasher), waiting: Slab::new() }
    }

    /// Responses that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A separate response to `peer` is ready.
    pub(super) fn take(&mut self, peers: &mut Peers, peer: PeerNumber, nstart: Nstart) -> Turn {
        let line = self.lines.entry(peer).or_insert_with(|| {
            peers.hold(peer);
            Line { window: Window::new(nstart), waiting: VecDeque::new(), exact_samples: 0 }
        });
        line.window.set_nstart(nstart);
        if line.waiting.is_empty() && line.window.is_open() {
            line.window.start();
            Turn::Now
        } else if line.waiting.len() >= MOST_WAITING_FOR_ONE || self.waiting.len() >= MOST_WAITING {
            Turn::Never
        } else {
            Turn::Later
        }
    }

    /// The place of the next one in line.
    pub(super) fn next_place(&self) -> u32 {
        self.waiting.vacant_key() as u32
    }

    /// Puts a response in line.
    pub(super) fn wait(&mut self, waiting: Waiting) {
        let peer = waiting.peer;
        let place = self.waiting.insert(waiting) as u32;
        if let Some(line) = self.lines.get_mut(&peer) {
            line.waiting.push_back(place);
        }
    }

    /// A response under way to `peer` no longer counts. [`Turns::next`] is to be asked afterwards.
    pub(super) fn end(&mut self, peer: PeerNumber) {
        if let Some(line) = self.lines.get_mut(&peer) {
            line.window.end();
        }
    }

    /// The response to `peer` whose turn has come; it counts as under way.
    pub(super) fn next(&mut self, peers: &mut Peers, peer: PeerNumber) -> Option<Waiting> {
        let line = self.lines.get_mut(&peer)?;
        if let Some(&place) = line.waiting.front() {
            if !line.window.is_open() {
                return None;
            }
            line.waiting.pop_front();
            line.window.start();
            return self.waiting.try_remove(place as usize);
        }
        if line.window.outstanding() == 0 && self.lines.remove(&peer).is_some() {
            peers.release(peer);
        }
        None
    }

    /// Those to whom responses are under way or wait, once each.
    pub(super) fn peers(&self) -> impl Iterator<Item = PeerNumber> {
        self.lines.keys().copied()
    }

    /// The places of those that wait.
    pub(super) fn places(&self) -> Vec<u32> {
        self.waiting.iter().map(|(place, _)| place as u32).collect()
    }

    /// When one of them has waited long enough.
    pub(super) fn timer(&self, place: u32) -> Option<TimerId> {
        self.waiting.get(place as usize).map(|waiting| waiting.timer)
    }

    /// A response has waited long enough and leaves its line.
    pub(super) fn give_up(&mut self, place: u32) -> Option<Waiting> {
        let waiting = self.waiting.try_remove(place as usize)?;
        if let Some(line) = self.lines.get_mut(&waiting.peer) {
            // All wait equally long, so that it is the first as a rule.
            match line.waiting.front() == Some(&place) {
                true => drop(line.waiting.pop_front()),
                false => line.waiting.retain(|&other| other != place),
            }
        }
        Some(waiting)
    }

    /// Anything came back from `peer` for a response.
    pub(super) fn arrived(&mut self, peer: PeerNumber, now: Instant) {
        if let Some(line) = self.lines.get_mut(&peer) {
            line.window.arrived(now);
        }
    }

    /// A response was acknowledged, which gave an exact round-trip time if one copy had left.
    pub(super) fn acknowledged(
        &mut self,
        peer: PeerNumber,
        copies: u32,
        exact: Option<Duration>,
        now: Instant,
    ) {
        let Some(line) = self.lines.get_mut(&peer) else { return };
        line.window.arrived(now);
        if let Some(sample) = exact {
            line.exact_samples += 1;
            line.window.saw(sample, now);
        }
        line.window.acknowledged(copies, line.exact_samples, !line.waiting.is_empty());
    }

    /// The wait after a copy ran out.
    pub(super) fn timed_out(&mut self, peer: PeerNumber, copy: Copy, is_first: bool, now: Instant) {
        let Some(line) = self.lines.get_mut(&peer) else { return };
        let (sent, timeout, exact_samples) = (copy.sent, copy.timeout(), line.exact_samples);
        line.window.timed_out(&Loss { sent, timeout, is_first, exact_samples }, now);
    }

    /// Panics when lines and `under_way`, the responses that count, contradict each other.
    pub(super) fn check_invariants(&self, under_way: usize) {
        let outstanding: u32 = self.lines.values().map(|line| line.window.outstanding()).sum();
        assert_eq!(outstanding as usize, under_way, "each response under way counts once");
        assert_eq!(self.lines.values().map(|line| line.waiting.len()).sum::<usize>(), self.waiting.len());
        assert!(self.waiting.len() <= MOST_WAITING);
        for line in self.lines.values() {
            assert!(line.waiting.len() <= MOST_WAITING_FOR_ONE);
            assert!(line.window.outstanding() > 0, "no line without a response under way");
        }
    }
}
