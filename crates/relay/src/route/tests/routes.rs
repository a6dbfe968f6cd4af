//! Reverse routes, and what they do not lead to.

use super::*;

#[test]
fn a_reverse_proxy_does_not_forward() {
    for uri in ["coap://10.1.2.3:5700/x", "coap://origin/x", "coap://h/x"] {
        assert_eq!(by_uri(&reverse_only(), uri), Err(Refusal::FORWARDING), "{uri}");
    }
    let list: List<'_> = &[(3, b"virtual"), (11, b"boiler"), (39, b"coap")];
    assert_eq!(get(&reverse_only(), list), Err(Refusal::FORWARDING));
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
fn a_route_for_an_ipv6_address_is_found_however_it_is_spelled() {
    for host in ["[fd00::1]", "fd00::1"] {
        let parameters = parameters(Forward::Off, vec![route(Some(host), &["x"], 1, true)]);
        for asked in [&b"[fd00::1]"[..], b"[FD00:0::1]", b"fd00::1"] {
            let found = get(&parameters, &[(3, asked), (11, b"x")]).map(|sent| sent.route);
            assert_eq!(found, Ok(Some(0)), "{host}");
        }
    }
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
        "coap://proxy/opened/admin",
        "coap://proxy/open%2fadmin",
        "coap://proxy//open",
    ] {
        assert_eq!(by_uri(&offered, uri), Err(Refusal::NOT_FOUND), "{uri}");
    }
    let open: List<'_> = &[(11, b"open")];
    assert_eq!(by_uri(&offered, "coap://proxy/open"), sent(1, "10.1.2.3:5700", Some(0), open));
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
fn the_address_a_request_came_to_is_its_host_where_it_names_none() {
    let address = |text: &str| -> IpAddr { text.parse().expect("an address") };
    let client = address("192.0.2.7");
    let found = |came_to: &str, list: List<'_>| {
        get_at(&reverse_only(), (client, Some(address(came_to))), list).map(|sent| sent.route)
    };
    let plain: List<'_> = &[(11, b"x")];
    assert_eq!(found("10.0.0.1", plain), Ok(Some(4)));
    assert_eq!(found("::ffff:10.0.0.1", plain), Ok(Some(4)));
    assert_eq!(found("10.0.0.2", plain), Err(Refusal::NOT_FOUND));
    assert_eq!(
        found("10.0.0.1", &[(3, b"10.0.0.2"), (11, b"x")]),
        Err(Refusal::NOT_FOUND),
        "what it says wins"
    );
    assert_eq!(found("10.0.0.1", &[(11, b"boiler")]), Ok(Some(0)), "a route for any host is still found");
}

#[test]
fn a_socket_at_one_address_need_not_tell_it() {
    let found = |own: &[&str], client: &str| {
        let own = own.iter().map(|own| own.parse().expect("an address")).collect();
        let client = client.parse().expect("an address");
        let parameters = Parameters { own, ..reverse_only() };
        get_at(&parameters, (client, None), &[(11, b"x")]).map(|sent| sent.route)
    };
    assert_eq!(found(&["10.0.0.1:5683"], "192.0.2.7"), Ok(Some(4)));
    assert_eq!(found(&["10.0.0.1:5683", "10.0.0.1:7000", "[fd00::1]:5683"], "192.0.2.7"), Ok(Some(4)));
    assert_eq!(found(&["127.0.0.1:5683", "10.0.0.1:5683"], "192.0.2.7"), Ok(Some(4)), "none of loopback");
    assert_eq!(found(&["10.0.0.1:5683", "0.0.0.0:7000"], "192.0.2.7"), Ok(Some(4)), "which would tell it");
    for (own, client) in [
        (&["10.0.0.1:5683", "10.0.0.2:5683"][..], "192.0.2.7"),
        (&["10.0.0.1:5683"], "fd00::7"),
        (&["127.0.0.1:5683", "10.0.0.1:5683"], "127.0.0.1"),
        (&[], "::1"),
    ] {
        assert_eq!(found(own, client), Err(Refusal::NOT_FOUND), "{own:?}");
    }
}

