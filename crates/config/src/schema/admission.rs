//! `[forward]`, `[clients]` and `[limits]`: who may have what.

use std::net::IpAddr;
use std::time::Duration;

use coapway_proxy::{Limits, Patience};
use coapway_relay::Parameters as Relay;
use coapway_relay::{Hosts, TargetPattern};
use ipnet::IpNet;

use crate::error::Wrong;
use crate::raw::Raw;
use crate::section::{Field, Key, Table, Value, duration};
use crate::units::show_duration;

/// Networks of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Networks(pub(crate) Vec<IpNet>);

/// Targets, as they were written and as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Targets(pub(crate) Vec<(String, TargetPattern)>);

/// Networks of clients, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trusted(pub(crate) Vec<IpNet>);

fn texts(raw: &Raw) -> Result<Vec<&str>, Wrong> {
    raw.as_texts().ok_or_else(|| Wrong::new("not an array of strings"))
}

fn some_texts(raw: &Raw) -> Result<Vec<&str>, Wrong> {
    let texts = texts(raw)?;
    match texts.is_empty() {
        true => Err(Wrong::new("an empty array").hint("forward.enabled = false turns forwarding off")),
        false => Ok(texts),
    }
}

fn show_networks(networks: &[IpNet]) -> String {
    let texts: Vec<String> = networks.iter().map(IpNet::to_string).collect();
    texts.join(", ")
}

/// A network, or an address as a network of one; IPv4-mapped ones are IPv4, as in a target.
fn network(text: &str) -> Result<IpNet, Wrong> {
    match text.parse() {
        Ok(TargetPattern { hosts: Hosts::Network(network), port: None }) => whole(text, network),
        Ok(_) | Err(_) => Err(Wrong::new(format!("{text:?} is not a network"))),
    }
}

/// Errors: bits are set behind the prefix, so that either may be what is wrong.
fn whole(text: &str, network: IpNet) -> Result<IpNet, Wrong> {
    let meant = network.trunc();
    match network == meant {
        true => Ok(network),
        false => Err(Wrong::new(format!("{text:?} has bits behind its prefix"))
            .hint(format!("the network is {meant}, the one address {}", network.addr()))),
    }
}

/// Whether all addresses of a network are link-local ones of IPv6.
fn lacks_zone(network: &IpNet) -> bool {
    let mut ends = [network.network(), network.broadcast()].into_iter();
    ends.all(|end| matches!(end, IpAddr::V6(address) if address.is_unicast_link_local()))
}

fn target(text: &str) -> Result<(String, TargetPattern), Wrong> {
    let pattern: TargetPattern = text.parse().map_err(|error| Wrong::new(format!("{text:?}: {error}")))?;
    if let Hosts::Network(network) = &pattern.hosts {
        whole(text, *network)?;
        if network.addr().is_multicast() {
            return Err(Wrong::new(format!("{text:?} is multicast, to which nothing is forwarded")));
        }
        if lacks_zone(network) {
            return Err(Wrong::new(format!(
                "{text:?} is link-local, which leads nowhere without its zone, and a coap URI has no place for one \
                 (RFC 9844)"
            ))
            .hint("list other addresses of these targets"));
        }
    }
    Ok((text.to_owned(), pattern))
}

impl Value for Networks {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        some_texts(raw)?.into_iter().map(network).collect::<Result<_, _>>().map(Self)
    }

    fn show(&self) -> String {
        show_networks(&self.0)
    }
}

impl Value for Trusted {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        texts(raw)?.into_iter().map(network).collect::<Result<_, _>>().map(Self)
    }

    fn show(&self) -> String {
        if self.0.is_empty() { "[]".to_owned() } else { show_networks(&self.0) }
    }
}

impl Value for Targets {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        some_texts(raw)?.into_iter().map(target).collect::<Result<_, _>>().map(Self)
    }

    fn show(&self) -> String {
        let texts: Vec<&str> = self.0.iter().map(|(text, _)| text.as_str()).collect();
        texts.join(", ")
    }
}

impl Value for Patience {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        match raw.as_text() {
            Some("off") => Ok(Self::Off),
            Some("auto") => Ok(Self::Learned),
            Some(_) | None => {
                duration(raw, Duration::from_secs(1), Duration::from_secs(3600)).map(Self::After)
            }
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Off => "off".to_owned(),
            Self::Learned => "auto".to_owned(),
            Self::After(patience) => show_duration(*patience),
        }
    }
}

/// Who may have requests forwarded, and where to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forward {
    pub(crate) enabled: Option<bool>,
    pub(crate) clients: Option<Networks>,
    pub(crate) allow: Option<Targets>,
}

