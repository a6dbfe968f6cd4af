//! Each way in which an origin fails: the client gets the right code, when `check` says it will, never silence.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use coapway_interop::clock::now;
use coapway_interop::coapway::{self, Proxy};
use coapway_interop::datagram::{
    BAD_GATEWAY, CONTENT, Code, Datagram, EMPTY, GATEWAY_TIMEOUT, GET, Kind, POST, option,
};
use coapway_interop::exchange::{Method, Request, Via};
use coapway_interop::libcoap;
use coapway_interop::peers::{self, Peer};
use coapway_interop::process::{Family, free_port};
use coapway_interop::raw::{RawClient, RawOrigin, Received, Reply, Settled};
use coapway_interop::stack::{Client, Stack};

/// Short, so that the tests are; long enough for one retransmission, which leaves after 1 s to 1.5 s.
const SETTINGS: [&str; 2] = ["upstream.max_wait=3s", "upstream.ack_timeout=1s"];
/// What two busy cores may add to a time.
const SLACK: Duration = Duration::from_millis(300);
/// A failure that is known at once is answered at once, R-PRX-03.
const AT_ONCE: Duration = SLACK;
/// For timestamps that are taken on different sides of a socket.
const EARLY_BY: Duration = Duration::from_millis(20);
/// How long a client listens for what must not come.
const QUIET: Duration = Duration::from_millis(700);

const UNKNOWN_CRITICAL_UNSAFE: u16 = 65_003;

#[test]
fn black_hole_is_a_gateway_timeout_at_max_wait() {
    every_way(RawOrigin::black_hole, |way, origin, request, settled| {
        check_timeout(way, request, settled);
        let copies = origin.received();
        let predicted = 1 + coapway::number_in(dump(), "upstream.effective_retransmissions");
        match (way.kind, way.idempotent()) {
            (Kind::Confirmable, true) => assert!(copies.len() >= predicted, "{way:?}: {copies:?}"),
            // One copy more at the most, and it leaves after 2 s or never.
            (Kind::Confirmable, false) => assert!((1..=2).contains(&copies.len()), "{way:?}: {copies:?}"),
            _ => assert_eq!(copies.len(), 1, "{way:?}: {copies:?}"),
        }
        assert!(copies.iter().all(|copy| copy.bytes == copies[0].bytes), "copies differ: {copies:?}");
    });
}

#[test]
fn acknowledgement_then_silence_is_a_gateway_timeout_at_max_wait() {
    every_way(
        |family| RawOrigin::start(family, acknowledgement),
        |way, origin, request, settled| {
            check_timeout(way, request, settled);
            let requests = origin.requests();
            if way.kind == Kind::Confirmable {
                assert_eq!(requests.len(), 1, "a copy followed the acknowledgement: {requests:?}");
                assert_eq!(requests[0].kind, Kind::Confirmable);
            }
        },
    );
}

#[test]
fn reset_is_a_bad_gateway_at_once() {
    let reset = |request: &Datagram| vec![Reply::now(&Datagram::empty(Kind::Reset, request.message_id))];
    every_way(
        |family| RawOrigin::start(family, reset),
        |way, origin, request, settled| {
            check_refusal(way, request, settled);
            check_attempts(way, &origin.requests());
        },
    );
}

#[test]
fn closed_port_is_a_bad_gateway_at_once() {
    let proxy = Proxy::forward(&SETTINGS);
    for family in Family::ALL {
        let closed = family.address(free_port());
        let reverse = Proxy::reverse(closed, &SETTINGS);
        for way in WAYS {
            let way = Way { family, ..way };
            let (proxy, request) = match way.route {
                Route::Forward => (&proxy, way.forward_request(&format!("coap://{closed}/x"))),
                Route::Reverse => (&reverse, way.reverse_request()),
            };
            let settled = RawClient::new(proxy.address(family)).settle(&request, patience());
            check_refusal(way, &request, &settled);
        }
    }
}

