//! Datagrams that came in, up to [`BATCH`] in one system call.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::control;
use crate::envelope::{Arrival, BATCH};
use crate::syscalls::Headers;

/// The longest datagram that is received whole, in bytes.
///
/// CoAP without a known path MTU stays below 1152 bytes (RFC 7252 §4.6), and an Ethernet frame holds
/// 1500, so two slots to a page hold all that is legitimate, and all slots stay in the L2 cache;
/// slots of 64 KiB would be 4 MiB. What is longer arrives cut and marked, so that the caller can
/// still read its header and answer it.
pub const SLOT_SIZE: usize = 2048;

/// Room for [`BATCH`] datagrams, made once and filled again and again.
///
/// One serves all sockets of a worker, one after the other.
pub struct ReceiveBatch {
    pub(super) arrivals: Box<[Arrival]>,
    pub(super) bytes: Box<[u8]>,
    pub(super) headers: Headers,
    pub(super) length: usize,
    /// How many the last receive had room for.
    pub(super) room: usize,
}

impl ReceiveBatch {
    /// Makes an empty batch; it allocates 128 KiB of slots, what tells of them, and nothing later.
    pub fn new() -> Self {
        Self {
            arrivals: (0..BATCH).map(|_| Arrival::EMPTY).collect(),
            bytes: vec![0; BATCH * SLOT_SIZE].into_boxed_slice(),
            headers: Headers::new(),
            length: 0,
            room: BATCH,
        }
    }

    /// How many datagrams the last receive left here, 0 to [`BATCH`].
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the last receive found nothing.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether the last receive found as much as it had room for, so that there may be more.
    pub fn is_full(&self) -> bool {
        self.length >= self.room
    }

    pub(super) fn truncated(&self) -> usize {
        self.arrivals.iter().take(self.length).map(|arrival| usize::from(arrival.truncated())).sum()
    }

    /// The datagrams of the last receive, in their order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = Received<'_>> {
        let slots = self.arrivals.iter().zip(self.bytes.chunks_exact(SLOT_SIZE));
        slots.take(self.length).filter_map(|(arrival, slot)| {
            Some(Received {
                // Always there: the kernel names the sender of every datagram of our two families.
                from: arrival.address()?,
                to: control::destination(arrival.control()),
                datagram: slot.get(..arrival.length)?,
                truncated: arrival.truncated(),
            })
        })
    }
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveBatch").field("length", &self.length).finish_non_exhaustive()
    }
}

/// One datagram that came in.
#[derive(Clone, Copy, Debug)]
pub struct Received<'b> {
    /// The sender: IPv4 unmapped, no flow label, a scope id only on link-local addresses.
    pub from: SocketAddr,
    /// The local address it was sent to; `None` unless the socket is bound to a wildcard address,
    /// since any other socket knows.
    ///
    /// It may be a multicast group, and is 255.255.255.255 for a broadcast of any kind: nobody was
    /// asked in particular (RFC 7252 §8.1).
    pub to: Option<IpAddr>,
    /// Its payload, or the first [`SLOT_SIZE`] bytes of it.
    pub datagram: &'b [u8],
    /// Whether it was longer than that: the rest is gone.
    pub truncated: bool,
}
