//! The open requests of clients, and who has given one up.

mod lives;

use std::net::{IpAddr, SocketAddr};

use coapway_message::Token;
use coapway_relay::FetchId;
use coapway_time::{Instant, TimerId, Timers};
use hashbrown::HashMap;

use self::lives::Lives;
use crate::parameters::Patience;

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
    pub(crate) by_token: HashMap<(SocketAddr, Token), FetchId, ahash::RandomState>,
    pub(crate) timers: Timers<FetchId>,
    /// Fetches whose clients have given up.
    gone: usize,
    pub(crate) lives: Lives,
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

    pub(crate) fn is_learning(&self) -> bool {
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

    /// Who asked.
    pub(crate) fn address(&self, fetch: FetchId) -> Option<IpAddr> {
        Some(self.find(fetch)?.client.ip())
    }

    fn find(&self, fetch: FetchId) -> Option<&Open> {
        self.open.get(fetch.0.slot as usize)?.as_ref().filter(|open| open.fetch == fetch)
    }

    /// A request is on its way. What its slot held before is over.
    pub(crate) fn begin(&mut self, fetch: FetchId, client: SocketAddr, token: &[u8], now: Instant) {
        let slot = fetch.0.slot as usize;
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
    pub(crate) fn mark(&mut self, fetch: FetchId, sign: Sign) {
        let open = self.open.get_mut(fetch.0.slot as usize).and_then(Option::as_mut);
        let Some(open) = open.filter(|open| open.fetch == fetch) else { return };
        self.gone += usize::from(open.gone.replace(sign).is_none());
    }

    /// A fetch is over.
    pub(crate) fn settle(&mut self, fetch: FetchId) -> Option<Sign> {
        let open = self.open.get_mut(fetch.0.slot as usize).and_then(Option::as_mut);
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
