//! What a proxy is told about its place: origins, routes, and who may reach what. Plain data; whoever
//! reads a configuration checks it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use coapway_message::uri::{Authority, Host, HostRef};
use ipnet::IpNet;

/// An index into [`Parameters::upstreams`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamId(pub u32);

impl UpstreamId {
    /// The set for origins that are reached by forwarding and have no name.
    pub const DEFAULT: Self = Self(0);
}

/// The settings of the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The default set, then the named origins.
    pub upstreams: Vec<Upstream>,
    /// Reverse routes; of two that match equally well the first wins.
    pub routes: Vec<Route>,
    /// Who may have requests forwarded, and where to.
    pub forward: Forward,
    /// Where we listen. An unspecified address means each local address with that port.
    pub own: Vec<SocketAddr>,
    /// The addresses of this host, for listeners on an unspecified address.
    pub own_addresses: Vec<IpAddr>,
    /// The addresses that mean everybody in a network of this host.
    pub own_broadcasts: Vec<Ipv4Addr>,
    /// The names of this host, in lower case.
    pub own_names: Vec<Box<str>>,
    /// Who we are in a 5.08 (RFC 8768 §4): at most 64 bytes without a space; empty for nobody.
    pub identifier: Box<str>,
    /// The Hop-Limit of a forwarded request that came without one, 1 to 255; 16 is the RFC's own
    /// default where one is inserted (RFC 8768 §3).
    pub insert_hop_limit: Option<u8>,
    /// Networks of clients whose addresses are believed, beside loopback.
    pub trusted: Vec<IpNet>,
    /// Requests a second that one client, a /32 or /64, may make; 0 for any number. Loopback is exempt.
    pub client_rate: u32,
}

impl Default for Parameters {
    /// Neither routes nor forwarding.
    fn default() -> Self {
        Self {
            upstreams: vec![Upstream { name: "default".into(), authority: None }],
            routes: Vec::new(),
            forward: Forward::Off,
            own: Vec::new(),
            own_addresses: Vec::new(),
            own_broadcasts: Vec::new(),
            own_names: Vec::new(),
            identifier: "coapway".into(),
            insert_hop_limit: None,
            trusted: Vec::new(),
            client_rate: 1000,
        }
    }
}

/// An origin server with settings of its own, or the default set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its name in configuration and records.
    pub name: Box<str>,
    /// Where it is; `None` for the default set.
    pub authority: Option<Authority>,
}

/// A part of our namespace that is served by an origin (RFC 7252 §5.7.3).
///
/// Each URI leads to one route and each route to one upstream, so a resource of ours has one origin and
/// ETags pass unchanged (R-REV-02). All addresses of an upstream's name are taken for that one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The Uri-Host it is for, in lower case, or the address that requests without one came to; `None` for
    /// each.
    pub host: Option<Box<str>>,
    /// The segments its paths begin with; empty for `/`.
    pub path: Vec<Box<[u8]>>,
    /// The origin.
    pub upstream: UpstreamId,
    /// Whether the origin does not see those segments.
    pub strip: bool,
}

/// Who may have requests forwarded, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Nobody.
    Off,
    /// Everybody, to any unicast address and a usual port: for a listener on loopback.
    Open,
    /// Those listed, to what is listed.
    Listed {
        /// Networks of clients.
        clients: Vec<IpNet>,
        /// Targets; named upstreams are reached without being here.
        allow: Vec<TargetPattern>,
    },
}

/// Targets that may be reached by forwarding.
///
/// ```text
/// target [":" port]     target: 10.1.2.3   10.1.0.0/16   [2001:db8::1]   [2001:db8::/32]   name   *.suffix
/// 2001:db8::/32         brackets may be left out where no port follows
/// ```
/// Without a port it means the ports 5683, 5684 and those from 1024 on, which keeps other protocols'
/// servers out of reach (RFC 7252 §11.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPattern {
    /// Which hosts.
    pub hosts: Hosts,
    /// Which port, when it is only one.
    pub port: Option<u16>,
}

/// The hosts of a [`TargetPattern`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// The addresses of a network, whatever name led there.
    Network(IpNet),
    /// One name, in lower case.
    Name(Box<str>),
    /// All names under this one, in lower case and with its leading dot.
    Under(Box<str>),
}

