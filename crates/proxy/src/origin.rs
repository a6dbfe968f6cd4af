//! What is known of one origin, shared by all clients.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{Local, Peer, RoundTrip, Window};
use coapway_message::OwnedContent;
use coapway_relay::{FetchId, UpstreamId};
use coapway_time::Instant;

use crate::input::SocketRole;
use crate::parameters::UpstreamParameters;
use crate::queue::FairQueue;

/// What is known of an origin is kept this long after its last use: longer than EXCHANGE_LIFETIME, so
/// that nothing about its last messages is forgotten too early.
pub(crate) const ORIGIN_LIFETIME: Duration = Duration::from_secs(900);

/// A request that waits for its turn.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) fetch: FetchId,
    pub(crate) order: Order,
    pub(crate) content: OwnedContent,
    pub(crate) since: Instant,
}

/// What is to be sent, beside the content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) client: SocketAddr,
    pub(crate) confirmable: bool,
    pub(crate) idempotent: bool,
    pub(crate) deadline: Instant,
}

#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    pub(crate) upstream: UpstreamId,
    pub(crate) window: Window,
    pub(crate) round_trip: RoundTrip,
    pub(crate) queue: FairQueue<Queued>,
    /// The port in use; ports are used up one after the other, so that batches stay whole.
    port: u32,
    /// Exchanges under way, acknowledged ones included.
    pub(crate) exchanges: u32,
    pub(crate) idle_from: Instant,
    /// Whether a timer is set to try again for want of Message IDs.
    pub(crate) retries: bool,
}

impl Origin {
    pub(crate) fn new(
        address: SocketAddr,
        upstream: UpstreamId,
        parameters: &UpstreamParameters,
        hasher: ahash::RandomState,
    ) -> Self {
        Self {
            address,
            upstream,
            window: Window::new(parameters.nstart),
            round_trip: RoundTrip::new(parameters.rto, parameters.transmission.ack_timeout),
            queue: FairQueue::new(hasher),
            port: 0,
            exchanges: 0,
            idle_from: Instant::ZERO,
            retries: false,
        }
    }

    /// The port to send from: the current one while it has Message IDs, else the next that has.
    pub(crate) fn choose_port(
        &mut self,
        source_ports: u32,
        has_message_id: impl Fn(&Peer) -> bool,
    ) -> Option<Peer> {
        let count = source_ports.max(1);
        for step in 0..count {
            let number = (self.port + step) % count;
            let peer = self.peer(number);
            if has_message_id(&peer) {
                self.port = number;
                return Some(peer);
            }
        }
        None
    }

    fn peer(&self, number: u32) -> Peer {
        let role = SocketRole::Upstream { ipv6: self.address.is_ipv6(), number };
        Peer { local: Local { socket: role.socket(), address: None }, remote: self.address }
    }

    /// Whether nothing is under way or waiting.
    pub(crate) const fn is_idle(&self) -> bool {
        self.exchanges == 0 && self.queue.is_empty() && self.window.outstanding() == 0
    }
}
