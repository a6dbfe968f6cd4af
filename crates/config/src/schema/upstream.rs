//! `[upstream]`, and the same keys in each `[[upstreams]]`: how origins are spoken to.

use std::time::Duration;

use coapway_endpoint::{Carry, Estimator};
use coapway_proxy::{CopyIds, CopySchedule, PostGuard, Probe, TokenPolicy, UpstreamParameters};

use super::downstream::{ACK_TIMEOUT, ACK_TIMEOUT_WHY, JITTER_WHY, MAX_RETRANSMIT_WHY, RANDOM_FACTOR_WHY};
use super::profile::{self, Profile};
use super::window::{self, MOST_OUTSTANDING, WindowKeys};
use crate::error::Wrong;
use crate::raw::Raw;
use crate::section::{Field, Key, Table, Value, choose};

const ESTIMATORS_ALLOWED: &str = "\"fixed\", \"p95\", \"budget\", \"rfc6298\", \"linux\", \"cocoa\", \"cocoa_strong\", \
                                  \"peakhopper\" or \"pto\"";

impl Value for Estimator {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &Self::ALL.map(|estimator| (estimator.name(), estimator)))
    }

    fn show(&self) -> String {
        self.name().to_owned()
    }
}

const CARRIES: [(&str, Carry); 4] = [
    ("auto", Carry::Auto),
    ("never", Carry::Never),
    ("in_force", Carry::InForce),
    ("ran_out", Carry::RanOut),
];

impl Value for Carry {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &CARRIES)
    }

    fn show(&self) -> String {
        CARRIES[*self as usize].0.to_owned()
    }
}

const TOKENS: [(&str, TokenPolicy); 2] = [("fresh", TokenPolicy::Fresh), ("preserve", TokenPolicy::Preserve)];

impl Value for TokenPolicy {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &TOKENS)
    }

    fn show(&self) -> String {
        TOKENS[*self as usize].0.to_owned()
    }
}

const POST_GUARDS: [(&str, PostGuard); 3] = [
    ("none", PostGuard::None),
    ("fingerprint", PostGuard::Fingerprint),
    ("request-tag", PostGuard::RequestTag),
];

impl Value for PostGuard {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &POST_GUARDS)
    }

    fn show(&self) -> String {
        POST_GUARDS[*self as usize].0.to_owned()
    }
}

const SCHEDULES: [(&str, CopySchedule); 2] =
    [("doubling", CopySchedule::Doubling), ("stretched", CopySchedule::Stretched)];

impl Value for CopySchedule {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &SCHEDULES)
    }

    fn show(&self) -> String {
        SCHEDULES[*self as usize].0.to_owned()
    }
}

const PROBES: [(&str, Probe); 2] = [("off", Probe::Off), ("ping_on_ambiguity", Probe::PingOnAmbiguity)];

impl Value for Probe {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &PROBES)
    }

    fn show(&self) -> String {
        PROBES[*self as usize].0.to_owned()
    }
}

const COPY_IDS: [(&str, CopyIds); 3] = [
    ("same", CopyIds::Same),
    ("fresh_safe", CopyIds::FreshSafe),
    ("fresh_idempotent", CopyIds::FreshIdempotent),
];

impl Value for CopyIds {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &COPY_IDS)
    }

    fn show(&self) -> String {
        COPY_IDS[*self as usize].0.to_owned()
    }
}

/// How origins are spoken to.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    pub(crate) profile: Option<Profile>,
    parameters: UpstreamParameters,
    pub(crate) window: WindowKeys,
}

impl Upstream {
    /// What the proxy is told.
    pub(crate) const fn parameters(&self) -> UpstreamParameters {
        UpstreamParameters { nstart: self.window.nstart(), ..self.parameters }
    }
}

impl Default for Upstream {
    fn default() -> Self {
        let parameters = UpstreamParameters::default();
        Self { profile: None, parameters, window: parameters.nstart.into() }
    }
}

