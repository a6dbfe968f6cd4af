//! `budget`: so late that no more than the given share of copies leaves needlessly.
//!
//! State:   beside the samples, how much longer than they say is waited, 1 to 4 times: where each time is
//!          like the one before, as in a queue, those of the past promise too much. Whatever is late adds
//!          to it, whatever is not takes off, so that it rests where as many are late as the budget allows.
//! Formula: with 8 samples or more max(x(k), last), where x(k) is the k-th smallest of the w in the
//!          window and k = ⌈(1 − ε)(w + 1)⌉, w at the most: a further sample of the same kind is above
//!          x(k) with probability 1 − k/(w + 1), which is ε or less while k is not cut. With fewer,
//!          RFC 6298 over those there are; `initial` without any. It is waited for `margin` times as long,
//!          since a queue that grows makes each round trip a little longer than all before. The first wait
//!          is drawn up to 1.25 times as long.
//! Bounds:  `floor` and 240 s.
//! Ageing:  with its samples. A back-off is carried until an exact sample.
//! Bias:    clean exchanges alone show nothing that is slower than the timeout. So an Acknowledgement that
//!          comes later after the last copy than the timeout is counts as a sample of so much: whichever
//!          copy it answers, its round trip took that long. And where clearly more come sooner than the
//!          median than come later, first copies were late that nobody could tell: a cumulative sum of
//!          signs, which chance alone rarely takes past its threshold.
//! Fails:   where times scatter much, such bounds are shorter than the times, and somewhat more copies than
//!          the share leave needlessly; and it waits longer than a fixed timer, each of whose copies is
//!          another chance.

use std::time::Duration;

use super::rfc6298::Rfc6298;
use super::samples::Samples;
use super::{Timing, bounded};
use crate::parameters::{RtoParameters, scaled};

/// So many samples make a quantile.
const ENOUGH: usize = 8;
/// The longest first wait as a multiple of the shortest.
const SPREAD: f64 = 1.25;
/// How much each sample that was late adds to the stretch.
const PACE: f64 = 0.01;
const LONGEST_STRETCH: f64 = 4.0;
/// An Acknowledgement that comes sooner than the median is evidence of so much, a later one speaks against it with
/// more; from this sum on a sooner one adds so many steps to the stretch.
const SOONER: f64 = 0.7;
const LATER: f64 = -1.3;
const CLEAR: f64 = 3.0;
const MOST_EVIDENCE: f64 = 10.0;
const STEPS: f64 = 2.0;

/// What the samples do not say: how far what they promise was kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// So many times the quantile is waited for.
    stretch: f64,
    /// How much speaks for copies that left needlessly.
    evidence: f64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { stretch: 1.0, evidence: 0.0 }
    }
}

impl Budget {
    pub(super) fn timing(&self, samples: &Samples, parameters: &RtoParameters, initial: Duration) -> Timing {
        if samples.is_empty() {
            return Timing::doubling(initial);
        }
        let timeout = if samples.len() < ENOUGH {
            from_few(samples)
        } else {
            let rank = rank(samples.len(), parameters.spurious_budget);
            let slow = samples.ranked(rank).max(samples.last()).unwrap_or(initial);
            scaled(slow, parameters.margin * self.stretch)
        };
        let timeout = bounded(timeout, parameters);
        Timing { timeout, random_factor: Some(SPREAD), back_off: 2.0 }
    }

    /// A round trip took `sample`, while `samples` gave `timeout` and first waits were drawn from that. Fewer
    /// samples than the budget takes one of promise less, and keep it.
    pub(super) fn took(&mut self, sample: Duration, timeout: Duration, samples: &Samples, budget: f64) {
        if (samples.len() + 1) as f64 * budget < 1.0 {
            return;
        }
        let late = if sample <= timeout {
            0.0
        } else {
            let ratio = sample.as_secs_f64() / timeout.as_secs_f64();
            ((ratio - 1.0) / (SPREAD - 1.0)).min(1.0)
        };
        self.correct(late - budget);
    }

