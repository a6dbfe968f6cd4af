//! The learned timeout towards one origin.

use std::collections::VecDeque;
use std::time::Duration;

use coapway_time::Instant;

use crate::parameters::{Estimator, RtoParameters};

/// Round-trip times of one origin and the timeout they give.
///
/// State:   the last `window` exact samples, sorted beside their order of arrival; a backed-off
///          timeout that is held until an exact sample comes.
/// Formula: clamp(P95 · factor, floor, cap), nearest rank; `initial` while there is no sample.
/// Bounds:  the cap never lies under the quantile itself (R-USR-18); a held timeout leaves room for
///          three copies in the wait it is asked for.
/// Ageing:  a sample counts for 15 minutes (R-USR-20).
/// Fails:   the quantile is fed by clean exchanges only, so it is truncated at its own timeout.
#[derive(Clone, Debug)]
pub struct RoundTrip {
    parameters: RtoParameters,
    initial: Duration,
    samples: VecDeque<(Instant, Duration)>,
    sorted: Vec<Duration>,
    held: Option<Duration>,
    exact: u64,
}

impl RoundTrip {
    /// Without samples the timeout is `initial`, which is ACK_TIMEOUT.
    pub fn new(parameters: RtoParameters, initial: Duration) -> Self {
        Self { parameters, initial, samples: VecDeque::new(), sorted: Vec::new(), held: None, exact: 0 }
    }

    /// Takes over changed parameters and keeps the samples.
    pub fn set_parameters(&mut self, parameters: RtoParameters, initial: Duration) {
        (self.parameters, self.initial) = (parameters, initial);
    }

    /// The first timeout of an exchange that starts now and may last `wait`.
    pub fn timeout(&mut self, wait: Duration, now: Instant) -> Duration {
        self.age(now);
        let base = self.base();
        match self.held {
            // Copies at 0, T and 3 T: the third leaves at two thirds of the wait at the latest.
            Some(held) => base.max(held.min(wait.mul_f64(2.0 / 9.0))),
            None => base,
        }
    }

    fn base(&self) -> Duration {
        let RtoParameters { estimator, factor, cap, floor, .. } = self.parameters;
        match (estimator, self.quantile()) {
            (Estimator::Fixed, _) | (Estimator::P95, None) => self.initial,
            (Estimator::P95, Some(quantile)) => {
                quantile.mul_f64(factor).min(cap.max(quantile.mul_f64(1.1))).max(floor)
            }
        }
    }

    /// The quantile of the samples, nearest rank.
    pub fn quantile(&self) -> Option<Duration> {
        let rank = (self.parameters.quantile * self.sorted.len() as f64 - 1e-9).ceil() as usize;
        self.sorted.get(rank.max(1) - 1).copied()
    }

    /// The smallest sample in the window.
    pub fn minimum(&self) -> Option<Duration> {
        self.sorted.first().copied()
    }

    /// The newest sample.
    pub fn last(&self) -> Option<Duration> {
        self.samples.back().map(|&(_, sample)| sample)
    }

    /// Whether the learned quantile lies above the configured cap: the first timeout is then longer
    /// than the operator meant (R-USR-18).
    pub fn cap_is_exceeded(&self) -> bool {
        self.parameters.estimator == Estimator::P95
            && self.quantile().is_some_and(|quantile| quantile > self.parameters.cap)
    }

    /// How many exact samples there ever were.
    pub const fn exact_samples(&self) -> u64 {
        self.exact
    }

    /// How many samples count now.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether no sample counts.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// An exact sample: the time from sending a Confirmable message, sent once, to its
    /// Acknowledgement. It ends a held back-off.
    pub fn sample(&mut self, sample: Duration, now: Instant) {
        self.held = None;
        self.exact += 1;
        while self.samples.len() >= self.parameters.window.max(1) {
            self.drop_oldest();
        }
        let place = self.sorted.partition_point(|other| *other <= sample);
        self.sorted.insert(place, sample);
        self.samples.push_back((now, sample));
    }

