//! Requests that wait for their turn towards one origin: sites take turns, and within a site its clients.

mod lanes;

use std::collections::BTreeMap;

use ahash::RandomState;
use hashbrown::HashMap;

use self::lanes::{Lanes, end_of, start_of};
use crate::address::Site;

/// A queue that is full looks at this many lanes for one to make room.
const LOOKED_AT: usize = 32;
/// The last eighth is for those who have less than an eighth of all.
const SHARE: usize = 8;
/// For one that may leave, no more are looked at of one site than this before the next one's turn, unless all are.
const OF_ONE_SITE: usize = 8;

/// Something that waits.
pub(crate) trait Waiting {
    /// Whether it may have to wait for others to end, for which no turn helps.
    fn is_patient(&self) -> bool;
}

/// Whether something may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Leaves,
    Stays,
    /// And so does everything of its site.
    SiteStays,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found<T> {
    /// This leaves, of this client.
    One(u64, T),
    /// None that was looked at, and not all were.
    NotYet,
    /// None.
    None,
}

/// A bounded queue with one lane for each client, by the numbers of clients.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    sites: HashMap<Site, Lanes<T>, RandomState>,
    /// Sites of which something waits, the next one first; under numbers that only say the order.
    turns: BTreeMap<i64, Site>,
    /// Where the lane of a client is in those of its site.
    clients: HashMap<u64, i64, RandomState>,
    waiting: usize,
    patient: usize,
}

impl<T: Waiting> FairQueue<T> {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            sites: HashMap::with_hasher(hasher.clone()),
            turns: BTreeMap::new(),
            clients: HashMap::with_hasher(hasher),
            waiting: 0,
            patient: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.waiting
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// How many leave before the next item of a client, as long as sites and their clients take turns.
    pub(crate) fn before(&self, client: u64) -> usize {
        let rounds = self.sites.get(&Site::of(client)).map_or(1, |lanes| {
            let own = self.clients.get(&client).map_or(0, |turn| lanes.len_of(*turn));
            (own + 1) * lanes.count().max(1)
        });
        self.waiting.min(rounds.saturating_mul(self.turns.len()))
    }

    /// Whether something waits that is not of this site.
    pub(crate) fn has_others_than(&self, site: Site) -> bool {
        self.turns.values().take(2).any(|other| *other != site)
    }

    /// Whether the site of a client has to leave what is left to others: the last eighth of `most` is for those who
    /// have less than an eighth.
    pub(crate) fn is_used_up(&self, client: u64, most: usize) -> bool {
        is_used_up(self.waiting, self.sites.get(&Site::of(client)).map_or(0, Lanes::waiting), most)
    }

    /// The same of so many that are patient; and there is no more than these.
    pub(crate) fn patience_is_used_up(&self, client: u64, most: usize) -> bool {
        let own = || self.sites.get(&Site::of(client)).map_or(0, Lanes::patient);
        self.patient >= most || is_used_up(self.patient, own(), most)
    }

    pub(crate) fn push(&mut self, client: u64, item: T) {
        self.came(&item);
        let site = Site::of(client);
        let turns = &mut self.turns;
        let lanes = self.sites.entry(site).or_insert_with(|| {
            let turn = end_of(turns);
            turns.insert(turn, site);
            Lanes::new(turn)
        });
        match self.clients.get(&client) {
            Some(turn) => lanes.push(*turn, item),
            None => drop(self.clients.insert(client, lanes.add(client, item))),
        }
    }

    fn came(&mut self, item: &T) {
        self.waiting += 1;
        self.patient += usize::from(item.is_patient());
    }

    fn went(&mut self, item: &T) {
        self.waiting -= 1;
        self.patient -= usize::from(item.is_patient());
    }

    /// Takes the next item whose turn it is and that may leave; others keep their places.
    pub(crate) fn pop(&mut self, mut may_leave: impl FnMut(&T) -> bool) -> Option<(u64, T)> {
        match self.pop_among(usize::MAX, |item| if may_leave(item) { Look::Leaves } else { Look::Stays }) {
            Found::One(client, item) => Some((client, item)),
            Found::NotYet | Found::None => None,
        }
    }