#[test]
fn unknown_name_is_a_bad_gateway_and_was_not_sent() {
    let origin = RawOrigin::start(Family::V4, answer_content);
    let mut hosts = tempfile::NamedTempFile::new().expect("the folder for temporary files is writable");
    writeln!(hosts, "127.0.0.1 origin.example").expect("the file is writable");
    let resolver = format!("resolver=hosts:{}", hosts.path().display());
    let proxy = Proxy::forward(&[&SETTINGS[..], &[&resolver]].concat());
    let uri = |host: &str| format!("coap://{host}:{}/x", origin.address().port());
    for way in WAYS {
        let client = RawClient::new(proxy.address(way.family));
        let request = way.forward_request(&uri("nowhere.example"));
        let settled = client.settle(&request, patience());
        check_failure(way, &request, &settled, BAD_GATEWAY, &["not-sent"]);
        assert!(settled.after < AT_ONCE, "{way:?}: after {:?}", settled.after);
        assert_eq!(origin.requests(), []);
    }
    let way = WAYS[0];
    let request = way.forward_request(&uri("Origin.EXAMPLE"));
    let settled = RawClient::new(proxy.address(way.family)).settle(&request, patience());
    assert_eq!(settled.answer.code, CONTENT, "the name in the file is found");
    assert_eq!(origin.requests()[0].values(option::URI_HOST), [b"origin.example"]);
}

#[test]
fn malformed_answer_is_a_bad_gateway_at_once() {
    type Answer = fn(&Datagram) -> Vec<Reply>;
    let answers: [(&str, Answer); 7] = [
        ("option delta 15", |request| spoilt(request, &[0xf1, 0])),
        ("option length 15", |request| spoilt(request, &[0x1f, 0])),
        ("option past the end", |request| spoilt(request, &[0x49, 1, 2, 3, 4])),
        ("payload marker without payload", |request| spoilt(request, &[0xff])),
        ("reserved code class", |request| vec![Reply::now(&response(request, Code(0x60)))]),
        ("unknown critical unsafe option", |request| {
            vec![Reply::now(&response(request, CONTENT).option(UNKNOWN_CRITICAL_UNSAFE, "x"))]
        }),
        ("separate, option past the end", |request| {
            let mut separate = Datagram::new(Kind::Confirmable, CONTENT, 0x7777, &request.token).encode();
            separate.extend([0x49, 1, 2, 3, 4]);
            acknowledgement(request).into_iter().chain([Reply::bytes(separate)]).collect()
        }),
    ];
    for (name, answer) in answers {
        every_way(
            move |family| RawOrigin::start(family, answer),
            |way, origin, request, settled| {
                check_failure(way, request, settled, BAD_GATEWAY, &["outcome-unknown"]);
                assert!(settled.after < AT_ONCE, "{name}, {way:?}: after {:?}", settled.after);
                if !way.idempotent() {
                    assert_eq!(origin.requests().len(), 1, "{name}, {way:?}");
                }
            },
        );
    }
}

#[test]
fn what_cannot_be_matched_does_not_spoil_the_answer() {
    let answer = |request: &Datagram| {
        let stranger = Datagram::new(Kind::NonConfirmable, CONTENT, 0x1111, b"stranger").payload("wrong");
        let mut future = response(request, CONTENT).payload("wrong").encode();
        future[0] |= 0x80;
        vec![
            Reply::bytes(Vec::new()),
            Reply::bytes(vec![0x60, 0x45, 0]),
            Reply::bytes(future),
            Reply::now(&stranger),
            Reply::now(&Datagram::empty(Kind::Acknowledgement, !request.message_id)),
            Reply::now(&Datagram::empty(Kind::Reset, !request.message_id)),
            Reply::later(Duration::from_millis(100), &response(request, CONTENT).payload("right")),
        ]
    };
    every_way(
        |family| RawOrigin::start(family, answer),
        |way, origin, _, settled| {
            assert_eq!(
                (settled.answer.code, settled.answer.payload.as_slice()),
                (CONTENT, &b"right"[..]),
                "{way:?}"
            );
            assert_eq!(origin.requests().len(), 1, "{way:?}");
        },
    );
}

