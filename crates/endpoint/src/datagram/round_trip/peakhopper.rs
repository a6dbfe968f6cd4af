//! `peakhopper`: jumps onto the last peak and comes down slowly.

use std::time::Duration;

use super::rfc6298::GRANULARITY;
use super::{duration, nanos};

/// What is left of the timeout after each sample: 1 − 1/24.
const DECAY: f64 = 23.0 / 24.0;

/// The Peak-Hopper of Ekström and Ludwig (2004).
///
/// State:   the sample before, the margin B, the timeout.
/// Formula: first R: 1.75 R. Then δ = |R − R′|/R′, B = min(max(2 δ, D·B), 1),
///          max(D·RTO, (1 + B)·max(R, R′), max(R, R′) + 2 G), with D = 1 − 1/24.
/// Bounds:  `floor` and 240 s.
/// Ageing:  forgotten with the last sample; 1/24 with each. A back-off is carried until an exact
///          sample.
/// Fails:   one peak keeps it high for some 24 samples, so that a loss is seen late; between two equal
///          samples it may lie within 1 % of what it just measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeakHopper {
    /// In nanoseconds.
    state: Option<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    before: f64,
    margin: f64,
    timeout: f64,
}

impl PeakHopper {
    pub(super) fn learn(&mut self, sample: Duration) {
        let sample = nanos(sample).max(1.0);
        self.state = Some(match self.state {
            None => State { before: sample, margin: 0.0, timeout: 1.75 * sample },
            Some(State { before, margin, timeout }) => {
                let change = (sample - before).abs() / before;
                let margin = (2.0 * change).max(DECAY * margin).min(1.0);
                let peak = sample.max(before);
                let timeout = (DECAY * timeout).max((1.0 + margin) * peak).max(peak + 2.0 * GRANULARITY);
                State { before: sample, margin, timeout }
            }
        });
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.state.map(|state| duration(state.timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SAMPLES, after_each};
    use super::*;
    use crate::parameters::Estimator;

    #[test]
    fn its_vector() {
        let expected = ["175", "168", "200", "800", "800", "766.67"];
        assert_eq!(after_each(Estimator::PeakHopper, SAMPLES), expected);
    }

    #[test]
    fn comes_down_to_two_ticks_above_a_steady_path() {
        let mut estimate = PeakHopper::default();
        (0..200).for_each(|_| estimate.learn(Duration::from_millis(100)));
        assert_eq!(estimate.timeout(), Some(Duration::from_millis(102)));
    }
}
