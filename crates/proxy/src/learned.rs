//! What was learned of an origin, for whoever shows it.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_relay::UpstreamId;

use crate::proxy::Proxy;

/// What is known of one origin at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learned {
    /// The first timeout of an exchange that would start now, before chance lengthens it.
    pub timeout: Duration,
    /// The newest exact round-trip time.
    pub round_trip: Option<Duration>,
    /// Exact samples that count.
    pub samples: usize,
    /// Exchanges that may be outstanding at a time.
    pub window: u32,
    /// Exchanges that are, acknowledged ones excluded.
    pub outstanding: u32,
    /// Requests that wait for their turn.
    pub queued: usize,
}

impl Proxy {
    /// What was learned of an origin that is spoken to under these settings; nothing, while it is unknown.
    pub fn learned(&self, origin: SocketAddr, upstream: UpstreamId) -> Option<Learned> {
        let upstreams = &self.upstreams;
        let known = upstreams.origins.get(upstreams.origins.index(origin, upstream)?)?;
        Some(Learned {
            timeout: known.round_trip.in_force(upstreams.parameters(upstream).max_wait),
            round_trip: known.round_trip.last(),
            samples: known.round_trip.len(),
            window: known.window.size(),
            outstanding: known.window.outstanding(),
            queued: known.queue.len(),
        })
    }
}