#[test]
fn late_answer_is_acknowledged_and_kept_from_the_client() {
    let late = max_wait() + Duration::from_millis(500);
    let origin = RawOrigin::start(Family::V4, move |request| {
        let separate = Datagram::new(Kind::Confirmable, CONTENT, 0x4242, &request.token).payload("late");
        vec![
            Reply::now(&Datagram::empty(Kind::Acknowledgement, request.message_id)),
            Reply::later(late, &separate),
        ]
    });
    let proxy = Proxy::forward(&SETTINGS);
    let client = RawClient::new(proxy.address(Family::V4));
    let request = RawClient::forward_request(Kind::Confirmable, GET, &origin.uri("/x"));
    let settled = client.settle(&request, patience());
    assert_eq!(settled.answer.code, GATEWAY_TIMEOUT);
    let acknowledged = origin.wait_for(settled.sent + late + SLACK, |message| {
        *message == Datagram::empty(Kind::Acknowledgement, 0x4242)
    });
    assert!(acknowledged.is_some(), "the late answer was not acknowledged: {:?}", origin.received());
    assert_quiet(&client);
}

#[test]
fn silent_origin_does_not_delay_another() {
    let (silent, lively) = (RawOrigin::black_hole(Family::V4), RawOrigin::start(Family::V4, answer_content));
    let proxy = Proxy::forward(&SETTINGS);
    let waiting = RawClient::new(proxy.address(Family::V4));
    let sent = waiting.send(&RawClient::forward_request(Kind::Confirmable, GET, &silent.uri("/x")));
    assert!(silent.wait_for(sent + patience(), |message| message.code == GET).is_some());
    for turn in 0..20 {
        let request = RawClient::forward_request(Kind::Confirmable, GET, &lively.uri(&format!("/{turn}")));
        let settled = RawClient::new(proxy.address(Family::V4)).settle(&request, patience());
        assert_eq!(settled.answer.code, CONTENT);
        assert!(settled.after < AT_ONCE, "after {:?}", settled.after);
    }
}

#[test]
fn foreign_clients_see_both_codes_in_time() {
    if !peers::present(&[Peer::LibcoapClient, Peer::Aiocoap]) {
        return;
    }
    let silent = RawOrigin::black_hole(Family::V4);
    let closed = Family::V4.address(free_port());
    let proxy = Proxy::forward(&SETTINGS);
    let aiocoap = Client::start(Stack::Aiocoap);
    let ask = |client: &Client, origin: SocketAddr, confirmable: bool| {
        let via = Via::ProxyUri(proxy.address(Family::V4));
        let request =
            Request { confirmable, patience: patience(), ..Request::new(Method::Get, origin, "/x", via) };
        let began = now();
        let answer = client.request(&request).unwrap_or_else(|text| panic!("{origin}: {text}"));
        (answer.code, began.elapsed())
    };
    thread::scope(|scope| {
        for client in [&Client::Libcoap, &aiocoap] {
            for confirmable in [true, false] {
                let (ask, silent) = (&ask, &silent);
                scope.spawn(move || {
                    // The time includes the start of libcoap's client.
                    let (code, after) = ask(client, closed, confirmable);
                    assert_eq!(code, "5.02");
                    assert!(after < AT_ONCE * 2, "after {after:?}");
                    let (code, after) = ask(client, silent.address(), confirmable);
                    assert_eq!(code, "5.04");
                    assert!(after > max_wait() - EARLY_BY && after < max_wait() + SLACK, "after {after:?}");
                });
            }
        }
    });
    let request = Request::new(Method::Get, silent.address(), "/y", Via::ProxyUri(proxy.address(Family::V4)));
    let exchange = libcoap::request(&request).expect("the log is understood");
    let codes: Vec<_> =
        exchange.messages.iter().filter(|message| !message.sent).map(|m| m.code.as_str()).collect();
    assert_eq!(codes, ["0.00", "5.04"], "an empty ACK, then one answer");
}

