//! An origin that is down: one request at a time asks whether it is back, so that nobody waits in vain.
//!
//! ```text
//! two whole exchanges failed, and nothing was heard for `max_wait`
//!        │ no probe sooner than the pause
//!        ├────────┬────────────────┬───────────────────────────────┬──▶ the pause doubles, to a minute
//!     is down    probe            probe                           probe
//! ```
//! A probe is a real request: the one that has waited longest, Confirmable before Non-confirmable, or a
//! new one when none waits. Every other new request is told at once when to come again. What was accepted
//! before keeps its place in the queue: should the origin come back in time, it is answered.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::Trace;
use coapway_message::{Code, ExchangeId};
use coapway_relay::{Answer, FetchId, Text, UpstreamId};
use coapway_time::Instant;

use crate::alert::Alert;
use crate::cause::Cause;
use crate::origin::Origin;
use crate::proxy::Proxy;
use crate::upstreams::{Progress, Upstreams};

/// So many exchanges have to fail.
const FAILURES: u32 = 2;
/// Between the learned timeout of an origin and the first pause.
const MARGIN: Duration = Duration::from_secs(1);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The exchanges that failed since an origin was heard, and what follows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    failures: u32,
    /// When the first of them began.
    since: Instant,
    rest: Option<Rest>,
}

/// The pace of probes.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// None leaves sooner.
    next: Instant,
    /// From the next to the one after it.
    pause: Duration,
}

impl Rest {
    fn begin(timeout: Duration, now: Instant) -> Self {
        let pause = (timeout + MARGIN).min(LONGEST_PAUSE);
        Self { next: now, pause }.further(now)
    }

    fn further(self, now: Instant) -> Self {
        Self { next: now + self.pause, pause: (self.pause * 2).min(LONGEST_PAUSE) }
    }
}

/// Which request may leave for an origin now, as far as its silence is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Any.
    Any,
    /// This one alone.
    Probe(FetchId),
    /// None before this time, if it is known.
    None(Option<Instant>),
}

impl Silence {
    /// Whether exchanges failed since the origin was heard.
    pub(crate) const fn has_begun(&self) -> bool {
        self.failures > 0
    }

    pub(crate) const fn is_dormant(&self) -> bool {
        self.rest.is_some()
    }

    /// A request leaves.
    #[inline]
    pub(crate) fn sent(&mut self, now: Instant) {
        if let Some(rest) = &mut self.rest {
            *rest = rest.further(now);
        }
    }

    /// An exchange that began then has failed, and nothing was heard since it began. Says whether the
    /// origin is down from now on.
    fn missed(&mut self, began: Instant, most: Duration, timeout: Duration, now: Instant) -> bool {
        self.since = if self.failures == 0 { began } else { self.since.min(began) };
        self.failures = self.failures.saturating_add(1);
        if self.rest.is_some() || self.failures < FAILURES || now.since(self.since) < most {
            return false;
        }
        self.rest = Some(Rest::begin(timeout, now));
        true
    }
}

impl Origin {
    /// Which of the requests that wait may leave.
    #[inline]
    pub(crate) fn turn(&self, now: Instant) -> Turn {
        self.silence.rest.map_or(Turn::Any, |rest| self.turn_at_rest(rest, now))
    }

