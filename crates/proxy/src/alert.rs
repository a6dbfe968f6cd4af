//! What an operator should know of, told once each time it changes.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_relay::UpstreamId;

/// Something an operator should know of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alert {
    /// More requests towards an origin need a second copy, or fail, than used to (R-USR-22).
    RetriesRose {
        /// Whose settings hold.
        upstream: UpstreamId,
        /// The origin.
        origin: SocketAddr,
        /// The share it was, 0 to 1.
        usual: f64,
        /// The share it is.
        recent: f64,
    },
    /// The share is as it was.
    RetriesCalmed {
        /// Whose settings hold.
        upstream: UpstreamId,
        /// The origin.
        origin: SocketAddr,
    },
    /// The round-trip times of an origin are longer than the largest timeout that is configured, which
    /// therefore does not hold (R-USR-18).
    TimeoutOverCap {
        /// Whose settings hold.
        upstream: UpstreamId,
        /// The origin.
        origin: SocketAddr,
        /// The quantile of the round-trip times.
        quantile: Duration,
    },
    /// An origin is down: two exchanges with it have failed, over `max_wait` and more, and nothing was heard.
    /// Most requests to it are answered 5.03 at once, and one at a time is the probe.
    OriginDown {
        /// Whose settings hold.
        upstream: UpstreamId,
        /// The origin.
        origin: SocketAddr,
    },
    /// It was heard again.
    OriginBack {
        /// Whose settings hold.
        upstream: UpstreamId,
        /// The origin.
        origin: SocketAddr,
    },
    /// A request went round: its Hop-Limit was used up, and either our identifier is among those it passed
    /// (RFC 8768 §4), or it came here from the host that an equal one was sent to in vain.
    Loop {
        /// From where the request came to us.
        client: SocketAddr,
    },
}

impl Alert {
    /// The word for logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RetriesRose { .. } => "retries rose",
            Self::RetriesCalmed { .. } => "retries calmed",
            Self::TimeoutOverCap { .. } => "timeout over its cap",
            Self::OriginDown { .. } => "origin down",
            Self::OriginBack { .. } => "origin back",
            Self::Loop { .. } => "loop",
        }
    }
}
