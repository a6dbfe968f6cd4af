//! `cocoa` and `cocoa_strong`: two estimates, one of them of ambiguous samples.

use std::time::Duration;

use coapway_time::Instant;

use super::rfc6298::Rfc6298;
use super::{Timing, duration, nanos};
use crate::parameters::RtoParameters;

/// No wait is longer.
const LONGEST: Duration = Duration::from_secs(32);
/// Below this the estimate ages upwards and waits are tripled.
const SHORT: f64 = 1e9;
/// Above this it ages downwards and waits grow by half.
const LONG: f64 = 3e9;
/// The longest first wait as a multiple of the shortest.
const SPREAD: f64 = 1.5;

/// CoCoA (draft-ietf-core-cocoa-03); `cocoa_strong` leaves the weak estimate out.
///
/// State:   RTO, a strong and a weak (SRTT, RTTVAR), when it was updated last.
/// Formula: strong, of exchanges with one copy: E = RFC 6298, RTO = ½ E + ½ RTO. Weak, after one or two
///          retransmissions and from the first copy on: E = SRTT + RTTVAR, RTO = ¼ E + ¾ RTO. More
///          retransmissions give no sample. RTO begins with `initial`; until the first sample of either
///          kind the j-th exchange in parallel gets j times that.
/// Bounds:  `floor` and 32 s. Waits are tripled below 1 s, doubled, or grow by half above 3 s, as the
///          first of an exchange says; the first is drawn up to 1.5 times as long.
/// Ageing:  left alone for 16 RTO, below 1 s: doubled. Left alone for 4 RTO, above 3 s: 1 s + RTO/2. As
///          often as it fits in. No back-off is carried.
/// Fails:   weak samples swell under random loss; a path slower than the sum of the first three waits
///          gives no sample, and each exchange is sent again, for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cocoa {
    takes_weak: bool,
    /// In nanoseconds; `None` until a sample comes.
    timeout: Option<f64>,
    strong: Rfc6298,
    weak: Rfc6298,
    updated: Instant,
}

impl Cocoa {
    pub(super) fn new(takes_weak: bool) -> Self {
        let (strong, weak) = (Rfc6298::default(), Rfc6298::default());
        Self { takes_weak, timeout: None, strong, weak, updated: Instant::ZERO }
    }

    pub(super) const fn takes_weak(&self) -> bool {
        self.takes_weak
    }

    pub(super) fn learn_strong(&mut self, sample: Duration, initial: Duration, now: Instant) {
        self.strong.learn(sample);
        self.mix(self.strong.estimate(4.0), 0.5, initial, now);
    }

    /// Says whether it counts.
    pub(super) fn learn_weak(
        &mut self,
        since_first: Duration,
        retransmissions: u32,
        initial: Duration,
        now: Instant,
    ) -> bool {
        let counts = self.takes_weak && matches!(retransmissions, 1 | 2);
        if counts {
            self.weak.learn(since_first);
            self.mix(self.weak.estimate(1.0), 0.25, initial, now);
        }
        counts
    }

    fn mix(&mut self, estimate: Option<f64>, weight: f64, initial: Duration, now: Instant) {
        let before = self.timeout.unwrap_or_else(|| nanos(initial));
        self.timeout = estimate.map(|estimate| weight * estimate + (1.0 - weight) * before);
        self.updated = now;
    }

    /// After how long without use the next step of ageing comes.
    fn step(timeout: f64) -> Option<f64> {
        if timeout < SHORT {
            Some(16.0 * timeout)
        } else if timeout > LONG {
            Some(4.0 * timeout)
        } else {
            None
        }
    }

    pub(super) fn rest(&self) -> Duration {
        self.timeout.and_then(Self::step).map_or(Duration::MAX, duration)
    }

    /// Says whether it is another one.
    pub(super) fn age(&mut self, asked: Instant, now: Instant) -> bool {
        let mut idle = nanos(now.since(asked.max(self.updated)));
        let mut changed = false;
        while let Some(timeout) = &mut self.timeout
            && let Some(step) = Self::step(*timeout).filter(|&step| idle > step)
        {
            idle -= step;
            *timeout = if *timeout < SHORT { 2.0 * *timeout } else { 1e9 + *timeout / 2.0 };
            changed = true;
        }
        changed
    }

    pub(super) fn timing(&self, parameters: &RtoParameters, initial: Duration) -> Timing {
        Self::of(match self.timeout {
            Some(timeout) => duration(timeout).min(LONGEST).max(parameters.floor),
            None => initial,
        })
    }

    /// The same beside so many exchanges that have no timeout of their own either.
    pub(super) fn beside(&self, outstanding: u32, timing: Timing) -> Timing {
        match self.timeout {
            Some(_) => timing,
            None => Self::of(timing.timeout.saturating_mul(outstanding.saturating_add(1)).min(LONGEST)),
        }
    }

