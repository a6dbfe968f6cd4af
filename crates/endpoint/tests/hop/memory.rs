//! Requests of peers: which are taken, how long they are known, and those that get no response.

use std::cell::Cell;
use std::time::Duration;

use coapway_endpoint::{
    DuplicatesParameters, EndpointParameters, Event, Gate, Nstart, Received, Refused, TransmissionParameters,
};
use coapway_message::{Code, Content, Failure, MessageType, OptionNumber, OptionsWriter, datagram};

use crate::hop::{Got, Hop, OTHER, PEER, RESPONSE, at, bytes, empty_ack, ids, request};

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
        let got = hop.endpoint.handle_datagram(&PEER, datagram, hop.now, gate);
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

#[test]
fn what_oscore_hides_is_kept_like_a_post() {
    let memory = DuplicatesParameters { memory: 2000 };
    let mut hop = Hop::with(EndpointParameters { duplicates: memory, ..EndpointParameters::default() });
    let mut options = Vec::new();
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(OptionNumber::OSCORE, b"");
    let hidden = Content { code: Code::FETCH, options: writer.finish(), payload: b"" };
    let hidden = |message_type, message_id| bytes(message_type, message_id, b"\xA1", &hidden);
    let taken = (1..).take_while(|&message_id| hop.receive(&hidden(CON, message_id)) != Got::Nothing).count();
    assert!((2..40).contains(&taken), "{taken}");
    assert_eq!((hop.sent().len(), hop.endpoint.counters().refused), (1, 1), "it is told");
    for message_id in 100..200 {
        let ask = request(if message_id < 150 { CON } else { NON }, message_id, b"\xA1");
        assert!(matches!(hop.receive(&ask), Got::Request(_)), "each makes room for the next");
    }
    assert!((60..100).contains(&hop.endpoint.counters().forgotten));
    assert_eq!(hop.receive(&hidden(NON, 200)), Got::Nothing, "neither may be done twice");
    assert_eq!((hop.sent().len(), hop.endpoint.counters().refused), (0, 2));
    for message_id in 1..=taken as u16 {
        assert_eq!(hop.receive(&hidden(CON, message_id)), Got::Nothing, "a repeat");
    }
    assert_eq!((hop.endpoint.counters().duplicates, hop.endpoint.counters().refused), (taken as u64, 2));
}

#[test]
fn answers_that_need_room_cost_others_theirs_and_are_counted() {
    let memory = DuplicatesParameters { memory: 1000 };
    let mut hop = Hop::with(EndpointParameters { duplicates: memory, ..EndpointParameters::default() });
    let asked: Vec<_> = (1..=6).map(|message_id| hop.receive(&request(CON, message_id, b"\xA1"))).collect();
    for got in asked {
        let Got::Request(exchange) = got else { panic!("a request") };
        let answer = Content { payload: &[b'x'; 200], ..RESPONSE };
        hop.endpoint.respond(exchange, &answer, hop.now).expect("open");
    }
    let (remembered, forgotten) = (hop.endpoint.remembered(), hop.endpoint.counters().forgotten);
    assert!(remembered >= 2 && forgotten >= 2 && remembered as u64 + forgotten == 6);
}

#[test]
fn without_a_message_id_nothing_leaves_and_that_is_told_and_counted() {
    let mut hop = Hop::with(EndpointParameters { nstart: Nstart::Fixed(1), ..EndpointParameters::default() });
    let separate: Vec<_> = (1..=67)
        .map(|message_id| {
            let got = hop.receive(&request(CON, message_id, b"\xA1"));
            let Got::Request(exchange) = got else { panic!("a request") };
            hop.endpoint.acknowledge_early(exchange);
            exchange
        })
        .collect();
    hop.sent();
    // One leaves and 64 wait in line behind it.
    for &exchange in &separate[..65] {
        assert_eq!(hop.endpoint.respond(exchange, &RESPONSE, hop.now), Ok(()));
    }
    let under_way = hop.sent().remove(0);
    hop.events();
    // The other 65 535 Message IDs towards this peer are used up by Non-confirmable answers.
    let mut left = 1_u32;
    let refused = loop {
        let ask = request(NON, left as u16 ^ 0x8000, &left.to_be_bytes());
        let got = hop.endpoint.handle_datagram(&PEER, &ask, hop.now, || Gate::Take);
        let Received::Request { exchange, .. } = got else { panic!("a request") };
        match hop.endpoint.respond(exchange, &RESPONSE, hop.now) {
            Ok(()) => left += 1,
            Err(refused) => break refused,
        }
        while hop.endpoint.poll_transmit().is_some() {}
    };
    assert_eq!((left, refused), (65_536, Refused::MessageIds));
    assert_eq!(hop.endpoint.counters().unsendable, 1);

    let undelivered = |hop: &mut Hop| {
        let is_one = |event: &Event| {
            matches!(event, Event::Delivered { outcome: Err(Failure::Overloaded), copies: 0, .. })
        };
        hop.events().iter().filter(|event| is_one(event)).count()
    };
    assert_eq!(hop.endpoint.respond(separate[65], &RESPONSE, hop.now), Ok(()), "the line is full");
    assert_eq!((undelivered(&mut hop), hop.endpoint.counters().unsendable), (1, 2));
    hop.receive(&empty_ack(ids(&under_way).0));
    assert_eq!((undelivered(&mut hop), hop.endpoint.counters().unsendable), (64, 66));
    assert_eq!(hop.endpoint.respond(separate[66], &RESPONSE, hop.now), Err(Refused::MessageIds));
    assert_eq!((hop.endpoint.counters().unsendable, hop.endpoint.counters().unconfirmed), (67, 0));
    assert!(hop.sent().is_empty() && hop.endpoint.outstanding() == 0);
}

#[test]
fn what_is_over_is_forgotten_although_nothing_comes() {
    let mut hop = Hop::new();
    for message_id in 1..=3 {
        let Got::Request(exchange) = hop.receive(&request(CON, message_id, b"\xA1")) else { panic!("new") };
        hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
    }
    hop.wait(at(246_000));
    assert_eq!(hop.endpoint.remembered(), 3, "their sender may repeat them for 247 s");
    hop.wait(at(260_000));
    assert_eq!(hop.endpoint.remembered(), 0);
    assert_eq!(hop.endpoint.poll_timeout(), None, "and nothing is left to wake up for");
}
