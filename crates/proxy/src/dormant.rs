//! An origin that is down: one request at a time asks whether it is back, so that nobody waits in vain.
//!
//! ```text
//! two exchanges failed, the copies of which span `max_wait`, and nothing was heard
//!        │ no probe sooner than the pause
//!        ├────────┬────────────────┬───────────────────────────────┬──▶ the pause doubles, to a minute
//!     is down    probe            probe                           probe
//! ```
//! A probe is a real request: the one that has waited longest, Confirmable before Non-confirmable, or a
//! new one when none waits. Every other new request is told at once when to come again. What was accepted
//! before keeps its place in the queue: should the origin come back in time, it is answered. Copies have to
//! span `max_wait` so that an outage which a request can outlive harms none that was begun in it.
//!
//! What the network refuses at once needs none of this, since nobody waits for it; it counts as a failure
//! all the same, and an origin is found to be down when a request runs out of time.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::Trace;
use coapway_message::{Code, ExchangeId, Failure};
use coapway_relay::{Answer, FetchId, Text, UpstreamId};
use coapway_time::Instant;

use crate::address::Site;
use crate::alert::{Alert, Whose};
use crate::answers::Outcome;
use crate::cause::Cause;
use crate::origin::Origin;
use crate::proxy::Proxy;
use crate::silence::{Down, Rest, Turn};
use crate::upstreams::{Outstanding, Progress, Upstreams};

impl Origin {
    /// Which of the requests that wait may leave.
    #[inline]
    pub(crate) fn turn(&self, now: Instant) -> Turn {
        self.silence.rest.map_or(Turn::Any, |rest| self.turn_at_rest(rest, now))
    }

    fn turn_at_rest(&self, rest: Rest, now: Instant) -> Turn {
        if self.silence.is_of_one().is_some_and(|site| self.queue.has_others_than(site)) {
            return Turn::Any;
        }
        if self.window.outstanding() > 0 {
            // When that one ends, the queue is looked at again.
            return Turn::None(None);
        }
        if now < rest.next {
            return Turn::None(Some(rest.next));
        }
        let oldest =
            self.queue.first_of_each().min_by_key(|queued| (!queued.order.confirmable, queued.since));
        oldest.map_or(Turn::Any, |queued| Turn::Probe(queued.fetch))
    }
}

