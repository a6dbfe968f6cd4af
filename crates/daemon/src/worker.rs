//! The loop around one proxy: real sockets and the real clock. Its twin is `sim/src/world.rs`.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use coapway_endpoint::{Local, Seed};
use coapway_message::Failure;
use coapway_proxy::{Event, Input, Listening, Output, Parameters, Proxy, Records};
use coapway_time::Instant;
use coapway_transport::{Finished, IcmpCode, IcmpError, LookupError, ReceiveBatch, Resolver};

use crate::clock::Clock;
use crate::log::ONCE_A_MINUTE;
use crate::sockets::{Sockets, Unsent};
use crate::watch::{Strays, Watch};

/// Batches taken from one socket before the others, and the timers, have their turn.
const BATCHES_IN_TURN: usize = 4;
/// A wake so late means that the process stood still: what came meanwhile is heard before timers that
/// would not have fired had it been heard.
const LATE: Duration = Duration::from_millis(50);
/// Turns of all sockets that are taken at most to hear it: as many small datagrams as their buffers hold.
const TURNS_WHEN_LATE: usize = 64;

/// Whoever reads the events and forward records of a proxy.
pub(crate) trait Reader {
    /// Takes records.
    fn records(&mut self, _records: Records<'_>, _now: Instant, _sockets: &Sockets) {}
    /// Takes one event.
    fn read(&mut self, event: Event, now: Instant, sockets: &Sockets);
    /// Time to hand over what was gathered; says when to come back.
    fn flush(&mut self, now: Instant) -> Option<Instant>;
}

/// One worker: one thread, one proxy, nothing shared.
#[derive(Debug)]
pub(crate) struct Worker<R> {
    proxy: Proxy,
    sockets: Sockets,
    resolver: Resolver,
    reader: R,
    clock: Clock,
    batch: ReceiveBatch,
    icmp: Vec<IcmpError>,
    unsent: Vec<Unsent>,
    watch: Watch,
    /// When the proxy wants to be woken.
    until: Option<Instant>,
}

impl<R: Reader> Worker<R> {
    pub(crate) fn new(
        parameters: Parameters,
        listening: Listening,
        sockets: Sockets,
        resolver: Resolver,
        reader: R,
        clock: Clock,
        seed: Seed,
    ) -> Self {
        Self {
            proxy: Proxy::new(parameters, listening, seed),
            sockets,
            resolver,
            reader,
            clock,
            batch: ReceiveBatch::new(),
            icmp: Vec::new(),
            unsent: Vec::new(),
            watch: Watch::default(),
            until: None,
        }
    }

