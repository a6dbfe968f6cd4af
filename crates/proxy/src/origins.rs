//! The bounded table of origins.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use ahash::RandomState;
use coapway_message::Failure;
use coapway_relay::UpstreamId;
use coapway_time::Instant;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::address::{AddressKey, Site};
use crate::origin::{ORIGIN_LIFETIME, Origin};
use crate::parameters::UpstreamParameters;

/// An origin that could not be forgotten is looked at again after this.
const PAUSE: Duration = Duration::from_secs(1);

/// A full table looks at this many origins for one that can be spared.
const LOOKED_AT: usize = 16;

/// A share that is used up looks at this many of its origins.
const LOOKED_AT_IN_A_SHARE: usize = 256;

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
    /// Origins in the order in which they may be forgotten, if they stayed idle; each place once, even if
    /// another has taken it since.
    idle: VecDeque<(Instant, u32)>,
    /// By number: whether it is in `idle`.
    is_listed: Vec<bool>,
    most: usize,
    /// By client, as far as it matters: those that it brought in, the oldest first.
    brought: HashMap<Site, VecDeque<u32>, RandomState>,
    /// How many have exchanges that failed since they were heard, by address.
    silent: HashMap<AddressKey, u32, RandomState>,
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
            is_listed: Vec::new(),
            most,
            brought: HashMap::with_hasher(hasher.clone()),
            silent: HashMap::with_hasher(hasher.clone()),
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
        let (places, is_listed) = (&self.places, &mut self.is_listed);
        self.idle.retain(|&(_, index)| {
            let stays = places.get(index as usize).is_some_and(Option::is_some);
            is_listed[index as usize] = stays;
            stays
        });
    }

    fn forget(&mut self, index: u32) {
        let Some(origin) = self.places.get_mut(index as usize).and_then(Option::take) else { return };
        self.last = None;
        if origin.silence.has_begun() {
            self.silence_ends(origin.address);
        }
        self.by_address.remove(&AddressKey(origin.address, origin.upstream.0));
        if let Some(client) = origin.brought_by
            && let Some(brought) = self.brought.get_mut(&client)
        {
            if let Some(place) = brought.iter().position(|&other| other == index) {
                brought.remove(place);
            }
            if brought.is_empty() {
                self.brought.remove(&client);
            }
        }
        self.free.push(index);
    }

    /// Whether exchanges with some origin have failed since it was heard.
    pub(crate) fn some_are_silent(&self) -> bool {
        !self.silent.is_empty()
    }

    /// Whether that is so of one at this address.
    pub(crate) fn is_silent(&self, address: SocketAddr) -> bool {
        self.silent.contains_key(&AddressKey(address, 0))
    }

    /// An exchange with an origin has failed, and it is the first one.
    pub(crate) fn silence_begins(&mut self, address: SocketAddr) {
        *self.silent.entry(AddressKey(address, 0)).or_default() += 1;
    }

    /// The origin was heard, or is forgotten.
    pub(crate) fn silence_ends(&mut self, address: SocketAddr) {
        if let Entry::Occupied(mut count) = self.silent.entry(AddressKey(address, 0)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Panics unless each origin that failed is counted.
    pub(crate) fn check_invariants(&self) {
        let mut silent = self.silent.clone();
        for (_, origin) in self.iter().filter(|(_, origin)| origin.silence.has_begun()) {
            let count =
                silent.get_mut(&AddressKey(origin.address, 0)).expect("each origin that failed is counted");
            *count -= 1;
        }
        assert!(silent.values().all(|&count| count == 0), "no other is: {silent:?}");
    }

    /// The numbers of all.
    pub(crate) fn indexes(&self) -> Vec<u32> {
        self.iter().map(|(index, _)| index).collect()
    }

    pub(crate) fn index(&self, address: SocketAddr, upstream: UpstreamId) -> Option<u32> {
        self.by_address.get(&AddressKey(address, upstream.0)).copied()
    }

    /// The number of an origin. A new one is added while there is room, for a `client` while it has not brought
    /// in more than its share; one of those that nobody else asks for and that never answered makes room.
    ///
    /// Errors: `TooManyOrigins` where the client's share is used up, `Overloaded` where the table is full.
    pub(crate) fn find_or_add(
        &mut self,
        address: SocketAddr,
        upstream: UpstreamId,
        client: Option<Site>,
        parameters: &UpstreamParameters,
        now: Instant,
    ) -> Result<u32, Failure> {
        let key = AddressKey(address, upstream.0);
        if let Some((last, index)) = self.last
            && last == key
        {
            return Ok(index);
        }
        if let Some(&index) = self.by_address.get(&key) {
            self.last = Some((key, index));
            return Ok(index);
        }
        self.last = None;
        self.forget_idle(now);
        if let Some(client) = client
            && self.has_its_share(client)
            && !self.make_room_of(client)
        {
            return Err(Failure::TooManyOrigins);
        }
        if self.by_address.len() >= self.most && !self.make_room(now) {
            return Err(Failure::Overloaded);
        }
        let mut origin = Origin::new(address, upstream, parameters, &self.hasher, now);
        origin.brought_by = client;
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.is_listed.push(false);
            self.places.len() as u32 - 1
        });
        if let Some(client) = client {
            self.brought.entry(client).or_default().push_back(index);
        }
        if !std::mem::replace(&mut self.is_listed[index as usize], true) {
            self.idle.push_back((origin.idle_from, index));
        }
        self.places[index as usize] = Some(origin);
        self.by_address.insert(key, index);
        Ok(index)
    }

    /// Whether a client brought in so many that others would find no room.
    fn has_its_share(&self, client: Site) -> bool {
        let is_half_full = self.by_address.len() >= self.most / 2;
        let share = (self.most / SHARE).max(1);
        is_half_full && self.brought.get(&client).is_some_and(|brought| brought.len() >= share)
    }

    /// Makes room in a client's share by forgetting the oldest origin in it that never answered, that nothing is
    /// under way to and that nobody else asked for. What is not found among so many is looked for further on by
    /// the next call.
    fn make_room_of(&mut self, client: Site) -> bool {
        let places = &self.places;
        let Some(brought) = self.brought.get_mut(&client) else { return true };
        let can_be_spared = |index: &u32| {
            let origin = places.get(*index as usize).and_then(Option::as_ref);
            origin.is_some_and(|origin| {
                !origin.permits.is_shared
                    && !origin.permits.probing.was_heard()
                    && origin.is_idle()
                    && origin.transfers == 0
            })
        };
        let looked_at = brought.len().min(LOOKED_AT_IN_A_SHARE);
        match brought.iter().take(looked_at).copied().find(can_be_spared) {
            Some(index) => self.forget(index),
            None => {
                brought.rotate_left(looked_at);
                return false;
            }
        }
        true
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
                        self.is_listed[index as usize] = false;
                        self.forget(index);
                        return true;
                    }
                    self.idle.push_back((when, index));
                }
                Some(_) => self.idle.push_back((when, index)),
                None => self.is_listed[index as usize] = false,
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
            match self.get(index) {
                Some(origin) if origin.idle_from > now || !origin.is_idle() || origin.retry_at.is_some() => {
                    self.idle.push_back((origin.idle_from.max(now + PAUSE), index));
                }
                Some(_) | None => {
                    self.is_listed[index as usize] = false;
                    self.forget(index);
                }
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
        let index = origins.find_or_add(address(host), UpstreamId::DEFAULT, client, &parameters, now).ok()?;
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

    /// A table in which one client has asked `asked` origins, all by closed ports.
    fn with_a_share_used_up() -> Origins {
        let mut origins = origins(64);
        for host in 1..=32 {
            assert!(add_for(&mut origins, host, Some(Site::of(1)), Instant::ZERO).is_some(), "{host}");
        }
        origins
    }

    #[test]
    fn who_asks_many_that_never_answer_makes_room_for_itself() {
        let mut origins = with_a_share_used_up();
        for host in 33..=200 {
            assert!(add_for(&mut origins, host, Some(Site::of(1)), Instant::ZERO).is_some(), "{host}");
        }
        assert_eq!(origins.iter().count(), 32, "not one more");
        assert!(find(&mut origins, 168).is_none() && find(&mut origins, 169).is_some(), "the oldest went");
        assert_eq!(origins.idle.len(), 32, "nor here");
        let later = Instant::ZERO + ORIGIN_LIFETIME;
        (0..200).for_each(|_| origins.forget_idle(later));
        assert_eq!((origins.iter().count(), origins.brought.len(), origins.idle.len()), (0, 0, 0));
    }

    #[test]
    fn a_share_does_not_make_room_by_what_is_in_use_or_known_or_of_others() {
        let mut origins = with_a_share_used_up();
        for host in 1..=32 {
            let origin = find(&mut origins, host).expect("known");
            match host % 4 {
                0 => origin.exchanges = 1,
                1 => origin.permits.probing.heard(),
                2 => origin.permits.is_shared = true,
                _ => origin.transfers = 1,
            }
        }
        let parameters = UpstreamParameters::default();
        let mut asks = |host, client| {
            let client = Some(Site::of(client));
            origins.find_or_add(address(host), UpstreamId::DEFAULT, client, &parameters, Instant::ZERO)
        };
        assert_eq!(asks(33, 1), Err(Failure::TooManyOrigins));
        assert!(asks(33, 2).is_ok(), "others have theirs");
        assert!(asks(5, 1).is_ok(), "what is known is there for it as ever");
        find(&mut origins, 20).expect("known").exchanges = 0;
        assert!(add_for(&mut origins, 34, Some(Site::of(1)), Instant::ZERO).is_some(), "it is over");
        assert!(find(&mut origins, 20).is_none());
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
