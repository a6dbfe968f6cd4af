//! `linux`: as TCP in Linux does it, slow to believe that a path got steadier.

use std::time::Duration;

use super::{duration, nanos};

/// The deviation counts as this at least.
const SMALLEST_DEVIATION: f64 = 50e6;

/// The estimate of Linux, as CoAP libraries have it: the largest deviation is taken anew with each
/// sample, where TCP does so once in a round-trip time.
///
/// State:   SRTT, mdev, mdev_max, RTTVAR.
/// Formula: first R: SRTT = R, mdev = R/2, RTTVAR = mdev_max = max(mdev, 50 ms). Then
///          SRTT += (R − SRTT)/8; mdev = ¾ mdev + ¼ |R − SRTT|, but 31/32 and 1/32 when R is below
///          SRTT − mdev; mdev_max = max(50 ms, mdev); RTTVAR = max(RTTVAR, mdev_max), and where it is
///          larger, ¾ RTTVAR + ¼ mdev_max; SRTT + 4 RTTVAR.
/// Bounds:  `floor` and 240 s; by its smallest deviation never below SRTT + 200 ms.
/// Ageing:  forgotten with the last sample. A back-off is carried until an exact sample.
/// Fails:   as `rfc6298`; on paths of a few milliseconds 200 ms are long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Linux {
    /// In nanoseconds.
    state: Option<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    mean: f64,
    deviation: f64,
    variance: f64,
}

impl Linux {
    pub(super) fn learn(&mut self, sample: Duration) {
        let sample = nanos(sample);
        let Some(State { mean, deviation, variance }) = &mut self.state else {
            let deviation = sample / 2.0;
            let variance = deviation.max(SMALLEST_DEVIATION);
            self.state = Some(State { mean: sample, deviation, variance });
            return;
        };
        *mean += (sample - *mean) / 8.0;
        let error = (sample - *mean).abs();
        let is_better = sample < *mean - *deviation;
        let weight = if is_better { 1.0 / 32.0 } else { 0.25 };
        *deviation += weight * (error - *deviation);
        let largest = deviation.max(SMALLEST_DEVIATION);
        if largest >= *variance {
            *variance = largest;
        } else {
            *variance = 0.75 * *variance + 0.25 * largest;
        }
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.state.map(|State { mean, variance, .. }| duration(mean + 4.0 * variance))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SAMPLES, after_each};
    use super::*;
    use crate::parameters::Estimator;

    #[test]
    fn its_vector() {
        let expected = ["300", "302.5", "299.69", "508.98", "489.24", "461.51"];
        assert_eq!(after_each(Estimator::Linux, SAMPLES), expected);
    }

    #[test]
    fn what_comes_sooner_hardly_widens_it() {
        let mut slow = Linux::default();
        (0..50).for_each(|_| slow.learn(Duration::from_millis(500)));
        let mut rfc = super::super::rfc6298::Rfc6298::default();
        (0..50).for_each(|_| rfc.learn(Duration::from_millis(500)));
        let before = (slow.timeout().unwrap_or_default(), rfc.timeout().unwrap_or_default());
        slow.learn(Duration::from_millis(50));
        rfc.learn(Duration::from_millis(50));
        assert!(slow.timeout().unwrap_or_default() < before.0);
        assert!(rfc.timeout().unwrap_or_default() > before.1);
    }
}
