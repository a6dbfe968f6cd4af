//! URIs and options (RFC 7252 §6). The number in a name is that of R-URI-…; what begins with k09
//! comes from bug reports against other stacks.

use coapway_message::uri::{self, Authority, Host, HostRef, Scheme, Uri, UriError};
use coapway_message::{OptionNumber, Options, OptionsWriter};
use proptest::prelude::*;

/// The options that RFC 7252 §6.4 makes of a URI whose host is not the destination's address.
fn decompose(text: &str) -> Result<Vec<u8>, UriError> {
    let uri = Uri::parse(text)?;
    let mut encoded = Vec::new();
    let mut writer = OptionsWriter::new(&mut encoded);
    if let Host::Name(name) = &uri.authority().host {
        writer.push(OptionNumber::URI_HOST, name.as_bytes());
    }
    uri.path_segments().for_each(|segment| writer.push(OptionNumber::URI_PATH, &segment));
    uri.query_items().for_each(|item| writer.push(OptionNumber::URI_QUERY, &item));
    Ok(encoded)
}

/// The URI that RFC 7252 §6.5 makes of options.
fn compose(scheme: Scheme, authority: &Authority, options: &Options<'_>) -> String {
    let mut text = format!("{scheme}://{}", authority.host);
    if authority.port != scheme.default_port() {
        text.push_str(&format!(":{}", authority.port));
    }
    uri::write_path(options, &mut text);
    uri::write_query(options, &mut text);
    text
}

/// There and back: the normal form of a URI.
fn normal(text: &str) -> String {
    let uri = Uri::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let encoded = decompose(text).expect("parsed above");
    let (options, _) = Options::parse(&encoded).expect("what we write is valid");
    compose(uri.scheme(), uri.authority(), &options)
}

