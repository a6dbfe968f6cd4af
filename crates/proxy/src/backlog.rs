//! Whether what would wait for an origin can still be served in time.
//!
//! A queue that holds more than the origin serves within a request's time answers everybody just before they
//! give up, or just after. Who would come too late is told at once instead: nothing was sent, so that it may
//! be tried again.

use std::time::Duration;

use coapway_time::Instant;

/// So many have to leave before the pace is known, and for so much of a request's time the queue has to stand
/// with an origin that is heard.
const ENOUGH: u32 = 8;
const WATCHED: u32 = 4;
/// Once requests were refused, a queue longer than this share of their time is of use to nobody.
const TARGET: u32 = 2;

/// What the queue of one origin is known by.
///
/// State:   since when it stands, since when those that leave are counted and how many did; the shortest time that each took in a
///          full count, in this period of a request's time and in the one before; when one was refused last.
/// Formula: a newcomer is expected to wait so long for each that is before it: what was possible a moment ago
///          may be again. It is refused when that is longer than the time it has left, and for a while after
///          a refusal already when it is longer than half of its time: in a queue that never gets shorter
///          everybody but waits.
/// Bounds:  nobody is refused while the origin is silent, since an outage may end, nor before the queue has
///          stood for a quarter of the request's time.
/// Fails:   where the origin gets slower for good, that is believed after two such periods only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    stands: Option<Instant>,
    since: Instant,
    count: u32,
    best: Best,
    refused: Option<Instant>,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { stands: None, since: Instant::ZERO, count: 0, best: Best::default(), refused: None }
    }
}

/// The shortest times, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Best {
    since: Option<Instant>,
    now: Option<f64>,
    before: Option<f64>,
}

impl Best {
    /// Takes in the time of a count; a period lasts for `period`.
    fn learn(&mut self, pace: f64, period: Duration, now: Instant) {
        let since = *self.since.get_or_insert(now);
        match now.since(since) {
            passed if passed >= 2 * period => *self = Self { since: Some(now), ..Self::default() },
            passed if passed >= period => *self = Self { since: Some(now), now: None, before: self.now },
            _ => {}
        }
        self.now = Some(self.now.map_or(pace, |best| best.min(pace)));
    }

