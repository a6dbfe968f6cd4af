//! Equal POST and PATCH requests of one client that are answered once (`post_guard = "fingerprint"`).
//!
//! Two equal requests with Message IDs of their own can both be meant, so this is for those who ask
//! for it. What counts as equal is said by a keyed digest of 128 bits over client, port aside, and
//! everything the origin would get but Message ID and token (R-USR-11).

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use ahash::RandomState;
use coapway_message::{Content, ExchangeId, OwnedContent};
use coapway_relay::{NoResponse, Plan};
use coapway_time::Instant;
use hashbrown::HashMap;

/// Requests that are remembered at a time; further ones are not guarded.
const MOST: usize = 1 << 16;
/// Bytes of answers that are remembered at a time.
const MOST_BYTES: usize = 16 << 20;
/// Requests that wait for the answer of one.
const MOST_WAITING: usize = 64;
/// A request that outlives its window is looked at again after this.
const RETRY: Duration = Duration::from_secs(1);

/// A request that waits for the answer of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) request: ExchangeId,
    pub(crate) no_response: NoResponse,
}

/// A digest of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u64, u64);

/// What is known of a request when an equal one comes.
#[derive(Debug)]
pub(crate) enum Known<'g> {
    /// Nothing; it is to be forwarded.
    New,
    /// It is under way; the new one will get its answer.
    Joined,
    /// Too many wait for it already.
    Full,
    /// It was answered with this.
    Answered(Content<'g>),
}

#[derive(Debug)]
struct Guard {
    until: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    UnderWay(Vec<Waiter>),
    Answered(OwnedContent),
}

#[derive(Debug)]
pub(crate) struct Guards {
    guards: HashMap<Fingerprint, Guard, RandomState>,
    /// The requests under way that others may wait for.
    under_way: HashMap<ExchangeId, Fingerprint, RandomState>,
    /// In order of receipt.
    order: VecDeque<(Instant, Fingerprint)>,
    hashers: [RandomState; 2],
    bytes: usize,
    waiting: usize,
    pub(crate) unguarded: u64,
}

impl Guards {
    pub(crate) fn new(hashers: [RandomState; 2]) -> Self {
        Self {
            guards: HashMap::with_hasher(hashers[0].clone()),
            under_way: HashMap::with_hasher(hashers[0].clone()),
            order: VecDeque::new(),
            hashers,
            bytes: 0,
            waiting: 0,
            unguarded: 0,
        }
    }

    /// Requests that wait for the answer of another.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// The fingerprint of what `client` asks, and of whom.
    pub(crate) fn fingerprint(
        &self,
        client: IpAddr,
        Plan { upstream, destination, content, .. }: &Plan<'_>,
    ) -> Fingerprint {
        let said = (client, upstream, destination, content.code.0);
        let said = (said, content.options.as_encoded(), content.payload);
        let [one, other] = &self.hashers;
        Fingerprint(one.hash_one(said), other.hash_one(said))
    }

    /// Looks for an equal request. A new one waits with it where it is under way.
    pub(crate) fn find(&mut self, fingerprint: Fingerprint, waiter: Waiter, now: Instant) -> Known<'_> {
        self.expire(now);
        match self.guards.get_mut(&fingerprint) {
            Some(Guard { until, .. }) if *until <= now => Known::New,
            Some(Guard { state: State::UnderWay(waiting), .. }) => {
                if waiting.len() >= MOST_WAITING {
                    return Known::Full;
                }
                waiting.push(waiter);
                self.waiting += 1;
                Known::Joined
            }
            Some(Guard { state: State::Answered(answer), .. }) => Known::Answered(answer.as_content()),
            None => Known::New,
        }
    }

    /// A request that [`Guards::find`] did not know is on its way; equal ones are held back `until`.
    pub(crate) fn begin(&mut self, fingerprint: Fingerprint, first: ExchangeId, until: Instant) {
        if self.guards.len() >= MOST || self.guards.contains_key(&fingerprint) {
            self.unguarded += 1;
            return;
        }
        self.guards.insert(fingerprint, Guard { until, state: State::UnderWay(Vec::new()) });
        self.under_way.insert(first, fingerprint);
        self.order.push_back((until, fingerprint));
    }

    /// A request was answered. Returns who waits for the same answer.
    ///
    /// Shape: an answer that says nothing was executed is not `kept`: the next equal request may try
    ///        again.
    pub(crate) fn settle(&mut self, first: ExchangeId, answer: &Content<'_>, kept: bool) -> Vec<Waiter> {
        if self.under_way.is_empty() {
            return Vec::new();
        }
        let Some(fingerprint) = self.under_way.remove(&first) else { return Vec::new() };
        let Some(guard) = self.guards.get_mut(&fingerprint) else { return Vec::new() };
        let answer = OwnedContent::from(*answer);
        let fits = self.bytes + answer.len() <= MOST_BYTES;
        let waiting = match &mut guard.state {
            State::UnderWay(waiting) => std::mem::take(waiting),
            State::Answered(_) => Vec::new(),
        };
        self.waiting -= waiting.len();
        if kept && fits {
            self.bytes += answer.len();
            guard.state = State::Answered(answer);
        } else {
            self.unguarded += u64::from(kept);
            self.guards.remove(&fingerprint);
        }
        waiting
    }

    fn expire(&mut self, now: Instant) {
        while let Some(&(until, fingerprint)) = self.order.front() {
            if until > now {
                return;
            }
            self.order.pop_front();
            match self.guards.get(&fingerprint) {
                Some(Guard { state: State::Answered(answer), until }) if *until <= now => {
                    self.bytes -= answer.len();
                    self.guards.remove(&fingerprint);
                }
                // Its answer is not there yet; it is asked for again once it may be.
                Some(Guard { state: State::UnderWay(_), until }) if *until <= now => {
                    self.order.push_back((now + RETRY, fingerprint));
                    return;
                }
                Some(_) | None => {}
            }
        }
    }

    /// Panics when the tables contradict each other. For simulations, after each step.
    pub(crate) fn check_invariants(&self) {
        let waiting = |guard: &Guard| match &guard.state {
            State::UnderWay(waiting) => waiting.len(),
            State::Answered(_) => 0,
        };
        assert_eq!(self.waiting, self.guards.values().map(waiting).sum::<usize>());
    }
}

