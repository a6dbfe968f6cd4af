//! Watches for messages that match nothing: somebody forges, or an origin is out of step.

use std::collections::VecDeque;
use std::time::Duration;

use coapway_endpoint::Counters;
use coapway_relay::LimitCounters;
use coapway_time::Instant;

/// So many within [`WINDOW`] are told.
const MANY: u64 = 100;
const WINDOW: Duration = Duration::from_secs(10);
/// How finely the window moves.
const STEP: Duration = Duration::from_secs(1);
/// An alert is not repeated sooner.
const PAUSE: Duration = Duration::from_secs(60);

/// What has come so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strays {
    /// Responses that belong to nothing we asked for.
    pub(crate) responses: u64,
    /// Acknowledgements and Resets of nothing we sent.
    pub(crate) replies: u64,
}

impl Strays {
    /// The sum over both legs.
    pub(crate) const fn of(legs: (&Counters, &Counters)) -> Self {
        let (downstream, upstream) = legs;
        Self {
            responses: downstream.unmatched + upstream.unmatched,
            replies: downstream.unexpected + upstream.unexpected,
        }
    }

    const fn since(self, earlier: Self) -> Self {
        Self { responses: self.responses - earlier.responses, replies: self.replies - earlier.replies }
    }

    const fn total(self) -> u64 {
        self.responses + self.replies
    }
}

/// The last seconds, and until when nothing more is told (R-ATK-05).
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// What had come before these times, a second apart, oldest first.
    steps: VecDeque<(Instant, Strays)>,
    last: Strays,
    quiet_until: Option<Instant>,
}

impl Watch {
    /// What came within the window, once that is too much.
    pub(crate) fn look(&mut self, so_far: Strays, now: Instant) -> Option<Strays> {
        if self.steps.back().is_none_or(|&(at, _)| at + STEP <= now) {
            while self.steps.front().is_some_and(|&(at, _)| at + WINDOW <= now) {
                self.steps.pop_front();
            }
            self.steps.push_back((now, self.last));
        }
        self.last = so_far;
        let grown = so_far.since(self.steps.front()?.1);
        if grown.total() < MANY || self.quiet_until.is_some_and(|until| now < until) {
            return None;
        }
        self.quiet_until = Some(now + PAUSE);
        Some(grown)
    }
}

/// Clients that are faster than they may be: told once in [`PAUSE`], with the counts since the last time.
#[derive(Debug, Default)]
pub(crate) struct Floods {
    told: LimitCounters,
    quiet_until: Option<Instant>,
}

impl Floods {
    /// How many were refused and how many dropped, when that is to be told, and when to look again.
    pub(crate) fn look(
        &mut self,
        so_far: LimitCounters,
        now: Instant,
    ) -> (Option<(u64, u64)>, Option<Instant>) {
        let refused = so_far.too_fast - self.told.too_fast;
        let dropped = so_far.dropped - self.told.dropped;
        if refused + dropped == 0 {
            return (None, None);
        }
        if let Some(until) = self.quiet_until.filter(|&until| now < until) {
            return (None, Some(until));
        }
        (self.told, self.quiet_until) = (so_far, Some(now + PAUSE));
        (Some((refused, dropped)), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn strays(responses: u64, replies: u64) -> Strays {
        Strays { responses, replies }
    }

    #[test]
    fn tells_of_a_burst_at_once_and_again_after_a_minute() {
        let mut watch = Watch::default();
        assert_eq!(watch.look(strays(0, 0), at(0)), None);
        assert_eq!(watch.look(strays(60, 39), at(3_600_000)), None);
        assert_eq!(watch.look(strays(60, 40), at(3_600_001)), Some(strays(60, 40)));
        for second in 1..60 {
            assert_eq!(watch.look(strays(60 + second * 50, 40), at(3_600_001 + second * 1000)), None);
        }
        let again = watch.look(strays(3060, 40), at(3_660_001)).expect("a minute later");
        assert!((450..=550).contains(&again.responses) && again.replies == 0, "{again:?}");
    }

    #[test]
    fn a_burst_that_began_in_the_step_before_counts_as_a_whole() {
        let mut watch = Watch::default();
        assert_eq!(watch.look(strays(50, 0), at(500)), None);
        assert_eq!(watch.look(strays(99, 0), at(9_900)), None);
        assert_eq!(watch.look(strays(100, 0), at(10_400)), Some(strays(100, 0)));
    }

    #[test]
    fn a_trickle_is_nothing_to_tell() {
        let mut watch = Watch::default();
        for second in 0..1000 {
            assert_eq!(watch.look(strays(second * 9, 0), at(second * 1000)), None);
        }
    }

    #[test]
    fn a_flood_is_a_line_a_minute_and_nothing_of_it_goes_untold() {
        let mut floods = Floods::default();
        let counted = |too_fast, dropped| LimitCounters { too_fast, dropped, shared: 0 };
        assert_eq!(floods.look(counted(0, 0), at(0)), (None, None));
        assert_eq!(floods.look(counted(1, 0), at(1000)), (Some((1, 0)), None));
        for second in 2..61 {
            let next = floods.look(counted(1 + second, second), at(second * 1000));
            assert_eq!(next, (None, Some(at(61_000))));
        }
        assert_eq!(floods.look(counted(61, 60), at(61_000)), (Some((60, 60)), None));
        assert_eq!(floods.look(counted(61, 60), at(200_000)), (None, None));
    }
}
