//! The message layer as the RFC tells it: both roles, one peer.

use std::time::Duration;

use coapway_endpoint::{
    AnswerKind, Endpoint, EndpointParameters, Event, Schedule, Seed, TransmissionParameters,
};
use coapway_message::{Code, Content, Failure, MessageType, datagram};
use coapway_time::Instant;

use crate::hop::{Got, Hop, OTHER, PEER, RESPONSE, at, bytes, failure, ids};

#[test]
fn an_unanswered_request_leaves_five_times_and_then_fails() {
    let mut hop = Hop::new();
    let (_, first) = hop.request(true);
    let copies = hop.wait(at(92_000));
    assert_eq!(copies.len(), 4);
    assert!(copies.iter().all(|(_, copy)| *copy == first), "all copies are the same bytes");
    let times: Vec<_> = copies.iter().map(|(millis, _)| *millis as f64).collect();
    assert!((2000.0..=3001.0).contains(&times[0]), "{times:?}");
    for (k, pair) in times.windows(2).enumerate() {
        let ratio = (pair[1] - pair[0]) / times[0] / 2f64.powi(k as i32 + 1);
        assert!((0.99..1.01).contains(&ratio), "{times:?}");
    }
    assert!(times[3] <= 45_002.0);
    hop.wait(at(93_002));
    let events = hop.events();
    assert_eq!(
        failure(&events).map(|(failure, trace)| (failure, trace.copies.len())),
        Some((Failure::TimedOut, 5))
    );
    assert_eq!(hop.endpoint.outstanding(), 0);
}

#[test]
fn a_late_wake_brings_no_burst() {
    let mut hop = Hop::new();
    hop.request(true);
    hop.now = at(20_000);
    hop.endpoint.handle_timeout(hop.now);
    assert_eq!(hop.sent().len(), 1);
    let later = hop.wait(at(60_000));
    assert!(later.iter().all(|(millis, _)| *millis >= 24_000 && *millis <= 45_002), "{later:?}");
}

#[test]
fn takes_a_piggybacked_response_only_with_message_id_token_and_source() {
    let mut hop = Hop::new();
    let (exchange, request) = hop.request(true);
    let (message_id, token) = ids(&request);
    let ack = MessageType::Acknowledgement;
    assert_eq!(hop.receive(&bytes(ack, message_id ^ 1, &token, &RESPONSE)), Got::Nothing);
    assert_eq!(hop.receive(&bytes(ack, message_id, b"wrong567", &RESPONSE)), Got::Nothing);
    assert_eq!(hop.receive(&datagram::empty(ack, message_id ^ 1)), Got::Nothing);
    assert_eq!(hop.receive(&datagram::empty(MessageType::Reset, message_id ^ 1)), Got::Nothing);
    // Another port of the same host.
    assert_eq!(hop.receive_from(OTHER, &bytes(ack, message_id, &token, &RESPONSE)), Got::Nothing);
    assert_eq!(hop.receive_from(OTHER, &datagram::empty(ack, message_id)), Got::Nothing);
    assert_eq!(hop.receive_from(OTHER, &datagram::empty(MessageType::Reset, message_id)), Got::Nothing);
    let is_none = |event: &Event| matches!(event, Event::AcknowledgedAgain { .. });
    assert!(hop.events().iter().all(is_none), "none of them is for the request");
    assert_eq!(hop.wait(at(3_002)).len(), 1, "none of them stopped retransmission");
    let right = bytes(ack, message_id, &token, &RESPONSE);
    assert_eq!(hop.receive(&right), Got::Response(exchange, AnswerKind::Piggybacked, Code::CONTENT));
    assert_eq!(hop.receive(&right), Got::Nothing);
    assert!(hop.wait(at(100_000)).is_empty() && hop.sent().is_empty());
}