    /// An Acknowledgement came `bound` after the last of several copies, and nobody knows which it answers.
    /// Were the first ones lost, it would come sooner than the median as often as later; what is sooner more
    /// often are first copies that were only slow.
    pub(super) fn took_since_last(&mut self, bound: Duration, samples: &Samples) {
        if samples.len() >= ENOUGH
            && let Some(median) = samples.quantile(0.5)
        {
            let is_sooner = bound < median;
            let sign = if is_sooner { SOONER } else { LATER };
            self.evidence = (self.evidence + sign).clamp(0.0, MOST_EVIDENCE);
            match is_sooner {
                true if self.evidence >= CLEAR => self.correct(STEPS),
                true => {}
                false => self.correct(-1.0),
            }
        }
    }

    fn correct(&mut self, error: f64) {
        self.stretch = (self.stretch + PACE * error).clamp(1.0, LONGEST_STRETCH);
    }
}

/// ⌈(1 − ε)(w + 1)⌉, `count` at the most.
fn rank(count: usize, spurious: f64) -> usize {
    let exact = (1.0 - spurious) * (count as f64 + 1.0) - 1e-9;
    // `ceil` is a call on processors that are older than some.
    let below = exact as usize;
    (below + usize::from((below as f64) < exact)).min(count)
}

