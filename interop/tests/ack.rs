//! A slow origin: an empty ACK before the client's timer, one separate response, and one execution however
//! often the client repeats itself.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use coapway_interop::clock::now;
use coapway_interop::coapway::{self, Proxy};
use coapway_interop::datagram::{CONTENT, Code, Datagram, EMPTY, GET, Kind, POST, PUT};
use coapway_interop::exchange::{Method, Request, Via};
use coapway_interop::libcoap;
use coapway_interop::peers::{self, Peer};
use coapway_interop::process::Family;
use coapway_interop::raw::{RawClient, RawOrigin, Received, Reply};
use coapway_interop::stack::{Client, Origin, Stack};

/// Slower than any early ACK, faster than the first copy of an upstream request (2 s).
const SLOW: Duration = Duration::from_millis(1500);
/// What two busy cores may add to a time.
const SLACK: Duration = Duration::from_millis(300);
/// Longer than the downstream's first timeout (1.2 s), after which an unacknowledged response comes again.
const QUIET: Duration = Duration::from_millis(1800);
const PATIENCE: Duration = Duration::from_secs(8);
const METHODS: [Code; 3] = [GET, PUT, POST];

#[test]
fn slow_origin_gives_an_empty_ack_and_one_separate_response() {
    type Style = fn(&Datagram) -> Vec<Reply>;
    let styles: [(&str, Style); 3] = [
        ("piggybacked", |request| vec![Reply::later(SLOW, &request.piggybacked(CONTENT).payload("slow"))]),
        ("separate CON", |request| separate(request, Kind::Confirmable)),
        ("separate NON", |request| separate(request, Kind::NonConfirmable)),
    ];
    thread::scope(|scope| {
        for (name, style) in styles {
            for method in METHODS {
                scope.spawn(move || {
                    let origin = RawOrigin::start(Family::V4, style);
                    let proxy = Proxy::reverse(origin.address(), &[]);
                    let client = RawClient::new(proxy.address(Family::V4));
                    let request = RawClient::reverse_request(Kind::Confirmable, method, "slow");
                    let settled = client.settle(&request, PATIENCE);

                    let acknowledged = settled.empty_acknowledgement.expect("an empty ACK comes first");
                    assert!(
                        acknowledged < early_ack_after() + SLACK,
                        "{name}: empty ACK after {acknowledged:?}"
                    );
                    assert_eq!(settled.answer.kind, Kind::Confirmable, "{name}");
                    assert_eq!(settled.answer.token, request.token, "{name}");
                    assert_eq!(settled.answer.code, CONTENT, "{name}");
                    assert_eq!(settled.answer.payload, b"slow", "{name}");
                    let expected = SLOW..SLOW + SLACK;
                    assert!(expected.contains(&settled.after), "{name}: answer after {:?}", settled.after);
                    assert_eq!(messages(&client.receive_all(now() + QUIET)), [], "{name}");
                    assert_eq!(origin.requests().len(), 1, "{name}");
                });
            }
        }
    });
}

#[test]
fn separate_response_of_an_origin_is_acknowledged_once() {
    let origin = RawOrigin::start(Family::V4, |request| separate(request, Kind::Confirmable));
    let proxy = Proxy::forward(&[]);
    let client = RawClient::new(proxy.address(Family::V4));
    let request = RawClient::forward_request(Kind::Confirmable, POST, &origin.uri("/slow"));
    assert_eq!(client.settle(&request, PATIENCE).answer.code, CONTENT);
    assert_eq!(messages(&client.receive_all(now() + QUIET)), []);
    let received = messages(&origin.received());
    let acknowledgement = Datagram::empty(Kind::Acknowledgement, SEPARATE_ID);
    assert_eq!(received.len(), 2, "{received:?}");
    assert_eq!(received[1], acknowledgement);
}

#[test]
fn fast_origin_is_answered_in_the_ack() {
    let origin = RawOrigin::start(Family::V6, |request| vec![Reply::now(&request.piggybacked(CONTENT))]);
    let proxy = Proxy::forward(&[]);
    let ask = |client: &RawClient, method, length| {
        let uri = origin.uri(&format!("/{length}"));
        let mut request = RawClient::forward_request(Kind::Confirmable, method, &uri);
        request.token.truncate(length);
        let settled = client.settle(&request, PATIENCE);
        assert_eq!(settled.empty_acknowledgement, None);
        assert_eq!(settled.answer, request.piggybacked(CONTENT));
    };
    for method in METHODS {
        for length in 0..=8 {
            ask(&RawClient::new(proxy.address(Family::V6)), method, length);
        }
    }
    // Not one of many, one after another.
    let client = RawClient::new(proxy.address(Family::V6));
    for number in 0..500 {
        ask(&client, GET, number % 9);
    }
}

