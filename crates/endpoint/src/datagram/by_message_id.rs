//! Our messages under way by peer and Message ID: how Acknowledgements, Resets and ICMP errors find
//! them. What is kept is the slot of a message, in which the two are read.
//!
//! Message IDs towards a peer count up, so that those of the last messages fall beside each other in a
//! ring. What another takes the place of while it is under way moves to a table.
//!
//! Message IDs that further copies have of their own stand in a table of their own, which mostly is empty.

use coapway_message::ExchangeId;
use hashbrown::HashTable;

use super::message::Message;
use super::peers::{PeerNumber, Peers};
use super::slots::Slots;
use crate::peer::Peer;

const NONE: u32 = u32::MAX;
const FEWEST: usize = 256;
/// As many places as the ring has at most.
const MOST: usize = 1 << 15;

#[derive(Debug)]
pub(super) struct ByMessageId {
    /// As many as a power of two. A slot stays in its place when its message is over: whether it still
    /// holds it is read there.
    ring: Vec<u32>,
    others: HashTable<u32>,
    own: HashTable<Own>,
    hasher: ahash::RandomState,
}

/// A Message ID that a further copy of the message in this slot has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Own {
    peer: PeerNumber,
    message_id: u16,
    slot: u32,
}

impl ByMessageId {
    pub(super) fn new(hasher: ahash::RandomState) -> Self {
        Self { ring: vec![NONE; FEWEST], others: HashTable::new(), own: HashTable::new(), hasher }
    }

    #[inline]
    const fn place(&self, (peer, message_id): (PeerNumber, u16)) -> usize {
        let spread = peer.number().wrapping_mul(0x9E37_79B1).wrapping_add(message_id as u32);
        spread as usize & self.ring.len().wrapping_sub(1)
    }

    /// Whether the message under way in this slot has this place in the ring.
    #[inline]
    fn stands_at(&self, messages: &Slots<Message>, slot: u32, place: usize) -> bool {
        messages.live(slot).is_some_and(|message| self.place(key(message)) == place)
    }

    /// Adds the message in this slot; of several under one Message ID the last is found.
    #[inline]
    pub(super) fn insert(&mut self, messages: &Slots<Message>, slot: u32) {
        if messages.len() > self.ring.len() / 2 && self.ring.len() < MOST {
            self.grow(messages);
        }
        let place = self.place(key(messages.at(slot)));
        let Some(&before) = self.ring.get(place) else { return };
        if before != slot && self.stands_at(messages, before, place) {
            self.insert_other(messages, before);
        }
        if let Some(place) = self.ring.get_mut(place) {
            *place = slot;
        }
    }

    #[inline(never)]
    fn insert_other(&mut self, messages: &Slots<Message>, slot: u32) {
        let hash_of = |slot| hash(&self.hasher, key(messages.at(slot)));
        self.others.insert_unique(hash_of(slot), slot, |&slot| hash_of(slot));
    }

    #[cold]
    fn grow(&mut self, messages: &Slots<Message>) {
        let before: Vec<u32> = (0..)
            .zip(&self.ring)
            .filter(|&(place, &slot)| self.stands_at(messages, slot, place))
            .map(|(_, &slot)| slot)
            .collect();
        self.ring = vec![NONE; self.ring.len() * 2];
        // Those that had places of their own have them still.
        for slot in before {
            let place = self.place(key(messages.at(slot)));
            self.ring[place] = slot;
        }
    }

    /// Takes out the message in this slot, which is still under way.
    #[inline]
    pub(super) fn remove(&mut self, messages: &Slots<Message>, slot: u32) {
        let place = self.place(key(messages.at(slot)));
        if self.ring.get(place) != Some(&slot) {
            self.remove_other(messages, slot);
        }
    }

    #[inline(never)]
    fn remove_other(&mut self, messages: &Slots<Message>, slot: u32) {
        let hash = hash(&self.hasher, key(messages.at(slot)));
        if let Ok(found) = self.others.find_entry(hash, |&other| other == slot) {
            found.remove();
        }
    }

    #[inline]
    pub(super) fn get(
        &self,
        messages: &Slots<Message>,
        peer: PeerNumber,
        message_id: u16,
    ) -> Option<ExchangeId> {
        let wanted = (peer, message_id);
        let &slot = self.ring.get(self.place(wanted))?;
        match messages.live(slot) {
            Some(message) if key(message) == wanted => Some(messages.id(slot)),
            _ if self.others.is_empty() && self.own.is_empty() => None,
            _ => self.get_other(messages, wanted),
        }
    }

