//! A client's request from its receipt until it waits for an origin.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::time::Duration;

use coapway_endpoint::{Gate, Peer, Received};
use coapway_message::{Content, Evidence, ExchangeId, Failure, OptionNumber, OwnedContent, Token};
use coapway_relay::{
    Admission, Decision, Destination, Fetch, FetchId, NoResponse, Origin, OriginId, Phase, Plan, Rare,
    Refusal, Verdict, resource_key, with_hop_limit, with_request_tag, without_hop_limit,
};
use coapway_time::Instant;

use crate::address::{Site, number_of};
use crate::alert::Alert;
use crate::arrival::Arrival;
use crate::cause::Cause;
use crate::event::Event;
use crate::guards::{Known, Waiter};
use crate::lookups::{Resolution, Waiting};
use crate::loops::Loops;
use crate::order::Order;
use crate::parameters::{PostGuard, TokenPolicy};
use crate::proxy::Proxy;
use crate::upstreams::Standing;

impl Proxy {
    pub(crate) fn handle_downstream(&mut self, peer: Peer, bytes: &[u8], truncated: bool, now: Instant) {
        let client = peer.remote.ip();
        let mut verdict = Verdict::Admitted;
        let (limits, relay) = (&mut self.limits, &self.relay);
        let gate = || {
            verdict = limits.judge(client, now);
            match verdict {
                Verdict::Dropped => Gate::Drop,
                Verdict::Admitted | Verdict::TooFast if relay.is_verified(client) => Gate::Take,
                Verdict::Admitted | Verdict::TooFast => Gate::TakeUnverified,
            }
        };
        match self.downstream.handle_datagram(&peer, bytes, now, gate) {
            Received::Nothing | Received::Response { .. } => {}
            Received::Request { exchange, confirmable, message_id, token, content } => {
                let arrival = Arrival { request: exchange, peer, confirmable, message_id, token, content };
                let (code, client) = (content.code, peer.remote);
                self.journal.event(|| Event::Received { request: exchange, client, code, confirmable });
                if self.clients.is_on() {
                    self.token_came(client, token, now);
                }
                let refusal = match (self.closes(peer.local.socket, now), truncated, verdict) {
                    (Some(refusal), ..) => Some(refusal),
                    (_, true, _) => Some(Refusal::TOO_LARGE),
                    (_, _, Verdict::TooFast) => Some(Refusal::TOO_FAST),
                    (_, _, Verdict::Admitted | Verdict::Dropped) => None,
                };
                match refusal {
                    Some(refusal) => self.refuse(exchange, NoResponse::of(&content), refusal, now),
                    None => self.handle_request(&arrival, now),
                }
            }
        }
    }

    fn handle_request(&mut self, arrival: &Arrival<'_>, now: Instant) {
        let &Arrival { request, peer, ref content, .. } = arrival;
        let (client, came_to) = (peer.remote.ip(), peer.local.address);
        let mut scratch = std::mem::take(&mut self.scratch);
        match &self.relay.decide(client, came_to, content, &mut scratch) {
            Ok(Decision::Forward(plan)) => self.complete(arrival, plan, now),
            Ok(Decision::Local(answer)) => {
                self.answer(request, NoResponse::of(content), answer, Cause::Local, None, now);
            }
            Err(refusal) => {
                if refusal.may_be_loop() && self.came_round(peer, content) && self.loops.is_news(now) {
                    self.alert(Alert::Loop { client: peer.remote });
                }
                self.refuse(request, NoResponse::of(content), *refusal, now);
            }
        }
        self.scratch = scratch;
    }

    /// Whether a request without a hop left asks for what an earlier one asks for in vain, and comes from the
    /// host that one was sent to. A loop that is not seen here shows by our identifier in the 5.08 when that
    /// goes back.
    fn came_round(&mut self, peer: Peer, content: &Content<'_>) -> bool {
        if self.loops.is_empty() {
            return false;
        }
        let (mut options, mut scratch) = (Vec::new(), Vec::new());
        let content = without_hop_limit(content, &mut options);
        let client = peer.remote.ip();
        let Ok(Decision::Forward(plan)) =
            self.relay.decide(client, peer.local.address, &content, &mut scratch)
        else {
            return false;
        };
        let similar = self.hints.key(plan.upstream, Origin::from(&plan.destination), &plan.content);
        similar.is_some_and(|similar| self.loops.suspects(similar, client))
    }

