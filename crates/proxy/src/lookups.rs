//! Names of origins: one look-up per name at a time, answers kept briefly.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use ahash::RandomState;
use coapway_message::OwnedContent;
use coapway_relay::FetchId;
use coapway_time::Instant;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// How long addresses are used; the operating system's resolver does not say how long it knows them.
const POSITIVE: Duration = Duration::from_secs(30);
/// How long a failed look-up stands.
const NEGATIVE: Duration = Duration::from_secs(2);

/// The addresses of a name, best first.
pub(crate) type Addresses = SmallVec<[IpAddr; 2]>;

/// A fetch that waits for a name.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) fetch: FetchId,
    pub(crate) port: u16,
    pub(crate) content: OwnedContent,
}

/// What is known of a name.
#[derive(Debug)]
pub(crate) enum Resolution {
    /// Its addresses; none when it is unknown.
    Known(Addresses),
    /// A look-up is under way; the fetch was put to those who wait.
    Pending,
    /// Too many names at a time.
    Full,
}

#[derive(Debug)]
enum State {
    Pending(Vec<Waiting>),
    Known { addresses: Addresses, until: Instant },
}

#[derive(Debug)]
pub(crate) struct Lookups {
    names: HashMap<Box<str>, State, RandomState>,
    under_way: HashMap<u64, Box<str>, RandomState>,
    /// Known names in the order in which they were learned.
    learned: VecDeque<Box<str>>,
    asked: VecDeque<(u64, Box<str>)>,
    next: u64,
    most: usize,
}

impl Lookups {
    pub(crate) fn new(most: usize, hasher: RandomState) -> Self {
        Self {
            names: HashMap::with_hasher(hasher.clone()),
            under_way: HashMap::with_hasher(hasher),
            learned: VecDeque::new(),
            asked: VecDeque::new(),
            next: 0,
            most,
        }
    }

    /// Finds the addresses of `name`, or has them looked up and keeps what `waiting` makes.
    pub(crate) fn find(&mut self, name: &str, waiting: impl FnOnce() -> Waiting, now: Instant) -> Resolution {
        match self.names.get_mut(name) {
            Some(State::Pending(others)) => {
                others.push(waiting());
                return Resolution::Pending;
            }
            Some(State::Known { addresses, until }) if *until > now => {
                return Resolution::Known(addresses.clone());
            }
            Some(State::Known { .. }) | None => {}
        }
        self.make_room(now);
        if self.names.len() >= self.most && !self.names.contains_key(name) {
            return Resolution::Full;
        }
        let lookup = self.next;
        self.next += 1;
        self.names.insert(name.into(), State::Pending(vec![waiting()]));
        self.under_way.insert(lookup, name.into());
        self.asked.push_back((lookup, name.into()));
        Resolution::Pending
    }

    /// A look-up ended; returns who waited for it, some of whom may have ended since.
    pub(crate) fn resolved(&mut self, lookup: u64, addresses: &[IpAddr], now: Instant) -> Vec<Waiting> {
        let Some(name) = self.under_way.remove(&lookup) else { return Vec::new() };
        let until = now + if addresses.is_empty() { NEGATIVE } else { POSITIVE };
        let known = State::Known { addresses: SmallVec::from_slice(addresses), until };
        self.learned.push_back(name.clone());
        match self.names.insert(name, known) {
            Some(State::Pending(waiting)) => waiting,
            Some(State::Known { .. }) | None => Vec::new(),
        }
    }

    /// An exchange with this address came to nothing: names that lead there are looked up anew.
    pub(crate) fn distrust(&mut self, address: IpAddr) {
        for state in self.names.values_mut() {
            if let State::Known { addresses, until } = state
                && addresses.contains(&address)
            {
                *until = Instant::ZERO;
            }
        }
    }

    pub(crate) fn poll_asked(&mut self) -> Option<(u64, Box<str>)> {
        self.asked.pop_front()
    }

    fn make_room(&mut self, now: Instant) {
        while let Some(name) = self.learned.front() {
            match self.names.get(name) {
                Some(State::Known { until, .. }) if *until > now && self.names.len() < self.most => return,
                Some(State::Known { .. }) => drop(self.names.remove(name)),
                Some(State::Pending(_)) | None => {}
            }
            self.learned.pop_front();
        }
    }
}
