//! Datagrams on their way out: one arena, emptied by `poll_transmit`.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use coapway_message::{Content, MessageType, datagram};

use super::peers::{PeerNumber, Peers, Sender};
use crate::peer::{Local, Peer};

/// One datagram to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'o> {
    /// From which socket and address, to whom.
    pub peer: &'o Peer,
    /// Its bytes.
    pub datagram: &'o [u8],
}

#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    datagrams: Vec<Outgoing>,
    /// Those to whom a datagram leaves and of whom nothing is kept.
    strangers: Vec<Peer>,
    next: usize,
    start: usize,
    /// The one to whom the last datagram left, and where it stood.
    peer: Peer,
    to: Option<To>,
}

impl Default for Outbox {
    fn default() -> Self {
        let remote = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        let peer = Peer { local: Local::default(), remote };
        let (bytes, datagrams, strangers) = (Vec::new(), Vec::new(), Vec::new());
        Self { bytes, datagrams, strangers, next: 0, start: 0, peer, to: None }
    }
}

#[derive(Clone, Copy, Debug)]
struct Outgoing {
    to: To,
    length: u32,
}

/// A peer by its number, or a stranger by its place, from [`To::STRANGER`] on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct To(u32);

impl To {
    const STRANGER: u32 = 1 << 31;
}

impl From<PeerNumber> for To {
    #[inline]
    fn from(peer: PeerNumber) -> Self {
        Self(peer.number())
    }
}

impl Outbox {
    #[inline]
    fn reset_if_drained(&mut self) {
        if self.next == self.datagrams.len() && self.next > 0 {
            self.bytes.clear();
            self.datagrams.clear();
            self.strangers.clear();
            (self.next, self.start, self.to) = (0, 0, None);
        }
    }

    #[inline]
    fn add(&mut self, to: To, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.datagrams.push(Outgoing { to, length: datagram.len() as u32 });
    }

    pub(super) fn push(&mut self, peer: PeerNumber, datagram: &[u8]) {
        self.reset_if_drained();
        self.add(peer.into(), datagram);
    }

    /// Has a message written straight into the arena and returns its bytes.
    #[inline]
    pub(super) fn write(&mut self, peer: PeerNumber, write: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        self.reset_if_drained();
        let start = self.bytes.len();
        write(&mut self.bytes);
        let datagram = &self.bytes[start..];
        self.datagrams.push(Outgoing { to: peer.into(), length: datagram.len() as u32 });
        datagram
    }

    /// The same for one that is still to be encoded.
    #[inline]
    pub(super) fn encode(
        &mut self,
        peer: PeerNumber,
        message_type: MessageType,
        message_id: u16,
        token: &[u8],
        content: &Content<'_>,
    ) -> &[u8] {
        self.write(peer, |bytes| datagram::encode(bytes, message_type, message_id, token, content))
    }

    pub(super) fn empty(&mut self, peer: PeerNumber, message_type: MessageType, message_id: u16) {
        self.push(peer, &datagram::empty(message_type, message_id));
    }

    /// An Empty message to someone of whom nothing need be kept.
    pub(super) fn empty_to(&mut self, sender: &Sender<'_>, message_type: MessageType, message_id: u16) {
        self.reply(sender, &datagram::empty(message_type, message_id));
    }

    /// A datagram to someone of whom nothing need be kept.
    pub(super) fn reply(&mut self, sender: &Sender<'_>, datagram: &[u8]) {
        self.reset_if_drained();
        let to = match sender.number {
            Some(number) => number.into(),
            None => {
                self.strangers.push(*sender.peer);
                To(To::STRANGER + self.strangers.len() as u32 - 1)
            }
        };
        self.add(to, datagram);
    }

    pub(super) const fn len(&self) -> usize {
        self.datagrams.len() - self.next
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.next == self.datagrams.len()
    }

    #[inline(always)]
    pub(super) fn poll(&mut self, peers: &Peers) -> Option<Transmit<'_>> {
        let &Outgoing { to, length } = self.datagrams.get(self.next)?;
        if self.to != Some(to) {
            self.peer = match self.strangers.get(to.0.wrapping_sub(To::STRANGER) as usize) {
                Some(stranger) => *stranger,
                None => peers.get(PeerNumber::from_number(to.0)),
            };
            self.to = Some(to);
        }
        let start = self.start;
        self.start += length as usize;
        self.next += 1;
        Some(Transmit { peer: &self.peer, datagram: &self.bytes[start..self.start] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> Peer {
        Peer { local: Default::default(), remote: ([127, 0, 0, 1], port).into() }
    }

    #[test]
    fn an_arena_that_was_drained_is_used_again() {
        let mut peers = Peers::new(ahash::RandomState::with_seeds(1, 2, 3, 4));
        let (known, stranger) = (peer(1), peer(2));
        let sender = peers.sender(&known);
        let number = peers.add(&sender);
        let mut outbox = Outbox::default();
        for round in 0..1000_u16 {
            outbox.empty(number, MessageType::Reset, round * 3);
            outbox.empty_to(&peers.sender(&stranger), MessageType::Reset, round * 3 + 1);
            outbox.empty_to(&peers.sender(&known), MessageType::Reset, round * 3 + 2);
            assert_eq!(outbox.len(), 3);
            for (part, to) in (0..).zip([known, stranger, known]) {
                let expected = datagram::empty(MessageType::Reset, round * 3 + part);
                let transmit = outbox.poll(&peers).expect("one of three");
                assert_eq!((*transmit.peer, transmit.datagram), (to, &expected[..]));
            }
            assert!(outbox.is_empty() && outbox.poll(&peers).is_none());
        }
        assert!(outbox.bytes.capacity() < 100 && outbox.datagrams.capacity() < 100);
        assert!(outbox.strangers.capacity() < 100);
    }
}
