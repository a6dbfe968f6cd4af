//! ICMP errors about datagrams we sent, as the socket's error queue tells them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::control;
use crate::envelope::Arrival;

/// How much of the offending datagram is kept, in bytes: more than any CoAP header and token.
pub(super) const QUOTE_SIZE: usize = 64;

/// An ICMP error that a datagram of ours brought about, or so somebody says.
///
/// ICMP is not authenticated. Believe it only when destination and payload match something that is
/// still under way.
/// Source: RFC 7252 §4.2; RFC 8085 §5.2.
#[derive(Clone, PartialEq, Eq)]
pub struct IcmpError {
    /// Where the datagram went, with its port.
    pub destination: SocketAddr,
    /// The address of ours that it had left from; `None` unless the socket is bound to a wildcard
    /// address, since any other socket knows.
    pub local: Option<IpAddr>,
    /// What the network says.
    pub code: IcmpCode,
    quote: [u8; QUOTE_SIZE],
    quoted: u8,
}

impl IcmpError {
    /// The beginning of the datagram, as far as the error quotes it.
    ///
    /// Shape: 0 to 64 bytes. IPv4 routers may quote as little as the UDP header: then it is empty.
    pub fn payload(&self) -> &[u8] {
        self.quote.get(..usize::from(self.quoted)).unwrap_or_default()
    }

    /// Reads one entry of the error queue; `None` for one that no ICMP message caused.
    pub(super) fn decode(arrival: &Arrival, payload: &[u8]) -> Option<Self> {
        let destination = arrival.address()?;
        let code =
            control::messages(arrival.control()).find_map(|message| match (message.level, message.kind) {
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    code(message.data)
                }
                _ => None,
            })?;
        let mut quote = [0; QUOTE_SIZE];
        let quoted = payload.len().min(QUOTE_SIZE);
        quote.get_mut(..quoted)?.copy_from_slice(payload.get(..quoted)?);
        let local = control::concerned(arrival.control());
        Some(Self { destination, local, code, quote, quoted: quoted as u8 })
    }
}

impl fmt::Debug for IcmpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IcmpError")
            .field("destination", &self.destination)
            .field("local", &self.local)
            .field("code", &self.code)
            .field("payload", &self.payload())
            .finish()
    }
}

/// What an ICMP error says. Only `Unreachable` says that an exchange will come to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpCode {
    /// Datagrams do not get there.
    Unreachable(Unreachable),
    /// It did not fit; the kernel has noted the path's MTU and fragments from now on.
    MessageTooBig {
        /// The MTU of the next hop, in bytes; 0 when it was not told.
        mtu: u32,
    },
    /// Time Exceeded or Source Quench: says nothing about the peer, and is to be ignored.
    Ignored,
    /// Any other message.
    Other,
}

/// What cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No route to the network.
    Net,
    /// No such host, or it is down.
    Host,
    /// The host does not speak UDP.
    Protocol,
    /// Nothing listens on the port.
    Port,
    /// A filter on the way forbids it.
    Admin,
}

/// The meaning of a `sock_extended_err { errno: u32, origin, type, code, pad: u8, info, data: u32 }`.
fn code(data: &[u8]) -> Option<IcmpCode> {
    let [origin, kind, code] = *data.get(4..)?.first_chunk()?;
    let info = u32::from_ne_bytes(*data.get(8..)?.first_chunk()?);
    match origin {
        libc::SO_EE_ORIGIN_ICMP => Some(code_v4(kind, code, info)),
        libc::SO_EE_ORIGIN_ICMP6 => Some(code_v6(kind, code, info)),
        // The kernel's own verdict on a datagram; the send call that brought it about reports it.
        _ => None,
    }
}

/// Source: RFC 792; RFC 1812 §5.2.7.1; RFC 6633 (Source Quench).
fn code_v4(kind: u8, code: u8, info: u32) -> IcmpCode {
    match (kind, code) {
        (3, 0 | 6 | 11) => IcmpCode::Unreachable(Unreachable::Net),
        (3, 1 | 7 | 8 | 12) => IcmpCode::Unreachable(Unreachable::Host),
        (3, 2) => IcmpCode::Unreachable(Unreachable::Protocol),
        (3, 3) => IcmpCode::Unreachable(Unreachable::Port),
        (3, 4) => IcmpCode::MessageTooBig { mtu: info },
        (3, 9 | 10 | 13 | 14 | 15) => IcmpCode::Unreachable(Unreachable::Admin),
        (4 | 11, _) => IcmpCode::Ignored,
        _ => IcmpCode::Other,
    }
}

/// Source: RFC 4443 §3.
fn code_v6(kind: u8, code: u8, info: u32) -> IcmpCode {
    match (kind, code) {
        (1, 0) => IcmpCode::Unreachable(Unreachable::Net),
        (1, 1 | 5 | 6) => IcmpCode::Unreachable(Unreachable::Admin),
        (1, 2 | 3) => IcmpCode::Unreachable(Unreachable::Host),
        (1, 4) => IcmpCode::Unreachable(Unreachable::Port),
        (2, _) => IcmpCode::MessageTooBig { mtu: info },
        (3, _) => IcmpCode::Ignored,
        (4, 1) => IcmpCode::Unreachable(Unreachable::Protocol),
        _ => IcmpCode::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreachable_kinds_say_that_a_peer_is_unreachable() {
        let extended = |origin, kind, code| [0, 0, 0, 0, origin, kind, code, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let unreachable = |what| Some(IcmpCode::Unreachable(what));
        assert_eq!(code(&extended(libc::SO_EE_ORIGIN_ICMP, 3, 3)), unreachable(Unreachable::Port));
        assert_eq!(code(&extended(libc::SO_EE_ORIGIN_ICMP6, 1, 4)), unreachable(Unreachable::Port));
        assert_eq!(code(&extended(libc::SO_EE_ORIGIN_ICMP, 3, 13)), unreachable(Unreachable::Admin));
        assert_eq!(code(&extended(libc::SO_EE_ORIGIN_ICMP, 11, 0)), Some(IcmpCode::Ignored));
        assert_eq!(code(&extended(libc::SO_EE_ORIGIN_ICMP, 4, 0)), Some(IcmpCode::Ignored));
        assert_eq!(code(&extended(libc::SO_EE_ORIGIN_ICMP6, 3, 0)), Some(IcmpCode::Ignored));
        assert_eq!(code(&extended(libc::SO_EE_ORIGIN_ICMP, 12, 0)), Some(IcmpCode::Other));
        assert_eq!(code(&extended(1, 3, 3)), None, "a local error");
        assert_eq!(code(&[0; 7]), None);
    }
}
