use coapway_message::uri::Uri;

use super::*;
use crate::answer::Refusal;

fn checked(method: Method, content: &OwnedContent) -> Request<'_> {
    let mut request = Request::new(method, &content.as_content());
    request.check().expect("fine");
    request
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
    let result = request
        .rewrite(Some("new"), Resource::Named { uri: uri.resource(), skip: 0 }, None, &mut scratch)
        .expect("fine");
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
fn a_protected_request_passes_untouched() {
    for method in [Method::Post, Method::Fetch] {
        let request = content(method.code(), &[(3, b"localhost"), (9, b"\x09\x14")], CIPHERTEXT);
        let request = checked(method, &request);
        assert!(request.is_oscore && !request.is_reissuable());
        let mut scratch = Vec::new();
        let sent = request.rewrite(None, Resource::Asked { skip: 0 }, None, &mut scratch).expect("fine");
        assert_eq!((listed(&sent.options), sent.payload), (owned(&[(9, b"\x09\x14")]), CIPHERTEXT));
    }
}
