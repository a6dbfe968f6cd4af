//! When the copies of a request to an origin may leave.

use std::time::Duration;

use coapway_endpoint::{Estimator, Schedule, Timing, TransmissionParameters};
use coapway_time::Instant;

use crate::order::Order;
use crate::parameters::{CopyIds, CopySchedule, UpstreamParameters};

/// The last copy of a stretched schedule leaves one timeout before the end, and this share of the time before
/// it at the most: an outage that ends before is survived.
const RESERVE: u32 = 24;

/// A copy that leaves this late still leaves.
const LATENESS: Duration = Duration::from_millis(100);

/// What follows from the parameters of an upstream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Derived {
    span: Duration,
    lifetime: Duration,
}

impl Derived {
    /// A learned timeout may be longer than the configured one; what an origin relies on is the
    /// protocol's own span and lifetime (R-USR-19).
    pub(crate) fn of(parameters: &UpstreamParameters) -> Self {
        let (transmission, protocol) = (parameters.transmission, TransmissionParameters::default());
        Self {
            span: transmission.max_transmit_span().max(protocol.max_transmit_span()),
            lifetime: transmission.exchange_lifetime().max(protocol.exchange_lifetime()),
        }
    }
}

/// When the copies of one request may leave.
pub(crate) fn schedule(
    parameters: &UpstreamParameters,
    derived: &Derived,
    order: &Order,
    timing: Timing,
    learned: Option<Duration>,
    now: Instant,
) -> Schedule {
    let left = order.deadline.since(now);
    let transmission = &parameters.transmission;
    let plain = parameters.max_retransmit(order.idempotent);
    let guarded = plain < transmission.max_retransmit;
    let stretch =
        learned.map_or(Duration::ZERO, |learned| last_copy(parameters, derived, left, timing, learned));
    Schedule {
        timeout: match guarded {
            true => timing.timeout.max(UpstreamParameters::NON_IDEMPOTENT_TIMEOUT),
            false => timing.timeout,
        },
        random_factor: timing.random_factor.unwrap_or(transmission.ack_random_factor),
        jitter: transmission.retry_jitter,
        max_retransmit: if stretch.is_zero() {
            plain
        } else {
            parameters.max_retransmit_stretched(order.idempotent)
        },
        back_off: timing.back_off,
        span: derived.span,
        stretch,
        ends_at_stretch: true,
        fresh_ids: match parameters.retransmit.mid {
            CopyIds::Same => false,
            CopyIds::FreshSafe => order.safe && order.reissuable,
            CopyIds::FreshIdempotent => order.idempotent && order.reissuable,
        },
        last_copy_before: order.deadline - learned.unwrap_or_default(),
        deadline: order.deadline,
        lifetime: derived.lifetime,
    }
}

/// When the last copy of a request leaves, after its first; zero where doubling says when.
fn last_copy(
    parameters: &UpstreamParameters,
    derived: &Derived,
    left: Duration,
    timing: Timing,
    learned: Duration,
) -> Duration {
    let is_learned = parameters.rto.estimator != Estimator::Fixed;
    if !is_learned || parameters.retransmit.schedule == CopySchedule::Doubling {
        return Duration::ZERO;
    }
    let reserve = timing.timeout.min(left / RESERVE).max(learned + LATENESS);
    left.saturating_sub(reserve).min(derived.span - LATENESS)
}
