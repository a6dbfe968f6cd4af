//! The URIs that nearly every request carries, read in one pass: a scheme in lower case, an address or
//! a name in lower case, nothing percent-encoded, no dot segments. Any other is left to a parser of the
//! whole syntax, with the same result.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::resource::Slashes;
use super::{Authority, Host, MAX_COMPONENT, PathAndQuery, Scheme, Uri, ends_in_number};

/// What a byte may be part of, unencoded.
const NAME: u8 = 1;
const PATH: u8 = 2;
const QUERY: u8 = 4;
/// What a path is not to be read past without a second look: the end of it, slashes.
const SIGN: u8 = 8;

static KINDS: [u8; 256] = {
    let mut kinds = [SIGN; 256];
    let mut byte = 0;
    while byte < 128 {
        let character = byte as u8;
        let is_name =
            character.is_ascii_lowercase() || character.is_ascii_digit() || matches!(character, b'-' | b'.');
        let is_path = character.is_ascii_alphanumeric()
            || matches!(
                character,
                b'-' | b'.'
                    | b'_'
                    | b'~'
                    | b'!'
                    | b'$'
                    | b'&'
                    | b'\''
                    | b'('
                    | b')'
                    | b'*'
                    | b'+'
                    | b','
                    | b';'
                    | b'='
                    | b':'
                    | b'@'
                    | b'/'
            );
        let is_query = is_path || character == b'?';
        let is_sign = !is_path || character == b'/';
        kinds[byte] = if is_name { NAME } else { 0 }
            | if is_path { PATH } else { 0 }
            | if is_query { QUERY } else { 0 }
            | if is_sign { SIGN } else { 0 };
        byte += 1;
    }
    kinds
};

/// How many bytes from the start are of this kind.
#[inline]
fn span(bytes: &[u8], kind: u8) -> usize {
    bytes.iter().position(|&byte| KINDS[usize::from(byte)] & kind == 0).unwrap_or(bytes.len())
}

pub(super) fn parse(text: &[u8]) -> Option<Uri<'_>> {
    let (scheme, rest) = scheme(text)?;
    let (host, rest) = host(rest)?;
    let (port, rest) = port(rest, scheme)?;
    let resource = PathAndQuery::plain(rest)?;
    Some(Uri { scheme, authority: Authority { host, port }, resource })
}

impl<'a> PathAndQuery<'a> {
    /// Reads what stands behind an authority; `None` also where something is percent-encoded, or may be a
    /// dot segment.
    pub fn plain(text: &'a [u8]) -> Option<Self> {
        let mut slashes = Slashes::default();
        let (path, rest) = path(text, &mut slashes)?;
        let query = match rest {
            [] => None,
            [b'?', query @ ..] if span(query, QUERY) == query.len() => Some(query),
            _ => return None,
        };
        let is_short = path.len().max(query.map_or(0, <[u8]>::len)) <= MAX_COMPONENT;
        let is_absolute = matches!(path, [] | [b'/', ..]);
        (is_short && is_absolute).then(|| Self::known(path, query, slashes))
    }
}

fn scheme(text: &[u8]) -> Option<(Scheme, &[u8])> {
    if let Some(rest) = text.strip_prefix(b"coap://") {
        return Some((Scheme::Coap, rest));
    }
    Scheme::ALL.into_iter().find_map(|scheme| {
        let rest = text.strip_prefix(scheme.name().as_bytes())?.strip_prefix(b"://")?;
        Some((scheme, rest))
    })
}