fn values(text: &str, number: OptionNumber) -> Vec<String> {
    let encoded = decompose(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let (options, _) = Options::parse(&encoded).expect("what we write is valid");
    options.values(number).map(|value| String::from_utf8_lossy(value).into_owned()).collect()
}

fn path(text: &str) -> Vec<String> {
    values(text, OptionNumber::URI_PATH)
}

fn query(text: &str) -> Vec<String> {
    values(text, OptionNumber::URI_QUERY)
}

#[test]
fn uri_01_slashes_make_the_segments_of_the_erratum() {
    for (text, segments) in [
        ("coap://h/", &[][..]),
        ("coap://h", &[]),
        ("coap://h/foo", &["foo"]),
        ("coap://h/foo/", &["foo", ""]),
        ("coap://h//", &["", ""]),
        ("coap://h///", &["", "", ""]),
    ] {
        assert_eq!(path(text), segments, "{text}");
    }
}

#[test]
fn uri_01_query_items_keep_emptiness_order_and_repetition() {
    for (text, items) in [
        ("coap://h/x?", &[""][..]),
        ("coap://h/x", &[]),
        ("coap://h/x?b&a&b", &["b", "a", "b"]),
        ("coap://h/x?&", &["", ""]),
        ("coap://h?x=/?&y", &["x=/?", "y"]),
    ] {
        assert_eq!(query(text), items, "{text}");
    }
}

#[test]
fn uri_02_percent_encoding_is_decoded_once_and_encoded_once() {
    assert_eq!(path("coap://h/a%252Fb"), ["a%2Fb"]);
    assert_eq!(normal("coap://h/a%252Fb"), "coap://h/a%252Fb");
    assert_eq!(normal("coap://h/a%2fb"), "coap://h/a%2Fb");
    assert_eq!(normal("coap://h/%7esensors/%41?%26=%3D&%c3%a9"), "coap://h/~sensors/A?%26==&%C3%A9");
}

#[test]
fn uri_02_each_byte_has_one_spelling() {
    for byte in 0..=u8::MAX {
        let spelled = format!("coap://h/x%{byte:02x}x?x%{byte:02X}x");
        let encoded = decompose(&spelled).expect("valid");
        let (options, _) = Options::parse(&encoded).expect("valid");
        assert_eq!(options.first(OptionNumber::URI_PATH), Some(&[b'x', byte, b'x'][..]));
        assert_eq!(options.first(OptionNumber::URI_QUERY), Some(&[b'x', byte, b'x'][..]));
        let plain = byte.is_ascii_alphanumeric() || b"-._~!$'()*+,;=:@".contains(&byte);
        let expected = |plain: bool| match plain {
            true => format!("x{}x", char::from(byte)),
            false => format!("x%{byte:02X}x"),
        };
        let (segment, item) = (expected(plain || byte == b'&'), expected(plain || b"/?".contains(&byte)));
        assert_eq!(normal(&spelled), format!("coap://h/{segment}?{item}"));
    }
}

#[test]
fn uri_03_a_name_is_in_lower_case_and_an_address_is_no_uri_host() {
    assert_eq!(values("coap://NAME/x", OptionNumber::URI_HOST), ["name"]);
    assert_eq!(values("coap://N%41ME/x", OptionNumber::URI_HOST), ["name"]);
    for literal in ["[2001:db8::1]", "[2001:DB8:0:0::1]", "192.0.2.1", "[::ffff:192.0.2.1]", "192.0.%32.1"] {
        let none: [&str; 0] = [];
        assert_eq!(values(&format!("coap://{literal}/x"), OptionNumber::URI_HOST), none, "{literal}");
    }
}

#[test]
fn uri_03_an_address_has_one_spelling() {
    for (text, expected) in [
        ("coap://[2001:DB8:0:0::1]/x", "coap://[2001:db8::1]/x"),
        ("coap://[::FFFF:192.0.2.1]:5683/x", "coap://192.0.2.1/x"),
        ("coap://[::1]:05684", "coap://[::1]:5684/"),
    ] {
        assert_eq!(normal(text), expected);
    }
}

#[test]
fn uri_03_a_missing_port_is_the_one_of_the_scheme() {
    for scheme in Scheme::ALL {
        let port = scheme.default_port();
        for text in [format!("{scheme}://h/x"), format!("{scheme}://h:/x"), format!("{scheme}://h:{port}/x")]
        {
            assert_eq!(Uri::parse(&text).map(|uri| uri.authority().port), Ok(port), "{text}");
            assert_eq!(normal(&text), format!("{scheme}://h/x"));
        }
        assert_eq!(normal(&format!("{scheme}://h:1234/x")), format!("{scheme}://h:1234/x"));
    }
}

#[test]
fn uri_04_dot_segments_are_removed_before_the_path_is_split() {
    assert_eq!(path("coap://h/a/../b"), ["b"]);
    assert_eq!(path("coap://h/a/%2e%2E/b/./c/.%2e/"), ["b", ""]);
    assert_eq!(path("coap://h/x%2F..%2Fadmin"), ["x/../admin"]);
}

#[test]
fn uri_05_a_value_that_is_no_host_makes_no_uri() {
    for value in
        ["a b/c", "", "a/b", "a?b", "a#b", "u@h", "h:1", "[::1", "::1]", "a%20b", "a\u{0}b", "[h]", "\u{7f}"]
    {
        assert!(HostRef::parse(value.as_bytes()).is_err(), "{value}");
    }
    assert!(HostRef::parse(b"\xC3").is_err());
}

#[test]
fn uri_05_a_name_that_is_not_ascii_is_percent_encoded() {
    assert_eq!(normal("coap://h%C3%A9:99/x"), "coap://h%C3%A9:99/x");
    let host = Host::from(HostRef::parse("H\u{e9}".as_bytes()).expect("a host"));
    assert_eq!(host, Host::Name("h\u{e9}".into()));
    assert_eq!(host.to_string(), "h%C3%A9");
}

#[test]
fn uri_06_spellings_of_one_resource_make_one_list_of_options() {
    let expected = decompose("coap://h/s/admin?x").expect("valid");
    for text in [
        "coap://H/s/admin?x",
        "coap://h:5683/s/admin?x",
        "COAP://h/s/%61dmin?x",
        "coap://h/s/%61%64%6d%69%6E?%78",
        "coap://h/s/./admin?x",
        "coap://h/s/%2e/admin?x",
        "coap://h/s/b/../admin?x",
        "coap://h/s/b/%2E%2e/admin?x",
        "coap://h/../s/admin?x",
        "coap://h/%2E./s/admin?x",
        "coap://h/s//../admin?x",
        "coap://%68/s/admin?x",
    ] {
        assert_eq!(decompose(text).as_ref(), Ok(&expected), "{text}");
    }
    for text in [
        "coap://h//s/admin?x",
        "coap://h/s//admin?x",
        "coap://h/s/admin/?x",
        "coap://h/s/Admin?x",
        "coap://h/s%2Fadmin?x",
        "coap://h/s/admin%2F?x",
        "coap://h/s/..admin?x",
        "coap://h/s/admin%00?x",
        "coap://h/s/admin",
        "coap://h/s/admin?X",
    ] {
        assert_ne!(decompose(text).as_ref(), Ok(&expected), "{text}");
    }
}

#[test]
fn k09_an_ipv6_address_without_brackets_is_no_host_and_port() {
    for text in ["coap://::1:7001/a", "coap://::1/a", "coap://fe80::1:5683/", "coap://2001:db8::1"] {
        assert!(Uri::parse(text).is_err(), "{text}");
    }
    assert_eq!(normal("coap://[::1]:7001/a"), "coap://[::1]:7001/a");
}

#[test]
fn k09_empty_segments_are_kept() {
    assert_eq!(path("coap://127.0.0.1:7001/a//b/"), ["a", "", "b", ""]);
    let none: [&str; 0] = [];
    assert_eq!(path("coap://127.0.0.1:7001/"), none);
    assert_eq!(path("coap://127.0.0.1:7001"), none);
}

#[test]
fn k09_no_query_is_not_an_empty_query() {
    let none: [&str; 0] = [];
    assert_eq!(query("coap://127.0.0.1:7001/a"), none);
    assert_eq!(query("coap://127.0.0.1:7001/a?"), [""]);
    assert_eq!(query("coap://127.0.0.1:7001/a?&x"), ["", "x"]);
}

#[test]
fn k09_a_segment_holds_255_bytes_after_decoding() {
    for (unit, is_ok) in [("a".repeat(255), true), ("a".repeat(256), false)] {
        assert_eq!(Uri::parse(&format!("coap://h/{unit}")).is_ok(), is_ok);
        assert_eq!(Uri::parse(&format!("coap://h/x?{unit}")).is_ok(), is_ok);
        let encoded = unit.replace('a', "%61");
        assert_eq!(Uri::parse(&format!("coap://h/x/{encoded}/y")).is_ok(), is_ok);
        assert_eq!(Uri::parse(&format!("coap://h?x&{encoded}&y")).is_ok(), is_ok);
    }
    let long = format!("coap://127.0.0.1:7001{}", "/x".repeat(506));
    assert_eq!((long.len(), path(&long).len()), (1033, 506));
    assert!(OptionNumber::PROXY_URI.allows_length(1034) && !OptionNumber::PROXY_URI.allows_length(1035));
}

/// Bytes of all kinds, the troublesome ones often.
fn component() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"./%&?=2eE#[]:@ ".to_vec())];
    let short = prop::collection::vec(byte, 0..12);
    prop_oneof![20 => short, 1 => prop::collection::vec(any::<u8>(), 250..=255)]
}

