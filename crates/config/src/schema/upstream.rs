//! `[upstream]`, and the same keys in each `[[upstreams]]`: how origins are spoken to.

use std::time::Duration;

use coapway_endpoint::{Estimator, Nstart};
use coapway_proxy::UpstreamParameters;

use super::downstream::{ACK_TIMEOUT, ACK_TIMEOUT_WHY, JITTER_WHY, MAX_RETRANSMIT_WHY, RANDOM_FACTOR_WHY};
use crate::error::Wrong;
use crate::raw::Raw;
use crate::section::{Field, Key, Table, Value, choose, count};

/// The most exchanges outstanding with one origin.
const MOST_OUTSTANDING: u64 = 65536;

/// Whether the window is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Auto,
    Fixed(u32),
}

impl Value for Window {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        if raw.as_text() == Some("auto") {
            return Ok(Self::Auto);
        }
        let window = count(raw, 1, MOST_OUTSTANDING)?;
        Ok(Self::Fixed(u32::try_from(window).unwrap_or(u32::MAX)))
    }

    fn show(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Fixed(window) => window.to_string(),
        }
    }
}

const ESTIMATORS: [(&str, Estimator); 2] = [("fixed", Estimator::Fixed), ("p95", Estimator::P95)];

impl Value for Estimator {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &ESTIMATORS)
    }

    fn show(&self) -> String {
        match self {
            Self::Fixed => "fixed".to_owned(),
            Self::P95 => "p95".to_owned(),
        }
    }
}

/// How origins are spoken to.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    parameters: UpstreamParameters,
    pub(crate) window: Window,
    nstart_max: u32,
}

impl Upstream {
    /// What the proxy is told.
    pub(crate) const fn parameters(&self) -> UpstreamParameters {
        let nstart = match self.window {
            Window::Auto => Nstart::Auto { max: self.nstart_max },
            Window::Fixed(window) => Nstart::Fixed(window),
        };
        UpstreamParameters { nstart, ..self.parameters }
    }
}

impl Default for Upstream {
    fn default() -> Self {
        let parameters = UpstreamParameters::default();
        let (window, nstart_max) = match parameters.nstart {
            Nstart::Auto { max } => (Window::Auto, max),
            Nstart::Fixed(window) => (Window::Fixed(window), window),
        };
        Self { parameters, window, nstart_max }
    }
}

impl Table for Upstream {
    const DOC: &'static str = "Towards origins. What is set here holds for every origin; a table in \
                               `[[upstreams]]` may repeat any of these keys for its own.";
    const KEYS: &'static [Key<Self>] = &[
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
            field: Field::Value("\"auto\" or 1 to 65536", |t| &mut t.window),
            doc: "NSTART: exchanges outstanding with one origin at a time; `\"auto\"` learns it.",
            why: "with none outstanding nothing is sent; one source port has 65536 Message IDs",
        },
        Key {
            name: "nstart_max",
            field: Field::Count(1, MOST_OUTSTANDING, |t| &mut t.nstart_max),
            doc: "The most that `nstart = \"auto\"` may learn.",
            why: "with none outstanding nothing is sent; one source port has 65536 Message IDs",
        },
        Key {
            name: "queue",
            field: Field::Count(0, 1 << 20, |t| &mut t.parameters.queue),
            doc: "Requests that may wait for their turn at one origin; more get 5.03.",
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
            name: "rto.estimator",
            field: Field::Value("\"fixed\" or \"p95\"", |t| &mut t.parameters.rto.estimator),
            doc: "How the first wait is learned: `\"p95\"` is a quantile of exact round-trip times times a \
                  factor, `\"fixed\"` is always ACK_TIMEOUT.",
            why: "",
        },
        Key {
            name: "rto.window",
            field: Field::Count(5, 1000, |t| &mut t.parameters.rto.window),
            doc: "How many samples count.",
            why: "fewer than 5 samples make no quantile; more than 1000 forget too slowly",
        },
        Key {
            name: "rto.quantile",
            field: Field::Number(0.5, 1.0, |t| &mut t.parameters.rto.quantile),
            doc: "Which quantile of them, nearest rank.",
            why: "below the median most answers would be late; 1.0 is the slowest sample",
        },
        Key {
            name: "rto.factor",
            field: Field::Number(1.0, 10.0, |t| &mut t.parameters.rto.factor),
            doc: "What the quantile is multiplied with.",
            why: "below 1.0 copies leave before answers that are on time",
        },
        Key {
            name: "rto.cap",
            field: Field::Duration(Duration::from_secs(1), Duration::from_secs(60), |t| {
                &mut t.parameters.rto.cap
            }),
            doc: "The largest first wait; doubling goes past it, and it never lies below the quantile itself.",
            why: "no wait is capped below 1s; above 60s no copy is left in time (RFC 8961 §4)",
        },
        Key {
            name: "rto.floor",
            field: Field::Duration(Duration::from_millis(10), Duration::from_secs(60), |t| {
                &mut t.parameters.rto.floor
            }),
            doc: "The smallest first wait; at most `rto.cap`.",
            why: "below 10ms the scheduling of hosts is mistaken for loss",
        },
    ];
}