    fn of(timeout: Duration) -> Timing {
        let back_off = match nanos(timeout) {
            timeout if timeout < SHORT => 3.0,
            timeout if timeout > LONG => 1.5,
            _ => 2.0,
        };
        Timing { timeout, random_factor: Some(SPREAD), back_off }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RoundTrip;
    use super::super::tests::{SAMPLES, WAIT, after_each, parameters, shown};
    use super::*;
    use crate::parameters::Estimator;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn cocoa(initial: f64) -> RoundTrip {
        RoundTrip::new(parameters(Estimator::Cocoa), Duration::from_secs_f64(initial))
    }

    #[test]
    fn its_vector_of_strong_samples() {
        let expected = ["1150", "711.25", "480.47", "515.25", "497.33", "459.27"];
        assert_eq!(after_each(Estimator::Cocoa, SAMPLES), expected);
        assert_eq!(after_each(Estimator::CocoaStrong, SAMPLES), expected);
    }

    #[test]
    fn its_vector_with_a_weak_sample() {
        let seen = |estimator| {
            let mut round_trip = RoundTrip::new(parameters(estimator), Duration::from_secs(2));
            for millis in [100, 120, 80] {
                round_trip.sample(Duration::from_millis(millis), at(0));
            }
            round_trip.ambiguous(Duration::from_millis(2300), 1, at(0));
            let mut seen = vec![shown(round_trip.in_force(WAIT))];
            for _ in 0..2 {
                round_trip.sample(Duration::from_millis(100), at(0));
                seen.push(shown(round_trip.in_force(WAIT)));
            }
            seen
        };
        assert_eq!(seen(Estimator::Cocoa), ["1222.85", "717.7", "451.17"]);
        assert_eq!(seen(Estimator::CocoaStrong)[0], "480.47", "no sample");
    }

    #[test]
    fn the_draft_s_own_examples() {
        // RTTs of 2 s with a deviation of 1 s.
        let mut estimate = Cocoa::new(true);
        estimate.learn_weak(Duration::from_secs(2), 1, Duration::from_millis(1500), at(0));
        assert_eq!(shown(estimate.timing(&parameters(Estimator::Cocoa), WAIT).timeout), "1875");
        let mut aged = cocoa(4.0);
        aged.ambiguous(Duration::from_millis(2668), 1, at(0));
        assert_eq!(shown(aged.in_force(WAIT)), "4000.5");
        assert_eq!(shown(aged.timeout(WAIT, 0, at(16_000)).timeout), "4000.5", "not yet");
        assert_eq!(shown(aged.timeout(WAIT, 0, at(40_000)).timeout), "3000.25");
    }

    #[test]
    fn a_long_rest_ages_it_as_often_as_fits_in() {
        let mut fast = cocoa(2.0);
        (0..40).for_each(|_| fast.sample(Duration::from_millis(100), at(0)));
        let first = fast.timeout(WAIT, 0, at(0)).timeout;
        assert!(first < Duration::from_millis(105), "{first:?}");
        let twice = fast.clone().timeout(WAIT, 0, at(2000)).timeout;
        assert!(twice.abs_diff(first * 2) <= Duration::from_nanos(1), "{twice:?}");
        let rested = fast.timeout(WAIT, 0, at(600_000)).timeout;
        assert!((Duration::from_secs(1)..Duration::from_secs(2)).contains(&rested), "{rested:?}");
        assert_eq!(fast.timeout(WAIT, 0, at(900_000)).timeout, rested);
    }

    #[test]
    fn only_one_or_two_retransmissions_give_a_weak_sample() {
        for (retransmissions, counts) in [(1, true), (2, true), (3, false), (4, false)] {
            let mut round_trip = cocoa(2.0);
            round_trip.ambiguous(Duration::from_secs(9), retransmissions, at(0));
            assert_eq!(round_trip.in_force(WAIT) > Duration::from_secs(2), counts, "{retransmissions}");
        }
    }

    #[test]
    fn blind_exchanges_in_parallel_wait_longer_one_by_one() {
        let mut round_trip = cocoa(2.0);
        let seen: Vec<_> = [0, 1, 2, 40].map(|n| round_trip.timeout(WAIT, n, at(0))).into();
        assert_eq!(seen.iter().map(|timing| timing.timeout.as_secs()).collect::<Vec<_>>(), [2, 4, 6, 32]);
        assert_eq!(seen.iter().map(|timing| timing.back_off).collect::<Vec<_>>(), [2.0, 1.5, 1.5, 1.5]);
        round_trip.ambiguous(Duration::from_secs(2), 1, at(0));
        assert!(round_trip.timeout(WAIT, 40, at(0)).timeout < Duration::from_secs(3), "no longer blind");
    }

    #[test]
    fn the_timeout_says_how_waits_grow() {
        let grow = |millis| Cocoa::of(Duration::from_millis(millis)).back_off;
        assert_eq!([999, 1000, 3000, 3001].map(grow), [3.0, 2.0, 2.0, 1.5]);
    }

    #[test]
    fn no_back_off_is_carried() {
        let mut round_trip = cocoa(2.0);
        round_trip.timed_out(Duration::from_secs(2), false);
        assert_eq!(round_trip.in_force(WAIT), Duration::from_secs(2));
    }
}
