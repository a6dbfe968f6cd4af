//! From target to exchange: origins, their windows, queues, timeouts and source ports.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::datagram::congestion::Loss;
use coapway_endpoint::{
    DuplicatesParameters, Endpoint, EndpointParameters, Event, Gate, Peer, Received, Schedule, Seed, Trace,
    TransmissionParameters, Transmit,
};
use coapway_message::{Content, ExchangeId, Failure};
use coapway_relay::{FetchId, UpstreamId};
use coapway_time::{Instant, Timers};

use crate::origin::{ORIGIN_LIFETIME, Order, Queued};
use crate::origins::Origins;
use crate::parameters::UpstreamParameters;

/// Short of Message IDs, an origin's queue is tried again after this.
const MESSAGE_ID_PAUSE: Duration = Duration::from_millis(100);
/// What became of a fetch that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// It left.
    Sent(ExchangeId),
    /// It waits for its turn.
    Queued,
}

/// What came of trying to send.
#[derive(Clone, Copy, Debug)]
enum Attempt {
    /// It left.
    Sent(ExchangeId),
    /// Too little time is left for an answer: what never leaves is `not-sent` and may be tried again.
    TooLate,
    /// All Message IDs towards the origin are taken.
    NoMessageId,
}

/// What happened to a fetch that was started.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It had waited and left now.
    Sent { fetch: FetchId, exchange: ExchangeId, origin: SocketAddr, waited: Duration },
    /// Another copy left, or the wait for the last one is over.
    Retransmitted { fetch: FetchId, copies: u32 },
    /// The origin acknowledged it without a response.
    Acknowledged { fetch: FetchId },
    /// It ended without a response.
    Failed { fetch: FetchId, failure: Failure, trace: Option<Trace> },
}

#[derive(Clone, Copy, Debug)]
enum Deadline {
    /// A Non-confirmable request has held its place in the window long enough.
    Release(ExchangeId),
    /// Message IDs may be free again.
    Retry(u32),
}

/// An exchange with an origin and whether it holds a place in the window.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    exchange: ExchangeId,
    fetch: FetchId,
    origin: u32,
    in_window: bool,
}

#[derive(Debug)]
pub(crate) struct Upstreams {
    endpoint: Endpoint,
    parameters: Vec<UpstreamParameters>,
    origins: Origins,
    outstanding: Vec<Option<Outstanding>>,
    timers: Timers<Deadline>,
    progress: VecDeque<Progress>,
}

impl Upstreams {
    pub(crate) fn new(parameters: Vec<UpstreamParameters>, most_origins: usize, seed: Seed) -> Self {
        Self {
            // Origins ask nothing of us yet; what is sent to these ports all the same gets little room.
            endpoint: Endpoint::new(
                EndpointParameters {
                    duplicates: DuplicatesParameters { memory: 1 << 20 },
                    ..EndpointParameters::default()
                },
                seed.part(10),
            ),
            parameters,
            origins: Origins::new(most_origins, seed.part(11).hasher(), seed.part(12).hasher()),
            outstanding: Vec::new(),
            timers: Timers::new(),
            progress: VecDeque::new(),
        }
    }