fn host(text: &[u8]) -> Option<(Host, &[u8])> {
    if let [b'[', rest @ ..] = text {
        let end = rest.iter().position(|&byte| byte == b']')?;
        let (literal, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
        let address = std::str::from_utf8(literal).ok()?.parse::<Ipv6Addr>().ok()?;
        return Some((Host::Address(address.to_canonical()), rest));
    }
    let (host, rest) = text.split_at_checked(span(text, NAME))?;
    if let Some(address) = dotted(host) {
        return Some((Host::Address(IpAddr::V4(address)), rest));
    }
    let name = std::str::from_utf8(host).ok()?;
    let is_name = !name.is_empty() && name.len() <= MAX_COMPONENT && !ends_in_number(name);
    is_name.then(|| (Host::Name(name.into()), rest))
}

/// Four numbers without leading zeros (RFC 3986 §3.2.2).
fn dotted(bytes: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let (mut place, mut value, mut digits) = (0, 0_u16, 0);
    for &byte in bytes {
        if byte == b'.' && digits > 0 && place < 3 {
            octets[place] = u8::try_from(value).ok()?;
            (place, value, digits) = (place + 1, 0, 0);
        } else if byte.is_ascii_digit() && digits < 3 && (digits == 0 || value > 0) {
            (value, digits) = (value * 10 + u16::from(byte - b'0'), digits + 1);
        } else {
            return None;
        }
    }
    octets[3] = u8::try_from(value).ok()?;
    (place == 3 && digits > 0).then(|| Ipv4Addr::from(octets))
}

fn port(text: &[u8], scheme: Scheme) -> Option<(u16, &[u8])> {
    let [b':', rest @ ..] = text else { return Some((scheme.default_port(), text)) };
    let (mut number, mut digits) = (0, 0);
    while let Some(digit) = rest.get(digits).filter(|byte| byte.is_ascii_digit() && digits < 6) {
        (number, digits) = (number * 10 + u32::from(digit - b'0'), digits + 1);
    }
    let rest = rest.get(digits..)?;
    (1..=5).contains(&digits).then_some((u16::try_from(number).ok()?, rest))
}

/// A path without a dot behind a slash, which is rare enough to be left to others where it makes no dot
/// segment.
fn path<'a>(text: &'a [u8], slashes: &mut Slashes) -> Option<(&'a [u8], &'a [u8])> {
    for (place, &byte) in text.iter().enumerate() {
        if KINDS[usize::from(byte)] & SIGN == 0 {
            continue;
        }
        if byte != b'/' {
            return text.split_at_checked(place);
        }
        if text.get(place + 1) == Some(&b'.') {
            return None;
        }
        slashes.note(place);
    }
    Some((text, &[]))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;

    fn parts(uri: &Uri<'_>) -> (Scheme, Authority, Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let segments = uri.path_segments().map(Cow::into_owned).collect();
        (uri.scheme(), uri.authority().clone(), segments, uri.query_items().map(Cow::into_owned).collect())
    }

    #[test]
    fn the_usual_ones_are_read_here() {
        for text in [
            "coap://10.1.2.3/sensors/7",
            "coap://10.1.2.3:61616/a?b=c&d",
            "coaps+tcp://[2001:db8::1]:5684",
            "coap://plant-7.example/x//y/",
            "coap://h?",
        ] {
            assert!(parse(text.as_bytes()).is_some(), "{text}");
        }
        for text in [
            "coap://h/%41",
            "coap://h/./a",
            "COAP://h/",
            "coap://H/",
            "coap://256.1.1.1/",
            "coap://01.2.3.4/",
            "coap://1..2.3/",
            "coap://1.2.3.4.5/",
            "coap://h:123456/",
            "coap://h:/",
        ] {
            assert!(parse(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn three_numbers_and_a_dot_are_no_address() {
        let text = "coap://1.2.3./x";
        let read = parse(text.as_bytes()).map(|uri| uri.authority().host.clone());
        assert!(!matches!(read, Some(Host::Address(_))), "{read:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_is_read_here_is_what_a_parser_of_the_whole_syntax_reads(
            scheme in prop_oneof!["coap|coaps\\+ws|http", "[a-z+]{0,6}"],
            host in prop_oneof!["[0-9]{1,3}(\\.[0-9]{1,3}){3}", "[a-z0-9.-]{0,12}", "\\[[0-9a-f:.]{0,20}\\]", "\\PC{0,6}"],
            port in prop_oneof![Just(String::new()), ":[0-9]{0,6}"],
            path in prop_oneof!["(/[a-z0-9.%:@!$&'()*+,;=~_-]{0,6}){0,4}", "[ -~]{0,12}"],
            query in prop_oneof![Just(String::new()), "\\?[a-z0-9=&/?%.#]{0,12}"],
        ) {
            let text = format!("{scheme}://{host}{port}{path}{query}");
            if let Some(uri) = parse(text.as_bytes()) {
                let whole = Uri::parse_any(&text).map(|uri| parts(&uri));
                prop_assert_eq!(Ok(parts(&uri)), whole, "{}", text);
            }
        }
    }
}
