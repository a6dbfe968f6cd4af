//! `[[listen]]`, `[[upstreams]]` and `[[routes]]`: where we are, where origins are, what leads where.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use coapway_message::uri::{Authority, Host, HostRef, Scheme, Uri, UriError};

use crate::error::Wrong;
use crate::raw::Raw;
use crate::section::{Field, Key, Table, Value};

pub(crate) const LISTEN_ALLOWED: &str = "coap://ADDRESS:PORT";

/// Reads a `coap` URI that is only a host and a port.
fn authority(raw: &Raw) -> Result<Authority, Wrong> {
    let text = raw.as_text().ok_or_else(|| Wrong::new("not a string"))?;
    if text.is_empty() {
        return Err(Wrong::new("empty"));
    }
    let uri = Uri::parse(text).map_err(|error| match text.contains("://") {
        true => Wrong::new(error.to_string()),
        false => Wrong::new(UriError::NotAbsolute.to_string()).hint(format!("write coap://{text}")),
    })?;
    if uri.scheme() != Scheme::Coap {
        return Err(Wrong::new(format!("{} is not in this version", uri.scheme()))
            .hint("this version speaks CoAP over UDP only"));
    }
    if uri.path_segments().next().is_some() || uri.query_items().next().is_some() {
        return Err(Wrong::new("has a path or a query").hint("name only the host and the port"));
    }
    let authority = uri.into_authority();
    if authority.port == 0 {
        return Err(Wrong::new("port must be 1 to 65535"));
    }
    if authority.socket_address().is_some_and(|address| address.ip().is_multicast()) {
        return Err(Wrong::new("a multicast address").hint("multicast is not in this version"));
    }
    let broadcast = SocketAddr::from((Ipv4Addr::BROADCAST, authority.port));
    if authority.socket_address() == Some(broadcast) {
        return Err(Wrong::new("a broadcast address"));
    }
    Ok(authority)
}

/// Where we listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listener(pub(crate) SocketAddr);

impl Value for Listener {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        if raw.as_text().is_some_and(|text| text.contains(',')) {
            return Err(Wrong::new("several addresses in one value")
                .hint("one for each --listen, which may be repeated, and for each [[listen]]"));
        }
        let authority = authority(raw)?;
        authority.socket_address().map(Self).ok_or_else(|| {
            Wrong::new("a name, not an address").hint("0.0.0.0 or [::] listens on all addresses")
        })
    }

    fn show(&self) -> String {
        format!("coap://{}", self.0)
    }
}

/// One `[[listen]]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listen {
    pub(crate) uri: Option<Listener>,
}

impl Table for Listen {
    const DOC: &'static str = "Where requests come in, one table for each address. Without any, and without \
                               `--listen`: `coap://127.0.0.1:5683` and nothing else, not even `[::1]`, so that \
                               what is open is one line. In the environment and with `--set`, `listen` is a list of URIs with \
                               commas. A list from a stronger source replaces the weaker one as a whole.";
    const KEYS: &'static [Key<Self>] = &[Key {
        name: "uri",
        field: Field::Value(LISTEN_ALLOWED, |t| &mut t.uri),
        doc: "The address and port; the port is 5683 when it is left out.",
        why: "this version listens on UDP addresses",
    }];
}

/// Where an origin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin(pub(crate) Authority);

impl Value for Origin {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        let authority = authority(raw)?;
        let address = authority.socket_address().map(|address| address.ip());
        address.map_or(Ok(()), one_host)?;
        Ok(Self(authority))
    }

    fn show(&self) -> String {
        format!("coap://{}", self.0)
    }
}

/// Errors: why an address that is neither a group's nor everybody's is not one host's either, or cannot be
/// reached by itself.
///
/// Source: RFC 6890 §2.2; RFC 1112 §4; RFC 9844 §1, which leaves URIs without zones.
pub(super) fn one_host(address: IpAddr) -> Result<(), Wrong> {
    match address.to_canonical() {
        address if address.is_unspecified() => Err(Wrong::new("an unspecified address")),
        IpAddr::V4(address) if address.octets()[0] == 0 => Err(Wrong::new(
            "an address that means \"this network\", which no host has (0.0.0.0/8, RFC 6890 §2.2.2)",
        )),
        IpAddr::V4(address) if address.octets()[0] >= 240 => {
            Err(Wrong::new("a reserved address, which no host has (240.0.0.0/4, RFC 6890 §2.2.2)"))
        }
        IpAddr::V6(address) if address.is_unicast_link_local() => Err(Wrong::new(
            "a link-local address, which leads nowhere without its zone, and a coap URI has no place for one \
             (RFC 9844)",
        )
        .hint("use another address of the origin, or a name that leads to one")),
        IpAddr::V4(_) | IpAddr::V6(_) => Ok(()),
    }
}

/// The name of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) String);

