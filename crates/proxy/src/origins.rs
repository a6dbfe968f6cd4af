//! The bounded table of origins.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use ahash::RandomState;
use coapway_relay::UpstreamId;
use coapway_time::Instant;
use hashbrown::HashMap;

use crate::address::{AddressKey, Site};
use crate::origin::{ORIGIN_LIFETIME, Origin};
use crate::parameters::UpstreamParameters;

/// An origin that could not be forgotten is looked at again after this.
const PAUSE: Duration = Duration::from_secs(1);

/// A full table looks at this many origins for one that can be spared.
const LOOKED_AT: usize = 16;

/// No origin that answered is spared sooner after its last Message ID (EXCHANGE_LIFETIME, RFC 7252 §4.8.2).
const KEPT: Duration = Duration::from_secs(247);

/// In a table that is half full, one client may have brought in so large a share of it.
const SHARE: usize = 8;

/// Origins by number and by address. One that is idle for 900 s is forgotten; in a full table sooner.
#[derive(Debug)]
pub(crate) struct Origins {
    places: Vec<Option<Origin>>,
    free: Vec<u32>,
    by_address: HashMap<AddressKey, u32, RandomState>,
    /// The one that was looked for last: often it is looked for again.
    last: Option<(AddressKey, u32)>,
    /// Origins in the order in which they may be forgotten, if they stayed idle.
    idle: VecDeque<(Instant, u32)>,
    most: usize,
    /// By client, as far as it matters: how many of them it brought in.
    brought: HashMap<Site, u32, RandomState>,
    /// Those with exchanges that failed since they were heard.
    pub(crate) silent: usize,
    /// For the queues of origins.
    hasher: RandomState,
}

