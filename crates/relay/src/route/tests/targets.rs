//! Proxy-Uri and Proxy-Scheme.

use coapway_message::uri::UriError;

use super::*;

#[test]
fn splits_a_proxy_uri_for_the_origin() {
    let expected: List<'_> = &[(3, b"o-name"), (11, b"a"), (11, b"b"), (15, b"c"), (15, b"d")];
    assert_eq!(by_uri(&open(), "coap://O-name:5683/a/b?c&d"), sent(0, "o-name:5683", None, expected));
    assert_eq!(by_uri(&open(), "coap://[2001:db8::1]/x"), sent(0, "[2001:db8::1]:5683", None, &[(11, b"x")]));
    assert_eq!(by_uri(&open(), "coap://h/a%252Fb"), sent(0, "h:5683", None, &[(3, b"h"), (11, b"a%2Fb")]));
    assert_eq!(by_uri(&open(), "coap://10.0.0.1/a/../b"), sent(0, "10.0.0.1:5683", None, &[(11, b"b")]));
}

#[test]
fn a_proxy_uri_wins_over_uri_options() {
    let list: List<'_> =
        &[(3, b"other"), (7, &[1]), (11, b"other"), (15, b"other"), (35, b"coap://10.0.0.1/x")];
    assert_eq!(get(&open(), list), sent(0, "10.0.0.1:5683", None, &[(11, b"x")]));
}

#[test]
fn composes_the_target_under_a_proxy_scheme() {
    let port = 5700u16.to_be_bytes();
    let list: List<'_> = &[(3, b"O-Name"), (7, &port), (11, b"x"), (15, b"q"), (39, b"CoAP")];
    assert_eq!(get(&open(), list), sent(0, "o-name:5700", None, &[(3, b"o-name"), (11, b"x"), (15, b"q")]));
    let list: List<'_> = &[(3, b"10.0.0.1"), (11, b"x"), (39, b"coap")];
    assert_eq!(get(&open(), list), sent(0, "10.0.0.1:5683", None, &[(11, b"x")]));
    for (list, refusal) in [
        (&[(3, &b"h"[..]), (39, b"coaps")][..], Refusal::scheme(Scheme::Coaps)),
        (&[(3, b"h"), (39, b"ftp")], Refusal::UNKNOWN_SCHEME),
        (&[(3, b"h"), (39, b"\xFF")], Refusal::UNKNOWN_SCHEME),
        (&[(3, b"a b/c"), (39, b"coap")], Refusal::URI_HOST),
        (&[(3, b"h"), (7, &[]), (39, b"coap")], Refusal::TARGET),
        (&[(11, b"x"), (39, b"coap")], Refusal::NOT_FOUND),
        (&[(7, &[0x16, 0x33]), (11, b"x"), (39, b"coap")], Refusal::NOT_FOUND),
        // Without a Uri-Host another port is another server on this host.
        (&[(7, &[0x1B, 0x59]), (11, b".well-known"), (11, b"core"), (39, b"coap")], Refusal::TARGET),
        (&[(7, &[0; 3]), (11, b"x"), (39, b"coap")], Refusal::option(OptionNumber::URI_PORT, Fault::TooLong)),
        (&[(35, b"coap://h/x"), (39, b"coap")], Refusal::TWO_TARGETS),
    ] {
        assert_eq!(get(&open(), list), Err(refusal), "{list:?}");
    }
}

#[test]
fn a_malformed_proxy_uri_is_a_bad_option() {
    for (uri, error) in [
        ("/x", UriError::NotAbsolute),
        ("coap:///x", UriError::EmptyHost),
        ("coap://h/x#f", UriError::Fragment),
        ("coap://u@h/x", UriError::UserInfo),
        ("coap://h/%zz", UriError::PercentEncoding),
        ("coap://[fe80::1%25eth0]/", UriError::ZoneId),
    ] {
        assert_eq!(by_uri(&open(), uri), Err(Refusal::uri(error)), "{uri}");
        assert_eq!(Refusal::uri(error).code, Code::BAD_OPTION);
    }
    assert_eq!(get(&open(), &[(35, b"coap://\xFF/")]), Err(Refusal::uri(UriError::Syntax)));
    let refusal = |fault| Refusal::option(OptionNumber::PROXY_URI, fault);
    for (length, fault) in [(0, Fault::Empty), (1035, Fault::TooLong)] {
        let uri =
            &b"coap://h/".iter().copied().chain(std::iter::repeat(b'/')).take(length).collect::<Vec<_>>();
        assert_eq!(get(&open(), &[(35, uri)]), Err(refusal(fault)), "{length}");
    }
    assert_eq!(get(&open(), &[(35, b"coap://h"), (35, b"coap://i")]), Err(refusal(Fault::Repeated)));
}

