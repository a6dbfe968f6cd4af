//! The remote endpoint a message goes to or comes from.

use std::fmt;
use std::hash::{Hash, Hasher};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Every message is looked up by its peer, so the address goes in by words and not byte by byte. Which
/// of our addresses it came to is compared only: peers that differ in nothing else are rare.
impl Hash for Peer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_address(&self.remote, self.local.socket.0, state);
    }
}

/// Hashes an address together with a small number, in one step for IPv4 and in two for IPv6.
#[inline]
pub fn hash_address<H: Hasher>(address: &SocketAddr, number: u32, state: &mut H) {
    let number = number ^ number >> 16;
    let last = u64::from(address.port()) << 16 | u64::from(number & 0xFFFF);
    match address {
        SocketAddr::V4(address) => state.write_u64(u64::from(address.ip().to_bits()) << 32 | last),
        SocketAddr::V6(address) => {
            state.write_u128(address.ip().to_bits());
            state.write_u64(u64::from(address.scope_id()) << 32 | last);
        }
    }
}
