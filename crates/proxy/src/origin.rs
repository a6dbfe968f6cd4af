//! What is known of one origin, shared by all clients.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{Local, Peer, RoundTrip, Window};
use coapway_relay::UpstreamId;
use coapway_time::Instant;

use crate::address::Site;
use crate::apart::Inferred;
use crate::backlog::Backlog;
use crate::budget::Budget;
use crate::input::SocketRole;
use crate::order::{Order, Queued};
use crate::parameters::UpstreamParameters;
use crate::permits::Permits;
use crate::pings::Pings;
use crate::queue::FairQueue;
use crate::responses::ResponseTimes;
use crate::shift::Shift;
use crate::silence::{Going, Silence};

/// What is known of an origin is kept this long after its last use: longer than EXCHANGE_LIFETIME, so
/// that nothing about its last messages is forgotten too early.
pub(crate) const ORIGIN_LIFETIME: Duration = Duration::from_secs(900);

/// An origin that is this much late is not silent yet.
const LATENESS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    pub(crate) upstream: UpstreamId,
    pub(crate) window: Window,
    pub(crate) permits: Permits,
    pub(crate) round_trip: RoundTrip,
    pub(crate) responses: ResponseTimes,
    pub(crate) budget: Budget,
    pub(crate) shift: Shift,
    pub(crate) silence: Silence,
    pub(crate) going: Going,
    pub(crate) pings: Pings,
    pub(crate) inferred: Inferred,
    /// Whether the learned timeout is over its cap, and that was told.
    pub(crate) is_over_cap: bool,
    pub(crate) queue: FairQueue<Queued>,
    pub(crate) backlog: Backlog,
    /// The port in use; ports are used up one after the other, so that batches stay whole.
    port: u32,
    /// Block-wise transfers, as they were last counted.
    pub(crate) transfers: usize,
    /// Exchanges under way, acknowledged ones included.
    pub(crate) exchanges: u32,
    pub(crate) idle_from: Instant,
    /// Whether anything was ever sent to it.
    pub(crate) was_asked: bool,
    /// Whose request was the first for it.
    pub(crate) brought_by: Option<Site>,
    /// When the first of all Message IDs is free again, where none was; until a timer says to try again.
    pub(crate) starved: Option<Instant>,
    /// When the queue is looked at again although nothing came.
    pub(crate) retry_at: Option<Instant>,
    /// When all of a long queue was looked through last.
    pub(crate) looked_through: Instant,
}

impl Origin {
    pub(crate) fn new(
        address: SocketAddr,
        upstream: UpstreamId,
        parameters: &UpstreamParameters,
        hasher: &ahash::RandomState,
        now: Instant,
    ) -> Self {
        Self {
            address,
            upstream,
            window: Window::new(parameters.nstart),
            permits: Permits::new(hasher.clone()),
            round_trip: RoundTrip::new(parameters.rto, parameters.transmission.ack_timeout),
            responses: ResponseTimes::default(),
            budget: Budget::new(&parameters.retry, now),
            shift: Shift::default(),
            silence: Silence::default(),
            going: Going::default(),
            pings: Pings::default(),
            inferred: Inferred::default(),
            is_over_cap: false,
            queue: FairQueue::new(hasher.clone()),
            backlog: Backlog::default(),
            port: 0,
            transfers: 0,
            exchanges: 0,
            idle_from: now + ORIGIN_LIFETIME,
            was_asked: false,
            brought_by: None,
            starved: None,
            retry_at: None,
            looked_through: Instant::ZERO,
        }
    }

    /// Sends from the current port while it has Message IDs, else from the next that has. A block-wise
    /// transfer under way has a port of its own. `send` says `None` where there is no Message ID. Returns
    /// the number of the port as well.
    pub(crate) fn over_a_port<T>(
        &mut self,
        source_ports: u32,
        order: &Order,
        now: Instant,
        send: &mut impl FnMut(Peer) -> Option<T>,
    ) -> Option<(u32, T)> {
        let count = source_ports.max(1);
        let is_usual = order.transfer.is_none() && self.port < count;
        if is_usual && let Some(sent) = send(self.peer(self.port)) {
            return Some((self.port, sent));
        }
        let (bound, taken) = self.permits.ports(order, now);
        if let Some(number) = bound {
            return Some((number, send(self.peer(number))?));
        }
        for step in u32::from(is_usual)..count {
            let number = if step == 0 { self.port } else { (self.port + step) % count };
            if number >= count || taken.contains(number) {
                continue;
            }
            if let Some(sent) = send(self.peer(number)) {
                if order.transfer.is_none() {
                    self.port = number;
                }
                return Some((number, sent));
            }
        }
        None
    }

    pub(crate) fn peer(&self, number: u32) -> Peer {
        let role = SocketRole::Upstream { ipv6: self.address.is_ipv6(), number };
        Peer { local: Local { socket: role.socket(), address: None }, remote: self.address }
    }

    /// Takes over changed settings; what was learned stays.
    pub(crate) fn reconfigure(&mut self, parameters: &UpstreamParameters) {
        self.window.set_nstart(parameters.nstart);
        self.round_trip.set_parameters(parameters.rto, parameters.transmission.ack_timeout);
        // A cap that holds again may be told of again.
        self.is_over_cap &= self.round_trip.cap_is_exceeded();
        // There may be further ports.
        self.starved = None;
    }

    /// Whether its window is open, to some at least.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.window.is_open() || self.permits.places.have_room(self.window.size())
    }

    /// Whether something came from it as lately as round trips take, as far as these are known.
    pub(crate) fn is_heard(&self, now: Instant) -> bool {
        let (Some(usual), Some(arrival)) = (
            self.round_trip.quantile().map(|usual| usual + LATENESS),
            self.window.last_arrival().map(|arrival| now.since(arrival)),
        ) else {
            return false;
        };
        arrival <= usual
    }

    /// Whether nothing would be missed of it: nothing is under way, and no timer means it.
    pub(crate) fn may_be_forgotten(&self) -> bool {
        self.is_idle() && self.transfers == 0 && self.retry_at.is_none()
    }

    /// Whether nothing is under way or waiting.
    pub(crate) fn is_idle(&self) -> bool {
        self.exchanges == 0 && self.queue.is_empty() && self.window.outstanding() == 0
    }
}
