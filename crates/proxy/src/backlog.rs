//! Whether what would wait for an origin can still be served in time.
//!
//! A queue that holds more than the origin serves within a request's time answers everybody just before they
//! give up, or just after. Who would come too late is told at once instead: nothing was sent, so that it may
//! be tried again.

use std::time::Duration;

use coapway_time::Instant;

/// So many that left tell the pace, and so much one of them moves it.
const ENOUGH: u32 = 32;
const STEP: f64 = 1.0 / 32.0;
/// So much of a request's time a queue has to stand, with an origin that is heard, before it is believed.
const WATCHED: u32 = 4;
/// Once requests were refused, a queue longer than this share of their time is of use to nobody.
const TARGET: u32 = 4;

/// What the queue of one origin is known by.
///
/// State:   the time from one that leaves to the next, smoothed; since when the queue stands; when one was
///          refused last.
/// Formula: a newcomer is expected to wait as long for each that is before it. It is refused when that is
///          longer than the time it has left, and for a while after a refusal already when it is longer than
///          a quarter of its time: in a queue that never gets shorter everybody but waits.
/// Bounds:  nobody is refused while the origin is silent, since an outage may end, nor before the queue has
///          stood for a quarter of the request's time.
/// Fails:   a window that still grows will serve faster than it did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    /// In microseconds.
    pace: f64,
    seen: u32,
    /// When one left last, unless the queue was empty then.
    last: Option<Instant>,
    since: Option<Instant>,
    refused: Option<Instant>,
}

impl Backlog {
    /// A request left that had waited; `is_empty` says that none waits any more.
    pub(crate) fn left(&mut self, is_empty: bool, now: Instant) {
        if let Some(last) = self.last {
            self.seen = self.seen.saturating_add(1);
            let pace = now.since(last).as_micros() as f64;
            self.pace += (pace - self.pace) * STEP.max(1.0 / f64::from(self.seen));
        }
        self.last = (!is_empty).then_some(now);
        if is_empty {
            self.since = None;
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
        if !is_heard {
            self.since = Some(now);
        }
        let since = *self.since.get_or_insert(now);
        let lately = |refused: &Instant| now.since(*refused) < patience;
        let refused = self.refused.filter(lately);
        if self.seen < ENOUGH || refused.is_none() && now.since(since) < patience / WATCHED {
            return false;
        }
        let most = if refused.is_some() { left.min(patience / TARGET) } else { left };
        let refuses = is_heard && self.pace * before as f64 > most.as_micros() as f64;
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
        (0..40).for_each(|tenth| backlog.left(false, at(0) + Duration::from_millis(100) * tenth));
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
        assert!(backlog.refuses(80, (PATIENCE, PATIENCE), true, at(11)));
        assert!(!backlog.refuses(70, (PATIENCE, PATIENCE), true, at(12)));
        assert!(!backlog.refuses(80, (PATIENCE, PATIENCE), true, at(41)), "nobody was for a while");
    }

    #[test]
    fn neither_a_burst_nor_an_outage_is_a_reason() {
        assert!(!standing().refuses(1000, (PATIENCE, PATIENCE), true, at(7)), "it does not stand for long");
        let mut emptied = standing();
        emptied.left(true, at(9));
        assert!(!emptied.refuses(1000, (PATIENCE, PATIENCE), true, at(10)));
        let mut silent = standing();
        for second in 10..40 {
            assert!(!silent.refuses(1000, (PATIENCE, PATIENCE), false, at(second)));
        }
        assert!(!silent.refuses(1000, (PATIENCE, PATIENCE), true, at(46)), "it has just come back");
        assert!(silent.refuses(1000, (PATIENCE, PATIENCE), true, at(47)));
    }
}
