//! The places in a window, of which none has so many that there are none for others.

use std::hash::Hash;

use ahash::RandomState;
use hashbrown::HashMap;

use crate::address::{Holder, Site};

/// Whose share is used up: what is left is for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsedUp {
    Client,
    Site,
}

/// What is left of so many, where that is scarce: for those who hold less than as much.
const fn share(most: u32) -> u32 {
    let eighth = most / 8;
    if eighth == 0 { 1 } else { eighth }
}

/// So many of those that hold none any more are remembered, and twice as many as places are taken.
const FEW: usize = 32;

/// The places in a window that are taken, and by whom.
///
/// Formula: of the last eighth, and of the last place, a site gets none that holds as many already. One of its
///          clients stops as much earlier, so that it leaves something to others behind the same address. As
///          long as only one site asks an origin, all is for that site. Where a window was cut and more are
///          taken than it has, those of the one that holds most are of no account: others have their eighth,
///          and its neighbours have theirs.
#[derive(Debug)]
pub(crate) struct Places {
    taken: u32,
    /// Whether more were taken than there are, and that may still be so.
    is_overfull: bool,
    /// How many each site holds that holds any, and how many each client of a site that may have several.
    sites: Held<Site>,
    clients: Held<Holder>,
}

impl Places {
    pub(crate) fn new(hasher: RandomState) -> Self {
        let (sites, clients) = (HashMap::with_hasher(hasher.clone()), HashMap::with_hasher(hasher));
        Self { taken: 0, is_overfull: false, sites: Held(sites), clients: Held(clients) }
    }

    pub(crate) const fn taken(&self) -> u32 {
        self.taken
    }

    /// A client takes one.
    #[inline]
    pub(crate) fn take(&mut self, site: Site, client: Holder) {
        self.taken += 1;
        self.sites.take(site, self.taken);
        if !site.is_of_one() {
            self.clients.take(client, self.taken);
        }
    }

    /// It gives one back.
    #[inline]
    pub(crate) fn give(&mut self, site: Site, client: Holder) {
        self.taken = self.taken.saturating_sub(1);
        self.sites.give(&site);
        if !site.is_of_one() {
            self.clients.give(&client);
        }
    }

    /// Whether some request may leave.
    #[inline]
    pub(crate) fn have_room(&mut self, window: u32) -> bool {
        self.is_overfull = self.taken > window || self.is_overfull && self.taken + share(window) >= window;
        self.is_overfull && window > 1
    }

    /// Whether a window that is closed is open to a client: others than the one that holds most, a site or a
    /// client, hold but little.
    fn is_open_to(&self, (site, client): (Site, Holder), window: u32, is_shared: bool) -> bool {
        let share = share(window);
        let of_others = |most: u32| self.taken.saturating_sub(most);
        self.is_overfull
            && (is_shared && self.sites.of(&site) < share && of_others(self.sites.most()) < share
                || !site.is_of_one()
                    && self.clients.of(&client) < share
                    && of_others(self.clients.most()) < if is_shared { 2 * share } else { share })
    }

    /// Whether as many are held by the same ones.
    pub(crate) fn are_the_same(&self, other: &Self) -> bool {
        self.taken == other.taken
            && self.sites.is_the_same(&other.sites)
            && self.clients.is_the_same(&other.clients)
    }

    /// Whose share of a window is used up: that of the site, or of the client within its site. `is_shared`
    /// says whether others than this site ask.
    #[inline]
    pub(crate) fn is_used_up(
        &self,
        (site, client): (Site, Holder),
        window: u32,
        is_shared: bool,
    ) -> Option<UsedUp> {
        let share = share(window);
        if window < 2 || self.taken + 2 * share < window {
            return None;
        }
        if self.taken >= window {
            return (!self.is_open_to((site, client), window, is_shared)).then_some(UsedUp::Client);
        }
        let of_site = self.sites.of(&site);
        let most_of_site = if is_shared { window - share } else { window };
        if self.taken >= most_of_site && of_site >= share {
            return Some(UsedUp::Site);
        }
        let (of_client, may_have_neighbours) = match site.is_of_one() {
            true => (of_site, !is_shared),
            false => (self.clients.of(&client), true),
        };
        let most_of_client = most_of_site.saturating_sub(share).max(1);
        let is_used_up = of_site >= most_of_client && of_client >= share;
        (may_have_neighbours && is_used_up).then_some(UsedUp::Client)
    }
}

/// How many each of some holds. Those that hold none any more are forgotten later, all at once.
#[derive(Debug)]
struct Held<K>(HashMap<K, u32, RandomState>);

impl<K: Eq + Hash> Held<K> {
    /// `all` says how many are held by all.
    #[inline]
    fn take(&mut self, who: K, all: u32) {
        if let Some(held) = self.0.get_mut(&who) {
            *held += 1;
        } else {
            self.begin(who, all);
        }
    }

    #[cold]
    fn begin(&mut self, who: K, all: u32) {
        if self.0.len() >= 2 * all as usize + FEW {
            self.0.retain(|_, held| *held > 0);
        }
        self.0.insert(who, 1);
    }

    #[inline]
    fn give(&mut self, who: &K) {
        if let Some(held) = self.0.get_mut(who) {
            *held = held.saturating_sub(1);
        }
    }

    fn of(&self, who: &K) -> u32 {
        self.0.get(who).copied().unwrap_or(0)
    }

