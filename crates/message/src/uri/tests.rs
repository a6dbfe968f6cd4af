use proptest::prelude::*;

use super::*;
use crate::OptionsWriter;

fn parse(text: &str) -> Uri<'_> {
    Uri::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn segments(text: &str) -> Vec<Vec<u8>> {
    parse(text).path_segments().map(Cow::into_owned).collect()
}

fn items(text: &str) -> Vec<Vec<u8>> {
    parse(text).query_items().map(Cow::into_owned).collect()
}

fn host(text: &str) -> Host {
    parse(text).into_authority().host
}

#[test]
fn splits_the_common_form_without_copying() {
    let uri = parse("coap://127.0.0.1:5700/a/b?c=d");
    assert_eq!(uri.scheme(), Scheme::Coap);
    assert_eq!(uri.authority().socket_address(), Some(([127, 0, 0, 1], 5700).into()));
    assert!(uri.path_segments().chain(uri.query_items()).all(|value| matches!(value, Cow::Borrowed(_))));
    assert_eq!(segments("coap://127.0.0.1:5700/a/b?c=d"), [b"a", b"b"]);
    assert_eq!(items("coap://127.0.0.1:5700/a/b?c=d"), [b"c=d"]);
}

#[test]
fn schemes_are_read_in_any_case_and_have_their_ports() {
    for (text, scheme, port) in [
        ("CoAP://h", Scheme::Coap, 5683),
        ("coaps://h", Scheme::Coaps, 5684),
        ("coap+TCP://h", Scheme::CoapTcp, 5683),
        ("coaps+tcp://h", Scheme::CoapsTcp, 5684),
        ("coap+ws://h", Scheme::CoapWs, 80),
        ("coaps+ws://h", Scheme::CoapsWs, 443),
        ("http://h", Scheme::Http, 80),
        ("HTTPS://h:", Scheme::Https, 443),
    ] {
        assert_eq!((parse(text).scheme(), parse(text).authority().port), (scheme, port), "{text}");
    }
}

//= https://www.rfc-editor.org/rfc/rfc7252#section-6.4
//= type=test
#[test]
fn empty_segments_follow_the_rules_for_slashes() {
    for (path, expected) in [
        ("", &[][..]),
        ("/", &[]),
        ("/foo", &["foo"]),
        ("/foo/", &["foo", ""]),
        ("//", &["", ""]),
        ("///", &["", "", ""]),
        ("/a//b", &["a", "", "b"]),
    ] {
        let expected: Vec<_> = expected.iter().map(|segment| segment.as_bytes().to_vec()).collect();
        assert_eq!(segments(&format!("coap://h{path}")), expected, "{path}");
    }
}

#[test]
fn empty_and_repeated_query_items_are_kept_in_order() {
    assert_eq!(items("coap://h/x"), [b""; 0]);
    assert_eq!(items("coap://h/x?"), [b""]);
    assert_eq!(items("coap://h/x?b&a&b"), [b"b", b"a", b"b"]);
    assert_eq!(items("coap://h?&"), [b"", b""]);
    assert_eq!(items("coap://h?a/?b"), [b"a/?b"]);
}

#[test]
fn decodes_once() {
    assert_eq!(segments("coap://h/a%252Fb"), [b"a%2Fb"]);
    assert_eq!(segments("coap://h/a%2fb"), [b"a/b"]);
    assert_eq!(items("coap://h?a%26b&c%3D"), [&b"a&b"[..], b"c="]);
    assert_eq!(segments("coap://h/%ff%00"), [[0xFF, 0]]);
}