/// Why a text is not a [`TargetPattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The part behind the last colon is no port.
    #[error("port must be 1 to 65535")]
    Port,
    /// What stands before the port is neither a network nor a name.
    #[error("neither an address, a network (10.1.0.0/16, [fd00::/8]), a name nor *.suffix")]
    Hosts,
}

impl FromStr for TargetPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if let Some(network) = network(text) {
            return Ok(Self { hosts: Hosts::Network(network), port: None });
        }
        let (hosts, port) = match text.rsplit_once(':') {
            Some((hosts, port)) if !text.ends_with(']') => (hosts, Some(parse_port(port)?)),
            _ => (text, None),
        };
        let hosts = match hosts.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(literal) if literal.contains(':') => {
                Hosts::Network(network(literal).ok_or(PatternError::Hosts)?)
            }
            Some(_) => return Err(PatternError::Hosts),
            None => match hosts.strip_prefix('*') {
                Some(suffix) if suffix.len() > 1 && suffix.starts_with('.') => Hosts::Under(name(suffix)?),
                Some(_) => return Err(PatternError::Hosts),
                // An IPv6 address with a port needs brackets.
                None if hosts.contains(':') => return Err(PatternError::Hosts),
                None => {
                    network(hosts).map_or_else(|| name(hosts).map(Hosts::Name), |n| Ok(Hosts::Network(n)))?
                }
            },
        };
        Ok(Self { hosts, port })
    }
}

/// An address or a network; IPv4-mapped ones as the IPv4 networks they are.
fn network(text: &str) -> Option<IpNet> {
    let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()?;
    let (address, length) = (network.addr().to_canonical(), network.prefix_len());
    let length = if address.is_ipv4() && network.addr().is_ipv6() { length.checked_sub(96)? } else { length };
    IpNet::new(address, length).ok()
}

fn parse_port(text: &str) -> Result<u16, PatternError> {
    text.parse().ok().filter(|&port| port != 0).ok_or(PatternError::Port)
}

fn name(text: &str) -> Result<Box<str>, PatternError> {
    match HostRef::parse(text.as_bytes()).map(Host::from) {
        Ok(Host::Name(name)) => Ok((&*name).into()),
        Ok(Host::Address(_)) | Err(_) => Err(PatternError::Hosts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> TargetPattern {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn reads_networks_with_and_without_port() {
        for (text, expected, port) in [
            ("10.1.0.0/16", "10.1.0.0/16", None),
            ("10.1.2.3", "10.1.2.3/32", None),
            ("10.1.2.3:5700", "10.1.2.3/32", Some(5700)),
            ("10.1.0.0/16:5700", "10.1.0.0/16", Some(5700)),
            ("fe80::/10", "fe80::/10", None),
            ("::1", "::1/128", None),
            ("[fe80::/10]", "fe80::/10", None),
            ("[fe80::/10]:5683", "fe80::/10", Some(5683)),
            ("[2001:db8::1]:1", "2001:db8::1/128", Some(1)),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8", None),
        ] {
            let network = expected.parse().expect("a network");
            assert_eq!(pattern(text), TargetPattern { hosts: Hosts::Network(network), port }, "{text}");
        }
    }

    #[test]
    fn reads_names_with_and_without_port() {
        assert_eq!(pattern("Boiler"), TargetPattern { hosts: Hosts::Name("boiler".into()), port: None });
        assert_eq!(
            pattern("boiler:5700"),
            TargetPattern { hosts: Hosts::Name("boiler".into()), port: Some(5700) }
        );
        let suffix = Hosts::Under(".plant.example".into());
        assert_eq!(pattern("*.Plant.example:7"), TargetPattern { hosts: suffix, port: Some(7) });
    }

    #[test]
    fn refuses_what_is_neither() {
        for text in ["boiler:0", "boiler:x", "10.1.2.3:65536", "[::1]:"] {
            assert_eq!(text.parse::<TargetPattern>(), Err(PatternError::Port), "{text}");
        }
        for text in
            ["", "*", "*.", "*plant", "10.1.0.0/33", "[10.0.0.1]", "[::1", "a b", "127.1", "*.1", "g::1:5683"]
        {
            assert_eq!(text.parse::<TargetPattern>(), Err(PatternError::Hosts), "{text}");
        }
        let without_brackets = "2001:db8:1:2:3:4:5:6:5683".parse::<TargetPattern>();
        assert_eq!(without_brackets, Err(PatternError::Hosts));
    }
}