impl Table for Upstream {
    const DOC: &'static str = "Towards origins. What is set here holds for every origin; a table in \
                               `[[upstreams]]` may repeat any of these keys for its own.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "profile",
            field: Field::Value(profile::ALLOWED, |t| &mut t.profile),
            doc: "A named set of values; keys that are written for the same origins go before it, wherever they \
                  are written, and `coapway check --dump` shows what it sets. `\"rfc7252\"`: its parameters, \
                  fixed timeouts without memory, one exchange at a time, nothing issued anew. `\"lan\"`: timeouts \
                  down to 20ms and up to 8192 exchanges at a time. `\"lpwan\"`: 10s, two further copies, one \
                  exchange at a time, 247s for an answer. `\"interop\"`: the defaults, from one port, without what \
                  an origin may not expect.",
            why: "",
        },
        Key {
            name: "ack_timeout",
            field: Field::Duration(ACK_TIMEOUT.0, ACK_TIMEOUT.1, |t| {
                &mut t.parameters.transmission.ack_timeout
            }),
            doc: "ACK_TIMEOUT: the shortest wait for an Acknowledgement, while nothing is learned.",
            why: ACK_TIMEOUT_WHY,
        },
        Key {
            name: "ack_random_factor",
            field: Field::Number(1.0, 3.0, |t| &mut t.parameters.transmission.ack_random_factor),
            doc: "ACK_RANDOM_FACTOR: the longest first wait as a multiple of the shortest.",
            why: RANDOM_FACTOR_WHY,
        },
        Key {
            name: "retry_jitter",
            field: Field::Number(0.0, 0.1, |t| &mut t.parameters.transmission.retry_jitter),
            doc: "Further random lengthening of each wait, as a share of it.",
            why: JITTER_WHY,
        },
        Key {
            name: "max_retransmit",
            field: Field::Count(0, 10, |t| &mut t.parameters.transmission.max_retransmit),
            doc: "MAX_RETRANSMIT: copies of a request after the first. For origins without parameters of their \
                  own it is held to what leaves within 45s, since that is what they expect (RFC 7252 §4.8.1).",
            why: MAX_RETRANSMIT_WHY,
        },
        Key {
            name: "max_retransmit_non_idempotent",
            field: Field::Count(0, 10, |t| &mut t.parameters.max_retransmit_non_idempotent),
            doc: "The same for POST and PATCH, sent no sooner than 2s after the first: many constrained origins \
                  do not recognise duplicates and would execute each copy.",
            why: "the range of max_retransmit, which also limits it",
        },
        Key {
            name: "deduplicates",
            field: Field::Value("true or false", |t| &mut t.parameters.deduplicates),
            doc: "Whether the origin is known to recognise duplicates (RFC 7252 §4.5); then POST and PATCH get \
                  `max_retransmit` copies like all others.",
            why: "",
        },
        Key {
            name: "max_wait",
            field: Field::Duration(Duration::from_millis(100), Duration::from_secs(3600), |t| {
                &mut t.parameters.max_wait
            }),
            doc: "From receipt of a request to its final answer, over queue, look-up and all copies; then 5.04.",
            why: "in less than 100ms no path answers; a request is kept no longer than an hour",
        },
        Key {
            name: "nstart",
            field: Field::Value(window::ALLOWED, |t| &mut t.window.window),
            doc: "NSTART: exchanges outstanding with one origin at a time; `\"auto\"` learns it.",
            why: window::WHY,
        },
        Key {
            name: "nstart_max",
            field: Field::Count(1, MOST_OUTSTANDING, |t| &mut t.window.max),
            doc: "The most that `nstart = \"auto\"` may learn; a fixed `nstart` beside it is no larger.",
            why: window::WHY,
        },
        Key {
            name: "queue",
            field: Field::Count(0, 1 << 20, |t| &mut t.parameters.queue),
            doc: "Requests that may wait for their turn at one origin; more get 5.03. Of the last eighth no client, a /32 \
                  or /64, gets any that has an eighth of all.",
            why: "0 refuses what cannot leave at once; more than a million requests are never answered in time",
        },
        Key {
            name: "source_ports",
            field: Field::Count(1, 256, |t| &mut t.parameters.source_ports),
            doc: "Local ports used towards one origin. A Message ID rests for EXCHANGE_LIFETIME, so each port \
                  carries 265 requests/s.",
            why: "256 ports carry 67 000 requests/s, and each is a socket",
        },
        Key {
            name: "dormant",
            field: Field::Value("true or false", |t| &mut t.parameters.dormant),
            doc: "Whether an origin that is down is left alone: once two exchanges have failed whose copies span \
                  `max_wait`, and nothing was heard of it, one request at a time is the probe, at growing \
                  intervals of up to 60s, and all others get 5.03 at once with the time to the next probe. \
                  Anything heard ends it. While the requests of one client alone have failed, only that one is kept away; \
                  who asked in vain leaves the next turn to others.",
            why: "",
        },
        Key {
            name: "rto.estimator",
            field: Field::Value(ESTIMATORS_ALLOWED, |t| &mut t.parameters.rto.estimator),
            doc: "How the first wait is learned from exact round-trip times. `\"p95\"`: a quantile of them times a \
                  factor. `\"budget\"`: the quantile that leaves a given share of needless copies. `\"rfc6298\"`, \
                  `\"linux\"`, `\"peakhopper\"` and `\"pto\"` (QUIC): a mean and its deviation, or the last peak. \
                  `\"cocoa\"` also takes what comes after one or two retransmissions, `\"cocoa_strong\"` does not. \
                  `\"fixed\"`: always ACK_TIMEOUT. All but `\"p95\"` go up to 240s, CoCoA to 32s.",
            why: "",
        },
        Key {
            name: "rto.window",
            field: Field::Count(5, 1000, |t| &mut t.parameters.rto.window),
            doc: "How many samples count; for `\"p95\"` and `\"budget\"`.",
            why: "fewer than 5 samples make no quantile; more than 1000 forget too slowly",
        },
        Key {
            name: "rto.quantile",
            field: Field::Number(0.5, 1.0, |t| &mut t.parameters.rto.quantile),
            doc: "Which quantile of them, nearest rank; for `\"p95\"`.",
            why: "below the median most answers would be late; 1.0 is the slowest sample",
        },
        Key {
            name: "rto.factor",
            field: Field::Number(1.0, 10.0, |t| &mut t.parameters.rto.factor),
            doc: "What the quantile is multiplied with; for `\"p95\"`.",
            why: "below 1.0 copies leave before answers that are on time",
        },
        Key {
            name: "rto.cap",
            field: Field::Duration(Duration::from_secs(1), Duration::from_secs(60), |t| {
                &mut t.parameters.rto.cap
            }),
            doc: "The largest first wait of `\"p95\"`; doubling goes past it, and it never lies below the quantile \
                  itself. Of `\"budget\"` it limits nothing. A quantile above it is told once (`origin is slower`).",
            why: "no wait is capped below 1s; above 60s no copy is left in time (RFC 8961 §4)",
        },
        Key {
            name: "rto.floor",
            field: Field::Duration(Duration::from_millis(10), Duration::from_secs(60), |t| {
                &mut t.parameters.rto.floor
            }),
            doc: "The smallest first wait that is learned; at most `rto.cap`.",
            why: "below 10ms the scheduling of hosts is mistaken for loss",
        },
        Key {
            name: "rto.spurious_budget",
            field: Field::Number(0.005, 0.3, |t| &mut t.parameters.rto.spurious_budget),
            doc: "The share of exchanges that `\"budget\"` may send again although nothing was lost: less waits \
                  longer for what is lost. What is slower than the timeout shows only in part, so that the share \
                  can be somewhat exceeded where times scatter much.",
            why: "below 0.005 there are not samples enough; above 0.3 the copies are a load of their own",
        },
        Key {
            name: "rto.margin",
            field: Field::Number(1.0, 3.0, |t| &mut t.parameters.rto.margin),
            doc: "What `\"budget\"` has learned is waited for so many times: a queue that grows makes each round \
                  trip a little longer than all before.",
            why: "below 1 the budget is not kept; above 3 a loss is noticed as late as by the fixed timeout",
        },
        Key {
            name: "rto.carry",
            field: Field::Value("\"auto\", \"never\", \"in_force\" or \"ran_out\"", |t| {
                &mut t.parameters.rto.carry
            }),
            doc: "What a wait that ran out means for the exchanges to come, until there is an exact sample: \
                  `\"in_force\"` doubles the timeout in force, `\"ran_out\"` the wait itself with the chance in it, \
                  which adds up where losses are frequent; `\"never\"` is RFC 7252 without RFC 8961 §4. \
                  `\"auto\"`: `\"ran_out\"` for `\"p95\"` and `\"fixed\"`, `\"in_force\"` for the others. CoCoA never does.",
            why: "",
        },
        Key {
            name: "retransmit.schedule",
            field: Field::Value("\"doubling\" or \"stretched\"", |t| &mut t.parameters.retransmit.schedule),
            doc: "When copies leave. `\"doubling\"`: each wait is twice the one before (RFC 7252 §4.2). \
                  `\"stretched\"`: the same while nothing is learned; then the last copy leaves as late as an \
                  answer to it can come in time, so that an outage of nearly `max_wait` is survived.",
            why: "",
        },
        Key {
            name: "retransmit.extra",
            field: Field::Count(0, 6, |t| &mut t.parameters.retransmit.extra),
            doc: "Copies beyond `max_retransmit` in a stretched schedule, since learned timeouts leave room for \
                  them: all leave within MAX_TRANSMIT_SPAN, which an origin relies on. None where \
                  `max_retransmit` is 0, and none of a POST or PATCH that may be executed twice.",
            why: "each copy doubles the wait: there is no room for more",
        },
        Key {
            name: "retransmit.dup_ack_match",
            field: Field::Value("true or false", |t| &mut t.parameters.retransmit.dup_ack_match),
            doc: "Whether an Acknowledgement after the second copy gives a round-trip time when it can be told \
                  which copy it answers: it came too soon for any but the first, or as many came as copies had \
                  left.",
            why: "",
        },
        Key {
            name: "retransmit.probe",
            field: Field::Value("\"off\" or \"ping_on_ambiguity\"", |t| &mut t.parameters.retransmit.probe),
            doc: "What is done when that tells nothing and a back-off is held: one CoAP ping (4 bytes) asks for \
                  the round-trip time. An origin that never answered one and leaves four unanswered is not \
                  pinged for a day.",
            why: "",
        },
        Key {
            name: "retransmit.mid",
            field: Field::Value("\"same\", \"fresh_safe\" or \"fresh_idempotent\"", |t| {
                &mut t.parameters.retransmit.mid
            }),
            doc: "Which Message IDs the copies of a request carry. `\"same\"`: one for all, so that an origin \
                  executes one of them (RFC 7252 §4.2). `\"fresh_safe\"`: one each for GET and FETCH, so that an \
                  Acknowledgement says which copy it answers and gives an exact round-trip time; the origin \
                  executes each copy it gets. `\"fresh_idempotent\"`: also for PUT, DELETE and iPATCH. What may \
                  not be issued anew (conditional requests, parts of a body, Observe, OSCORE) keeps one for all. \
                  Each copy takes one of the Message IDs that `source_ports` counts; when none is left, it \
                  leaves under the last one.",
            why: "",
        },
        Key {
            name: "probing_rate",
            field: Field::NumberOrOff(0.1, 1e6, |t| &mut t.parameters.probing_rate),
            doc: "PROBING_RATE in bytes a second: how fast an origin that does not answer is sent \
                  Non-confirmable requests. A Confirmable request keeps to its own schedule; `\"off\"` lifts \
                  the rate.",
            why: "below 0.1 the next small request would leave minutes later; above a million it slows nothing",
        },
        Key {
            name: "token",
            field: Field::Value("\"fresh\" or \"preserve\"", |t| &mut t.parameters.token),
            doc: "Which token a request gets: `\"fresh\"` is always one of ours, `\"preserve\"` is the client's \
                  when it has 4 to 8 bytes and is neither in use nor resting towards this origin, else one of \
                  ours. Clients see their own token either way.",
            why: "",
        },
        Key {
            name: "post_guard",
            field: Field::Value("\"none\", \"fingerprint\" or \"request-tag\"", |t| {
                &mut t.parameters.post_guard
            }),
            doc: "What keeps equal POST and PATCH requests from being executed twice. `\"fingerprint\"`: an equal \
                  request of the same client, port aside, gets the answer of the first within \
                  `post_guard_window`. `\"request-tag\"`: a random Request-Tag is added where there is none and a \
                  re-issue carries the same, for origins that recognise duplicates by it. `\"none\"`, since two \
                  equal requests can both be meant.",
            why: "",
        },
        Key {
            name: "post_guard_window",
            field: Field::Duration(Duration::from_millis(100), Duration::from_secs(247), |t| {
                &mut t.parameters.post_guard_window
            }),
            doc: "How long a request counts as equal to an earlier one, from the receipt of that one on.",
            why: "in less than 100ms no client asks again; after EXCHANGE_LIFETIME, 247s, a request is a new one",
        },
        Key {
            name: "retry.max_attempts",
            field: Field::Count(1, 5, |t| &mut t.parameters.retry.max_attempts),
            doc: "Exchanges for one request, the first included: when one fails without an Acknowledgement, a \
                  request that may be executed twice is issued anew, with a new Message ID and token. A POST \
                  or PATCH is only when nothing of it can have been executed. 1 never does.",
            why: "without the first nothing is sent; more than 5 are a load on an origin in trouble",
        },
        Key {
            name: "retry.budget.ratio",
            field: Field::Number(0.0, 1.0, |t| &mut t.parameters.retry.budget_ratio),
            doc: "What each first copy to an origin adds to the number of exchanges issued anew.",
            why: "1.0 doubles the load of an origin that answers nobody",
        },
        Key {
            name: "retry.budget.per_second",
            field: Field::Number(0.0, 100.0, |t| &mut t.parameters.retry.budget_per_second),
            doc: "What each second adds to it, for origins that are seldom asked.",
            why: "with 0.0 a quiet origin is not tried again; 100 a second are a load of their own",
        },
    ];
}