    /// The same among the first of so many clients. When none of theirs may leave, the next ones have their turn.
    pub(crate) fn pop_among(&mut self, most: usize, mut look: impl FnMut(&T) -> Look) -> Found<T> {
        let of_site = if most == usize::MAX { most } else { OF_ONE_SITE };
        let (mut looked, mut sites, mut from, mut were_all) = (0, 0, i64::MIN, true);
        while let Some((&turn, &site)) = self.turns.range(from..).next() {
            if looked >= most {
                were_all = false;
                break;
            }
            from = turn + 1;
            let Some(lanes) = self.sites.get_mut(&site) else { continue };
            let (found, passed, is_rest) = lanes.find(of_site.min(most - looked), &mut look);
            if let Some(lane) = found {
                return self.take(site, lane).map_or(Found::None, |(client, item)| Found::One(client, item));
            }
            (looked, sites) = (looked + passed, sites + 1);
            if is_rest {
                were_all = false;
                let moved = lanes.rotate(passed);
                self.clients.extend(moved);
            }
        }
        if were_all {
            return Found::None;
        }
        for _ in 0..sites {
            let Some((_, site)) = self.turns.pop_first() else { break };
            self.put_last(site);
        }
        Found::NotYet
    }

    /// The last turn is this site's, which has none.
    fn put_last(&mut self, site: Site) {
        if let Some(lanes) = self.sites.get_mut(&site) {
            lanes.turn = end_of(&self.turns);
            self.turns.insert(lanes.turn, site);
        }
    }

    /// Takes out the first item of a lane: its client had its turn, and so had the site.
    fn take(&mut self, site: Site, lane: i64) -> Option<(u64, T)> {
        let lanes = self.sites.get_mut(&site)?;
        let turn = lanes.turn;
        let (client, item, next) = lanes.take(lane)?;
        match next {
            Some(next) => drop(self.clients.insert(client, next)),
            None => drop(self.clients.remove(&client)),
        }
        self.turns.remove(&turn);
        if lanes.count() == 0 {
            self.sites.remove(&site);
        } else {
            self.put_last(site);
        }
        self.went(&item);
        Some((client, item))
    }

    /// The first item of each client.
    pub(crate) fn first_of_each(&self) -> impl Iterator<Item = &T> {
        self.turns.values().filter_map(|site| self.sites.get(site)).flat_map(Lanes::firsts)
    }

    /// Puts an item back to where [`FairQueue::pop`] took it from.
    pub(crate) fn put_back(&mut self, client: u64, item: T) {
        self.came(&item);
        let site = Site::of(client);
        let turn = start_of(&self.turns);
        let lanes = self.sites.entry(site).or_insert_with(|| Lanes::new(turn));
        self.turns.remove(&lanes.turn);
        lanes.turn = turn;
        self.turns.insert(turn, site);
        let lane = self.clients.get(&client).copied();
        self.clients.insert(client, lanes.put_back(lane, client, item));
    }

    /// Takes out the newest item of the client that has most among some of the site that has most among some, when
    /// that are at least two more than `client` has, or its site: a full queue makes room for those who use little
    /// of it.
    pub(crate) fn shed_for(&mut self, client: u64) -> Option<T> {
        let own_site = Site::of(client);
        let of = |site: &Site| self.sites.get(site).map_or(0, Lanes::waiting);
        // Those at the end had their turn last and still have more, or have just begun.
        let some = self.turns.values().rev().take(LOOKED_AT);
        let largest = *some.max_by_key(|site| of(site))?;
        let has_more = of(&largest) >= of(&own_site) + 2;
        let site = if has_more { largest } else { own_site };
        let own = self.clients.get(&client).copied();
        let lanes = self.sites.get_mut(&site)?;
        let own = own.filter(|_| site == own_site).map_or(0, |turn| lanes.len_of(turn));
        let least = if site == own_site { own + 2 } else { 1 };
        let lane = lanes.longest(LOOKED_AT).filter(|lane| lanes.len_of(*lane) >= least)?;
        self.take_out(site, lane, usize::MAX)
    }

    /// Takes out the first item of a client that `matches`.
    pub(crate) fn remove(&mut self, client: u64, matches: impl Fn(&T) -> bool) -> Option<T> {
        let (site, lane) = (Site::of(client), *self.clients.get(&client)?);
        let place = self.sites.get(&site)?.position(lane, matches)?;
        self.take_out(site, lane, place)
    }

    /// Takes an item out of a lane, the last one where there are fewer. No turn is over by that.
    fn take_out(&mut self, site: Site, lane: i64, place: usize) -> Option<T> {
        let lanes = self.sites.get_mut(&site)?;
        let (client, item, is_empty) = lanes.take_out(lane, place)?;
        if is_empty {
            self.clients.remove(&client);
        }
        if lanes.count() == 0 {
            self.turns.remove(&lanes.turn);
            self.sites.remove(&site);
        }
        self.went(&item);
        Some(item)
    }
}

const fn is_used_up(held: usize, own: usize, most: usize) -> bool {
    let share = if most < SHARE { 1 } else { most / SHARE };
    let is_scarce = held >= most || share > 1 && held >= most - share;
    is_scarce && own >= share
}

#[cfg(test)]
mod tests;
