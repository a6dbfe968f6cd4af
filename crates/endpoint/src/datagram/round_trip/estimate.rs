//! How exact samples become a first timeout: one kind of estimate after the other.
//!
//! What all of them share stands around them, in [`RoundTrip`](super::RoundTrip): only exact samples
//! come here (Karn), old ones expire, and a back-off is carried from exchange to exchange.

use std::time::Duration;

use super::samples::Samples;
use crate::parameters::{Estimator, RtoParameters, scaled};

/// What an estimate knows beside the samples.
#[derive(Clone, Debug)]
pub(super) enum Estimate {
    /// ACK_TIMEOUT, always.
    ///
    /// State:   none.
    /// Formula: `initial`.
    /// Bounds:  none; `floor` and `cap` are for what is learned.
    /// Ageing:  none.
    /// Fails:   where the round-trip time is longer, each exchange is sent again, for ever.
    Fixed,
    /// A high quantile of the samples times a factor.
    ///
    /// State:   none beside the samples.
    /// Formula: clamp(quantile · factor, floor, cap), nearest rank; `initial` while there is no sample.
    /// Bounds:  the cap never lies under 1.1 times the quantile itself (R-USR-18).
    /// Ageing:  with its samples.
    /// Fails:   fed by clean exchanges only, the quantile is truncated at its own timeout.
    P95,
}

impl Estimate {
    pub(super) const fn new(estimator: Estimator) -> Self {
        match estimator {
            Estimator::Fixed => Self::Fixed,
            Estimator::P95 => Self::P95,
        }
    }

    /// Whether it is the one that was asked for.
    pub(super) const fn is(&self, estimator: Estimator) -> bool {
        matches!((self, estimator), (Self::Fixed, Estimator::Fixed) | (Self::P95, Estimator::P95))
    }

    /// Takes in an exact sample, which is the newest of `samples`.
    pub(super) const fn learn(&mut self, _samples: &Samples) {
        match self {
            Self::Fixed | Self::P95 => {}
        }
    }

    /// Forgets everything: the last sample has expired.
    pub(super) const fn forget(&mut self) {
        match self {
            Self::Fixed | Self::P95 => {}
        }
    }

    /// The first timeout of an exchange, without a back-off that is carried.
    pub(super) fn timeout(
        &self,
        samples: &Samples,
        parameters: &RtoParameters,
        initial: Duration,
    ) -> Duration {
        let RtoParameters { quantile, factor, cap, floor, .. } = *parameters;
        match (self, samples.quantile(quantile)) {
            (Self::Fixed, _) | (Self::P95, None) => initial,
            (Self::P95, Some(quantile)) => {
                let wanted = scaled(quantile, factor);
                if wanted <= cap {
                    wanted.max(floor)
                } else {
                    wanted.min(cap.max(scaled(quantile, 1.1))).max(floor)
                }
            }
        }
    }

    /// Whether the samples ask for more than `cap`.
    pub(super) fn exceeds_cap(&self, samples: &Samples, parameters: &RtoParameters) -> bool {
        match self {
            Self::Fixed => false,
            Self::P95 => {
                samples.quantile(parameters.quantile).is_some_and(|quantile| quantile > parameters.cap)
            }
        }
    }
}
