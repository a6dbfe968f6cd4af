//! What a worker does beside messages: other settings, listeners that close, the watchdog, its end.

use std::path::PathBuf;
use std::time::Duration;

use coapway_endpoint::SocketId;
use coapway_message::Failure;
use coapway_proxy::{Input, Listening, Parameters};
use coapway_time::Instant;
use coapway_transport::Resolver;

use super::{Reader, TURNS_WHEN_LATE, Worker};
use crate::log::OPERATOR;
use crate::notify::Watchdog;
use crate::sockets::Bound;
use crate::state::{self, Keeper};
use crate::watch::Floods;

/// A listener that is to close is kept at least this long, for clients that missed an answer.
const LINGER: Duration = Duration::from_secs(5);
/// How often it is asked whether a listener can be closed.
const PAUSE: Duration = Duration::from_secs(1);

/// See above.
#[derive(Debug)]
pub(super) struct Life {
    watchdog: Watchdog,
    floods: Floods,
    closing: Vec<SocketId>,
    /// When they are looked at next.
    close_at: Option<Instant>,
    keeper: Keeper,
}

/// Settings that a worker takes over.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) parameters: Parameters,
    pub(crate) listening: Listening,
    /// All addresses that are to be listened on, and sockets for those that are new.
    pub(crate) listen: Vec<std::net::SocketAddr>,
    pub(crate) bound: Bound,
    /// A new one, where names are looked up elsewhere.
    pub(crate) resolver: Option<Resolver>,
}

impl Life {
    pub(super) fn new() -> Self {
        Self {
            watchdog: Watchdog::new(),
            floods: Floods::default(),
            closing: Vec::new(),
            close_at: None,
            keeper: Keeper::default(),
        }
    }
}

impl<R: Reader> Worker<R> {
    /// Takes over other settings; what is under way goes on.
    pub(crate) fn reconfigure(&mut self, changed: Changed) {
        let Changed { parameters, listening, listen, bound, resolver } = changed;
        let now = self.clock.now();
        let closing = self.sockets.listeners_beside(&listen);
        self.sockets.listen_on(bound);
        self.input(Input::Reconfigure { parameters: &parameters, listening, closing: &closing }, now);
        self.life.close_at = (!closing.is_empty()).then(|| now + LINGER);
        self.life.closing = closing;
        if let Some(resolver) = resolver {
            // It was never polled.
            self.bells.ring(super::RESOLVER);
            for lookup in self.resolver.replace(resolver) {
                self.input(Input::LookUpFailed { lookup, failure: Failure::Overloaded }, now);
            }
        }
    }

    /// Takes over what was learned before the start, from the file in which it is to be kept.
    pub(crate) fn restore(&mut self, path: Option<PathBuf>) {
        let now = self.clock.now();
        if let Some(path) = &path {
            state::restore(path, &mut self.proxy, &self.clock, now);
        }
        self.keep(path);
    }

    /// From now on what is learned is kept there, or nowhere.
    pub(crate) fn keep(&mut self, path: Option<PathBuf>) {
        self.life.keeper.keep(path, self.clock.now());
    }

    /// Takes no new requests and ends when those that are under way are answered; `within` is how long
    /// they may take.
    pub(crate) fn drain_within(&mut self, within: Duration) {
        let now = self.clock.now();
        self.input(Input::Drain { until: now + within }, now);
    }

    /// Whether it was asked to end.
    pub(crate) fn is_draining(&self) -> bool {
        self.proxy.drained_at().is_some()
    }

    /// Requests that are not answered.
    pub(crate) fn requests(&self) -> usize {
        self.proxy.occupancy().requests
    }

    pub(crate) const fn sockets(&self) -> &crate::sockets::Sockets {
        &self.sockets
    }

    pub(crate) const fn reader(&mut self) -> &mut R {
        &mut self.reader
    }

    pub(super) fn is_over(&self) -> bool {
        let Some(end) = self.proxy.drained_at() else { return false };
        self.proxy.is_idle() && self.sockets.waiting() == 0 || end <= self.clock.now()
    }

    /// The last thing: what has come is answered, and what is summed up is told.
    pub(crate) fn finish(&mut self) {
        let mut now = self.clock.now();
        let places = self.sockets.all();
        for _ in 0..TURNS_WHEN_LATE {
            if places.iter().filter(|&&place| self.receive(place, &mut now)).count() == 0 {
                break;
            }
        }
        let now = self.clock.now();
        self.input(Input::Wake, now);
        self.proxy.close(now);
        self.drain(now);
        self.sockets.flush(&mut self.unsent);
        self.reader.flush(now);
        self.life.keeper.finish(&self.proxy, &self.clock, now);
    }

    /// Does what is due; says when to come back.
    pub(super) fn tend(&mut self, now: Instant) -> Option<Instant> {
        if self.life.close_at.is_some_and(|due| due <= now) {
            self.close_listeners(now);
        }
        let (counters, client) = self.proxy.too_fast();
        let (told, again) = self.life.floods.look(*counters, now);
        if let Some((refused, dropped)) = told {
            let client = client.map(tracing::field::display);
            tracing::warn!(refused, dropped, client, "clients are faster than limits.client_rate allows");
        }
        let ping = self.life.watchdog.ping(now);
        let keep = self.life.keeper.tend(&self.proxy, &self.clock, now);
        [self.life.close_at, again, ping, keep, self.proxy.drained_at()].into_iter().flatten().min()
    }

    fn close_listeners(&mut self, now: Instant) {
        let (proxy, sockets) = (&self.proxy, &mut self.sockets);
        self.life.closing.retain(|&id| {
            let address = sockets.local_addr(id);
            let is_closed = proxy.is_idle_at(id) && sockets.close(id);
            if let (true, Some(address)) = (is_closed, address) {
                tracing::info!(target: OPERATOR, "no longer listening on coap://{address}");
            }
            !is_closed
        });
        self.life.close_at = (!self.life.closing.is_empty()).then(|| now + PAUSE);
    }
}
