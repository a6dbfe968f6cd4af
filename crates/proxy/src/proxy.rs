//! Owns endpoints and relay; `settle` carries events up and decisions down until nothing moves.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{
    Counters, Endpoint, Event as EndpointEvent, Gate, Local, Peer, Received, Seed, Trace,
};
use coapway_message::{Content, Evidence, ExchangeId, Failure};
use coapway_relay::{Answer, Destination, Fetch, FetchId, Phase, Plan, Refusal, Relay};
use coapway_time::Instant;

use crate::alternatives::Alternatives;
use crate::arrival::Arrival;
use crate::cause::Cause;
use crate::event::Event;
use crate::input::{Input, SocketRole};
use crate::journal::{Journal, Listening};
use crate::lookups::{Lookups, Resolution, Waiting};
use crate::origin::Order;
use crate::output::Output;
use crate::parameters::Parameters;
use crate::upstreams::{Progress, Started, Upstreams};

/// A CoAP proxy without sockets and without a clock.
///
/// After [`Proxy::handle_input`], call [`Proxy::poll_output`] until it says [`Output::Wait`].
#[derive(Debug)]
pub struct Proxy {
    downstream: Endpoint,
    upstreams: Upstreams,
    relay: Relay,
    lookups: Lookups,
    alternatives: Alternatives,
    journal: Journal,
    draining: bool,
    /// The options of the request or response being relayed.
    scratch: Vec<u8>,
    /// The options and text of an answer of our own.
    answer: Vec<u8>,
}

/// How much there is of everything, for metrics and checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Requests of clients that are not answered.
    pub requests: usize,
    /// Fetches under way.
    pub fetches: usize,
    /// Requests that wait for their turn towards an origin.
    pub queued: usize,
    /// Exchanges with origins under way.
    pub exchanges: usize,
    /// Separate responses under way to clients.
    pub responses: usize,
    /// Messages remembered for repeats.
    pub remembered: usize,
}

impl Proxy {
    /// A proxy with these settings.
    pub fn new(parameters: Parameters, listening: Listening, seed: Seed) -> Self {
        let limits = parameters.limits;
        Self {
            downstream: Endpoint::new(parameters.downstream, seed.part(1)),
            upstreams: Upstreams::new(parameters.upstreams, limits.origins, seed.part(2)),
            relay: Relay::new(parameters.relay, limits.fetches),
            lookups: Lookups::new(limits.names, seed.part(3).hasher()),
            alternatives: Alternatives::default(),
            journal: Journal::new(listening),
            draining: false,
            scratch: Vec::new(),
            answer: Vec::new(),
        }
    }

    /// Something happened outside.
    pub fn handle_input(&mut self, input: Input<'_>, now: Instant) {
        match input {
            Input::Datagram { local, remote, bytes, truncated } => match SocketRole::of(local.socket) {
                SocketRole::Listener(_) => {
                    self.handle_downstream(Peer { local, remote }, bytes, truncated, now);
                }
                SocketRole::Upstream { .. } => {
                    self.handle_upstream(upstream(local, remote), bytes, truncated, now);
                }
            },
            Input::Undeliverable { local, remote, quoted, failure } => match SocketRole::of(local.socket) {
                SocketRole::Listener(_) => {
                    self.downstream.handle_unreachable(Peer { local, remote }, quoted, failure, now);
                }
                SocketRole::Upstream { .. } => {
                    self.upstreams.handle_undeliverable(upstream(local, remote), quoted, failure, now);
                }
            },
            Input::Resolved { lookup, addresses } => {
                for Waiting { fetch, port, content } in self.lookups.resolved(lookup, addresses, now) {
                    let addresses = addresses.iter().map(|&ip| SocketAddr::new(ip, port));
                    self.try_addresses(fetch, addresses, &content.as_content(), now);
                }
            }
            Input::Drain => self.draining = true,
            Input::Wake => {
                while let Some(fetch) = self.relay.poll_expired(now) {
                    self.fail(fetch, Failure::TimedOut, now);
                }
                self.upstreams.handle_timeout(now);
                self.downstream.handle_timeout(now);
            }
        }
        self.settle(now);
    }

