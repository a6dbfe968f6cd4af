//! `rfc6298`: the smoothed mean and four times the mean deviation, as TCP has it.

use std::time::Duration;

use super::{duration, nanos};

/// G: no deviation counts as smaller.
pub(super) const GRANULARITY: f64 = 1e6;

/// The estimate of RFC 6298.
///
/// State:   SRTT, RTTVAR.
/// Formula: first R: SRTT = R, RTTVAR = R/2. Then RTTVAR = ¾ RTTVAR + ¼ |SRTT − R|,
///          SRTT = ⅞ SRTT + ⅛ R; SRTT + max(G, 4 RTTVAR).
/// Bounds:  `floor` and 240 s, instead of TCP's 1 s and none.
/// Ageing:  forgotten with the last sample. A back-off is carried until an exact sample (Karn).
/// Fails:   under random loss exact samples are rare, and innocent exchanges wait backed off; a steady
///          path with rare slow answers is sent twice, since the deviation forgets them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rfc6298 {
    /// In nanoseconds, and so is all that follows.
    smoothed: Option<Smoothed>,
}

#[derive(Clone, Copy, Debug)]
struct Smoothed {
    mean: f64,
    deviation: f64,
}

impl Rfc6298 {
    pub(super) fn learn(&mut self, sample: Duration) {
        let sample = nanos(sample);
        self.smoothed = Some(match self.smoothed {
            None => Smoothed { mean: sample, deviation: sample / 2.0 },
            Some(Smoothed { mean, deviation }) => Smoothed {
                deviation: 0.75 * deviation + 0.25 * (mean - sample).abs(),
                mean: 0.875 * mean + 0.125 * sample,
            },
        });
    }

    /// SRTT + max(G, k · RTTVAR), in nanoseconds.
    pub(super) fn estimate(&self, k: f64) -> Option<f64> {
        self.smoothed.map(|Smoothed { mean, deviation }| mean + (k * deviation).max(GRANULARITY))
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.estimate(4.0).map(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SAMPLES, after_each};
    use super::*;
    use crate::parameters::Estimator;

    #[test]
    fn its_vector() {
        let expected = ["300", "272.5", "249.69", "550.04", "479.41", "421.2"];
        assert_eq!(after_each(Estimator::Rfc6298, SAMPLES), expected);
    }

    #[test]
    fn no_deviation_counts_as_smaller_than_the_clock() {
        let mut estimate = Rfc6298::default();
        (0..100).for_each(|_| estimate.learn(Duration::from_millis(80)));
        assert_eq!(estimate.timeout(), Some(Duration::from_millis(81)));
    }
}