    /// A wait of `used` ran out. The doubled value is held for the exchanges to come, once for
    /// losses in parallel: only if the timeout in force is neither below `used` nor already twice it
    /// (Unbound's rule).
    pub fn timed_out(&mut self, used: Duration) {
        let current = self.held.unwrap_or_else(|| self.base());
        if current >= used.mul_f64(0.5) && current <= used * 2 {
            self.held = Some((used * 2).max(current).min(Duration::from_secs(60)));
        }
    }

    fn age(&mut self, now: Instant) {
        while self.samples.front().is_some_and(|&(at, _)| now.since(at) > RtoParameters::SAMPLE_AGE) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((_, sample)) = self.samples.pop_front() else { return };
        let place = self.sorted.partition_point(|other| *other < sample);
        self.sorted.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(93);

    fn round_trip() -> RoundTrip {
        RoundTrip::new(RtoParameters::default(), Duration::from_secs(2))
    }

    fn fed(samples: impl IntoIterator<Item = u64>) -> RoundTrip {
        let mut round_trip = round_trip();
        for sample in samples {
            round_trip.sample(Duration::from_millis(sample), Instant::ZERO);
        }
        round_trip
    }

    #[test]
    fn takes_the_nearest_rank() {
        for (count, rank) in [(1, 1), (20, 19), (40, 38), (50, 48)] {
            assert_eq!(fed(1..=count).quantile(), Some(Duration::from_millis(rank)), "{count}");
        }
    }

    #[test]
    fn follows_the_requirement_s_examples() {
        assert_eq!(round_trip().timeout(WAIT, Instant::ZERO), Duration::from_secs(2));
        let mut spread = fed((1..=50).map(|n| n * 100));
        assert_eq!(spread.quantile(), Some(Duration::from_millis(4800)));
        assert_eq!(spread.timeout(WAIT, Instant::ZERO), Duration::from_secs(10));
        assert_eq!(fed([50; 50]).timeout(WAIT, Instant::ZERO), Duration::from_millis(200));
    }

    #[test]
    fn the_cap_never_lies_under_what_was_measured() {
        assert!(fed([12_000; 50]).timeout(WAIT, Instant::ZERO) > Duration::from_secs(12));
    }

    #[test]
    fn old_samples_expire() {
        let mut round_trip = fed([100; 50]);
        let later = Instant::ZERO + Duration::from_secs(901);
        assert_eq!(round_trip.timeout(WAIT, later), Duration::from_secs(2));
        assert!(round_trip.is_empty());
    }

    #[test]
    fn a_back_off_is_held_until_an_exact_sample() {
        let mut round_trip = fed([100; 50]);
        let first = round_trip.timeout(WAIT, Instant::ZERO);
        round_trip.timed_out(first);
        assert_eq!(round_trip.timeout(WAIT, Instant::ZERO), first * 2);
        round_trip.sample(Duration::from_millis(100), Instant::ZERO);
        assert_eq!(round_trip.timeout(WAIT, Instant::ZERO), first);
    }

    #[test]
    fn parallel_losses_double_once() {
        let mut round_trip = fed([100; 50]);
        let first = round_trip.timeout(WAIT, Instant::ZERO);
        for _ in 0..10 {
            round_trip.timed_out(first);
        }
        assert_eq!(round_trip.timeout(WAIT, Instant::ZERO), first * 2);
    }

    #[test]
    fn a_held_back_off_leaves_room_for_three_copies() {
        let mut round_trip = fed([1000; 50]);
        let mut used = round_trip.timeout(WAIT, Instant::ZERO);
        for _ in 0..8 {
            round_trip.timed_out(used);
            used = used.max(round_trip.timeout(WAIT, Instant::ZERO));
        }
        let timeout = round_trip.timeout(Duration::from_secs(30), Instant::ZERO);
        assert!(timeout * 3 * 3 / 2 <= Duration::from_secs(31), "{timeout:?}");
    }
}
