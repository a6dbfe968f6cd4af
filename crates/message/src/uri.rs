//! Options ↔ URI (RFC 7252 §6; RFC 8323 §8).
//!
//! ```text
//! coap://h:5683/a/b?c=d ──▶ Uri::parse ──▶ scheme, authority, path_segments(), query_items()
//! options               ──▶ write_path, write_query ──▶ /a/b?c=d          (normal form, §6.5)
//! ```

mod plain;
mod resource;

pub use resource::PathAndQuery;

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use fluent_uri::pct_enc::encoder::Path;
use fluent_uri::pct_enc::{EStr, EString, Table};
use fluent_uri::{ParseError, ParseErrorKind, UriRef};

use crate::{OptionNumber, Options};

/// The longest host, path segment or query item an option can carry (RFC 7252 §5.10).
const MAX_COMPONENT: usize = 255;

/// A scheme this project knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// CoAP over UDP.
    Coap,
    /// CoAP over DTLS.
    Coaps,
    /// CoAP over TCP.
    CoapTcp,
    /// CoAP over TLS.
    CoapsTcp,
    /// CoAP over WebSocket.
    CoapWs,
    /// CoAP over secure WebSocket.
    CoapsWs,
    /// HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Coap,
        Self::Coaps,
        Self::CoapTcp,
        Self::CoapsTcp,
        Self::CoapWs,
        Self::CoapsWs,
        Self::Http,
        Self::Https,
    ];

    /// The scheme with this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.name().eq_ignore_ascii_case(name))
    }

    /// Its name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coap => "coap",
            Self::Coaps => "coaps",
            Self::CoapTcp => "coap+tcp",
            Self::CoapsTcp => "coaps+tcp",
            Self::CoapWs => "coap+ws",
            Self::CoapsWs => "coaps+ws",
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of an authority that names none.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Coap | Self::CoapTcp => 5683,
            Self::Coaps | Self::CoapsTcp => 5684,
            Self::CoapWs | Self::Http => 80,
            Self::CoapsWs | Self::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A host: an address, never IPv4-mapped, or a name in lower case that does not look like one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// An IP literal.
    Address(IpAddr),
    /// A registered name; shared, so that whoever asks for it again and again copies nothing.
    Name(Arc<str>),
}

/// A [`Host`] that is borrowed; its name is in the case it came in.
#[derive(Clone, Copy, Debug)]
pub enum HostRef<'a> {
    /// An IP literal.
    Address(IpAddr),
    /// A registered name.
    Name(&'a str),
}

impl<'a> HostRef<'a> {
    /// Reads a host that is not percent-encoded: the value of a Uri-Host option.
    ///
    /// A name holds what a `reg-name` may hold unencoded, and non-ASCII characters. One whose last
    /// label is a number is no name: resolvers take `127.1` and `0x7f000001` for addresses.
    /// Source: RFC 7252 §5.10.1, §6.4, §6.5; RFC 3986 §3.2.2.
    pub fn parse(value: &'a [u8]) -> Result<Self, UriError> {
        if value.is_empty() {
            return Err(UriError::EmptyHost);
        }
        if value.len() > MAX_COMPONENT {
            return Err(UriError::SegmentTooLong);
        }
        let text = std::str::from_utf8(value).map_err(|_| UriError::Syntax)?;
        if let Some(literal) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return match literal.parse::<Ipv6Addr>() {
                Ok(address) => Ok(Self::Address(address.to_canonical())),
                Err(_) if literal.contains('%') => Err(UriError::ZoneId),
                Err(_) => Err(UriError::Syntax),
            };
        }
        // RFC 7252 §5.10.1 wants brackets around an IPv6 address; aiocoap leaves them out.
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let is_name = text.chars().all(|c| NAME.allows(c) || !c.is_ascii() && !c.is_control());
        if is_name && !ends_in_number(text) { Ok(Self::Name(text)) } else { Err(UriError::Syntax) }
    }
}

impl From<HostRef<'_>> for Host {
    fn from(host: HostRef<'_>) -> Self {
        match host {
            HostRef::Address(address) => Self::Address(address),
            HostRef::Name(name) => {
                let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
                Self::Name(if is_lower { name.into() } else { name.to_ascii_lowercase().into() })
            }
        }
    }
}

/// As in a URI: brackets around an IPv6 address, non-ASCII characters percent-encoded (RFC 7252 §6.5
/// steps 3 and 4).
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V4(address)) => fmt::Display::fmt(address, f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Name(name) if name.is_ascii() => f.write_str(name),
            Self::Name(name) => name.bytes().try_for_each(|byte| write_byte(NAME, byte, f)),
        }
    }
}

