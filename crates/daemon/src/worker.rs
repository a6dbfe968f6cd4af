//! The loop around one proxy: real sockets and the real clock. Its twin is `sim/src/world.rs`.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use coapway_endpoint::{Local, Seed};
use coapway_message::Failure;
use coapway_proxy::{Event, Input, Listening, Output, Parameters, Proxy, Records};
use coapway_time::Instant;
use coapway_transport::{Finished, IcmpCode, IcmpError, LookupError, ReceiveBatch, Resolver};

use crate::bells::Bells;
use crate::clock::Clock;
use crate::log::ONCE_A_MINUTE;
use crate::names::Names;
use crate::sockets::{Sockets, Unsent};
use crate::watch::{Strays, Watch};

mod life;

pub(crate) use life::Changed;

/// Batches taken from one socket before the others, and the timers, have their turn.
const BATCHES_IN_TURN: usize = 4;
/// A wake so late means that the process stood still: what came meanwhile is heard before timers that
/// would not have fired had it been heard.
const LATE: Duration = Duration::from_millis(50);
/// Turns of all sockets that are taken at most to hear it: as many small datagrams as their buffers hold.
const TURNS_WHEN_LATE: usize = 64;

/// The bells of whoever gives orders, and of the resolver.
const ORDER: usize = 0;
const RESOLVER: usize = 1;

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
    resolver: Names,
    reader: R,
    clock: Clock,
    batch: ReceiveBatch,
    icmp: Vec<IcmpError>,
    unsent: Vec<Unsent>,
    /// Places of sockets to read.
    ready: Vec<usize>,
    /// [`ORDER`] and [`RESOLVER`].
    bells: Bells,
    rung: Vec<usize>,
    watch: Watch,
    life: life::Life,
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
            resolver: Names::new(resolver),
            reader,
            clock,
            batch: ReceiveBatch::new(),
            icmp: Vec::new(),
            unsent: Vec::new(),
            ready: Vec::new(),
            bells: Bells::new([ORDER, RESOLVER].len()),
            rung: Vec::new(),
            watch: Watch::default(),
            life: life::Life::new(),
            until: None,
        }
    }

    /// Runs until `order` is ready and returns it; `None` when it was drained and is to end.
    pub(crate) async fn run<O>(&mut self, mut order: impl FnMut(&mut Context<'_>) -> Poll<O>) -> Option<O> {
        let mut sleep = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
        let mut armed = None;
        // This `order` was never polled.
        self.bells.ring(ORDER);
        loop {
            let wake = self.turn();
            if self.is_over() {
                return None;
            }
            // A timer that is set earlier than needed is left alone: most deadlines are cancelled
            // before they come.
            if let Some(wake) = wake
                && armed.is_none_or(|armed| wake < armed)
            {
                sleep.as_mut().reset(self.clock.in_runtime(wake));
                armed = Some(wake);
            }
            let (mut given, mut slept, mut fired) = (Poll::Pending, false, false);
            poll_fn(|cx| {
                self.bells.attend(cx);
                self.bells.rung(&mut self.rung);
                let mut ready = self.sockets.poll_ready(cx).is_ready();
                while let Some(rung) = self.rung.pop() {
                    if rung == ORDER {
                        given = order(&mut self.bells.context(ORDER));
                        ready |= given.is_ready();
                    } else {
                        ready |= self.poll_resolved().is_ready();
                    }
                }
                if armed.is_some() && sleep.as_mut().poll(cx).is_ready() {
                    armed = None;
                    fired = true;
                }
                ready |= fired;
                slept |= !ready;
                if ready { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            if let Poll::Ready(order) = given {
                return Some(order);
            }
            // Lets the runtime see new arrivals on all sockets. It has, when it was asleep and woke for
            // one of them.
            if !slept || fired {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Everything that can be done without waiting: sockets are drained before timers fire.
    fn turn(&mut self) -> Option<Instant> {
        let mut now = self.clock.now();
        let is_late = self.until.is_some_and(|until| until + LATE <= now);
        let mut ready = std::mem::take(&mut self.ready);
        self.sockets.take_ready(&mut ready);
        for _ in 0..if is_late { TURNS_WHEN_LATE } else { 1 } {
            let mut more = false;
            for &place in &ready {
                more |= self.receive(place, &mut now);
                // Who gets it works on it meanwhile, and does not fall asleep: to wake it is what costs most.
                self.sockets.flush(&mut self.unsent);
            }
            if !more {
                break;
            }
        }
        ready.clear();
        self.ready = ready;
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
        let tend = self.tend(now);
        [self.until, flush, tend].into_iter().flatten().min()
    }

    /// Takes what has come to a socket; says whether there may be more. `now` is moved on when that took
    /// a while.
    fn receive(&mut self, place: usize, now: &mut Instant) -> bool {
        for _ in 0..BATCHES_IN_TURN {
            let Some(socket) = self.sockets.at(place) else { return false };
            let id = socket.id;
            if let Err(error) = socket.udp.receive(&mut self.batch) {
                tracing::debug!(%error, "receive failed");
            }
            socket.udp.receive_errors(&mut self.icmp);
            if !self.batch.is_empty() {
                for received in self.batch.iter() {
                    let local = Local { socket: id, address: received.to };
                    let input = Input::Datagram {
                        local,
                        remote: received.from,
                        bytes: received.datagram,
                        truncated: received.truncated,
                    };
                    self.proxy.handle_input(input, *now);
                }
                self.drain(*now);
            }
            if !self.icmp.is_empty() {
                for error in std::mem::take(&mut self.icmp) {
                    self.undeliverable(id, &error, *now);
                }
            }
            if !self.batch.is_full() {
                return false;
            }
            *now = self.clock.now();
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
                Output::Transmit(transmit) => self.sockets.push(&transmit, &mut self.unsent),
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

    fn poll_resolved(&mut self) -> Poll<()> {
        let mut some = Poll::Pending;
        while let Poll::Ready(finished) = self.resolver.poll_finished(&mut self.bells.context(RESOLVER)) {
            let Finished { id: lookup, addresses, ttl } = finished;
            let input = match &addresses {
                Ok(addresses) => Input::Resolved { lookup, addresses, ttl },
                Err(LookupError::NotFound) => Input::Resolved { lookup, addresses: &[], ttl: None },
                Err(error) => {
                    tracing::warn!(target: ONCE_A_MINUTE, %error, "a name could not be looked up");
                    Input::LookUpFailed { lookup, failure: look_up_failure(error) }
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
}

/// What a look-up that says nothing of the name means for those who wait for it.
const fn look_up_failure(error: &LookupError) -> Failure {
    match error {
        LookupError::NotFound => Failure::NotFound,
        LookupError::Failed(_) => Failure::LookUpFailed,
        LookupError::TimedOut(_) => Failure::LookUpTimedOut,
    }
}

#[cfg(test)]
mod look_ups {
    use super::*;

    #[test]
    fn a_look_up_that_failed_says_nothing_of_the_name() {
        let why = || "EAI_AGAIN".to_owned();
        assert_eq!(look_up_failure(&LookupError::Failed(why())), Failure::LookUpFailed);
        assert_eq!(look_up_failure(&LookupError::TimedOut(why())), Failure::LookUpTimedOut);
        assert_eq!(look_up_failure(&LookupError::NotFound), Failure::NotFound);
    }
}

#[cfg(test)]
mod many;
#[cfg(test)]
mod tests;
