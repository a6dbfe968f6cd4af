use coapway_message::uri::Uri;
use coapway_message::{Code, Content, Failure, Method, Options, OptionsWriter, OwnedContent};

use super::*;
use crate::answer::Refusal;
use crate::parameters::{Parameters, Route, UpstreamId};

type List<'a> = &'a [(u16, &'a [u8])];

fn content(code: Code, list: List<'_>, payload: &[u8]) -> OwnedContent {
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    list.iter().for_each(|(number, value)| writer.push(OptionNumber(*number), value));
    Content { code, options: writer.finish(), payload }.into()
}

fn checked(method: Method, content: &OwnedContent) -> Request<'_> {
    let mut request = Request::new(method, &content.as_content());
    request.check().expect("fine");
    request
}

fn listed(options: &Options<'_>) -> Vec<(u16, Vec<u8>)> {
    options.iter().map(|(number, value)| (number.0, value.to_vec())).collect()
}

fn owned(list: List<'_>) -> Vec<(u16, Vec<u8>)> {
    list.iter().map(|(number, value)| (*number, value.to_vec())).collect()
}

/// What an origin that is named by its address sees of a request behind a route for everything.
fn forwarded(method: Method, list: List<'_>) -> Result<Vec<(u16, Vec<u8>)>, Refusal> {
    let content = content(method.code(), list, b"");
    let mut scratch = Vec::new();
    let content = content.as_content();
    let mut request = Request::new(method, &content);
    request.check()?;
    request.may_be_forwarded()?;
    let content = request.rewrite(None, Resource::Asked { skip: 0 }, None, &mut scratch)?;
    Ok(listed(&content.options))
}

#[test]
fn requests_follow_the_option_table() {
    enum Fate {
        Pass,
        Drop,
        Refuse(Fault),
        Reject(Refusal),
    }
    use Fate::{Drop, Pass, Refuse, Reject};
    use Fault::{Empty, Misplaced, TooLong, Unknown};
    use Method::{Delete, Fetch, Get, Patch, Post, Put};
    let one_to_nine: &[u8] = b"123456789";
    for (method, number, value, fate) in [
        (Get, 1, &b"etag"[..], Pass),
        (Get, 1, one_to_nine, Pass),
        (Get, 3, b"h", Drop),
        (Get, 3, b"", Refuse(Empty)),
        (Get, 3, &[b'h'; 256], Refuse(TooLong)),
        (Get, 4, b"etag", Pass),
        (Get, 4, one_to_nine, Pass),
        (Put, 5, b"", Pass),
        (Get, 6, b"", Drop),
        (Fetch, 6, &[1], Drop),
        (Get, 6, &[1, 2, 3, 4], Refuse(TooLong)),
        (Put, 6, b"", Refuse(Misplaced)),
        (Post, 6, b"", Refuse(Misplaced)),
        (Delete, 6, b"", Refuse(Misplaced)),
        (Get, 7, &[0x16, 0x33], Drop),
        (Get, 7, &[0, 0x16, 0x33], Refuse(TooLong)),
        (Get, 8, b"x", Pass),
        (Get, 9, &[9; 20], Pass),
        (Get, 11, b"a", Pass),
        (Get, 11, b"", Pass),
        (Get, 11, b".", Reject(Refusal::DOT_SEGMENT)),
        (Get, 11, b"..", Reject(Refusal::DOT_SEGMENT)),
        (Get, 11, b"...", Pass),
        (Get, 11, &[b'a'; 256], Refuse(TooLong)),
        (Get, 12, &[50], Pass),
        (Post, 12, &[50], Pass),
        (Get, 13, &[1], Pass),
        (Get, 14, &[60], Refuse(Misplaced)),
        (Get, 15, b"..", Pass),
        (Get, 15, &[b'a'; 256], Refuse(TooLong)),
        (Get, 17, &[50], Pass),
        (Get, 19, &[0], Refuse(Unknown)),
        (Get, 20, b"x", Pass),
        (Get, 21, b"", Pass),
        (Get, 23, &[2], Pass),
        (Get, 23, &[7], Reject(Refusal::BLOCK_SIZE)),
        (Get, 23, &[0; 4], Refuse(TooLong)),
        (Post, 27, &[8], Pass),
        (Post, 27, &[15], Reject(Refusal::BLOCK_SIZE)),
        (Put, 27, &[0; 4], Refuse(TooLong)),
        (Get, 27, &[8], Refuse(Misplaced)),
        (Delete, 27, &[8], Refuse(Misplaced)),
        (Get, 28, b"", Pass),
        (Get, 31, &[0], Refuse(Unknown)),
        (Post, 60, &[1, 0], Pass),
        (Get, 235, b"x", Refuse(Unknown)),
        (Get, 239, b"x", Refuse(Unknown)),
        (Get, 252, b"echo", Pass),
        (Get, 258, &[26], Drop),
        (Post, 258, b"", Drop),
        (Get, 258, &[26, 0], Refuse(TooLong)),
        (Patch, 292, b"tag", Pass),
        (Get, 65000, b"x", Pass),
        (Get, 65001, b"x", Pass),
        (Get, 65002, b"x", Refuse(Unknown)),
        (Get, 65003, b"x", Refuse(Unknown)),
        (Get, 65020, b"x", Pass),
        (Get, 65021, &[0; 300], Pass),
    ] {
        let result = forwarded(method, &[(number, value)]);
        let expected = match fate {
            Pass => Ok(owned(&[(number, value)])),
            Drop => Ok(vec![]),
            Refuse(fault) => Err(Refusal::option(OptionNumber(number), fault)),
            Reject(refusal) => Err(refusal),
        };
        assert_eq!(result, expected, "{} {number} {value:02x?}", method.name());
    }
}

#[test]
fn surplus_options_are_refused_when_unsafe_and_pass_when_safe() {
    for number in [3, 6, 7, 23, 27, 258] {
        let refusal = Refusal::option(OptionNumber(number), Fault::Repeated);
        let method = if number == 27 { Method::Put } else { Method::Get };
        assert_eq!(forwarded(method, &[(number, b"1"), (number, b"1")]), Err(refusal), "{number}");
    }
    for number in [5, 12, 17, 60, 252, 65000] {
        let list: List<'_> = &[(number, b"1"), (number, b"2")];
        assert_eq!(forwarded(Method::Get, list), Ok(owned(list)), "{number}");
    }
}

#[test]
fn safe_options_keep_value_count_and_order() {
    let list: List<'_> =
        &[(1, b"a"), (1, b"b"), (9, b""), (65000, b"1"), (65000, b"2"), (65001, b"3"), (65021, b"4")];
    let with_host: Vec<_> = std::iter::once((0, &b"x"[..])).chain([(3, &b"h"[..])]).collect();
    assert_eq!(forwarded(Method::Get, list), Ok(owned(list)));
    assert_eq!(forwarded(Method::Get, &with_host), Ok(owned(&[(0, b"x")])));
}

//= https://www.rfc-editor.org/rfc/rfc8768#section-3
//= type=test
#[test]
fn hop_limit_counts_down_and_ends() {
    fn get(list: List<'_>) -> Result<Vec<(u16, Vec<u8>)>, Refusal> {
        forwarded(Method::Get, list)
    }
    assert_eq!(get(&[(16, &[3])]), Ok(owned(&[(16, &[2])])));
    assert_eq!(get(&[(16, &[255])]), Ok(owned(&[(16, &[254])])));
    assert_eq!(get(&[(16, &[1])]), Err(Refusal::HOP_LIMIT_REACHED));
    for value in [&[0][..], &[], &[1, 0], &[0, 5]] {
        assert_eq!(get(&[(16, value)]), Err(Refusal::HOP_LIMIT), "{value:?}");
    }
    assert_eq!(get(&[(16, &[3]), (16, &[9])]), Ok(owned(&[(16, &[2]), (16, &[9])])), "only the first counts");
}

#[test]
fn an_unchanged_list_is_handed_on_without_a_copy() {
    let content = content(Code::POST, &[(11, b"a"), (12, &[50]), (65001, b"x")], b"payload");
    let mut scratch = Vec::new();
    let request = checked(Method::Post, &content);
    let result = request.rewrite(None, Resource::Asked { skip: 0 }, None, &mut scratch).expect("fine");
    assert_eq!(result, content.as_content());
    assert!(std::ptr::eq(result.options.as_encoded(), content.as_content().options.as_encoded()));
    assert_eq!(scratch.capacity(), 0);
}

#[test]
fn the_target_is_written_where_its_options_belong() {
    let list: List<'_> =
        &[(1, b"m"), (3, b"old"), (4, b"e"), (11, b"old"), (12, b""), (15, b"old"), (16, &[9]), (35, b"-")];
    let content = content(Code::PUT, list, b"");
    let uri = Uri::parse("coap://New/a%2Fb/?c&d=%26").expect("a URI");
    let mut scratch = Vec::new();
    let request = checked(Method::Put, &content);
    let result = request.rewrite(Some("new"), Resource::Named(&uri), None, &mut scratch).expect("fine");
    let expected: List<'_> = &[
        (1, b"m"),
        (3, b"new"),
        (4, b"e"),
        (11, b"a/b"),
        (11, b""),
        (12, b""),
        (15, b"c"),
        (15, b"d=&"),
        (16, &[8]),
    ];
    assert_eq!(listed(&result.options), owned(expected));
}