#[test]
fn an_acknowledgement_stops_copies_and_gives_an_exact_sample() {
    let mut hop = Hop::new();
    let (exchange, request) = hop.request(true);
    let (message_id, token) = ids(&request);
    hop.now = at(300);
    hop.receive(&datagram::empty(MessageType::Acknowledgement, message_id));
    let events = hop.events();
    assert!(
        matches!(events[..], [Event::Acknowledged { round_trip: Some(sample), .. }] if sample == Duration::from_millis(300)),
        "{events:?}"
    );
    assert!(hop.wait(at(20_000)).is_empty());
    let separate = bytes(MessageType::Confirmable, 77, &token, &RESPONSE);
    assert_eq!(hop.receive(&separate), Got::Response(exchange, AnswerKind::Separate, Code::CONTENT));
    assert_eq!(hop.sent(), [datagram::empty(MessageType::Acknowledgement, 77)]);
    // A repeat is acknowledged again and delivered no more.
    assert_eq!(hop.receive(&separate), Got::Nothing);
    assert_eq!(hop.sent(), [datagram::empty(MessageType::Acknowledgement, 77)]);
}

#[test]
fn an_acknowledgement_after_a_second_copy_gives_no_sample() {
    let mut hop = Hop::new();
    let (_, request) = hop.request(true);
    hop.wait(at(3_002));
    hop.events();
    hop.receive(&datagram::empty(MessageType::Acknowledgement, ids(&request).0));
    assert!(matches!(hop.events()[..], [Event::Acknowledged { round_trip: None, .. }]));
}

#[test]
fn a_separate_response_without_acknowledgement_stops_copies() {
    for message_type in [MessageType::Confirmable, MessageType::NonConfirmable] {
        let mut hop = Hop::new();
        let (_, request) = hop.request(true);
        let response = bytes(message_type, 5, &ids(&request).1, &RESPONSE);
        assert!(matches!(hop.receive(&response), Got::Response(..)));
        let acknowledged = usize::from(message_type == MessageType::Confirmable);
        assert_eq!(hop.sent().len(), acknowledged);
        assert!(hop.wait(at(100_000)).is_empty());
    }
}

#[test]
fn a_reset_fails_the_request_and_an_unknown_one_does_not() {
    let mut hop = Hop::new();
    let (_, request) = hop.request(true);
    let message_id = ids(&request).0;
    hop.receive(&datagram::empty(MessageType::Reset, message_id ^ 1));
    hop.receive_from(OTHER, &datagram::empty(MessageType::Reset, message_id));
    assert!(hop.events().is_empty());
    hop.receive(&datagram::empty(MessageType::Reset, message_id));
    assert_eq!(failure(&hop.events()).map(|(failure, _)| failure), Some(Failure::Reset));
}

#[test]
fn a_broken_response_with_our_token_is_unusable() {
    let mut hop = Hop::new();
    let (_, request) = hop.request(true);
    let (message_id, token) = ids(&request);
    let mut broken = bytes(MessageType::Acknowledgement, message_id, &token, &RESPONSE);
    broken.push(0xFF);
    hop.receive(&broken);
    assert_eq!(failure(&hop.events()).map(|(failure, _)| failure), Some(Failure::Unusable));
}

#[test]
fn icmp_counts_only_with_a_matching_quotation() {
    let mut hop = Hop::new();
    let (_, request) = hop.request(true);
    let mut forged = request.clone();
    forged[5] ^= 1;
    for (peer, quoted) in [(PEER, &forged[..]), (OTHER, &request[..]), (PEER, &[][..])] {
        hop.endpoint.handle_unreachable(&peer, quoted, Failure::Unreachable, hop.now);
        assert!(hop.events().is_empty());
    }
    hop.endpoint.handle_unreachable(&PEER, &request, Failure::Unreachable, hop.now);
    assert_eq!(failure(&hop.events()).map(|(failure, _)| failure), Some(Failure::Unreachable));
}

