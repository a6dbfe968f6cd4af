//! Who may have requests forwarded, and what may be reached (RFC 7252 §11.3, §11.5).
//!
//! A target is judged twice: as it was named, before a look-up, and as the address that was found,
//! before anything is sent. A literal address is both at once.
//!
//! With a list of targets, addresses that mean this host or this link are reached only when a network
//! in the list means just that: one inside `127.0.0.0/8`, `::1`, `169.254.0.0/16`, `fe80::/10` or
//! `0.0.0.0/8` for those, one address exactly for 255.255.255.255, `::` and this host's own. Neither
//! `0.0.0.0/0` nor a name opens them. Our own listeners are never reached.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use coapway_message::uri::{Authority, Host};
use ipnet::IpNet;

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
pub fn admit_client(parameters: &Parameters, client: IpAddr) -> Result<(), Refusal> {
    let client = client.to_canonical();
    let admitted = match &parameters.forward {
        Forward::Off => false,
        Forward::Open => true,
        Forward::Listed { clients, .. } => clients.iter().any(|network| network.contains(&client)),
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
/// Of a named upstream's addresses only multicast, port 0 and our own listeners are refused.
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
            _ if is_own_listener(parameters, SocketAddr::new(ip, port)) => false,
            (Admission::Upstream, _) => true,
            (_, Forward::Off) => false,
            (_, Forward::Open) => is_usual(port) && matches!(Reach::of(ip), Reach::Network | Reach::Loopback),
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

/// What an address means beyond being one of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Network,
    Loopback,
    LinkLocal,
    Unspecified,
    Broadcast,
    /// An IPv4 address in an IPv6 one (`::/96`, `64:ff9b::/96`): a translator may lead anywhere.
    Embedded,
}

impl Reach {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(Ipv4Addr::BROADCAST) => Self::Broadcast,
            IpAddr::V4(address) if address.is_loopback() => Self::Loopback,
            IpAddr::V4(address) if address.is_link_local() => Self::LinkLocal,
            IpAddr::V4(address) if matches!(address.octets(), [0, ..]) => Self::Unspecified,
            IpAddr::V6(address) if address.is_loopback() => Self::Loopback,
            IpAddr::V6(address) if address.is_unicast_link_local() => Self::LinkLocal,
            IpAddr::V6(address) if address.is_unspecified() => Self::Unspecified,
            IpAddr::V6(address) if matches!(address.segments(), [0 | 0x64, 0 | 0xFF9B, 0, 0, 0, 0, ..]) => {
                Self::Embedded
            }
            IpAddr::V4(_) | IpAddr::V6(_) => Self::Network,
        }
    }
}

/// Whether an address is neither this host's nor this link's.
fn is_elsewhere(parameters: &Parameters, address: IpAddr) -> bool {
    Reach::of(address) == Reach::Network && !is_own_address(parameters, address)
}

fn lists(parameters: &Parameters, pattern: &TargetPattern, address: IpAddr, port: u16) -> bool {
    match &pattern.hosts {
        Hosts::Network(network) if network.contains(&address) && allows_port(pattern, port) => {
            let reach = Reach::of(address);
            if reach != Reach::Network {
                is_within(network, reach)
            } else {
                network.prefix_len() == network.max_prefix_len() || !is_own_address(parameters, address)
            }
        }
        Hosts::Network(_) | Hosts::Name(_) | Hosts::Under(_) => false,
    }
}

/// Whether all of `network` has this reach: each is one block, so its ends tell.
fn is_within(network: &IpNet, reach: Reach) -> bool {
    Reach::of(network.network()) == reach && Reach::of(network.broadcast()) == reach
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

pub(crate) fn same_name(one: &str, other: &str) -> bool {
    without_root(one).eq_ignore_ascii_case(without_root(other))
}

/// A name without the dot that stands for the root of the name space.
fn without_root(name: &str) -> &str {
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
        let means_us = ip.is_loopback() || ip.is_unspecified() || is_own_address(parameters, ip);
        own.port() == address.port() && (listens_at == ip || listens_at.is_unspecified() && means_us)
    })
}

