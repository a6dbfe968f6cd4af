//! Datagrams that wait to be sent, and their ways.

use std::net::{IpAddr, SocketAddr};

/// Where datagrams go, and where from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) to: SocketAddr,
    /// As it was given.
    pub(super) from: Option<IpAddr>,
}

impl Way {
    /// Whether it is this one.
    #[inline]
    pub(super) fn is(&self, other: &Self) -> bool {
        let is_there = match (self.to, other.to) {
            (SocketAddr::V4(one), SocketAddr::V4(other)) => {
                one.ip().to_bits() == other.ip().to_bits() && one.port() == other.port()
            }
            (one, other) => one == other,
        };
        is_there && self.from == other.from
    }
}

/// One datagram: its way by number, and where in the arena it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) start: usize,
    pub(super) length: usize,
    pub(super) way: u32,
    /// Whether it may leave before or after its neighbours.
    pub(super) unordered: bool,
}