    #[inline(never)]
    fn get_other(&self, messages: &Slots<Message>, wanted: (PeerNumber, u16)) -> Option<ExchangeId> {
        let hash = hash(&self.hasher, wanted);
        let other = self.others.find(hash, |&slot| key(messages.at(slot)) == wanted).copied();
        let own = || self.own.find(hash, |own| (own.peer, own.message_id) == wanted).map(|own| own.slot);
        other.or_else(own).map(|slot| messages.id(slot))
    }

    /// A further copy of the message in this slot leaves under this Message ID.
    pub(super) fn insert_own(&mut self, peer: PeerNumber, message_id: u16, slot: u32) {
        let hash_of = |own: &Own| hash(&self.hasher, (own.peer, own.message_id));
        let own = Own { peer, message_id, slot };
        self.own.insert_unique(hash_of(&own), own, hash_of);
    }

    /// Whether some copy has a Message ID of its own.
    #[inline]
    pub(super) fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// Takes out those of the message in this slot.
    #[inline(never)]
    pub(super) fn remove_own(&mut self, peer: PeerNumber, ids: impl Iterator<Item = u16>, slot: u32) {
        for message_id in ids {
            let own = Own { peer, message_id, slot };
            if let Ok(found) = self.own.find_entry(hash(&self.hasher, (peer, message_id)), |&one| one == own)
            {
                found.remove();
            }
        }
    }

    /// The message to `peer`; where `peer` names no address of ours, one from any of them: an ICMP error
    /// does not say which of a wildcard socket's addresses the datagram it quotes had left from.
    pub(super) fn quoted(
        &self,
        messages: &Slots<Message>,
        peers: &Peers,
        peer: &Peer,
        message_id: u16,
    ) -> Option<ExchangeId> {
        let find = |number| self.get(messages, number, message_id);
        match (peers.number(peer).and_then(find), peer.local.address) {
            (None, None) => peers.at_any_address(peer).find_map(find),
            (found, _) => found,
        }
    }

    /// Panics when a message under way is not found, or one that is over has a place in the table; `own` are
    /// the slots of messages and the Message IDs that their further copies have of their own.
    pub(super) fn check_invariants(&self, messages: &Slots<Message>, own: impl Iterator<Item = (u32, u16)>) {
        let mut count = 0;
        for (slot, message_id) in own {
            let own = Own { peer: messages.at(slot).peer, message_id, slot };
            let hash = hash(&self.hasher, (own.peer, message_id));
            assert!(self.own.find(hash, |&one| one == own).is_some(), "each copy is found under its ID");
            count += 1;
        }
        assert_eq!(self.own.len(), count, "each ID of its own has a copy under way");
        let stand = |(place, &slot): (usize, &u32)| self.stands_at(messages, slot, place);
        let in_ring = self.ring.iter().enumerate().filter(|&of| stand(of)).count();
        assert_eq!(in_ring + self.others.len(), messages.len(), "each message under way has its ID");
        assert!(self.others.iter().all(|&slot| messages.live(slot).is_some()));
    }
}

#[inline]
const fn key(message: &Message) -> (PeerNumber, u16) {
    (message.peer, message.message_id)
}

