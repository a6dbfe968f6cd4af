//! Tokens: the caller's upstream (R-USR-07), long ones of peers (R-TOK-08; RFC 8974).

use coapway_endpoint::matching::Tokens;
use coapway_endpoint::{AnswerKind, EndpointParameters, Gate, Schedule, Seed, TransmissionParameters};
use coapway_message::{Code, Content, ExchangeId, MessageType, OptionNumber, OptionsWriter, datagram};

use crate::hop::{Got, Hop, OTHER, PEER, RESPONSE, at, bytes, empty_ack, ids, request};

const CON: MessageType = MessageType::Confirmable;
const NON: MessageType = MessageType::NonConfirmable;

fn ask(hop: &mut Hop, token: &[u8]) -> (ExchangeId, Vec<u8>) {
    let schedule = Schedule::new(&TransmissionParameters::default(), hop.now);
    let exchange = hop
        .endpoint
        .send_request(&PEER, true, Some(token), &Content::bare(Code::GET), &schedule, hop.now)
        .expect("Message IDs are free");
    hop.endpoint.check_invariants();
    (exchange, hop.sent().pop().expect("the first copy leaves at once"))
}

fn notification() -> Vec<u8> {
    let mut options = Vec::new();
    let mut writer = OptionsWriter::new(&mut options);
    writer.push_uint(OptionNumber::OBSERVE, 7);
    bytes(CON, 3, b"abcd", &Content { options: writer.finish(), ..RESPONSE })
}

#[test]
fn a_free_token_is_preserved_and_answered() {
    let mut hop = Hop::new();
    let (exchange, sent) = ask(&mut hop, b"abcd");
    assert_eq!(ids(&sent).1, b"abcd");
    assert_eq!(hop.endpoint.trace(exchange).map(|trace| trace.token()), Some(&b"abcd"[..]));
    assert_eq!(hop.receive_from(OTHER, &bytes(NON, 1, b"abcd", &RESPONSE)), Got::Nothing);
    let answer = bytes(MessageType::Acknowledgement, ids(&sent).0, b"abcd", &RESPONSE);
    assert_eq!(hop.receive(&answer), Got::Response(exchange, AnswerKind::Piggybacked, Code::CONTENT));
    assert_eq!(hop.endpoint.counters().preserved_tokens, 1);
}

#[test]
fn a_token_in_use_or_at_rest_is_replaced_by_a_fresh_one() {
    let mut hop = Hop::new();
    let (exchange, _) = ask(&mut hop, b"abcd");
    assert!(!hop.endpoint.is_token_free(&PEER, b"abcd", hop.now));
    assert!(hop.endpoint.is_token_free(&OTHER, b"abcd", hop.now));
    let (_, second) = ask(&mut hop, b"abcd");
    assert_eq!(ids(&second).1.len(), 8);
    hop.endpoint.cancel(exchange);
    hop.wait(at(93_000 + 246_000));
    assert!(!hop.endpoint.is_token_free(&PEER, b"abcd", hop.now));
    hop.wait(at(93_000 + 247_000));
    assert!(hop.endpoint.is_token_free(&PEER, b"abcd", hop.now));
    assert_eq!(ids(&ask(&mut hop, b"abcd").1).1, b"abcd");
}

#[test]
fn late_responses_to_a_token_at_rest_are_acknowledged_and_dropped_and_notifications_rejected() {
    let mut hop = Hop::new();
    let (exchange, _) = ask(&mut hop, b"abcd");
    hop.endpoint.cancel(exchange);
    assert_eq!(hop.receive(&bytes(CON, 2, b"abcd", &RESPONSE)), Got::Nothing);
    assert_eq!(hop.sent(), [empty_ack(2)]);
    assert_eq!(hop.receive(&notification()), Got::Nothing);
    assert_eq!(hop.sent(), [datagram::empty(MessageType::Reset, 3)]);
    assert_eq!(hop.receive(&bytes(NON, 4, b"abcd", &RESPONSE)), Got::Nothing);
    assert!(hop.sent().is_empty());
    assert_eq!(hop.endpoint.counters().late, 3);
}

#[test]
fn a_token_that_stands_for_an_exchange_of_ours_is_not_free() {
    let mut hop = Hop::new();
    let (exchange, sent) = hop.request(true);
    let token = ids(&sent).1;
    assert!(!hop.endpoint.is_token_free(&PEER, &token, hop.now));
    assert!(!hop.endpoint.is_token_free(&OTHER, &token, hop.now));
    hop.endpoint.cancel(exchange);
    assert!(!hop.endpoint.is_token_free(&PEER, &token, hop.now), "a late response may come");
    assert!(hop.endpoint.is_token_free(&PEER, b"12345678", hop.now));
}

#[test]
fn what_was_sent_can_be_read_back() {
    let mut hop = Hop::new();
    let mut options = Vec::new();
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(OptionNumber::URI_PATH, b"temp");
    let content = Content { code: Code::PUT, options: writer.finish(), payload: b"21.5" };
    let schedule = Schedule::new(&TransmissionParameters::default(), hop.now);
    let exchange =
        hop.endpoint.send_request(&PEER, true, None, &content, &schedule, hop.now).expect("Message IDs");
    assert_eq!(hop.endpoint.sent_content(exchange), Some(content));
    hop.wait(at(20_000));
    assert_eq!(hop.endpoint.sent_content(exchange), Some(content));
    hop.endpoint.cancel(exchange);
    assert_eq!(hop.endpoint.sent_content(exchange), Some(content), "until the place is used again");
    hop.endpoint
        .send_request(&PEER, true, None, &Content::bare(Code::GET), &schedule, hop.now)
        .expect("Message IDs");
    assert_eq!(hop.endpoint.sent_content(exchange), None);
    let ping = hop.endpoint.send_ping(&PEER, &schedule, hop.now).expect("Message IDs");
    assert_eq!(hop.endpoint.sent_content(ping), None);
}