    fn turn_at_rest(&self, rest: Rest, now: Instant) -> Turn {
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
    /// A Non-confirmable request says nothing: there are origins that never answer one.
    pub(crate) fn missed(&mut self, index: u32, trace: &Trace, now: Instant) {
        let Some(origin) = self.origins.get_mut(index) else { return };
        let parameters = self.parameters.get(origin.upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let Some(began) = trace.copies.first().map(|first| first.sent) else { return };
        let was_heard = origin.window.last_arrival().is_some_and(|arrival| arrival > began);
        if !parameters.dormant || !trace.confirmable || trace.acks > 0 || was_heard {
            return;
        }
        let timeout = origin.round_trip.in_force(parameters.max_wait);
        let had_begun = origin.silence.has_begun();
        let is_down = origin.silence.missed(began, parameters.max_wait, timeout, now);
        if is_down {
            origin.window.restart();
        }
        let (upstream, origin) = (origin.upstream, origin.address);
        self.origins.silent += usize::from(!had_begun);
        if is_down {
            self.progress.push_back(Progress::Alert(Alert::OriginDown { upstream, origin }));
            self.may_move.push(index);
        }
    }

    /// The time of an exchange under way is over.
    pub(crate) fn missed_in(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(index) = self.known(exchange).map(|outstanding| outstanding.origin) else { return };
        if let Some(trace) = self.endpoint.trace(exchange).map(|course| course.trace()) {
            self.missed(index, &trace, now);
        }
    }

    /// Something came from an origin.
    #[inline]
    pub(crate) fn heard(&mut self, index: u32) {
        if self.origins.silent > 0 {
            self.break_silence(index, true);
        }
    }

    /// Something came that belongs to nothing under way, perhaps from an origin that is taken to be down.
    #[inline]
    pub(crate) fn heard_from(&mut self, address: SocketAddr) {
        if self.origins.silent == 0 {
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
        let was_dormant = std::mem::take(&mut origin.silence).is_dormant();
        let (upstream, origin) = (origin.upstream, origin.address);
        self.origins.silent -= 1;
        if was_dormant {
            self.may_move.push(index);
            if back {
                self.progress.push_back(Progress::Alert(Alert::OriginBack { upstream, origin }));
            }
        }
    }

    /// Whether some origin may be down.
    pub(crate) const fn some_are_silent(&self) -> bool {
        self.origins.silent > 0
    }

    /// How long a new request had better stay away from an origin; nothing, when it may be sent.
    fn dormant_for(&self, address: SocketAddr, upstream: UpstreamId, now: Instant) -> Option<Duration> {
        let origin = self.origins.get(self.origins.index(address, upstream)?)?;
        let rest = origin.silence.rest?;
        let is_probe = origin.turn(now) == Turn::Any && !origin.is_starved;
        // With a probe under way whose time is over, nobody can tell; it is asked again as often as we ask.
        let wait = if now < rest.next { rest.next.since(now) } else { rest.pause };
        (!is_probe).then_some(wait)
    }
}

impl Proxy {
    /// Keeps a request from an origin that is down: another address of its name may do, else its client
    /// is told when to come again. Says whether that is so.
    pub(crate) fn spare(&mut self, id: FetchId, origin: SocketAddr, now: Instant) -> bool {
        let Some(fetch) = self.relay.fetch(id) else { return false };
        let Some(wait) = self.upstreams.dormant_for(origin, fetch.upstream, now) else { return false };
        if !fetch.earlier.is_empty() {
            // It is the probe, whose copies were in vain; its answer is still waited for.
            if let Some(fetch) = self.relay.fetch_mut(id) {
                fetch.earlier.pop();
            }
            return true;
        }
        if let Some((addresses, content)) = self.alternatives.take(id) {
            self.try_addresses(id, addresses.into_iter(), &content.as_content(), now);
            return true;
        }
        let Some(fetch) = self.relay.finish(id) else { return true };
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
        self.settle_fetch(&fetch, &content, Cause::Dormant, Some(known), false, now);
        self.answer = scratch;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(30);
    const TIMEOUT: Duration = Duration::from_secs(2);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn missed(silence: &mut Silence, began: u64, now: u64) -> bool {
        silence.missed(at(began), WAIT, TIMEOUT, at(now))
    }

    #[test]
    fn it_takes_two_failures_and_a_silence_of_the_longest_wait() {
        let mut silence = Silence::default();
        assert!(!missed(&mut silence, 10, 40), "the first");
        assert!(missed(&mut silence, 11, 41));
        assert!(silence.is_dormant() && !missed(&mut silence, 12, 42), "told once");
        let mut refused = Silence::default();
        for second in 0..30 {
            assert!(!missed(&mut refused, second, second), "{second} s are not long");
        }
        assert!(missed(&mut refused, 30, 30));
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let mut silence = Silence::default();
        missed(&mut silence, 0, 30);
        missed(&mut silence, 0, 30);
        let mut now = at(30);
        let mut pauses = Vec::new();
        while pauses.len() < 7 {
            let next = silence.rest.expect("down").next;
            pauses.push(next.since(now).as_secs());
            now = next;
            silence.sent(now);
        }
        assert_eq!(pauses, [3, 6, 12, 24, 48, 60, 60]);
    }
}