    /// What is to be done outside, one thing at a time.
    pub fn poll_output(&mut self) -> Output<'_> {
        // Two steps, because a borrowed datagram cannot be returned from a branch otherwise.
        let transmits = match self.downstream.has_transmit() {
            true => Some(true),
            false => self.upstreams.endpoint().has_transmit().then_some(false),
        };
        if let Some(downstream) = transmits {
            let transmit =
                if downstream { self.downstream.poll_transmit() } else { self.upstreams.poll_transmit() };
            if let Some(transmit) = transmit {
                return Output::Transmit(transmit);
            }
            unreachable!("has_transmit said so");
        }
        if let Some((lookup, name)) = self.lookups.poll_asked() {
            return Output::LookUp { lookup, name };
        }
        if let Some(event) = self.journal.poll() {
            return Output::Event(event);
        }
        let until =
            [self.relay.poll_timeout(), self.upstreams.poll_timeout(), self.downstream.poll_timeout()];
        Output::Wait { until: until.into_iter().flatten().min() }
    }

    /// How much there is of everything.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            requests: self.downstream.pending_requests(),
            fetches: self.relay.len(),
            queued: self.upstreams.queued(),
            exchanges: self.upstreams.endpoint().outstanding(),
            responses: self.downstream.outstanding(),
            remembered: self.downstream.remembered(),
        }
    }

    /// Whether every request is answered and every answer delivered or given up.
    pub fn is_idle(&self) -> bool {
        self.downstream.pending_requests() == 0 && self.downstream.outstanding() == 0 && self.relay.is_empty()
    }

    /// What was counted on both legs, towards clients first.
    pub const fn counters(&self) -> (&Counters, &Counters) {
        (self.downstream.counters(), self.upstreams.endpoint().counters())
    }

    /// Panics when the parts contradict each other. For simulations, after each step.
    pub fn check_invariants(&self) {
        self.downstream.check_invariants();
        self.upstreams.check_invariants();
        assert_eq!(
            self.downstream.pending_requests(),
            self.relay.len(),
            "each open request is being fetched"
        );
        assert!(self.upstreams.endpoint().outstanding() <= self.relay.len());
    }

    fn handle_downstream(&mut self, peer: Peer, bytes: &[u8], truncated: bool, now: Instant) {
        match self.downstream.handle_datagram(peer, bytes, now, || Gate::Take) {
            Received::Nothing | Received::Response { .. } => {}
            Received::Request { exchange, confirmable, message_id, token, content } => {
                let arrival = Arrival { request: exchange, peer, confirmable, message_id, token };
                self.handle_request(&arrival, &content, truncated, now);
            }
        }
    }

    fn handle_request(
        &mut self,
        arrival: &Arrival<'_>,
        content: &Content<'_>,
        truncated: bool,
        now: Instant,
    ) {
        let &Arrival { request, peer, confirmable, .. } = arrival;
        let (client, code) = (peer.remote, content.code);
        self.journal.event(|| Event::Received { request, client, code, confirmable });
        let refusal = match (self.draining, truncated) {
            (true, _) => Some(Refusal::DRAINING),
            (false, true) => Some(Refusal::TOO_LARGE),
            (false, false) => None,
        };
        if let Some(refusal) = refusal {
            self.refuse(request, refusal, now);
            return;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        match self.relay.decide(client.ip(), content, &mut scratch) {
            Err(refusal) => self.refuse(request, refusal, now),
            Ok(plan) => self.begin(arrival, content, &plan, now),
        }
        self.scratch = scratch;
    }

    fn begin(&mut self, arrival: &Arrival<'_>, content: &Content<'_>, plan: &Plan<'_>, now: Instant) {
        let &Arrival { request, peer, confirmable, .. } = arrival;
        let fetch = self.relay.begin(Fetch {
            request,
            client: peer.remote,
            method: plan.method,
            confirmable,
            upstream: plan.upstream,
            admission: plan.admission,
            route: plan.route,
            received: now,
            deadline: now + self.upstreams.parameters(plan.upstream).max_wait,
            evidence: Evidence::NotSent,
            phase: Phase::LookingUp,
        });
        let Some(fetch) = fetch else {
            let answer = Answer::for_failure(Failure::Overloaded, Evidence::NotSent);
            self.answer.clear();
            let content = answer.write(&mut self.answer);
            self.journal.answered(request, &content, Cause::Refused, Some(Evidence::NotSent), now);
            let _ = self.downstream.respond(request, &content, now);
            return;
        };
        if self.journal.records() {
            let upstream = &self.relay.parameters().upstreams[plan.upstream.0 as usize].name;
            self.journal.draft(request, || arrival.record(content, upstream, plan, now));
        }
        match &plan.destination {
            Destination::Address(address) => {
                self.try_addresses(fetch, [*address].into_iter(), &plan.content, now);
            }
            Destination::Name { host, port } => {
                let port = *port;
                let waiting = || Waiting { fetch, port, content: plan.content.into() };
                match self.lookups.find(host, waiting, now) {
                    Resolution::Pending => {}
                    Resolution::Full => self.fail(fetch, Failure::Overloaded, now),
                    Resolution::Known(addresses) => {
                        let addresses = addresses.into_iter().map(|ip| SocketAddr::new(ip, port));
                        self.try_addresses(fetch, addresses, &plan.content, now);
                    }
                }
            }
        }
    }

    /// Sends a fetch to the first address that may be reached and keeps the others.
    fn try_addresses(
        &mut self,
        fetch: FetchId,
        mut addresses: impl Iterator<Item = SocketAddr>,
        content: &Content<'_>,
        now: Instant,
    ) {
        let Some(known) = self.relay.fetch(fetch) else { return };
        let mut refusal = None;
        let admitted = addresses.by_ref().find(|&address| match self.relay.admit(known, address) {
            Ok(()) => true,
            Err(why) => {
                refusal = Some(why);
                false
            }
        });
        match (admitted, refusal) {
            (Some(address), _) => {
                self.alternatives.keep(fetch, addresses, content);
                self.send(fetch, address, content, now);
            }
            (None, Some(refusal)) => {
                if let Some(fetch) = self.relay.finish(fetch) {
                    self.refuse(fetch.request, refusal, now);
                }
            }
            (None, None) => self.fail(fetch, Failure::NotFound, now),
        }
    }

    fn send(&mut self, fetch: FetchId, origin: SocketAddr, content: &Content<'_>, now: Instant) {
        let Some(known) = self.relay.fetch(fetch) else { return };
        let order = Order {
            client: known.client,
            confirmable: known.confirmable,
            idempotent: known.method.is_idempotent(),
            deadline: known.deadline,
        };
        match self.upstreams.start(fetch, known.upstream, origin, order, content, now) {
            Ok(Started::Queued) => self.relay.set_phase(fetch, Phase::Queued(origin)),
            Ok(Started::Sent(exchange)) => self.sent(fetch, origin, exchange, Duration::ZERO),
            Err(failure) => self.fail(fetch, failure, now),
        }
    }

    fn sent(&mut self, fetch: FetchId, origin: SocketAddr, exchange: ExchangeId, waited: Duration) {
        let Some(request) = self.relay.fetch(fetch).map(|known| known.request) else { return };
        self.relay.set_phase(fetch, Phase::Sent(origin, exchange));
        self.journal.event(|| Event::Sent { request, origin });
        if self.journal.records() {
            let window = self.upstreams.window(exchange);
            self.journal.note(request, |record| {
                record.queued += waited;
                record.window = window;
            });
        }
    }

    fn handle_upstream(&mut self, peer: Peer, bytes: &[u8], truncated: bool, now: Instant) {
        let Some((id, content, trace)) = self.upstreams.handle_datagram(peer, bytes, now) else { return };
        let Some(fetch) = self.relay.finish(id) else { return };
        self.alternatives.forget(id);
        let evidence = evidence(Failure::Unusable, Some(&trace));
        if self.journal.records() {
            self.journal.trace(fetch.request, trace);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let relayed = if truncated {
            Err(Failure::Unusable)
        } else {
            self.relay.relay_response(&fetch, &content, &mut scratch)
        };
        match relayed {
            Ok(content) => {
                self.journal.answered(fetch.request, &content, Cause::Origin, None, now);
                let _ = self.downstream.respond(fetch.request, &content, now);
            }
            Err(failure) => self.answer_failure(&fetch, failure, evidence, now),
        }
        self.scratch = scratch;
    }

    /// Carries what the endpoints have to say to fetches and journal, until they are silent.
    fn settle(&mut self, now: Instant) {
        while let Some(progress) = self.upstreams.poll_progress(now) {
            match progress {
                Progress::Sent { fetch, exchange, origin, waited } => {
                    self.sent(fetch, origin, exchange, waited);
                }
                Progress::Retransmitted { fetch, copies } => {
                    if let Some(request) = self.relay.fetch(fetch).map(|fetch| fetch.request) {
                        self.journal.event(|| Event::Retransmitted { request, copies });
                    }
                }
                Progress::Acknowledged { fetch } => {
                    if let Some(request) = self.relay.fetch(fetch).map(|fetch| fetch.request) {
                        self.journal.event(|| Event::Acknowledged { request });
                    }
                }
                Progress::Failed { fetch, failure, trace } => self.failed(fetch, failure, trace, now),
            }
        }
        while let Some(event) = self.downstream.poll_event() {
            match event {
                EndpointEvent::EmptyAckSent { exchange: request } => {
                    self.journal.event(|| Event::EmptyAckSent { request });
                    self.journal.note(request, |record| record.early_ack = Some(now));
                }
                EndpointEvent::Repeated { exchange: request } => {
                    self.journal.event(|| Event::Repeated { request });
                }
                EndpointEvent::Delivered { exchange: request, outcome, .. } => {
                    self.journal.event(|| Event::Delivered { request, outcome });
                }
                // We send no requests to clients.
                EndpointEvent::Acknowledged { .. }
                | EndpointEvent::Retransmitted { .. }
                | EndpointEvent::Exhausted { .. }
                | EndpointEvent::Failed { .. }
                | EndpointEvent::Alive { .. } => {}
            }
        }
    }

    /// An exchange ended without a response. Refused at its first copy, a name's next address may
    /// do: nothing was executed.
    fn failed(&mut self, id: FetchId, failure: Failure, trace: Option<Trace>, now: Instant) {
        let evidence = evidence(failure, trace.as_ref());
        let Some(request) = self.relay.fetch(id).map(|fetch| fetch.request) else { return };
        if let Some(trace) = trace.filter(|_| self.journal.records()) {
            self.journal.trace(request, trace);
        }
        if failure == Failure::Unreachable
            && evidence != Evidence::OutcomeUnknown
            && let Some((addresses, content)) = self.alternatives.take(id)
        {
            self.relay.start_over(id, evidence);
            self.try_addresses(id, addresses.into_iter(), &content.as_content(), now);
            return;
        }
        self.alternatives.forget(id);
        if let Some(fetch) = self.relay.finish(id) {
            self.answer_failure(&fetch, failure, evidence, now);
        }
    }

    /// A fetch ends for a reason of ours: wherever it stands, it is taken from there.
    fn fail(&mut self, id: FetchId, failure: Failure, now: Instant) {
        let Some(fetch) = self.relay.finish(id) else { return };
        self.alternatives.forget(id);
        let mut known = evidence(failure, None);
        match fetch.phase {
            Phase::LookingUp => {}
            Phase::Queued(origin) => self.upstreams.unqueue(id, fetch.upstream, origin, &fetch.client),
            Phase::Sent(_, exchange) => {
                if let Some(trace) = self.upstreams.cancel(exchange, now) {
                    known = evidence(failure, Some(&trace));
                    if self.journal.records() {
                        self.journal.trace(fetch.request, trace);
                    }
                }
            }
        }
        self.answer_failure(&fetch, failure, known, now);
    }

    fn answer_failure(&mut self, fetch: &Fetch, failure: Failure, evidence: Evidence, now: Instant) {
        let evidence = fetch.evidence.max(evidence);
        self.answer.clear();
        let content = Answer::for_failure(failure, evidence).write(&mut self.answer);
        self.journal.answered(fetch.request, &content, Cause::Failed(failure), Some(evidence), now);
        let _ = self.downstream.respond(fetch.request, &content, now);
    }

    fn refuse(&mut self, request: ExchangeId, refusal: Refusal, now: Instant) {
        self.answer.clear();
        let content = refusal.write(&mut self.answer);
        self.journal.answered(request, &content, Cause::Refused, None, now);
        let _ = self.downstream.respond(request, &content, now);
    }
}

/// What the last exchange of a fetch leaves to be said; without one nothing left.
fn evidence(failure: Failure, trace: Option<&Trace>) -> Evidence {
    trace.map_or(Evidence::NotSent, |trace| {
        Evidence::after(failure, trace.copies.len() as u32, trace.acks > 0)
    })
}

/// An origin as the endpoint knows it: which of our addresses it answered to does not matter.
const fn upstream(local: Local, remote: SocketAddr) -> Peer {
    Peer { local: Local { address: None, ..local }, remote }
}