#[test]
fn a_payload_without_meaning_stays_behind() {
    for method in Method::ALL {
        let content = content(method.code(), &[(11, b"a")], b"payload");
        let request = checked(method, &content);
        for host in [None, Some("h")] {
            let mut scratch = Vec::new();
            let result =
                request.rewrite(host, Resource::Asked { skip: 0 }, None, &mut scratch).expect("fine");
            assert_eq!(!result.payload.is_empty(), method.has_payload(), "{}", method.name());
        }
    }
}

fn parameters(strip: bool) -> Parameters {
    let path = vec![b"r1"[..].into(), b"x/y"[..].into()];
    Parameters {
        routes: vec![Route { host: None, path, upstream: UpstreamId(1), strip }],
        ..Parameters::default()
    }
}

fn relayed(strip: bool, content: &OwnedContent) -> Result<OwnedContent, Failure> {
    relay_response(&parameters(strip), Some(0), &content.as_content(), &mut Vec::new())
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
    let result =
        relay_response(&parameters, Some(0), &content.as_content(), &mut scratch).expect("fine").content;
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
fn a_missing_hop_limit_is_inserted_where_that_is_asked() {
    let forwarded = |list: List<'_>, insert| {
        let content = content(Code::GET, list, b"");
        let mut scratch = Vec::new();
        checked(Method::Get, &content)
            .rewrite(None, Resource::Asked { skip: 0 }, insert, &mut scratch)
            .map(|content| listed(&content.options))
    };
    let list: List<'_> = &[(11, b"a"), (15, b"q"), (17, b""), (60, b"")];
    let with: List<'_> = &[(11, b"a"), (15, b"q"), (16, &[16]), (17, b""), (60, b"")];
    assert_eq!(forwarded(list, Some(16)), Ok(owned(with)));
    assert_eq!(forwarded(list, None), Ok(owned(list)));
    assert_eq!(forwarded(list, Some(0)), Ok(owned(list)), "0 is no Hop-Limit");
    assert_eq!(forwarded(&[], Some(16)), Ok(owned(&[(16, &[16])])));
    assert_eq!(forwarded(&[(16, &[3])], Some(16)), Ok(owned(&[(16, &[2])])));
    assert_eq!(forwarded(&[(16, &[1])], Some(16)), Err(Refusal::HOP_LIMIT_REACHED));
}

