//! What an unverified address may get because of one request: at most 136 bytes or three times its own
//! (R-ATK-01; RFC 7252 §11.3, RFC 9175 §2.4).

use coapway_endpoint::{DuplicatesParameters, EndpointParameters, Event, Gate, Refused};
use coapway_message::{Code, Content, ExchangeId, MessageType, datagram};

use crate::hop::{Got, Hop, OTHER, PEER, at, bytes, empty_ack, ids, payload_for, request};

const CON: MessageType = MessageType::Confirmable;
const NON: MessageType = MessageType::NonConfirmable;

fn unverified(hop: &mut Hop, request: &[u8]) -> ExchangeId {
    let Got::Request(exchange) = hop.receive_through(Gate::TakeUnverified, PEER, request) else {
        panic!("a request")
    };
    exchange
}

fn answer(payload: &[u8]) -> Content<'_> {
    Content { payload, ..Content::bare(Code::CONTENT) }
}

fn sum(sent: &[Vec<u8>]) -> usize {
    sent.iter().map(Vec::len).sum()
}

#[test]
fn a_larger_answer_is_refused_and_a_shorter_one_may_follow() {
    for (message_type, acknowledged) in [(CON, false), (CON, true), (NON, false)] {
        let mut hop = Hop::new();
        let exchange = unverified(&mut hop, &request(message_type, 10, b"\xA1"));
        let mut room = 136;
        if acknowledged {
            hop.wait(at(1_000));
            room -= 4;
        }
        let large = payload_for(room + 1, 1);
        assert_eq!(hop.endpoint.respond(exchange, &answer(&large), hop.now), Err(Refused::Unverified));
        assert!(hop.sent().is_empty() && hop.endpoint.pending_requests() == 1);
        let fitting = payload_for(room, 1);
        assert_eq!(hop.endpoint.respond(exchange, &answer(&fitting), hop.now), Ok(()));
        assert_eq!(hop.sent()[0].len(), room);
        hop.endpoint.check_invariants();
    }
}

#[test]
fn three_times_a_long_request_may_leave() {
    let mut hop = Hop::new();
    let long = bytes(CON, 10, b"\xA1", &Content { payload: &[7; 194], ..Content::bare(Code::FETCH) });
    assert_eq!(long.len(), 200);
    let exchange = unverified(&mut hop, &long);
    let payload = payload_for(601, 1);
    assert_eq!(hop.endpoint.respond(exchange, &answer(&payload), hop.now), Err(Refused::Unverified));
    assert_eq!(hop.endpoint.respond(exchange, &answer(&payload[1..]), hop.now), Ok(()));
    hop.sent();
    // A repeat brings room for one more of the stored reply.
    assert_eq!(hop.receive(&long), Got::Nothing);
    assert_eq!(sum(&hop.sent()), 600);
}

#[test]
fn replays_for_repeats_leave_only_as_far_as_they_fit() {
    let mut hop = Hop::new();
    let ask = request(CON, 10, b"\xA1");
    let exchange = unverified(&mut hop, &ask);
    hop.endpoint.respond(exchange, &answer(&payload_for(100, 1)), hop.now).expect("fits");
    let (mut received, mut sent, mut replays) = (ask.len(), sum(&hop.sent()), 0);
    for _ in 0..200 {
        assert_eq!(hop.receive(&ask), Got::Nothing);
        received += ask.len();
        let now = sum(&hop.sent());
        replays += usize::from(now > 0);
        sent += now;
        assert!(sent <= (3 * received).max(136), "{sent} bytes for {received}");
    }
    assert_eq!(replays, 3 * received / 100 - 1);
    assert_eq!(hop.endpoint.counters().withheld, 200 - replays as u64);
}

#[test]
fn copies_of_a_separate_response_leave_only_as_far_as_they_fit() {
    let mut hop = Hop::new();
    let ask = request(CON, 10, b"\xA1");
    let exchange = unverified(&mut hop, &ask);
    let mut sent: usize = hop.wait(at(2_000)).iter().map(|(_, datagram)| datagram.len()).sum();
    hop.endpoint.respond(exchange, &answer(&payload_for(60, 1)), hop.now).expect("fits");
    sent += sum(&hop.sent());
    assert_eq!(sent, 64);
    let copies = hop.wait(at(60_000));
    assert_eq!(copies.len(), 1, "64 + 60 fit, another copy does not");
    assert_eq!(hop.endpoint.counters().withheld, 1);
    // A repeat is acknowledged while that fits, and draws no copy that does not.
    for expected in [4, 4, 4, 0, 0] {
        hop.receive(&ask);
        assert_eq!(sum(&hop.sent()), expected);
    }
    let delivered = |event: &Event| matches!(event, Event::Delivered { copies: 2, .. });
    hop.wait(at(200_000));
    assert_eq!(hop.events().iter().filter(|event| delivered(event)).count(), 1);
}