fn is_own_address(parameters: &Parameters, ip: IpAddr) -> bool {
    let listeners = parameters.own.iter().map(SocketAddr::ip);
    parameters.own_addresses.iter().copied().chain(listeners).any(|own| own.to_canonical() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Upstream;

    fn listed(allow: &[&str]) -> Parameters {
        Parameters {
            forward: Forward::Listed {
                clients: vec!["10.0.0.0/8".parse().expect("a network")],
                allow: allow.iter().map(|text| text.parse().expect("a pattern")).collect(),
            },
            own: vec!["[::]:5683".parse().expect("an address")],
            own_addresses: vec!["10.9.9.9".parse().expect("an address")],
            own_names: vec!["proxy.example".into()],
            ..Parameters::default()
        }
    }

    fn open() -> Parameters {
        Parameters {
            forward: Forward::Open,
            own: vec!["127.0.0.1:5683".parse().expect("an address")],
            ..Parameters::default()
        }
    }

    fn authority(text: &str) -> Authority {
        let uri = format!("coap://{text}/");
        coapway_message::uri::Uri::parse(&uri).unwrap_or_else(|e| panic!("{text}: {e}")).into_authority()
    }

    fn target(parameters: &Parameters, text: &str) -> Result<UpstreamId, Refusal> {
        admit_target(parameters, &authority(text)).map(|(upstream, _)| upstream)
    }

    /// Whether a request for `name` may be sent to `address` once that was found.
    fn found(parameters: &Parameters, name: &str, address: &str) -> Result<(), Refusal> {
        let address: SocketAddr = address.parse().expect("an address");
        let named = Authority { host: Host::Name(name.into()), port: address.port() };
        let (_, admission) = admit_target(parameters, &named)?;
        admit_address(parameters, admission, address)
    }

    #[test]
    fn open_reaches_unicast_at_usual_ports_but_not_itself() {
        let parameters = open();
        for text in ["10.1.1.1", "127.0.0.1:5700", "[::1]:5683", "10.1.1.1:1024", "name", "10.1.1.1:5684"] {
            assert_eq!(target(&parameters, text), Ok(UpstreamId::DEFAULT), "{text}");
        }
        for text in
            ["10.1.1.1:53", "name:80", "127.0.0.1", "255.255.255.255", "0.0.0.0", "[::]", "10.1.1.1:0"]
        {
            assert_eq!(target(&parameters, text), Err(Refusal::TARGET), "{text}");
        }
        assert_eq!(found(&parameters, "name", "127.0.0.1:5683"), Err(Refusal::TARGET));
        assert_eq!(found(&parameters, "name", "[::ffff:127.0.0.1]:5683"), Err(Refusal::TARGET));
    }

    #[test]
    fn multicast_is_not_implemented_anywhere() {
        for parameters in [open(), listed(&["0.0.0.0/0", "::/0"]), Parameters::default()] {
            for text in ["224.0.1.187", "[ff02::fd]", "[::ffff:224.0.1.187]"] {
                assert_eq!(target(&parameters, text), Err(Refusal::MULTICAST), "{text}");
            }
        }
        let address = "224.0.1.187:5683".parse().expect("an address");
        assert_eq!(admit_address(&open(), Admission::Upstream, address), Err(Refusal::MULTICAST));
    }

    #[test]
    fn only_listed_clients_are_served() {
        let parameters = listed(&[]);
        let client = |text: &str| admit_client(&parameters, text.parse().expect("an address"));
        assert_eq!((client("10.2.3.4"), client("::ffff:10.2.3.4")), (Ok(()), Ok(())));
        assert_eq!((client("11.2.3.4"), client("::1")), (Err(Refusal::FORWARDING), Err(Refusal::FORWARDING)));
        assert_eq!(admit_client(&Parameters::default(), [10, 0, 0, 1].into()), Err(Refusal::FORWARDING));
        assert_eq!(admit_client(&open(), [10, 0, 0, 1].into()), Ok(()));
    }

    #[test]
    fn listed_targets_are_reached_at_their_ports() {
        let parameters = listed(&["10.1.0.0/16", "10.2.0.1:53", "[2001:db8::/32]:5700"]);
        for text in ["10.1.2.3", "10.1.2.3:7000", "10.2.0.1:53", "[2001:db8::1]:5700"] {
            assert!(target(&parameters, text).is_ok(), "{text}");
        }
        for text in ["10.3.0.1", "10.1.2.3:53", "10.2.0.1", "[2001:db8::1]", "10.1.2.3:0"] {
            assert_eq!(target(&parameters, text), Err(Refusal::TARGET), "{text}");
        }
    }

    #[test]
    fn a_name_is_judged_again_by_its_address() {
        let parameters = listed(&["*.plant.example", "boiler", "10.1.0.0/16:7000"]);
        for text in ["a.plant.example", "A.B.Plant.Example.", "boiler", "other:7000"] {
            assert!(target(&parameters, text).is_ok(), "{text}");
        }
        for text in ["plant.example", "aplant.example", "other", "boiler:53"] {
            assert_eq!(target(&parameters, text), Err(Refusal::TARGET), "{text}");
        }
        assert_eq!(found(&parameters, "boiler", "192.0.2.1:5683"), Ok(()));
        assert_eq!(found(&parameters, "other", "10.1.2.3:7000"), Ok(()));
        assert_eq!(found(&parameters, "other", "192.0.2.1:7000"), Err(Refusal::TARGET));
        for address in ["127.0.0.1:5683", "[::1]:5683", "169.254.1.1:5683", "[fe80::1]:5683", "10.9.9.9:7000"]
        {
            assert_eq!(found(&parameters, "boiler", address), Err(Refusal::TARGET), "{address}");
        }
    }

    #[test]
    fn a_catch_all_does_not_open_this_host_or_this_link() {
        let everything = listed(&["0.0.0.0/0", "::/0", "10.0.0.0/8", "0.0.0.0/1"]);
        let addresses =
            ["127.0.0.1:7000", "[::1]:7000", "169.254.1.1", "[fe80::1]", "0.0.0.0:7000", "10.9.9.9:7000"];
        for text in addresses.iter().chain(&["255.255.255.255", "[::]:7000"]) {
            assert_eq!(target(&everything, text), Err(Refusal::TARGET), "{text}");
        }
        assert!(target(&everything, "192.0.2.1").is_ok() && target(&everything, "[2001:db8::1]").is_ok());
        let exact = listed(&["127.0.0.0/8", "::1", "169.254.0.0/16", "fe80::/10", "0.0.0.0", "10.9.9.9"]);
        for text in addresses {
            assert!(target(&exact, text).is_ok(), "{text}");
        }
    }

    #[test]
    fn knows_itself_under_each_address_and_name() {
        let parameters = listed(&[]);
        for text in [
            "10.9.9.9",
            "127.0.0.1",
            "[::1]",
            "[::ffff:10.9.9.9]",
            "0.0.0.0",
            "Proxy.Example",
            "proxy.example.",
        ] {
            assert!(is_own(&parameters, &authority(text)), "{text}");
        }
        for text in ["10.9.9.8", "10.9.9.9:5700", "proxy.example:5700", "example"] {
            assert!(!is_own(&parameters, &authority(text)), "{text}");
        }
        assert!(is_own(&open(), &authority("127.0.0.1")) && !is_own(&open(), &authority("127.0.0.2")));
    }

    #[test]
    fn listeners_of_ours_are_not_reached_even_when_listed() {
        let parameters = listed(&["10.9.9.9", "127.0.0.0/8", "proxy"]);
        for address in ["10.9.9.9:5683", "127.0.0.1:5683"] {
            assert_eq!(found(&parameters, "proxy", address), Err(Refusal::TARGET), "{address}");
        }
        assert_eq!(found(&parameters, "proxy", "127.0.0.1:5700"), Ok(()));
    }

    #[test]
    fn named_upstreams_are_exempt_and_recognised() {
        let mut parameters = listed(&[]);
        parameters.upstreams.push(Upstream { name: "a".into(), authority: Some(authority("127.0.0.1:53")) });
        parameters.upstreams.push(Upstream { name: "b".into(), authority: Some(authority("boiler")) });
        assert_eq!(target(&parameters, "127.0.0.1:53"), Ok(UpstreamId(1)));
        assert_eq!(target(&parameters, "BOILER:5683"), Ok(UpstreamId(2)));
        assert_eq!(target(&parameters, "boiler:5700"), Err(Refusal::TARGET));
        assert_eq!(found(&parameters, "boiler", "10.7.7.7:5683"), Ok(()));
        assert_eq!(found(&parameters, "boiler", "127.0.0.1:5683"), Err(Refusal::TARGET), "that is us");
    }

    #[test]
    fn addresses_a_translator_may_lead_anywhere_are_not_open() {
        for address in ["[::127.0.0.1]:5801", "[64:ff9b::7f00:1]:5801", "[64:ff9b::a01:203]:5683"] {
            assert_eq!(target(&open(), address), Err(Refusal::TARGET), "{address}");
        }
        assert_eq!(target(&listed(&["64:ff9b::/96"]), "[64:ff9b::a01:203]:5683"), Ok(UpstreamId::DEFAULT));
    }
}
