//! The settings of a proxy, parsed and checked elsewhere.

use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Nstart, RtoParameters, TransmissionParameters};

/// All settings of one proxy.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Towards clients.
    pub downstream: EndpointParameters,
    /// Towards origins, one set per [`coapway_relay::UpstreamId`]; the first is for origins that are
    /// reached by forwarding.
    pub upstreams: Vec<UpstreamParameters>,
    /// Who may reach what, and which route leads where.
    pub relay: coapway_relay::Parameters,
    /// Limits of ours.
    pub limits: Limits,
}

/// How one origin is spoken to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpstreamParameters {
    /// Retransmission; ACK_TIMEOUT also stands in for the learned timeout while there is none.
    pub transmission: TransmissionParameters,
    /// Further copies of a POST or PATCH, unless `deduplicates`.
    pub max_retransmit_non_idempotent: u32,
    /// Whether the origin is known to recognise duplicates (RFC 7252 §4.5).
    pub deduplicates: bool,
    /// From receipt of a request to its final answer.
    pub max_wait: Duration,
    /// Exchanges outstanding at a time.
    pub nstart: Nstart,
    /// Requests that may wait for their turn.
    pub queue: usize,
    /// Local ports used towards the origin, one after the other.
    pub source_ports: u32,
    /// The learned timeout.
    pub rto: RtoParameters,
}

impl Default for UpstreamParameters {
    fn default() -> Self {
        Self {
            transmission: TransmissionParameters { retry_jitter: 0.1, ..TransmissionParameters::default() },
            max_retransmit_non_idempotent: 1,
            deduplicates: false,
            max_wait: Duration::from_secs(30),
            nstart: Nstart::Auto { max: 1024 },
            queue: 4096,
            source_ports: 64,
            rto: RtoParameters::default(),
        }
    }
}

impl UpstreamParameters {
    /// A further copy of a POST or PATCH leaves no sooner than this after the first.
    pub const NON_IDEMPOTENT_TIMEOUT: Duration = Duration::from_secs(2);

    /// How many further copies of a request may leave.
    pub fn max_retransmit(&self, idempotent: bool) -> u32 {
        if idempotent || self.deduplicates {
            self.transmission.max_retransmit
        } else {
            self.max_retransmit_non_idempotent.min(self.transmission.max_retransmit)
        }
    }
}

/// How much of everything there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests being forwarded.
    pub fetches: usize,
    /// Origins with state.
    pub origins: usize,
    /// Names being looked up or remembered.
    pub names: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fetches: 1 << 20, origins: 1 << 16, names: 1 << 12 }
    }
}
