//! Message IDs: none is used twice towards a peer within its lifetime (RFC 7252 §4.4).

use std::collections::VecDeque;
use std::time::Duration;

use coapway_time::Instant;
use slab::Slab;

use super::peers::{PeerNumber, Peers};
use crate::parameters::EndpointParameters;

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

/// The Message IDs of one endpoint towards all its peers, each of which knows where its own are.
#[derive(Debug)]
pub(super) struct MessageIds {
    spaces: Slab<Space>,
    /// Peers in the order in which they may be forgotten, if they stayed idle. Each is referred to.
    idle: VecDeque<(Instant, PeerNumber)>,
    random: fastrand::Rng,
}

impl MessageIds {
    pub(super) const fn new(random: fastrand::Rng) -> Self {
        Self { spaces: Slab::new(), idle: VecDeque::new(), random }
    }

    /// Takes the next Message ID towards `peer`, which then rests for `lifetime`.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        peers: &mut Peers,
        peer: PeerNumber,
        lifetime: Duration,
        now: Instant,
    ) -> Option<u16> {
        self.forget_idle(peers, now);
        let until = now + lifetime;
        let index = match peers.space(peer) {
            Some(index) => index,
            None => self.begin(peers, peer, until)?,
        };
        self.spaces.get_mut(index)?.take(until, now)
    }

    /// Begins the space of a peer, unless there are too many.
    fn begin(&mut self, peers: &mut Peers, peer: PeerNumber, idle_from: Instant) -> Option<usize> {
        if self.spaces.len() >= EndpointParameters::MOST_PEERS {
            return None;
        }
        self.idle.push_back((idle_from, peer));
        let first = self.random.u16(..);
        let index = self.spaces.insert(Space { offset: 0, first, free_from: Vec::new(), idle_from });
        peers.set_space(peer, Some(index));
        peers.hold(peer);
        Some(index)
    }

    fn forget(&mut self, peers: &mut Peers, peer: PeerNumber) {
        if let Some(index) = peers.space(peer) {
            self.spaces.try_remove(index);
            peers.set_space(peer, None);
            peers.release(peer);
        }
    }

    /// The same for a response, which must not fail because strangers fill the table: then the peer
    /// that was new longest ago is forgotten, whose IDs begin at another random place should it come
    /// back.
    pub(super) fn take_for_response(
        &mut self,
        peers: &mut Peers,
        peer: PeerNumber,
        lifetime: Duration,
        now: Instant,
    ) -> Option<u16> {
        if self.spaces.len() >= EndpointParameters::MOST_PEERS
            && peers.space(peer).is_none()
            && let Some((_, oldest)) = self.idle.pop_front()
        {
            self.forget(peers, oldest);
        }
        self.take(peers, peer, lifetime, now)
    }

    /// Whether [`MessageIds::take`] would find one.
    #[cfg(test)]
    fn is_available(&self, peers: &Peers, peer: PeerNumber, now: Instant) -> bool {
        match peers.space(peer) {
            Some(index) => self.spaces[index].next_is_free(now),
            None => self.spaces.len() < EndpointParameters::MOST_PEERS,
        }
    }

    /// When [`MessageIds::take`] finds one, as far as that is known: `now`, or when the next block is free.
    pub(super) fn next_free(&self, peers: &Peers, peer: PeerNumber, now: Instant) -> Instant {
        let space = peers.space(peer).and_then(|index| self.spaces.get(index));
        space.map_or(now, |space| space.free_at(now))
    }

    /// How many peers are remembered.
    pub(super) fn len(&self) -> usize {
        self.spaces.len()
    }

    /// Those of which there is a space, once each.
    pub(super) fn peers(&self) -> impl Iterator<Item = PeerNumber> {
        self.idle.iter().map(|&(_, peer)| peer)
    }

    #[inline]
    fn forget_idle(&mut self, peers: &mut Peers, now: Instant) {
        if self.idle.front().is_some_and(|&(when, _)| when <= now) {
            self.look_at_idle(peers, now);
        }
    }

    fn look_at_idle(&mut self, peers: &mut Peers, now: Instant) {
        // Two a call keep pace with one new peer a call.
        for _ in 0..2 {
            let Some((_, peer)) = self.idle.pop_front_if(|(when, _)| *when <= now) else { return };
            let space = peers.space(peer).and_then(|index| self.spaces.get(index));
            match space.map(|space| space.idle_from) {
                Some(idle_from) if idle_from > now => self.idle.push_back((idle_from, peer)),
                _ => self.forget(peers, peer),
            }
        }
    }
}