    /// Runs until `stop` is ready, and then on until every request is answered; at most for
    /// `drain`, and not when `stop` is ready once more.
    pub(crate) async fn run(&mut self, drain: Duration, mut stop: impl FnMut(&mut Context<'_>) -> Poll<()>) {
        let mut sleep = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
        let mut armed = None;
        let mut draining_until = None;
        loop {
            let wake = self.turn();
            let idle = draining_until.is_some() && self.proxy.is_idle();
            if idle || draining_until.is_some_and(|until| until <= self.clock.now()) {
                return;
            }
            // A timer that is set earlier than needed is left alone: most deadlines are cancelled
            // before they come.
            if let Some(wake) = [wake, draining_until].into_iter().flatten().min()
                && armed.is_none_or(|armed| wake < armed)
            {
                sleep.as_mut().reset(self.clock.in_runtime(wake));
                armed = Some(wake);
            }
            let mut stopped = false;
            poll_fn(|cx| {
                stopped = stop(cx).is_ready();
                let mut ready = stopped | self.sockets.poll_ready(cx).is_ready();
                ready |= self.poll_resolved(cx).is_ready();
                if armed.is_some() && sleep.as_mut().poll(cx).is_ready() {
                    armed = None;
                    ready = true;
                }
                if ready { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            if stopped && draining_until.is_some() {
                return;
            }
            if stopped {
                let now = self.clock.now();
                draining_until = Some(now + drain);
                self.input(Input::Drain, now);
            }
            // Lets the runtime see new arrivals on all sockets.
            tokio::task::yield_now().await;
        }
    }

    /// Everything that can be done without waiting: sockets are drained before timers fire.
    fn turn(&mut self) -> Option<Instant> {
        let is_late = self.until.is_some_and(|until| until + LATE <= self.clock.now());
        for _ in 0..if is_late { TURNS_WHEN_LATE } else { 1 } {
            let mut more = false;
            for place in 0..self.sockets.len() {
                more |= self.receive(place);
            }
            if !more {
                break;
            }
        }
        let now = self.clock.now();
        if self.until.is_some_and(|until| until <= now) {
            self.input(Input::Wake, now);
        }
        self.sockets.flush(&mut self.unsent);
        while let Some(Unsent { local, remote, quoted, failure }) = self.unsent.pop() {
            self.input(Input::Undeliverable { local, remote, quoted: &quoted, failure }, now);
            self.sockets.flush(&mut self.unsent);
        }
        if let Some(Strays { responses, replies }) = self.watch.look(Strays::of(self.proxy.counters()), now) {
            tracing::warn!(
                responses,
                acknowledgements_and_resets = replies,
                "messages that match nothing: forged, or a peer is out of step"
            );
        }
        let flush = self.reader.flush(now);
        [self.until, flush].into_iter().flatten().min()
    }

    /// Takes what has come to a socket; says whether there may be more.
    fn receive(&mut self, place: usize) -> bool {
        for _ in 0..BATCHES_IN_TURN {
            let socket = self.sockets.at(place);
            let id = socket.id;
            if let Err(error) = socket.udp.receive(&mut self.batch) {
                tracing::debug!(%error, "receive failed");
            }
            socket.udp.receive_errors(&mut self.icmp);
            if !self.batch.is_empty() {
                let now = self.clock.now();
                for received in self.batch.iter() {
                    let local = Local { socket: id, address: received.to };
                    let input = Input::Datagram {
                        local,
                        remote: received.from,
                        bytes: received.datagram,
                        truncated: received.truncated,
                    };
                    self.proxy.handle_input(input, now);
                }
                self.drain(now);
            }
            if !self.icmp.is_empty() {
                let now = self.clock.now();
                for error in std::mem::take(&mut self.icmp) {
                    self.undeliverable(id, &error, now);
                }
            }
            if self.batch.len() < coapway_transport::BATCH {
                return false;
            }
        }
        true
    }

    fn undeliverable(&mut self, socket: coapway_endpoint::SocketId, error: &IcmpError, now: Instant) {
        let failure = match error.code {
            IcmpCode::Unreachable(_) => Failure::Unreachable,
            // Too big: the kernel fragments from now on, and the next copy gets through.
            IcmpCode::MessageTooBig { .. } | IcmpCode::Ignored | IcmpCode::Other => return,
        };
        let local = Local { socket, address: error.local };
        let quoted = error.payload();
        self.input(Input::Undeliverable { local, remote: error.destination, quoted, failure }, now);
    }

    fn input(&mut self, input: Input<'_>, now: Instant) {
        self.proxy.handle_input(input, now);
        self.drain(now);
    }

    fn drain(&mut self, now: Instant) {
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => self.sockets.push(transmit, &mut self.unsent),
                Output::LookUp { lookup, name } => {
                    if self.resolver.look_up(lookup, &name).is_err() {
                        let failure = Failure::Overloaded;
                        self.proxy.handle_input(Input::LookUpFailed { lookup, failure }, now);
                    }
                }
                Output::Event(event) => self.reader.read(event, now, &self.sockets),
                Output::Records(records) => self.reader.records(records, now, &self.sockets),
                Output::Wait { until } => {
                    self.until = until;
                    return;
                }
            }
        }
    }

    fn poll_resolved(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut some = Poll::Pending;
        while let Poll::Ready(finished) = self.resolver.poll_finished(cx) {
            let Finished { id: lookup, addresses, ttl } = finished;
            let input = match &addresses {
                Ok(addresses) => Input::Resolved { lookup, addresses, ttl },
                Err(LookupError::NotFound) => Input::Resolved { lookup, addresses: &[], ttl: None },
                Err(error) => {
                    tracing::warn!(target: ONCE_A_MINUTE, %error, "a name could not be looked up");
                    Input::LookUpFailed { lookup, failure: Failure::NotFound }
                }
            };
            let now = self.clock.now();
            self.input(input, now);
            some = Poll::Ready(());
        }
        some
    }

    /// Writes one line of all that was counted.
    pub(crate) fn tell_counters(&self) {
        let (clients, origins) = self.proxy.counters();
        tracing::info!(?clients, ?origins, sockets = ?self.sockets.counters(), "counted");
    }

    /// Where the listeners are bound.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.listeners()
    }
}

#[cfg(test)]
mod tests;
