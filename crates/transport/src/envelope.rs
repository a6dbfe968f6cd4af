//! What the kernel is told of a datagram, and what it tells.

use std::net::SocketAddr;

use crate::control::{CONTROL_SIZE, TOLD_SIZE};
use crate::sockaddr::{self, NAME_SIZE};

/// How many datagrams one system call moves at most.
///
/// The gain of batching is all but complete at 32; 64 costs nothing more but 128 KiB of slots.
pub const BATCH: usize = 64;

/// What the kernel tells of one message next to its bytes.
pub(crate) struct Arrival {
    pub(crate) name: [u8; NAME_SIZE],
    pub(crate) name_length: usize,
    pub(crate) control: [u8; CONTROL_SIZE],
    pub(crate) control_length: usize,
    pub(crate) length: usize,
    pub(crate) flags: i32,
}

impl Arrival {
    pub(crate) const EMPTY: Self = Self {
        name: [0; NAME_SIZE],
        name_length: 0,
        control: [0; CONTROL_SIZE],
        control_length: 0,
        length: 0,
        flags: 0,
    };

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        sockaddr::decode(self.name.get(..self.name_length)?)
    }

    pub(crate) fn truncated(&self) -> bool {
        self.flags & libc::MSG_TRUNC != 0
    }

    pub(crate) fn control(&self) -> &[u8] {
        self.control.get(..self.control_length).unwrap_or_default()
    }
}

/// What the kernel is told of one datagram, or of several that it is to cut apart, in its own terms.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) name: [u8; NAME_SIZE],
    pub(crate) name_length: usize,
    pub(crate) control: [u8; TOLD_SIZE],
    pub(crate) control_length: usize,
    /// How many datagrams it holds.
    pub(crate) datagrams: usize,
    /// In how many pieces they lie.
    pub(crate) pieces: usize,
}
