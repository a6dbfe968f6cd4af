//! The remote endpoint a message goes to or comes from.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// One of our sockets, by the number the owner of the sockets gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u32);

/// Our side of a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// The socket.
    pub socket: SocketId,
    /// The address the peer spoke to, where the socket listens on more than one.
    pub address: Option<IpAddr>,
}

/// A remote endpoint as seen from one of ours: what Message IDs and duplicates are scoped to
/// (RFC 7252 §4.4, §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Our side.
    pub local: Local,
    /// Its address and port; IPv4-mapped addresses are unmapped before they come here.
    pub remote: SocketAddr,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.remote, f)
    }
}