#[test]
fn repeats_of_a_slow_request_reach_the_origin_once() {
    thread::scope(|scope| {
        for kind in [Kind::Confirmable, Kind::NonConfirmable] {
            for method in METHODS {
                scope.spawn(move || {
                    let origin =
                        RawOrigin::start(Family::V4, |request| separate(request, Kind::NonConfirmable));
                    let proxy = Proxy::reverse(origin.address(), &[]);
                    let client = RawClient::new(proxy.address(Family::V4));
                    let request = RawClient::reverse_request(kind, method, "slow");
                    let first = client.send(&request);
                    let mut received = Vec::new();
                    for after in [100, 250, 800, 1100, 2000, 2500] {
                        received
                            .extend(receive_and_acknowledge(&client, first + Duration::from_millis(after)));
                        client.send(&request);
                    }
                    received.extend(receive_and_acknowledge(&client, now() + QUIET));

                    // A CON client that repeats after the end may be shown the same response again.
                    let mut answers = messages(&received);
                    answers.retain(|message| message.code != EMPTY);
                    answers.dedup();
                    assert_eq!(answers.len(), 1, "{kind:?} {method:?}: {received:?}");
                    assert_eq!((answers[0].code, &answers[0].token), (CONTENT, &request.token));
                    assert_eq!(origin.requests().len(), 1, "{kind:?} {method:?}");
                });
            }
        }
    });
}

