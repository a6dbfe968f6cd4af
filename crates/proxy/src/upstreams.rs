//! From target to exchange: origins, their windows, queues, timeouts and source ports.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{
    Course, DuplicatesParameters, Endpoint, EndpointParameters, Gate, Peer, Received, Seed, Trace, Transmit,
};
use coapway_message::{Content, ExchangeId, Failure, OwnedContent};
use coapway_relay::{Answer, FetchId, OriginId, Refusal, UpstreamId};
use coapway_time::{Instant, Timers};
use hashbrown::HashMap;

use crate::address::{Holder, Site};
use crate::alert::Alert;
use crate::apart::{Apart, Several};
use crate::budget::Budget;
use crate::origins::Origins;
use crate::parameters::UpstreamParameters;
use crate::places::Places;
use crate::schedule::Derived;
use crate::silence::Down;
use crate::transfers::Transfer;

/// What became of a fetch that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) origin: OriginId,
    pub(crate) standing: Standing,
    /// How soon it is answered at best; `None` while too little is known.
    pub(crate) answered_after: Option<Duration>,
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It left.
    Sent(ExchangeId),
    /// It waits for its turn.
    Queued,
}

/// What happened to a fetch that was started.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It had waited and left now.
    Sent { fetch: FetchId, exchange: ExchangeId, origin: OriginId, waited: Duration },
    /// Another copy left, or the wait for the last one is over.
    Retransmitted { fetch: FetchId, copies: u32 },
    /// No further copy will leave and none was acknowledged.
    Exhausted { fetch: FetchId, exchange: ExchangeId, origin: OriginId },
    /// The origin acknowledged it without a response.
    Acknowledged { fetch: FetchId },
    /// It ended without a response.
    Failed { fetch: FetchId, failure: Failure, trace: Option<Box<Trace>> },
    /// An origin is down, as the failure of this fetch shows.
    Down(FetchId, Down),
    /// Something about an origin that its operator should know.
    Alert(Alert),
    /// A message was acknowledged that had been before, or that is over.
    AcknowledgedAgain { peer: Peer, message_id: u16 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Deadline {
    /// A Non-confirmable request has held its place in the window long enough.
    Release(ExchangeId),
    /// What waits for this origin may be able to leave.
    Retry(u32),
    /// The Acknowledgements of a message told nothing in time.
    Untold,
}

/// An exchange with an origin and whether it holds a place in the window; its slot is where it is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    /// Of the exchange.
    pub(crate) generation: u32,
    pub(crate) fetch: FetchId,
    pub(crate) origin: u32,
    /// Whose request it is.
    pub(crate) site: Site,
    /// Who holds its place in the window, while it has one.
    pub(crate) place: Option<Holder>,
}

/// A response, and what it answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response<'d> {
    pub(crate) fetch: FetchId,
    pub(crate) exchange: ExchangeId,
    pub(crate) origin: OriginId,
    pub(crate) content: Content<'d>,
}

/// What an Acknowledgement or a response says of its exchange.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) copies: u32,
    pub(crate) confirmable: bool,
    pub(crate) sample: Option<Duration>,
    /// What is acknowledged now, after a retransmission.
    pub(crate) several: Option<Several>,
}

impl Arrival {
    pub(crate) fn of(course: &Course<'_>, sample: Option<Duration>, now: Instant) -> Self {
        let are_several = course.copies() > 1 && course.first_ack() == Some(now);
        let several = are_several.then(|| Several::of(course));
        Self { copies: course.copies(), confirmable: course.is_confirmable(), sample, several }
    }
}

