//! The proxy's addresses in the virtual world, and the sockets behind them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use coapway_endpoint::Local;
use coapway_proxy::SocketRole;

/// Where the proxy listens.
pub const LISTENER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 5683);
/// A multicast group that the proxy has joined (All CoAP Nodes, RFC 7252 §12.8).
pub const GROUP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(224, 0, 1, 187)), 5683);
/// The first of the ports that the proxy sends to origins from.
const UPSTREAM_PORTS: u16 = 20_000;

/// The address of one of the proxy's sockets.
pub(super) fn address(role: SocketRole) -> SocketAddr {
    match role {
        SocketRole::Listener(_) => LISTENER,
        SocketRole::Upstream { ipv6, number } => upstream_address(ipv6, number),
    }
}

pub(super) fn upstream_address(ipv6: bool, number: u32) -> SocketAddr {
    let port = UPSTREAM_PORTS + number as u16;
    let ip = if ipv6 { IpAddr::from([0xFD00, 0, 0, 0, 0, 0, 0, 1]) } else { LISTENER.ip() };
    SocketAddr::new(ip, port)
}

/// The number of the proxy's socket towards origins that has this address.
pub(super) fn upstream_number(address: SocketAddr) -> Option<u32> {
    let number = u32::from(address.port().checked_sub(UPSTREAM_PORTS)?);
    (upstream_address(address.is_ipv6(), number) == address).then_some(number)
}

/// Which of the proxy's sockets has this address, as the worker would say it.
pub(super) fn local(address: SocketAddr) -> Option<Local> {
    if address == LISTENER || address == GROUP {
        return Some(Local { socket: SocketRole::Listener(0).socket(), address: Some(address.ip()) });
    }
    let role = SocketRole::Upstream { ipv6: address.is_ipv6(), number: upstream_number(address)? };
    Some(Local { socket: role.socket(), address: None })
}