#[test]
fn a_response_that_may_not_be_repeated_blocks_nobody() {
    let mut hop = Hop::new();
    let spoofed = unverified(&mut hop, &request(CON, 10, b"\xA1"));
    let Got::Request(real) = hop.receive(&request(CON, 11, b"\xA2")) else { panic!("a request") };
    hop.wait(at(1_000));
    hop.endpoint.respond(spoofed, &answer(&payload_for(120, 1)), hop.now).expect("fits");
    hop.endpoint.respond(real, &answer(b"real"), hop.now).expect("open");
    assert_eq!(ids(&hop.sent()[0]).1, b"\xA1");
    assert!(hop.sent().is_empty(), "one at a time");
    let sent = hop.wait(at(4_001));
    assert_eq!(ids(&sent[0].1).1, b"\xA2", "after one wait, not after all of max_wait");
}

#[test]
fn an_answer_of_60_bytes_always_fits() {
    for repeats in [0, 1, 5, 10, 11, 12, 13, 30, 100] {
        for forgotten in [false, true] {
            let parameters = EndpointParameters {
                duplicates: DuplicatesParameters { memory: 120 },
                ..EndpointParameters::default()
            };
            let mut hop = Hop::with(parameters);
            let ask = request(CON, 10, b"");
            let exchange = unverified(&mut hop, &ask);
            for _ in 0..repeats {
                assert_eq!(hop.receive(&ask), Got::Nothing);
            }
            assert_eq!(sum(&hop.sent()), 4 * repeats);
            if forgotten {
                // There is memory for one: this request takes the place of the other.
                assert!(matches!(hop.receive_from(OTHER, &ask), Got::Request(_)));
                let large = payload_for(93, 0);
                let refused = hop.endpoint.respond(exchange, &answer(&large), hop.now);
                assert_eq!(refused, Err(Refused::Unverified));
            }
            let payload = payload_for(60, 0);
            assert_eq!(hop.endpoint.respond(exchange, &answer(&payload), hop.now), Ok(()));
            assert_eq!(sum(&hop.sent()), 60, "{repeats} repeats, forgotten: {forgotten}");
            if forgotten {
                let copies = hop.wait(at(100_000));
                assert!(copies.iter().all(|(_, copy)| *copy == empty_ack(10)), "what was sent is unknown");
            }
        }
    }
}

#[test]
fn a_request_that_waits_for_its_turn_is_counted_before() {
    let mut hop = Hop::new();
    let first = unverified(&mut hop, &request(CON, 10, b"\xA1"));
    let second = unverified(&mut hop, &request(CON, 11, b"\xA2"));
    hop.wait(at(1_000));
    let payload = payload_for(132, 1);
    hop.endpoint.respond(first, &answer(&payload), hop.now).expect("fits");
    let message_id = ids(&hop.sent()[0]).0;
    assert_eq!(
        hop.endpoint.respond(second, &answer(&payload_for(133, 1)), hop.now),
        Err(Refused::Unverified)
    );
    hop.endpoint.respond(second, &answer(&payload), hop.now).expect("fits");
    hop.receive(&datagram::empty(MessageType::Acknowledgement, message_id));
    let sent = hop.sent();
    assert_eq!((sent.len(), sent[0].len()), (1, 132));
    assert!(hop.wait(at(90_000)).is_empty(), "no copy fits");
}

#[test]
fn a_verified_address_gets_everything() {
    let mut hop = Hop::new();
    let ask = request(CON, 10, b"\xA1");
    let Got::Request(exchange) = hop.receive(&ask) else { panic!("a request") };
    hop.endpoint.respond(exchange, &answer(&[b'x'; 1000]), hop.now).expect("open");
    for _ in 0..100 {
        hop.receive(&ask);
    }
    assert_eq!(hop.sent().len(), 101);
    assert_eq!(hop.endpoint.counters().withheld, 0);
}

#[test]
fn with_the_memory_full_each_copy_gets_less_than_three_times_its_bytes() {
    let parameters = EndpointParameters {
        duplicates: DuplicatesParameters { memory: 120 },
        ..EndpointParameters::default()
    };
    let mut hop = Hop::with(parameters);
    let post = |message_id| bytes(CON, message_id, b"\xA1", &Content::bare(Code::POST));
    assert!(matches!(hop.receive(&post(1)), Got::Request(_)));
    assert_eq!(hop.receive(&post(2)), Got::Nothing);
    let told = hop.sent().remove(0);
    assert!(told.ends_with(b"not-sent: too many requests to remember"));
    assert_eq!(hop.receive_through(Gate::TakeUnverified, PEER, &post(3)), Got::Nothing);
    let bare = hop.sent().remove(0);
    assert_eq!(bare[..2], [0x61, Code::SERVICE_UNAVAILABLE.0]);
    assert!(bare.len() <= 3 * post(3).len());
    let non = bytes(NON, 4, b"\xA1", &Content::bare(Code::POST));
    assert_eq!(hop.receive(&non), Got::Nothing);
    assert!(hop.sent().is_empty(), "a NON is dropped");
    assert_eq!(hop.endpoint.counters().refused, 3);
}
