//! Each copy under a Message ID of its own: which one was answered is no guess.

use std::time::Duration;

use coapway_endpoint::{AnswerKind, Event, Schedule, TransmissionParameters};
use coapway_message::{Code, Content, ExchangeId, Failure, MessageType, datagram};
use coapway_time::Instant;

use crate::hop::{Got, Hop, PEER, RESPONSE, at, bytes, empty_ack, failure, ids};

/// A GET of which each copy has a Message ID of its own, after so many copies. When each left, and under
/// which Message ID.
fn asked(hop: &mut Hop, copies: usize) -> (ExchangeId, Vec<u8>, Vec<(Instant, u16)>) {
    let plain = Schedule::new(&TransmissionParameters::default(), hop.now);
    let schedule = Schedule { fresh_ids: true, deadline: hop.now + Duration::from_secs(90), ..plain };
    let content = Content::bare(Code::GET);
    let exchange = hop
        .endpoint
        .send_request(&PEER, true, None, &content, &schedule, hop.now)
        .expect("Message IDs are free");
    let (first, token) = ids(&hop.sent()[0]);
    let mut left = vec![(hop.now, first)];
    while left.len() < copies {
        let wake = hop.endpoint.poll_timeout().expect("a copy is to leave");
        for (millis, datagram) in hop.wait(wake) {
            let (id, same) = ids(&datagram);
            assert_eq!((same, &datagram[..2]), (token.clone(), &[0x48, 1][..]), "all but the Message ID");
            left.push((at(millis), id));
        }
    }
    (exchange, token, left)
}

fn reset(message_id: u16) -> Vec<u8> {
    datagram::empty(MessageType::Reset, message_id).to_vec()
}

/// To the microsecond, as far as a wake says when a copy left.
fn is_about(round_trip: Option<Duration>, millis: u64) -> bool {
    round_trip.is_some_and(|it| it.abs_diff(Duration::from_millis(millis)) < Duration::from_millis(2))
}

#[test]
fn copies_differ_in_their_message_id_and_in_nothing_else() {
    let mut hop = Hop::new();
    let (exchange, _, left) = asked(&mut hop, 5);
    let ids: std::collections::BTreeSet<_> = left.iter().map(|&(_, id)| id).collect();
    assert_eq!(ids.len(), 5);
    let course = hop.endpoint.trace(exchange).expect("under way").trace();
    assert!(course.copies.iter().map(|copy| copy.message_id).eq(left.iter().map(|&(_, id)| id)));
    assert_eq!(hop.endpoint.outstanding(), 1);
}

#[test]
fn an_acknowledgement_of_any_copy_ends_the_copies_and_is_an_exact_sample() {
    for copy in 0..3 {
        let mut hop = Hop::new();
        let (exchange, token, left) = asked(&mut hop, 3);
        hop.events();
        hop.now += Duration::from_millis(70);
        hop.receive(&empty_ack(left[copy].1));
        let told = hop.events();
        let [Event::Acknowledged { exchange: of, round_trip }] = told[..] else { panic!("{told:?}") };
        assert_eq!(of, exchange);
        let millis = hop.now.since(left[copy].0).as_millis() as u64;
        assert!(is_about(round_trip, millis), "copy {copy}: {round_trip:?}, {millis} ms");
        assert!(hop.wait(hop.now + Duration::from_secs(60)).is_empty(), "no further copy");
        // The response comes separately; by its token it is of all copies.
        let response = bytes(MessageType::Confirmable, 9, &token, &RESPONSE);
        assert_eq!(hop.receive(&response), Got::Response(exchange, AnswerKind::Separate, Code::CONTENT));
        assert_eq!(hop.sent(), [empty_ack(9)]);
        let trace = hop.endpoint.ended(exchange).expect("just now").trace();
        assert_eq!(trace.first_ack_id, Some(left[copy].1));
    }
}

#[test]
fn a_response_in_the_acknowledgement_of_any_copy_answers() {
    for copy in 0..3 {
        let mut hop = Hop::new();
        let (exchange, token, left) = asked(&mut hop, 3);
        hop.now += Duration::from_millis(10);
        let wrong = bytes(MessageType::Acknowledgement, left[copy].1, b"12345678", &RESPONSE);
        assert_eq!(hop.receive(&wrong), Got::Nothing, "the token must be right");
        let response = bytes(MessageType::Acknowledgement, left[copy].1, &token, &RESPONSE);
        assert_eq!(hop.receive(&response), Got::Response(exchange, AnswerKind::Piggybacked, Code::CONTENT));
        let course = hop.endpoint.ended(exchange).expect("just now");
        assert_eq!(course.first_ack_id(), Some(left[copy].1));
        let millis = hop.now.since(left[copy].0).as_millis() as u64;
        assert!(is_about(course.exact_round_trip(), millis));
        // Acknowledgements of the others are late: told, and never rejected.
        hop.events();
        for &(_, id) in &left {
            let response = bytes(MessageType::Acknowledgement, id, &token, &RESPONSE);
            assert_eq!(hop.receive(&response), Got::Nothing);
            let told = hop.events();
            assert!(matches!(told[..], [Event::AcknowledgedAgain { message_id, .. }] if message_id == id));
        }
        let late = bytes(MessageType::Confirmable, 9, &token, &RESPONSE);
        assert_eq!(hop.receive(&late), Got::Nothing);
        assert_eq!(hop.sent(), [empty_ack(9)], "a late response is acknowledged");
    }
}