#[test]
fn removes_dot_segments_however_they_are_spelled() {
    for (path, expected) in [
        ("/a/../b", "/b"),
        ("/a/./b", "/a/b"),
        ("/a/..", "/"),
        ("/a/b/..", "/a/"),
        ("/a/b/.", "/a/b/"),
        ("/../../a", "/a"),
        ("/..", "/"),
        ("/.", "/"),
        ("/.//", "//"),
        ("/a/%2e%2E/b", "/b"),
        ("/a/.%2e", "/"),
        ("/a/.../b", "/a/.../b"),
        ("/a//../b", "/a/b"),
        ("/x%2F../b", "/x%2F../b"),
    ] {
        assert_eq!(segments(&format!("coap://h{path}")), segments(&format!("coap://h{expected}")), "{path}");
    }
    assert!(segments("coap://h/a/%2e./%2E").is_empty());
}

#[test]
fn says_what_is_wrong() {
    let long = format!("coap://h/{}", "a".repeat(256));
    let long_item = format!("coap://h?{}", "a".repeat(256));
    let long_host = format!("coap://{}/", "a".repeat(256));
    for (text, error) in [
        ("/x", UriError::NotAbsolute),
        ("", UriError::NotAbsolute),
        ("//h/x", UriError::NotAbsolute),
        ("ftp://h/x", UriError::UnknownScheme),
        ("urn:x", UriError::UnknownScheme),
        ("coap:///x", UriError::EmptyHost),
        ("coap://:5683/x", UriError::EmptyHost),
        ("coap:/x", UriError::EmptyHost),
        ("coap:x", UriError::EmptyHost),
        ("coap://h/x#f", UriError::Fragment),
        ("coap://h/x#", UriError::Fragment),
        ("coap://u@h/x", UriError::UserInfo),
        ("coap://@h/x", UriError::UserInfo),
        ("coap://h/%zz", UriError::PercentEncoding),
        ("coap://h/%2", UriError::PercentEncoding),
        ("coap://h%zz/", UriError::PercentEncoding),
        ("coap://[fe80::1%25eth0]/x", UriError::ZoneId),
        ("coap://[fe80::1%eth0]/x", UriError::ZoneId),
        ("coap://h:65536/x", UriError::Port),
        ("coap://h:x/", UriError::Syntax),
        ("coap://[::1/x", UriError::Syntax),
        ("coap://[::g]/x", UriError::Syntax),
        ("coap://[v1.x]/x", UriError::Syntax),
        ("coap://h/a b", UriError::Syntax),
        ("coap://h/é", UriError::Syntax),
        ("coap://a%20b/", UriError::Syntax),
        ("coap://a%2Fb/", UriError::Syntax),
        ("coap://a%25b/", UriError::Syntax),
        ("coap://%5B::1%5D@/", UriError::UserInfo),
        ("coap://%ff/", UriError::Syntax),
        (&long, UriError::SegmentTooLong),
        (&long_item, UriError::SegmentTooLong),
        (&long_host, UriError::SegmentTooLong),
    ] {
        assert_eq!(Uri::parse(text).err(), Some(error), "{text}");
    }
    assert!(Uri::parse(&format!("coap://h/{}", "%41".repeat(255))).is_ok());
}

#[test]
fn a_host_has_one_spelling() {
    let address = |text: &str| Host::Address(text.parse().expect("an address"));
    assert_eq!(host("coap://O-Name/x"), Host::Name("o-name".into()));
    assert_eq!(host("coap://%4Fname/x"), Host::Name("oname".into()));
    assert_eq!(host("coap://h%C3%A9/x"), Host::Name("hé".into()));
    assert_eq!(host("coap://[2001:DB8:0::1]/x"), address("2001:db8::1"));
    assert_eq!(host("coap://[::ffff:10.0.0.1]/x"), address("10.0.0.1"));
    assert_eq!(host("coap://%31%32%37.0.0.1/x"), address("127.0.0.1"));
}