impl Origins {
    pub(crate) fn new(most: usize, by_address: RandomState, hasher: RandomState) -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            by_address: HashMap::with_hasher(by_address),
            last: None,
            idle: VecDeque::new(),
            most,
            brought: HashMap::with_hasher(hasher.clone()),
            silent: 0,
            hasher,
        }
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Origin> {
        self.places.get(index as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Origin> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Origin)> {
        (0..).zip(&self.places).filter_map(|(index, origin)| Some((index, origin.as_ref()?)))
    }

    /// Forgets origins of which `is_gone` says so, unless something is under way to them, and keeps at
    /// most so many from now on.
    pub(crate) fn reconfigure(&mut self, most: usize, is_gone: impl Fn(UpstreamId) -> bool) {
        self.most = most;
        for index in 0..self.places.len() as u32 {
            if self.get(index).is_some_and(|origin| is_gone(origin.upstream) && origin.may_be_forgotten()) {
                self.forget(index);
            }
        }
        let places = &self.places;
        self.idle.retain(|&(_, index)| places.get(index as usize).is_some_and(Option::is_some));
    }

    fn forget(&mut self, index: u32) {
        let Some(origin) = self.places.get_mut(index as usize).and_then(Option::take) else { return };
        self.last = None;
        self.silent -= usize::from(origin.silence.has_begun());
        self.by_address.remove(&AddressKey(origin.address, origin.upstream.0));
        if let Some(client) = origin.brought_by
            && let Some(count) = self.brought.get_mut(&client)
        {
            *count -= 1;
            if *count == 0 {
                self.brought.remove(&client);
            }
        }
        self.free.push(index);
    }

    /// The numbers of all.
    pub(crate) fn indexes(&self) -> Vec<u32> {
        self.iter().map(|(index, _)| index).collect()
    }

    pub(crate) fn index(&self, address: SocketAddr, upstream: UpstreamId) -> Option<u32> {
        self.by_address.get(&AddressKey(address, upstream.0)).copied()
    }

    /// The number of an origin. A new one is added while there is room, for a `client` while it has not brought
    /// in more than its share.
    pub(crate) fn find_or_add(
        &mut self,
        address: SocketAddr,
        upstream: UpstreamId,
        client: Option<Site>,
        parameters: &UpstreamParameters,
        now: Instant,
    ) -> Option<u32> {
        let key = AddressKey(address, upstream.0);
        if let Some((last, index)) = self.last
            && last == key
        {
            return Some(index);
        }
        if let Some(&index) = self.by_address.get(&key) {
            self.last = Some((key, index));
            return Some(index);
        }
        self.last = None;
        self.forget_idle(now);
        if client.is_some_and(|client| self.has_its_share(client)) {
            return None;
        }
        if self.by_address.len() >= self.most && !self.make_room(now) {
            return None;
        }
        let mut origin = Origin::new(address, upstream, parameters, &self.hasher, now);
        origin.brought_by = client;
        if let Some(client) = client {
            *self.brought.entry(client).or_default() += 1;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.idle.push_back((origin.idle_from, index));
        self.places[index as usize] = Some(origin);
        self.by_address.insert(key, index);
        Some(index)
    }

    /// Whether a client brought in so many that others would find no room.
    fn has_its_share(&self, client: Site) -> bool {
        let is_half_full = self.by_address.len() >= self.most / 2;
        let share = (self.most / SHARE).max(1);
        is_half_full && self.brought.get(&client).is_some_and(|&count| count as usize >= share)
    }

    /// Makes room by forgetting an origin that nothing is under way to: one that never answered, since nothing
    /// is known of it; one that is only remembered from an earlier life; or one that was not asked for long.
    /// Message IDs are not kept here.
    fn make_room(&mut self, now: Instant) -> bool {
        for _ in 0..LOOKED_AT.min(self.idle.len()) {
            let Some((when, index)) = self.idle.pop_front() else { return false };
            match self.get(index) {
                Some(origin) if origin.is_idle() && origin.transfers == 0 => {
                    let is_old = origin.idle_from <= now + (ORIGIN_LIFETIME - KEPT);
                    if is_old || !origin.was_asked || !origin.permits.probing.was_heard() {
                        self.forget(index);
                        return true;
                    }
                    self.idle.push_back((when, index));
                }
                Some(_) => self.idle.push_back((when, index)),
                None => {}
            }
        }
        false
    }

    fn forget_idle(&mut self, now: Instant) {
        // Two a call keep pace with one new origin a call.
        for _ in 0..2 {
            let Some(&(when, index)) = self.idle.front() else { return };
            if when > now {
                return;
            }
            self.idle.pop_front();
            let Some(origin) = self.get(index) else { continue };
            if origin.idle_from > now || !origin.is_idle() || origin.retry_at.is_some() {
                self.idle.push_back((origin.idle_from.max(now + PAUSE), index));
            } else {
                self.forget(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::ORIGIN_LIFETIME;

    fn address(host: u8) -> SocketAddr {
        ([127, 0, 0, host], 5683).into()
    }

    fn origins(most: usize) -> Origins {
        let hasher = RandomState::with_seeds(1, 2, 3, 4);
        Origins::new(most, hasher.clone(), hasher)
    }

    fn find(origins: &mut Origins, host: u8) -> Option<&mut Origin> {
        let index = origins.index(address(host), UpstreamId::DEFAULT)?;
        origins.get_mut(index)
    }

    fn add(origins: &mut Origins, host: u8, now: Instant) -> Option<u32> {
        add_for(origins, host, None, now)
    }

    fn add_for(origins: &mut Origins, host: u8, client: Option<Site>, now: Instant) -> Option<u32> {
        let parameters = UpstreamParameters::default();
        let index = origins.find_or_add(address(host), UpstreamId::DEFAULT, client, &parameters, now)?;
        origins.get_mut(index)?.was_asked = true;
        Some(index)
    }

    #[test]
    fn a_full_table_takes_no_more_until_one_was_not_asked_for_long() {
        let mut origins = origins(2);
        let first = add(&mut origins, 1, Instant::ZERO);
        assert!(first.is_some() && add(&mut origins, 2, Instant::ZERO).is_some());
        assert_eq!(add(&mut origins, 1, Instant::ZERO), first);
        for host in 1..=2 {
            let origin = find(&mut origins, host).expect("known");
            origin.permits.probing.heard();
        }
        assert_eq!(add(&mut origins, 3, Instant::ZERO), None);
        let nearly = Instant::ZERO + KEPT - Duration::from_millis(1);
        assert_eq!(add(&mut origins, 3, nearly), None);
        assert!(add(&mut origins, 3, Instant::ZERO + KEPT).is_some());
        assert_eq!(origins.iter().count(), 2, "one made room");
        assert!(add(&mut origins, 4, Instant::ZERO + ORIGIN_LIFETIME).is_some());
    }

    #[test]
    fn what_is_only_remembered_makes_room() {
        let mut origins = origins(2);
        for host in 1..=2 {
            add(&mut origins, host, Instant::ZERO);
            let origin = find(&mut origins, host).expect("known");
            origin.permits.probing.heard();
            origin.was_asked = host == 1;
        }
        assert!(add(&mut origins, 3, Instant::ZERO).is_some());
        assert!(find(&mut origins, 1).is_some() && find(&mut origins, 2).is_none());
    }

    #[test]
    fn one_client_does_not_fill_the_table() {
        let mut origins = origins(64);
        let mut asks = |host, client| {
            let index = add_for(&mut origins, host, Some(Site::of(client)), Instant::ZERO);
            if let Some(origin) = index.and_then(|index| origins.get_mut(index)) {
                origin.permits.probing.heard();
            }
            index.is_some()
        };
        let taken = (1..=100).filter(|&host| asks(host, 1)).count();
        assert_eq!(taken, 32, "half of it");
        assert_eq!((101..=200).filter(|&host| asks(host, 2)).count(), 8, "its share");
        assert!(asks(5, 3), "what is known is there for all");
    }

    #[test]
    fn origins_that_never_answered_make_room() {
        let mut origins = origins(2);
        add(&mut origins, 1, Instant::ZERO);
        find(&mut origins, 1).expect("known").permits.probing.heard();
        for host in 2..=100 {
            assert!(add(&mut origins, host, Instant::ZERO).is_some(), "{host}");
        }
        assert!(find(&mut origins, 1).is_some());
    }

    #[test]
    fn an_origin_in_use_is_not_forgotten() {
        let mut origins = origins(2);
        let index = add(&mut origins, 1, Instant::ZERO).expect("room");
        origins.get_mut(index).expect("added").exchanges = 1;
        let later = Instant::ZERO + ORIGIN_LIFETIME * 2;
        add(&mut origins, 2, later);
        assert!(find(&mut origins, 1).is_some());
    }
}
