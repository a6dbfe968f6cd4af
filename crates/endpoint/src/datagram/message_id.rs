//! Message IDs: none is used twice towards a peer within its lifetime (RFC 7252 §4.4).

use std::collections::VecDeque;
use std::time::Duration;

use coapway_time::Instant;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::parameters::EndpointParameters;
use crate::peer::Peer;

/// IDs come in blocks; a block is free again when its newest ID is old enough. More blocks waste
/// fewer IDs and take more memory: with 64, 1 024 of 65 536 IDs wait for their block.
const BLOCKS: usize = 64;
const BLOCK_SHIFT: u32 = 10;

#[derive(Debug)]
struct Space {
    /// The ID to use next, counted from `first`.
    offset: u16,
    /// A random start, so that a restart does not repeat the last run's IDs.
    first: u16,
    /// When a block may be used again. Grows as far as the space was used.
    free_from: Vec<Instant>,
    idle_from: Instant,
}

/// The Message IDs of one endpoint towards all its peers.
#[derive(Debug)]
pub(super) struct MessageIds {
    spaces: HashMap<Peer, Space, ahash::RandomState>,
    /// Peers in the order in which they may be forgotten, if they stayed idle.
    idle: VecDeque<(Instant, Peer)>,
    random: fastrand::Rng,
}

impl MessageIds {
    pub(super) fn new(random: fastrand::Rng, hasher: ahash::RandomState) -> Self {
        Self { spaces: HashMap::with_hasher(hasher), idle: VecDeque::new(), random }
    }

    /// Takes the next Message ID towards `peer`, which then rests for `lifetime`.
    pub(super) fn take(&mut self, peer: Peer, lifetime: Duration, now: Instant) -> Option<u16> {
        self.forget_idle(now);
        let is_full = self.spaces.len() >= EndpointParameters::MOST_PEERS;
        let space = match self.spaces.entry(peer) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if is_full => return None,
            Entry::Vacant(vacant) => {
                let idle_from = now + lifetime;
                self.idle.push_back((idle_from, peer));
                let first = self.random.u16(..);
                vacant.insert(Space { offset: 0, first, free_from: Vec::new(), idle_from })
            }
        };
        if !space.next_is_free(now) {
            return None;
        }
        let block = usize::from(space.offset >> BLOCK_SHIFT);
        let message_id = space.first.wrapping_add(space.offset);
        space.idle_from = space.idle_from.max(now + lifetime);
        match space.free_from.get_mut(block) {
            Some(free_from) => *free_from = (*free_from).max(now + lifetime),
            None => space.free_from.push(now + lifetime),
        }
        space.offset = space.offset.wrapping_add(1);
        Some(message_id)
    }

    /// The same for a response, which must not fail because strangers fill the table: then the peer
    /// that was new longest ago is forgotten, whose IDs begin at another random place should it come
    /// back.
    pub(super) fn take_for_response(&mut self, peer: Peer, lifetime: Duration, now: Instant) -> Option<u16> {
        if self.spaces.len() >= EndpointParameters::MOST_PEERS
            && !self.spaces.contains_key(&peer)
            && let Some((_, oldest)) = self.idle.pop_front()
        {
            self.spaces.remove(&oldest);
        }
        self.take(peer, lifetime, now)
    }

    /// Whether [`MessageIds::take`] would find one.
    #[cfg(test)]
    fn is_available(&self, peer: &Peer, now: Instant) -> bool {
        match self.spaces.get(peer) {
            Some(space) => space.next_is_free(now),
            None => self.spaces.len() < EndpointParameters::MOST_PEERS,
        }
    }

    /// How many peers are remembered.
    pub(super) fn len(&self) -> usize {
        self.spaces.len()
    }

    fn forget_idle(&mut self, now: Instant) {
        // Two a call keep pace with one new peer a call.
        for _ in 0..2 {
            let Some(&(when, peer)) = self.idle.front() else { return };
            if when > now {
                return;
            }
            self.idle.pop_front();
            match self.spaces.get(&peer).map(|space| space.idle_from) {
                Some(idle_from) if idle_from > now => self.idle.push_back((idle_from, peer)),
                _ => drop(self.spaces.remove(&peer)),
            }
        }
    }
}