#[test]
fn requests_that_cannot_be_proxied_are_refused_at_once() {
    let proxy = Proxy::forward(&SETTINGS);
    let origin = RawOrigin::start(Family::V4, answer_content);
    let reverse = Proxy::reverse(origin.address(), &SETTINGS);
    let port = origin.address().port();
    let refusals = [
        (&proxy, "ftp://127.0.0.1/x".to_owned(), Code(0xa5)),
        (&proxy, "coap://127.0.0.1:1000/x".to_owned(), Code(0xa5)),
        (&proxy, "coap://224.0.1.187/x".to_owned(), Code(0xa1)),
        (&proxy, "/x".to_owned(), Code(0x82)),
        (&proxy, "coap:///x".to_owned(), Code(0x82)),
        (&proxy, format!("coap://127.0.0.1:{port}/x#y"), Code(0x82)),
        (&proxy, format!("coap://user@127.0.0.1:{port}/x"), Code(0x82)),
        (&proxy, format!("coap://127.0.0.1:{port}/%zz"), Code(0x82)),
        (&reverse, origin.uri("/x"), Code(0xa5)),
    ];
    for (proxy, uri, code) in refusals {
        for way in WAYS {
            let request = way.forward_request(&uri);
            let settled = RawClient::new(proxy.address(way.family)).settle(&request, patience());
            assert_eq!(settled.answer.code, code, "{uri}: {:?}", settled.answer);
            assert_eq!(settled.answer.token, request.token, "{uri}");
            assert!(settled.after < AT_ONCE, "{uri}: after {:?}", settled.after);
        }
    }
    assert_eq!(origin.requests(), []);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Forward,
    Reverse,
}

/// How a request is made; one failure is tried in each of [`WAYS`].
#[derive(Clone, Copy, Debug)]
struct Way {
    family: Family,
    kind: Kind,
    method: Code,
    route: Route,
}

const WAYS: [Way; 6] = [
    Way { family: Family::V4, kind: Kind::Confirmable, method: GET, route: Route::Forward },
    Way { family: Family::V6, kind: Kind::Confirmable, method: POST, route: Route::Forward },
    Way { family: Family::V6, kind: Kind::NonConfirmable, method: GET, route: Route::Forward },
    Way { family: Family::V4, kind: Kind::Confirmable, method: POST, route: Route::Reverse },
    Way { family: Family::V6, kind: Kind::Confirmable, method: GET, route: Route::Reverse },
    Way { family: Family::V4, kind: Kind::NonConfirmable, method: POST, route: Route::Reverse },
];

impl Way {
    fn forward_request(self, uri: &str) -> Datagram {
        RawClient::forward_request(self.kind, self.method, uri)
    }

    fn reverse_request(self) -> Datagram {
        RawClient::reverse_request(self.kind, self.method, "x")
    }

    fn idempotent(self) -> bool {
        self.method == GET
    }
}

/// Sends one request in each way, all at the same time and each to an origin of its own, and checks that
/// nothing follows the final answer.
fn every_way(
    start_origin: impl Fn(Family) -> RawOrigin + Sync,
    check: impl Fn(Way, &RawOrigin, &Datagram, &Settled) + Sync,
) {
    let forward = Proxy::forward(&SETTINGS);
    thread::scope(|scope| {
        for way in WAYS {
            let (start_origin, check, forward) = (&start_origin, &check, &forward);
            scope.spawn(move || {
                let origin = start_origin(way.family);
                let reverse =
                    (way.route == Route::Reverse).then(|| Proxy::reverse(origin.address(), &SETTINGS));
                let request = match way.route {
                    Route::Forward => way.forward_request(&origin.uri("/x")),
                    Route::Reverse => way.reverse_request(),
                };
                let client = RawClient::new(reverse.as_ref().unwrap_or(forward).address(way.family));
                let settled = client.settle(&request, patience());
                check(way, &origin, &request, &settled);
                assert_quiet(&client);
            });
        }
    });
}

fn check_timeout(way: Way, request: &Datagram, settled: &Settled) {
    check_failure(way, request, settled, GATEWAY_TIMEOUT, &["outcome-unknown"]);
    let (earliest, latest) = (max_wait() - EARLY_BY, max_wait() + SLACK);
    assert!(settled.after > earliest && settled.after < latest, "{way:?}: after {:?}", settled.after);
    if way.kind == Kind::Confirmable {
        let acknowledged = settled.empty_acknowledgement.expect("a confirmable request is acknowledged");
        assert!(acknowledged < early_ack_after() + SLACK, "{way:?}: empty ACK after {acknowledged:?}");
    }
}