#[test]
fn other_schemes_are_not_spoken_yet() {
    for scheme in Scheme::ALL.into_iter().filter(|&scheme| scheme != Scheme::Coap) {
        let refusal = Refusal::scheme(scheme);
        assert_eq!(by_uri(&open(), &format!("{scheme}://h/x")), Err(refusal));
        assert_eq!(refusal.code, Code::PROXYING_NOT_SUPPORTED);
    }
    assert_eq!(by_uri(&open(), "ftp://h/x"), Err(Refusal::UNKNOWN_SCHEME));
}

#[test]
fn a_named_origin_is_reached_with_its_settings() {
    assert_eq!(by_uri(&open(), "coap://10.1.2.3:5700/x"), sent(1, "10.1.2.3:5700", None, &[(11, b"x")]));
    assert_eq!(by_uri(&open(), "coap://ORIGIN"), sent(2, "origin:5683", None, &[(3, b"origin")]));
    assert_eq!(by_uri(&open(), "coap://10.1.2.3/x"), sent(0, "10.1.2.3:5683", None, &[(11, b"x")]));
}

#[test]
fn targets_that_may_not_be_reached_are_refused() {
    assert_eq!(by_uri(&open(), "coap://[ff02::fd]/x"), Err(Refusal::MULTICAST));
    assert_eq!(by_uri(&open(), "coap://h:53/x"), Err(Refusal::TARGET));
    assert_eq!(by_uri(&open(), "coap://h:0/x"), Err(Refusal::TARGET));
}

#[test]
fn paths_and_queries_are_taken_apart_by_the_rules() {
    for (uri, path, query) in [
        ("coap://10.0.0.1", &[][..], &[][..]),
        ("coap://10.0.0.1/", &[], &[]),
        ("coap://10.0.0.1/foo", &["foo"], &[]),
        ("coap://10.0.0.1/foo/", &["foo", ""], &[]),
        ("coap://10.0.0.1//", &["", ""], &[]),
        ("coap://10.0.0.1///", &["", "", ""], &[]),
        ("coap://10.0.0.1/a//b/", &["a", "", "b", ""], &[]),
        ("coap://10.0.0.1/x?", &["x"], &[""]),
        ("coap://10.0.0.1/x?&x", &["x"], &["", "x"]),
        ("coap://10.0.0.1/x?b&a&b", &["x"], &["b", "a", "b"]),
        ("coap://10.0.0.1/a%252Fb?c%26d", &["a%2Fb"], &["c&d"]),
    ] as [(&str, &[&str], &[&str]); 11]
    {
        let path = path.iter().map(|segment| (11, segment.as_bytes()));
        let options: Vec<_> = path.chain(query.iter().map(|item| (15, item.as_bytes()))).collect();
        assert_eq!(by_uri(&open(), uri), sent(0, "10.0.0.1:5683", None, &options), "{uri}");
    }
}

#[test]
fn long_uris_are_sent_whole_or_refused() {
    let long = format!("coap://10.0.0.1{}", "/a".repeat(509));
    assert_eq!(long.len(), 1033);
    let segments = by_uri(&open(), &format!("{long}/")).expect("1034 bytes").options;
    assert_eq!(segments.len(), 510);
    let too_long = Refusal::option(OptionNumber::PROXY_URI, Fault::TooLong);
    assert_eq!(by_uri(&open(), &format!("{long}/a")), Err(too_long));
    let segment = |length| by_uri(&open(), &format!("coap://10.0.0.1/{}", "%41".repeat(length)));
    assert_eq!(segment(255).expect("255 bytes").options, [(11, vec![b'A'; 255])]);
    assert_eq!(segment(256), Err(Refusal::uri(UriError::SegmentTooLong)));
}

#[test]
fn an_ipv6_literal_needs_its_brackets() {
    assert_eq!(
        by_uri(&open(), "coap://[2001:db8::1]:7001/a"),
        sent(0, "[2001:db8::1]:7001", None, &[(11, b"a")])
    );
    for uri in ["coap://2001:db8::1/a", "coap://::1:7001/a", "coap://[::1/a", "coap://::1]/a"] {
        assert_eq!(by_uri(&open(), uri).expect_err(uri).code, Code::BAD_OPTION, "{uri}");
    }
}

#[test]
fn secure_targets_are_not_asked_for_in_the_clear() {
    for uri in ["coaps://h/x", "https://h/x", "coaps+tcp://h/x", "coaps+ws://h/x", "http://h/x"] {
        assert_eq!(by_uri(&open(), uri).expect_err(uri).code, Code::PROXYING_NOT_SUPPORTED, "{uri}");
    }
    for scheme in ["coaps", "https", "COAPS"] {
        let list: List<'_> = &[(3, b"h"), (39, scheme.as_bytes())];
        assert_eq!(get(&open(), list).expect_err(scheme).code, Code::PROXYING_NOT_SUPPORTED, "{scheme}");
    }
}
