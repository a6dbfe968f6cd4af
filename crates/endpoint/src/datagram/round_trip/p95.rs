//! `p95`: a high quantile of the samples times a factor.
//!
//! State:   none beside the samples.
//! Formula: clamp(quantile · factor, floor, cap), nearest rank; `initial` while there is no sample.
//! Bounds:  the cap never lies under 1.1 times the quantile itself (R-USR-18).
//! Ageing:  with its samples.
//! Fails:   fed by clean exchanges only, the quantile is truncated at its own timeout; over a path whose
//!          times scatter much the factor makes it slow to see a loss.

use std::time::Duration;

use super::samples::Samples;
use crate::parameters::{RtoParameters, scaled};

/// With the rank of the quantile, which changes seldom.
pub(super) fn timeout(samples: &Samples, rank: usize, parameters: &RtoParameters) -> Option<Duration> {
    let RtoParameters { factor, cap, floor, .. } = *parameters;
    let quantile = samples.ranked(rank)?;
    let wanted = scaled(quantile, factor);
    Some(if wanted <= cap {
        wanted.max(floor)
    } else {
        wanted.min(cap.max(scaled(quantile, 1.1))).max(floor)
    })
}

/// Whether the samples ask for more than the cap.
pub(super) fn exceeds_cap(samples: &Samples, parameters: &RtoParameters) -> bool {
    samples.quantile(parameters.quantile).is_some_and(|quantile| quantile > parameters.cap)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SAMPLES, after_each};
    use crate::parameters::Estimator;

    #[test]
    fn its_vector() {
        assert_eq!(after_each(Estimator::P95, SAMPLES), ["250", "300", "300", "1000", "1000", "1000"]);
    }
}
