//! Listeners that come and go while others serve.

use std::io;
use std::net::SocketAddr;

use coapway_endpoint::SocketId;
use coapway_proxy::SocketRole;
use coapway_transport::{Options, UdpSocket};

use super::Sockets;

/// Numbers of listeners; their roles have no room for more.
const MOST: usize = 1 << 16;

/// An address that cannot be listened on, and why.
pub(crate) type Unbound = (SocketAddr, io::Error);

/// Listeners that are bound and not in use yet. Dropped, they leave nothing behind.
#[derive(Debug, Default)]
pub(crate) struct Bound(Vec<UdpSocket>);

impl Bound {
    /// Binds all of `addresses`.
    ///
    /// Shape:  call it where tokio's runtime runs.
    /// Errors: each that cannot be bound; then none is.
    pub(crate) fn to(addresses: &[SocketAddr]) -> Result<Self, Vec<Unbound>> {
        let (mut bound, mut unbound) = (Vec::new(), Vec::new());
        for &address in addresses {
            match bind(address) {
                Ok(socket) => bound.push(socket),
                Err(error) => unbound.push((address, error)),
            }
        }
        if unbound.is_empty() { Ok(Self(bound)) } else { Err(unbound) }
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    UdpSocket::bind(address, &Options { dual_stack: true, ..Options::default() })
}

impl Sockets {
    /// Binds those of `addresses` that no socket listens on.
    ///
    /// Errors: each address that cannot be bound; then none is.
    pub(crate) fn bind_further(&self, addresses: &[SocketAddr]) -> Result<Bound, Vec<Unbound>> {
        let known: Vec<_> = self.listeners().collect();
        let further: Vec<_> = addresses.iter().copied().filter(|address| !known.contains(address)).collect();
        let mut new = further.iter().filter(|address| !self.numbers.contains_key(address));
        match new.nth(MOST.saturating_sub(self.numbers.len())) {
            None => Bound::to(&further),
            Some(&address) => Err(vec![(address, io::Error::other("too many addresses since the start"))]),
        }
    }

    /// Listens on further sockets too. An address that was listened on before gets the number it had, so
    /// that what its clients sent is still known.
    pub(crate) fn listen_on(&mut self, Bound(bound): Bound) {
        for udp in bound {
            let next = self.numbers.len() as u32;
            let number = *self.numbers.entry(udp.local_addr()).or_insert(next);
            self.add(SocketRole::Listener(number).socket(), udp);
        }
    }

    /// The listeners that are not at one of `addresses`.
    pub(crate) fn listeners_beside(&self, addresses: &[SocketAddr]) -> Vec<SocketId> {
        let is_beside = |id: &SocketId| {
            matches!(SocketRole::of(*id), SocketRole::Listener(_))
                && self.local_addr(*id).is_some_and(|address| !addresses.contains(&address))
        };
        self.open.iter().map(|(_, socket)| socket.id).filter(is_beside).collect()
    }

    /// Closes a socket; `false` while it has something to send.
    pub(crate) fn close(&mut self, id: SocketId) -> bool {
        let Some(place) = self.places.get(id) else { return true };
        if self.dirty.contains(&place) {
            return false;
        }
        let socket = self.open.remove(place);
        self.closed.add(&socket.udp);
        self.places.set(id, None);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    fn addresses(sockets: &Sockets) -> Vec<SocketAddr> {
        sockets.listeners().collect()
    }

    #[tokio::test]
    async fn an_address_that_comes_back_has_its_number_again() {
        let mut sockets = Sockets::bind(&[ANY, ANY]).expect("loopback has ports");
        let [one, two] = addresses(&sockets)[..] else { panic!("two") };
        assert!(sockets.bind_further(&[two, one]).expect("nothing to bind").0.is_empty());
        let [gone] = sockets.listeners_beside(&[two])[..] else { panic!("the first") };
        assert_eq!(sockets.local_addr(gone), Some(one));
        let before = sockets.all().len();
        assert!(sockets.close(gone) && sockets.close(gone));
        assert_eq!((sockets.all().len(), addresses(&sockets)), (before - 1, vec![two]));
        assert!(sockets.open.iter().all(|(place, socket)| sockets.places.get(socket.id) == Some(place)));
        assert_eq!(sockets.local_addr(gone), None);

        let bound = sockets.bind_further(&[one, two]).expect("it is free again");
        sockets.listen_on(bound);
        assert_eq!(sockets.local_addr(gone), Some(one));
        let bound = sockets.bind_further(&[one, two, ANY]).expect("loopback has ports");
        sockets.listen_on(bound);
        assert_eq!(sockets.numbers.len(), 3);
    }

    #[tokio::test]
    async fn what_cannot_be_bound_changes_nothing() {
        let taken = std::net::UdpSocket::bind(ANY).expect("loopback has ports");
        let taken = taken.local_addr().map(|address| (taken, address)).expect("bound");
        let sockets = Sockets::bind(&[ANY]).expect("loopback has ports");
        let elsewhere = ([192, 0, 2, 1], 5683).into();
        let unbound = sockets.bind_further(&[ANY, taken.1, elsewhere]).expect_err("it is taken");
        let kinds: Vec<_> = unbound.iter().map(|(address, error)| (*address, error.kind())).collect();
        let all = [(taken.1, io::ErrorKind::AddrInUse), (elsewhere, io::ErrorKind::AddrNotAvailable)];
        assert_eq!(kinds, all);
        assert_eq!(sockets.listeners().count(), 1);
    }
}
