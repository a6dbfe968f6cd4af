//! Control messages as the kernel lays them out: `size_t` length, two `int`s, data, padding.
//!
//! Written out in bytes rather than with the `CMSG_*` macros, so that it needs no `unsafe`. The
//! layout is the kernel's and the same under every C library.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::sockaddr::{Family, unmapped};

/// Room for the most that can come at once: `IPV6_RECVERR` with its offender, `IPV6_PKTINFO` and, to a
/// dual-stack socket, `IP_PKTINFO`.
pub(crate) const CONTROL_SIZE: usize = space(16 + 28) + space(20) + space(12);
/// Room for the source address of one datagram: `IPV6_PKTINFO`.
pub(crate) const SOURCE_SIZE: usize = space(20);
/// Room for all that is told with datagrams that leave: their source, and where to cut them.
pub(crate) const TOLD_SIZE: usize = SOURCE_SIZE + space(2);

const WORD: usize = size_of::<usize>();
const HEADER: usize = WORD + 8;

const fn space(data: usize) -> usize {
    HEADER + data.next_multiple_of(WORD)
}

/// One control message.
pub(crate) struct Message<'c> {
    pub(crate) level: i32,
    pub(crate) kind: i32,
    pub(crate) data: &'c [u8],
}

/// The messages in `control`, up to the first that is not whole.
pub(crate) fn messages(mut control: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = usize::from_ne_bytes(*control.first_chunk()?);
        let level = i32::from_ne_bytes(*control.get(WORD..)?.first_chunk()?);
        let kind = i32::from_ne_bytes(*control.get(WORD + 4..)?.first_chunk()?);
        let data = control.get(HEADER..length)?;
        control = control.get(length.next_multiple_of(WORD)..).unwrap_or_default();
        Some(Message { level, kind, data })
    })
}

/// The address a datagram was sent to: one of ours, a multicast group, or 255.255.255.255 for whatever
/// broadcast it was.
pub(crate) fn destination(control: &[u8]) -> Option<IpAddr> {
    packet_information(control, |PacketV4 { own, written }| {
        // What a reply would leave from differs from what was asked only where that is no address of
        // one host; all zeros means that the kernel had no route at hand to tell.
        let asked_alone = own == written || own.is_unspecified();
        if asked_alone || written.is_multicast() { written } else { Ipv4Addr::BROADCAST }
    })
}

/// The address of ours that an ICMP error came to, which the datagram it is about had left from.
pub(crate) fn concerned(control: &[u8]) -> Option<IpAddr> {
    // The kernel fills in nothing else for an entry of the error queue: `own` is noise there.
    packet_information(control, |packet| packet.written)
}

/// An `in_pktinfo { ipi_ifindex, ipi_spec_dst, ipi_addr }`.
struct PacketV4 {
    own: Ipv4Addr,
    written: Ipv4Addr,
}

fn packet_information(control: &[u8], v4: impl Fn(PacketV4) -> Ipv4Addr) -> Option<IpAddr> {
    let mut address = None;
    for message in messages(control) {
        match (message.level, message.kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let own: [u8; 4] = *message.data.get(4..)?.first_chunk()?;
                let written: [u8; 4] = *message.data.get(8..)?.first_chunk()?;
                return Some(IpAddr::V4(v4(PacketV4 { own: own.into(), written: written.into() })));
            }
            // in6_pktinfo { ipi6_addr, ipi6_ifindex }. An IPv4 datagram to a dual-stack socket has both,
            // and this one cannot tell a broadcast.
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let octets: [u8; 16] = *message.data.first_chunk()?;
                address = Some(unmapped(Ipv6Addr::from(octets)));
            }
            _ => {}
        }
    }
    address
}

