//! Names of origins: one look-up per name at a time, answers kept briefly.
//!
//! A name whose server is silent takes its look-up long. So no more are under way than there are threads for them,
//! sites take turns, none of them has all places, and the names of upstreams have some for themselves.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use ahash::RandomState;
use coapway_message::OwnedContent;
use coapway_relay::FetchId;
use coapway_time::Instant;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::address::{Holder, Site};
use crate::places::{Places, UsedUp};
use crate::queue::{self, FairQueue, Found, Look};

/// How long addresses are used, where the source does not say less.
const POSITIVE: Duration = Duration::from_secs(30);
/// How long a name counts as unknown, and how long known addresses are used on when a look-up failed.
const NEGATIVE: Duration = Duration::from_secs(2);
/// How many fetches of one site, and of all together, may wait for names.
const MOST_WAITING_OF_SITE: u32 = 64;
const MOST_WAITING: usize = 1 << 14;
/// How many look-ups may be under way that clients name the host of, and how many in all: the others are those of
/// upstreams.
const OF_CLIENTS: u32 = 16;
/// Look-ups under way at a time, at the most.
pub const MOST_LOOK_UPS: usize = OF_CLIENTS as usize + 4;

/// The addresses of a name, best first.
pub(crate) type Addresses = SmallVec<[IpAddr; 2]>;

/// A fetch that waits for a name.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) fetch: FetchId,
    /// The number of the client that asked; one site cannot have everybody wait.
    pub(crate) client: u64,
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
    /// Too many names at a time, or too many fetches that wait.
    Full,
}

#[derive(Debug)]
enum State {
    Pending {
        waiting: Vec<Waiting>,
        /// What was known before, to be used on should the look-up fail.
        before: Addresses,
    },
    Known {
        addresses: Addresses,
        since: Instant,
        until: Instant,
    },
}

/// A look-up that waits or is under way.
#[derive(Debug)]
struct Asked {
    name: Box<str>,
    /// Who holds its place, where it is not the name of an upstream.
    client: Option<u64>,
}

/// One that waits for its turn.
#[derive(Debug)]
struct Next(u64);

