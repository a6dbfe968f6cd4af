//! Our messages under way by peer and Message ID: how Acknowledgements, Resets and ICMP errors find
//! them. What is kept is the slot of a message, in which the two are read.
//!
//! Message IDs towards a peer count up, so that those of the last messages fall beside each other in a
//! ring. What another takes the place of while it is under way moves to a table.

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
    hasher: ahash::RandomState,
}

impl ByMessageId {
    pub(super) fn new(hasher: ahash::RandomState) -> Self {
        Self { ring: vec![NONE; FEWEST], others: HashTable::new(), hasher }
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
            _ if self.others.is_empty() => None,
            _ => self.get_other(messages, wanted),
        }
    }

    #[inline(never)]
    fn get_other(&self, messages: &Slots<Message>, wanted: (PeerNumber, u16)) -> Option<ExchangeId> {
        let is_it = |&slot: &u32| key(messages.at(slot)) == wanted;
        self.others.find(hash(&self.hasher, wanted), is_it).map(|&slot| messages.id(slot))
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

    /// Panics when a message under way is not found, or one that is over has a place in the table.
    pub(super) fn check_invariants(&self, messages: &Slots<Message>) {
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
        table.table.check_invariants(&table.messages);
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
            table.check_invariants(messages);
            assert_eq!(table.get(messages, number, 7), Some(found));
            assert_ne!(found, other);
            table.remove(messages, found.slot);
            messages.end(found.slot);
        }
        assert_eq!(table.get(messages, number, 7), None);
        table.check_invariants(messages);
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
                table.table.check_invariants(&table.messages);
            }
        }
    }
}
