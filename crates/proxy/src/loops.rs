//! Requests that come back to us (RFC 8768 §1).
//!
//! Two proxies that point at each other pass a request round until its time is up. A Hop-Limit ends
//! that, and a request that shows signs of going round gets one: it asks for the very resource that
//! an earlier request asks for in vain, and comes from the host that request was sent to.

use std::net::IpAddr;
use std::time::Duration;

use ahash::RandomState;
use coapway_time::Instant;
use hashbrown::HashMap;

/// A request that goes round shows itself at each of its hops: that is told once.
const PAUSE: Duration = Duration::from_secs(10);

/// What is kept of requests that have gone unanswered for a while.
pub(crate) type Mark = u64;

/// The requests that were acknowledged early and are not answered, by resource and origin host.
#[derive(Debug)]
pub(crate) struct Loops {
    marks: HashMap<Mark, u32, RandomState>,
    /// When a loop was told last.
    told: Option<Instant>,
    hasher: RandomState,
}

impl Loops {
    /// Four hops of the default of 16 are behind a request that came round a circle of two before it
    /// was suspected (RFC 8768 §3).
    pub(crate) const HOP_LIMIT: u8 = 12;

    pub(crate) fn new(hasher: RandomState) -> Self {
        Self { marks: HashMap::with_hasher(hasher.clone()), told: None, hasher }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Whether a loop that shows itself now is to be told of.
    pub(crate) fn is_news(&mut self, now: Instant) -> bool {
        let is_news = self.told.is_none_or(|told| now.since(told) >= PAUSE);
        if is_news {
            self.told = Some(now);
        }
        is_news
    }

    fn mark(&self, resource: u64, host: IpAddr) -> Mark {
        self.hasher.hash_one((resource, host))
    }

    /// A request for `resource` at `host` has gone unanswered for a while.
    pub(crate) fn enter(&mut self, resource: u64, host: IpAddr) -> Mark {
        let mark = self.mark(resource, host);
        *self.marks.entry(mark).or_insert(0) += 1;
        mark
    }

    /// It is over.
    pub(crate) fn leave(&mut self, mark: Mark) {
        if let Some(count) = self.marks.get_mut(&mark) {
            *count -= 1;
            if *count == 0 {
                self.marks.remove(&mark);
            }
        }
    }

    /// Whether a request for `resource` from `host` may be one of ours that came back.
    pub(crate) fn suspects(&self, resource: u64, host: IpAddr) -> bool {
        !self.is_empty() && self.marks.contains_key(&self.mark(resource, host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_told_once_in_ten_seconds() {
        let mut loops = Loops::new(RandomState::with_seeds(1, 2, 3, 4));
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert_eq!(
            [1, 1, 10, 11, 12, 30].map(|second| loops.is_news(at(second))),
            [true, false, false, true, false, true]
        );
    }

    #[test]
    fn a_request_is_suspected_while_an_equal_one_waits_for_its_sender() {
        let mut loops = Loops::new(RandomState::with_seeds(1, 2, 3, 4));
        let (peer, other) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        assert!(!loops.suspects(7, peer));
        let marks = [loops.enter(7, peer), loops.enter(7, peer)];
        assert!(loops.suspects(7, peer) && !loops.suspects(7, other) && !loops.suspects(8, peer));
        loops.leave(marks[0]);
        assert!(loops.suspects(7, peer));
        loops.leave(marks[1]);
        assert!(!loops.suspects(7, peer) && loops.is_empty());
    }
}
