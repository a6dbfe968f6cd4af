//! `[downstream]` and `[dedup]`: what is said to clients and remembered of them.

use std::time::Duration;

use coapway_endpoint::{DuplicatesParameters, EndpointParameters, TransmissionParameters};

use super::window::{self, MOST_OUTSTANDING, WindowKeys};
use crate::section::{Field, Key, Table};

/// ACK_TIMEOUT of both directions.
pub(super) const ACK_TIMEOUT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));
pub(super) const ACK_TIMEOUT_WHY: &str = "shorter than 10ms no answer is back yet, longer than 60s no client waits; under 1s RFC 8085 §3.1.1 warns";
pub(super) const RANDOM_FACTOR_WHY: &str = "below 1.0 copies would leave before ACK_TIMEOUT (RFC 7252 §4.8.1), \
                                            above 3.0 they spread further than a doubling; under 1.1 peers \
                                            repeat in step, which warns";
pub(super) const JITTER_WHY: &str =
    "more than a tenth would break the doubling of RFC 7252 §4.2; held to ack_random_factor - 1";
pub(super) const MAX_RETRANSMIT_WHY: &str =
    "each copy doubles the wait: the eleventh would leave half an hour after the first";

/// How clients are spoken to.
#[derive(Clone, Debug)]
pub(crate) struct Downstream {
    pub(crate) transmission: TransmissionParameters,
    pub(crate) max_wait: Duration,
    pub(crate) answer_within: Option<Duration>,
    pub(crate) early_ack_after: Duration,
    pub(crate) client_ack_timeout: Duration,
    pub(crate) window: WindowKeys,
}

impl Default for Downstream {
    fn default() -> Self {
        Self {
            transmission: TransmissionParameters {
                ack_timeout: Duration::from_secs(1),
                ack_random_factor: 1.2,
                retry_jitter: 0.1,
                max_retransmit: 2,
            },
            max_wait: Duration::from_secs(10),
            answer_within: None,
            early_ack_after: Duration::from_millis(500),
            client_ack_timeout: Duration::from_secs(2),
            window: EndpointParameters::default().nstart.into(),
        }
    }
}

impl Table for Downstream {
    const DOC: &'static str = "Towards clients: separate responses, and when a request gets its empty \
                               Acknowledgement. How long a client's messages are remembered follows the \
                               client's parameters, not these.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "ack_timeout",
            field: Field::Duration(ACK_TIMEOUT.0, ACK_TIMEOUT.1, |t| &mut t.transmission.ack_timeout),
            doc: "ACK_TIMEOUT: the shortest wait for the Acknowledgement of a separate response. Clients are \
                  usually near, so it is shorter than upstream.",
            why: ACK_TIMEOUT_WHY,
        },
        Key {
            name: "ack_random_factor",
            field: Field::Number(1.0, 3.0, |t| &mut t.transmission.ack_random_factor),
            doc: "ACK_RANDOM_FACTOR: the longest first wait as a multiple of the shortest.",
            why: RANDOM_FACTOR_WHY,
        },
        Key {
            name: "retry_jitter",
            field: Field::Number(0.0, 0.1, |t| &mut t.transmission.retry_jitter),
            doc: "Further random lengthening of each wait, as a share of it.",
            why: JITTER_WHY,
        },
        Key {
            name: "max_retransmit",
            field: Field::Count(0, 10, |t| &mut t.transmission.max_retransmit),
            doc: "MAX_RETRANSMIT: copies of a separate response after the first. The wait for the first of \
                  them is drawn from `ack_timeout` on, as RFC 7252 §4.2 has it: with the defaults 1 to 1.1s, and not \
                  the 2 to 3s of the protocol's own parameters. The others are stretched: the last leaves when four \
                  fifths of `max_wait` are over, after 8s, so that a response outlives a link that is away for some \
                  seconds. The doubling of the protocol, 2 to 3s, then 4 to 6s and so on, comes with \
                  `ack_timeout = \"2s\"`, `ack_random_factor = 1.5`, `max_retransmit = 4` and a `max_wait` of 37s, after \
                  which no copy leaves.",
            why: MAX_RETRANSMIT_WHY,
        },
        Key {
            name: "max_wait",
            field: Field::Duration(Duration::from_millis(100), Duration::from_secs(3600), |t| {
                &mut t.max_wait
            }),
            doc: "How long one separate response is offered to a client.",
            why: "in less than 100ms no path answers; an undelivered response is kept no longer than an hour",
        },
        Key {
            name: "answer_within",
            field: Field::DurationOrOff(Duration::from_millis(100), Duration::from_secs(3600), |t| {
                &mut t.answer_within
            }),
            doc: "How long a client waits for its answer at the most, from receipt of the request on, where \
                  that is shorter than the `max_wait` of the upstream; then 5.04.",
            why: "the range of upstream.max_wait, which is what holds when this is off",
        },
        Key {
            name: "early_ack_after",
            field: Field::Duration(Duration::from_millis(1), Duration::from_secs(30), |t| {
                &mut t.early_ack_after
            }),
            doc: "After how long an unanswered Confirmable request gets an empty Acknowledgement, which stops \
                  the client's copies; at most half of `client_ack_timeout`.",
            why: "at once would make every response a separate one, later than half of ACK_TIMEOUT the client \
                  repeats itself",
        },
        Key {
            name: "client_ack_timeout",
            field: Field::Duration(ACK_TIMEOUT.0, ACK_TIMEOUT.1, |t| &mut t.client_ack_timeout),
            doc: "The shortest ACK_TIMEOUT clients are assumed to use. Above 2s their messages are also \
                  remembered longer, since their copies come later.",
            why: "the range of ack_timeout",
        },
        Key {
            name: "nstart",
            field: Field::Value(window::ALLOWED, |t| &mut t.window.window),
            doc: "NSTART: separate responses that one client has not acknowledged, at a time; `\"auto\"` learns \
                  it.",
            why: window::WHY,
        },
        Key {
            name: "nstart_max",
            field: Field::Count(1, MOST_OUTSTANDING, |t| &mut t.window.max),
            doc: "The most that `nstart = \"auto\"` may learn; a fixed `nstart` beside it is no larger.",
            why: window::WHY,
        },
    ];
}

/// The memory for recent messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dedup {
    pub(crate) duplicates: DuplicatesParameters,
}

impl Table for Dedup {
    const DOC: &'static str = "The memory in which duplicates are recognised.";
    const KEYS: &'static [Key<Self>] = &[Key {
        name: "memory",
        field: Field::Size(1 << 20, 64 << 30, |t| &mut t.duplicates.memory),
        doc: "How much it may take. When it is full, stored replies to idempotent requests go first.",
        why: "1MiB holds a few thousand messages; more than 64GiB is more than 247 s of requests can fill",
    }];
}
