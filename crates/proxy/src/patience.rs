//! When a client must have given up: then nothing more is done for its request.
//!
//! A request that has not left is answered and does not leave. Of one that has, no further copy leaves; a
//! response is still listened for, and goes to the client unless that has used the token again.

mod lives;

use std::net::SocketAddr;
use std::time::Duration;

use coapway_message::{Content, Evidence, ExchangeId, Failure, Token};
use coapway_relay::{Fetch, FetchId, Phase};
use coapway_time::{Instant, TimerId, Timers};
use hashbrown::HashMap;

use self::lives::Lives;
use crate::cause::Cause;
use crate::proxy::Proxy;

/// How it is known that a client has given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// It is not: each request has its time.
    #[default]
    Off,
    /// A client waits so long; and one that uses the token of an open request for another has given up.
    After(Duration),
    /// One that uses the token of an open request for another has given up (RFC 7252 §5.3.1), and so had
    /// one that rejects a separate response. How long its requests lived then tells its patience.
    Learned,
}

/// Why a client is taken to have given up a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// Its patience is over, as far as we know.
    Silence,
    /// Its token stands for another request now.
    Token,
}

/// A request that was open when it was noted; it may have been answered since.
#[derive(Debug)]
struct Open {
    fetch: FetchId,
    client: SocketAddr,
    token: Token,
    timer: Option<TimerId>,
    gone: Option<Sign>,
}

/// The open requests of clients, while it matters.
#[derive(Debug)]
pub(crate) struct Clients {
    patience: Patience,
    /// By slot of the fetch.
    open: Vec<Option<Open>>,
    by_token: HashMap<(SocketAddr, Token), FetchId, ahash::RandomState>,
    timers: Timers<FetchId>,
    /// Fetches whose clients have given up.
    gone: usize,
    lives: Lives,
}

impl Clients {
    pub(crate) fn new(patience: Patience, hasher: ahash::RandomState) -> Self {
        Self {
            patience,
            open: Vec::new(),
            by_token: HashMap::with_hasher(hasher.clone()),
            timers: Timers::new(),
            gone: 0,
            lives: Lives::new(hasher),
        }
    }

    /// From now on it is known in another way.
    pub(crate) const fn set(&mut self, patience: Patience) {
        self.patience = patience;
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.patience != Patience::Off
    }

    fn is_learning(&self) -> bool {
        self.patience == Patience::Learned
    }

    #[inline]
    pub(crate) const fn some_are_gone(&self) -> bool {
        self.gone > 0
    }

    /// Whether the client of a fetch has given up.
    pub(crate) fn is_gone(&self, fetch: FetchId) -> bool {
        self.gone > 0 && self.find(fetch).is_some_and(|open| open.gone.is_some())
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.timers.is_empty() { None } else { self.timers.next_deadline() }
    }

    fn find(&self, fetch: FetchId) -> Option<&Open> {
        self.open.get(fetch.slot as usize)?.as_ref().filter(|open| open.fetch == fetch)
    }

    /// A request is on its way. What its slot held before is over.
    fn begin(&mut self, fetch: FetchId, client: SocketAddr, token: &[u8], now: Instant) {
        let slot = fetch.slot as usize;
        if self.open.len() <= slot {
            self.open.resize_with(slot + 1, || None);
        }
        if let Some(before) = self.open.get_mut(slot).and_then(Option::take) {
            self.forget(before);
        }
        let patience = match self.patience {
            Patience::Off => None,
            Patience::After(patience) => Some(patience),
            Patience::Learned => self.lives.patience(client.ip(), now),
        };
        let timer = patience.map(|patience| self.timers.insert(now + patience, fetch));
        let token = Token::new(token);
        // An empty token is used for several requests at a time by those who tell answers apart otherwise.
        if !token.as_bytes().is_empty() {
            self.by_token.insert((client, token.clone()), fetch);
        }
        self.open[slot] = Some(Open { fetch, client, token, timer, gone: None });
    }

    fn forget(&mut self, open: Open) {
        let key = (open.client, open.token);
        if self.by_token.get(&key) == Some(&open.fetch) {
            self.by_token.remove(&key);
        }
        if let Some(timer) = open.timer {
            self.timers.cancel(timer);
        }
        debug_assert!(open.gone.is_none(), "each that is gone is settled");
    }

    /// The client of a fetch has given up. Certain signs come after uncertain ones.
    fn mark(&mut self, fetch: FetchId, sign: Sign) {
        let open = self.open.get_mut(fetch.slot as usize).and_then(Option::as_mut);
        let Some(open) = open.filter(|open| open.fetch == fetch) else { return };
        self.gone += usize::from(open.gone.replace(sign).is_none());
    }

