use coapway_message::{Code, OptionsWriter, OwnedContent};
use proptest::prelude::*;

use super::*;
use crate::parameters::{Forward, Upstream};

type List<'a> = &'a [(u16, &'a [u8])];

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn content(code: Code, list: List<'_>) -> OwnedContent {
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    list.iter().for_each(|(number, value)| writer.push(OptionNumber(*number), value));
    Content { code, options: writer.finish(), payload: b"" }.into()
}

fn owned(list: List<'_>) -> Vec<(u16, Vec<u8>)> {
    list.iter().map(|(number, value)| (*number, value.to_vec())).collect()
}

/// A plan without what it borrows.
#[derive(Debug, PartialEq, Eq)]
struct Sent {
    upstream: u32,
    destination: String,
    route: Option<usize>,
    options: Vec<(u16, Vec<u8>)>,
}

fn sent(upstream: u32, destination: &str, route: Option<usize>, options: List<'_>) -> Result<Sent, Refusal> {
    Ok(Sent { upstream, destination: destination.to_owned(), route, options: owned(options) })
}

fn get(parameters: &Parameters, list: List<'_>) -> Result<Sent, Refusal> {
    let content = content(Code::GET, list);
    let mut scratch = vec![0xFF; 3];
    let plan = match decide(parameters, CLIENT, &content.as_content(), &mut scratch)? {
        Decision::Forward(plan) => plan,
        Decision::Local(content) => panic!("served here: {content:?}"),
    };
    let destination = match plan.destination {
        Destination::Address(address) => address.to_string(),
        Destination::Name { host, port } => format!("{host}:{port}"),
    };
    let options = plan.content.options.iter().map(|(number, value)| (number.0, value.to_vec())).collect();
    Ok(Sent { upstream: plan.upstream.0, destination, route: plan.route, options })
}

fn by_uri(parameters: &Parameters, uri: &str) -> Result<Sent, Refusal> {
    get(parameters, &[(35, uri.as_bytes())])
}

fn upstream(name: &str, uri: &str) -> Upstream {
    let authority = Uri::parse(uri).expect("a URI").into_authority();
    Upstream { name: name.into(), authority: Some(authority) }
}

fn route(host: Option<&str>, path: &[&str], upstream: u32, strip: bool) -> Route {
    Route {
        host: host.map(Into::into),
        path: path.iter().map(|segment| segment.as_bytes().into()).collect(),
        upstream: UpstreamId(upstream),
        strip,
    }
}

/// Listens on 127.0.0.1:5683 as `proxy`, knows two origins and, where it forwards, forwards openly.
fn parameters(forward: Forward, routes: Vec<Route>) -> Parameters {
    let mut parameters = Parameters {
        routes,
        forward,
        own: vec!["127.0.0.1:5683".parse().expect("an address")],
        own_names: vec!["proxy".into()],
        ..Parameters::default()
    };
    parameters.upstreams.push(upstream("address", "coap://10.1.2.3:5700"));
    parameters.upstreams.push(upstream("name", "coap://origin"));
    parameters
}

fn open() -> Parameters {
    parameters(Forward::Open, vec![])
}

fn reverse_only() -> Parameters {
    parameters(
        Forward::Off,
        vec![
            route(None, &["boiler"], 1, true),
            route(None, &["boiler", "deep"], 2, true),
            route(None, &["kept"], 1, false),
            route(Some("virtual"), &[], 2, true),
            route(Some("10.0.0.1"), &["x"], 1, true),
        ],
    )
}

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
fn a_request_to_ourselves_is_local() {
    for uri in ["coap://127.0.0.1/x", "coap://PROXY/boiler", "coap://[::ffff:127.0.0.1]:5683/x"] {
        assert_eq!(by_uri(&open(), uri), Err(Refusal::NOT_FOUND), "{uri}");
        assert_eq!(by_uri(&reverse_only(), uri), Err(Refusal::NOT_FOUND), "{uri}");
    }
    assert_eq!(get(&open(), &[(11, b"x")]), Err(Refusal::NOT_FOUND));
    assert_eq!(get(&open(), &[(3, b"foreign"), (11, b"x")]), Err(Refusal::NOT_FOUND));
}

#[test]
fn a_local_request_with_an_unknown_critical_option_is_a_bad_one() {
    assert_eq!(
        get(&open(), &[(11, b"x"), (65001, b"")]),
        Err(Refusal::option(OptionNumber(65001), Fault::Unknown))
    );
    assert_eq!(get(&open(), &[(11, b"x"), (65000, b"")]), Err(Refusal::NOT_FOUND));
    assert_eq!(
        get(&open(), &[(5, b""), (5, b""), (11, b"x")]),
        Err(Refusal::option(OptionNumber(5), Fault::Repeated))
    );
    assert_eq!(
        get(&open(), &[(9, b""), (11, b"x")]),
        Err(Refusal::option(OptionNumber::OSCORE, Fault::Unknown))
    );
}

#[test]
fn a_reverse_proxy_does_not_forward() {
    for uri in ["coap://10.1.2.3:5700/x", "coap://origin/x", "coap://h/x"] {
        assert_eq!(by_uri(&reverse_only(), uri), Err(Refusal::FORWARDING), "{uri}");
    }
    let list: List<'_> = &[(3, b"virtual"), (11, b"boiler"), (39, b"coap")];
    assert_eq!(get(&reverse_only(), list), Err(Refusal::FORWARDING));
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
fn the_longest_route_wins_and_is_stripped() {
    let parameters = reverse_only();
    let one = |options| sent(1, "10.1.2.3:5700", Some(0), options);
    assert_eq!(get(&parameters, &[(11, b"boiler"), (11, b"t"), (15, b"q")]), one(&[(11, b"t"), (15, b"q")]));
    assert_eq!(get(&parameters, &[(11, b"boiler")]), one(&[]));
    assert_eq!(get(&parameters, &[(11, b"boiler"), (11, b"")]), one(&[]), "a slash alone is the root");
    assert_eq!(get(&parameters, &[(11, b"boiler"), (11, b""), (11, b"")]), one(&[(11, b""), (11, b"")]));
    assert_eq!(get(&parameters, &[(11, b"boiler"), (11, b"deeper")]), one(&[(11, b"deeper")]));
    let deep: List<'_> = &[(11, b"boiler"), (11, b"deep"), (11, b"t")];
    assert_eq!(get(&parameters, deep), sent(2, "origin:5683", Some(1), &[(3, b"origin"), (11, b"t")]));
    let kept: List<'_> = &[(11, b"kept"), (11, b"")];
    assert_eq!(get(&parameters, kept), sent(1, "10.1.2.3:5700", Some(2), kept));
}

#[test]
fn a_route_matches_whole_segments_only() {
    for list in [
        &[(11, &b"boilers"[..])][..],
        &[(11, b"boiler/t")],
        &[(11, b""), (11, b"boiler")],
        &[],
        &[(11, b"Boiler")],
    ] {
        assert_eq!(get(&reverse_only(), list), Err(Refusal::NOT_FOUND), "{list:?}");
    }
}

#[test]
fn a_route_for_the_host_beats_one_for_any() {
    let list: List<'_> = &[(3, b"Virtual"), (7, &[0x16, 0x33]), (11, b"boiler")];
    assert_eq!(
        get(&reverse_only(), list),
        sent(2, "origin:5683", Some(3), &[(3, b"origin"), (11, b"boiler")])
    );
    let list: List<'_> = &[(3, b"10.0.0.1"), (11, b"x")];
    assert_eq!(get(&reverse_only(), list), sent(1, "10.1.2.3:5700", Some(4), &[]));
    assert_eq!(get(&reverse_only(), &[(3, b"a b/c"), (11, b"boiler")]), Err(Refusal::URI_HOST));
}

#[test]
fn an_origin_sees_its_own_host_and_never_ours() {
    let list: List<'_> = &[(3, b"proxy"), (7, &[0x16, 0x33]), (11, b"boiler"), (11, b"t")];
    assert_eq!(get(&reverse_only(), list), sent(1, "10.1.2.3:5700", Some(0), &[(11, b"t")]));
}

#[test]
fn a_route_without_an_origin_leads_nowhere() {
    for upstream in [0, 9] {
        let parameters = parameters(Forward::Off, vec![route(None, &[], upstream, true)]);
        assert_eq!(get(&parameters, &[]), Err(Refusal::NO_UPSTREAM));
    }
}

#[test]
fn an_abbreviated_path_is_not_sent_past_routes_that_look_at_paths() {
    let list: List<'_> = &[(13, &[0])];
    assert_eq!(get(&reverse_only(), list), Err(Refusal::option(OptionNumber(13), Fault::Unknown)));
    let everything = parameters(Forward::Off, vec![route(None, &[], 1, true)]);
    assert_eq!(get(&everything, list), sent(1, "10.1.2.3:5700", Some(0), list));
    let forward: List<'_> = &[(3, b"10.0.0.1"), (13, &[0]), (39, b"coap")];
    assert_eq!(get(&open(), forward), sent(0, "10.0.0.1:5683", None, list));
}

#[test]
fn spellings_of_another_path_do_not_reach_a_route() {
    for path in [&[&b"%62oiler"[..]][..], &[b"", b"boiler"], &[b"boiler%2Ft"], &[b"BOILER"]] {
        let list: Vec<_> = path.iter().map(|segment| (11, *segment)).collect();
        assert_eq!(get(&reverse_only(), &list), Err(Refusal::NOT_FOUND), "{path:?}");
    }
    assert_eq!(get(&reverse_only(), &[(11, b"x"), (11, b".."), (11, b"boiler")]), Err(Refusal::DOT_SEGMENT));
}

#[test]
fn unknown_methods_are_not_allowed() {
    for code in [Code(8), Code(31)] {
        let content = content(code, &[(35, b"coap://h/x")]);
        assert_eq!(decide(&open(), CLIENT, &content.as_content(), &mut Vec::new()), Err(Refusal::METHOD));
    }
}

#[test]
fn a_loop_ends_where_the_hop_limit_does() {
    let uri: List<'_> = &[(16, &[1]), (35, b"coap://h/x")];
    assert_eq!(get(&open(), uri), Err(Refusal::HOP_LIMIT_REACHED));
    assert_eq!(get(&reverse_only(), &[(11, b"boiler"), (16, &[1])]), Err(Refusal::HOP_LIMIT_REACHED));
    assert_eq!(get(&open(), &[(11, b"x"), (16, &[1])]), Err(Refusal::NOT_FOUND), "a local answer is no hop");
}

fn planned(code: Code, list: List<'_>) -> (NoResponse, bool, bool, Option<Block>, bool) {
    let everything = parameters(Forward::Off, vec![route(None, &[], 1, true)]);
    let content = content(code, list);
    let mut scratch = Vec::new();
    match decide(&everything, CLIENT, &content.as_content(), &mut scratch) {
        Ok(Decision::Forward(plan)) => {
            (plan.no_response, plan.reissuable, plan.block, plan.block1, plan.oscore)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plan_says_what_kind_of_request_it_is() {
    let plain = (NoResponse::NONE, true, false, None, false);
    assert_eq!(planned(Code::GET, &[(11, b"x")]), plain);
    let block = Block { num: 1, more: true, szx: 2 };
    let upload = (NoResponse::NONE, false, true, Some(block), false);
    assert_eq!(planned(Code::PUT, &[(27, &[0x1A])]), upload);
    for value in [&[][..], &[0x06], &[0x16]] {
        assert_eq!(planned(Code::GET, &[(23, value)]), (NoResponse::NONE, true, true, None, false));
    }
    assert_eq!(planned(Code::POST, &[(9, b"")]), (NoResponse::NONE, false, false, None, true));
    let (no_response, ..) = planned(Code::GET, &[(258, &[26])]);
    assert!(no_response.suppresses(Code::CONTENT) && no_response.suppresses(Code::GATEWAY_TIMEOUT));
    let (no_response, ..) = planned(Code::GET, &[(258, &[2])]);
    assert!(no_response.suppresses(Code::CONTENT) && !no_response.suppresses(Code::NOT_FOUND));
}

#[test]
fn a_malformed_block_is_refused_before_anything_leaves() {
    for (code, number) in [(Code::GET, 23), (Code::PUT, 23), (Code::PUT, 27)] {
        for uri in [&[][..], &[(35, &b"coap://h/x"[..])]] {
            let refused = |value: &[u8]| {
                let mut list = uri.to_vec();
                list.push((number, value));
                list.sort_by_key(|(number, _)| *number);
                let content = content(code, &list);
                decide(&open(), CLIENT, &content.as_content(), &mut Vec::new())
                    .map(|_| ())
                    .expect_err("refused")
            };
            assert_eq!(refused(&[0x07]), Refusal::BLOCK_SIZE);
            assert_eq!(refused(&[0; 4]), Refusal::option(OptionNumber(number), Fault::TooLong));
        }
    }
    assert_eq!(Refusal::BLOCK_SIZE.code, Code::BAD_REQUEST);
}

#[test]
fn the_client_hears_of_a_no_response_that_is_malformed() {
    for list in [&[(258, &[26, 26][..])][..], &[(258, &[26]), (258, &[26])]] {
        let refusal = get(&open(), &[&[(35, &b"coap://h/x"[..])], list].concat()).expect_err("refused");
        assert_eq!(refusal.code, Code::BAD_OPTION);
        assert!(!NoResponse::of(&content(Code::GET, list).as_content()).suppresses(refusal.code));
    }
    let wanted = content(Code::GET, &[(258, &[26]), (65003, b"")]);
    assert!(NoResponse::of(&wanted.as_content()).suppresses(Code::BAD_OPTION));
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

/// The origin serves `/admin` and the route offers only `/open`.
#[test]
fn no_spelling_of_a_path_that_is_not_offered_leads_there() {
    let offered = parameters(Forward::Off, vec![route(None, &["open"], 1, false)]);
    let paths: &[&[&str]] = &[
        &["admin"],
        &["", "admin"],
        &["", "", "admin"],
        &["admin", ""],
        &["Admin"],
        &["ADMIN"],
        &["%61dmin"],
        &["%2fadmin"],
        &["/admin"],
        &["open/../admin"],
        &["open/admin"],
        &["open%2f..%2fadmin"],
        &["open", "..", "admin"],
        &["open", ".", "admin"],
        &["open", "%2e%2e", "admin"],
        &["open", "%2E%2E", "admin"],
        &["open", "../admin"],
        &["open", "", "", "admin"],
        &[".", "admin"],
        &["..", "admin"],
        &["opened", "admin"],
        &["", "open", "..", "admin"],
        &["ad\u{ff4d}in"],
        &["admin\0"],
    ];
    for path in paths {
        let list: Vec<_> = path.iter().map(|segment| (11, segment.as_bytes())).collect();
        match get(&offered, &list) {
            Err(refusal) => assert!(matches!(refusal, Refusal::NOT_FOUND | Refusal::DOT_SEGMENT), "{path:?}"),
            Ok(seen) => assert!(seen.options == owned(&list) && path[0] == "open", "{path:?}"),
        }
    }
    for uri in [
        "coap://proxy/admin",
        "coap://proxy/open/../admin",
        "coap://proxy/open/%2e%2e/admin",
        "coap://proxy/open",
    ] {
        assert_eq!(by_uri(&offered, uri), Err(Refusal::NOT_FOUND), "{uri}");
    }
    assert_eq!(by_uri(&offered, "coap://10.1.2.3:5700/admin"), Err(Refusal::FORWARDING));
    assert!(get(&offered, &[(11, b"open"), (13, &[0])]).is_err(), "an abbreviation is not looked behind");
}

#[test]
fn segments_with_slashes_or_escapes_stay_what_they_are() {
    for segment in [&b"x/../admin"[..], b"%2e%2e", b"a%2Fb", b"\xFF\0", b"..."] {
        let list: List<'_> = &[(11, b"kept"), (11, segment)];
        assert_eq!(get(&reverse_only(), list), sent(1, "10.1.2.3:5700", Some(2), list));
    }
}

/// A resource has one origin, so that ETags need no rewriting.
#[test]
fn two_routes_never_share_a_resource() {
    let twice = parameters(
        Forward::Off,
        vec![
            route(None, &["x"], 1, true),
            route(None, &["x"], 2, true),
            route(Some("h"), &["x"], 2, true),
            route(Some("H."), &["x"], 1, true),
        ],
    );
    for list in [
        &[(11, &b"x"[..])][..],
        &[(4, b"e"), (11, b"x")],
        &[(11, b"x"), (17, &[50])],
        &[(11, b"x"), (15, b"q")],
    ] {
        assert_eq!(get(&twice, list).map(|sent| sent.route), Ok(Some(0)), "{list:?}");
        let with_host: Vec<_> = [(3, &b"h"[..])].into_iter().chain(list.iter().copied()).collect();
        let mut with_host = with_host;
        with_host.sort_by_key(|(number, _)| *number);
        assert_eq!(get(&twice, &with_host).map(|sent| sent.route), Ok(Some(2)), "{list:?}");
    }
}

#[test]
fn an_elective_option_we_may_not_forward_is_named() {
    for list in [&[(11, &b"boiler"[..])][..], &[(35, b"coap://virtual/x")]] {
        for number in [65002, 65003, 2051] {
            let mut list = list.to_vec();
            list.push((number, b"x"));
            let expected = Refusal::option(OptionNumber(number), Fault::Unknown);
            let parameters = Parameters { forward: Forward::Open, ..reverse_only() };
            assert_eq!(get(&parameters, &list), Err(expected), "{list:?}");
            assert!(expected.text.to_string().contains(&number.to_string()));
        }
    }
}

#[test]
fn a_hop_limit_is_inserted_on_both_kinds_of_ways() {
    let chained = Parameters { insert_hop_limit: Some(16), forward: Forward::Open, ..reverse_only() };
    let kept: List<'_> = &[(11, b"kept")];
    assert_eq!(get(&chained, kept).map(|s| s.options), Ok(owned(&[(11, b"kept"), (16, &[16])])));
    assert_eq!(
        by_uri(&chained, "coap://10.0.0.1/x?q").map(|s| s.options),
        Ok(owned(&[(11, b"x"), (15, b"q"), (16, &[16])]))
    );
}

/// Options that decide where a request goes, among others.
fn options() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let value = |values: &'static [&'static [u8]]| prop::sample::select(values).prop_map(<[u8]>::to_vec);
    let uri = value(&[
        b"coap://h/a%2fb/../c?d",
        b"coap://10.0.0.1",
        b"coap://h?",
        b"coap://h/%2e%2e/x",
        b"coap://H:7000//",
    ]);
    let option = prop_oneof![
        2 => (Just(35), uri),
        2 => (Just(39), value(&[b"coap", b"COAP", b"coaps"])),
        4 => (Just(3), value(&[b"h", b"virtual", b"10.0.0.1", b"[::1]", b"proxy"])),
        2 => (Just(7), value(&[&[0x16, 0x33], &[]])),
        9 => (Just(11), value(&[b"boiler", b"deep", b"kept", b"", b"x/y", b"\xFF", b"."])),
        3 => (Just(15), value(&[b"q", b"", b"a&b"])),
        1 => (Just(16), value(&[&[9], &[1], &[0]])),
        3 => (prop::sample::select(&[1u16, 4, 6, 9, 12, 17, 23, 27, 60, 258, 65000, 65001][..]), value(&[b"", b"1"])),
        1 => (any::<u16>(), prop::collection::vec(any::<u8>(), 0..20)),
    ];
    prop::collection::vec(option, 0..8).prop_map(|mut list| {
        list.sort_by_key(|(number, _)| *number);
        list
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn any_request_is_refused_or_makes_sense_at_the_origin(code in 1u8..9, list in options(), forwards: bool) {
        let forward = if forwards { Forward::Open } else { Forward::Off };
        let parameters = Parameters { forward, ..reverse_only() };
        let borrowed: Vec<_> = list.iter().map(|(number, value)| (*number, &value[..])).collect();
        let content = content(Code(code), &borrowed);
        let mut scratch = Vec::new();
        let decision = decide(&parameters, CLIENT, &content.as_content(), &mut scratch);
        let Ok(Decision::Forward(plan)) = decision else { return Ok(()) };

        let (options, rest) = Options::parse(plan.content.options.as_encoded()).expect("what we write is valid");
        prop_assert!(rest.is_empty());
        prop_assert!(options.iter().is_sorted_by_key(|(number, _)| number));
        let asked = content.as_content().options;
        let is_target = |n: OptionNumber| matches!(n.0, 3 | 6 | 7 | 11 | 15 | 16 | 35 | 39 | 258);
        prop_assert!(
            options.iter().filter(|(n, _)| !is_target(*n)).eq(asked.iter().filter(|(n, _)| !is_target(*n)))
        );
        for number in [6, 7, 35, 39, 258] {
            prop_assert_eq!(options.first(OptionNumber(number)), None);
        }
        prop_assert!(!options.values(OptionNumber::URI_PATH).any(|segment| matches!(segment, b"." | b"..")));

        let host = match &plan.destination {
            Destination::Address(_) => None,
            Destination::Name { host, .. } => Some(host.as_bytes()),
        };
        prop_assert!(options.values(OptionNumber::URI_HOST).eq(host));
        let values = |options: Options<'_>, number| options.values(number).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let (path, query) = match asked.first(OptionNumber::PROXY_URI) {
            Some(uri) => {
                let uri = Uri::parse(std::str::from_utf8(uri).expect("admitted")).expect("admitted");
                (uri.path_segments().map(Into::into).collect(), uri.query_items().map(Into::into).collect())
            }
            None => (values(asked, OptionNumber::URI_PATH), values(asked, OptionNumber::URI_QUERY)),
        };
        prop_assert_eq!(values(options, OptionNumber::URI_QUERY), query);
        let seen = values(options, OptionNumber::URI_PATH);
        prop_assert!(path.ends_with(&seen) && (plan.route.is_some() || seen == path));
    }

    #[test]
    fn any_parsed_bytes_are_decided(bytes in prop::collection::vec(any::<u8>(), 0..60), code: u8) {
        if let Ok((options, payload)) = Options::parse(&bytes) {
            let content = Content { code: Code(code), options, payload };
            let _ = decide(&reverse_only(), CLIENT, &content, &mut Vec::new());
            let _ = crate::forward::relay_response(&reverse_only(), Some(0), &content, &mut Vec::new());
        }
    }
}
