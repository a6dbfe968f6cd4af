use coapway_message::Failure;

use super::*;
use crate::parameters::{Parameters, Route, UpstreamId};

fn parameters(strip: bool) -> Parameters {
    let path = vec![b"r1"[..].into(), b"x/y"[..].into()];
    Parameters {
        routes: vec![Route { host: None, path, upstream: UpstreamId(1), strip }],
        ..Parameters::default()
    }
}

fn relayed(strip: bool, content: &OwnedContent) -> Result<OwnedContent, Failure> {
    let parameters = parameters(strip);
    relay_response(&parameters, parameters.routes.first(), &content.as_content(), &mut Vec::new())
        .map(|relayed| relayed.content.into())
}

#[test]
fn responses_follow_the_option_table() {
    for (number, value, passes) in [
        (3, &b"h"[..], false),
        (4, b"etag", true),
        (4, b"123456789", true),
        (7, &[1], false),
        (8, b"x", true),
        (8, b".", false),
        (8, b"..", false),
        (9, b"", true),
        (11, b"a", false),
        (12, &[50], true),
        (14, &[60], true),
        (14, &[0; 5], false),
        (15, b"a", false),
        (16, &[0], true),
        (19, &[0], false),
        (20, b"..", true),
        (23, &[2], true),
        (23, &[0; 4], false),
        (23, &[7], false),
        (27, &[0x17], false),
        (27, &[2], true),
        (35, b"coap://h", false),
        (39, b"coap", false),
        (252, b"echo", true),
        (258, &[0], false),
        (65000, b"x", true),
        (65001, b"x", true),
        (65002, b"x", false),
        (65003, b"x", false),
    ] {
        let content = content(Code::CONTENT, &[(number, value)], b"payload");
        let expected = if passes { Ok(content.clone()) } else { Err(Failure::Unusable) };
        assert_eq!(relayed(true, &content), expected, "{number} {value:02x?}");
    }
    let twice = content(Code::CONTENT, &[(14, &[1]), (14, &[2])], b"");
    assert_eq!(relayed(true, &twice), Err(Failure::Unusable));
}

#[test]
fn an_unchanged_response_is_handed_on_without_a_copy() {
    let content = content(Code::CONTENT, &[(4, b"e"), (12, &[50]), (65001, b"x")], b"payload");
    let (parameters, mut scratch) = (parameters(true), Vec::new());
    let route = parameters.routes.first();
    let result =
        relay_response(&parameters, route, &content.as_content(), &mut scratch).expect("fine").content;
    assert!(std::ptr::eq(result.options.as_encoded(), content.as_content().options.as_encoded()));
    assert_eq!(result, content.as_content());
    assert_eq!(scratch.capacity(), 0);
}

#[test]
fn an_observe_number_nobody_asked_for_is_dropped() {
    let with = content(Code::CONTENT, &[(4, b"e"), (6, &[7]), (12, &[50])], b"payload");
    let without = content(Code::CONTENT, &[(4, b"e"), (12, &[50])], b"payload");
    assert_eq!(relayed(false, &with), Ok(without));
}

#[test]
fn codes_of_responses_are_relayed_and_others_are_unusable() {
    for byte in 0..=u8::MAX {
        let code = Code(byte);
        let content = content(code, &[(12, &[60])], b"cbor");
        let result = relayed(false, &content);
        match code.class() {
            2 | 4 | 5 => assert_eq!(result.map(|c| c.as_content().code), Ok(code)),
            _ => assert_eq!(result, Err(Failure::Unusable), "{code}"),
        }
    }
}

#[test]
fn valid_and_continue_have_no_payload() {
    for code in [Code::VALID, Code::CONTINUE] {
        let content = content(code, &[(4, b"e"), (6, &[1])], b"payload");
        assert!(relayed(false, &content).expect("fine").as_content().payload.is_empty(), "{code}");
    }
}

#[test]
fn a_location_is_put_behind_the_route_it_was_stripped_of() {
    let created = content(Code::CREATED, &[(4, b"e"), (8, b"new"), (8, b"1"), (14, &[]), (20, b"q")], b"");
    let expected: List<'_> =
        &[(4, b"e"), (8, b"r1"), (8, b"x/y"), (8, b"new"), (8, b"1"), (14, &[]), (20, b"q")];
    let result = relayed(true, &created).expect("fine");
    assert_eq!(listed(&result.as_content().options), owned(expected));
    assert_eq!(relayed(false, &created), Ok(created.clone()));
    let forward = relay_response(&parameters(true), None, &created.as_content(), &mut Vec::new())
        .map(|relayed| relayed.content.into());
    assert_eq!(forward, Ok(created));
    // A query alone is resolved against the URI the client used.
    let query_only = content(Code::CREATED, &[(20, b"q")], b"");
    assert_eq!(relayed(true, &query_only), Ok(query_only));
}