/// Only a request of which one copy left can be known as not executed.
fn check_refusal(way: Way, request: &Datagram, settled: &Settled) {
    let evidence: &[&str] =
        if way.idempotent() { &["not-executed", "outcome-unknown"] } else { &["not-executed"] };
    check_failure(way, request, settled, BAD_GATEWAY, evidence);
    assert!(settled.after < AT_ONCE, "{way:?}: after {:?}", settled.after);
}

fn check_failure(way: Way, request: &Datagram, settled: &Settled, code: Code, evidence: &[&str]) {
    let answer = &settled.answer;
    assert_eq!((answer.code, &answer.token), (code, &request.token), "{way:?}: {answer:?}");
    let kind = match (way.kind, settled.empty_acknowledgement) {
        (Kind::NonConfirmable, None) => Kind::NonConfirmable,
        (_, Some(_)) => Kind::Confirmable,
        (_, None) => Kind::Acknowledgement,
    };
    assert_eq!(answer.kind, kind, "{way:?}: {answer:?}");
    if kind == Kind::Acknowledgement {
        assert_eq!(answer.message_id, request.message_id, "{way:?}: {answer:?}");
    }
    assert_eq!(answer.options, [(option::MAX_AGE, Vec::new())], "{way:?}: {answer:?}");
    let text = String::from_utf8_lossy(&answer.payload);
    assert!(evidence.iter().any(|word| text.starts_with(word)), "{way:?}: {text:?} is not {evidence:?}");
}

/// A request that is safe to make again may be re-issued once, another one never.
fn check_attempts(way: Way, requests: &[Datagram]) {
    let most = if way.idempotent() { 2 } else { 1 };
    assert!((1..=most).contains(&requests.len()), "{way:?}: {requests:?}");
}

fn assert_quiet(client: &RawClient) {
    let more: Vec<Received> = client.receive_all(now() + QUIET);
    let more: Vec<_> = more.iter().map(Received::message).collect();
    assert!(more.is_empty(), "more came after the final answer: {more:?}");
}

/// What a confirmable request gets first from an origin that answers later.
fn acknowledgement(request: &Datagram) -> Vec<Reply> {
    match request.kind {
        Kind::Confirmable => vec![Reply::now(&Datagram::empty(Kind::Acknowledgement, request.message_id))],
        Kind::NonConfirmable | Kind::Acknowledgement | Kind::Reset => Vec::new(),
    }
}

/// The response to a request, in the type that fits the request's.
fn response(request: &Datagram, code: Code) -> Datagram {
    match request.kind {
        Kind::NonConfirmable => {
            Datagram::new(Kind::NonConfirmable, code, !request.message_id, &request.token)
        }
        Kind::Confirmable | Kind::Acknowledgement | Kind::Reset => request.piggybacked(code),
    }
}

fn answer_content(request: &Datagram) -> Vec<Reply> {
    vec![Reply::now(&response(request, CONTENT).payload("content"))]
}

/// A response whose header and token are right and whose rest is `tail`.
fn spoilt(request: &Datagram, tail: &[u8]) -> Vec<Reply> {
    assert_ne!(request.code, EMPTY);
    let mut bytes = response(request, CONTENT).encode();
    bytes.extend(tail);
    vec![Reply::bytes(bytes)]
}

fn dump() -> &'static str {
    static DUMP: OnceLock<String> = OnceLock::new();
    DUMP.get_or_init(|| coapway::dump(&SETTINGS))
}

/// The time at which `check` says that a client is answered at the latest.
fn max_wait() -> Duration {
    let predicted = coapway::duration_in(dump(), "upstream.due");
    assert_eq!(predicted, Duration::from_secs(3), "check knows of {SETTINGS:?}");
    predicted
}

fn early_ack_after() -> Duration {
    coapway::duration_in(dump(), "downstream.early_ack_after")
}

/// Well above all that is promised.
fn patience() -> Duration {
    max_wait() + Duration::from_secs(4)
}
