//! Peers that speak IPv4, which fit in a word.

use std::net::{Ipv4Addr, SocketAddr};

/// A peer in one word: what it is, or, with [`Word::WIDE`] in its lowest 16 bits, where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    const WIDE: u16 = u16::MAX;

    pub(super) const fn wide(place: usize) -> Self {
        Self((place as u64) << 16 | Self::WIDE as u64)
    }

    #[inline]
    pub(super) const fn wide_place(self) -> Option<usize> {
        if self.0 as u16 == Self::WIDE { Some((self.0 >> 16) as usize) } else { None }
    }

    /// `None` for a peer that does not fit.
    #[inline]
    pub(super) fn of(remote: &SocketAddr, local: Option<u16>) -> Option<Self> {
        match (remote, local) {
            (SocketAddr::V4(remote), Some(local)) => {
                let address = u64::from(remote.ip().to_bits()) << 32;
                Some(Self(address | u64::from(remote.port()) << 16 | u64::from(local)))
            }
            (SocketAddr::V4(_) | SocketAddr::V6(_), _) => None,
        }
    }

    #[inline]
    pub(super) fn remote(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::from_bits((self.0 >> 32) as u32), (self.0 >> 16) as u16))
    }
}
