//! An address as the key of a table.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use ahash::RandomState;
use coapway_endpoint::hash_address;

/// An address and a small number that tells uses of it apart, hashed by words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressKey(pub(crate) SocketAddr, pub(crate) u32);

impl Hash for AddressKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_address(&self.0, self.1, state);
    }
}

/// The number of a client, which nobody can choose: keyed hashes of its address. The lower half is the same for all
/// of one site, an IPv4 address or an IPv6 /64 of which one sender may use every port and every address. On this
/// host each port is a site of its own, programs that share nothing else, which the lowest bit says.
#[inline]
pub(crate) fn number_of(client: &SocketAddr, hasher: &RandomState) -> u64 {
    let ip = client.ip().to_canonical();
    let (site, rest) = match ip {
        IpAddr::V4(address) => (u64::from(address.to_bits()), 0),
        IpAddr::V6(address) => ((address.to_bits() >> 64) as u64, address.to_bits() as u64),
    };
    let port = if ip.is_loopback() { client.port() } else { 0 };
    let site = hasher.hash_one((site, port));
    let rest = if rest == 0 { site } else { hasher.hash_one((site, rest)) };
    let endpoint = scattered((rest >> 32) as u32 ^ u32::from(client.port()));
    let site = site as u32 & !1 | u32::from(port != 0);
    u64::from(endpoint) << 32 | u64::from(site)
}

/// Another number for each number, so that ports of one address have different ones that do not follow each other.
const fn scattered(number: u32) -> u32 {
    let number = (number ^ number >> 16).wrapping_mul(0x9e37_79b1);
    number ^ number >> 15
}

/// Who is counted where one sender must not do what takes several: the site of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site(NonZeroU32);

/// Who is counted where clients share places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holder(NonZeroU32);

impl Site {
    /// By the number of a client.
    pub(crate) const fn of(client: u64) -> Self {
        Self(not_zero(client as u32))
    }

    pub(crate) const fn number(self) -> u32 {
        self.0.get()
    }

    /// Whether it is a single endpoint.
    pub(crate) const fn is_of_one(self) -> bool {
        self.0.get() & 1 == 1
    }
}

impl Holder {
    /// By the number of a client.
    pub(crate) const fn of(client: u64) -> Self {
        Self(not_zero((client >> 32) as u32))
    }
}

const fn not_zero(number: u32) -> NonZeroU32 {
    match NonZeroU32::new(number) {
        Some(number) => number,
        None => NonZeroU32::MIN.saturating_add(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(client: &str) -> u64 {
        number_of(&client.parse().expect("an address"), &RandomState::with_seeds(1, 2, 3, 4))
    }

    fn are_of_one_site(one: &str, other: &str) -> bool {
        assert_ne!(number(one), number(other), "each endpoint has its number");
        Site::of(number(one)) == Site::of(number(other))
    }

    #[test]
    fn who_uses_many_ports_or_addresses_of_a_prefix_is_one_site() {
        assert!(are_of_one_site("10.0.0.1:1000", "10.0.0.1:1001"));
        assert!(!are_of_one_site("10.0.0.1:1000", "10.0.0.2:1000"));
        assert!(are_of_one_site("[fd00:0:0:1::1]:1000", "[fd00:0:0:1::2]:1000"));
        assert!(are_of_one_site("[fd00:0:0:1::1]:1000", "[fd00:0:0:1::1]:1001"));
        assert!(!are_of_one_site("[fd00:0:0:1::1]:1000", "[fd00:0:0:2::1]:1000"));
        assert_eq!(number("10.0.0.1:1000"), number("[::ffff:10.0.0.1]:1000"));
    }

    #[test]
    fn on_this_host_each_port_is_a_site() {
        assert!(!are_of_one_site("127.0.0.1:1000", "127.0.0.1:1001"));
        assert!(!are_of_one_site("[::1]:1000", "[::1]:1001"));
        for (client, is_a_site) in [("127.0.0.1:1000", true), ("[::1]:1000", true), ("10.0.0.1:1000", false)]
        {
            let number = number(client);
            assert_eq!(Site::of(number).is_of_one(), is_a_site, "{client}");
        }
    }

    #[test]
    fn all_ports_of_an_address_have_numbers() {
        let numbers: std::collections::HashSet<u64> =
            (0..=u16::MAX).map(|port| number(&format!("10.0.0.1:{port}"))).collect();
        assert_eq!(numbers.len(), 1 << 16);
    }
}
