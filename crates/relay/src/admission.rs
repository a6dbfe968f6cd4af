//! Who may have requests forwarded, and what may be reached (RFC 7252 §11.3, §11.5).
//!
//! A target is judged twice: as it was named, before a look-up, and as the address that was found,
//! before anything is sent. A literal address is both at once.
//!
//! With a list of targets, addresses that mean this host or this link are reached only when a network
//! in the list means just that: one inside `127.0.0.0/8`, `::1`, `169.254.0.0/16` or `0.0.0.0/8` for those,
//! one address exactly for broadcasts, `::` and this host's own. Neither `0.0.0.0/0` nor a name opens them.
//! Our own listeners are never reached, nor are link-local addresses of IPv6: they lead nowhere without
//! a zone, for which a URI has no place (RFC 9844).

mod reach;

use std::net::{IpAddr, SocketAddr};

use coapway_message::uri::{Authority, Host, HostRef};
use reach::Reach;

use crate::answer::Refusal;
use crate::parameters::{Forward, Hosts, Parameters, TargetPattern, UpstreamId};

/// Whether a request to `authority` is one to ourselves (RFC 7252 §5.7.2).
pub fn is_own(parameters: &Parameters, authority: &Authority) -> bool {
    match &authority.host {
        Host::Address(address) => is_own_listener(parameters, SocketAddr::new(*address, authority.port)),
        Host::Name(name) => {
            parameters.own.iter().any(|own| own.port() == authority.port)
                && parameters.own_names.iter().any(|own| same_name(own, name))
        }
    }
}

/// Whether a client's address is believed without further proof: loopback, or one that is trusted.
pub fn is_verified(parameters: &Parameters, client: IpAddr) -> bool {
    let client = client.to_canonical();
    client.is_loopback() || parameters.trusted.iter().any(|network| network.contains(&client))
}

/// Whether requests of this client are forwarded at all.
#[inline]
pub fn admit_client(parameters: &Parameters, client: IpAddr) -> Result<(), Refusal> {
    let admitted = match &parameters.forward {
        Forward::Off => false,
        Forward::Open => true,
        Forward::Listed { clients, .. } => {
            let client = client.to_canonical();
            clients.iter().any(|network| network.contains(&client))
        }
    };
    if admitted { Ok(()) } else { Err(Refusal::FORWARDING) }
}

/// On what grounds a target was admitted before its address was known: what [`admit_address`] needs to
/// know of it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// It is a named upstream, the operator's own choice.
    Upstream,
    /// Its name is listed, so it may be anywhere but on this host or this link.
    Name,
    /// Nothing is known of its name; where it is must be listed.
    Address,
}

/// Whether a forward request may go to `authority`, as far as can be said without a look-up, on what
/// grounds, and whose settings it then uses.
///
/// A name that is not listed is still looked up when the list holds networks for its port.
pub fn admit_target(
    parameters: &Parameters,
    authority: &Authority,
) -> Result<(UpstreamId, Admission), Refusal> {
    let named = parameters.upstreams.iter().zip(0..).find(|(u, _)| u.authority.as_ref() == Some(authority));
    let upstream = named.map_or(UpstreamId::DEFAULT, |(_, index)| UpstreamId(index));
    let admission = match &authority.host {
        _ if named.is_some() => Admission::Upstream,
        Host::Address(_) => Admission::Address,
        Host::Name(name) => admit_name(parameters, name, authority.port)?,
    };
    match authority.socket_address() {
        Some(address) => admit_address(parameters, admission, address)?,
        None if authority.port == 0 => return Err(Refusal::TARGET),
        None => {}
    }
    Ok((upstream, admission))
}

/// Whether a request may be sent to `address`.
///
/// Of a named upstream's addresses only multicast, broadcasts, port 0, our own listeners and those that
/// lack a zone are refused.
pub fn admit_address(
    parameters: &Parameters,
    admission: Admission,
    address: SocketAddr,
) -> Result<(), Refusal> {
    let (ip, port) = (address.ip().to_canonical(), address.port());
    if ip.is_multicast() {
        return Err(Refusal::MULTICAST);
    }
    let admitted = port != 0
        && match (admission, &parameters.forward) {
            _ if is_own_listener(parameters, SocketAddr::new(ip, port)) || lacks_zone(ip) => false,
            (Admission::Upstream, _) => reach(parameters, ip) != Reach::Broadcast,
            (_, Forward::Off) => false,
            (_, Forward::Open) if is_usual(port) => {
                matches!(reach(parameters, ip), Reach::Network | Reach::Loopback)
            }
            (_, Forward::Open) => false,
            (admission, Forward::Listed { allow, .. }) => {
                admission == Admission::Name && is_elsewhere(parameters, ip)
                    || allow.iter().any(|pattern| lists(parameters, pattern, ip, port))
            }
        };
    if admitted { Ok(()) } else { Err(Refusal::TARGET) }
}