    /// A fetch is over.
    fn settle(&mut self, fetch: FetchId) -> Option<Sign> {
        let open = self.open.get_mut(fetch.slot as usize).and_then(Option::as_mut);
        let sign = open.filter(|open| open.fetch == fetch)?.gone.take()?;
        self.gone -= 1;
        Some(sign)
    }

    pub(crate) fn check_invariants(&self) {
        let gone = self.open.iter().flatten().filter(|open| open.gone.is_some());
        assert_eq!(gone.count(), self.gone, "each that is gone is counted");
        let timers = self.open.iter().flatten().filter(|open| open.timer.is_some());
        assert!(self.timers.len() <= timers.count(), "each timer has its request");
        assert!(self.by_token.len() <= self.open.len(), "each token has its request");
    }
}

impl Proxy {
    /// A client asks something under a token: what it asked before under the same it has given up.
    pub(crate) fn token_came(&mut self, client: SocketAddr, token: &[u8], now: Instant) {
        if token.is_empty() {
            return;
        }
        let Some(&id) = self.clients.by_token.get(&(client, Token::new(token))) else { return };
        let Some(received) = self.relay.fetch(id).map(|fetch| fetch.received) else { return };
        if self.clients.is_learning() {
            self.clients.lives.ended(client.ip(), now.since(received), now);
        }
        self.given_up(id, Sign::Token, now);
    }

    /// A request is on its way.
    pub(crate) fn await_patience(&mut self, id: FetchId, client: SocketAddr, token: &[u8], now: Instant) {
        self.clients.begin(id, client, token, now);
    }

    /// Clients whose time is over have given up.
    pub(crate) fn end_patience(&mut self, now: Instant) {
        while let Some(id) = self.clients.timers.expire(now) {
            let Some(fetch) = self.relay.fetch(id) else { continue };
            if self.clients.is_gone(id) {
                continue;
            }
            if self.clients.is_learning() {
                // Or else only those who give up early would ever be counted.
                self.clients.lives.ended(fetch.client.ip(), now.since(fetch.received), now);
            }
            self.given_up(id, Sign::Silence, now);
        }
    }

    fn given_up(&mut self, id: FetchId, sign: Sign, now: Instant) {
        let Some(fetch) = self.relay.fetch(id) else { return };
        if self.guards.waiting() > 0 && !fetch.method.is_idempotent() {
            // Others may wait for its answer.
            return;
        }
        self.clients.mark(id, sign);
        match fetch.phase {
            Phase::LookingUp | Phase::Queued(_) => self.fail(id, Failure::TimedOut, now),
            Phase::Sent(_, exchange) => {
                for &exchange in fetch.earlier.iter().chain([&exchange]) {
                    self.upstreams.endpoint.stop_copies(exchange);
                }
            }
        }
    }

    /// Answers the request of a fetch whose client has given up. Says whether that is so.
    pub(crate) fn answer_the_gone(
        &mut self,
        fetch: &Fetch,
        content: &Content<'_>,
        evidence: Option<Evidence>,
        now: Instant,
    ) -> bool {
        let Some(&Some(id)) = self.fetches.get(fetch.request.slot as usize) else { return false };
        match self.clients.settle(id) {
            None => false,
            Some(Sign::Silence) => {
                self.clients.lives.answered(fetch.request);
                let no_response = fetch.no_response;
                self.answer(fetch.request, no_response, content, Cause::ClientGone, evidence, now);
                true
            }
            Some(Sign::Token) => {
                // It would be taken for the answer to the other request.
                self.journal.answered(fetch.request, content, Cause::ClientGone, evidence, now);
                let _ = self.downstream.stay_silent(fetch.request, now);
                true
            }
        }
    }

    /// A request was acknowledged before its answer is there: what its client does with that says
    /// something.
    pub(crate) fn answer_will_be_separate(&mut self, request: ExchangeId) {
        let Some(&Some(id)) = self.fetches.get(request.slot as usize) else { return };
        if let Some(fetch) = self.relay.fetch(id).filter(|fetch| fetch.request == request)
            && self.clients.is_learning()
        {
            self.clients.lives.separate(request, fetch.client.ip(), fetch.received);
        }
    }

    /// A separate response was acknowledged, rejected, or given up.
    pub(crate) fn separate_response_ended(
        &mut self,
        request: ExchangeId,
        outcome: Result<(), Failure>,
        now: Instant,
    ) {
        self.clients.lives.delivered(request, outcome, now);
    }
}
