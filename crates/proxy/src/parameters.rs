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
    /// How long one client waits at most, where that is shorter than an upstream's `max_wait`.
    pub answer_within: Option<Duration>,
    /// How it is known that a client has given up.
    pub patience: Patience,
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
    /// Whether an origin that is down gets one request at a time.
    pub dormant: bool,
    /// The learned timeout.
    pub rto: RtoParameters,
    /// PROBING_RATE in bytes a second, for what is no Confirmable request; `None` lifts it.
    pub probing_rate: Option<f64>,
    /// Which token a request gets.
    pub token: TokenPolicy,
    /// What keeps equal POST and PATCH requests from being executed twice.
    pub post_guard: PostGuard,
    /// How long a request counts as equal to an earlier one, from that one's receipt on.
    pub post_guard_window: Duration,
    /// How retransmissions are told apart and spread.
    pub retransmit: RetransmitParameters,
    /// When a request is issued anew.
    pub retry: RetryParameters,
}

/// How it is known that a client has given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// It is not: each request has its time.
    #[default]
    Off,
    /// A client waits so long; and one that uses the token of an open request for another has given up.
    After(Duration),
    /// One that uses the token of an open request for another has given up (RFC 7252 §5.3.1), and so had
    /// one that rejects a separate response. How long its requests lived then tells its patience.
    Learned,
}

/// Which token a request gets (RFC 7252 §5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenPolicy {
    /// One of our own, always.
    Fresh,
    /// The client's, when it has 4 to 8 bytes and is neither in use nor resting; else one of our own.
    Preserve,
}

/// What keeps equal POST and PATCH requests of one client from being executed twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostGuard {
    /// Nothing: two equal requests can both be meant.
    None,
    /// An equal request of the same client, port aside, gets the answer of the first.
    Fingerprint,
    /// A random Request-Tag is added where there is none, and a re-issue carries the same.
    RequestTag,
}

/// How retransmissions are told apart and spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetransmitParameters {
    /// Whether the last copy leaves just in time for an answer, and not when doubling has it.
    pub schedule: CopySchedule,
    /// Copies beyond MAX_RETRANSMIT in a stretched schedule, unless that is 0 or duplicates may be executed.
    pub extra: u32,
    /// Whether Acknowledgements are counted, and compared with the shortest round trip, to learn which copy
    /// they answer.
    pub dup_ack_match: bool,
    /// What is done when they tell nothing and a back-off is held.
    pub probe: Probe,
    /// Which requests get a Message ID of its own for each copy.
    pub mid: CopyIds,
}

/// Which Message IDs the copies of a request carry.
///
/// Copies with Message IDs of their own are told apart by their Acknowledgements, and an origin takes each
/// for a request of its own: it may execute all of them. One that may not be issued anew (R-USR-09), as all
/// that OSCORE protects (R-OSC-05), keeps its Message ID whatever is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyIds {
    /// All the same one (RFC 7252 §4.2).
    Same,
    /// One each for GET and FETCH.
    FreshSafe,
    /// One each for whatever may be executed again: PUT, DELETE and iPATCH as well.
    FreshIdempotent,
}

/// When the copies of a request leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopySchedule {
    /// Each wait is twice the one before (RFC 7252 §4.2).
    Doubling,
    /// The same while no round trip is known; then the last copy leaves as late as an answer to it can still
    /// come in time.
    Stretched,
}

/// How a path is asked for its round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Not at all.
    Off,
    /// By one CoAP ping after an exchange whose Acknowledgement may answer any of its copies.
    PingOnAmbiguity,
}

impl Default for RetransmitParameters {
    fn default() -> Self {
        Self {
            schedule: CopySchedule::Stretched,
            extra: 2,
            dup_ack_match: true,
            probe: Probe::PingOnAmbiguity,
            mid: CopyIds::Same,
        }
    }
}

/// When a request is issued anew, with a new Message ID and token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryParameters {
    /// Exchanges for one request, the first included.
    pub max_attempts: u32,
    /// What each first copy adds to the budget.
    pub budget_ratio: f64,
    /// What each second adds to it.
    pub budget_per_second: f64,
}

impl Default for RetryParameters {
    fn default() -> Self {
        Self { max_attempts: 2, budget_ratio: 0.2, budget_per_second: 1.0 }
    }
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
            dormant: true,
            rto: RtoParameters::default(),
            probing_rate: Some(1.0),
            token: TokenPolicy::Fresh,
            post_guard: PostGuard::None,
            post_guard_window: Duration::from_secs(5),
            retransmit: RetransmitParameters::default(),
            retry: RetryParameters::default(),
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

    /// How many may where the last of them is told by the deadline: learned timeouts leave room.
    pub fn max_retransmit_stretched(&self, idempotent: bool) -> u32 {
        match self.max_retransmit(idempotent) {
            0 => 0,
            most if idempotent || self.deduplicates => most + self.retransmit.extra,
            most => most,
        }
    }
}

/// How much of everything there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests being forwarded and separate responses being delivered, together.
    pub fetches: usize,
    /// Origins with state.
    pub origins: usize,
    /// Names being looked up or remembered.
    pub names: usize,
    /// Clients, a /32 or /64 each, whose rate is counted.
    pub clients: usize,
    /// Answers of origins that said when to come back.
    pub hints: usize,
}

impl Default for Limits {
    /// What is under way then, every datagram as long as can be, takes some 300 MiB, and all origins
    /// take 30 MiB: little enough to promise beforehand.
    fn default() -> Self {
        Self { fetches: 1 << 15, origins: 1 << 13, names: 1 << 12, clients: 1 << 16, hints: 1 << 12 }
    }
}