impl Value for Name {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        let name = raw.as_text().ok_or_else(|| Wrong::new("not a string"))?;
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if name.is_empty() || name.len() > 64 || !is_name {
            return Err(Wrong::new("not a name"));
        }
        if name == "default" {
            return Err(Wrong::new("a name that is taken")
                .hint("records call origins without a name \"default\"; their parameters are [upstream]"));
        }
        Ok(Self(name.to_owned()))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

const NAME_ALLOWED: &str = "1 to 64 letters, digits, - and _";

/// What one `[[upstreams]]` has beside the keys of `[upstream]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedOrigin {
    pub(crate) name: Option<Name>,
    pub(crate) uri: Option<Origin>,
}

impl Table for NamedOrigin {
    const DOC: &'static str = "An origin with a name, one table for each. Any key of `[upstream]` may be \
                               repeated and then holds for this origin, whatever else sets the one in \
                               `[upstream]`. Named origins are reached by forwarding without being in \
                               `forward.allow`. `--set upstreams.NAME.KEY=VALUE` and \
                               `COAPWAY__UPSTREAMS__NAME__KEY` set the keys of a named one.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "name",
            field: Field::Value(NAME_ALLOWED, |t| &mut t.name),
            doc: "Its name in routes, records and keys.",
            why: "it is a part of keys and of environment variables",
        },
        Key {
            name: "uri",
            field: Field::Value("coap://HOST or coap://HOST:PORT", |t| &mut t.uri),
            doc: "Where it is: a name or an address; the port is 5683 when it is left out. No two have the same, and \
                  none is our own. An address is one that a host can have; a link-local one of IPv6 needs a zone, \
                  for which a URI has no place.",
            why: "this version speaks to UDP addresses and names",
        },
    ];
}

/// A Uri-Host, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteHost(pub(crate) String);

impl Value for RouteHost {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        let text = raw.as_text().ok_or_else(|| Wrong::new("not a string"))?;
        let host = HostRef::parse(text.as_bytes()).map_err(|error| Wrong::new(error.to_string()))?;
        Ok(Self(Host::from(host).to_string()))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// The beginning of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoutePath {
    text: String,
    pub(crate) segments: Vec<Box<[u8]>>,
}

impl RoutePath {
    /// The path of every request.
    pub(crate) fn root() -> Self {
        Self { text: "/".to_owned(), segments: Vec::new() }
    }
}

impl Value for RoutePath {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        let text = raw.as_text().ok_or_else(|| Wrong::new("not a string"))?;
        if !text.starts_with('/') {
            return Err(Wrong::new("does not begin with /"));
        }
        let whole = format!("coap://host{text}");
        let uri = Uri::parse(&whole).map_err(|error| Wrong::new(format!("not a path: {error}")))?;
        if uri.query_items().next().is_some() {
            return Err(Wrong::new("has a query"));
        }
        let is_dots =
            |segment: &str| matches!(&*segment.to_ascii_lowercase().replace("%2e", "."), "." | "..");
        if text.split('/').any(is_dots) {
            return Err(Wrong::new("has a segment . or .., which no request may have (RFC 7252 §5.10.1)"));
        }
        let segments: Vec<Box<[u8]>> = uri.path_segments().map(|segment| segment.as_ref().into()).collect();
        if segments.last().is_some_and(|segment| segment.is_empty()) {
            return Err(Wrong::new("ends with /")
                .hint(format!("{} covers what is below it too", text.trim_end_matches('/'))));
        }
        Ok(Self { text: text.to_owned(), segments })
    }

    fn show(&self) -> String {
        self.text.clone()
    }
}

/// One `[[routes]]`.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) host: Option<RouteHost>,
    pub(crate) path: Option<RoutePath>,
    pub(crate) upstream: Option<Name>,
    pub(crate) strip: bool,
}

impl Default for Route {
    fn default() -> Self {
        Self { host: None, path: None, upstream: None, strip: true }
    }
}

impl Table for Route {
    const DOC: &'static str = "What a client finds here and which origin serves it, one table for each \
                               (RFC 7252 §5.7.3). A route for the request's host goes before one for any, then the longest path wins. `--reverse URI` is short for an upstream \
                               named `reverse` behind the route `/`, which stands before those of the file.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "host",
            field: Field::Value("a host name or an address", |t| &mut t.host),
            doc: "The Uri-Host of the requests, or our address that those without one came to (RFC 7252 §5.10.1): \
                  a client leaves it out where it is asked for the address. Every host when it is left out.",
            why: "it is compared with what clients send, as a whole",
        },
        Key {
            name: "path",
            field: Field::Value("a path like /boiler, percent-encoded", |t| &mut t.path),
            doc: "The segments the paths of the requests begin with; `/` for all of them. A route has a \
                  `path`, a `host` or both.",
            why: "it is compared with what clients send, segment by segment",
        },
        Key {
            name: "upstream",
            field: Field::Value("the name of one of [[upstreams]]", |t| &mut t.upstream),
            doc: "The origin.",
            why: "a route leads somewhere",
        },
        Key {
            name: "strip",
            field: Field::Value("true or false", |t| &mut t.strip),
            doc: "Whether the origin does not see the segments of `path`.",
            why: "",
        },
    ];
}