#[test]
fn strays_are_acknowledged_when_late_and_rejected_when_unknown() {
    let mut hop = Hop::new();
    let (exchange, request) = hop.request(true);
    let token = ids(&request).1;
    hop.endpoint.cancel(exchange);
    let con = MessageType::Confirmable;
    hop.receive(&bytes(con, 1, &token, &RESPONSE));
    assert_eq!(hop.sent(), [datagram::empty(MessageType::Acknowledgement, 1)]);
    hop.receive(&bytes(con, 2, b"unknown!", &RESPONSE));
    assert_eq!(hop.sent(), [datagram::empty(MessageType::Reset, 2)]);
    let mut options = Vec::new();
    let mut writer = coapway_message::OptionsWriter::new(&mut options);
    writer.push_uint(coapway_message::OptionNumber::OBSERVE, 7);
    let notification = Content { options: writer.finish(), ..RESPONSE };
    hop.receive(&bytes(con, 3, &token, &notification));
    assert_eq!(hop.sent(), [datagram::empty(MessageType::Reset, 3)]);
    hop.receive(&bytes(MessageType::NonConfirmable, 4, b"unknown!", &RESPONSE));
    assert!(hop.sent().is_empty());
    assert_eq!((hop.endpoint.counters().late, hop.endpoint.counters().unmatched), (2, 2));
}

#[test]
fn answers_in_time_are_piggybacked_and_repeated_to_repeats() {
    let mut hop = Hop::new();
    let request = bytes(MessageType::Confirmable, 10, b"\xA1", &Content::bare(Code::POST));
    let Got::Request(exchange) = hop.receive(&request) else { panic!("a request") };
    hop.wait(at(400));
    hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
    let reply = bytes(MessageType::Acknowledgement, 10, b"\xA1", &RESPONSE);
    assert_eq!(hop.sent(), std::slice::from_ref(&reply));
    for seconds in [1, 2, 200] {
        hop.wait(at(seconds * 1000));
        assert_eq!(hop.receive(&request), Got::Nothing);
        assert_eq!(hop.sent(), std::slice::from_ref(&reply));
    }
    hop.wait(at(248_000));
    assert!(matches!(
        hop.receive(&bytes(MessageType::Confirmable, 11, b"", &Content::bare(Code::GET))),
        Got::Request(_)
    ));
    assert!(matches!(hop.receive(&request), Got::Request(_)), "247 s are over");
}

#[test]
fn a_slow_answer_is_acknowledged_early_and_sent_separately_until_acknowledged() {
    let mut hop = Hop::new();
    let request = bytes(MessageType::Confirmable, 10, b"\xA1", &Content::bare(Code::GET));
    let empty_ack = datagram::empty(MessageType::Acknowledgement, 10).to_vec();
    let Got::Request(exchange) = hop.receive(&request) else { panic!("a request") };
    let sent = hop.wait(at(2_000));
    assert_eq!(sent, [(500, empty_ack.clone())]);
    hop.receive(&request);
    assert_eq!(hop.sent(), std::slice::from_ref(&empty_ack));
    hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
    let response = hop.sent().pop().expect("sent at once");
    let (message_id, token) = ids(&response);
    assert_eq!((response[0], token), (0x41, vec![0xA1]));
    let copies = hop.wait(at(10_000));
    assert!(!copies.is_empty() && copies.iter().all(|(_, copy)| *copy == response));
    hop.receive(&datagram::empty(MessageType::Acknowledgement, message_id));
    assert!(matches!(hop.events().last(), Some(Event::Delivered { outcome: Ok(()), .. })));
    assert!(hop.wait(at(100_000)).is_empty());
    // Repeats get the empty Acknowledgement for ever, never the response in one.
    hop.receive(&request);
    assert_eq!(hop.sent(), [empty_ack]);
}

#[test]
fn an_acknowledgement_that_carries_a_response_ends_a_separate_response_all_the_same() {
    let mut hop = Hop::new();
    let request = bytes(MessageType::Confirmable, 10, b"\xA1", &Content::bare(Code::GET));
    let Got::Request(exchange) = hop.receive(&request) else { panic!("a request") };
    hop.wait(at(600));
    hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
    let (message_id, _) = ids(&hop.sent().pop().expect("sent at once"));
    assert_eq!(
        hop.receive(&bytes(MessageType::Acknowledgement, message_id, b"\xA1", &RESPONSE)),
        Got::Nothing
    );
    assert!(matches!(hop.events().last(), Some(Event::Delivered { outcome: Ok(()), .. })));
    assert!(hop.wait(at(100_000)).is_empty());
}