impl Upstreams {
    /// An exchange ended without an answer; `trace` says how it went.
    ///
    /// A Non-confirmable request says nothing: there are origins that never answer one. Returns what is to be
    /// told: that the origin is down, or that it is so for everybody now.
    pub(crate) fn missed(
        &mut self,
        (index, site): (u32, Site),
        trace: &Trace,
        failure: Failure,
        now: Instant,
    ) -> Option<Down> {
        if failure == Failure::TimedOut && trace.acks == 0 {
            self.await_late(index, trace, now);
        }
        let origin = self.origins.get_mut(index)?;
        let parameters = self.parameters.get(origin.upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let [Some(first), Some(last)] = [trace.copies.first(), trace.copies.last()] else { return None };
        let was_heard = origin.window.last_arrival().is_some_and(|arrival| arrival > first.sent);
        if !parameters.dormant || !trace.confirmable || trace.acks > 0 || was_heard {
            return None;
        }
        let silence = &mut origin.silence;
        let (had_begun, was_of_several) = (silence.has_begun(), silence.is_of_several());
        let is_down = silence.missed(site, first.sent, last.sent, parameters.max_wait)
            && failure == Failure::TimedOut
            && !silence.is_dormant();
        if is_down {
            silence.rest = Some(Rest::begin(origin.round_trip.in_force(parameters.max_wait), now));
            if silence.is_of_several() {
                origin.window.restart();
            }
        }
        if is_down {
            self.may_move.push(index);
        }
        let address = origin.address;
        let down = silence.rest.and_then(|rest| {
            let is_for_all = silence.is_of_several();
            let goes_on = !is_for_all && origin.going.on(site, parameters.max_wait, now);
            let is_news = is_down && !goes_on || is_for_all && !was_of_several;
            silence.is_told |= is_news;
            let (silent_for, probe_in) = (now.since(silence.since()), rest.next.since(now));
            let (upstream, origin) = (origin.upstream, origin.address);
            is_news.then_some(Down { upstream, origin, is_for_all, silent_for, probe_in })
        });
        if !had_begun {
            self.origins.silence_begins(address);
        }
        down
    }

    /// The time of an exchange under way is over.
    pub(crate) fn missed_in(&mut self, exchange: ExchangeId, now: Instant) -> Option<Down> {
        let Outstanding { origin, site, .. } = self.known(exchange)?;
        let trace = self.endpoint.trace(exchange)?.trace();
        self.missed((origin, site), &trace, Failure::TimedOut, now)
    }

    /// Something came from an origin.
    #[inline]
    pub(crate) fn heard(&mut self, index: u32) {
        if self.origins.some_are_silent() {
            self.break_silence(index, true);
        }
    }

    /// Something came that belongs to nothing under way, perhaps from an origin that is taken to be down.
    #[inline]
    pub(crate) fn heard_from(&mut self, address: SocketAddr) {
        if !self.origins.some_are_silent() || !self.origins.is_silent(address) {
            return;
        }
        for number in 0..self.parameters.len() as u32 {
            if let Some(index) = self.origins.index(address, UpstreamId(number)) {
                self.break_silence(index, true);
            }
        }
    }

    /// Forgets what failed. An origin that was down is `back`, or nobody cares any more.
    pub(crate) fn break_silence(&mut self, index: u32, back: bool) {
        let Some(origin) = self.origins.get_mut(index).filter(|origin| origin.silence.has_begun()) else {
            return;
        };
        let silence = std::mem::take(&mut origin.silence);
        let (upstream, origin) = (origin.upstream, origin.address);
        self.origins.silence_ends(origin);
        if silence.is_dormant() {
            self.may_move.push(index);
            if back && silence.is_told {
                self.progress.push_back(Progress::Alert(Alert::OriginBack { upstream, origin }));
            }
        }
    }

    /// Whether some origin may be down.
    pub(crate) fn some_are_silent(&self) -> bool {
        self.origins.some_are_silent()
    }

    /// How long a new request had better stay away from an origin; nothing, when it may be sent.
    fn dormant_for(
        &mut self,
        address: SocketAddr,
        upstream: UpstreamId,
        client: u64,
        now: Instant,
    ) -> Option<Duration> {
        let origin = self.origins.get_mut(self.origins.index(address, upstream)?)?;
        let rest = origin.silence.rest?;
        if origin.silence.is_of_one().is_some_and(|site| site != Site::of(client)) {
            return None;
        }
        let is_probe = origin.turn(now) == Turn::Any
            && origin.starved.is_none()
            && !origin.silence.is_for_others(client, now);
        if !is_probe {
            origin.silence.spared(client);
        }
        // With a probe under way whose time is over, nobody can tell; it is asked again as often as we ask.
        let wait = if now < rest.next { rest.next.since(now) } else { rest.pause };
        (!is_probe).then_some(wait)
    }
}

impl Proxy {
    /// An origin is down, as the failure of this fetch shows.
    pub(crate) fn tell_down(&mut self, fetch: FetchId, down: Down) {
        let Down { upstream, origin, is_for_all, silent_for, probe_in } = down;
        let whose = match self.downstream.requester(fetch.0) {
            _ if is_for_all => Whose::Everybody,
            Some(client) => Whose::Site(client.remote),
            None => Whose::OneSite,
        };
        self.alert(Alert::OriginDown { upstream, origin, whose, silent_for, probe_in });
    }

    /// Keeps a request from an origin that is down: another address of its name may do, else its client
    /// is told when to come again. Says whether that is so.
    pub(crate) fn spare(&mut self, id: FetchId, origin: SocketAddr, now: Instant) -> bool {
        let Some(fetch) = self.relay.fetch(id) else { return false };
        let Some(wait) = self.upstreams.dormant_for(origin, fetch.upstream, fetch.client, now) else {
            return false;
        };
        if !fetch.earlier().is_empty() {
            // It is the probe, whose copies were in vain; its answer is still waited for.
            if let Some(rare) = self.relay.fetch_mut(id).and_then(|fetch| fetch.rare.as_mut()) {
                rare.earlier.pop();
            }
            return true;
        }
        if let Some((addresses, content)) = self.alternatives.take(id) {
            self.try_addresses(id, addresses.into_iter(), &content.as_content(), now);
            return true;
        }
        let Some(fetch) = self.finish_fetch(id) else { return true };
        let known = fetch.evidence.max(self.wind_up(id, &fetch, None, now));
        let seconds = wait.as_micros().div_ceil(1_000_000).max(1);
        let answer = Answer {
            code: Code::SERVICE_UNAVAILABLE,
            max_age: u32::try_from(seconds).unwrap_or(u32::MAX),
            evidence: Some(known),
            text: Text::Words("origin is down"),
        };
        let mut scratch = std::mem::take(&mut self.answer);
        let content = self.relay.answer(answer, &mut scratch);
        let outcome = Outcome { cause: Cause::Dormant, evidence: Some(known), is_kept: false };
        self.settle_fetch(id, &fetch, &content, outcome, now);
        self.answer = scratch;
        true
    }
}