fn authority() -> impl Strategy<Value = Authority> {
    let name = prop_oneof!["[a-z][a-z0-9._~!$&'()*+,;=-]{0,20}[a-z_~-]", "[a-zé]{1,8}"];
    let address = prop_oneof![
        any::<std::net::Ipv4Addr>().prop_map(std::net::IpAddr::V4),
        any::<std::net::Ipv6Addr>().prop_map(|address| address.to_canonical()),
    ];
    let host = prop_oneof![name.prop_map(|name| Host::Name(name.into())), address.prop_map(Host::Address),];
    let port = prop_oneof![Just(5683), Just(5684), Just(80), any::<u16>()];
    (host, port).prop_map(|(host, port)| Authority { host, port })
}

/// RFC 3986 §5.2.4, letter by letter.
fn remove_dot_segments(path: &str) -> String {
    let (mut input, mut output) = (path.to_owned(), String::new());
    while !input.is_empty() {
        if let Some(rest) = input.strip_prefix("/./") {
            input = format!("/{rest}");
        } else if input == "/." {
            input = "/".into();
        } else if input.starts_with("/../") || input == "/.." {
            input = format!("/{}", input.get(4..).unwrap_or_default());
            output.truncate(output.rfind('/').unwrap_or(0));
        } else {
            let end = input[1..].find('/').map_or(input.len(), |place| place + 1);
            output.push_str(&input[..end]);
            input = input[end..].to_owned();
        }
    }
    output
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Options → URI → options (RFC 7252 §6.5, then §6.4).
    #[test]
    fn what_is_composed_decomposes_to_the_same(
        scheme in prop::sample::select(Scheme::ALL.to_vec()),
        authority in authority(),
        path in prop::collection::vec(component(), 0..6),
        query in prop::collection::vec(component(), 0..6),
    ) {
        // One empty segment is composed like none, and dot segments are no Uri-Path values.
        prop_assume!(path.len() != 1 || !path[0].is_empty());
        prop_assume!(!path.iter().any(|segment| segment == b"." || segment == b".."));
        let mut encoded = Vec::new();
        let mut writer = OptionsWriter::new(&mut encoded);
        path.iter().for_each(|segment| writer.push(OptionNumber::URI_PATH, segment));
        query.iter().for_each(|item| writer.push(OptionNumber::URI_QUERY, item));
        let text = compose(scheme, &authority, &writer.finish());
        prop_assert!(text.is_ascii());
        let uri = Uri::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        prop_assert_eq!((uri.scheme(), uri.authority()), (scheme, &authority));
        prop_assert!(uri.path_segments().eq(path.iter().map(|segment| &segment[..])), "{}", text);
        prop_assert!(uri.query_items().eq(query.iter().map(|item| &item[..])), "{}", text);
        // The normal form is its own normal form.
        prop_assert_eq!(normal(&text), text);
    }

    /// URI → options → URI: any spelling leads to a normal form that means the same.
    #[test]
    fn a_normal_form_means_what_the_uri_means(
        text in "coaps?://(h|H\\.x|\\[::[A-F0-9]{1,4}\\]|10\\.0\\.0\\.1|%6[8e]é?)(:|:0*[0-9]{1,4})?(/([a-b.]|%2[eEfF]|%[4-7][0-9a-eA-E]|[&=:@?;]){0,4}){0,6}(\\?([a&=/?]|%2[56]|%e9){0,6})?",
    ) {
        if let Ok(options) = decompose(&text) {
            let normal = normal(&text);
            prop_assert_eq!(decompose(&normal), Ok(options), "{}", normal);
            let (one, other) = (Uri::parse(&text).expect("decomposed"), Uri::parse(&normal).expect("so too"));
            prop_assert_eq!((one.scheme(), one.authority()), (other.scheme(), other.authority()));
        }
    }

    #[test]
    fn dot_segments_go_as_rfc_3986_says(path in "(/(a|b|\\.|\\.\\.|\\.\\.\\.|)){0,8}") {
        let expected = remove_dot_segments(&path);
        prop_assert_eq!(decompose(&format!("coap://h{path}")), decompose(&format!("coap://h{expected}")));
        let spelled = path.replace('.', "%2e");
        prop_assert_eq!(decompose(&format!("coap://h{spelled}")), decompose(&format!("coap://h{expected}")));
    }

    #[test]
    fn any_text_is_a_uri_or_an_error(text in "\\PC{0,60}", prefix in "(coap://)?(h|\\[::1\\]|:)?") {
        for text in [text.clone(), format!("{prefix}{text}"), format!("{prefix}/{text}")] {
            if let Ok(uri) = Uri::parse(&text) {
                prop_assert!(uri.path_segments().all(|segment| segment.len() <= 255));
                prop_assert!(uri.query_items().all(|item| item.len() <= 255));
                let _ = normal(&text);
            }
        }
    }

    /// A value that is a host reads the same as an option and, encoded, in a URI.
    #[test]
    fn a_uri_host_means_what_the_host_of_a_uri_means(value in prop::collection::vec(any::<u8>(), 0..24)) {
        if let Ok(host) = HostRef::parse(&value).map(Host::from) {
            let text = format!("coap://{host}/");
            prop_assert_eq!(Uri::parse(&text).map(|uri| uri.into_authority().host), Ok(host), "{}", text);
        }
    }

    #[test]
    fn a_name_reads_the_same_as_option_and_in_a_uri(value in "[a-zA-Z0-9.é_:\\[\\]%-]{1,16}") {
        let from_option = HostRef::parse(value.as_bytes()).map(Host::from).ok();
        if let Some(host) = from_option {
            let text = format!("coap://{host}/");
            prop_assert_eq!(Uri::parse(&text).map(|uri| uri.into_authority().host), Ok(host), "{}", text);
        }
    }
}
