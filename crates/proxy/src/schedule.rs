//! When the copies of a request to an origin may leave.

use std::time::Duration;

use coapway_endpoint::{Schedule, Timing, TransmissionParameters};

use crate::order::Order;
use crate::parameters::UpstreamParameters;

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
    learned: Duration,
) -> Schedule {
    let transmission = &parameters.transmission;
    let max_retransmit = parameters.max_retransmit(order.idempotent);
    let guarded = max_retransmit < transmission.max_retransmit;
    Schedule {
        timeout: match guarded {
            true => timing.timeout.max(UpstreamParameters::NON_IDEMPOTENT_TIMEOUT),
            false => timing.timeout,
        },
        random_factor: timing.random_factor.unwrap_or(transmission.ack_random_factor),
        jitter: transmission.retry_jitter,
        max_retransmit,
        back_off: timing.back_off,
        span: derived.span,
        stretch: Duration::ZERO,
        last_copy_before: order.deadline - learned,
        deadline: order.deadline,
        lifetime: derived.lifetime,
    }
}