#[cfg(test)]
mod tests {
    use coapway_message::{Code, Method};
    use coapway_relay::{Admission, Destination, UpstreamId};

    use super::*;

    fn guards() -> Guards {
        Guards::new([RandomState::with_seeds(1, 2, 3, 4), RandomState::with_seeds(5, 6, 7, 8)])
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn post(payload: &[u8]) -> Content<'_> {
        Content { payload, ..Content::bare(Code::POST) }
    }

    const fn request(slot: u32) -> ExchangeId {
        ExchangeId { slot, generation: 0 }
    }

    const fn waiter(slot: u32) -> Waiter {
        Waiter { request: request(slot), no_response: NoResponse::NONE }
    }

    fn print(guards: &Guards, client: u8, payload: &[u8]) -> Fingerprint {
        guards.fingerprint([10, 0, 0, client].into(), &plan(1, payload))
    }

    fn plan(origin: u8, payload: &[u8]) -> Plan<'_> {
        Plan {
            method: Method::Post,
            upstream: UpstreamId::DEFAULT,
            admission: Admission::Address,
            destination: Destination::Address(([10, 1, 0, origin], 5683).into()),
            route: None,
            content: post(payload),
            path: None,
            no_response: NoResponse::NONE,
            reissuable: false,
            block: false,
            block1: None,
            oscore: false,
        }
    }

    #[test]
    fn an_equal_request_waits_and_then_gets_the_first_one_s_answer() {
        let mut guards = guards();
        let one = print(&guards, 1, b"on");
        assert!(matches!(guards.find(one, waiter(1), at(0)), Known::New));
        guards.begin(one, request(1), at(5));
        assert!(matches!(guards.find(one, waiter(2), at(1)), Known::Joined));
        assert_eq!(guards.waiting(), 1);
        let created = Content::bare(Code::CREATED);
        assert_eq!(guards.settle(request(1), &created, true), [waiter(2)]);
        assert!(matches!(guards.find(one, waiter(3), at(4)), Known::Answered(answer) if answer == created));
        assert!(matches!(guards.find(one, waiter(4), at(5)), Known::New), "the window is over");
        guards.check_invariants();
    }

    #[test]
    fn other_clients_and_other_payloads_are_other_requests() {
        let guards = guards();
        assert_ne!(print(&guards, 1, b"on"), print(&guards, 2, b"on"));
        assert_ne!(print(&guards, 1, b"on"), print(&guards, 1, b"off"));
    }

    #[test]
    fn what_looks_the_same_to_two_origins_is_not_equal() {
        let (guards, client) = (guards(), [10, 0, 0, 1].into());
        let [one, other] = [1, 2].map(|origin| guards.fingerprint(client, &plan(origin, b"on")));
        assert_ne!(one, other);
    }

    #[test]
    fn what_was_not_executed_may_be_tried_again() {
        let mut guards = guards();
        let one = print(&guards, 1, b"on");
        guards.begin(one, request(1), at(5));
        assert!(guards.settle(request(1), &Content::bare(Code::BAD_GATEWAY), false).is_empty());
        assert!(matches!(guards.find(one, waiter(2), at(1)), Known::New));
        assert_eq!(guards.guards.len(), 0);
    }

    #[test]
    fn one_under_way_for_longer_than_its_window_is_forgotten_once_answered() {
        let mut guards = guards();
        let one = print(&guards, 1, b"on");
        guards.begin(one, request(1), at(5));
        assert!(matches!(guards.find(one, waiter(2), at(6)), Known::New));
        guards.settle(request(1), &Content::bare(Code::CHANGED), true);
        guards.find(print(&guards, 9, b""), waiter(3), at(60));
        assert_eq!((guards.guards.len(), guards.bytes, guards.order.len()), (0, 0, 0));
    }
}