#[test]
fn further_acknowledgements_say_by_their_message_id_of_which_copy_they_are() {
    let mut hop = Hop::new();
    let (_, _, left) = asked(&mut hop, 3);
    hop.receive(&empty_ack(left[1].1));
    hop.events();
    for copy in [0, 2] {
        hop.receive(&empty_ack(left[copy].1));
        let told = hop.events();
        let id = left[copy].1;
        assert!(matches!(told[..], [Event::AcknowledgedAgain { message_id, .. }] if message_id == id));
    }
}

#[test]
fn only_the_reset_of_the_copy_that_counts_ends_a_request() {
    // None is acknowledged: an older copy may have been rejected and a newer one taken.
    let mut hop = Hop::new();
    let (_, _, left) = asked(&mut hop, 2);
    hop.receive(&reset(left[0].1));
    assert!(failure(&hop.events()).is_none());
    hop.receive(&reset(left[1].1));
    assert_eq!(failure(&hop.events()).expect("over").0, Failure::Reset);
    // The first is acknowledged: what becomes of the second matters no more.
    let (_, _, left) = asked(&mut hop, 2);
    hop.receive(&empty_ack(left[0].1));
    hop.receive(&reset(left[1].1));
    assert!(failure(&hop.events()).is_none());
    hop.receive(&reset(left[0].1));
    assert_eq!(failure(&hop.events()).expect("over").0, Failure::Reset);
    assert_eq!(hop.endpoint.outstanding(), 0);
}

#[test]
fn an_icmp_error_about_any_copy_ends_a_request() {
    for copy in 0..3 {
        let mut hop = Hop::new();
        let (_, token, left) = asked(&mut hop, 3);
        let quote = |id, token: &[u8]| bytes(MessageType::Confirmable, id, token, &Content::bare(Code::GET));
        hop.endpoint.handle_unreachable(
            &PEER,
            &quote(left[copy].1, b"12345678"),
            Failure::Unreachable,
            hop.now,
        );
        assert!(failure(&hop.events()).is_none());
        hop.endpoint.handle_unreachable(&PEER, &quote(left[copy].1, &token), Failure::Unreachable, hop.now);
        assert_eq!(failure(&hop.events()).expect("over").0, Failure::Unreachable);
        hop.endpoint.check_invariants();
    }
}

#[test]
fn broken_content_in_the_acknowledgement_of_any_copy_ends_a_request() {
    for copy in 0..2 {
        let mut hop = Hop::new();
        let (_, token, left) = asked(&mut hop, 2);
        let mut broken = bytes(MessageType::Acknowledgement, left[copy].1, &token, &RESPONSE);
        // A payload marker without a payload (RFC 7252 §3).
        broken.push(0xFF);
        hop.receive(&broken);
        assert_eq!(failure(&hop.events()).expect("over").0, Failure::Unusable);
    }
}

#[test]
fn without_a_free_message_id_a_copy_leaves_under_the_last_one() {
    let mut hop = Hop::new();
    let (exchange, _, left) = asked(&mut hop, 2);
    // All others are taken.
    let schedule = Schedule::new(&TransmissionParameters::default(), hop.now);
    let mut others = Vec::new();
    while let Ok(other) =
        hop.endpoint.send_request(&PEER, false, None, &Content::bare(Code::GET), &schedule, hop.now)
    {
        others.push(other);
        hop.sent();
    }
    assert_eq!(others.len(), 65_536 - 2, "those of both copies rest as well");
    for other in others {
        hop.endpoint.cancel(other);
    }
    let third = hop.wait(hop.now + Duration::from_secs(7)).remove(0).1;
    assert_eq!(ids(&third).0, left[1].1);
    // So an Acknowledgement under it may be of either; one of the first is of the first.
    hop.events();
    hop.receive(&empty_ack(left[1].1));
    let told = hop.events();
    assert!(matches!(told[..], [Event::Acknowledged { round_trip: None, .. }]), "{told:?}");
    assert_eq!(hop.endpoint.trace(exchange).expect("under way").first_ack_id(), Some(left[1].1));
}

#[test]
fn what_is_given_up_leads_nowhere_under_any_of_its_message_ids() {
    let mut hop = Hop::new();
    let (exchange, _, left) = asked(&mut hop, 4);
    hop.endpoint.cancel(exchange);
    hop.endpoint.check_invariants();
    hop.events();
    for &(_, id) in &left {
        hop.receive(&reset(id));
        hop.receive(&empty_ack(id));
    }
    let told = hop.events();
    assert!(told.len() == 4 && told.iter().all(|event| matches!(event, Event::AcknowledgedAgain { .. })));
    assert!(hop.sent().is_empty());
}