    pub(crate) fn parameters(&self, upstream: UpstreamId) -> &UpstreamParameters {
        // The first set always exists; an unknown number means a set that a reload took away.
        self.parameters.get(upstream.0 as usize).unwrap_or(&self.parameters[0])
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn queued(&self) -> usize {
        self.origins.iter().map(|(_, origin)| origin.queue.len()).sum()
    }

    /// Sends a request to an origin, now or when its turn comes.
    ///
    /// With too little time left for an answer it counts as queued and never leaves.
    /// Errors: `Overloaded` when its queue is full; nothing was sent.
    pub(crate) fn start(
        &mut self,
        fetch: FetchId,
        upstream: UpstreamId,
        address: SocketAddr,
        order: Order,
        content: &Content<'_>,
        now: Instant,
    ) -> Result<Started, Failure> {
        let parameters = self.parameters.get(upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let index =
            self.origins.find_or_add(address, upstream, parameters, now).ok_or(Failure::Overloaded)?;
        let Some(origin) = self.origins.get_mut(index) else { return Err(Failure::Overloaded) };
        if origin.queue.is_empty() && origin.window.is_open() {
            match self.send(index, fetch, order, content, now) {
                Attempt::Sent(exchange) => return Ok(Started::Sent(exchange)),
                Attempt::TooLate => return Ok(Started::Queued),
                Attempt::NoMessageId => {}
            }
        }
        let most = self.parameters(upstream).queue;
        let Some(origin) = self.origins.get_mut(index) else { return Err(Failure::Overloaded) };
        if origin.queue.len() >= most {
            return Err(Failure::Overloaded);
        }
        let queued = Queued { fetch, order, content: (*content).into(), since: now };
        origin.queue.push(order.client, queued);
        Ok(Started::Queued)
    }

    /// Gives up a fetch that waits for its turn.
    pub(crate) fn unqueue(
        &mut self,
        fetch: FetchId,
        upstream: UpstreamId,
        address: SocketAddr,
        client: &SocketAddr,
    ) {
        if let Some(origin) = self.origins.find_mut(address, upstream) {
            origin.queue.remove(client, |queued| queued.fetch == fetch);
        }
    }

    /// Gives up an exchange: no further copy leaves.
    pub(crate) fn cancel(&mut self, exchange: ExchangeId, now: Instant) -> Option<Trace> {
        let trace = self.endpoint.cancel(exchange)?;
        if let Some(outstanding) = self.end(exchange, now) {
            self.pump(outstanding.origin, now);
        }
        Some(trace)
    }

    /// The window towards the origin of this exchange.
    pub(crate) fn window(&self, exchange: ExchangeId) -> u32 {
        self.outstanding
            .get(exchange.slot as usize)
            .and_then(|outstanding| self.origins.get(outstanding.as_ref()?.origin))
            .map_or(0, |origin| origin.window.size())
    }

    /// A datagram came to an upstream socket. A response goes to the fetch that is returned.
    pub(crate) fn handle_datagram<'d>(
        &mut self,
        peer: Peer,
        bytes: &'d [u8],
        now: Instant,
    ) -> Option<(FetchId, Content<'d>, Trace)> {
        match self.endpoint.handle_datagram(peer, bytes, now, || Gate::Take) {
            Received::Nothing => None,
            Received::Request { exchange, .. } => {
                // Call-home is not there yet: nobody sends requests to these ports.
                let refusal = Content::bare(coapway_message::Code::NOT_FOUND);
                let _ = self.endpoint.respond(exchange, &refusal, now);
                None
            }
            Received::Response { exchange, content, trace, .. } => {
                let outstanding = self.outstanding.get(exchange.slot as usize).copied().flatten()?;
                let sample = trace.first_ack.filter(|&at| at == now).and_then(|_| trace.exact_round_trip());
                self.arrived(outstanding, &trace, sample, now);
                self.end(exchange, now);
                self.pump(outstanding.origin, now);
                Some((outstanding.fetch, content, trace))
            }
        }
    }

    pub(crate) fn handle_undeliverable(&mut self, peer: Peer, quoted: &[u8], failure: Failure, now: Instant) {
        self.endpoint.handle_unreachable(peer, quoted, failure, now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        while let Some(deadline) = self.timers.expire(now) {
            match deadline {
                Deadline::Release(exchange) => self.release(exchange, now),
                Deadline::Retry(index) => {
                    if let Some(origin) = self.origins.get_mut(index) {
                        origin.retries = false;
                        self.pump(index, now);
                    }
                }
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        [self.endpoint.poll_timeout(), self.timers.next_deadline()].into_iter().flatten().min()
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        self.endpoint.poll_transmit()
    }

    /// Carries the endpoint's events into windows and timeouts and says what they mean for fetches.
    pub(crate) fn poll_progress(&mut self, now: Instant) -> Option<Progress> {
        while self.progress.is_empty() {
            let event = self.endpoint.poll_event()?;
            self.handle_event(event, now);
        }
        self.progress.pop_front()
    }

    fn handle_event(&mut self, event: Event, now: Instant) {
        match event {
            Event::Acknowledged { exchange, round_trip } => {
                let Some(outstanding) = self.known(exchange) else { return };
                if let Some(trace) = self.endpoint.trace(exchange).cloned() {
                    self.arrived(outstanding, &trace, round_trip, now);
                }
                self.release(exchange, now);
                self.progress.push_back(Progress::Acknowledged { fetch: outstanding.fetch });
            }
            Event::Retransmitted { exchange, copies, timeout } => {
                let Some(outstanding) = self.known(exchange) else { return };
                if let Some(origin) = self.origins.get_mut(outstanding.origin) {
                    let loss = Loss {
                        sent: now - timeout,
                        timeout,
                        round_trip: origin.round_trip.last(),
                        minimum: origin.round_trip.minimum(),
                        exact_samples: origin.round_trip.exact_samples(),
                    };
                    origin.round_trip.timed_out(timeout);
                    origin.window.timed_out(&loss, now);
                }
                self.progress.push_back(Progress::Retransmitted { fetch: outstanding.fetch, copies });
            }
            Event::Failed { exchange, failure, trace } => {
                let Some(outstanding) = self.end(exchange, now) else { return };
                if let Some(origin) = self.origins.get_mut(outstanding.origin)
                    && matches!(failure, Failure::Reset | Failure::Unusable)
                {
                    origin.window.arrived(now);
                }
                let trace = Some(trace);
                self.progress.push_back(Progress::Failed { fetch: outstanding.fetch, failure, trace });
                self.pump(outstanding.origin, now);
            }
            Event::Alive { .. }
            | Event::Exhausted { .. }
            | Event::EmptyAckSent { .. }
            | Event::Repeated { .. }
            | Event::Delivered { .. } => {}
        }
    }

    fn known(&self, exchange: ExchangeId) -> Option<Outstanding> {
        self.outstanding
            .get(exchange.slot as usize)
            .copied()
            .flatten()
            .filter(|outstanding| outstanding.exchange == exchange)
    }

    /// The origin acknowledged or answered.
    fn arrived(&mut self, outstanding: Outstanding, trace: &Trace, sample: Option<Duration>, now: Instant) {
        let Some(origin) = self.origins.get_mut(outstanding.origin) else { return };
        origin.window.arrived(now);
        if let Some(sample) = sample {
            origin.round_trip.sample(sample, now);
        }
        if trace.confirmable && outstanding.in_window {
            let waiting = !origin.queue.is_empty();
            origin.window.acknowledged(trace.copies.len() as u32, origin.round_trip.exact_samples(), waiting);
        }
    }

    /// The exchange no longer counts against the window.
    fn release(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(Some(outstanding)) = self.outstanding.get_mut(exchange.slot as usize) else { return };
        if outstanding.exchange != exchange || !std::mem::take(&mut outstanding.in_window) {
            return;
        }
        let index = outstanding.origin;
        if let Some(origin) = self.origins.get_mut(index) {
            origin.window.end();
        }
        self.pump(index, now);
    }

    /// The exchange is over.
    fn end(&mut self, exchange: ExchangeId, now: Instant) -> Option<Outstanding> {
        let outstanding = self.known(exchange)?;
        self.outstanding[exchange.slot as usize] = None;
        if let Some(origin) = self.origins.get_mut(outstanding.origin) {
            if outstanding.in_window {
                origin.window.end();
            }
            origin.exchanges -= 1;
            origin.idle_from = now + ORIGIN_LIFETIME;
        }
        Some(outstanding)
    }

    /// Lets waiting requests leave while the window is open.
    fn pump(&mut self, index: u32, now: Instant) {
        loop {
            let Some(origin) = self.origins.get_mut(index) else { return };
            if !origin.window.is_open() || origin.retries {
                return;
            }
            let address = origin.address;
            let Some((client, queued)) = origin.queue.pop() else { return };
            let waited = now.since(queued.since);
            match self.send(index, queued.fetch, queued.order, &queued.content.as_content(), now) {
                Attempt::Sent(exchange) => {
                    let fetch = queued.fetch;
                    self.progress.push_back(Progress::Sent { fetch, exchange, origin: address, waited });
                }
                Attempt::NoMessageId => {
                    if let Some(origin) = self.origins.get_mut(index) {
                        origin.queue.push(client, queued);
                    }
                    return;
                }
                // Its own deadline answers it, at the time that was promised.
                Attempt::TooLate => {}
            }
        }
    }

    /// Sends one request now, if that makes sense and is possible. For want of a Message ID the queue
    /// is tried again soon.
    fn send(
        &mut self,
        index: u32,
        fetch: FetchId,
        order: Order,
        content: &Content<'_>,
        now: Instant,
    ) -> Attempt {
        let Some(origin) = self.origins.get_mut(index) else { return Attempt::TooLate };
        let parameters = self.parameters.get(origin.upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let left = order.deadline.since(now);
        let learned = origin.round_trip.last().unwrap_or_default();
        // With nothing learned, a request that waited until too little is left for an answer is not
        // sent either: what is `not-sent` may be tried again.
        let needed = origin
            .round_trip
            .last()
            .unwrap_or(parameters.transmission.ack_timeout.min(parameters.max_wait / 4));
        if left <= needed {
            return Attempt::TooLate;
        }
        let endpoint = &self.endpoint;
        let Some(peer) =
            origin.choose_port(parameters.source_ports, |peer| endpoint.has_message_id(peer, now))
        else {
            if !std::mem::replace(&mut origin.retries, true) {
                self.timers.insert(now + MESSAGE_ID_PAUSE, Deadline::Retry(index));
            }
            return Attempt::NoMessageId;
        };
        let timeout = origin.round_trip.timeout(left, now);
        let schedule = schedule(parameters, order, timeout, learned, now);
        let Ok(exchange) = self.endpoint.send_request(peer, order.confirmable, None, content, schedule, now)
        else {
            return Attempt::NoMessageId;
        };
        origin.window.start();
        origin.exchanges += 1;
        origin.idle_from = now + ORIGIN_LIFETIME;
        let slot = exchange.slot as usize;
        if self.outstanding.len() <= slot {
            self.outstanding.resize(slot + 1, None);
        }
        self.outstanding[slot] = Some(Outstanding { exchange, fetch, origin: index, in_window: true });
        if !order.confirmable {
            self.timers.insert(now + timeout, Deadline::Release(exchange));
        }
        Attempt::Sent(exchange)
    }

    /// Panics when the tables contradict each other. For simulations, after each step.
    pub(crate) fn check_invariants(&self) {
        self.endpoint.check_invariants();
        for (index, origin) in self.origins.iter() {
            let of_origin = || self.outstanding.iter().flatten().filter(|one| one.origin == index);
            let in_window = of_origin().filter(|one| one.in_window).count() as u32;
            let exchanges = of_origin().count() as u32;
            assert_eq!(origin.window.outstanding(), in_window, "the window counts what is outstanding");
            assert_eq!(origin.exchanges, exchanges, "each exchange is counted once");
        }
        assert_eq!(self.endpoint.outstanding(), self.outstanding.iter().flatten().count());
    }
}

/// When the copies of one request may leave.
fn schedule(
    parameters: &UpstreamParameters,
    order: Order,
    timeout: Duration,
    learned: Duration,
    now: Instant,
) -> Schedule {
    let max_retransmit = parameters.max_retransmit(order.idempotent);
    let protocol = TransmissionParameters::default();
    let guarded = max_retransmit < parameters.transmission.max_retransmit;
    Schedule {
        timeout: if guarded { timeout.max(UpstreamParameters::NON_IDEMPOTENT_TIMEOUT) } else { timeout },
        max_retransmit,
        last_copy_before: order.deadline - learned,
        deadline: order.deadline,
        // A learned timeout may be longer than the configured one; what an origin relies on is the
        // protocol's own span and lifetime (R-USR-19).
        span: parameters.transmission.max_transmit_span().max(protocol.max_transmit_span()),
        lifetime: parameters.transmission.exchange_lifetime().max(protocol.exchange_lifetime()),
        ..Schedule::new(&parameters.transmission, now)
    }
}
