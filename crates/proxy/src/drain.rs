//! The end of a life: who is still answered, and when.
//!
//! ```text
//! asked to stop          `until`                  LAST_COPIES later
//!      │ new requests: 5.03 │ what still runs is answered │ what waits in line leaves once
//!      └────────────────────┴─────────────────────────────┘ the process ends, or earlier when idle
//! ```

use std::time::Duration;

use coapway_endpoint::SocketId;
use coapway_message::{Evidence, Failure};
use coapway_relay::{FetchId, Phase, Refusal};
use coapway_time::Instant;

use crate::proxy::Proxy;

/// How long the copies of the last separate responses may take: three of them, by the usual parameters.
const LAST_COPIES: Duration = Duration::from_secs(4);
/// So many requests are answered in one wake.
const AT_ONCE: usize = 256;

impl Proxy {
    /// When a drain is over, whatever is still under way then; it is over before when
    /// [`Proxy::is_idle`].
    pub fn drained_at(&self) -> Option<Instant> {
        self.draining.map(|until| until + LAST_COPIES)
    }

    /// Nothing more will come: what is summed up for events and records is told now.
    pub fn close(&mut self, now: Instant) {
        self.journal.tell_all(now);
    }

    /// Why a listener takes no new request, if it does not.
    pub(crate) fn closes(&self, listener: SocketId, now: Instant) -> Option<Refusal> {
        match self.draining {
            Some(until) => Some(Refusal::draining(until.since(now))),
            None if self.closing.contains(&listener) => Some(Refusal::DRAINING),
            None => None,
        }
    }

    /// When [`Proxy::handle_end_of_drain`] has something to do.
    pub(crate) fn end_of_drain(&self) -> Option<Instant> {
        let until = self.draining?;
        if !self.relay.is_empty() {
            return Some(until);
        }
        (self.downstream.waiting_responses() > 0).then_some(until + LAST_COPIES)
    }

    /// Answers what a drain has left no time for.
    pub(crate) fn handle_end_of_drain(&mut self, now: Instant) {
        if self.end_of_drain().is_none_or(|end| end > now) {
            return;
        }
        // Those that have not left go first: others that end would make room for them to leave.
        let mut room = AT_ONCE;
        for has_left in [false, true] {
            let due =
                self.relay.fetches().filter(|(_, fetch)| matches!(fetch.phase, Phase::Sent(..)) == has_left);
            let due: Vec<_> = due.map(|(id, _)| id).take(room).collect();
            room -= due.len();
            due.into_iter().for_each(|id| self.cut_short(id, now));
        }
        if self.relay.is_empty() && self.drained_at().is_some_and(|end| end <= now) {
            self.downstream.hurry(now);
        }
    }

    fn cut_short(&mut self, id: FetchId, now: Instant) {
        let Some(fetch) = self.finish_fetch(id) else { return };
        let known = fetch.evidence.max(self.wind_up(id, &fetch, None, now));
        match known {
            Evidence::NotSent => self.refuse_fetch(id, &fetch, Refusal::DRAINING, now),
            Evidence::NotExecuted | Evidence::OutcomeUnknown => {
                self.answer_failure(id, &fetch, Failure::TimedOut, known, now);
            }
        }
    }
}