fn from_few(samples: &Samples) -> Duration {
    let mut estimate = Rfc6298::default();
    samples.iter().for_each(|(_, sample)| estimate.learn(sample));
    estimate.timeout().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use coapway_time::Instant;

    use super::super::RoundTrip;
    use super::super::tests::{SAMPLES, WAIT, after_each, parameters};
    use super::*;
    use crate::parameters::Estimator;

    fn fed(spurious_budget: f64, samples: impl IntoIterator<Item = u64>) -> Timing {
        let parameters = RtoParameters { spurious_budget, window: 100, ..parameters(Estimator::Budget) };
        let mut round_trip = RoundTrip::new(parameters, Duration::from_secs(2));
        for sample in samples {
            round_trip.sample(Duration::from_millis(sample), Instant::ZERO);
        }
        round_trip.timeout(WAIT, 0, Instant::ZERO)
    }

    #[test]
    fn its_vector_begins_as_rfc_6298() {
        let samples = [100, 120, 80, 400, 100, 100, 90, 95, 500, 90].map(Duration::from_millis);
        let expected = ["300", "272.5", "249.69", "550.04", "479.41", "421.2", "381.72", "440", "550", "550"];
        assert_eq!(after_each(Estimator::Budget, samples), expected);
        assert_eq!(after_each(Estimator::Budget, SAMPLES)[..], expected[..6]);
    }

    #[test]
    fn a_further_sample_is_slower_no_more_often_than_the_budget_says() {
        for (count, spurious, expected) in
            [(8, 0.05, 8), (19, 0.05, 19), (20, 0.05, 20), (39, 0.05, 38), (100, 0.05, 96), (100, 0.2, 81)]
        {
            assert_eq!(rank(count, spurious), expected, "{count} samples, {spurious}");
            let share = 1.0 - expected as f64 / (count as f64 + 1.0);
            assert!(share <= spurious + 1e-9 || expected == count, "{share}");
        }
    }

    #[test]
    fn it_is_the_quantile_and_never_below_the_last_sample() {
        let millis = |spurious, samples: Vec<u64>| fed(spurious, samples).timeout.as_millis();
        assert_eq!(millis(0.05, (1..=100).rev().map(|n| n * 10).collect()), 1056);
        assert_eq!(millis(0.2, (1..=100).rev().map(|n| n * 10).collect()), 891);
        assert_eq!(millis(0.2, (1..=100).map(|n| n * 10).collect()), 1100);
        assert_eq!(fed(0.05, [300_000; 8]).timeout, Duration::from_secs(240));
    }

    #[test]
    fn what_is_slower_than_the_timeout_is_learned_by_its_bounds() {
        let parameters = RtoParameters { window: 60, ..parameters(Estimator::Budget) };
        let mut round_trip = RoundTrip::new(parameters, Duration::from_secs(2));
        (0..60).for_each(|_| round_trip.sample(Duration::from_millis(50), Instant::ZERO));
        let before = round_trip.in_force(WAIT);
        round_trip.at_least(before, Instant::ZERO);
        assert_eq!(round_trip.in_force(WAIT), before, "no longer than the timeout");
        round_trip.timed_out(before, false);
        (0..3).for_each(|_| round_trip.at_least(Duration::from_secs(1), Instant::ZERO));
        assert!(round_trip.is_backed_off(), "it is no exact sample");
        assert_eq!((round_trip.exact_samples(), round_trip.len()), (60, 60));
        assert_eq!(round_trip.in_force(WAIT), Duration::from_millis(1100));
        let mut other =
            RoundTrip::new(super::super::tests::parameters(Estimator::P95), Duration::from_secs(2));
        other.sample(Duration::from_millis(50), Instant::ZERO);
        other.at_least(Duration::from_secs(1), Instant::ZERO);
        assert_eq!(other.len(), 1, "others learn as their authors have it");
    }

    /// The timeout over what the samples alone would give.
    fn stretch(feed: impl FnOnce(&mut RoundTrip)) -> f64 {
        let parameters = RtoParameters { window: 60, ..parameters(Estimator::Budget) };
        let mut round_trip = RoundTrip::new(parameters, Duration::from_secs(2));
        (0..60).for_each(|_| round_trip.sample(Duration::from_millis(100), Instant::ZERO));
        feed(&mut round_trip);
        (0..60).for_each(|_| round_trip.sample(Duration::from_millis(100), Instant::ZERO));
        round_trip.in_force(WAIT).as_secs_f64() / 0.110
    }

    #[test]
    fn what_is_late_again_and_again_stretches_the_timeout() {
        let late = |often: u64, rest: u64| {
            stretch(|round_trip| {
                for turn in 0..often {
                    round_trip.sample(Duration::from_millis(1000 << turn), Instant::ZERO);
                    (0..rest).for_each(|_| {
                        round_trip.sample(Duration::from_millis(100), Instant::ZERO);
                    });
                }
            })
        };
        assert!(late(10, 0) > 1.05, "{}", late(10, 0));
        assert_eq!(late(10, 60), 1.0, "less often than the budget allows");
    }

    #[test]
    fn copies_that_were_needless_stretch_it_and_lost_ones_do_not() {
        let bounds = |bounds: [u64; 2]| {
            stretch(|round_trip| {
                for bound in bounds.into_iter().cycle().take(80) {
                    round_trip.at_least(Duration::from_millis(bound), Instant::ZERO);
                }
            })
        };
        assert!(bounds([20, 60]) > 1.5, "{}", bounds([20, 60]));
        assert_eq!(bounds([60, 105]), 1.0, "as often later as sooner");
        let most = stretch(|round_trip| {
            (0..1000).for_each(|_| round_trip.at_least(Duration::from_millis(20), Instant::ZERO));
        });
        assert!((3.9..=4.0).contains(&most), "{most}");
    }

    #[test]
    fn what_lies_above_the_cap_is_told_and_waited_for() {
        let parameters = RtoParameters { cap: Duration::from_secs(1), ..parameters(Estimator::Budget) };
        let mut round_trip = RoundTrip::new(parameters, Duration::from_secs(2));
        (0..20).for_each(|_| round_trip.sample(Duration::from_secs(3), Instant::ZERO));
        assert!(round_trip.cap_is_exceeded());
        assert_eq!(round_trip.in_force(WAIT), Duration::from_millis(3300));
    }

    #[test]
    fn the_first_wait_is_spread_less_once_there_are_samples() {
        assert_eq!(fed(0.05, []), Timing::doubling(Duration::from_secs(2)));
        assert_eq!(fed(0.05, [100]).random_factor, Some(1.25));
    }
}