#[derive(Debug)]
pub(crate) struct Upstreams {
    pub(crate) endpoint: Endpoint,
    pub(crate) parameters: Vec<UpstreamParameters>,
    pub(crate) derived: Vec<Derived>,
    pub(crate) origins: Origins,
    pub(crate) outstanding: Vec<Option<Outstanding>>,
    pub(crate) timers: Timers<Deadline>,
    /// Acknowledgements that may tell copies apart.
    pub(crate) apart: Apart,
    /// Pings under way, and to which origin; one to each at most.
    pub(crate) pings: HashMap<ExchangeId, u32, ahash::RandomState>,
    pub(crate) progress: VecDeque<Progress>,
    /// Origins whose queue may move on.
    pub(crate) may_move: Vec<u32>,
    /// Block-wise transfers with all origins together.
    pub(crate) transfers: usize,
    /// Retries towards all origins together.
    pub(crate) budget: Budget,
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
            budget: Budget::new(&parameters.first().copied().unwrap_or_default().retry, Instant::ZERO),
            derived: parameters.iter().map(Derived::of).collect(),
            parameters,
            origins: Origins::new(most_origins, seed.part(11).hasher(), seed.part(12).hasher()),
            outstanding: Vec::new(),
            timers: Timers::new(),
            apart: Apart::new(seed.part(13).hasher()),
            pings: HashMap::with_hasher(seed.part(14).hasher()),
            progress: VecDeque::new(),
            may_move: Vec::new(),
            transfers: 0,
        }
    }

    pub(crate) fn parameters(&self, upstream: UpstreamId) -> &UpstreamParameters {
        // The first set always exists; an unknown number means a set that a reload took away.
        self.parameters.get(upstream.0 as usize).unwrap_or(&self.parameters[0])
    }

    /// Takes over changed settings, each set under the number that it had; `is_gone` tells which upstreams
    /// are there no more. What waits may be able to leave now.
    pub(crate) fn reconfigure(
        &mut self,
        parameters: Vec<UpstreamParameters>,
        most_origins: usize,
        is_gone: impl Fn(UpstreamId) -> bool,
        now: Instant,
    ) {
        self.derived = parameters.iter().map(Derived::of).collect();
        self.parameters = parameters;
        self.origins.reconfigure(most_origins, is_gone);
        for index in self.origins.indexes() {
            let Some(upstream) = self.origins.get(index).map(|origin| origin.upstream) else { continue };
            let parameters = *self.parameters(upstream);
            if let Some(origin) = self.origins.get_mut(index) {
                origin.reconfigure(&parameters);
            }
            if !parameters.dormant {
                self.break_silence(index, false);
            }
            self.pump(index, now);
        }
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn queued(&self) -> usize {
        self.origins.iter().map(|(_, origin)| origin.queue.len()).sum()
    }

    /// Where an origin is.
    pub(crate) fn address(&self, OriginId(index): OriginId) -> Option<SocketAddr> {
        self.origins.get(index).map(|origin| origin.address)
    }

    /// Gives up a fetch that waits for its turn.
    pub(crate) fn unqueue(&mut self, fetch: FetchId, OriginId(index): OriginId, client: u64) {
        if let Some(origin) = self.origins.get_mut(index) {
            origin.queue.remove(client, |queued| queued.fetch == fetch);
        }
    }

    /// Gives up an exchange: no further copy leaves.
    pub(crate) fn cancel(&mut self, exchange: ExchangeId, now: Instant) -> Option<Course<'_>> {
        self.endpoint.cancel(exchange)?;
        if let Some(outstanding) = self.end(exchange, now) {
            self.replaced(outstanding.origin, exchange, now);
            self.may_move.push(outstanding.origin);
        }
        self.endpoint.ended(exchange)
    }

    /// The window towards an origin.
    pub(crate) fn window(&self, OriginId(index): OriginId) -> u32 {
        self.origins.get(index).map_or(0, |origin| origin.window.size())
    }

    /// What was sent in an exchange under way.
    pub(crate) fn sent_content(&self, exchange: ExchangeId) -> Option<OwnedContent> {
        self.endpoint.sent_content(exchange).map(OwnedContent::from)
    }

    /// A datagram came to an upstream socket. A response goes to the fetch that is returned.
    pub(crate) fn handle_datagram<'d>(
        &mut self,
        peer: &Peer,
        bytes: &'d [u8],
        now: Instant,
    ) -> Option<Response<'d>> {
        match self.endpoint.handle_datagram(peer, bytes, now, || Gate::TakeUnverified) {
            Received::Nothing => {
                self.heard_from(peer.remote);
                None
            }
            Received::Request { exchange, .. } => {
                // Call-home is not there yet: nobody sends requests to these ports.
                let mut scratch = Vec::new();
                let refusal = Answer::from(Refusal::NOT_FOUND).write("", &mut scratch);
                let _ = self.endpoint.respond(exchange, &refusal, now);
                None
            }
            Received::Response { exchange, content, .. } => {
                let outstanding = self.end(exchange, now)?;
                if let Some(course) = self.endpoint.ended(exchange) {
                    let sample =
                        course.first_ack().filter(|&at| at == now).and_then(|_| course.exact_round_trip());
                    let time = now.since(course.first().sent);
                    let arrival = Arrival::of(&course, sample, now);
                    self.arrived(outstanding, arrival, now);
                    if let Some(origin) = self.origins.get_mut(outstanding.origin) {
                        origin.responses.saw(time);
                    }
                }
                // Not at once: what is known of the exchange is still to be read in its place.
                self.may_move.push(outstanding.origin);
                let Outstanding { fetch, origin, .. } = outstanding;
                Some(Response { fetch, exchange, origin: OriginId(origin), content })
            }
        }
    }

    pub(crate) fn handle_undeliverable(
        &mut self,
        peer: &Peer,
        quoted: &[u8],
        failure: Failure,
        now: Instant,
    ) {
        self.endpoint.handle_unreachable(peer, quoted, failure, now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        while let Some(deadline) = self.timers.expire(now) {
            match deadline {
                Deadline::Release(exchange) => self.release(exchange),
                Deadline::Retry(index) => self.retry(index, now),
                Deadline::Untold => self.stayed_untold(now),
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
    ///
    /// All of them before anything leaves: a new exchange may take the place of one that is over and whose
    /// event waits.
    pub(crate) fn poll_progress(&mut self, now: Instant) -> Option<Progress> {
        loop {
            while let Some(event) = self.endpoint.poll_event() {
                self.handle_event(event, now);
            }
            if let Some(progress) = self.progress.pop_front() {
                return Some(progress);
            }
            let index = self.may_move.pop()?;
            self.pump(index, now);
        }
    }

    pub(crate) fn known(&self, exchange: ExchangeId) -> Option<Outstanding> {
        self.outstanding
            .get(exchange.slot as usize)
            .copied()
            .flatten()
            .filter(|outstanding| outstanding.generation == exchange.generation)
    }

    /// Whether a request may be issued anew: both budgets allow it.
    pub(crate) fn allows_reissue(&mut self, OriginId(index): OriginId, now: Instant) -> bool {
        let all = self.parameters[0].retry;
        let Some(origin) = self.origins.get_mut(index) else { return false };
        let retry =
            self.parameters.get(origin.upstream.0 as usize).map_or(all, |parameters| parameters.retry);
        origin.budget.allows(&retry, now) && self.budget.allows(&all, now)
    }

    /// The block-wise transfer with this origin is over.
    pub(crate) fn end_transfer(&mut self, OriginId(index): OriginId, transfer: &Transfer) {
        if let Some(origin) = self.origins.get_mut(index) {
            origin.permits.transfers.end(transfer);
        }
        self.count_transfers(index);
        self.may_move.push(index);
    }

    /// No further copy leaves in this exchange; its place is for others.
    pub(crate) fn stop_copies(&mut self, exchange: ExchangeId) {
        self.endpoint.stop_copies(exchange);
        self.release(exchange);
    }

    /// Panics when the tables contradict each other. For simulations, after each step.
    pub(crate) fn check_invariants(&self) {
        self.endpoint.check_invariants();
        for (index, origin) in self.origins.iter() {
            let of_origin = || self.outstanding.iter().flatten().filter(|one| one.origin == index);
            let mut places = Places::new(ahash::RandomState::with_seeds(0, 0, 0, 0));
            let mut in_window = 0;
            for (site, holder) in of_origin().filter_map(|one| Some((one.site, one.place?))) {
                places.take(site, holder);
                in_window += 1;
            }
            let exchanges = of_origin().count() as u32;
            let pings = origin.pings.outstanding();
            assert_eq!(
                origin.window.outstanding(),
                in_window + pings,
                "the window counts what is outstanding"
            );
            assert!(origin.permits.places.are_the_same(&places), "so do the places of clients");
            assert_eq!(origin.exchanges, exchanges, "each exchange is counted once");
        }
        self.origins.check_invariants();
        let transfers = self.origins.iter().map(|(_, origin)| origin.transfers);
        assert_eq!(transfers.sum::<usize>(), self.transfers, "each transfer is counted");
        let exchanges = self.outstanding.iter().flatten().count();
        assert_eq!(self.endpoint.outstanding(), exchanges + self.pings.len());
    }
}