impl Table for Forward {
    const DOC: &'static str = "Forwarding (RFC 7252 §5.7.2): requests whose Proxy-Uri or Proxy-Scheme names an origin. \
        With `clients` and `allow`, those clients reach those targets. With neither, everybody who reaches a \
        listener on loopback reaches every unicast target with port 5683, 5684 or 1024 and above; a listener \
        on any other address needs both lists. With `[[routes]]` or `--reverse` and nothing of `[forward]` set, \
        forwarding is off.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "enabled",
            field: Field::Value("true or false", |t| &mut t.enabled),
            doc: "`false` turns forwarding off; `true` asks for it where routes would turn it off.",
            why: "",
        },
        Key {
            name: "clients",
            field: Field::Value("networks like 10.0.0.0/8 or fd00::/8, at least one", |t| &mut t.clients),
            doc: "Whose requests are forwarded.",
            why: "names of clients prove nothing over UDP",
        },
        Key {
            name: "allow",
            field: Field::Value(
                "targets like 10.1.0.0/16, [fd00::1]:5683, name:5683 or *.example.org",
                |t| &mut t.allow,
            ),
            doc: "Where to, judged by name and again by address after look-up. Without a port: 5683, 5684 and \
                  from 1024 on. Loopback, 169.254.0.0/16, broadcast and our own addresses need an entry of their \
                  own. Link-local ones of IPv6 need a zone, for which a URI has no place, and are never reached.",
            why: "an address, a network, a name or a suffix, each with or without a port",
        },
    ];
}

/// What is known of clients beforehand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients {
    pub(crate) trusted: Trusted,
    pub(crate) patience: Patience,
}

impl Table for Clients {
    const DOC: &'static str = "What is known of clients beforehand.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "trusted",
            field: Field::Value("networks like 10.0.0.0/8 or fd00::/8, or []", |t| &mut t.trusted),
            doc: "Clients whose addresses are believed, as those on loopback are. All others get at most 136 bytes \
                  or three times the bytes they sent (RFC 7252 §11.3), so that nobody is flooded by requests in \
                  his name.",
            why: "list only networks into which nobody outside can send with an address of theirs",
        },
        Key {
            name: "patience",
            field: Field::Value("\"off\", \"auto\" or 1s to 3600s", |t| &mut t.patience),
            doc: "How long clients wait for an answer, all their copies included. Then a request that has not left \
                  is answered 5.04 and does not leave, and of one that has no further copy does; its answer is \
                  still passed on. `\"auto\"` learns it for each address from at least 8 requests that were given \
                  up: by another request under the same token (RFC 7252 §5.3.1), after which the first is not \
                  answered, or by a Reset to the answer. `\"off\"`, since some clients use one token for all they \
                  ask.",
            why: "no client gives up before its first wait is over; no request is kept longer than an hour",
        },
    ];
}

/// How much of everything there may be.
#[derive(Clone, Debug)]
pub(crate) struct LimitKeys {
    pub(crate) limits: Limits,
    pub(crate) client_rate: u32,
}

impl Default for LimitKeys {
    fn default() -> Self {
        Self { limits: Limits::default(), client_rate: Relay::default().client_rate }
    }
}

impl Table for LimitKeys {
    const DOC: &'static str = "How much of everything there may be, so that no stranger can fill our memory.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "fetches",
            field: Field::Count(1, 1 << 24, |t| &mut t.limits.fetches),
            doc: "Requests being forwarded and separate responses being delivered at a time; more get 5.03. The \
                  default is a thousand requests a second to origins that all stay silent for 30s. Of the last eighth \
                  no client, a /32 or /64, gets any that holds an eighth of all.",
            why: "each takes up to 9.6KiB, its datagrams of 2KiB included; `check` adds them up",
        },
        Key {
            name: "origins",
            field: Field::Count(1, 1 << 20, |t| &mut t.limits.origins),
            doc: "Origins with state: what was learned, ports and window. One that was idle for 900s is forgotten, \
                  in a full table after 247s; once the table is half full, no client brings in more than an eighth, and makes \
                  room by its own that never answered.",
            why: "each takes up to 4KiB with 60 samples of its round-trip time, 34KiB with 1000",
        },
        Key {
            name: "names",
            field: Field::Count(1, 1 << 20, |t| &mut t.limits.names),
            doc: "Names being looked up or remembered.",
            why: "each takes up to 2.5KiB with its 32 addresses",
        },
        Key {
            name: "clients",
            field: Field::Count(1, 1 << 20, |t| &mut t.limits.clients),
            doc: "Clients whose rate is counted at a time; more share one rate.",
            why: "each takes up to 96 bytes",
        },
        Key {
            name: "hints",
            field: Field::Count(0, 1 << 20, |t| &mut t.limits.hints),
            doc: "Answers 4.29 and 5.03 of origins that are given again until their Max-Age is over; the oldest \
                  goes first.",
            why: "each takes up to 640 bytes; with 0 none is",
        },
        Key {
            name: "client_rate",
            field: Field::Count(0, 1_000_000, |t| &mut t.client_rate),
            doc: "Requests a second that one client, an IPv4 address or an IPv6 /64, may make, for two seconds \
                  at once; more get 4.29. Loopback is exempt; 0 is for any number.",
            why: "0 turns it off; no worker serves a million requests a second",
        },
    ];
}
