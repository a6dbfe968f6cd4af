//! Owns endpoints and relay; `settle` carries events up and decisions down until nothing moves.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{Counters, Endpoint, Event as EndpointEvent, Local, Peer, Seed, SocketId, Transmit};
use coapway_message::datagram::whole_part;
use coapway_message::{ExchangeId, Failure};
use coapway_relay::{ClientLimits, FetchId, Hints, LimitCounters, Phase, Relay, Upstream};
use coapway_time::Instant;

use crate::alternatives::Alternatives;
use crate::clients::Clients;
use crate::event::Event;
use crate::guards::Guards;
use crate::input::{Input, SocketRole};
use crate::journal::{Journal, Listening};
use crate::lookups::Lookups;
use crate::loops::Loops;
use crate::output::Output;
use crate::parameters::Parameters;
use crate::records::Records;
use crate::shares::Shares;
use crate::upstreams::{Progress, Upstreams};

/// A CoAP proxy without sockets and without a clock.
///
/// After [`Proxy::handle_input`], call [`Proxy::poll_output`] until it says [`Output::Wait`].
#[derive(Debug)]
pub struct Proxy {
    pub(crate) downstream: Endpoint,
    pub(crate) upstreams: Upstreams,
    pub(crate) relay: Relay,
    pub(crate) lookups: Lookups,
    pub(crate) alternatives: Alternatives,
    pub(crate) limits: ClientLimits,
    pub(crate) hints: Hints,
    pub(crate) guards: Guards,
    pub(crate) loops: Loops,
    pub(crate) clients: Clients,
    pub(crate) shares: Shares,
    pub(crate) journal: Journal,
    /// Requests under way and separate responses under way, together.
    pub(crate) most_under_way: usize,
    /// Until when requests may run that were accepted before the process was asked to stop.
    pub(crate) draining: Option<Instant>,
    /// Listeners that take no new requests.
    pub(crate) closing: Vec<SocketId>,
    /// Upstreams by number, with the authorities of those that are gone.
    pub(crate) known: Vec<Upstream>,
    pub(crate) answer_within: Option<Duration>,
    pub(crate) early_ack_after: Duration,
    /// For Request-Tags.
    pub(crate) random: fastrand::Rng,
    /// For what is known by resource.
    pub(crate) hasher: ahash::RandomState,
    /// The options of the request or response being relayed.
    pub(crate) scratch: Vec<u8>,
    /// The options and text of an answer of our own.
    pub(crate) answer: Vec<u8>,
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
        let hasher = |number| seed.part(number).hasher();
        Self {
            known: parameters.relay.upstreams.clone(),
            limits: ClientLimits::new(parameters.relay.client_rate, hasher(4), limits.clients),
            hints: Hints::new(hasher(9), limits.hints),
            random: fastrand::Rng::with_seed(seed.part(10).word(0)),
            guards: Guards::new([hasher(5), hasher(6)]),
            loops: Loops::new(hasher(7)),
            clients: Clients::new(parameters.patience, hasher(11)),
            shares: Shares::new(hasher(13)),
            hasher: hasher(8),
            answer_within: parameters.answer_within,
            early_ack_after: parameters.downstream.early_ack_after,
            downstream: Endpoint::new(parameters.downstream, seed.part(1)),
            upstreams: Upstreams::new(parameters.upstreams, limits.origins, seed.part(2)),
            relay: Relay::new(parameters.relay, limits.fetches),
            lookups: Lookups::new(limits.names, seed.part(3).hasher()),
            alternatives: Alternatives::default(),
            journal: Journal::new(listening, hasher(12)),
            most_under_way: limits.fetches,
            draining: None,
            closing: Vec::new(),
            scratch: Vec::new(),
            answer: Vec::new(),
        }
    }

    /// Something happened outside.
    pub fn handle_input(&mut self, input: Input<'_>, now: Instant) {
        match input {
            Input::Datagram { local, remote, bytes, truncated } => {
                let bytes = if truncated { whole_part(bytes) } else { bytes };
                match SocketRole::of(local.socket) {
                    SocketRole::Listener(_) => {
                        self.handle_downstream(Peer { local, remote }, bytes, truncated, now);
                    }
                    SocketRole::Upstream { .. } => {
                        self.handle_upstream(upstream(local, remote), bytes, truncated, now);
                    }
                }
            }
            Input::Undeliverable { local, remote, quoted, failure } => match SocketRole::of(local.socket) {
                SocketRole::Listener(_) => {
                    self.downstream.handle_unreachable(&Peer { local, remote }, quoted, failure, now);
                }
                SocketRole::Upstream { .. } => {
                    self.upstreams.handle_undeliverable(&upstream(local, remote), quoted, failure, now);
                }
            },
            Input::Resolved { lookup, addresses, ttl } => {
                let (waiting, addresses) = self.lookups.resolved(lookup, addresses, ttl, now);
                self.looked_up(waiting, &addresses, Failure::NotFound, now);
            }
            Input::LookUpFailed { lookup, failure } => {
                let (waiting, addresses) = self.lookups.failed(lookup, now);
                self.looked_up(waiting, &addresses, failure, now);
            }
            Input::Reconfigure { parameters, listening, closing } => {
                self.reconfigure(parameters, listening, closing, now);
            }
            Input::Drain { until } => self.draining = Some(until),
            Input::Wake => {
                while let Some(fetch) = self.relay.poll_expired(now) {
                    self.fail(fetch, Failure::TimedOut, now);
                }
                if self.clients.poll_timeout().is_some() {
                    self.end_patience(now);
                }
                self.upstreams.handle_timeout(now);
                self.downstream.handle_timeout(now);
                self.journal.handle_timeout(now);
                self.handle_end_of_drain(now);
            }
        }
        self.settle(now);
    }

    /// What is to be done outside, one thing at a time.
    #[inline]
    pub fn poll_output(&mut self) -> Output<'_> {
        if self.downstream.has_transmit() {
            return transmit(self.downstream.poll_transmit());
        }
        if self.upstreams.endpoint().has_transmit() {
            return transmit(self.upstreams.poll_transmit());
        }
        self.poll_rest()
    }

    fn poll_rest(&mut self) -> Output<'_> {
        if let Some((lookup, name)) = self.lookups.poll_asked() {
            return Output::LookUp { lookup, name };
        }
        if let Some(event) = self.journal.poll() {
            return Output::Event(event);
        }
        if self.journal.has_records() {
            let upstreams = &self.relay.parameters().upstreams;
            return Output::Records(Records::new(self.journal.records(), upstreams));
        }
        let until = [
            self.relay.poll_timeout(),
            self.upstreams.poll_timeout(),
            self.downstream.poll_timeout(),
            self.journal.poll_timeout(),
            self.clients.poll_timeout(),
            self.end_of_drain(),
        ];
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

    /// Whether nothing is under way at a listener: its last answer was delivered or given up.
    pub fn is_idle_at(&self, listener: SocketId) -> bool {
        self.downstream.is_idle_at(listener)
    }

    /// What was counted of clients that are too fast, and which one was so last.
    pub const fn too_fast(&self) -> (&LimitCounters, Option<IpAddr>) {
        (self.limits.counters(), self.limits.last_over())
    }

    /// What was counted on both legs, towards clients first.
    pub const fn counters(&self) -> (&Counters, &Counters) {
        (self.downstream.counters(), self.upstreams.endpoint().counters())
    }

    /// Panics when the parts contradict each other. For simulations, after each step.
    pub fn check_invariants(&self) {
        self.downstream.check_invariants();
        self.upstreams.check_invariants();
        self.guards.check_invariants();
        self.clients.check_invariants();
        self.shares.check_invariants(self.relay.len(), self.downstream.outstanding());
        assert_eq!(
            self.downstream.pending_requests(),
            self.relay.len() + self.guards.waiting(),
            "each open request is being fetched, or waits for one that is"
        );
    }

    /// Carries what the endpoints have to say to fetches and journal, until they are silent.
    fn settle(&mut self, now: Instant) {
        while let Some(progress) = self.upstreams.poll_progress(now) {
            match progress {
                Progress::Sent { fetch, exchange, origin, waited } => {
                    self.sent(fetch, origin, exchange, waited);
                }
                Progress::Retransmitted { fetch, copies } => {
                    if self.relay.fetch(fetch).is_some() {
                        self.journal.event(|| Event::Retransmitted { request: fetch.0, copies });
                    }
                }
                Progress::Acknowledged { fetch } => {
                    if self.relay.fetch(fetch).is_some() {
                        self.journal.event(|| Event::Acknowledged { request: fetch.0 });
                    }
                }
                Progress::Exhausted { fetch, exchange, origin } => {
                    self.reissue(fetch, exchange, origin, now);
                }
                Progress::Failed { fetch, failure, trace } => self.failed(fetch, failure, trace, now),
                Progress::Down(fetch, down) => self.tell_down(fetch, down),
                Progress::Alert(alert) => self.alert(alert),
                Progress::AcknowledgedAgain { peer, message_id } => {
                    self.journal.acknowledged_again(peer, message_id);
                }
            }
        }
        while let Some(event) = self.downstream.poll_event() {
            match event {
                EndpointEvent::EmptyAckSent { exchange: request } => {
                    self.journal.event(|| Event::EmptyAckSent { request });
                    self.journal.note(request, |record| record.early_ack = Some(now));
                    self.mark_slow(request);
                    if self.clients.is_on() {
                        self.answer_will_be_separate(request);
                    }
                }
                EndpointEvent::Repeated { exchange: request } => {
                    self.journal.event(|| Event::Repeated { request });
                }
                EndpointEvent::Delivered { exchange: request, outcome, .. } => {
                    self.shares.delivered(request);
                    self.journal.event(|| Event::Delivered { request, outcome });
                    if self.clients.is_on() {
                        self.separate_response_ended(request, outcome, now);
                    }
                }
                // We send no requests to clients.
                EndpointEvent::Acknowledged { .. }
                | EndpointEvent::Retransmitted { .. }
                | EndpointEvent::Exhausted { .. }
                | EndpointEvent::Failed { .. }
                | EndpointEvent::AcknowledgedAgain { .. }
                | EndpointEvent::Alive { .. } => {}
            }
        }
    }

    /// A request has gone unanswered for a while: should it come back, it went round.
    fn mark_slow(&mut self, request: ExchangeId) {
        let id = FetchId(request);
        let Some(fetch) = self.relay.fetch(id) else { return };
        let (Phase::Sent(origin, exchange), None) = (fetch.phase, fetch.mark()) else { return };
        let Some(similar) = self.similar(fetch, origin, exchange) else { return };
        let Some(origin) = self.upstreams.address(origin) else { return };
        let mark = self.loops.enter(similar, origin.ip());
        if let Some(fetch) = self.relay.fetch_mut(id) {
            fetch.rare.get_or_insert_default().mark = Some(mark);
        }
    }
}

#[inline]
fn transmit(transmit: Option<Transmit<'_>>) -> Output<'_> {
    transmit.map_or_else(|| unreachable!("has_transmit said so"), Output::Transmit)
}

/// An origin as the endpoint knows it: which of our addresses it answered to does not matter.
const fn upstream(local: Local, remote: SocketAddr) -> Peer {
    Peer { local: Local { address: None, ..local }, remote }
}