    fn get(&self) -> Option<f64> {
        match (self.now, self.before) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

impl Backlog {
    /// A request of this `patience` left that had waited; `is_empty` says that none waits any more.
    #[inline]
    pub(crate) fn left(&mut self, is_empty: bool, patience: Duration, now: Instant) {
        self.count = self.count.saturating_add(1);
        if is_empty {
            self.emptied(patience, now);
        }
    }

    /// All that waited were served, however long that took.
    fn emptied(&mut self, patience: Duration, now: Instant) {
        self.refused = None;
        if self.stands.take().is_some() && self.count >= ENOUGH {
            self.learn(patience, now);
        }
    }

    /// What was counted left in a row.
    fn learn(&mut self, patience: Duration, now: Instant) {
        let pace = now.since(self.since).as_micros() as f64 / f64::from(self.count);
        self.best.learn(pace, patience, now);
    }

    /// Whether a request is refused that `before` are before, and whose time of `patience` is over in
    /// `left`; `is_heard` says whether the origin is not silent.
    pub(crate) fn refuses(
        &mut self,
        before: usize,
        (left, patience): (Duration, Duration),
        is_heard: bool,
        now: Instant,
    ) -> bool {
        let Some(stands) = self.stands.filter(|_| is_heard) else {
            (self.stands, self.since, self.count) = (Some(now), now, 0);
            return false;
        };
        if now.since(stands) < patience / WATCHED {
            return false;
        }
        if self.count >= ENOUGH && now.since(self.since) >= patience / WATCHED {
            self.learn(patience, now);
            (self.since, self.count) = (now, 0);
        }
        let lately = self.refused.is_some_and(|refused| now.since(refused) < patience);
        let most = if lately { left.min(patience / TARGET) } else { left };
        let refuses = self.best.get().is_some_and(|pace| pace * before as f64 > most.as_micros() as f64);
        if refuses {
            self.refused = Some(now);
        }
        refuses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// A queue that stands since 0 and serves ten a second.
    fn standing() -> Backlog {
        let mut backlog = Backlog::default();
        assert!(!backlog.refuses(1000, (PATIENCE, PATIENCE), true, at(0)));
        serve(&mut backlog, 100, false, 10);
        backlog
    }

    /// So many leave; none waits any more, where the last makes it empty.
    fn serve(backlog: &mut Backlog, count: u32, empty: bool, second: u64) {
        (1..=count).for_each(|number| backlog.left(empty && number == count, PATIENCE, at(second)));
    }

    #[test]
    fn who_would_come_too_late_is_refused() {
        for (before, refused) in [(295, false), (305, true)] {
            assert_eq!(standing().refuses(before, (PATIENCE, PATIENCE), true, at(10)), refused, "{before}");
        }
        let left = Duration::from_secs(5);
        assert!(standing().refuses(60, (left, PATIENCE), true, at(10)), "little time is left");
    }

    #[test]
    fn after_a_refusal_a_short_queue_is_long_enough() {
        let mut backlog = standing();
        assert!(backlog.refuses(400, (PATIENCE, PATIENCE), true, at(10)));
        assert!(backlog.refuses(155, (PATIENCE, PATIENCE), true, at(11)));
        assert!(!backlog.refuses(145, (PATIENCE, PATIENCE), true, at(12)));
        assert!(!backlog.refuses(155, (PATIENCE, PATIENCE), true, at(41)), "nobody was for a while");
    }

    #[test]
    fn a_queue_that_was_served_to_the_end_is_no_longer_kept_short() {
        let mut backlog = standing();
        assert!(backlog.refuses(400, (PATIENCE, PATIENCE), true, at(10)));
        serve(&mut backlog, 10, true, 11);
        assert!(!backlog.refuses(1, (PATIENCE, PATIENCE), true, at(12)));
        assert!(!backlog.refuses(155, (PATIENCE, PATIENCE), true, at(20)));
        assert!(backlog.refuses(305, (PATIENCE, PATIENCE), true, at(20)), "its pace is known");
    }

    #[test]
    fn what_was_possible_a_moment_ago_may_be_again() {
        let mut backlog = standing();
        let refuses = |backlog: &mut Backlog, second| {
            serve(backlog, 20, false, second);
            backlog.refuses(200, (PATIENCE, PATIENCE), true, at(second))
        };
        // Two a second from now on.
        let seconds = [10, 20, 30, 40, 50, 60, 70, 80].map(|second| (second, refuses(&mut backlog, second)));
        let first = seconds.iter().find(|(_, refused)| *refused).map(|(second, _)| *second);
        assert_eq!(first, Some(70), "two periods later it is slow for good");
        let mut slow = Backlog::default();
        assert!(!refuses(&mut slow, 0));
        assert!(refuses(&mut slow, 10), "as it is when it was never faster");
    }

    #[test]
    fn neither_a_burst_nor_an_outage_is_a_reason() {
        assert!(!standing().refuses(1000, (PATIENCE, PATIENCE), true, at(7)), "it does not stand for long");
        let mut emptied = standing();
        serve(&mut emptied, 1, true, 10);
        assert!(!emptied.refuses(1000, (PATIENCE, PATIENCE), true, at(10)));
        let mut silent = standing();
        for second in 10..40 {
            assert!(!silent.refuses(1000, (PATIENCE, PATIENCE), false, at(second)));
        }
        serve(&mut silent, 10, false, 40);
        assert!(!silent.refuses(1000, (PATIENCE, PATIENCE), true, at(46)), "it has just come back");
        assert!(silent.refuses(1000, (PATIENCE, PATIENCE), true, at(47)));
    }
}
