//! Requests of peers: which are taken, how long they are known, and those that get no response.

use std::cell::Cell;
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Event, Gate, Received, Refused, TransmissionParameters};
use coapway_message::{Code, Content, MessageType, datagram};

use crate::hop::{Got, Hop, OTHER, PEER, RESPONSE, at, bytes, empty_ack, request};

const CON: MessageType = MessageType::Confirmable;
const NON: MessageType = MessageType::NonConfirmable;

#[test]
fn the_gate_is_asked_about_new_requests_only() {
    let mut hop = Hop::new();
    let asked = Cell::new(0);
    let mut receive = |datagram: &[u8]| {
        let gate = || {
            asked.set(asked.get() + 1);
            Gate::Take
        };
        let got = hop.endpoint.handle_datagram(PEER, datagram, hop.now, gate);
        (matches!(got, Received::Request { .. }), asked.take())
    };
    assert_eq!(receive(&request(CON, 1, b"\xA1")), (true, 1));
    assert_eq!(receive(&request(CON, 1, b"\xA1")), (false, 0), "a repeat");
    assert_eq!(receive(&request(CON, 1, b"\xA2")), (true, 1), "another request under its Message ID");
    assert_eq!(receive(&bytes(NON, 2, b"\xA1", &RESPONSE)), (false, 0));
    assert_eq!(receive(&datagram::empty(CON, 3)), (false, 0));
    assert_eq!(receive(&[0x4F, 1, 0, 3]), (false, 0));
}

#[test]
fn what_is_not_taken_is_neither_remembered_nor_answered() {
    let mut hop = Hop::new();
    let ask = request(CON, 1, b"\xA1");
    assert_eq!(hop.receive_through(Gate::Drop, PEER, &ask), Got::Nothing);
    assert_eq!(hop.receive_through(Gate::Drop, PEER, &request(NON, 2, b"\xA1")), Got::Nothing);
    assert!(hop.wait(at(10_000)).is_empty() && hop.events().is_empty());
    assert_eq!((hop.endpoint.counters().dropped, hop.endpoint.remembered()), (2, 0));
    let Got::Request(exchange) = hop.receive(&ask) else { panic!("its next copy is new") };
    // A dropped one with the same Message ID leaves the other as it was.
    assert_eq!(hop.receive_through(Gate::Drop, PEER, &request(CON, 1, b"\xA2")), Got::Nothing);
    hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
    assert_eq!(hop.receive_through(Gate::Drop, PEER, &ask), Got::Nothing);
    assert_eq!(hop.sent().len(), 2, "repeats are answered from memory");
    assert_eq!(hop.endpoint.counters().reused_message_ids, 0);
}

#[test]
fn clients_lifetimes_rule_how_long_their_requests_are_known() {
    // Our own downstream parameters would give 204.6 s and 103.6 s (R-DED-02).
    let transmission = TransmissionParameters {
        ack_timeout: Duration::from_secs(1),
        ack_random_factor: 1.2,
        retry_jitter: 0.1,
        max_retransmit: 2,
    };
    let post = |message_type| bytes(message_type, 1, b"\xA1", &Content::bare(Code::POST));
    for (message_type, known, over) in [(CON, 240_000, 260_000), (NON, 144_900, 145_100)] {
        let mut hop = Hop::with(EndpointParameters { transmission, ..EndpointParameters::default() });
        let Got::Request(exchange) = hop.receive(&post(message_type)) else { panic!("a request") };
        hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
        let answer = hop.sent();
        hop.wait(at(known));
        assert_eq!(hop.receive(&post(message_type)), Got::Nothing);
        let again = if message_type == CON { answer } else { Vec::new() };
        assert_eq!(hop.sent(), again);
        // Without any other request in between.
        hop.wait(at(over));
        assert!(matches!(hop.receive(&post(message_type)), Got::Request(_)));
        assert_eq!(hop.endpoint.counters().reused_message_ids, 0);
    }
}

#[test]
fn the_same_message_id_of_two_peers_is_two_requests() {
    let mut hop = Hop::new();
    assert!(matches!(hop.receive(&request(CON, 1, b"\xA1")), Got::Request(_)));
    assert!(matches!(hop.receive_from(OTHER, &request(CON, 1, b"\xA1")), Got::Request(_)));
    assert_eq!(hop.receive(&request(CON, 1, b"\xA1")), Got::Nothing);
}

#[test]
fn silence_still_acknowledges_and_does_so_for_ever() {
    for acknowledged in [false, true] {
        let mut hop = Hop::new();
        let ask = request(CON, 10, b"\xA1");
        let Got::Request(exchange) = hop.receive(&ask) else { panic!("a request") };
        if acknowledged {
            hop.wait(at(1_000));
        }
        assert_eq!(hop.endpoint.stay_silent(exchange, hop.now), Ok(()));
        assert_eq!(hop.sent(), if acknowledged { vec![] } else { vec![empty_ack(10)] });
        assert_eq!(hop.endpoint.stay_silent(exchange, hop.now), Err(Refused::Unknown));
        assert_eq!(hop.endpoint.respond(exchange, &RESPONSE, hop.now), Err(Refused::Unknown));
        for seconds in [3, 100, 240] {
            assert!(hop.wait(at(seconds * 1000)).is_empty());
            assert_eq!(hop.receive(&ask), Got::Nothing);
            assert_eq!(hop.sent(), [empty_ack(10)]);
        }
        let acknowledgements =
            hop.events().iter().filter(|event| matches!(event, Event::EmptyAckSent { .. })).count();
        assert_eq!(
            acknowledgements,
            usize::from(acknowledged),
            "nobody is told of the one that is no early one"
        );
        assert_eq!(hop.endpoint.pending_requests(), 0);
    }
}

#[test]
fn silence_towards_a_non_confirmable_request_is_silence() {
    let mut hop = Hop::new();
    let ask = request(NON, 10, b"\xA1");
    let Got::Request(exchange) = hop.receive(&ask) else { panic!("a request") };
    assert_eq!(hop.endpoint.stay_silent(exchange, hop.now), Ok(()));
    assert_eq!(hop.receive(&ask), Got::Nothing);
    assert!(hop.sent().is_empty() && hop.wait(at(100_000)).is_empty());
}

#[test]
fn an_acknowledgement_on_demand_leaves_once_and_only_while_the_request_is_open() {
    let mut hop = Hop::new();
    let Got::Request(exchange) = hop.receive(&request(CON, 10, b"\xA1")) else { panic!("a request") };
    hop.endpoint.acknowledge_early(exchange);
    hop.endpoint.acknowledge_early(exchange);
    assert_eq!(hop.sent(), [empty_ack(10)]);
    assert!(hop.wait(at(1_000)).is_empty(), "its timer is gone");
    hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
    assert_eq!(hop.sent().len(), 1);
    hop.endpoint.acknowledge_early(exchange);
    assert!(hop.sent().is_empty());
    let Got::Request(non) = hop.receive(&request(NON, 11, b"\xA1")) else { panic!("a request") };
    hop.endpoint.acknowledge_early(non);
    assert!(hop.sent().is_empty());
}