impl queue::Waiting for Next {
    fn is_patient(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(crate) struct Lookups {
    names: HashMap<Box<str>, State, RandomState>,
    asked: HashMap<u64, Asked, RandomState>,
    /// Known names in the order in which they were learned, and when; a name may have been learned
    /// again since.
    learned: VecDeque<(Instant, Box<str>)>,
    /// Those that are to begin: of upstreams, and of clients.
    of_upstreams: VecDeque<u64>,
    of_clients: FairQueue<Next>,
    places: Places,
    under_way: usize,
    /// How many fetches of a site wait.
    waiting: HashMap<Site, u32, RandomState>,
    waiting_together: usize,
    /// Addresses with which an exchange came to nothing, and when; by time as well, oldest first.
    distrusted: HashMap<IpAddr, Instant, RandomState>,
    distrusted_order: VecDeque<(Instant, IpAddr)>,
    next: u64,
    most: usize,
}

impl Lookups {
    pub(crate) fn new(most: usize, hasher: RandomState) -> Self {
        Self {
            names: HashMap::with_hasher(hasher.clone()),
            asked: HashMap::with_hasher(hasher.clone()),
            learned: VecDeque::new(),
            of_upstreams: VecDeque::new(),
            of_clients: FairQueue::new(hasher.clone()),
            places: Places::new(hasher.clone()),
            under_way: 0,
            waiting: HashMap::with_hasher(hasher.clone()),
            waiting_together: 0,
            distrusted: HashMap::with_hasher(hasher),
            distrusted_order: VecDeque::new(),
            next: 0,
            most,
        }
    }

    /// Finds the addresses of `name`, or has them looked up and keeps what `waiting` makes. `is_upstream` says
    /// whether the configuration names the host, and not the client.
    pub(crate) fn find(
        &mut self,
        (name, is_upstream): (&str, bool),
        client: u64,
        waiting: impl FnOnce() -> Waiting,
        now: Instant,
    ) -> Resolution {
        let before = match self.names.get(name) {
            Some(State::Known { addresses, since, until }) => {
                if *until > now && !self.is_distrusted(addresses, *since) {
                    return Resolution::Known(addresses.clone());
                }
                Some(addresses.clone())
            }
            Some(State::Pending { .. }) | None => None,
        };
        if !self.may_wait(client) {
            return Resolution::Full;
        }
        if let Some(State::Pending { waiting: others, .. }) = self.names.get_mut(name) {
            others.push(waiting());
        } else {
            self.make_room(now);
            if self.names.len() >= self.most && !self.names.contains_key(name) {
                return Resolution::Full;
            }
            let lookup = self.next;
            self.next += 1;
            let pending = State::Pending { waiting: vec![waiting()], before: before.unwrap_or_default() };
            self.names.insert(name.into(), pending);
            let client = (!is_upstream).then_some(client);
            self.asked.insert(lookup, Asked { name: name.into(), client });
            match client {
                Some(client) => self.of_clients.push(client, Next(lookup)),
                None => self.of_upstreams.push_back(lookup),
            }
        }
        *self.waiting.entry(Site::of(client)).or_insert(0) += 1;
        self.waiting_together += 1;
        Resolution::Pending
    }

    /// A look-up ended with addresses, or with none because there is no such name.
    ///
    /// Returns who waited for it, some of whom may have ended since, and the addresses.
    pub(crate) fn resolved(
        &mut self,
        lookup: u64,
        addresses: &[IpAddr],
        ttl: Option<Duration>,
        now: Instant,
    ) -> (Vec<Waiting>, Addresses) {
        let Some((name, waiting, _)) = self.end(lookup) else { return Default::default() };
        let lifetime =
            if addresses.is_empty() { NEGATIVE } else { ttl.map_or(POSITIVE, |ttl| ttl.min(POSITIVE)) };
        let addresses = SmallVec::from_slice(addresses);
        self.learn(name, addresses.clone(), now + lifetime, now);
        (waiting, addresses)
    }

    /// A look-up failed, which says nothing of the name: what was known before is used on for a while,
    /// and where nothing was, nothing is remembered.
    pub(crate) fn failed(&mut self, lookup: u64, now: Instant) -> (Vec<Waiting>, Addresses) {
        let Some((name, waiting, before)) = self.end(lookup) else { return Default::default() };
        if before.is_empty() {
            self.names.remove(&name);
        } else {
            self.learn(name, before.clone(), now + NEGATIVE, now);
        }
        (waiting, before)
    }

    /// An exchange with this address came to nothing: names that lead there are looked up anew for the
    /// next request.
    pub(crate) fn distrust(&mut self, address: IpAddr, now: Instant) {
        while let Some(&(when, oldest)) = self.distrusted_order.front() {
            // What was learned before is not used any more anyway.
            if when + POSITIVE > now && self.distrusted_order.len() < self.most {
                break;
            }
            self.distrusted_order.pop_front();
            if self.distrusted.get(&oldest) == Some(&when) {
                self.distrusted.remove(&oldest);
            }
        }
        if self.distrusted.insert(address, now) != Some(now) {
            self.distrusted_order.push_back((now, address));
        }
    }

    /// At most so many names from now on.
    pub(crate) const fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// The next look-up that begins, if one may.
    pub(crate) fn poll_asked(&mut self) -> Option<(u64, Box<str>)> {
        if self.under_way >= MOST_LOOK_UPS {
            return None;
        }
        let lookup = self.of_upstreams.pop_front().or_else(|| self.next_of_clients())?;
        self.under_way += 1;
        Some((lookup, self.asked.get(&lookup)?.name.clone()))
    }

    fn next_of_clients(&mut self) -> Option<u64> {
        if self.places.taken() >= OF_CLIENTS {
            return None;
        }
        let (places, asked) = (&self.places, &self.asked);
        let found = self.of_clients.pop_among(usize::MAX, |Next(lookup)| {
            let client = asked.get(lookup).and_then(|asked| asked.client).map(who);
            let is_used_up = client.and_then(|client| places.is_used_up(client, OF_CLIENTS, true));
            match is_used_up {
                None => Look::Leaves,
                Some(UsedUp::Client) => Look::Stays,
                Some(UsedUp::Site) => Look::SiteStays,
            }
        });
        let Found::One(client, Next(lookup)) = found else { return None };
        let (site, holder) = who(client);
        self.places.take(site, holder);
        Some(lookup)
    }

    fn may_wait(&self, client: u64) -> bool {
        self.waiting_together < MOST_WAITING
            && self.waiting.get(&Site::of(client)).is_none_or(|&waiting| waiting < MOST_WAITING_OF_SITE)
    }

    fn is_distrusted(&self, addresses: &Addresses, since: Instant) -> bool {
        !self.distrusted.is_empty()
            && addresses.iter().any(|address| self.distrusted.get(address).is_some_and(|&when| when >= since))
    }

    fn end(&mut self, lookup: u64) -> Option<(Box<str>, Vec<Waiting>, Addresses)> {
        let Asked { name, client } = self.asked.remove(&lookup)?;
        self.under_way -= 1;
        if let Some((site, holder)) = client.map(who) {
            self.places.give(site, holder);
        }
        let Some(State::Pending { waiting, before }) = self.names.get_mut(&name) else { return None };
        let (waiting, before) = (std::mem::take(waiting), std::mem::take(before));
        self.waiting_together -= waiting.len();
        for one in &waiting {
            let site = Site::of(one.client);
            if let Some(count) = self.waiting.get_mut(&site) {
                *count -= 1;
                if *count == 0 {
                    self.waiting.remove(&site);
                }
            }
        }
        Some((name, waiting, before))
    }

    fn learn(&mut self, name: Box<str>, addresses: Addresses, until: Instant, now: Instant) {
        if self.learned.len() >= 2 * self.most {
            let names = &self.names;
            self.learned.retain(|(when, name)| is_as_learned(names.get(name), *when));
        }
        self.learned.push_back((now, name.clone()));
        self.names.insert(name, State::Known { addresses, since: now, until });
    }

    fn make_room(&mut self, now: Instant) {
        while let Some((when, name)) = self.learned.front() {
            match self.names.get(name) {
                known if !is_as_learned(known, *when) => {}
                Some(State::Known { until, .. }) if *until > now && self.names.len() < self.most => return,
                Some(_) | None => drop(self.names.remove(name)),
            }
            self.learned.pop_front();
        }
    }
}

/// Who is counted.
const fn who(client: u64) -> (Site, Holder) {
    (Site::of(client), Holder::of(client))
}

fn is_as_learned(state: Option<&State>, when: Instant) -> bool {
    matches!(state, Some(State::Known { since, .. }) if *since == when)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(lookups: &mut Lookups, name: &str, is_upstream: bool, site: u64) -> bool {
        let client = 1 << 32 | site << 1;
        let fetch = FetchId(coapway_message::ExchangeId { slot: 0, generation: 0 });
        let content = || coapway_message::Content::bare(coapway_message::Code::GET).into();
        let waiting = || Waiting { fetch, client, port: 5683, content: content() };
        matches!(lookups.find((name, is_upstream), client, waiting, Instant::ZERO), Resolution::Pending)
    }

    #[test]
    fn slow_names_of_one_site_hold_up_neither_others_nor_upstreams() {
        let mut lookups = Lookups::new(4096, RandomState::with_seeds(1, 2, 3, 4));
        let names: Vec<String> = (0..100).map(|number| format!("{number}.slow")).collect();
        let taken = names.iter().filter(|name| find(&mut lookups, name, false, 1)).count();
        assert_eq!(taken, 64);
        let begun: Vec<_> = std::iter::from_fn(|| lookups.poll_asked()).map(|(lookup, _)| lookup).collect();
        assert_eq!(begun.len(), 12, "an eighth is for others, another one for neighbours");
        assert!(find(&mut lookups, "quick", false, 2) && find(&mut lookups, "upstream", true, 1 + 2));
        let next = |lookups: &mut Lookups| lookups.poll_asked().map(|(_, name)| name.into_string());
        assert_eq!(next(&mut lookups).as_deref(), Some("upstream"));
        assert_eq!(next(&mut lookups).as_deref(), Some("quick"));
        assert_eq!(next(&mut lookups), None);
        lookups.failed(begun[0], Instant::ZERO);
        assert_eq!(next(&mut lookups).as_deref(), Some("12.slow"));
        for lookup in 0..100 {
            lookups.failed(lookup, Instant::ZERO);
            while lookups.poll_asked().is_some() {}
        }
        assert_eq!((lookups.under_way, lookups.places.taken(), lookups.waiting_together), (0, 0, 0));
        assert!(lookups.waiting.is_empty() && lookups.names.is_empty() && lookups.asked.is_empty());
    }

    #[test]
    fn no_more_begin_than_there_are_threads() {
        let mut lookups = Lookups::new(4096, RandomState::with_seeds(1, 2, 3, 4));
        for site in 1..100 {
            assert!(find(&mut lookups, &format!("{site}.of.a.client"), false, site));
            assert!(find(&mut lookups, &format!("{site}.of.an.upstream"), true, site));
        }
        assert_eq!(std::iter::from_fn(|| lookups.poll_asked()).count(), MOST_LOOK_UPS);
    }
}