    fn most(&self) -> u32 {
        self.0.values().max().copied().unwrap_or(0)
    }

    fn is_the_same(&self, other: &Self) -> bool {
        let holders = |held: &Self| held.0.values().filter(|held| **held > 0).count();
        holders(self) == holders(other) && self.0.iter().all(|(who, held)| other.of(who) == *held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places::new(RandomState::with_seeds(1, 2, 3, 4))
    }

    /// A client of a site that may have others.
    fn client(site: u64, number: u64) -> (Site, Holder) {
        let client = number << 32 | site << 1;
        (Site::of(client), Holder::of(client))
    }

    /// A client that is a site.
    fn local(number: u64) -> (Site, Holder) {
        let client = number << 32 | number << 1 | 1;
        (Site::of(client), Holder::of(client))
    }

    /// As many as it gets, of so many that it wants.
    fn take(places: &mut Places, client: (Site, Holder), wants: u32, window: u32, is_shared: bool) -> u32 {
        let may =
            |places: &Places| places.taken < window && places.is_used_up(client, window, is_shared).is_none();
        (0..wants)
            .take_while(|_| {
                may(places) && {
                    places.take(client.0, client.1);
                    true
                }
            })
            .count() as u32
    }

    #[test]
    fn who_takes_all_that_are_given_leaves_some_to_neighbours_and_some_to_others() {
        for (window, greedy, neighbours, others) in [
            (2, 1, 0, 1),
            (3, 1, 1, 1),
            (4, 2, 1, 1),
            (8, 6, 1, 1),
            (16, 12, 2, 2),
            (64, 48, 8, 8),
            (1024, 768, 128, 128),
        ] {
            let mut places = places();
            assert_eq!(take(&mut places, client(1, 10), window, window, true), greedy, "{window}");
            let all = |places: &mut Places, site: u64| -> u32 {
                (0..u64::from(window))
                    .map(|number| take(places, client(site, 100 + number), 1, window, true))
                    .sum()
            };
            assert_eq!(all(&mut places, 1), neighbours, "{window}: one port after the other");
            assert_eq!(all(&mut places, 2), others, "{window}");
        }
    }

    #[test]
    fn as_long_as_one_site_asks_all_is_for_it() {
        let mut places = places();
        assert_eq!(take(&mut places, client(1, 10), 4, 4, false), 3);
        assert_eq!(take(&mut places, client(1, 11), 4, 4, false), 1);
    }

    #[test]
    fn a_window_that_was_cut_is_open_to_who_holds_little() {
        let mut places = places();
        let (greedy, others) = (client(1, 10), [client(2, 20), client(3, 30)]);
        assert_eq!(take(&mut places, greedy, 64, 64, false), 56);
        assert!(!places.have_room(64) && places.have_room(32));
        let hinders = |places: &Places, client| places.is_used_up(client, 32, true);
        assert_eq!(hinders(&places, greedy), Some(UsedUp::Client));
        for client in [others[0], others[1], others[0], others[1]] {
            assert_eq!(hinders(&places, client), None);
            places.take(client.0, client.1);
        }
        let neighbours = [11, 12, 13, 14].map(|number| client(1, number));
        for client in neighbours {
            assert_eq!(hinders(&places, client), None);
            places.take(client.0, client.1);
        }
        for client in [others[0], others[1], client(1, 15), client(4, 40)] {
            assert_eq!(hinders(&places, client), Some(UsedUp::Client), "an eighth, and another one");
        }
        neighbours.into_iter().for_each(|client| places.give(client.0, client.1));
        places.give(others[0].0, others[0].1);
        // It has just as many as are there, none of which is for the greedy.
        (0..28).for_each(|_| places.give(greedy.0, greedy.1));
        assert!(places.taken == 31 && places.have_room(32));
        assert_eq!(hinders(&places, greedy), Some(UsedUp::Site));
        assert_eq!(hinders(&places, others[0]), None);
        (0..4).for_each(|_| places.give(greedy.0, greedy.1));
        assert!(!places.have_room(32), "it is no longer full");
    }

    #[test]
    fn a_site_of_one_client_has_no_neighbours() {
        let mut places = places();
        assert_eq!(take(&mut places, local(1), 64, 64, true), 56);
        assert_eq!(take(&mut places, local(2), 64, 64, true), 8);
        let mut first = self::places();
        assert_eq!(take(&mut first, local(1), 64, 64, false), 56, "who comes later finds some");
    }

    #[test]
    fn one_place_is_for_anybody() {
        for shared in [false, true] {
            assert_eq!(take(&mut places(), client(1, 10), 2, 1, shared), 1);
        }
    }

    #[test]
    fn what_is_given_back_leaves_nothing_behind() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut places, mut held) = (places(), Vec::new());
        for _ in 0..10_000 {
            if held.len() < 50 && random.bool() {
                let (site, holder) = client(random.u64(1..5), random.u64(1..5000));
                held.push((site, holder));
                places.take(site, holder);
            } else if !held.is_empty() {
                let (site, holder) = held.swap_remove(random.usize(..held.len()));
                places.give(site, holder);
            }
            assert_eq!(places.taken as usize, held.len());
        }
        let remembered = places.sites.0.len().max(places.clients.0.len());
        assert!(remembered <= 2 * 50 + FEW + 1, "{remembered}");
        held.drain(..).for_each(|(site, holder)| places.give(site, holder));
        assert!(places.are_the_same(&self::places()));
    }
}