    /// Adds what the request gets on its way beside what the client gave it.
    fn complete(&mut self, arrival: &Arrival<'_>, plan: &Plan<'_>, now: Instant) {
        let may_be_similar = !self.hints.is_empty() || !self.loops.is_empty();
        let is_tagged = self.upstreams.parameters(plan.upstream).post_guard == PostGuard::RequestTag;
        if may_be_similar || is_tagged {
            self.complete_with_care(arrival, plan, is_tagged, now);
        } else {
            self.guard(arrival, plan, now);
        }
    }

    fn complete_with_care(&mut self, arrival: &Arrival<'_>, plan: &Plan<'_>, is_tagged: bool, now: Instant) {
        let &Arrival { request, peer, .. } = arrival;
        let similar = self.hints.key(plan.upstream, Origin::from(&plan.destination), &plan.content);
        let mut added: [Vec<u8>; 2] = Default::default();
        let [tagged, limited] = &mut added;
        let mut plan = plan.clone();
        if is_tagged {
            let tag = self.random.u64(..).to_be_bytes();
            plan = Plan { content: with_request_tag(&plan.content, &tag, tagged), ..plan };
        }
        if similar.is_some_and(|similar| self.loops.suspects(similar, peer.remote.ip())) {
            // It may come round for ever, so each hop is told how many are left, and whoever sent it
            // need not wait to hear of us.
            self.downstream.acknowledge_early(request);
            plan = Plan { content: with_hop_limit(&plan.content, Loops::HOP_LIMIT, limited), ..plan };
        }
        if let Some(similar) = similar.filter(|_| !self.hints.is_empty()) {
            let mut held = std::mem::take(&mut self.answer);
            let answer = self.hints.held(similar, peer.remote, now, &mut held);
            let is_held = answer.is_some();
            if let Some(answer) = answer {
                self.answer(request, plan.no_response, &answer, Cause::Held, None, now);
            }
            self.answer = held;
            if is_held {
                return;
            }
        }
        self.guard(arrival, &plan, now);
    }

    /// Answers a POST or PATCH that an equal one has answered already, where that is asked for.
    fn guard(&mut self, arrival: &Arrival<'_>, plan: &Plan<'_>, now: Instant) {
        let &Arrival { request, peer, .. } = arrival;
        let parameters = self.upstreams.parameters(plan.upstream);
        // Protected ones have no meaning that could be compared (RFC 8613 §10).
        let is_guarded = parameters.post_guard == PostGuard::Fingerprint && !plan.oscore;
        if plan.method.is_idempotent() || !is_guarded {
            self.begin(arrival, plan, now);
            return;
        }
        let until = now + parameters.post_guard_window;
        if self.is_full() {
            self.refuse(request, plan.no_response, Refusal::OVERLOADED, now);
            return;
        }
        let fingerprint = self.guards.fingerprint(peer.remote.ip(), plan);
        let waiter = Waiter { request, no_response: plan.no_response };
        match self.guards.find(fingerprint, waiter, now) {
            Known::New => {
                if self.begin(arrival, plan, now) {
                    self.guards.begin(fingerprint, request, until);
                }
            }
            Known::Joined => {}
            Known::Full => self.refuse(request, plan.no_response, Refusal::OVERLOADED, now),
            Known::Answered(answer) => {
                let answer = OwnedContent::from(answer);
                self.answer(request, plan.no_response, &answer.as_content(), Cause::Joined, None, now);
            }
        }
    }

    /// Requests under way, those that wait for the answer of one, and separate responses under way.
    fn under_way(&self) -> usize {
        self.relay.len() + self.guards.waiting() + self.downstream.outstanding()
    }

    /// Whether there is room for no further request.
    fn is_full(&self) -> bool {
        self.under_way() >= self.most_under_way
    }

