//! One datagram that waits to be sent.

use std::net::{IpAddr, SocketAddr};

/// Where a datagram goes, and where in the arena it is.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) to: SocketAddr,
    /// As it was given.
    pub(super) from: Option<IpAddr>,
    pub(super) start: usize,
    pub(super) length: usize,
    /// Whether it may leave before or after its neighbours.
    pub(super) unordered: bool,
}