#[test]
fn what_a_resolver_takes_for_an_address_is_no_name() {
    for text in ["127.1", "2130706433", "0x7f000001", "0X7F.1", "a.0x", "1.2.3.04", "127.0.0.1.", "256.0.0.1"]
    {
        assert_eq!(Uri::parse(&format!("coap://{text}/")).err(), Some(UriError::Syntax), "{text}");
        assert!(HostRef::parse(text.as_bytes()).is_err(), "{text}");
    }
    assert!(matches!(HostRef::parse(b"origin1"), Ok(HostRef::Name("origin1"))));
    assert!(matches!(HostRef::parse(b"4.example."), Ok(HostRef::Name(_))));
}

#[test]
fn reads_the_values_of_uri_host() {
    for literal in [&b"[::1]"[..], b"::1"] {
        assert!(matches!(HostRef::parse(literal), Ok(HostRef::Address(address)) if address.is_loopback()));
    }
    assert!(matches!(HostRef::parse(&[b'a'; 255]), Ok(HostRef::Name(name)) if name.len() == 255));
    for (value, error) in [
        (&b""[..], UriError::EmptyHost),
        (b"a b/c", UriError::Syntax),
        (b"::1%eth0", UriError::Syntax),
        (b"[::1", UriError::Syntax),
        (b"[fe80::1%eth0]", UriError::ZoneId),
        (b"\xFF", UriError::Syntax),
        (&[b'a'; 256], UriError::SegmentTooLong),
    ] {
        assert_eq!(HostRef::parse(value).err(), Some(error), "{value:?}");
    }
}

#[test]
fn hosts_and_authorities_read_as_in_a_uri() {
    assert_eq!(parse("coap://[::1]:1/").authority().to_string(), "[::1]:1");
    assert_eq!(parse("coap://H/").authority().to_string(), "h:5683");
}

fn compose(path: &[Vec<u8>], query: &[Vec<u8>]) -> String {
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    path.iter().for_each(|segment| writer.push(OptionNumber::URI_PATH, segment));
    query.iter().for_each(|item| writer.push(OptionNumber::URI_QUERY, item));
    let options = writer.finish();
    let mut text = String::from("coap://h");
    write_path(&options, &mut text);
    write_query(&options, &mut text);
    text
}

#[test]
fn writes_the_normal_form() {
    let text = compose(
        &[b"a/b".to_vec(), b":@-._~!$&'()*+,;=".to_vec(), vec![]],
        &[b"a=b&c".to_vec(), b"/?".to_vec()],
    );
    assert_eq!(text, "coap://h/a%2Fb/:@-._~!$&'()*+,;=/?a=b%26c&/?");
    assert_eq!(compose(&[], &[]), "coap://h/");
    assert_eq!(compose(&["é".into()], &[vec![]]), "coap://h/%C3%A9?");
}

/// Bytes of all kinds, the troublesome ones often.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"./%&?=2eE#[]:@ ".to_vec())];
    prop::collection::vec(byte, 0..20)
}

proptest! {
    #[test]
    fn what_is_composed_decomposes_to_the_same(
        path in prop::collection::vec(value(), 0..8),
        query in prop::collection::vec(value(), 0..8),
    ) {
        // One empty segment is composed like none, and dot segments are no Uri-Path values.
        prop_assume!(path.len() != 1 || !path[0].is_empty());
        prop_assume!(!path.iter().any(|segment| segment == b"." || segment == b".."));
        let text = compose(&path, &query);
        prop_assert_eq!(segments(&text), path);
        prop_assert_eq!(items(&text), query);
    }

    #[test]
    fn any_text_is_a_uri_or_an_error(text in "(coap://)?[\\[\\]a-z0-9:@%./?#&é]{0,40}") {
        if let Ok(uri) = Uri::parse(&text) {
            let dot = |segment: Cow<'_, [u8]>| matches!(&*segment, b"." | b"..");
            prop_assert!(!uri.path_segments().any(dot));
            prop_assert!(uri.query_items().count() <= text.len());
        }
    }

    #[test]
    fn any_bytes_are_a_host_or_an_error(value in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = HostRef::parse(&value).map(Host::from);
    }
}