    /// A fetch is over.
    #[inline]
    pub(crate) fn finish_fetch(&mut self, id: FetchId) -> Option<Fetch> {
        let fetch = self.relay.finish(id)?;
        self.shares.give(Site::of(fetch.client));
        Some(fetch)
    }

    /// Puts a request on its way; says whether it still is.
    fn begin(&mut self, arrival: &Arrival<'_>, plan: &Plan<'_>, now: Instant) -> bool {
        let &Arrival { request, peer, .. } = arrival;
        let (fetch, begun) = (FetchId(request), self.fetch(arrival, plan, now));
        let client = begun.client;
        let site = Site::of(client);
        let may_begin =
            !self.is_full() && !self.shares.is_used_up(site, self.under_way(), self.most_under_way);
        if !may_begin || !self.relay.begin(fetch, begun) {
            self.refuse(request, plan.no_response, Refusal::OVERLOADED, now);
            return false;
        }
        self.shares.take(site);
        if self.clients.is_on() {
            self.await_patience(fetch, peer.remote, arrival.token, now);
        }
        self.journal.draft(request, |record| arrival.describe(plan, now, record));
        match &plan.destination {
            Destination::Address(address) => self.send(fetch, *address, &plan.content, now),
            Destination::Name { host, port } => {
                let port = *port;
                let waiting = || Waiting { fetch, client, port, content: plan.content.into() };
                let is_upstream = plan.admission == Admission::Upstream;
                match self.lookups.find((host, is_upstream), client, waiting, now) {
                    Resolution::Pending => {}
                    Resolution::Full => self.fail(fetch, Failure::Overloaded, now),
                    Resolution::Known(addresses) => {
                        let addresses = addresses.into_iter().map(|ip| SocketAddr::new(ip, port));
                        self.try_addresses(fetch, addresses, &plan.content, now);
                    }
                }
            }
        }
        self.relay.fetch(fetch).is_some()
    }

    /// What is kept of a request that is put on its way.
    #[inline]
    fn fetch(&self, arrival: &Arrival<'_>, plan: &Plan<'_>, now: Instant) -> Fetch {
        let parameters = self.upstreams.parameters(plan.upstream);
        let max_wait = self.answer_within.map_or(parameters.max_wait, |limit| limit.min(parameters.max_wait));
        let is_tagged = parameters.post_guard == PostGuard::RequestTag
            && plan.content.options.first(OptionNumber::REQUEST_TAG).is_some()
            && !plan.block
            && !plan.oscore;
        let preserves = parameters.token == TokenPolicy::Preserve && (4..=8).contains(&arrival.token.len());
        let rare = (preserves || plan.block).then(|| {
            let token = preserves.then(|| Token::new(arrival.token));
            let resource = plan.block.then(|| resource_key(&self.hasher, &plan.destination, &plan.content));
            let transfer = resource.map(|resource| NonZeroU64::new(resource).unwrap_or(NonZeroU64::MIN));
            Rare { token, transfer, ..Rare::default() }.into()
        });
        Fetch {
            client: number_of(&arrival.peer.remote, &self.hasher),
            received: now,
            deadline: now + max_wait,
            phase: Phase::LookingUp,
            rare,
            upstream: plan.upstream,
            route: plan.route,
            method: plan.method,
            confirmable: arrival.confirmable,
            admission: plan.admission,
            no_response: plan.no_response,
            reissuable: plan.reissuable || is_tagged,
            is_last_block: !plan.block1.is_some_and(|block| block.more),
            is_named: matches!(plan.destination, Destination::Name { .. }),
            evidence: Evidence::NotSent,
        }
    }

    /// The look-up that these have waited for is over; without an address it ends them.
    pub(crate) fn looked_up(
        &mut self,
        waiting: Vec<Waiting>,
        addresses: &[IpAddr],
        failure: Failure,
        now: Instant,
    ) {
        for Waiting { fetch, port, content, .. } in waiting {
            if addresses.is_empty() {
                self.fail(fetch, failure, now);
                continue;
            }
            let addresses = addresses.iter().map(|&ip| SocketAddr::new(ip, port));
            self.try_addresses(fetch, addresses, &content.as_content(), now);
        }
    }

