//! `sockaddr_in` and `sockaddr_in6` as bytes, so that reading one needs no `unsafe`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The size of the larger of the two, `sockaddr_in6`.
pub(crate) const NAME_SIZE: usize = 28;
const V4_SIZE: usize = 16;

/// Which addresses a socket speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// Writes `address` for a socket of `family` and returns its length.
///
/// An IPv4 address goes to an IPv6 socket in its mapped form. The opposite has no form: the kernel
/// refuses it, as it refuses a mapped address on a socket that is not dual-stack.
pub(crate) fn encode(address: SocketAddr, family: Family, name: &mut [u8; NAME_SIZE]) -> usize {
    match (address, family) {
        (SocketAddr::V4(address), Family::V4) => {
            *name = [0; NAME_SIZE];
            name[0..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            name[2..4].copy_from_slice(&address.port().to_be_bytes());
            name[4..8].copy_from_slice(&address.ip().octets());
            V4_SIZE
        }
        (SocketAddr::V4(address), Family::V6) => {
            encode_v6(SocketAddrV6::new(address.ip().to_ipv6_mapped(), address.port(), 0, 0), name)
        }
        (SocketAddr::V6(address), Family::V4 | Family::V6) => encode_v6(address, name),
    }
}

fn encode_v6(address: SocketAddrV6, name: &mut [u8; NAME_SIZE]) -> usize {
    name[0..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
    name[2..4].copy_from_slice(&address.port().to_be_bytes());
    name[4..8].fill(0); // no flow label
    name[8..24].copy_from_slice(&address.ip().octets());
    name[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
    NAME_SIZE
}

/// Reads what the kernel wrote, in the one form this crate tells addresses in.
///
/// Mapped IPv4 addresses are unmapped, the flow label is dropped, and the scope id stays only where
/// it is part of the address: on link-local ones. So a peer has one address, and addresses compare.
pub(crate) fn decode(name: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*name.first_chunk()?);
    let port = u16::from_be_bytes(*name.get(2..)?.first_chunk()?);
    match i32::from(family) {
        libc::AF_INET => {
            let octets: [u8; 4] = *name.get(4..)?.first_chunk()?;
            Some(SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::from(octets), port)))
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = *name.get(8..)?.first_chunk()?;
            let scope = u32::from_ne_bytes(*name.get(24..)?.first_chunk()?);
            let address = match unmapped(Ipv6Addr::from(octets)) {
                IpAddr::V4(address) => SocketAddr::V4(SocketAddrV4::new(address, port)),
                IpAddr::V6(address) => {
                    let scope = if address.is_unicast_link_local() { scope } else { 0 };
                    SocketAddr::V6(SocketAddrV6::new(address, port, 0, scope))
                }
            };
            Some(address)
        }
        _ => None,
    }
}

/// The IPv4 address inside a mapped one; any other address as it is.
pub(crate) fn unmapped(address: Ipv6Addr) -> IpAddr {
    address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(address: &str, family: Family) -> Option<String> {
        let mut name = [0xff; NAME_SIZE];
        let length = encode(address.parse().expect("an address"), family, &mut name);
        decode(&name[..length]).map(|address| address.to_string())
    }

    #[test]
    fn an_address_comes_back_in_one_form() {
        let same = |address: &str| Some(address.to_owned());
        assert_eq!(round_trip("192.0.2.1:5683", Family::V4), same("192.0.2.1:5683"));
        assert_eq!(round_trip("192.0.2.1:5683", Family::V6), same("192.0.2.1:5683"));
        assert_eq!(round_trip("[2001:db8::1]:5683", Family::V6), same("[2001:db8::1]:5683"));
        assert_eq!(round_trip("[fe80::1%3]:5683", Family::V6), same("[fe80::1%3]:5683"));
        assert_eq!(round_trip("[2001:db8::1%3]:5683", Family::V6), same("[2001:db8::1]:5683"));
    }

    #[test]
    fn a_short_or_foreign_name_is_no_address() {
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[0; NAME_SIZE]), None);
        let mut name = [0; NAME_SIZE];
        let length = encode("[::1]:1".parse().expect("an address"), Family::V6, &mut name);
        assert!((0..length).all(|length| decode(&name[..length]).is_none()));
    }
}
