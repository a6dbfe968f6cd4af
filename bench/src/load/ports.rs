//! Source ports, none of them twice.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// Opens client sockets towards one proxy.
///
/// A port that comes back within EXCHANGE_LIFETIME would bring its Message IDs back too, and a right
/// proxy would answer them as duplicates (RFC 7252 §4.4, §4.5).
pub(super) struct Ports {
    proxy: SocketAddr,
    used: HashSet<u16>,
}

impl Ports {
    pub(super) fn new(proxy: SocketAddr) -> Self {
        Self { proxy, used: HashSet::new() }
    }

    /// A connected, non-blocking socket on a port that was never used before.
    pub(super) fn open(&mut self) -> io::Result<UdpSocket> {
        // Kept open until a fresh port is found, so that the system does not offer the same one again.
        let mut known = Vec::new();
        for _ in 0..100 {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            if self.used.insert(socket.local_addr()?.port()) {
                socket.connect(self.proxy)?;
                socket.set_nonblocking(true)?;
                return Ok(socket);
            }
            known.push(socket);
        }
        Err(io::Error::other("no fresh source port left"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_opens_a_port_twice() {
        let mut ports = Ports::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 9)));
        for _ in 0..200 {
            drop(ports.open().expect("a socket"));
        }
        assert_eq!(ports.used.len(), 200);
    }
}