#[test]
fn a_request_is_issued_anew_only_when_that_changes_nothing() {
    let reissuable =
        |method: Method, list: List<'_>| checked(method, &content(method.code(), list, b"")).is_reissuable();
    for method in Method::ALL {
        assert_eq!(reissuable(method, &[(11, b"a"), (17, b"")]), method.is_idempotent(), "{}", method.name());
    }
    for number in [1, 5, 9, 27, 252] {
        assert!(!reissuable(Method::Put, &[(number, b"")]), "{number}");
    }
    for number in [4, 12, 23, 60, 258, 292, 65001] {
        assert!(reissuable(Method::Put, &[(number, b"")]), "{number}");
    }
    assert!(!reissuable(Method::Get, &[(6, b"")]));
}

#[test]
fn a_request_tag_is_added_where_it_belongs() {
    let tagged = |code: Code, list: List<'_>| {
        let content = content(code, list, b"payload");
        let mut scratch = vec![1; 5];
        let tagged = with_request_tag(&content.as_content(), b"tag", &mut scratch);
        assert_eq!((tagged.code, tagged.payload), (code, &b"payload"[..]));
        listed(&tagged.options)
    };
    let tag: (u16, &[u8]) = (292, b"tag");
    for code in [Code::POST, Code::PATCH] {
        assert_eq!(tagged(code, &[]), owned(&[tag]));
        assert_eq!(tagged(code, &[(11, b"a"), (60, b"")]), owned(&[(11, b"a"), (60, b""), tag]));
        let list: List<'_> = &[(291, b"x"), tag, (65000, b"y")];
        assert_eq!(tagged(code, &[(291, b"x"), (65000, b"y")]), owned(list));
    }
    for list in [&[(292, &b""[..])][..], &[(27, &[8])], &[(9, b"")]] {
        assert_eq!(
            tagged(Code::POST, list),
            owned(list),
            "it has one, is a block, or is another method inside"
        );
    }
    for code in [Code::GET, Code::PUT, Code::DELETE, Code::FETCH, Code::IPATCH] {
        assert_eq!(tagged(code, &[(11, b"a")]), owned(&[(11, b"a")]), "{code}");
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

/// With the ciphertext of RFC 8613 Appendix C.4.
#[test]
fn protected_messages_pass_untouched() {
    let ciphertext = b"\x61\x2f\x10\x92\xf1\x77\x6f\x1c\x16\x68\xb3\x82\x5e";
    for method in [Method::Post, Method::Fetch] {
        let request = content(method.code(), &[(3, b"localhost"), (9, b"\x09\x14")], ciphertext);
        let request = checked(method, &request);
        assert!(request.is_oscore && !request.is_reissuable());
        let mut scratch = Vec::new();
        let sent = request.rewrite(None, Resource::Asked { skip: 0 }, None, &mut scratch).expect("fine");
        assert_eq!(listed(&sent.options), owned(&[(9, b"\x09\x14")]));
        assert_eq!(sent.payload, ciphertext);
    }
    for code in [Code::CHANGED, Code::CONTENT, Code::HOP_LIMIT_REACHED] {
        let response = content(code, &[(9, b"")], ciphertext);
        assert_eq!(relayed(true, &response), Ok(response.clone()));
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