#[inline]
fn hash(hasher: &ahash::RandomState, (peer, message_id): (PeerNumber, u16)) -> u64 {
    hasher.hash_one(u64::from(peer.number()) << 16 | u64::from(message_id))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::peer::{Local, SocketId};

    fn peer(socket: u32, address: Option<IpAddr>, port: u16) -> Peer {
        Peer { local: Local { socket: SocketId(socket), address }, remote: ([127, 0, 0, 1], port).into() }
    }

    struct Table {
        table: ByMessageId,
        peers: Peers,
        messages: Slots<Message>,
    }

    impl Table {
        fn new() -> Self {
            let hasher = || ahash::RandomState::with_seeds(1, 2, 3, 4);
            let (table, peers) = (ByMessageId::new(hasher()), Peers::new(hasher()));
            Self { table, peers, messages: Slots::new() }
        }

        fn add(&mut self, peer: &Peer, message_id: u16) -> (PeerNumber, ExchangeId) {
            let sender = self.peers.sender(peer);
            let number = self.peers.add(&sender);
            let (exchange, message) = self.messages.claim();
            (message.peer, message.message_id) = (number, message_id);
            self.table.insert(&self.messages, exchange.slot);
            (number, exchange)
        }

        fn quoted(&self, peer: &Peer, message_id: u16) -> Option<ExchangeId> {
            self.table.quoted(&self.messages, &self.peers, peer, message_id)
        }
    }

    #[test]
    fn an_icmp_error_finds_its_message_without_our_address() {
        let mut table = Table::new();
        let ours = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let (_, exchange) = table.add(&peer(1, ours, 5683), 7);
        assert_eq!(table.peers.number(&peer(1, None, 5683)), None, "an Acknowledgement needs it");
        assert_eq!(table.quoted(&peer(1, None, 5683), 7), Some(exchange));
        assert_eq!(table.quoted(&peer(1, ours, 5683), 7), Some(exchange));
        let other = Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        for (peer, message_id) in [
            (peer(2, None, 5683), 7),
            (peer(1, None, 5684), 7),
            (peer(1, None, 5683), 8),
            (peer(1, other, 5683), 7),
        ] {
            assert_eq!(table.quoted(&peer, message_id), None, "{peer:?} {message_id}");
        }
    }

    #[test]
    fn a_message_is_found_until_it_is_taken_out() {
        let mut table = Table::new();
        // More than there is room for in the ring.
        let all: Vec<_> = (0..60_000).map(|id| table.add(&peer(0, None, id % 7), id)).collect();
        assert_eq!(table.table.ring.len(), MOST);
        table.table.check_invariants(&table.messages, std::iter::empty());
        for ((peer, exchange), id) in all.into_iter().zip(0..) {
            let Table { table, messages, .. } = &mut table;
            assert_eq!(table.get(messages, peer, id), Some(exchange));
            assert_eq!(table.get(messages, peer, id + 1), None, "it is another peer's");
            table.remove(messages, exchange.slot);
            messages.end(exchange.slot);
            assert_eq!(table.get(messages, peer, id), None);
        }
        assert!(table.table.others.is_empty() && table.messages.len() == 0);
    }

    #[test]
    fn of_several_under_one_message_id_the_last_is_found() {
        let mut table = Table::new();
        let (number, first) = table.add(&peer(0, None, 1), 7);
        let (_, second) = table.add(&peer(0, None, 1), 7);
        let Table { table, messages, .. } = &mut table;
        for (found, other) in [(second, first), (first, second)] {
            table.check_invariants(messages, std::iter::empty());
            assert_eq!(table.get(messages, number, 7), Some(found));
            assert_ne!(found, other);
            table.remove(messages, found.slot);
            messages.end(found.slot);
        }
        assert_eq!(table.get(messages, number, 7), None);
        table.check_invariants(messages, std::iter::empty());
    }

    #[test]
    fn whatever_comes_and_goes_is_found_while_it_is_there() {
        let mut random = fastrand::Rng::with_seed(5);
        let (mut table, mut under_way) = (Table::new(), Vec::new());
        let mut next = [0_u16; 40];
        for round in 0..30_000 {
            let most = if round % 5000 < 2500 { 900 } else { 100 };
            if under_way.len() < most {
                let port = random.u16(..40);
                let id = &mut next[usize::from(port)];
                *id += 1;
                let (number, exchange) = table.add(&peer(0, None, port), *id);
                under_way.push((number, *id, exchange));
            } else {
                let (_, _, exchange) = under_way.swap_remove(random.usize(..under_way.len()));
                table.table.remove(&table.messages, exchange.slot);
                table.messages.end(exchange.slot);
            }
            let &(number, id, exchange) = random.choice(&under_way).expect("some");
            assert_eq!(table.table.get(&table.messages, number, id), Some(exchange));
            if round % 100 == 0 {
                table.table.check_invariants(&table.messages, std::iter::empty());
            }
        }
    }

    #[test]
    fn a_message_is_found_under_the_ids_of_its_copies_as_well() {
        let mut table = Table::new();
        let (number, exchange) = table.add(&peer(0, None, 1), 7);
        let (_, next) = table.add(&peer(0, None, 1), 9);
        let Table { table, messages, .. } = &mut table;
        let found = |table: &ByMessageId| [7, 8, 9, 10].map(|id| table.get(messages, number, id));
        assert!(!table.has_own());
        table.insert_own(number, 8, exchange.slot);
        table.insert_own(number, 10, exchange.slot);
        assert_eq!(found(table), [Some(exchange), Some(exchange), Some(next), Some(exchange)]);
        table.check_invariants(messages, [(exchange.slot, 8), (exchange.slot, 10)].into_iter());
        table.remove_own(number, [8, 10].into_iter(), next.slot);
        assert_eq!(found(table)[1], Some(exchange), "they are of another message");
        table.remove_own(number, [8, 10].into_iter(), exchange.slot);
        assert_eq!(found(table), [Some(exchange), None, Some(next), None]);
        table.check_invariants(messages, std::iter::empty());
    }
}
