//! NSTART towards clients: one unacknowledged separate response at a time, the others in order
//! (R-CCN-05, R-ATK-06; RFC 7252 §4.7).

use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Event, Nstart, Peer, TransmissionParameters};
use coapway_message::{ExchangeId, Failure, MessageType, datagram};

use crate::hop::{Got, Hop, OTHER, PEER, RESPONSE, at, empty_ack, ids, request};

const CON: MessageType = MessageType::Confirmable;

fn downstream() -> EndpointParameters {
    EndpointParameters {
        transmission: TransmissionParameters {
            ack_timeout: Duration::from_secs(1),
            ack_random_factor: 1.2,
            retry_jitter: 0.1,
            max_retransmit: 2,
        },
        max_wait: Duration::from_secs(10),
        ..EndpointParameters::default()
    }
}

/// Requests with Message IDs and tokens from `first` on, acknowledged and not yet answered.
fn open(hop: &mut Hop, peer: Peer, first: u8, count: u8) -> Vec<ExchangeId> {
    let mut exchanges = Vec::new();
    for number in first..first + count {
        let got = hop.receive_from(peer, &request(CON, number.into(), &[number]));
        let Got::Request(exchange) = got else { panic!("a request, not {got:?}") };
        exchanges.push(exchange);
    }
    hop.wait(hop.now + Duration::from_secs(1));
    exchanges
}

fn respond(hop: &mut Hop, exchange: ExchangeId) {
    hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
    hop.endpoint.check_invariants();
}

/// Type bits and first token byte of each datagram.
fn shape(sent: &[Vec<u8>]) -> Vec<(u8, u8)> {
    sent.iter().map(|datagram| (datagram[0] >> 4 & 3, ids(datagram).1[0])).collect()
}

fn acknowledge(hop: &mut Hop, peer: Peer, response: &[u8]) {
    hop.receive_from(peer, &datagram::empty(MessageType::Acknowledgement, ids(response).0));
}

fn outcomes(events: Vec<Event>) -> Vec<(Result<(), Failure>, u32)> {
    let outcome = |event| match event {
        Event::Delivered { outcome, copies, .. } => Some((outcome, copies)),
        Event::EmptyAckSent { .. }
        | Event::Repeated { .. }
        | Event::Acknowledged { .. }
        | Event::Retransmitted { .. }
        | Event::Exhausted { .. }
        | Event::Failed { .. }
        | Event::AcknowledgedAgain { .. }
        | Event::Alive { .. } => None,
    };
    events.into_iter().filter_map(outcome).collect()
}

#[test]
fn separate_responses_leave_one_after_the_other_and_in_order() {
    let mut hop = Hop::with(EndpointParameters { nstart: Nstart::Fixed(1), ..downstream() });
    for exchange in open(&mut hop, PEER, 1, 4) {
        respond(&mut hop, exchange);
    }
    assert_eq!(hop.endpoint.outstanding(), 4);
    for token in 1..=4 {
        let sent = hop.sent();
        assert_eq!(shape(&sent), [(0, token)]);
        acknowledge(&mut hop, PEER, &sent[0]);
    }
    assert_eq!(outcomes(hop.events()), [(Ok(()), 1); 4]);
    assert_eq!((hop.endpoint.outstanding(), hop.endpoint.counters().waited), (0, 3));
}

#[test]
fn the_window_grows_while_a_client_acknowledges() {
    let mut hop = Hop::new();
    for exchange in open(&mut hop, PEER, 1, 60) {
        respond(&mut hop, exchange);
    }
    let mut rounds = 0;
    loop {
        let sent = hop.sent();
        if sent.is_empty() {
            break;
        }
        rounds += 1;
        sent.iter().for_each(|response| acknowledge(&mut hop, PEER, response));
    }
    assert!(rounds <= 7, "{rounds} round trips for 60 responses");
    assert_eq!(outcomes(hop.events()), [(Ok(()), 1); 60]);
}

#[test]
fn a_client_that_falls_silent_gets_half_as_many_at_a_time() {
    let once = TransmissionParameters { max_retransmit: 0, ..downstream().transmission };
    let mut hop = Hop::with(EndpointParameters { transmission: once, ..downstream() });
    let exchanges = open(&mut hop, PEER, 1, 35);
    exchanges[..15].iter().for_each(|&exchange| respond(&mut hop, exchange));
    for (leave, come_back) in [(1, 1), (2, 2), (4, 4), (8, 7)] {
        let sent = hop.sent();
        assert_eq!(sent.len(), leave);
        sent[..come_back].iter().for_each(|response| acknowledge(&mut hop, PEER, response));
    }
    hop.wait(hop.now + Duration::from_millis(100));
    exchanges[15..].iter().for_each(|&exchange| respond(&mut hop, exchange));
    assert_eq!((hop.sent().len(), hop.endpoint.waiting_responses()), (7, 13), "eight are under way");
    hop.wait(hop.now + Duration::from_millis(1_250));
    assert_eq!(hop.endpoint.waiting_responses(), 9, "and then four");
}

#[test]
fn a_number_is_the_window() {
    let mut hop = Hop::with(EndpointParameters { nstart: Nstart::Fixed(3), ..downstream() });
    for exchange in open(&mut hop, PEER, 1, 5) {
        respond(&mut hop, exchange);
    }
    assert_eq!(shape(&hop.sent()), [(0, 1), (0, 2), (0, 3)]);
}

#[test]
fn clients_do_not_delay_each_other() {
    let mut hop = Hop::with(downstream());
    let silent = open(&mut hop, PEER, 1, 3);
    let other = open(&mut hop, OTHER, 9, 1);
    silent.into_iter().for_each(|exchange| respond(&mut hop, exchange));
    respond(&mut hop, other[0]);
    assert_eq!(shape(&hop.sent()), [(0, 1), (0, 9)]);
}

