//! The learned timeout towards one origin.

mod estimate;
mod samples;

use std::time::Duration;

use coapway_time::Instant;

use self::estimate::Estimate;
use self::samples::Samples;
use crate::parameters::{RtoParameters, scaled};

/// A held timeout is not doubled past this (RFC 6298 §2.5).
const LONGEST_HELD: Duration = Duration::from_secs(60);

/// Round-trip times of one origin and the timeout they give.
///
/// Samples: exact ones only, of exchanges with one copy (Karn; R-USR-17): the last `window` of them,
///          for 15 minutes (R-USR-20).
/// Base:    what the configured estimator makes of them.
/// Back-off: a timeout that ran out is doubled and held for the exchanges to come, until an exact
///          sample comes or the origin was left alone for as long as a sample counts. It leaves room
///          for three copies in the wait it is asked for.
#[derive(Clone, Debug)]
pub struct RoundTrip {
    parameters: RtoParameters,
    initial: Duration,
    samples: Samples,
    estimate: Estimate,
    /// What the estimate gives, and whether that is above the cap.
    base: Duration,
    is_above_cap: bool,
    held: Option<Duration>,
    /// When a timeout was asked for last.
    asked: Instant,
}

impl RoundTrip {
    /// Without samples the timeout is `initial`, which is ACK_TIMEOUT.
    pub fn new(parameters: RtoParameters, initial: Duration) -> Self {
        Self {
            parameters,
            initial,
            samples: Samples::default(),
            estimate: Estimate::new(parameters.estimator),
            base: initial,
            is_above_cap: false,
            held: None,
            asked: Instant::ZERO,
        }
    }

    /// Takes over changed parameters and keeps the samples.
    pub fn set_parameters(&mut self, parameters: RtoParameters, initial: Duration) {
        (self.parameters, self.initial) = (parameters, initial);
        if !self.estimate.is(parameters.estimator) {
            self.estimate = Estimate::new(parameters.estimator);
            if !self.samples.is_empty() {
                self.estimate.learn(&self.samples);
            }
        }
        self.derive();
    }

    /// To be called when samples or parameters have changed.
    fn derive(&mut self) {
        self.base = self.estimate.timeout(&self.samples, &self.parameters, self.initial);
        // What is above the cap itself gives a timeout that is not below it.
        self.is_above_cap =
            self.base >= self.parameters.cap && self.estimate.exceeds_cap(&self.samples, &self.parameters);
    }

    /// The first timeout of an exchange that starts now and may last `wait`.
    pub fn timeout(&mut self, wait: Duration, now: Instant) -> Duration {
        if self.samples.forget(RtoParameters::SAMPLE_AGE, now) {
            if self.samples.is_empty() {
                self.estimate.forget();
            }
            self.derive();
        }
        if now.since(self.asked) > RtoParameters::SAMPLE_AGE {
            self.held = None;
        }
        self.asked = now;
        self.in_force(wait)
    }

    /// The first timeout that an exchange would have which may last `wait`; nothing changes by asking.
    pub fn in_force(&self, wait: Duration) -> Duration {
        let base = self.base;
        match self.held {
            // Copies at 0, T and 3 T: the third leaves at two thirds of the wait at the latest.
            Some(held) => base.max(held.min(scaled(wait, 2.0 / 9.0))),
            None => base,
        }
    }

    /// The quantile of the samples, nearest rank.
    pub fn quantile(&self) -> Option<Duration> {
        self.samples.quantile(self.parameters.quantile)
    }

    /// The smallest sample in the window.
    pub fn minimum(&self) -> Option<Duration> {
        self.samples.minimum()
    }

    /// The newest sample.
    pub fn last(&self) -> Option<Duration> {
        self.samples.last()
    }

    /// The samples that count, oldest first, and when each came.
    pub fn samples(&self) -> impl Iterator<Item = (Instant, Duration)> {
        self.samples.iter()
    }

    /// How many exact samples there ever were.
    pub const fn exact_samples(&self) -> u64 {
        self.samples.ever()
    }

    /// How many samples count now.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether no sample counts.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Whether what was learned lies above the configured cap: the path is slower than the operator
    /// allowed for, which is worth an alert. The timeout follows the path all the same (R-USR-18).
    pub const fn cap_is_exceeded(&self) -> bool {
        self.is_above_cap
    }

    /// An exact sample: the time from sending a Confirmable message, sent once, to its
    /// Acknowledgement. It ends a held back-off.
    pub fn sample(&mut self, sample: Duration, now: Instant) {
        self.held = None;
        self.samples.push(sample, self.parameters.window, now);
        self.estimate.learn(&self.samples);
        self.derive();
    }

