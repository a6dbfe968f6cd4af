mod routes;
mod sense;
mod targets;

use coapway_message::{Code, Options, OptionsWriter, OwnedContent};

use super::*;
use crate::admission::{literal, same_name};
use crate::parameters::{Forward, Route, Upstream};

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

/// What is decided, the second time by what is kept of the first.
pub(crate) fn decide<'s>(
    parameters: &Parameters,
    client: IpAddr,
    content: &Content<'s>,
    scratch: &'s mut Vec<u8>,
) -> Result<Decision<'s>, Refusal> {
    decide_at(parameters, (client, None), content, scratch)
}

/// The same, of what came from a client to an address of ours.
pub(crate) fn decide_at<'s>(
    parameters: &Parameters,
    from_to: (IpAddr, Option<IpAddr>),
    content: &Content<'s>,
    scratch: &'s mut Vec<u8>,
) -> Result<Decision<'s>, Refusal> {
    let (mut targets, mut first) = (Targets::default(), Vec::new());
    let (links, routes) = (Links::new(&parameters.routes), Routes::new(&parameters.routes));
    let settings = Settings { parameters, routes: &routes, links: &links };
    let decision = super::decide(settings, &mut targets, from_to, content, &mut first);
    let again = super::decide(settings, &mut targets, from_to, content, scratch);
    assert_eq!(decision, again);
    again
}

/// Whether a route is for requests with this Uri-Host.
pub(crate) fn is_for_host(route: &Route, host: Option<HostRef<'_>>) -> bool {
    match (&route.host, host) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wanted), Some(HostRef::Name(name))) => same_name(wanted, name),
        (Some(wanted), Some(HostRef::Address(address))) => literal(wanted) == Some(address),
    }
}

/// A plan without what it borrows.
#[derive(Debug, PartialEq, Eq)]
struct Sent {
    upstream: u32,
    destination: String,
    route: Option<u32>,
    options: Vec<(u16, Vec<u8>)>,
}

fn sent(upstream: u32, destination: &str, route: Option<u32>, options: List<'_>) -> Result<Sent, Refusal> {
    Ok(Sent { upstream, destination: destination.to_owned(), route, options: owned(options) })
}

fn get(parameters: &Parameters, list: List<'_>) -> Result<Sent, Refusal> {
    get_at(parameters, (CLIENT, None), list)
}

fn get_at(
    parameters: &Parameters,
    from_to: (IpAddr, Option<IpAddr>),
    list: List<'_>,
) -> Result<Sent, Refusal> {
    let content = content(Code::GET, list);
    let mut scratch = vec![0xFF; 3];
    let plan = match decide_at(parameters, from_to, &content.as_content(), &mut scratch)? {
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
fn a_request_to_ourselves_is_local() {
    for uri in ["coap://127.0.0.1/x", "coap://PROXY/boilers", "coap://[::ffff:127.0.0.1]:5683/x"] {
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