/// Host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port, the scheme's own where none was written.
    pub port: u16,
}

impl Authority {
    /// Where it is, when its host is an address.
    pub const fn socket_address(&self) -> Option<SocketAddr> {
        match self.host {
            Host::Address(address) => Some(SocketAddr::new(address, self.port)),
            Host::Name(_) => None,
        }
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Why a text is not the URI of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// A reference without a scheme.
    #[error("not an absolute URI")]
    NotAbsolute,
    /// A scheme this project does not know; the one case in which the URI may be well-formed.
    #[error("unknown scheme")]
    UnknownScheme,
    /// A fragment, which identifies nothing a server could serve.
    #[error("fragment")]
    Fragment,
    /// User information.
    #[error("user information")]
    UserInfo,
    /// No host.
    #[error("no host")]
    EmptyHost,
    /// An IPv6 address with a zone, which means something to its author's host only.
    #[error("zone identifier")]
    ZoneId,
    /// A `%` without two hexadecimal digits behind it.
    #[error("broken percent-encoding")]
    PercentEncoding,
    /// A port above 65535.
    #[error("port out of range")]
    Port,
    /// A host, path segment or query item above 255 bytes.
    #[error("host, path segment or query item above 255 bytes")]
    SegmentTooLong,
    /// Anything else that RFC 3986 does not allow.
    #[error("not a URI")]
    Syntax,
}

/// The absolute URI of a resource.
#[derive(Clone, Debug)]
pub struct Uri<'a> {
    scheme: Scheme,
    authority: Authority,
    resource: PathAndQuery<'a>,
}

impl<'a> Uri<'a> {
    /// Reads an absolute URI of a known scheme.
    ///
    /// Dot segments, percent-encoded ones too, are removed. Nothing is allocated unless there are
    /// any or the host is a name.
    /// Source: RFC 7252 §6.4; RFC 3986 §5.2.4.
    pub fn parse(text: &'a str) -> Result<Self, UriError> {
        plain::parse(text.as_bytes()).map_or_else(|| Self::parse_any(text), Ok)
    }

    /// The same for the value of a Proxy-Uri option.
    pub fn from_option(value: &'a [u8]) -> Result<Self, UriError> {
        match plain::parse(value) {
            Some(uri) => Ok(uri),
            None => Self::parse_any(std::str::from_utf8(value).map_err(|_| UriError::Syntax)?),
        }
    }

    fn parse_any(text: &'a str) -> Result<Self, UriError> {
        let reference = UriRef::parse(text).map_err(|error| classify(text, error))?;
        let scheme = reference.scheme().ok_or(UriError::NotAbsolute)?;
        if reference.has_fragment() {
            return Err(UriError::Fragment);
        }
        let scheme = Scheme::from_name(scheme.as_str()).ok_or(UriError::UnknownScheme)?;
        let authority = reference.authority().ok_or(UriError::EmptyHost)?;
        if authority.has_userinfo() {
            return Err(UriError::UserInfo);
        }
        let host = EStr::<Path>::new(authority.host());
        let host = match host {
            Some(host) => HostRef::parse(&host.decode().to_bytes())?.into(),
            // Brackets are not allowed in a path: an IPv6 literal.
            None => HostRef::parse(authority.host().as_bytes())?.into(),
        };
        let port = authority.port_to_u16().map_err(|_| UriError::Port)?;
        let authority = Authority { host, port: port.unwrap_or(scheme.default_port()) };

        let path = match remove_dot_segments(reference.path()) {
            Cow::Borrowed(path) => Cow::Borrowed(path.as_str().as_bytes()),
            Cow::Owned(path) => Cow::Owned(path.into_string().into_bytes()),
        };
        let query = reference.query().map(|query| query.as_str().as_bytes());
        // Whole ones that are short enough have no component that is too long.
        let is_long = path.len().max(query.map_or(0, <[u8]>::len)) > MAX_COMPONENT;
        let items = query.into_iter().flat_map(|query| query.split(|&byte| byte == b'&'));
        let mut components = path.split(|&byte| byte == b'/').chain(items);
        if is_long && components.any(|component| decoded_length(component) > MAX_COMPONENT) {
            return Err(UriError::SegmentTooLong);
        }
        Ok(Self { scheme, authority, resource: PathAndQuery::checked(path, query) })
    }

    /// Its scheme.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Its host and port.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Takes its host and port out.
    pub fn into_authority(self) -> Authority {
        self.authority
    }

