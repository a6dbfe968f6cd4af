//! `pto`: the probe timeout of QUIC.

use std::time::Duration;

use coapway_time::Instant;

use super::rfc6298::Rfc6298;

/// So many probe timeouts without a sign of life are persistent congestion (RFC 9002 §7.6.1).
const PERSISTENT: u32 = 3;

/// The probe timeout of RFC 9002.
///
/// State:   smoothed_rtt, rttvar, when an Acknowledgement came last.
/// Formula: smoothed_rtt + max(4 rttvar, 1 ms), rttvar first. QUIC takes the delay of an Acknowledgement
///          out of its samples and adds the largest one here; CoAP does not tell it, so that it stays in
///          the samples and nothing is added.
/// Bounds:  `floor` and 240 s.
/// Ageing:  forgotten with the last sample, and when an exchange that lasted three timeouts or more was
///          in vain and nothing else was acknowledged meanwhile. Any Acknowledgement ends a back-off,
///          that of a copy included: a timeout is a probe and no verdict.
/// Fails:   where the round-trip time is above the timeout, each ambiguous Acknowledgement ends the
///          back-off that would have led to an exact one: copies are sent for ever.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pto {
    estimate: Rfc6298,
    heard: Instant,
}

impl Pto {
    pub(super) fn learn(&mut self, sample: Duration, now: Instant) {
        self.estimate.learn(sample);
        self.heard = now;
    }

    /// An Acknowledgement came.
    pub(super) const fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    pub(super) fn forget(&mut self) {
        self.estimate = Rfc6298::default();
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.estimate.timeout()
    }

    pub(super) fn restarts(&self, began: Instant, now: Instant) -> bool {
        let persistent = |timeout: Duration| now.since(began) >= timeout * PERSISTENT;
        self.heard < began && self.timeout().is_some_and(persistent)
    }
}

#[cfg(test)]
mod tests {
    use super::super::RoundTrip;
    use super::super::tests::{SAMPLES, WAIT, after_each, parameters};
    use super::*;
    use crate::parameters::Estimator;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn its_vector_is_that_of_rfc_6298() {
        let expected = ["300", "272.5", "249.69", "550.04", "479.41", "421.2"];
        assert_eq!(after_each(Estimator::Pto, SAMPLES), expected);
    }

    #[test]
    fn any_acknowledgement_ends_a_back_off() {
        let timeouts = |estimator| {
            let mut round_trip = RoundTrip::new(parameters(estimator), Duration::from_secs(2));
            round_trip.sample(Duration::from_millis(100), at(0));
            round_trip.timed_out(Duration::from_millis(300), false);
            let backed_off = round_trip.in_force(WAIT);
            round_trip.ambiguous(Duration::from_millis(400), 1, at(500));
            (backed_off.as_millis(), round_trip.in_force(WAIT).as_millis())
        };
        assert_eq!(timeouts(Estimator::Pto), (600, 300));
        assert_eq!(timeouts(Estimator::Rfc6298), (600, 600));
    }

    #[test]
    fn persistent_congestion_starts_it_again() {
        let learned = |heard: Option<u64>, began: u64, over: u64| {
            let mut round_trip = RoundTrip::new(parameters(Estimator::Pto), Duration::from_secs(2));
            round_trip.sample(Duration::from_millis(100), at(0));
            if let Some(heard) = heard {
                round_trip.ambiguous(Duration::from_millis(500), 3, at(heard));
            }
            round_trip.failed(at(began), at(over));
            (!round_trip.is_empty()).then_some(round_trip.in_force(WAIT).as_millis())
        };
        assert_eq!(learned(None, 1000, 1899), Some(300), "too short");
        assert_eq!(learned(None, 1000, 1900), None);
        assert_eq!(learned(Some(1500), 1000, 5000), Some(300), "another was acknowledged");
    }
}
