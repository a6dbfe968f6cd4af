//! The carrier between client, proxy and origin.

use coapway_endpoint::SocketId;
use coapway_proxy::SocketRole;
use coapway_time::Instant;

use crate::chance::Errand;
use crate::dice::mix;
use crate::exchange::Exchange;
use crate::path::{Direction, Label, Nat, Path};
use crate::queue::{BufferId, Buffers, Carried, Event, Hop, NONE, Queue};
use crate::scenario::Scenario;

/// Carries datagrams and keeps what is to happen.
#[derive(Debug)]
pub(crate) struct Post<'s> {
    pub(crate) queue: Queue,
    pub(crate) buffers: Buffers,
    /// Between proxy and origin.
    pub(crate) path: Path<'s>,
    /// Between clients and proxy.
    pub(crate) access: Path<'s>,
    pub(crate) nat: Nat,
    /// Messages that belong to no exchange.
    errands: u64,
}

/// For messages that are no copies of a request and no answers to one.
pub(crate) const SEPARATE: u64 = 0x5E9A_0001;
const ACCESS: u64 = 0xACCE_0001;

impl<'s> Post<'s> {
    pub(crate) fn new(scenario: &'s Scenario, seed: u64) -> Self {
        Self {
            queue: Queue::default(),
            buffers: Buffers::default(),
            path: Path::new(&scenario.path, seed),
            access: Path::new(&scenario.access, mix(seed, ACCESS)),
            nat: Nat::new(scenario.path.nat),
            errands: 0,
        }
    }

    /// A label of something that happens once.
    pub(crate) fn errand(&mut self) -> Label {
        self.errands += 1;
        Errand::Other(self.errands).label()
    }

    /// From the proxy to the origin.
    pub(crate) fn up(&mut self, socket: u32, label: Label, of: (u32, u16), buffer: BufferId, now: Instant) {
        let binding = self.nat.out(socket as usize, now);
        let hop = Hop { socket: socket as u16, binding };
        let carried = Carried { hop, exchange: of.0, copy: of.1, again: false, buffer };
        self.carry(Direction::Up, label, carried, now);
    }

    /// From the origin to the proxy.
    pub(crate) fn down(&mut self, hop: Hop, label: Label, of: (u32, u16), buffer: BufferId, now: Instant) {
        let carried = Carried { hop, exchange: of.0, copy: of.1, again: false, buffer };
        self.carry(Direction::Down, label, carried, now);
    }

    fn carry(&mut self, to: Direction, label: Label, carried: Carried, now: Instant) {
        let arrivals = self.path.send(to, label, self.buffers.length(carried.buffer), now);
        let event = |carried| match to {
            Direction::Up => Event::ToOrigin(carried),
            Direction::Down => Event::FromOrigin(carried),
        };
        let Some(first) = arrivals.first else {
            self.buffers.drop(carried.buffer);
            return;
        };
        if let Some(second) = arrivals.second {
            let buffer = self.buffers.copy(carried.buffer);
            self.queue.push(second, event(Carried { buffer, again: true, ..carried }));
        }
        self.queue.push(first, event(carried));
    }

    /// From a client to the proxy; `of` are exchange and copy, where there are.
    pub(crate) fn client_sends(
        &mut self,
        client: u32,
        of: Option<(&Exchange, u16)>,
        buffer: BufferId,
        now: Instant,
    ) {
        self.cross(Direction::Up, of, buffer, Event::FromClient { client, buffer }, now);
    }

    /// From the proxy to a client.
    pub(crate) fn client_gets(
        &mut self,
        client: u32,
        of: Option<(&Exchange, u16)>,
        buffer: BufferId,
        now: Instant,
    ) {
        self.cross(Direction::Down, of, buffer, Event::ToClient { client, buffer }, now);
    }

    fn cross(
        &mut self,
        to: Direction,
        of: Option<(&Exchange, u16)>,
        buffer: BufferId,
        event: Event,
        now: Instant,
    ) {
        if self.access.is_nothing() {
            self.queue.push_at_once(event);
            return;
        }
        let label = match of {
            Some((exchange, copy)) => {
                Label { errand: mix(exchange.errand, ACCESS), copy: copy.into(), level: exchange.level }
            }
            None => self.errand(),
        };
        let arrivals = self.access.send(to, label, self.buffers.length(buffer), now);
        let Some(first) = arrivals.first else {
            self.buffers.drop(buffer);
            return;
        };
        if let Some(second) = arrivals.second {
            let buffer = self.buffers.copy(buffer);
            let again = match event {
                Event::FromClient { client, .. } => Event::FromClient { client, buffer },
                Event::ToClient { client, .. } => Event::ToClient { client, buffer },
                Event::Ask { .. }
                | Event::ClientTimeout { .. }
                | Event::ToOrigin(_)
                | Event::FromOrigin(_)
                | Event::Origin { .. }
                | Event::Sample => event,
            };
            self.queue.push(second, again);
        }
        self.queue.push(first, event);
    }
}

/// The proxy's socket with this number.
pub(crate) fn upstream_socket(number: u16) -> SocketId {
    SocketRole::Upstream { ipv6: false, number: number.into() }.socket()
}

/// Whether a number names an exchange.
pub(crate) const fn is_exchange(exchange: u32) -> bool {
    exchange != NONE
}