    /// What stands behind its authority.
    pub const fn resource(&self) -> &PathAndQuery<'a> {
        &self.resource
    }

    /// The values of its Uri-Path options.
    pub fn path_segments(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        self.resource.path_segments()
    }

    /// The values of its Uri-Query options.
    pub fn query_items(&self) -> impl Iterator<Item = Cow<'a, [u8]>> + use<'a> {
        self.resource.query_items()
    }
}

/// Appends the path that the Uri-Path options make, in normal form.
///
/// Source: RFC 7252 §6.5 steps 6, 7 and 9.
pub fn write_path(options: &Options<'_>, text: &mut String) {
    write_segments(options.values(OptionNumber::URI_PATH), text);
}

/// Appends the path of these segments in normal form; `/` for none.
///
/// Source: RFC 7252 §6.5 steps 6, 7 and 9.
pub fn write_segments<'s>(segments: impl IntoIterator<Item = &'s [u8]>, text: &mut String) {
    let start = text.len();
    for segment in segments {
        text.push('/');
        encode(SEGMENT, segment, text);
    }
    if text.len() == start {
        text.push('/');
    }
}

/// Appends `?` and the query that the Uri-Query options make, in normal form; nothing without any.
///
/// Source: RFC 7252 §6.5 step 8.
pub fn write_query(options: &Options<'_>, text: &mut String) {
    for (index, item) in options.values(OptionNumber::URI_QUERY).enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        encode(QUERY_ITEM, item, text);
    }
}

/// What a name may hold: `unreserved` and `sub-delims`.
const NAME: &Table =
    &Table::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=");
/// What stands unencoded in a segment.
const SEGMENT: &Table = &NAME.or(&Table::new(b":@"));
/// What stands unencoded in a query item: `&` would end it.
const QUERY_ITEM: &Table = &SEGMENT.or(&Table::new(b"/?")).sub(&Table::new(b"&"));

fn encode(table: &Table, value: &[u8], text: &mut String) {
    // Writing to a `String` cannot fail.
    let _ = value.iter().try_for_each(|&byte| write_byte(table, byte, text));
}

fn write_byte(table: &Table, byte: u8, text: &mut impl fmt::Write) -> fmt::Result {
    if byte.is_ascii() && table.allows(char::from(byte)) {
        text.write_char(char::from(byte))
    } else {
        text.write_str(EStr::<Path>::encode_byte(byte).as_str())
    }
}

fn classify(text: &str, error: ParseError) -> UriError {
    match error.kind() {
        ParseErrorKind::InvalidPctEncodedOctet => UriError::PercentEncoding,
        ParseErrorKind::InvalidIpv6Addr => UriError::Syntax,
        ParseErrorKind::UnexpectedChar => {
            // A bracket opens an IP literal and is allowed nowhere else.
            let (before, after) = text.split_at_checked(error.index()).unwrap_or((text, ""));
            if after.starts_with('%') && before.contains('[') { UriError::ZoneId } else { UriError::Syntax }
        }
    }
}

/// Whether the last label is a number in one of the forms that `inet_aton` reads.
fn ends_in_number(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let label = name.rsplit('.').next().unwrap_or(name);
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

fn decoded_length(component: &[u8]) -> usize {
    component.len() - 2 * component.iter().filter(|&&byte| byte == b'%').count()
}

/// How many dots `segment` is, encoded or not, when it is nothing else.
fn dots(segment: &str) -> Option<usize> {
    let mut rest = segment;
    let mut count = 0;
    while !rest.is_empty() {
        rest = rest
            .strip_prefix('.')
            .or_else(|| rest.strip_prefix("%2E"))
            .or_else(|| rest.strip_prefix("%2e"))?;
        count += 1;
    }
    Some(count)
}

fn remove_dot_segments(path: &EStr<Path>) -> Cow<'_, EStr<Path>> {
    let may_have_some = path.as_str().bytes().any(|byte| matches!(byte, b'.' | b'%'));
    if !may_have_some || !path.as_str().split('/').any(|segment| matches!(dots(segment), Some(1 | 2))) {
        return Cow::Borrowed(path);
    }
    let mut kept: Vec<&EStr<Path>> = Vec::new();
    let mut segments = path.segments_if_absolute().into_iter().flatten().peekable();
    while let Some(segment) = segments.next() {
        match dots(segment.as_str()) {
            Some(1) => {}
            Some(2) => {
                kept.pop();
            }
            _ => {
                kept.push(segment);
                continue;
            }
        }
        // What a dot segment at the end leaves is a directory.
        if segments.peek().is_none() {
            kept.push(EStr::EMPTY);
        }
    }
    let mut path = EString::with_capacity(path.len());
    for segment in kept {
        path.push('/');
        path.push_estr(segment);
    }
    Cow::Owned(path)
}

#[cfg(test)]
mod tests;