fn admit_name(parameters: &Parameters, name: &str, port: u16) -> Result<Admission, Refusal> {
    match &parameters.forward {
        Forward::Open if is_usual(port) => Ok(Admission::Address),
        Forward::Off | Forward::Open => Err(Refusal::TARGET),
        Forward::Listed { allow, .. } => {
            let mut patterns = allow.iter().filter(|pattern| allows_port(pattern, port));
            let leads_somewhere = patterns.clone().any(|pattern| matches!(pattern.hosts, Hosts::Network(_)));
            if patterns.any(|pattern| names(&pattern.hosts, name)) {
                Ok(Admission::Name)
            } else if leads_somewhere {
                Ok(Admission::Address)
            } else {
                Err(Refusal::TARGET)
            }
        }
    }
}

/// Whether an address is one on each link: an answer comes from it and a zone, which is another address.
fn lacks_zone(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// What an address means here, where this host's networks have addresses for everybody in them.
fn reach(parameters: &Parameters, address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) if parameters.own_broadcasts.contains(&address) => Reach::Broadcast,
        IpAddr::V4(_) | IpAddr::V6(_) => Reach::of(address),
    }
}

/// Whether an address is neither this host's nor this link's.
fn is_elsewhere(parameters: &Parameters, address: IpAddr) -> bool {
    reach(parameters, address) == Reach::Network && !is_own_address(parameters, address)
}

fn lists(parameters: &Parameters, pattern: &TargetPattern, address: IpAddr, port: u16) -> bool {
    match &pattern.hosts {
        Hosts::Network(network) if network.contains(&address) && allows_port(pattern, port) => {
            let is_one = network.prefix_len() == network.max_prefix_len();
            match reach(parameters, address) {
                Reach::Network => is_one || !is_own_address(parameters, address),
                Reach::Broadcast => is_one,
                reach @ (Reach::Loopback | Reach::LinkLocal | Reach::Unspecified | Reach::Embedded) => {
                    reach.covers(network)
                }
            }
        }
        Hosts::Network(_) | Hosts::Name(_) | Hosts::Under(_) => false,
    }
}

fn names(hosts: &Hosts, name: &str) -> bool {
    match hosts {
        Hosts::Network(_) => false,
        Hosts::Name(listed) => same_name(listed, name),
        Hosts::Under(suffix) => {
            let (name, suffix) = (without_root(name), without_root(suffix));
            name.len() > suffix.len() && name.ends_with(suffix)
        }
    }
}

/// The address that a host is, with brackets or without.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    match HostRef::parse(host.as_bytes()) {
        Ok(HostRef::Address(address)) => Some(address),
        Ok(HostRef::Name(_)) | Err(_) => None,
    }
}

pub(crate) fn same_name(one: &str, other: &str) -> bool {
    without_root(one).eq_ignore_ascii_case(without_root(other))
}

/// A name without the dot that stands for the root of the name space.
pub(crate) fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn allows_port(pattern: &TargetPattern, port: u16) -> bool {
    pattern.port.map_or_else(|| is_usual(port), |listed| listed == port)
}

/// Whether CoAP is likely to be there rather than a well-known service of another protocol.
const fn is_usual(port: u16) -> bool {
    port >= 1024
}

fn is_own_listener(parameters: &Parameters, address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    parameters.own.iter().any(|own| {
        let listens_at = own.ip().to_canonical();
        let means_us = || ip.is_loopback() || ip.is_unspecified() || is_own_address(parameters, ip);
        own.port() == address.port() && (listens_at == ip || listens_at.is_unspecified() && means_us())
    })
}

fn is_own_address(parameters: &Parameters, ip: IpAddr) -> bool {
    let listeners = parameters.own.iter().map(SocketAddr::ip);
    parameters.own_addresses.iter().copied().chain(listeners).any(|own| own.to_canonical() == ip)
}

#[cfg(test)]
mod tests;
