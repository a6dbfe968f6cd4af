//! How samples become a first timeout: one kind of estimate beside the other.
//!
//! What all of them share stands around them, in [`RoundTrip`](super::RoundTrip): exact samples, their
//! age, and a back-off that is carried from exchange to exchange.

use std::time::Duration;

use coapway_time::Instant;

use super::budget::Budget;
use super::cocoa::Cocoa;
use super::linux::Linux;
use super::peakhopper::PeakHopper;
use super::pto::Pto;
use super::rfc6298::Rfc6298;
use super::samples::Samples;
use super::{Timing, bounded};
use crate::parameters::{Carry, Estimator, RtoParameters};

/// What an estimate knows beside the samples.
#[derive(Clone, Debug)]
pub(super) enum Estimate {
    /// ACK_TIMEOUT, always.
    ///
    /// State:   none.
    /// Formula: `initial`.
    /// Bounds:  none; `floor` and `cap` are for what is learned.
    /// Ageing:  none.
    /// Fails:   where the round-trip time is longer and no back-off is carried, each exchange is sent
    ///          again, for ever; where it is carried, each that follows an exact sample.
    Fixed,
    P95,
    Budget(Budget),
    Rfc6298(Rfc6298),
    Linux(Linux),
    Cocoa(Cocoa),
    PeakHopper(PeakHopper),
    Pto(Pto),
}

impl Estimate {
    pub(super) fn new(estimator: Estimator) -> Self {
        match estimator {
            Estimator::Fixed => Self::Fixed,
            Estimator::P95 => Self::P95,
            Estimator::Budget => Self::Budget(Budget::default()),
            Estimator::Rfc6298 => Self::Rfc6298(Rfc6298::default()),
            Estimator::Linux => Self::Linux(Linux::default()),
            Estimator::Cocoa => Self::Cocoa(Cocoa::new(true)),
            Estimator::CocoaStrong => Self::Cocoa(Cocoa::new(false)),
            Estimator::PeakHopper => Self::PeakHopper(PeakHopper::default()),
            Estimator::Pto => Self::Pto(Pto::default()),
        }
    }

    /// Which one it is.
    pub(super) const fn estimator(&self) -> Estimator {
        match self {
            Self::Fixed => Estimator::Fixed,
            Self::P95 => Estimator::P95,
            Self::Budget(_) => Estimator::Budget,
            Self::Rfc6298(_) => Estimator::Rfc6298,
            Self::Linux(_) => Estimator::Linux,
            Self::Cocoa(cocoa) if cocoa.takes_weak() => Estimator::Cocoa,
            Self::Cocoa(_) => Estimator::CocoaStrong,
            Self::PeakHopper(_) => Estimator::PeakHopper,
            Self::Pto(_) => Estimator::Pto,
        }
    }

    /// What is carried where nothing else is asked for (RFC 6298 §5.5 to §5.7). CoCoA backs off within an
    /// exchange only, whatever is asked for.
    pub(super) const fn carry(&self, wanted: Carry) -> Carry {
        match (self, wanted) {
            (Self::Cocoa(_), _) => Carry::Never,
            (Self::Fixed | Self::P95, Carry::Auto) => Carry::RanOut,
            (_, Carry::Auto) => Carry::InForce,
            (_, wanted) => wanted,
        }
    }

    /// Whether an Acknowledgement of whichever copy ends a back-off (RFC 9002 §6.2.1).
    pub(super) const fn any_acknowledgement_ends_back_off(&self) -> bool {
        matches!(self, Self::Pto(_))
    }

    /// Takes in an exact sample.
    pub(super) fn learn(&mut self, sample: Duration, initial: Duration, now: Instant) {
        match self {
            Self::Fixed | Self::P95 | Self::Budget(_) => {}
            Self::Rfc6298(estimate) => estimate.learn(sample),
            Self::Linux(estimate) => estimate.learn(sample),
            Self::Cocoa(estimate) => estimate.learn_strong(sample, initial, now),
            Self::PeakHopper(estimate) => estimate.learn(sample),
            Self::Pto(estimate) => estimate.learn(sample, now),
        }
    }

    /// Takes in an Acknowledgement after retransmissions. Says whether the estimate is another one.
    pub(super) fn learn_ambiguous(
        &mut self,
        since_first: Duration,
        retransmissions: u32,
        initial: Duration,
        now: Instant,
    ) -> bool {
        match self {
            Self::Cocoa(estimate) => estimate.learn_weak(since_first, retransmissions, initial, now),
            Self::Pto(estimate) => {
                estimate.heard(now);
                false
            }
            Self::Fixed
            | Self::P95
            | Self::Budget(_)
            | Self::Rfc6298(_)
            | Self::Linux(_)
            | Self::PeakHopper(_) => false,
        }
    }

    /// Whether an exchange that was all in vain says that nothing learned holds any more.
    pub(super) fn restarts(&self, began: Instant, now: Instant) -> bool {
        match self {
            Self::Pto(estimate) => estimate.restarts(began, now),
            Self::Fixed
            | Self::P95
            | Self::Budget(_)
            | Self::Rfc6298(_)
            | Self::Linux(_)
            | Self::Cocoa(_)
            | Self::PeakHopper(_) => false,
        }
    }

    /// Forgets everything: the last sample has expired. CoCoA ages by itself.
    pub(super) fn forget(&mut self) {
        match self {
            Self::Fixed | Self::P95 | Self::Cocoa(_) => {}
            Self::Budget(estimate) => *estimate = Budget::default(),
            Self::Rfc6298(estimate) => *estimate = Rfc6298::default(),
            Self::Linux(estimate) => *estimate = Linux::default(),
            Self::PeakHopper(estimate) => *estimate = PeakHopper::default(),
            Self::Pto(estimate) => estimate.forget(),
        }
    }

    /// Nobody has asked since `asked`. Says whether the estimate is another one.
    pub(super) fn age(&mut self, asked: Instant, now: Instant) -> bool {
        match self {
            Self::Cocoa(estimate) => estimate.age(asked, now),
            Self::Fixed
            | Self::P95
            | Self::Budget(_)
            | Self::Rfc6298(_)
            | Self::Linux(_)
            | Self::PeakHopper(_)
            | Self::Pto(_) => false,
        }
    }

    /// The first timeout of an exchange, without a back-off that is carried. That of `p95`, which is asked
    /// most, is taken from [`p95`](super::p95) itself.
    pub(super) fn timing(&self, samples: &Samples, parameters: &RtoParameters, initial: Duration) -> Timing {
        let learned = match self {
            Self::Fixed | Self::P95 => None,
            Self::Budget(estimate) => return estimate.timing(samples, parameters, initial),
            Self::Cocoa(estimate) => return estimate.timing(parameters, initial),
            Self::Rfc6298(estimate) => estimate.timeout().map(|timeout| bounded(timeout, parameters)),
            Self::Linux(estimate) => estimate.timeout().map(|timeout| bounded(timeout, parameters)),
            Self::PeakHopper(estimate) => estimate.timeout().map(|timeout| bounded(timeout, parameters)),
            Self::Pto(estimate) => estimate.timeout().map(|timeout| bounded(timeout, parameters)),
        };
        Timing::doubling(learned.unwrap_or(initial))
    }
}
