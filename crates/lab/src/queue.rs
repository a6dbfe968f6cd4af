//! What is to happen, by time; and the bytes that are under way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use coapway_time::Instant;

/// A datagram that is under way.
pub(crate) type BufferId = u32;

/// What is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A client asks.
    Ask { client: u32 },
    /// A client has waited for an Acknowledgement to this many copies.
    ClientTimeout { exchange: u32, copies: u8 },
    /// A datagram comes from a client.
    FromClient { client: u32, buffer: BufferId },
    /// A datagram comes to a client.
    ToClient { client: u32, buffer: BufferId },
    /// A datagram comes to the origin.
    ToOrigin(Carried),
    /// A datagram comes from the origin.
    FromOrigin(Carried),
    /// Something is due at the origin.
    Origin { slot: u32, generation: u32, what: Due },
    /// The moment to note what is learned.
    Sample,
}

/// A datagram between proxy and origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Carried {
    pub(crate) hop: Hop,
    /// Of which exchange; [`NONE`] for none.
    pub(crate) exchange: u32,
    /// Which copy of it, or the answer to which.
    pub(crate) copy: u16,
    /// The path made a second one of it.
    pub(crate) again: bool,
    pub(crate) buffer: BufferId,
}

/// The proxy's side of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hop {
    /// The number of the proxy's socket.
    pub(crate) socket: u16,
    /// Through which binding of a translator.
    pub(crate) binding: u32,
}

/// No exchange.
pub(crate) const NONE: u32 = u32::MAX;

/// What can be due at the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// An Acknowledgement without the response.
    EmptyAck,
    /// The response.
    Response,
    /// Another copy of a separate response, after this many.
    Repeat(u8),
}

/// What is to happen, earliest first; of equal moments what was entered first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    /// What is to happen at once.
    at_once: VecDeque<Event>,
    entered: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at: Instant, event: Event) {
        self.entered += 1;
        self.heap.push(Reverse((at, self.entered, event)));
    }

    pub(crate) fn push_at_once(&mut self, event: Event) {
        self.at_once.push_back(event);
    }

    pub(crate) fn pop_at_once(&mut self) -> Option<Event> {
        self.at_once.pop_front()
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Event> {
        self.heap.iter().map(|Reverse((_, _, event))| event).chain(&self.at_once)
    }
}

/// Bytes under way, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    all: Vec<Vec<u8>>,
    free: Vec<BufferId>,
}

impl Buffers {
    /// An empty buffer, filled by `fill`.
    pub(crate) fn fill(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> BufferId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(Vec::with_capacity(128));
            self.all.len() as BufferId - 1
        });
        let buffer = &mut self.all[id as usize];
        buffer.clear();
        fill(buffer);
        id
    }

    /// Takes the bytes out; they come back by [`Buffers::put_back`].
    pub(crate) fn take(&mut self, id: BufferId) -> Vec<u8> {
        std::mem::take(&mut self.all[id as usize])
    }

    pub(crate) fn put_back(&mut self, id: BufferId, bytes: Vec<u8>) {
        self.all[id as usize] = bytes;
        self.free.push(id);
    }

    /// Takes bytes back that are still under way.
    pub(crate) fn restore(&mut self, id: BufferId, bytes: Vec<u8>) {
        self.all[id as usize] = bytes;
    }

    pub(crate) fn drop(&mut self, id: BufferId) {
        self.free.push(id);
    }

    pub(crate) fn copy(&mut self, id: BufferId) -> BufferId {
        let bytes = self.take(id);
        let copy = self.fill(|buffer| buffer.extend_from_slice(&bytes));
        self.all[id as usize] = bytes;
        copy
    }

    pub(crate) fn length(&self, id: BufferId) -> usize {
        self.all[id as usize].len()
    }
}