#[test]
fn a_repeat_before_the_answer_is_acknowledged_at_once() {
    let mut hop = Hop::new();
    let request = bytes(MessageType::Confirmable, 10, b"", &Content::bare(Code::GET));
    assert!(matches!(hop.receive(&request), Got::Request(_)));
    hop.now = at(100);
    assert_eq!(hop.receive(&request), Got::Nothing);
    assert_eq!(hop.sent(), [datagram::empty(MessageType::Acknowledgement, 10)]);
}

#[test]
fn a_repeat_draws_an_undelivered_response_anew() {
    let mut hop = Hop::new();
    let request = bytes(MessageType::Confirmable, 10, b"\xA1", &Content::bare(Code::GET));
    let Got::Request(exchange) = hop.receive(&request) else { panic!("a request") };
    hop.wait(at(600));
    hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
    let response = hop.sent().pop().expect("sent at once");
    hop.now = at(700);
    hop.receive(&request);
    assert_eq!(hop.sent().len(), 1, "no copy sooner than ACK_TIMEOUT after the last");
    hop.now = at(2_650);
    hop.receive(&request);
    assert_eq!(hop.sent().last(), Some(&response));
}

#[test]
fn non_confirmable_requests_get_non_confirmable_answers_once() {
    let mut hop = Hop::new();
    let request = bytes(MessageType::NonConfirmable, 10, b"\xA1", &Content::bare(Code::GET));
    let Got::Request(exchange) = hop.receive(&request) else { panic!("a request") };
    assert!(hop.wait(at(3_000)).is_empty(), "a NON is not acknowledged");
    hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
    assert_eq!(hop.sent().pop().map(|answer| answer[0]), Some(0x51));
    assert_eq!(hop.receive(&request), Got::Nothing);
    assert!(hop.sent().is_empty());
}

#[test]
fn a_reused_message_id_with_other_content_is_a_new_request() {
    let mut hop = Hop::new();
    let first = bytes(MessageType::Confirmable, 10, b"\xA1", &Content::bare(Code::GET));
    let second = bytes(MessageType::Confirmable, 10, b"\xA2", &Content::bare(Code::GET));
    let Got::Request(one) = hop.receive(&first) else { panic!("a request") };
    let Got::Request(two) = hop.receive(&second) else { panic!("a request") };
    hop.endpoint.respond(two, &RESPONSE, hop.now).expect("open");
    hop.endpoint.respond(one, &RESPONSE, hop.now).expect("open");
    let answers: Vec<_> = hop.sent().iter().map(|answer| ids(answer).1).collect();
    assert_eq!(answers, [vec![0xA2], vec![0xA1]]);
    hop.receive(&second);
    assert_eq!(ids(&hop.sent()[0]).1, [0xA2], "a repeat gets the reply of its own request");
    assert_eq!(hop.endpoint.counters().reused_message_ids, 1);
}

#[test]
fn rejects_what_it_cannot_process() {
    let mut hop = Hop::new();
    for (datagram, answer) in [
        (&[0x40, 0, 0xAB, 0xCD][..], Some([0x70, 0, 0xAB, 0xCD])),
        (&[0x40, 0x20, 0, 1], Some([0x70, 0, 0, 1])),
        (&[0x40, 0xC0, 0, 2], Some([0x70, 0, 0, 2])),
        (&[0x4F, 1, 0, 3], Some([0x70, 0, 0, 3])),
        (&[0x41, 0, 0, 5, 0xAA], Some([0x70, 0, 0, 5])),
        (&[0x50, 0x20, 0, 1], None),
        (&[0x60, 0x20, 0, 1], None),
        (&[0x70, 0x20, 0, 1], None),
        (&[0x60, 0, 0, 1], None),
        (&[0x70, 0, 0, 1], None),
        (&[0x60, 1, 0, 1], None),
        (&[0x60, 0x45, 0, 1], None),
        (&[0x00, 1, 0, 1], None),
        (&[0x40, 1, 0], None),
    ] {
        assert_eq!(hop.receive(datagram), Got::Nothing, "{datagram:02x?}");
        assert_eq!(
            hop.sent(),
            answer.map(|answer| answer.to_vec()).into_iter().collect::<Vec<_>>(),
            "{datagram:02x?}"
        );
    }
    let acknowledged = |event: &Event| matches!(event, Event::AcknowledgedAgain { .. });
    assert!(hop.events().iter().all(acknowledged), "somebody may be told of an Acknowledgement");
}

