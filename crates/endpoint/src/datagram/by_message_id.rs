//! Our messages under way by peer and Message ID: how Acknowledgements, Resets and ICMP errors find
//! them. What is in the table is the slot of a message, in which the two are read.

use coapway_message::ExchangeId;
use hashbrown::HashTable;

use super::message::Message;
use super::peers::{PeerNumber, Peers};
use super::slots::Slots;
use crate::peer::Peer;

#[derive(Debug)]
pub(super) struct ByMessageId {
    slots: HashTable<u32>,
    hasher: ahash::RandomState,
}

impl ByMessageId {
    pub(super) fn new(hasher: ahash::RandomState) -> Self {
        // Room from the start: a table that is full of traces of what is over is tidied often.
        Self { slots: HashTable::with_capacity(448), hasher }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Adds a message whose peer and Message ID no other under way has.
    #[inline]
    pub(super) fn insert(&mut self, messages: &Slots<Message>, slot: u32) {
        let hasher = &self.hasher;
        self.slots.insert_unique(hash(hasher, key(messages.at(slot))), slot, |&slot| {
            hash(hasher, key(messages.at(slot)))
        });
    }

    /// Takes one out.
    #[inline]
    pub(super) fn remove(&mut self, messages: &Slots<Message>, slot: u32) {
        let hash = hash(&self.hasher, key(messages.at(slot)));
        if let Ok(found) = self.slots.find_entry(hash, |&other| other == slot) {
            found.remove();
        }
    }

    /// Takes out the one to `peer` with this Message ID, if it is wanted.
    #[inline]
    pub(super) fn remove_if(
        &mut self,
        messages: &Slots<Message>,
        peer: PeerNumber,
        message_id: u16,
        is_wanted: impl FnOnce(&Message) -> bool,
    ) -> Option<ExchangeId> {
        let wanted = (peer, message_id);
        let is_it = |&slot: &u32| key(messages.at(slot)) == wanted;
        let found = self.slots.find_entry(hash(&self.hasher, wanted), is_it).ok()?;
        let slot = *found.get();
        is_wanted(messages.at(slot)).then(|| {
            found.remove();
            messages.id(slot)
        })
    }

    #[inline]
    pub(super) fn get(
        &self,
        messages: &Slots<Message>,
        peer: PeerNumber,
        message_id: u16,
    ) -> Option<ExchangeId> {
        let wanted = (peer, message_id);
        let is_it = |&slot: &u32| key(messages.at(slot)) == wanted;
        self.slots.find(hash(&self.hasher, wanted), is_it).map(|&slot| messages.id(slot))
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
        let all: Vec<_> = (0..2000).map(|id| table.add(&peer(0, None, id % 7), id)).collect();
        for ((peer, exchange), id) in all.into_iter().zip(0..) {
            let Table { table, messages, .. } = &mut table;
            assert_eq!(table.get(messages, peer, id), Some(exchange));
            assert_eq!(table.get(messages, peer, id + 1), None, "it is another peer's");
            assert_eq!(table.remove_if(messages, peer, id, |_| false), None);
            if id % 2 == 0 {
                table.remove(messages, exchange.slot);
            } else {
                assert_eq!(table.remove_if(messages, peer, id, |_| true), Some(exchange));
            }
            assert_eq!((table.get(messages, peer, id), table.len()), (None, 1999 - usize::from(id)));
            messages.remove(exchange);
        }
    }
}