#[test]
fn repeat_after_the_empty_ack_gets_it_again_at_once() {
    let origin = RawOrigin::start(Family::V4, |request| separate(request, Kind::Confirmable));
    let proxy = Proxy::forward(&[]);
    let client = RawClient::new(proxy.address(Family::V4));
    let request = RawClient::forward_request(Kind::Confirmable, POST, &origin.uri("/slow"));
    let sent = client.send(&request);
    let acknowledgement = Datagram::empty(Kind::Acknowledgement, request.message_id);
    let first = client.receive(sent + early_ack_after() + SLACK).expect("an empty ACK comes first");
    assert_eq!(*first.message(), acknowledgement);
    for _ in 0..3 {
        let repeated = client.send(&request);
        let again = client.receive(repeated + SLACK).expect("a repeat is acknowledged at once");
        assert_eq!(*again.message(), acknowledgement);
    }
    let answer = client.receive(sent + SLOW + SLACK).expect("the separate response comes");
    assert_eq!(answer.message().code, CONTENT);
    client.send(&Datagram::empty(Kind::Acknowledgement, answer.message().message_id));
    assert_eq!(messages(&client.receive_all(now() + QUIET)), []);
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn repeat_of_a_fast_request_gets_the_same_bytes() {
    let mut executed = 0_u8;
    let origin = RawOrigin::start(Family::V4, move |request| {
        executed += 1;
        vec![Reply::now(&request.piggybacked(CONTENT).payload([executed]))]
    });
    let proxy = Proxy::forward(&[]);
    for method in METHODS {
        let client = RawClient::new(proxy.address(Family::V4));
        let request = RawClient::forward_request(Kind::Confirmable, method, &origin.uri("/fast"));
        let before = origin.requests().len();
        let replies: Vec<_> = (0..3)
            .map(|_| {
                let sent = client.send(&request);
                client.receive(sent + PATIENCE).expect("each copy is answered").bytes
            })
            .collect();
        assert_eq!(replies[0], replies[1]);
        assert_eq!(replies[0], replies[2]);
        assert_eq!(Datagram::decode(&replies[0]).map(|reply| reply.code), Some(CONTENT));
        assert_eq!(origin.requests().len(), before + 1, "{method:?}");
    }
}

#[test]
fn separate_response_is_repeated_until_it_is_settled() {
    let timeout = coapway::duration_in(dump(), "downstream.ack_timeout");
    thread::scope(|scope| {
        for end in [Kind::Acknowledgement, Kind::Reset] {
            scope.spawn(move || {
                let origin = RawOrigin::start(Family::V4, |request| separate(request, Kind::Confirmable));
                let proxy = Proxy::forward(&[]);
                let client = RawClient::new(proxy.address(Family::V4));
                let request = RawClient::forward_request(Kind::Confirmable, GET, &origin.uri("/slow"));
                let sent = client.send(&request);
                let empty =
                    client.receive(sent + early_ack_after() + SLACK).expect("an empty ACK comes first");
                assert_eq!(empty.message().code, EMPTY);
                let first = client.receive(sent + SLOW + SLACK).expect("the separate response comes");
                let second =
                    client.receive(first.at + PATIENCE).expect("an unacknowledged response is repeated");
                assert_eq!(first.message().kind, Kind::Confirmable);
                assert_eq!(first.bytes, second.bytes);
                let gap = second.at - first.at;
                assert!(
                    gap + Duration::from_millis(20) > timeout,
                    "repeated after {gap:?}, before {timeout:?}"
                );
                client.send(&Datagram::empty(end, first.message().message_id));
                assert_eq!(messages(&client.receive_all(now() + QUIET * 2)), [], "{end:?} did not end it");
            });
        }
    });
}

#[test]
fn libcoap_is_acknowledged_before_its_timer_by_way_of_a_slow_aiocoap() {
    if !peers::present(&[Peer::LibcoapClient, Peer::Aiocoap]) {
        return;
    }
    let origin = Origin::start(Stack::Aiocoap);
    let Origin::Aiocoap(aiocoap) = &origin else { unreachable!("started as aiocoap") };
    let forward = Proxy::forward(&[]);
    let reverse = Proxy::reverse(Family::V4.address(origin.port()), &[]);
    thread::scope(|scope| {
        let ways = [Via::ProxyUri(forward.address(Family::V4)), Via::Reverse(reverse.address(Family::V6))];
        for (place, via) in ways.into_iter().enumerate() {
            for method in Method::ALL {
                let origin = &origin;
                scope.spawn(move || {
                    let key = format!("{place}-{}", method.name());
                    let path = format!("/slow/{}?key={key}", SLOW.as_millis());
                    let mut request = Request::new(method, Family::V4.address(origin.port()), path, via);
                    request.payload = if method.has_payload() { b"slow".to_vec() } else { Vec::new() };
                    check_with_libcoap(&request);
                    assert_eq!(aiocoap.seen(&key).len(), 1, "{method:?}");
                });
            }
        }
    });
}

#[test]
fn libcoap_is_acknowledged_before_its_timer_by_way_of_a_slow_libcoap() {
    if !peers::present(&[Peer::LibcoapClient, Peer::LibcoapServer]) {
        return;
    }
    let origin = Origin::start(Stack::Libcoap);
    let proxy = Proxy::forward(&[]);
    let via = Via::ProxyUri(proxy.address(Family::V6));
    let request = Request::new(Method::Get, Family::V6.address(origin.port()), "/async?2", via);
    let answer = check_with_libcoap(&request);
    assert_eq!(answer, b"done");
}

#[test]
fn aiocoap_gets_one_separate_response_from_a_slow_aiocoap() {
    if !peers::present(&[Peer::Aiocoap]) {
        return;
    }
    let origin = Origin::start(Stack::Aiocoap);
    let Origin::Aiocoap(aiocoap) = &origin else { unreachable!("started as aiocoap") };
    let client = Client::start(Stack::Aiocoap);
    let proxy = Proxy::forward(&[]);
    let via = Via::ProxyScheme(proxy.address(Family::V4));
    let path = format!("/slow/{}?key=slow", SLOW.as_millis());
    let mut request = Request::new(Method::Post, Family::V4.address(origin.port()), path, via);
    request.payload = b"slow".to_vec();
    let answer = client.request(&request).expect("the slow origin answers in time");
    assert_eq!((answer.code.as_str(), answer.kind.as_str()), ("2.04", "CON"));
    assert_eq!(answer.payload, b"slow");
    assert_eq!(aiocoap.seen("slow").len(), 1);
}

/// The Message ID of the origins' separate responses.
const SEPARATE_ID: u16 = 0x5e9a;

fn separate(request: &Datagram, kind: Kind) -> Vec<Reply> {
    let answer = Datagram::new(kind, CONTENT, SEPARATE_ID, &request.token).payload("slow");
    let acknowledgement = Reply::now(&Datagram::empty(Kind::Acknowledgement, request.message_id));
    let answer = Reply::later(SLOW, &answer);
    if request.kind == Kind::Confirmable { vec![acknowledgement, answer] } else { vec![answer] }
}

fn receive_and_acknowledge(client: &RawClient, limit: Instant) -> Vec<Received> {
    let received = client.receive_all(limit);
    for message in messages(&received) {
        if message.kind == Kind::Confirmable {
            client.send(&Datagram::empty(Kind::Acknowledgement, message.message_id));
        }
    }
    received
}

fn messages(received: &[Received]) -> Vec<Datagram> {
    received.iter().map(|one| one.message().clone()).collect()
}

/// Sends a confirmable request with libcoap, checks that an empty ACK came in time and that libcoap sent the
/// request once, and returns the payload of the separate response.
fn check_with_libcoap(request: &Request) -> Vec<u8> {
    let exchange = libcoap::request(request).expect("the log of libcoap is understood");
    let told: Vec<_> = exchange
        .messages
        .iter()
        .map(|message| (message.sent, message.kind.as_str(), message.code.starts_with('2')))
        .collect();
    let expected = [(true, "CON", false), (false, "ACK", false), (false, "CON", true), (true, "ACK", false)];
    assert_eq!(told, expected, "{}", exchange.log);
    let acknowledged = libcoap::between(&exchange.messages[0], &exchange.messages[1]);
    assert!(acknowledged < early_ack_after() + SLACK, "empty ACK after {acknowledged:?}");
    exchange.payload
}

fn dump() -> &'static str {
    static DUMP: OnceLock<String> = OnceLock::new();
    DUMP.get_or_init(|| coapway::dump(&[]))
}

fn early_ack_after() -> Duration {
    coapway::duration_in(dump(), "downstream.early_ack_after")
}