#[test]
fn the_next_turn_comes_when_a_response_is_given_up() {
    let mut hop = Hop::with(downstream());
    let exchanges = open(&mut hop, PEER, 1, 2);
    respond(&mut hop, exchanges[0]);
    hop.wait(at(4_000));
    respond(&mut hop, exchanges[1]);
    let sent = hop.wait(at(10_990));
    assert!(sent.iter().all(|(_, copy)| shape(std::slice::from_ref(copy)) == [(0, 1)]), "{sent:?}");
    let sent = hop.wait(at(11_010));
    assert_eq!((sent.len(), shape(&[sent[0].1.clone()])), (1, vec![(0, 2)]));
}

#[test]
fn what_waited_too_long_leaves_once_and_non_confirmable() {
    // The first is under way for 10 s from 1 s on, then the second until 21 s; the third is ready at 3 s.
    let mut hop = Hop::with(downstream());
    let first = open(&mut hop, PEER, 1, 1)[0];
    respond(&mut hop, first);
    hop.sent();
    let [second, third] = [open(&mut hop, PEER, 2, 1)[0], open(&mut hop, PEER, 3, 1)[0]];
    respond(&mut hop, second);
    respond(&mut hop, third);
    let sent = hop.wait(at(60_000));
    let of_third: Vec<_> = sent.iter().filter(|(_, copy)| ids(copy).1 == [3]).collect();
    assert_eq!(of_third.len(), 1, "{sent:?}");
    let (left, copy) = of_third[0];
    assert_eq!(shape(std::slice::from_ref(copy)), [(1, 3)]);
    assert!((13_000..13_010).contains(left), "max_wait after it was ready: {left}");
    assert_eq!(
        outcomes(hop.events()),
        [(Err(Failure::TimedOut), 3), (Err(Failure::TimedOut), 1), (Err(Failure::TimedOut), 3)]
    );
    assert_eq!((hop.endpoint.outstanding(), hop.endpoint.counters().unconfirmed), (0, 1));
}

#[test]
fn the_delivery_time_of_one_that_waited_runs_from_its_first_copy() {
    let mut hop = Hop::with(downstream());
    let exchanges = open(&mut hop, PEER, 1, 2);
    exchanges.into_iter().for_each(|exchange| respond(&mut hop, exchange));
    let first = hop.sent();
    hop.wait(at(8_000));
    acknowledge(&mut hop, PEER, &first[0]);
    assert_eq!(shape(&hop.sent()), [(0, 2)]);
    hop.events();
    let copies = hop.wait(at(17_990));
    assert_eq!(copies.len(), 2, "{copies:?}");
    assert!(hop.events().is_empty());
    hop.wait(at(18_010));
    assert_eq!(outcomes(hop.events()), [(Err(Failure::TimedOut), 3)]);
}

#[test]
fn a_full_line_lets_answers_leave_at_once() {
    let mut hop = Hop::with(downstream());
    for exchange in open(&mut hop, PEER, 1, 66) {
        respond(&mut hop, exchange);
    }
    assert_eq!(shape(&hop.sent()), [(0, 1), (1, 66)]);
    assert_eq!(outcomes(hop.events()), [(Err(Failure::Overloaded), 1)]);
    assert_eq!(hop.endpoint.waiting_responses(), 64);
}

#[test]
fn all_lines_together_are_bounded() {
    let mut hop = Hop::with(downstream());
    for port in 0..65 {
        let peer = Peer { remote: ([127, 0, 0, 1], 10_000 + port).into(), ..PEER };
        for number in 1..=65 {
            let Got::Request(exchange) = hop.receive_from(peer, &request(CON, number, &[1])) else {
                panic!("a request")
            };
            hop.endpoint.acknowledge_early(exchange);
            hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
        }
    }
    assert_eq!((hop.endpoint.waiting_responses(), hop.endpoint.counters().unconfirmed), (4096, 64));
    hop.wait(at(400_000));
    assert_eq!((hop.endpoint.outstanding(), hop.endpoint.waiting_responses()), (0, 0));
    assert_eq!(outcomes(hop.events()).len(), 65 * 65, "each is told once");
}

#[test]
fn a_repeat_is_acknowledged_while_its_response_waits() {
    let mut hop = Hop::with(downstream());
    let exchanges = open(&mut hop, PEER, 1, 2);
    exchanges.into_iter().for_each(|exchange| respond(&mut hop, exchange));
    let first = hop.sent();
    hop.receive(&request(CON, 2, &[2]));
    assert_eq!(hop.sent(), [empty_ack(2)]);
    acknowledge(&mut hop, PEER, &first[0]);
    assert_eq!(shape(&hop.sent()), [(0, 2)]);
    hop.now += Duration::from_secs(1);
    hop.receive(&request(CON, 2, &[2]));
    assert_eq!(hop.sent().len(), 2, "acknowledged, and drawn anew");
}

#[test]
fn a_reset_ends_a_turn_as_well() {
    let mut hop = Hop::with(downstream());
    let exchanges = open(&mut hop, PEER, 1, 2);
    exchanges.into_iter().for_each(|exchange| respond(&mut hop, exchange));
    let first = hop.sent();
    hop.receive(&datagram::empty(MessageType::Reset, ids(&first[0]).0));
    assert_eq!(shape(&hop.sent()), [(0, 2)]);
    assert_eq!(outcomes(hop.events()), [(Err(Failure::Reset), 1)]);
}