#[test]
fn a_relayed_hop_limit_error_names_us_first() {
    for (list, payload, expected) in [
        (&[][..], &b"p2"[..], &b"coapway p2"[..]),
        (&[], b"", b"coapway"),
        (&[(6, &[1]), (14, &[])], b"p2 p3", b"coapway p2 p3"),
        (&[(12, &[60])], b"cbor", b"cbor"),
        (&[], &[b'x'; 1020], &[b'x'; 1020]),
    ] as [(List<'_>, &[u8], &[u8]); 5]
    {
        let result = relayed(false, &content(Code::HOP_LIMIT_REACHED, list, payload)).expect("fine");
        let options: Vec<_> = list.iter().filter(|(number, _)| *number != 6).copied().collect();
        assert_eq!(result, content(Code::HOP_LIMIT_REACHED, &options, expected));
    }
}

#[test]
fn our_own_identifier_in_a_hop_limit_error_tells_of_a_loop() {
    let is_loop = |code: Code, list: List<'_>, payload: &[u8]| {
        let content = content(code, list, payload);
        relay_response(&parameters(true), None, &content.as_content(), &mut Vec::new()).expect("fine").is_loop
    };
    for payload in [&b"coapway"[..], b"p2 coapway", b"coapway p2", b"p2 coapway p3"] {
        assert!(is_loop(Code::HOP_LIMIT_REACHED, &[], payload));
        assert!(!is_loop(Code::GATEWAY_TIMEOUT, &[], payload));
        assert!(!is_loop(Code::HOP_LIMIT_REACHED, &[(12, &[60])], payload));
    }
    for payload in [&b""[..], b"p2", b"coapway2", b"a-coapway", b"COAPWAY"] {
        assert!(!is_loop(Code::HOP_LIMIT_REACHED, &[], payload));
    }
}

#[test]
fn the_identifier_of_a_relayed_hop_limit_error_is_the_configured_one() {
    let relayed = |identifier: &str, payload: &[u8]| {
        let parameters = Parameters { identifier: identifier.into(), ..parameters(true) };
        let content = content(Code::HOP_LIMIT_REACHED, &[], payload);
        let mut scratch = Vec::new();
        let relayed = relay_response(&parameters, None, &content.as_content(), &mut scratch).expect("fine");
        relayed.content.payload.to_vec()
    };
    assert_eq!(relayed("edge-7", b"p2"), b"edge-7 p2");
    assert_eq!(relayed("", b"p2"), b"p2");
    let (fits, does_not) = (vec![b'x'; 1017], vec![b'x'; 1018]);
    assert_eq!(relayed("edge-7", &fits).len(), 1024);
    assert_eq!(relayed("edge-7", &does_not), does_not);
}

#[test]
fn diagnostics_and_problem_details_stay_as_they_are() {
    for (code, list, payload) in [
        (Code::NOT_FOUND, &[][..], &b"no such thing"[..]),
        (Code::BAD_REQUEST, &[(12, &[1, 1])], b"\xA1"),
        (Code::new(4, 31), &[(14, &[9])], b"text"),
        (Code::new(5, 9), &[(12, &[60])], b"cbor"),
        (Code::new(2, 27), &[(12, &[50])], b"{}"),
        (Code::TOO_MANY_REQUESTS, &[(14, &[20])], b"slow down"),
        (Code::CONFLICT, &[], b""),
        (Code::UNPROCESSABLE_ENTITY, &[(12, &[60])], b"x"),
        (Code::CONTENT, &[(4, b"a"), (4, b"b"), (12, &[50]), (12, &[60])], b"twice"),
        (Code::UNAUTHORIZED, &[(252, b"echo")], b""),
        (Code::UNAUTHORIZED, &[(9, b""), (14, b"")], b"protected"),
    ] as [(Code, List<'_>, &[u8]); 11]
    {
        let response = content(code, list, payload);
        assert_eq!(relayed(true, &response), Ok(response.clone()), "{code}");
    }
}

#[test]
fn a_location_makes_sense_from_where_the_client_asked() {
    let located = |strip: bool, list: List<'_>| {
        listed(&relayed(strip, &content(Code::CREATED, list, b"")).expect("fine").as_content().options)
    };
    let with_query: List<'_> = &[(8, b"new"), (20, b"v=1"), (20, b"w")];
    let behind: List<'_> = &[(8, b"r1"), (8, b"x/y"), (8, b"new"), (20, b"v=1"), (20, b"w")];
    assert_eq!(located(true, with_query), owned(behind));
    assert_eq!(located(false, behind), owned(behind), "the origin knows the whole path");
    assert_eq!(located(true, &[(20, b"v=1")]), owned(&[(20, b"v=1")]), "relative to the request");
    assert_eq!(located(true, &[]), owned(&[]));
    let changed = content(Code::CHANGED, with_query, b"");
    assert_eq!(relayed(true, &changed), Ok(changed.clone()), "only 2.01 has a location");
}

#[test]
fn a_protected_response_passes_untouched() {
    for code in [Code::CHANGED, Code::CONTENT, Code::HOP_LIMIT_REACHED] {
        let response = content(code, &[(9, b"")], CIPHERTEXT);
        assert_eq!(relayed(true, &response), Ok(response.clone()), "{code}");
    }
}