#[test]
fn a_ping_is_answered_by_a_reset() {
    let mut hop = Hop::new();
    let schedule = Schedule::new(&TransmissionParameters::default(), hop.now);
    hop.endpoint.send_ping(&PEER, &schedule, hop.now).expect("Message IDs are free");
    let ping = hop.sent().pop().expect("leaves at once");
    hop.now = at(40);
    hop.receive(&datagram::empty(MessageType::Reset, ids(&ping).0));
    let events = hop.events();
    assert!(
        matches!(events[..], [Event::Alive { round_trip: Some(time), .. }] if time == Duration::from_millis(40))
    );
}

#[test]
fn our_message_ids_and_theirs_are_separate_spaces() {
    let mut hop = Hop::new();
    let (exchange, request) = hop.request(true);
    let (message_id, token) = ids(&request);
    let theirs = bytes(MessageType::Confirmable, message_id, b"\x01", &Content::bare(Code::GET));
    let Got::Request(incoming) = hop.receive(&theirs) else { panic!("a request") };
    hop.endpoint.respond(incoming, &RESPONSE, hop.now).expect("open");
    let answer = bytes(MessageType::Acknowledgement, message_id, &token, &RESPONSE);
    assert!(matches!(hop.receive(&answer), Got::Response(answered, ..) if answered == exchange));
}

#[test]
fn all_copies_of_a_separate_response_leave_and_the_last_one_late() {
    for seed in 0..50 {
        let parameters = EndpointParameters {
            transmission: TransmissionParameters {
                ack_timeout: Duration::from_secs(1),
                ack_random_factor: 1.2,
                retry_jitter: 0.1,
                max_retransmit: 2,
            },
            max_wait: Duration::from_secs(10),
            ..EndpointParameters::default()
        };
        let mut hop =
            Hop { endpoint: Endpoint::new(parameters, Seed::from_number(seed)), now: Instant::ZERO };
        let request = bytes(MessageType::Confirmable, 10, b"\xA1", &Content::bare(Code::GET));
        let Got::Request(exchange) = hop.receive(&request) else { panic!("a request") };
        hop.wait(at(1_000));
        hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
        hop.sent();
        let copies: Vec<_> = hop.wait(at(11_100)).into_iter().map(|(millis, _)| millis - 1_000).collect();
        assert!(
            matches!(copies[..], [first, last] if (1000..=1201).contains(&first) && (8000..10_000).contains(&last)),
            "seed {seed}: {copies:?}"
        );
        assert!(matches!(
            hop.events().last(),
            Some(Event::Delivered { outcome: Err(Failure::TimedOut), copies: 3, .. })
        ));
    }
}

//= https://www.rfc-editor.org/rfc/rfc7252#section-4.4
//= type=test
#[test]
fn message_ids_begin_at_random_after_each_restart_and_towards_each_peer() {
    let firsts = |hop: &mut Hop, peer| {
        let schedule = Schedule::new(&TransmissionParameters::default(), hop.now);
        let content = Content::bare(Code::GET);
        let two = [(); 2].map(|()| {
            hop.endpoint.send_request(&peer, true, None, &content, &schedule, hop.now).expect("free");
            ids(&hop.sent().pop().expect("leaves at once")).0
        });
        assert_eq!(two[0].wrapping_add(1), two[1], "and go on in order");
        two[0]
    };
    let restarts = (0..100).map(|seed| {
        let endpoint = Endpoint::new(EndpointParameters::default(), Seed::from_number(seed));
        let mut hop = Hop { endpoint, now: Instant::ZERO };
        [PEER, OTHER].map(|peer| firsts(&mut hop, peer))
    });
    let mut all: Vec<u16> = restarts.flatten().collect();
    all.sort_unstable();
    let sixteenths = all.chunk_by(|a, b| a >> 12 == b >> 12).count();
    assert_eq!(sixteenths, 16, "they come from the whole range: {all:?}");
    all.dedup();
    assert!(all.len() >= 198, "{} of 200 differ", all.len());
}
