//! The limits the checks judge by, taken from the proxy's settings.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{Estimator, Nstart};
use coapway_proxy::{CopyIds, CopySchedule, Parameters, TokenPolicy, UpstreamParameters};

/// A timer fires up to one tick of its wheel late.
pub const TICK: Duration = Duration::from_micros(1_100);

/// Promises that the settings can ask for and the proxy does not keep yet. Each is set to `true` by the
/// change that keeps it, and then its check judges storms and scenarios, too.
mod kept {
    /// `answer_within` bounds the wait for an answer.
    pub(super) const ANSWER_WITHIN: bool = true;
    /// `downstream.nstart` bounds separate responses.
    pub(super) const DOWNSTREAM_NSTART: bool = true;
    /// An origin that is reached by address under its own settings and by name under the default ones has
    /// one window and one PROBING_RATE.
    pub(super) const ONE_WINDOW: bool = false;
    /// `probing_rate` bounds Non-confirmable requests.
    pub(super) const PROBING_RATE: bool = true;
    /// Addresses that nobody verified get little.
    pub(super) const AMPLIFICATION: bool = true;
}

/// The limits the checks judge by, taken from the proxy's settings.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Within which a Confirmable request is acknowledged.
    pub early_ack_after: Duration,
    /// Within which a request is answered.
    pub within: Duration,
    /// Copies of a separate response leave no closer than this and no later than that.
    pub downstream: Spacing,
    /// Copies of a request leave no closer than this and no later than that.
    pub upstream: Spacing,
    /// The same for a POST or PATCH to an origin that is not known to deduplicate.
    pub guarded: Spacing,
    /// Origins that are known to deduplicate.
    pub deduplicating: BTreeSet<SocketAddr>,
    /// Exchanges that one request may lead to.
    pub max_attempts: usize,
    /// Confirmable requests that one origin may have before it reacts.
    pub upstream_nstart: usize,
    /// Whether that is over all settings it is reached under.
    pub one_window: bool,
    /// Separate responses that one client may have before it reacts.
    pub downstream_nstart: Option<usize>,
    /// Bytes a second of Non-confirmable requests to an origin that does not react.
    pub probing_rate: Option<f64>,
    /// Which requests may have a Message ID of its own for each copy.
    pub copy_ids: CopyIds,
    /// Whether a request may carry its client's token.
    pub preserves_tokens: bool,
    /// Whether a client may be too fast to get an answer at all.
    pub limits_clients: bool,
    /// Whose addresses are believed; nothing, where everybody's are.
    pub unverified: Option<coapway_relay::Parameters>,
    /// How late a timer may be.
    pub slack: Duration,
}

/// How copies of one message may leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spacing {
    /// No closer than this to the one before.
    pub closest: Duration,
    /// No later than this after the first.
    pub span: Duration,
    /// No more than this, the first included.
    pub most: usize,
    /// Each wait is at least this many times the one before.
    pub growth: f64,
    /// Whether the last one need only be no shorter.
    pub stretched: bool,
}

impl Rules {
    /// What these settings promise, by timers that fire up to `lateness` late.
    pub fn new(parameters: &Parameters, lateness: Duration) -> Self {
        let downstream = &parameters.downstream;
        let upstreams = &parameters.upstreams;
        let closest = upstreams.iter().map(closest).min().unwrap_or_default();
        let span = upstreams.iter().map(|upstream| upstream.transmission.max_transmit_span());
        // A learned timeout may be longer than the configured one; receivers rely on 45 s.
        let span = span.max().unwrap_or_default().max(Duration::from_secs(45));
        let most =
            |of: fn(&UpstreamParameters) -> u32| upstreams.iter().map(of).max().unwrap_or_default() as usize;
        let growth = upstreams.iter().map(growth).fold(2.0, f64::min);
        let most_copies = 1 + most(|upstream| upstream.max_retransmit_stretched(true));
        let stretched =
            upstreams.iter().any(|upstream| upstream.retransmit.schedule == CopySchedule::Stretched);
        let upstream = Spacing { closest, span, most: most_copies, growth, stretched };
        let guarded = Spacing {
            closest: closest.max(UpstreamParameters::NON_IDEMPOTENT_TIMEOUT),
            most: 1 + most(|upstream| upstream.max_retransmit_non_idempotent),
            span,
            growth,
            stretched,
        };
        let copy_ids = [CopyIds::FreshIdempotent, CopyIds::FreshSafe]
            .into_iter()
            .find(|&ids| upstreams.iter().any(|upstream| upstream.retransmit.mid == ids));
        let named = parameters.relay.upstreams.iter().zip(upstreams);
        let deduplicating = named
            .filter(|(_, upstream)| upstream.deduplicates)
            .filter_map(|(place, _)| place.authority.as_ref()?.socket_address())
            .collect();
        let max_wait = upstreams.iter().map(|upstream| upstream.max_wait).max().unwrap_or_default();
        let within = parameters.answer_within.filter(|_| kept::ANSWER_WITHIN);
        let rates = upstreams.iter().map(|upstream| upstream.probing_rate);
        Self {
            early_ack_after: downstream.early_ack_after,
            within: within.map_or(max_wait, |within| within.min(max_wait)),
            downstream: Spacing {
                closest: downstream.transmission.ack_timeout,
                span: downstream.max_wait.min(Duration::from_secs(45)),
                // Repeats of the client draw further copies.
                most: usize::MAX,
                growth: 2.0,
                stretched: false,
            },
            upstream,
            guarded,
            deduplicating,
            max_attempts: most(|upstream| upstream.retry.max_attempts),
            upstream_nstart: most(|upstream| nstart(upstream.nstart)),
            one_window: kept::ONE_WINDOW,
            downstream_nstart: kept::DOWNSTREAM_NSTART.then_some(nstart(downstream.nstart) as usize),
            // The slowest would do; a rate that is lifted for one is lifted for all here.
            probing_rate: rates
                .reduce(|one, other| Some(one?.max(other?)))
                .flatten()
                .filter(|_| kept::PROBING_RATE),
            copy_ids: copy_ids.unwrap_or(CopyIds::Same),
            preserves_tokens: upstreams.iter().any(|upstream| upstream.token == TokenPolicy::Preserve),
            limits_clients: parameters.relay.client_rate != 0,
            unverified: kept::AMPLIFICATION.then(|| parameters.relay.clone()),
            slack: lateness + 2 * TICK,
        }
    }
}

const fn nstart(nstart: Nstart) -> u32 {
    match nstart {
        Nstart::Fixed(nstart) | Nstart::Auto { max: nstart } => nstart,
    }
}

/// The shortest first timeout an upstream's settings allow.
fn closest(upstream: &UpstreamParameters) -> Duration {
    match upstream.rto.estimator {
        Estimator::Fixed => upstream.transmission.ack_timeout,
        Estimator::P95
        | Estimator::Budget
        | Estimator::Rfc6298
        | Estimator::Linux
        | Estimator::Cocoa
        | Estimator::CocoaStrong
        | Estimator::PeakHopper
        | Estimator::Pto => upstream.transmission.ack_timeout.min(upstream.rto.floor),
    }
}

/// How waits grow at the least: those of CoCoA by half, when they are long.
fn growth(upstream: &UpstreamParameters) -> f64 {
    match upstream.rto.estimator {
        Estimator::Cocoa | Estimator::CocoaStrong => 1.5,
        Estimator::Fixed
        | Estimator::P95
        | Estimator::Budget
        | Estimator::Rfc6298
        | Estimator::Linux
        | Estimator::PeakHopper
        | Estimator::Pto => 2.0,
    }
}
