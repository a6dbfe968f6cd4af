//! Answers on their way to clients: an origin's, or one of our own.

use coapway_endpoint::{Course, Peer, Refused, Trace};
use coapway_message::{Code, Content, Evidence, ExchangeId, Failure, OptionNumber};
use coapway_relay::{Answer, Block, Fetch, FetchId, NoResponse, OriginId, Phase, Refusal};
use coapway_time::Instant;

use crate::address::Site;
use crate::alert::Alert;
use crate::cause::Cause;
use crate::proxy::Proxy;
use crate::transfers::Transfer;
use crate::upstreams::Response;

/// How a fetch ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) cause: Cause,
    /// What is known of its execution, if that is to be said.
    pub(crate) evidence: Option<Evidence>,
    /// Whether its answer is also that of equal requests to come.
    pub(crate) is_kept: bool,
}

impl Outcome {
    const fn of(cause: Cause) -> Self {
        Self { cause, evidence: None, is_kept: true }
    }
}

impl Proxy {
    pub(crate) fn handle_upstream(&mut self, peer: Peer, bytes: &[u8], truncated: bool, now: Instant) {
        let Some(response) = self.upstreams.handle_datagram(&peer, bytes, now) else { return };
        let Response { fetch: id, exchange, origin, content } = response;
        let Some(fetch) = self.finish_fetch(id) else { return };
        let others = self.wind_up(id, &fetch, Some(exchange), now);
        let course = self.upstreams.endpoint().ended(exchange);
        let evidence = others.max(evidence(Failure::Unusable, course.as_ref()));
        if let Some(course) = &course {
            self.journal.trace(id.0, course);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let relayed = if truncated {
            Err(Failure::Unusable)
        } else {
            self.relay.relay_response(&fetch, &content, &mut scratch)
        };
        match relayed {
            Ok(relayed) => {
                if relayed.is_loop
                    && let Some(client) = self.downstream.requester(id.0)
                    && self.loops.is_news(now)
                {
                    self.alert(Alert::Loop { client: client.remote });
                }
                self.relay_answer(id, &fetch, &relayed.content, (origin, exchange), now);
            }
            Err(failure) => self.answer_failure(id, &fetch, failure, evidence, now),
        }
        self.scratch = scratch;
    }

    fn relay_answer(
        &mut self,
        id: FetchId,
        fetch: &Fetch,
        content: &Content<'_>,
        (origin, exchange): (OriginId, ExchangeId),
        now: Instant,
    ) {
        if matches!(content.code, Code::TOO_MANY_REQUESTS | Code::SERVICE_UNAVAILABLE)
            && let Some(similar) = self.similar(fetch, origin, exchange)
        {
            self.hints.note(similar, content, now);
        } else if self.hints.has_probes()
            && let Some(similar) = self.similar(fetch, origin, exchange)
        {
            self.hints.lift(similar);
        }
        if let Some(transfer) = Transfer::of(fetch)
            && (fetch.is_last_block && !has_more(content) || content.code.class() > 2)
        {
            self.upstreams.end_transfer(origin, &transfer);
        }
        self.settle_fetch(id, fetch, content, Outcome::of(Cause::Origin), now);
    }

    /// An exchange ended without a response. Refused at its first copy, a name's next address may
    /// do: nothing was executed.
    pub(crate) fn failed(&mut self, id: FetchId, failure: Failure, trace: Option<Box<Trace>>, now: Instant) {
        let course = trace.as_deref().and_then(Trace::course);
        let evidence = evidence(failure, course.as_ref());
        let Some(fetch) = self.relay.fetch(id) else { return };
        let request = id.0;
        if fetch.is_named
            && let Some(course) = &course
        {
            self.lookups.distrust(course.peer().remote.ip(), now);
        }
        if let Some(course) = &course {
            self.journal.trace(request, course);
        }
        if failure == Failure::Unreachable
            && evidence != Evidence::OutcomeUnknown
            && fetch.earlier().is_empty()
            && !self.clients.is_gone(id)
            && let Some((addresses, content)) = self.alternatives.take(id)
        {
            self.relay.start_over(id, evidence);
            self.try_addresses(id, addresses.into_iter(), &content.as_content(), now);
            return;
        }
        if let Some(fetch) = self.finish_fetch(id) {
            let others = self.wind_up(id, &fetch, None, now);
            self.answer_failure(id, &fetch, failure, others.max(evidence), now);
        }
    }

    /// A fetch ends for a reason of ours: wherever it stands, it is taken from there.
    pub(crate) fn fail(&mut self, id: FetchId, failure: Failure, now: Instant) {
        let Some(fetch) = self.finish_fetch(id) else { return };
        if fetch.is_named
            && let Phase::Sent(origin, _) = fetch.phase
            && let Some(origin) = self.upstreams.address(origin)
        {
            self.lookups.distrust(origin.ip(), now);
        }
        if failure == Failure::TimedOut
            && let Phase::Sent(_, exchange) = fetch.phase
            && let Some(down) = self.upstreams.missed_in(exchange, now)
        {
            // As long as its client is known.
            self.tell_down(id, down);
        }
        let known = self.wind_up(id, &fetch, None, now);
        let known = known.max(evidence(failure, None));
        self.answer_failure(id, &fetch, failure, known, now);
    }

    /// Takes a fetch that is over from wherever it still stands, but for the exchange that ended it.
    /// Returns what these exchanges leave to be said.
    #[inline]
    pub(crate) fn wind_up(
        &mut self,
        id: FetchId,
        fetch: &Fetch,
        ended: Option<ExchangeId>,
        now: Instant,
    ) -> Evidence {
        self.alternatives.forget(id);
        let is_all = matches!(fetch.phase, Phase::Sent(_, current) if ended == Some(current));
        if is_all && fetch.rare.is_none() {
            return Evidence::NotSent;
        }
        self.wind_up_any(id, fetch, ended, now)
    }

    fn wind_up_any(
        &mut self,
        id: FetchId,
        fetch: &Fetch,
        ended: Option<ExchangeId>,
        now: Instant,
    ) -> Evidence {
        if let Some(mark) = fetch.mark() {
            self.loops.leave(mark);
        }
        let mut known = Evidence::NotSent;
        let current = match fetch.phase {
            Phase::LookingUp => None,
            Phase::Queued(origin) => {
                self.upstreams.unqueue(id, origin, fetch.client);
                None
            }
            Phase::Sent(_, exchange) => Some(exchange),
        };
        for &exchange in fetch.earlier().iter().chain(&current) {
            if Some(exchange) == ended {
                continue;
            }
            if let Some(course) = self.upstreams.cancel(exchange, now) {
                known = known.max(evidence(Failure::TimedOut, Some(&course)));
                self.journal.trace(id.0, &course);
            }
        }
        known
    }

    pub(crate) fn answer_failure(
        &mut self,
        id: FetchId,
        fetch: &Fetch,
        failure: Failure,
        known: Evidence,
        now: Instant,
    ) {
        let known = fetch.evidence.max(known);
        let mut answer = std::mem::take(&mut self.answer);
        let content = self.relay.answer(Answer::for_failure(failure, known), &mut answer);
        let may_try_again = known != Evidence::OutcomeUnknown;
        let outcome =
            Outcome { cause: Cause::Failed(failure), evidence: Some(known), is_kept: !may_try_again };
        self.settle_fetch(id, fetch, &content, outcome, now);
        self.answer = answer;
    }

    pub(crate) fn refuse(
        &mut self,
        request: ExchangeId,
        no_response: NoResponse,
        refusal: Refusal,
        now: Instant,
    ) {
        let mut answer = std::mem::take(&mut self.answer);
        let content = self.relay.answer(refusal, &mut answer);
        self.answer(request, no_response, &content, Cause::Refused, None, now);
        self.answer = answer;
    }

    pub(crate) fn refuse_fetch(&mut self, id: FetchId, fetch: &Fetch, refusal: Refusal, now: Instant) {
        let mut answer = std::mem::take(&mut self.answer);
        let content = self.relay.answer(refusal, &mut answer);
        let outcome = Outcome { is_kept: false, ..Outcome::of(Cause::Refused) };
        self.settle_fetch(id, fetch, &content, outcome, now);
        self.answer = answer;
    }

    /// Answers the request of a fetch that is over, and equal ones that wait for the same answer.
    pub(crate) fn settle_fetch(
        &mut self,
        FetchId(request): FetchId,
        fetch: &Fetch,
        content: &Content<'_>,
        Outcome { cause, evidence, is_kept }: Outcome,
        now: Instant,
    ) {
        let id = FetchId(request);
        if !(self.clients.some_are_gone() && self.answer_the_gone(id, fetch, content, evidence, now)) {
            let before = self.downstream.outstanding();
            self.answer(request, fetch.no_response, content, cause, evidence, now);
            if self.downstream.outstanding() > before {
                self.shares.take_for_response(request, Site::of(fetch.client));
            }
        }
        for waiter in self.guards.settle(request, content, is_kept) {
            self.answer(waiter.request, waiter.no_response, content, Cause::Joined, evidence, now);
        }
    }

    /// Answers a request, if its client wants to hear it and may.
    pub(crate) fn answer(
        &mut self,
        request: ExchangeId,
        no_response: NoResponse,
        content: &Content<'_>,
        cause: Cause,
        evidence: Option<Evidence>,
        now: Instant,
    ) {
        if no_response.suppresses(content.code) {
            self.journal.answered(request, content, cause, evidence, now);
            let _ = self.downstream.stay_silent(request, now);
            return;
        }
        if self.downstream.respond(request, content, now) == Err(Refused::Unverified) {
            let mut short = Vec::new();
            let content = self.relay.answer(Refusal::UNVERIFIED, &mut short);
            self.journal.answered(request, &content, Cause::Withheld, evidence, now);
            let _ = self.downstream.respond(request, &content, now);
            return;
        }
        self.journal.answered(request, content, cause, evidence, now);
    }

    pub(crate) fn alert(&mut self, alert: Alert) {
        self.journal.alert(alert);
    }
}

/// Whether further blocks of a response are to be fetched.
fn has_more(content: &Content<'_>) -> bool {
    let block = content.options.first(OptionNumber::BLOCK2).and_then(Block::parse);
    block.is_some_and(|block| block.more)
}

/// What an exchange leaves to be said; without one nothing left.
fn evidence(failure: Failure, course: Option<&Course<'_>>) -> Evidence {
    course.map_or(Evidence::NotSent, |course| Evidence::after(failure, course.copies(), course.acks() > 0))
}