/// Writes the control message that makes a datagram leave from `source`; returns its length.
///
/// Shape: `scope` is the interface of a link-local destination, 0 for any other.
pub(crate) fn encode_source(
    source: IpAddr,
    scope: u32,
    family: Family,
    control: &mut [u8; TOLD_SIZE],
) -> usize {
    control[..SOURCE_SIZE].fill(0);
    let (level, kind, data) = match (source, family) {
        (IpAddr::V4(source), Family::V4) => {
            control[HEADER + 4..HEADER + 8].copy_from_slice(&source.octets());
            (libc::IPPROTO_IP, libc::IP_PKTINFO, 12)
        }
        (source, Family::V4 | Family::V6) => {
            let octets = match source {
                IpAddr::V4(source) => source.to_ipv6_mapped().octets(),
                IpAddr::V6(source) => source.octets(),
            };
            control[HEADER..HEADER + 16].copy_from_slice(&octets);
            control[HEADER + 16..HEADER + 20].copy_from_slice(&scope.to_ne_bytes());
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, 20)
        }
    };
    encode_header(data, level, kind, control);
    space(data)
}

/// Adds the control message that makes the kernel cut what is sent into datagrams of `size` bytes, the
/// last of which may be shorter; returns the length of all messages.
///
/// Shape: `length` bytes of `control` are in use, by a source at most.
/// Source: Linux, `udp(7)`, `UDP_SEGMENT`.
pub(crate) fn encode_segment_size(size: u16, length: usize, control: &mut [u8; TOLD_SIZE]) -> usize {
    let message = &mut control[length..length + space(2)];
    message.fill(0);
    message[HEADER..HEADER + 2].copy_from_slice(&size.to_ne_bytes());
    encode_header(2, libc::SOL_UDP, libc::UDP_SEGMENT, message);
    length + space(2)
}

fn encode_header(data: usize, level: i32, kind: i32, message: &mut [u8]) {
    message[..WORD].copy_from_slice(&(HEADER + data).to_ne_bytes());
    message[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
    message[WORD + 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_of_ipv6_sockets_reads_back_as_the_destination() {
        for address in ["2001:db8::1", "192.0.2.1"] {
            let address: IpAddr = address.parse().expect("an address");
            let mut control = [0; TOLD_SIZE];
            let length = encode_source(address, 0, Family::V6, &mut control);
            assert_eq!(destination(&control[..length]), Some(address));
        }
    }

    #[test]
    fn an_ipv4_datagram_to_nobody_in_particular_was_broadcast() {
        let information = |own: [u8; 4], written: [u8; 4]| {
            let mut control = [0; space(12)];
            control[..WORD].copy_from_slice(&(HEADER + 12).to_ne_bytes());
            control[WORD..WORD + 4].copy_from_slice(&libc::IPPROTO_IP.to_ne_bytes());
            control[WORD + 4..HEADER].copy_from_slice(&libc::IP_PKTINFO.to_ne_bytes());
            control[HEADER + 4..HEADER + 8].copy_from_slice(&own);
            control[HEADER + 8..HEADER + 12].copy_from_slice(&written);
            control
        };
        let own = [192, 0, 2, 1];
        for (own, written, expected) in [
            (own, own, own),
            (own, [192, 0, 2, 255], [255; 4]),
            (own, [255; 4], [255; 4]),
            (own, [224, 0, 1, 187], [224, 0, 1, 187]),
            ([0; 4], [192, 0, 2, 7], [192, 0, 2, 7]),
        ] {
            let control = information(own, written);
            assert_eq!(destination(&control), Some(IpAddr::from(expected)), "{own:?} {written:?}");
            assert_eq!(concerned(&control), Some(IpAddr::from(written)));
        }
    }

    #[test]
    fn broken_control_messages_end_the_list() {
        let mut control = [0; TOLD_SIZE];
        let length = encode_source(IpAddr::V6(Ipv6Addr::LOCALHOST), 0, Family::V6, &mut control);
        assert_eq!(messages(&control[..length]).count(), 1);
        assert_eq!(messages(&control[..HEADER + 19]).count(), 0);
        for claimed in [0, HEADER - 1, usize::MAX, length + 1] {
            control[..WORD].copy_from_slice(&claimed.to_ne_bytes());
            assert_eq!(messages(&control[..length]).count(), 0, "a claimed length of {claimed}");
        }
    }
}