#[test]
fn long_tokens_are_echoed_in_each_kind_of_answer() {
    for length in [0, 1, 8, 12, 13, 20, 268, 269, 300, 1024] {
        let token: Vec<u8> = (0..length).map(|n| n as u8).collect();
        let mut hop = Hop::with(EndpointParameters::default());
        for (message_type, acknowledged) in [(CON, false), (CON, true), (NON, false)] {
            let Got::Request(exchange) = hop.receive(&request(message_type, 10, &token)) else {
                panic!("a request with {length} bytes of token")
            };
            if acknowledged {
                hop.endpoint.acknowledge_early(exchange);
                assert_eq!(hop.sent(), [empty_ack(10)]);
            }
            hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
            let sent = hop.sent();
            assert_eq!((sent.len(), ids(&sent[0]).1), (1, token.clone()));
            hop = Hop::new();
        }
    }
}

#[test]
fn longer_tokens_get_bad_request_and_go_nowhere() {
    let mut options = Vec::new();
    let mut writer = OptionsWriter::new(&mut options);
    writer.push_uint(OptionNumber::MAX_AGE, 0);
    let refusal = Content { code: Code::BAD_REQUEST, options: writer.finish(), payload: b"token too long" };
    for (gate, length) in [(Gate::Take, 1025), (Gate::TakeUnverified, 1025), (Gate::TakeUnverified, 2040)] {
        let mut hop = Hop::new();
        let token = vec![7; length];
        let ask = request(CON, 10, &token);
        assert_eq!(hop.receive_through(gate, PEER, &ask), Got::Nothing);
        let answer = bytes(MessageType::Acknowledgement, 10, &token, &refusal);
        assert_eq!(hop.sent(), std::slice::from_ref(&answer));
        assert_eq!(hop.receive_through(gate, PEER, &ask), Got::Nothing);
        assert_eq!(hop.sent(), [answer], "a repeat gets the same");
        assert_eq!(hop.receive_through(gate, PEER, &request(NON, 11, &token)), Got::Nothing);
        let sent = hop.sent();
        assert_eq!((sent.len(), sent[0][0] >> 4 & 3, sent[0][1]), (1, 1, Code::BAD_REQUEST.0));
        assert_eq!(hop.endpoint.counters().long_tokens, 2);
        assert_eq!(hop.endpoint.pending_requests(), 0);
        assert!(hop.wait(at(100_000)).is_empty());
    }
}

#[test]
fn what_is_kept_is_counted() {
    let mut hop = Hop::new();
    let kept = |hop: &Hop| (hop.endpoint.preserved_tokens(), hop.endpoint.peers(), hop.endpoint.remembered());
    assert_eq!(kept(&hop), (0, 0, 0));
    for token in [b"abcd", b"efgh", b"ijkl"] {
        ask(&mut hop, token);
    }
    assert_eq!(kept(&hop), (3, 1, 0));
    for (message_id, peer) in [(1, PEER), (2, PEER), (1, OTHER)] {
        hop.receive_from(peer, &request(NON, message_id, b"\xA1"));
    }
    assert_eq!(kept(&hop), (3, 1, 3), "no Message ID of ours was needed towards the other");
    assert_eq!((hop.endpoint.pending_requests(), hop.endpoint.outstanding()), (3, 3));
}

#[test]
fn a_request_under_a_token_of_the_callers_is_not_answered_under_one_of_ours() {
    let mut hop = Hop::new();
    let (exchange, sent) = ask(&mut hop, b"abcd");
    let seed = Seed::from_number(1);
    let ours = Tokens::new(std::array::from_fn(|byte| seed.0[byte])).token(exchange);
    let message_id = ids(&sent).0;
    assert_eq!(hop.receive(&bytes(MessageType::Acknowledgement, message_id, &ours, &RESPONSE)), Got::Nothing);
    assert_eq!(hop.receive(&bytes(NON, 1, &ours, &RESPONSE)), Got::Nothing);
    let (other, sent) = hop.request(true);
    assert_eq!(ids(&sent).1, Tokens::new(std::array::from_fn(|byte| seed.0[byte])).token(other));
    assert!(matches!(hop.receive(&bytes(NON, 1, b"abcd", &RESPONSE)), Got::Response(..)));
}

#[test]
fn who_asked_and_how_far_a_request_came_can_be_asked_for() {
    let mut hop = Hop::new();
    let Got::Request(asked) = hop.receive_from(OTHER, &request(CON, 1, b"\xA1")) else { panic!("a request") };
    assert_eq!(hop.endpoint.requester(asked), Some(OTHER));
    hop.endpoint.respond(asked, &RESPONSE, hop.now).expect("open");
    assert_eq!(hop.endpoint.requester(asked), None);
    let (exchange, sent) = ask(&mut hop, b"abcd");
    let trace = hop.endpoint.cancel(exchange).expect("under way");
    assert_eq!((trace.peer(), trace.message_id(), trace.copies()), (PEER, ids(&sent).0, 1));
    assert!(hop.endpoint.cancel(exchange).is_none() && hop.endpoint.trace(exchange).is_none());
}