/// What names us is no proxying (RFC 7252 §5.7.2), so it needs no leave either.
#[test]
fn a_target_that_is_ourselves_takes_the_route_of_the_plain_request() {
    for (plain, path) in [
        (&[(11, &b"boiler"[..]), (11, b"t"), (15, b"q"), (15, b"")][..], "/boiler/t?q&"),
        (&[(11, b"boiler"), (11, b"a/b"), (11, b"\xFF")], "/%62oiler/a%2Fb/%FF"),
        (&[(11, b"boiler")], "/boiler"),
        (&[(11, b"boiler"), (11, b"")], "/boiler/"),
        (&[(11, b"boiler"), (11, b""), (11, b"")], "/x/../boiler//"),
        (&[(11, b"boiler"), (11, b"deep"), (11, b"t")], "/boiler/deep/t"),
        (&[(11, b"kept"), (11, b"t"), (15, b"q=%")], "/kept/t?q=%25"),
        (&[(11, b"kept"), (11, b"")], "/kept/"),
    ] {
        for parameters in [reverse_only(), Parameters { forward: Forward::Open, ..reverse_only() }] {
            let wanted = get(&parameters, plain);
            assert!(wanted.as_ref().is_ok_and(|sent| sent.route.is_some()), "{wanted:?}");
            for host in ["127.0.0.1", "Proxy", "proxy.:5683", "[::ffff:127.0.0.1]"] {
                let uri = format!("coap://{host}{path}");
                assert_eq!(by_uri(&parameters, &uri), wanted, "{uri}");
                let beside =
                    [&[(3, &b"h"[..]), (7, &[7]), (11, b"z"), (15, b"z")][..], &[(35, uri.as_bytes())]];
                assert_eq!(get(&parameters, &beside.concat()), wanted, "the Proxy-Uri alone counts");
            }
            let by_scheme = |target: List<'_>| get(&parameters, &[target, plain, &[(39, b"coap")]].concat());
            assert_eq!(by_scheme(&[]), wanted);
            assert_eq!(by_scheme(&[(3, b"proxy")]), wanted);
            assert_eq!(by_scheme(&[(3, b"127.0.0.1"), (7, &[0x16, 0x33])]), wanted);
            assert_eq!(by_scheme(&[(7, &[0x16, 0x33])]), wanted);
        }
    }
}

#[test]
fn a_target_that_is_ourselves_has_the_routes_of_that_host() {
    let mut parameters = reverse_only();
    parameters.own.push("10.0.0.1:5683".parse().expect("an address"));
    let found = |list| get(&parameters, list).map(|sent| sent.route);
    assert_eq!(found(&[(35, b"coap://10.0.0.1/x")]), Ok(Some(4)));
    assert_eq!(found(&[(35, b"coap://127.0.0.1/x")]), Err(Refusal::NOT_FOUND));
    assert_eq!(found(&[(3, b"10.0.0.1"), (11, b"x"), (39, b"coap")]), Ok(Some(4)));
    assert_eq!(found(&[(3, b"127.0.0.1"), (11, b"x"), (39, b"coap")]), Err(Refusal::NOT_FOUND));
    let here = (CLIENT, Some([10, 0, 0, 1].into()));
    assert_eq!(get_at(&parameters, here, &[(11, b"x"), (39, b"coap")]).map(|sent| sent.route), Ok(Some(4)));
}

#[test]
fn a_target_that_is_ourselves_is_no_way_round_what_holds_for_routes() {
    let unsafe_option = |list: List<'_>| get(&reverse_only(), list);
    assert_eq!(
        unsafe_option(&[(35, b"coap://proxy/boiler"), (65002, b"x")]),
        Err(Refusal::option(OptionNumber(65002), Fault::Unknown))
    );
    assert_eq!(
        unsafe_option(&[(13, &[0]), (35, b"coap://proxy/")]),
        Err(Refusal::option(OptionNumber(13), Fault::Unknown))
    );
    assert_eq!(unsafe_option(&[(16, &[1]), (35, b"coap://proxy/boiler")]), Err(Refusal::HOP_LIMIT_REACHED));
    let mut round = reverse_only();
    round.upstreams[1] = upstream("address", "coap://127.0.0.1");
    for list in [&[(35, &b"coap://proxy/boiler"[..])][..], &[(11, b"boiler"), (39, b"coap")]] {
        assert_eq!(get(&round, list), Err(Refusal::TARGET), "an origin is never ourselves");
    }
}
