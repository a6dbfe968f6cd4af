use coapway_message::{OwnedContent, uri};

use super::*;
use crate::answer::Fault;
use crate::parameters::{Forward, Parameters, Route, Upstream, UpstreamId};
use crate::route::Decision;
use crate::route::tests::{decide, decide_at};

type List<'a> = &'a [(u16, &'a [u8])];

const CORE: List<'static> = &[(11, b".well-known"), (11, b"core")];

fn route(host: Option<&str>, path: &[&str]) -> Route {
    Route {
        host: host.map(Into::into),
        path: path.iter().map(|segment| segment.as_bytes().into()).collect(),
        upstream: UpstreamId(1),
        strip: true,
    }
}

fn parameters(routes: Vec<Route>) -> Parameters {
    let mut parameters = Parameters {
        routes,
        own: vec!["127.0.0.1:5683".parse().expect("an address")],
        own_names: vec!["proxy".into()],
        ..Parameters::default()
    };
    let authority = uri::Uri::parse("coap://10.1.2.3").expect("a URI").into_authority();
    parameters.upstreams.push(Upstream { name: "origin".into(), authority: Some(authority) });
    parameters
}

fn boilers() -> Parameters {
    parameters(vec![
        route(None, &["b", "deep"]),
        route(None, &["a b"]),
        route(Some("virtual"), &["v"]),
        route(Some("proxy"), &["p"]),
        route(None, &["b", "deep"]),
    ])
}

/// The answer to `method` with these options beside those of `/.well-known/core`.
fn ask(parameters: &Parameters, method: Method, list: List<'_>) -> Result<OwnedContent, Refusal> {
    let mut list = list.to_vec();
    if !list.iter().any(|(number, _)| matches!(number, 11 | 35)) {
        list.extend(CORE);
    }
    list.sort_by_key(|(number, _)| *number);
    let mut buffer = Vec::new();
    let mut writer = OptionsWriter::new(&mut buffer);
    list.iter().for_each(|(number, value)| writer.push(OptionNumber(*number), value));
    let content = Content { code: method.code(), options: writer.finish(), payload: b"" };
    match decide(parameters, [10, 0, 0, 1].into(), &content, &mut vec![9; 9])? {
        Decision::Local(content) => Ok(content.into()),
        Decision::Forward(plan) => panic!("forwarded: {plan:?}"),
    }
}

fn get(parameters: &Parameters, list: List<'_>) -> Result<OwnedContent, Refusal> {
    ask(parameters, Method::Get, list)
}

fn links_for(parameters: &Parameters, list: List<'_>) -> String {
    let content = get(parameters, list).expect("fine");
    assert_eq!(content.as_content().options.uint(OptionNumber::CONTENT_FORMAT), Some(40));
    String::from_utf8(content.as_content().payload.to_vec()).expect("links are ASCII")
}

#[test]
fn lists_each_part_of_the_namespace_once_and_in_order() {
    assert_eq!(links_for(&boilers(), &[]), "</a%20b>,</b/deep>");
    assert_eq!(links_for(&boilers(), &[(3, b"Virtual")]), "</a%20b>,</b/deep>,</v>");
    assert_eq!(links_for(&boilers(), &[(3, b"other")]), "</a%20b>,</b/deep>");
    assert_eq!(links_for(&parameters(vec![]), &[]), "");
}

#[test]
fn segments_of_any_bytes_make_valid_links() {
    let odd = parameters(vec![
        route(None, &["<>,;\"/%"]),
        route(None, &["", "x"]),
        route(None, &["é", ""]),
        route(None, &["a:b"]),
    ]);
    assert_eq!(links_for(&odd, &[]), "</.//x>,</%3C%3E,;%22%2F%25>,</a:b>,</%C3%A9/>");
}

#[test]
fn a_uri_that_names_us_leads_here_where_no_route_does() {
    let some = parameters(vec![route(None, &["a"]), route(Some("proxy"), &["p"])]);
    assert_eq!(links_for(&some, &[(35, b"coap://127.0.0.1/.well-known/core")]), "</a>");
    assert_eq!(links_for(&some, &[(35, b"coap://Proxy/.well-known/c%6Fre")]), "</a>,</p>");
    assert_eq!(links_for(&some, &[(3, b"proxy"), (39, b"coap")]), "</a>,</p>");
    assert_eq!(links_for(&some, &[(39, b"coap")]), "</a>");
    assert_eq!(links_for(&some, &[(35, b"coap://proxy/.well-known/core?href=/p")]), "</p>");
}

#[test]
fn a_route_comes_before_what_is_ours() {
    let everything = Parameters { forward: Forward::Off, ..parameters(vec![route(None, &[])]) };
    let named: List<'_> = &[(35, b"coap://proxy/.well-known/core")];
    for list in [CORE, named, &[CORE[0], CORE[1], (39, b"coap")]] {
        let mut buffer = Vec::new();
        let mut writer = OptionsWriter::new(&mut buffer);
        list.iter().for_each(|(number, value)| writer.push(OptionNumber(*number), value));
        let content = Content { code: Code::GET, options: writer.finish(), payload: b"" };
        let mut scratch = Vec::new();
        let decision = decide(&everything, [10, 0, 0, 1].into(), &content, &mut scratch);
        assert!(matches!(decision, Ok(Decision::Forward(_))), "{list:?}");
    }
}

#[test]
fn other_paths_are_not_found() {
    for path in [
        &[&b"x"[..]][..],
        &[],
        &[b".well-known"],
        &[b".well-known", b"core", b""],
        &[b".Well-Known", b"core"],
    ] {
        let list: Vec<_> =
            path.iter().map(|segment| (11, *segment)).chain([(35, &b"coap://proxy"[..])]).collect();
        assert_eq!(get(&boilers(), &list), Err(Refusal::NOT_FOUND));
        let list: Vec<_> = path.iter().map(|segment| (11, *segment)).collect();
        if !list.is_empty() {
            assert_eq!(get(&boilers(), &list), Err(Refusal::NOT_FOUND), "{path:?}");
        }
    }
}

#[test]
fn other_methods_are_not_allowed() {
    for method in Method::ALL.into_iter().filter(|&method| method != Method::Get) {
        assert_eq!(ask(&boilers(), method, &[]), Err(Refusal::NO_SUCH_METHOD), "{}", method.name());
    }
    assert_eq!(Refusal::NO_SUCH_METHOD.code, Code::METHOD_NOT_ALLOWED);
}

#[test]
fn critical_options_must_be_known_and_elective_ones_need_not() {
    for (number, value, fault) in [
        (65001, &b""[..], Fault::Unknown),
        (65003, b"", Fault::Unknown),
        (9, b"", Fault::Unknown),
        (13, b"", Fault::Unknown),
        (27, &[8], Fault::Misplaced),
        (17, &[0; 3], Fault::TooLong),
        (7, &[0; 3], Fault::TooLong),
    ] {
        let expected = Err(Refusal::option(OptionNumber(number), fault));
        assert_eq!(get(&boilers(), &[(number, value)]), expected, "{number}");
    }
    let twice = Refusal::option(OptionNumber::ACCEPT, Fault::Repeated);
    assert_eq!(get(&boilers(), &[(17, &[40]), (17, &[40])]), Err(twice));
    let plain = get(&boilers(), &[]);
    for (number, value) in
        [(65000, &b"x"[..]), (65002, b"x"), (6, b""), (14, &[1]), (258, &[2, 2]), (16, &[1])]
    {
        assert_eq!(get(&boilers(), &[(number, value)]), plain, "{number}");
    }
    assert!(plain.is_ok());
}

#[test]
fn other_formats_are_not_acceptable() {
    assert!(get(&boilers(), &[(17, &[40])]).is_ok() && get(&boilers(), &[(17, &[0, 40])]).is_ok());
    for format in [&[][..], &[50], &[64]] {
        assert_eq!(get(&boilers(), &[(17, format)]), Err(Refusal::NOT_ACCEPTABLE));
    }
    assert_eq!(Refusal::NOT_ACCEPTABLE.code, Code::new(4, 6));
}

#[test]
fn an_etag_validates_while_nothing_changed() {
    let plain = get(&boilers(), &[]).expect("fine");
    let etag = plain.as_content().options.first(OptionNumber::ETAG).expect("an ETag").to_vec();
    let valid = get(&boilers(), &[(4, b"other"), (4, &etag)]).expect("fine");
    assert_eq!((valid.as_content().code, valid.as_content().payload), (Code::VALID, &b""[..]));
    assert_eq!(valid.as_content().options.first(OptionNumber::ETAG), Some(&etag[..]));
    assert_eq!(get(&boilers(), &[(4, b"other")]), Ok(plain));
    let changed = get(&parameters(vec![route(None, &["new"])]), &[(4, &etag)]).expect("fine");
    assert_eq!(changed.as_content().code, Code::CONTENT);
}

#[test]
fn conditions_are_judged_by_the_etag() {
    let plain = get(&boilers(), &[]).expect("fine");
    let etag = plain.as_content().options.first(OptionNumber::ETAG).expect("an ETag").to_vec();
    assert_eq!(get(&boilers(), &[(1, b"other"), (1, &etag)]), Ok(plain.clone()));
    assert_eq!(get(&boilers(), &[(1, b"")]), Ok(plain));
    assert_eq!(get(&boilers(), &[(1, b"other")]), Err(Refusal::PRECONDITION));
    assert_eq!(get(&boilers(), &[(5, b"")]), Err(Refusal::PRECONDITION));
}

//= https://www.rfc-editor.org/rfc/rfc6690#section-4.1
//= type=test
#[test]
fn filters_choose_links_by_where_they_lead() {
    let filtered = |filters: &[&str]| {
        let list: Vec<_> = filters.iter().map(|filter| (15, filter.as_bytes())).collect();
        links_for(&boilers(), &list)
    };
    let all = "</a%20b>,</b/deep>";
    assert_eq!(filtered(&["href=/b/deep"]), "</b/deep>");
    assert_eq!(filtered(&["href=/b"]), "");
    assert_eq!(filtered(&["href=/b*"]), "</b/deep>");
    assert_eq!(filtered(&["href=/a b"]), "</a%20b>");
    assert_eq!(filtered(&["href=*"]), all);
    assert_eq!(filtered(&["href=/a*", "href=/b*"]), "");
    assert_eq!(filtered(&["rt=temperature"]), "");
    assert_eq!(filtered(&["rt=*"]), "");
    assert_eq!(filtered(&["nonsense"]), all);
    assert_eq!(filtered(&[""]), all);
    assert_eq!(filtered(&["href=/"]), "");
    assert_eq!(links_for(&boilers(), &[(35, b"coap://proxy/.well-known/core?href=/p")]), "</p>");
}

#[test]
fn more_filters_than_anybody_needs_are_refused() {
    let filters = |count| vec![(15, &b"href=/b*"[..]); count];
    assert_eq!(links_for(&boilers(), &filters(4)), "</b/deep>");
    assert_eq!(get(&boilers(), &filters(5)), Err(Refusal::FILTERS));
    assert_eq!(get(&boilers(), &[(15, &b""[..]); 5]), Err(Refusal::FILTERS));
    let uri = b"coap://proxy/.well-known/core?a&b&c&d&e";
    assert_eq!(get(&boilers(), &[(35, uri)]), Err(Refusal::FILTERS));
    assert_eq!(Refusal::FILTERS.code, Code::BAD_REQUEST);
}

#[test]
fn what_filters_leave_has_an_etag_of_its_own() {
    let etag = |list: List<'_>| {
        let content = get(&boilers(), list).expect("fine");
        content.as_content().options.first(OptionNumber::ETAG).expect("an ETag").to_vec()
    };
    assert_eq!(etag(&[(15, b"href=/b*")]), etag(&[(15, b"href=/b/deep")]));
    let bodies: [List<'_>; 5] = [
        &[],
        &[(15, b"href=/a*")],
        &[(15, b"href=/b*")],
        &[(3, b"virtual")],
        &[(3, b"proxy"), (39, b"coap")],
    ];
    let etags = bodies.map(etag);
    for (index, one) in etags.iter().enumerate() {
        assert!(!etags[..index].contains(one), "{index}");
    }
}

fn many() -> Parameters {
    parameters((100..300).map(|number| route(None, &[&format!("route-{number}")])).collect())
}

fn block(content: &OwnedContent) -> Option<Block> {
    content.as_content().options.first(OptionNumber::BLOCK2).and_then(Block::parse)
}

fn get_block(parameters: &Parameters, num: u32, szx: u8) -> Result<OwnedContent, Refusal> {
    let mut encoded = Vec::new();
    let mut writer = OptionsWriter::new(&mut encoded);
    Block { num, more: false, szx }.write(OptionNumber::BLOCK2, &mut writer);
    let value = writer.finish().first(OptionNumber::BLOCK2).expect("written");
    get(parameters, &[(23, value)])
}

/// All blocks of this size exponent, put together.
fn collected(parameters: &Parameters, szx: u8) -> Vec<u8> {
    let mut body = Vec::new();
    for num in 0.. {
        let answer = get_block(parameters, num, szx).expect("fine");
        let block = block(&answer).expect("a block");
        assert_eq!((block.num, block.szx), (num, szx));
        body.extend_from_slice(answer.as_content().payload);
        if !block.more {
            assert_eq!(get_block(parameters, num + 1, szx), Err(Refusal::BLOCK_NUMBER));
            return body;
        }
        assert_eq!(answer.as_content().payload.len(), block.size());
    }
    unreachable!("a body ends")
}

#[test]
fn what_is_longer_than_a_block_comes_in_blocks() {
    let first = get(&many(), &[]).expect("fine");
    assert_eq!(block(&first), Some(Block { num: 0, more: true, szx: 6 }));
    assert_eq!(first.as_content().payload.len(), 1024);
    let body = collected(&many(), 6);
    assert_eq!(body, collected(&many(), 2));
    assert!(body.starts_with(b"</route-100>,") && body.ends_with(b",</route-299>"));
    let sized = get(&many(), &[(28, b"")]).expect("fine");
    assert_eq!(sized.as_content().options.uint(OptionNumber::SIZE2), Some(body.len() as u32));
    assert_eq!(first.as_content().options.first(OptionNumber::SIZE2), None);
}

#[test]
fn what_just_fits_into_a_block_comes_without_block2() {
    for (length, in_blocks) in [(1024, false), (1025, true)] {
        let path = "x".repeat(length - "</>".len());
        let content = get(&parameters(vec![route(None, &[&path])]), &[]).expect("fine");
        assert_eq!(block(&content).is_some(), in_blocks, "{length}");
        assert_eq!(content.as_content().payload.len(), 1024);
    }
}

#[test]
fn blocks_are_as_large_as_asked() {
    let asked = get(&boilers(), &[(23, &[0x08])]).expect("fine");
    assert_eq!(block(&asked), Some(Block { num: 0, more: true, szx: 0 }), "M in a request means nothing");
    assert_eq!(asked.as_content().payload, b"</a%20b>,</b/dee");
    let whole = get(&boilers(), &[(23, &[0x06])]).expect("fine");
    assert_eq!(block(&whole), Some(Block { num: 0, more: false, szx: 6 }));
    assert_eq!(get(&boilers(), &[(23, &[0x07])]), Err(Refusal::BLOCK_SIZE));
    assert_eq!(get(&boilers(), &[(23, &[0x16])]), Err(Refusal::BLOCK_NUMBER));
    assert_eq!(get(&boilers(), &[(23, &[0xFF, 0xFF, 0xF6])]), Err(Refusal::BLOCK_NUMBER));
    assert_eq!(
        (Refusal::BLOCK_SIZE.code, Refusal::BLOCK_NUMBER.code),
        (Code::BAD_REQUEST, Code::BAD_REQUEST)
    );
    let empty = get(&parameters(vec![]), &[(23, &[0x06])]).expect("fine");
    assert_eq!(block(&empty), Some(Block { num: 0, more: false, szx: 6 }));
}

#[test]
fn links_are_those_under_the_address_a_request_came_to() {
    let parameters = parameters(vec![route(None, &["a"]), route(Some("10.0.0.9"), &["x"])]);
    let mut buffer = Vec::new();
    for list in [CORE, &[CORE[0], CORE[1], (39, b"coap")]] {
        let mut writer = OptionsWriter::new(&mut buffer);
        list.iter().for_each(|(number, value)| writer.push(OptionNumber(*number), value));
        let content = Content { code: Code::GET, options: writer.finish(), payload: b"" };
        for (came_to, links) in [([10, 0, 0, 9], "</a>,</x>"), ([10, 0, 0, 8], "</a>")] {
            let from_to = ([10, 0, 0, 1].into(), Some(came_to.into()));
            match decide_at(&parameters, from_to, &content, &mut Vec::new()) {
                Ok(Decision::Local(answer)) => assert_eq!(answer.payload, links.as_bytes()),
                other => panic!("{other:?}"),
            }
        }
        buffer.clear();
    }
}
