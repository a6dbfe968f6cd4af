//! Addresses that mean more than one host among many.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

/// What an address means beyond being one of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Network,
    Loopback,
    LinkLocal,
    Unspecified,
    Broadcast,
    /// An IPv4 address in an IPv6 one: a translator or a tunnel may lead anywhere.
    Embedded,
}

impl Reach {
    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(Ipv4Addr::BROADCAST) => Self::Broadcast,
            IpAddr::V4(address) if address.is_loopback() => Self::Loopback,
            IpAddr::V4(address) if address.is_link_local() => Self::LinkLocal,
            IpAddr::V4(address) if matches!(address.octets(), [0, ..]) => Self::Unspecified,
            IpAddr::V6(address) if address.is_loopback() => Self::Loopback,
            IpAddr::V6(address) if address.is_unicast_link_local() => Self::LinkLocal,
            IpAddr::V6(address) if address.is_unspecified() => Self::Unspecified,
            IpAddr::V6(address) if embeds_ipv4(address.segments()) => Self::Embedded,
            IpAddr::V4(_) | IpAddr::V6(_) => Self::Network,
        }
    }

    /// Whether all of `network` has this reach: each is one block or more, so its ends tell.
    pub(super) fn covers(self, network: &IpNet) -> bool {
        Self::of(network.network()) == self && Self::of(network.broadcast()) == self
    }
}

/// IPv4-compatible and IPv4-translated addresses, the prefixes of translators, and 6to4.
///
/// Source: RFC 4291 §2.5.5.1; RFC 7915 §2.2; RFC 6052 §2.1; RFC 8215; RFC 3056.
const fn embeds_ipv4(segments: [u16; 8]) -> bool {
    matches!(
        segments,
        [0, 0, 0, 0, 0, 0, ..]
            | [0, 0, 0, 0, 0xFFFF, 0, ..]
            | [0x64, 0xFF9B, 0, 0, 0, 0, ..]
            | [0x64, 0xFF9B, 1, ..]
            | [0x2002, ..]
    )
}