impl Space {
    #[inline]
    fn take(&mut self, until: Instant, now: Instant) -> Option<u16> {
        if !self.next_is_free(now) {
            return None;
        }
        let block = usize::from(self.offset >> BLOCK_SHIFT);
        let message_id = self.first.wrapping_add(self.offset);
        self.idle_from = self.idle_from.max(until);
        match self.free_from.get_mut(block) {
            Some(free_from) => *free_from = (*free_from).max(until),
            None => self.free_from.push(until),
        }
        self.offset = self.offset.wrapping_add(1);
        Some(message_id)
    }

    fn next_is_free(&self, now: Instant) -> bool {
        self.free_at(now) <= now
    }

    /// When the next ID is free. Inside a block that is being used, every one is as free as the block was at its
    /// first.
    fn free_at(&self, now: Instant) -> Instant {
        let block = usize::from(self.offset >> BLOCK_SHIFT);
        let starts_block = self.offset & ((1 << BLOCK_SHIFT) - 1) == 0;
        debug_assert!(block < BLOCKS);
        let free_from = self.free_from.get(block).filter(|_| starts_block);
        free_from.map_or(now, |&free_from| free_from.max(now))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::peer::{Local, Peer, SocketId};

    const LIFETIME: Duration = Duration::from_secs(247);

    /// Message IDs and the peers they are for.
    struct Ids {
        ids: MessageIds,
        peers: Peers,
    }

    impl Ids {
        fn new() -> Self {
            let peers = Peers::new(ahash::RandomState::with_seeds(1, 2, 3, 4));
            Self { ids: MessageIds::new(fastrand::Rng::with_seed(1)), peers }
        }

        fn number(&mut self, peer: &Peer) -> PeerNumber {
            self.peers.tidy();
            let sender = self.peers.sender(peer);
            self.peers.add(&sender)
        }

        fn take(&mut self, peer: &Peer, now: Instant) -> Option<u16> {
            let number = self.number(peer);
            self.ids.take(&mut self.peers, number, LIFETIME, now)
        }

        fn take_for_response(&mut self, peer: &Peer, now: Instant) -> Option<u16> {
            let number = self.number(peer);
            self.ids.take_for_response(&mut self.peers, number, LIFETIME, now)
        }

        fn is_available(&mut self, peer: &Peer, now: Instant) -> bool {
            let number = self.number(peer);
            self.ids.is_available(&self.peers, number, now)
        }

        fn is_known(&mut self, peer: &Peer) -> bool {
            self.peers.tidy();
            self.peers.number(peer).is_some_and(|number| self.peers.space(number).is_some())
        }

        #[track_caller]
        fn check(&self) {
            self.peers.check_invariants(self.ids.peers(), std::iter::empty());
            assert_eq!(self.ids.idle.len(), self.ids.len());
        }
    }

    fn peer(port: u16) -> Peer {
        let local = Local { socket: SocketId(0), address: None };
        Peer { local, remote: ([127, 0, 0, 1], port).into() }
    }

    #[test]
    fn no_id_comes_twice_within_its_lifetime() {
        let mut ids = Ids::new();
        let mut used: HashMap<u16, Instant> = HashMap::new();
        let (mut now, mut refused, mut taken) = (Instant::ZERO, 0u32, 0u32);
        // A slow start and then a rush: the second round meets IDs of very different age.
        for step in 0..400_000u32 {
            now += Duration::from_micros(if step < 20_000 { 8_000 } else { 1_500 });
            let available = ids.is_available(&peer(1), now);
            match ids.take(&peer(1), now) {
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
        let mut ids = Ids::new();
        let number = |number: u32| Peer {
            remote: ([10, 0, (number >> 16) as u8, 1], number as u16).into(),
            ..peer(1)
        };
        for stranger in 0..EndpointParameters::MOST_PEERS as u32 {
            assert!(ids.is_available(&number(stranger), Instant::ZERO));
            assert!(ids.take_for_response(&number(stranger), Instant::ZERO).is_some());
        }
        let newcomer = number(EndpointParameters::MOST_PEERS as u32);
        assert!(!ids.is_available(&newcomer, Instant::ZERO));
        assert_eq!(ids.take(&newcomer, Instant::ZERO), None);
        assert!(ids.take_for_response(&newcomer, Instant::ZERO).is_some());
        assert_eq!(ids.ids.len(), EndpointParameters::MOST_PEERS);
        ids.check();
        assert!(!ids.is_known(&number(0)) && ids.is_known(&number(1)));
    }

    #[test]
    fn peers_have_spaces_of_their_own_and_are_forgotten() {
        let mut ids = Ids::new();
        for port in 1..=1000 {
            assert!(ids.take(&peer(port), Instant::ZERO).is_some());
        }
        assert_eq!(ids.ids.len(), 1000);
        let later = Instant::ZERO + LIFETIME;
        for port in 2001..=3000 {
            ids.take(&peer(port), later);
        }
        assert!(ids.ids.len() <= 1001, "{}", ids.ids.len());
        ids.check();
    }
}