impl Space {
    /// Inside a block that is being used, every ID is as free as the block was at its first.
    fn next_is_free(&self, now: Instant) -> bool {
        let block = usize::from(self.offset >> BLOCK_SHIFT);
        let starts_block = self.offset & ((1 << BLOCK_SHIFT) - 1) == 0;
        debug_assert!(block < BLOCKS);
        !starts_block || self.free_from.get(block).is_none_or(|&free_from| free_from <= now)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::peer::{Local, SocketId};

    const LIFETIME: Duration = Duration::from_secs(247);

    fn peer(port: u16) -> Peer {
        let local = Local { socket: SocketId(0), address: None };
        Peer { local, remote: ([127, 0, 0, 1], port).into() }
    }

    fn ids() -> MessageIds {
        MessageIds::new(fastrand::Rng::with_seed(1), ahash::RandomState::with_seeds(1, 2, 3, 4))
    }

    #[test]
    fn no_id_comes_twice_within_its_lifetime() {
        let mut ids = ids();
        let mut used: HashMap<u16, Instant> = HashMap::new();
        let (mut now, mut refused, mut taken) = (Instant::ZERO, 0u32, 0u32);
        // A slow start and then a rush: the second round meets IDs of very different age.
        for step in 0..400_000u32 {
            now += Duration::from_micros(if step < 20_000 { 8_000 } else { 1_500 });
            let available = ids.is_available(&peer(1), now);
            match ids.take(peer(1), LIFETIME, now) {
                Some(id) => {
                    assert!(available);
                    taken += 1;
                    if let Some(before) = used.insert(id, now) {
                        assert!(now.since(before) >= LIFETIME, "{id} after {:?}", now.since(before));
                    }
                }
                None => {
                    assert!(!available);
                    refused += 1;
                }
            }
        }
        assert!(refused > 0, "the rush is faster than the ID space allows");
        assert!(taken > 130_000, "{taken}");
    }

    #[test]
    fn a_full_table_has_room_for_a_response_and_none_for_a_request() {
        let mut ids = ids();
        let number = |number: u32| Peer {
            remote: ([10, 0, (number >> 16) as u8, 1], number as u16).into(),
            ..peer(1)
        };
        for stranger in 0..EndpointParameters::MOST_PEERS as u32 {
            assert!(ids.is_available(&number(stranger), Instant::ZERO));
            assert!(ids.take_for_response(number(stranger), LIFETIME, Instant::ZERO).is_some());
        }
        let newcomer = number(EndpointParameters::MOST_PEERS as u32);
        assert!(!ids.is_available(&newcomer, Instant::ZERO));
        assert_eq!(ids.take(newcomer, LIFETIME, Instant::ZERO), None);
        assert!(ids.take_for_response(newcomer, LIFETIME, Instant::ZERO).is_some());
        assert_eq!(
            (ids.len(), ids.idle.len()),
            (EndpointParameters::MOST_PEERS, EndpointParameters::MOST_PEERS)
        );
        assert!(!ids.spaces.contains_key(&number(0)) && ids.spaces.contains_key(&number(1)));
    }

    #[test]
    fn peers_have_spaces_of_their_own_and_are_forgotten() {
        let mut ids = ids();
        for port in 1..=1000 {
            assert!(ids.take(peer(port), LIFETIME, Instant::ZERO).is_some());
        }
        assert_eq!(ids.len(), 1000);
        let later = Instant::ZERO + LIFETIME;
        for port in 2001..=3000 {
            ids.take(peer(port), LIFETIME, later);
        }
        assert!(ids.len() <= 1001, "{}", ids.len());
    }
}
