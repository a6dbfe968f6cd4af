//! Datagrams on their way out: one arena, emptied by `poll_transmit`.

use coapway_message::datagram;
use coapway_message::{Content, MessageType};

use crate::peer::Peer;

/// One datagram to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'o> {
    /// From which socket and address, to whom.
    pub peer: Peer,
    /// Its bytes.
    pub datagram: &'o [u8],
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    ends: Vec<(Peer, usize)>,
    next: usize,
    start: usize,
}

impl Outbox {
    fn reset_if_drained(&mut self) {
        if self.next == self.ends.len() && self.next > 0 {
            self.bytes.clear();
            self.ends.clear();
            (self.next, self.start) = (0, 0);
        }
    }

    pub(super) fn push(&mut self, peer: Peer, datagram: &[u8]) {
        self.reset_if_drained();
        self.bytes.extend_from_slice(datagram);
        self.ends.push((peer, self.bytes.len()));
    }

    /// Encodes a message straight into the arena and returns its bytes.
    pub(super) fn encode(
        &mut self,
        peer: Peer,
        message_type: MessageType,
        message_id: u16,
        token: &[u8],
        content: &Content<'_>,
    ) -> &[u8] {
        self.reset_if_drained();
        let start = self.bytes.len();
        datagram::encode(&mut self.bytes, message_type, message_id, token, content);
        self.ends.push((peer, self.bytes.len()));
        &self.bytes[start..]
    }

    pub(super) fn empty(&mut self, peer: Peer, message_type: MessageType, message_id: u16) {
        self.push(peer, &datagram::empty(message_type, message_id));
    }

    pub(super) const fn len(&self) -> usize {
        self.ends.len() - self.next
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.next == self.ends.len()
    }

    pub(super) fn poll(&mut self) -> Option<Transmit<'_>> {
        let &(peer, end) = self.ends.get(self.next)?;
        let start = std::mem::replace(&mut self.start, end);
        self.next += 1;
        Some(Transmit { peer, datagram: &self.bytes[start..end] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Local;

    #[test]
    fn an_arena_that_was_drained_is_used_again() {
        let peer = Peer { local: Local::default(), remote: ([127, 0, 0, 1], 5683).into() };
        let mut outbox = Outbox::default();
        for round in 0..1000_u16 {
            for part in 0..3 {
                outbox.empty(peer, MessageType::Reset, round * 3 + part);
            }
            assert_eq!(outbox.len(), 3);
            for part in 0..3 {
                let expected = datagram::empty(MessageType::Reset, round * 3 + part);
                assert_eq!(outbox.poll().map(|transmit| transmit.datagram.to_vec()), Some(expected.to_vec()));
            }
            assert!(outbox.is_empty() && outbox.poll().is_none());
        }
        assert!(outbox.bytes.capacity() < 100 && outbox.ends.capacity() < 100);
    }
}