    /// A wait of `used` ran out. The doubled value is held for the exchanges to come, once for
    /// losses in parallel: only if the timeout in force is neither below `used` nor already twice it
    /// (Unbound's rule).
    pub fn timed_out(&mut self, used: Duration) {
        let current = self.held.unwrap_or(self.base);
        if current >= used / 2 && current <= used * 2 {
            self.held = Some((used * 2).max(current).min(LONGEST_HELD));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Estimator;

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
    fn only_a_wait_like_the_one_in_force_is_doubled() {
        for (used, held) in
            [(900, 2000), (1100, 2200), (2000, 4000), (4000, 8000), (4100, 2000), (60_000, 2000)]
        {
            let mut round_trip = round_trip();
            round_trip.timed_out(Duration::from_millis(used));
            assert_eq!(round_trip.timeout(WAIT, Instant::ZERO), Duration::from_millis(held), "{used} ms");
        }
        let mut longest = RoundTrip::new(RtoParameters::default(), Duration::from_secs(50));
        longest.timed_out(Duration::from_secs(50));
        assert_eq!(longest.timeout(10 * WAIT, Instant::ZERO), LONGEST_HELD);
    }

    #[test]
    fn what_was_measured_can_be_asked_for() {
        let measured = fed([70, 50, 60]);
        let millis = |time: Option<Duration>| time.map(|time| time.as_millis());
        assert_eq!((millis(measured.minimum()), millis(measured.last())), (Some(50), Some(60)));
        assert_eq!((measured.len(), measured.is_empty(), measured.exact_samples()), (3, false, 3));
        let nothing = round_trip();
        assert_eq!((nothing.minimum(), nothing.last(), nothing.quantile()), (None, None, None));
        assert_eq!((nothing.len(), nothing.is_empty(), nothing.exact_samples()), (0, true, 0));
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

    #[test]
    fn a_held_back_off_ends_when_the_origin_was_left_alone() {
        let mut round_trip = round_trip();
        let start = Duration::from_secs(2);
        round_trip.timed_out(round_trip.clone().timeout(WAIT, Instant::ZERO));
        let busy = Instant::ZERO + Duration::from_secs(900);
        assert_eq!(round_trip.timeout(WAIT, busy), start * 2);
        assert_eq!(round_trip.timeout(WAIT, busy + Duration::from_secs(901)), start);
    }

    #[test]
    fn an_alert_is_due_when_the_path_is_slower_than_the_cap() {
        assert!(!round_trip().cap_is_exceeded());
        assert!(!fed([10_000; 50]).cap_is_exceeded());
        assert!(fed([10_001; 50]).cap_is_exceeded());
        let mut fixed = fed([12_000; 50]);
        let parameters = RtoParameters { estimator: Estimator::Fixed, ..RtoParameters::default() };
        fixed.set_parameters(parameters, Duration::from_secs(2));
        assert!(!fixed.cap_is_exceeded(), "nothing is capped");
        assert_eq!(fixed.timeout(WAIT, Instant::ZERO), Duration::from_secs(2));
    }

    #[test]
    fn a_constant_path_beyond_the_cap_is_learned_and_no_longer_sent_twice() {
        // 12 s of round trip and a wait of 60 s: nothing is exact until the timeout has grown past it.
        let (path, wait) = (Duration::from_secs(12), Duration::from_secs(60));
        let mut round_trip = round_trip();
        let mut clean = 0;
        for exchange in 0..10u32 {
            let now = Instant::ZERO + exchange * Duration::from_secs(20);
            let timeout = round_trip.timeout(wait, now);
            if timeout > path {
                round_trip.sample(path, now + path);
                clean += 1;
                continue;
            }
            let mut used = timeout;
            let mut elapsed = used;
            while elapsed < path {
                round_trip.timed_out(used);
                used *= 2;
                elapsed += used;
            }
        }
        assert!(clean >= 7, "{clean} of 10");
        assert!(round_trip.timeout(wait, Instant::ZERO + Duration::from_secs(200)) > path);
        assert!(round_trip.cap_is_exceeded());
    }

    #[test]
    fn ambiguous_exchanges_neither_shrink_nor_stretch_what_was_learned() {
        // 30 exact samples of 50 ms, then exchanges whose second copy is answered after 5 ms.
        let mut round_trip = fed([50; 30]);
        for _ in 0..30 {
            let used = round_trip.timeout(Duration::from_secs(30), Instant::ZERO);
            assert!(used >= RtoParameters::default().floor);
            round_trip.timed_out(used);
            assert_eq!(round_trip.quantile(), Some(Duration::from_millis(50)));
            assert_eq!(round_trip.exact_samples(), 30);
        }
        let held = round_trip.timeout(Duration::from_secs(30), Instant::ZERO);
        assert!(held <= Duration::from_secs(7), "{held:?} leaves no room for three copies");
        round_trip.sample(Duration::from_millis(50), Instant::ZERO);
        assert_eq!(round_trip.timeout(WAIT, Instant::ZERO), Duration::from_millis(200));
    }

    #[test]
    fn each_origin_has_the_timeout_of_its_own_path() {
        // 20 ms with 10 % loss beside 1.5 s without.
        let mut random = fastrand::Rng::with_seed(7);
        let (mut near, mut far) = (round_trip(), round_trip());
        let mut needless = 0;
        for exchange in 0..100u32 {
            let now = Instant::ZERO + exchange * Duration::from_millis(500);
            let used = near.timeout(WAIT, now);
            if exchange >= 20 {
                assert!(used >= Duration::from_millis(200) && used < Duration::from_secs(2), "{used:?}");
            }
            if random.f64() < 0.1 {
                near.timed_out(used);
            } else {
                near.sample(Duration::from_millis(20), now);
            }
            let path = Duration::from_millis(1400 + random.u64(..200));
            needless += u32::from(far.timeout(WAIT, now) < path);
            far.sample(path, now);
        }
        assert!(needless < 3, "{needless} needless copies");
        let later = Instant::ZERO + Duration::from_secs(50 + 901);
        assert_eq!(
            (near.timeout(WAIT, later), far.timeout(WAIT, later)),
            (Duration::from_secs(2), Duration::from_secs(2))
        );
    }
}