    /// Sends a fetch to the first address that may be reached and keeps the others.
    pub(crate) fn try_addresses(
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
                if let Some(known) = self.finish_fetch(fetch) {
                    self.refuse_fetch(fetch, &known, refusal, now);
                }
            }
            (None, None) => self.fail(fetch, Failure::NotFound, now),
        }
    }

    fn send(&mut self, fetch: FetchId, address: SocketAddr, content: &Content<'_>, now: Instant) {
        if self.upstreams.some_are_silent() && self.spare(fetch, address, now) {
            return;
        }
        let Some(known) = self.relay.fetch(fetch) else { return };
        let order = Order::of(known);
        let token = known.token().filter(|_| !order.is_reissue);
        let to = (address, known.upstream);
        let started = match self.upstreams.start(fetch, to, &order, token, content, now) {
            Ok(started) => started,
            // The exchange before is still listened to.
            Err(_) if order.is_reissue => {
                if let Some(rare) = self.relay.fetch_mut(fetch).and_then(|known| known.rare.as_mut()) {
                    rare.earlier.pop();
                }
                return;
            }
            Err(failure) => return self.fail(fetch, failure, now),
        };
        match started.standing {
            Standing::Queued => self.relay.set_phase(fetch, Phase::Queued(started.origin)),
            Standing::Sent(exchange) => self.sent(fetch, started.origin, exchange, Duration::ZERO),
        }
        // What cannot be answered in time anyway need not wait to be acknowledged.
        if order.confirmable && started.answered_after.is_some_and(|after| after > self.early_ack_after) {
            self.downstream.acknowledge_early(fetch.0);
        }
    }

    pub(crate) fn sent(&mut self, fetch: FetchId, origin: OriginId, exchange: ExchangeId, waited: Duration) {
        let Some(known) = self.relay.fetch_mut(fetch) else { return };
        known.phase = Phase::Sent(origin, exchange);
        let request = fetch.0;
        if self.journal.tells_events()
            && let Some(origin) = self.upstreams.address(origin)
        {
            self.journal.event(|| Event::Sent { request, origin });
        }
        self.journal.note(request, |record| {
            if !waited.is_zero() {
                record.queued += waited;
            }
            record.window = self.upstreams.window(origin);
        });
    }

    /// The copies of a request are used up and none was acknowledged: where it may be done again, a
    /// new exchange begins, and whichever is answered first counts.
    pub(crate) fn reissue(&mut self, id: FetchId, exchange: ExchangeId, origin: OriginId, now: Instant) {
        let Some(fetch) = self.relay.fetch(id) else { return };
        let attempts = fetch.earlier().len() as u32 + 1;
        let most = self.upstreams.parameters(fetch.upstream).retry.max_attempts;
        if fetch.phase != Phase::Sent(origin, exchange)
            || !fetch.reissuable
            || !fetch.confirmable
            || attempts >= most
            || self.clients.is_gone(id)
            || !self.upstreams.allows_reissue(origin, now)
        {
            return;
        }
        let Some(address) = self.upstreams.address(origin) else { return };
        let Some(content) = self.upstreams.sent_content(exchange) else { return };
        if let Some(fetch) = self.relay.fetch_mut(id) {
            fetch.rare.get_or_insert_default().earlier.push(exchange);
        }
        self.send(id, address, &content.as_content(), now);
    }
}

impl Proxy {
    /// What the request of a fetch has in common with similar ones, by what was sent in `exchange`.
    pub(crate) fn similar(&self, fetch: &Fetch, origin: OriginId, exchange: ExchangeId) -> Option<u64> {
        let content = self.upstreams.endpoint().sent_content(exchange)?;
        let address = self.upstreams.address(origin)?;
        let origin = if fetch.is_named { Origin::Named(address.port()) } else { Origin::Address(address) };
        self.hints.key(fetch.upstream, origin, &content)
    }
}
