//! Our messages under way by peer and Message ID: how Acknowledgements, Resets and ICMP errors find
//! them.
//!
//! The address we sent from is compared and not hashed ([`Peer`]). An ICMP error does not say which of a
//! wildcard socket's addresses the datagram it quotes had left from; its message is found all the same.

use std::hash::{Hash, Hasher};

use coapway_message::ExchangeId;
use hashbrown::{Equivalent, HashMap};

use crate::peer::Peer;

#[derive(Debug)]
pub(super) struct ByMessageId {
    messages: HashMap<Key, ExchangeId, ahash::RandomState>,
}

#[derive(Debug, PartialEq, Eq)]
struct Key {
    peer: Peer,
    message_id: u16,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.peer.hash(state);
        state.write_u16(self.message_id);
    }
}

#[derive(Hash)]
struct FromAnyAddress<'k>(&'k Key);

impl Equivalent<Key> for FromAnyAddress<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        let Self(wanted) = self;
        wanted.message_id == key.message_id
            && wanted.peer.local.socket == key.peer.local.socket
            && wanted.peer.remote == key.peer.remote
    }
}

impl ByMessageId {
    pub(super) fn new(hasher: ahash::RandomState) -> Self {
        // Room from the start: a table that is full of traces of what is over is tidied often.
        Self { messages: HashMap::with_capacity_and_hasher(448, hasher) }
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn insert(&mut self, peer: Peer, message_id: u16, exchange: ExchangeId) {
        self.messages.insert(Key { peer, message_id }, exchange);
    }

    pub(super) fn remove(&mut self, peer: Peer, message_id: u16) -> Option<ExchangeId> {
        self.messages.remove(&Key { peer, message_id })
    }

    pub(super) fn get(&self, peer: Peer, message_id: u16) -> Option<ExchangeId> {
        self.messages.get(&Key { peer, message_id }).copied()
    }

    /// The message to `peer`; where `peer` names no address of ours, one from any of them.
    pub(super) fn quoted(&self, peer: Peer, message_id: u16) -> Option<ExchangeId> {
        let key = Key { peer, message_id };
        match (self.messages.get(&key), peer.local.address) {
            (None, None) => self.messages.get(&FromAnyAddress(&key)).copied(),
            (found, _) => found.copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::peer::{Local, SocketId};

    const EXCHANGE: ExchangeId = ExchangeId { slot: 3, generation: 5 };

    fn peer(socket: u32, address: Option<IpAddr>, port: u16) -> Peer {
        Peer { local: Local { socket: SocketId(socket), address }, remote: ([127, 0, 0, 1], port).into() }
    }

    #[test]
    fn an_icmp_error_finds_its_message_without_our_address() {
        let mut messages = ByMessageId::new(ahash::RandomState::with_seeds(1, 2, 3, 4));
        let ours = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        messages.insert(peer(1, ours, 5683), 7, EXCHANGE);
        assert_eq!(messages.get(peer(1, None, 5683), 7), None, "an Acknowledgement needs it");
        assert_eq!(messages.quoted(peer(1, None, 5683), 7), Some(EXCHANGE));
        assert_eq!(messages.quoted(peer(1, ours, 5683), 7), Some(EXCHANGE));
        let other = Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        for (peer, message_id) in [
            (peer(2, None, 5683), 7),
            (peer(1, None, 5684), 7),
            (peer(1, None, 5683), 8),
            (peer(1, other, 5683), 7),
        ] {
            assert_eq!(messages.quoted(peer, message_id), None, "{peer:?} {message_id}");
        }
    }
}
