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
/// State:   since when those that leave are counted, how many did, and the time each took in the last full
///          count; when one was refused last.
/// Formula: a newcomer is expected to wait as long for each that is before it. It is refused when that is
///          longer than the time it has left, and for a while after a refusal already when it is longer than
///          half of its time: in a queue that never gets shorter everybody but waits.
/// Bounds:  nobody is refused while the origin is silent, since an outage may end, nor before the queue has
///          stood for a quarter of the request's time.
/// Fails:   a window that still grows will serve faster than it did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    since: Option<Instant>,
    count: u32,
    /// In microseconds; 0 while it is not known.
    pace: f64,
    refused: Option<Instant>,
}

impl Backlog {
    /// A request left that had waited; `is_empty` says that none waits any more.
    pub(crate) const fn left(&mut self, is_empty: bool) {
        self.count = self.count.saturating_add(1);
        if is_empty {
            (self.since, self.pace) = (None, 0.0);
        }
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
        let Some(since) = self.since.filter(|_| is_heard) else {
            (self.since, self.count, self.pace) = (Some(now), 0, 0.0);
            return false;
        };
        if self.count >= ENOUGH && now.since(since) >= patience / WATCHED {
            self.pace = now.since(since).as_micros() as f64 / f64::from(self.count);
            (self.since, self.count) = (Some(now), 0);
        }
        let lately = self.refused.is_some_and(|refused| now.since(refused) < patience);
        let most = if lately { left.min(patience / TARGET) } else { left };
        let refuses = self.pace * before as f64 > most.as_micros() as f64;
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
        (0..100).for_each(|_| backlog.left(false));
        backlog
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
    fn neither_a_burst_nor_an_outage_is_a_reason() {
        assert!(!standing().refuses(1000, (PATIENCE, PATIENCE), true, at(7)), "it does not stand for long");
        let mut emptied = standing();
        emptied.left(true);
        assert!(!emptied.refuses(1000, (PATIENCE, PATIENCE), true, at(10)));
        let mut silent = standing();
        for second in 10..40 {
            assert!(!silent.refuses(1000, (PATIENCE, PATIENCE), false, at(second)));
        }
        (0..10).for_each(|_| silent.left(false));
        assert!(!silent.refuses(1000, (PATIENCE, PATIENCE), true, at(46)), "it has just come back");
        assert!(silent.refuses(1000, (PATIENCE, PATIENCE), true, at(47)));
    }
}
