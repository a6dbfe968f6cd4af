//! When copies leave, and when none does any more (RFC 7252 §4.2; R-MSG-04).

use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Event, Schedule, TransmissionParameters};
use coapway_message::{Code, Content, ExchangeId, MessageType, datagram};
use coapway_time::Instant;

use crate::hop::{Got, Hop, PEER, RESPONSE, at, ids, request};

/// What was told of an exchange's waits, in order: copies so far, and whether there will be more.
fn told(hop: &mut Hop, of: ExchangeId) -> Vec<(&'static str, u32)> {
    let told = |event| match event {
        Event::Retransmitted { exchange, copies, .. } if exchange == of => Some(("wait", copies)),
        Event::Exhausted { exchange, copies } if exchange == of => Some(("exhausted", copies)),
        Event::Failed { exchange, trace, .. } if exchange == of => {
            Some(("failed", trace.copies.len() as u32))
        }
        Event::EmptyAckSent { .. }
        | Event::Repeated { .. }
        | Event::Delivered { .. }
        | Event::Acknowledged { .. }
        | Event::Retransmitted { .. }
        | Event::Exhausted { .. }
        | Event::Failed { .. }
        | Event::AcknowledgedAgain { .. }
        | Event::Alive { .. } => None,
    };
    hop.events().into_iter().filter_map(told).collect()
}

#[test]
fn exhaustion_is_told_once_when_the_last_wait_is_over_and_listening_goes_on() {
    let mut hop = Hop::new();
    let schedule = Schedule {
        max_retransmit: 1,
        deadline: at(60_000),
        ..Schedule::new(&TransmissionParameters::default(), hop.now)
    };
    let send = |hop: &mut Hop, confirmable| {
        let content = Content::bare(Code::GET);
        let sent = hop.endpoint.send_request(&PEER, confirmable, None, &content, &schedule, hop.now);
        (sent.expect("Message IDs"), hop.sent().remove(0))
    };
    let (exchange, sent) = send(&mut hop, true);
    let (non, _) = send(&mut hop, false);
    hop.wait(at(5_990));
    assert_eq!(told(&mut hop, exchange), [("wait", 2)]);
    hop.wait(at(9_010));
    assert_eq!(told(&mut hop, exchange), [("wait", 2), ("exhausted", 2)]);
    hop.wait(at(59_000));
    assert!(hop.events().is_empty());
    let answer = crate::hop::bytes(MessageType::NonConfirmable, 1, &ids(&sent).1, &RESPONSE);
    assert!(matches!(hop.receive(&answer), Got::Response(answered, ..) if answered == exchange));
    hop.wait(at(60_010));
    assert_eq!(told(&mut hop, non), [("failed", 1)], "a NON has no schedule");
}

#[test]
fn exhaustion_is_not_told_after_an_acknowledgement_or_when_the_deadline_comes_first() {
    let mut hop = Hop::new();
    let (exchange, sent) = hop.request(true);
    hop.receive(&datagram::empty(MessageType::Acknowledgement, ids(&sent).0));
    hop.wait(at(100_000));
    assert_eq!(told(&mut hop, exchange), [("failed", 1)]);

    let mut hop = Hop::new();
    let schedule = Schedule {
        max_retransmit: 1,
        deadline: at(4_500),
        ..Schedule::new(&TransmissionParameters::default(), hop.now)
    };
    let exchange = hop
        .endpoint
        .send_request(&PEER, true, None, &Content::bare(Code::GET), &schedule, hop.now)
        .expect("IDs");
    hop.wait(at(100_000));
    assert_eq!(told(&mut hop, exchange), [("wait", 2), ("failed", 2)]);
}

#[test]
fn a_copy_that_no_longer_fits_exhausts_the_schedule() {
    // A learned timeout of 20 s: the second copy leaves at 20 s to 30 s, the third would at 60 s or later.
    let mut hop = Hop::new();
    let schedule = Schedule {
        timeout: Duration::from_secs(20),
        deadline: at(120_000),
        last_copy_before: at(120_000),
        ..Schedule::new(&TransmissionParameters::default(), hop.now)
    };
    let exchange = hop
        .endpoint
        .send_request(&PEER, true, None, &Content::bare(Code::GET), &schedule, hop.now)
        .expect("IDs");
    hop.sent();
    let copies = hop.wait(at(119_000));
    assert!(copies.len() == 1 && (20_000..30_002).contains(&copies[0].0), "{copies:?}");
    assert_eq!(told(&mut hop, exchange), [("wait", 2), ("wait", 2), ("exhausted", 2)]);
}

/// Wakes an endpoint at these times only and returns when copies left.
fn copies_at(hop: &mut Hop, wakes: impl IntoIterator<Item = u64>) -> Vec<Instant> {
    let mut copies = Vec::new();
    for wake in wakes {
        hop.now = at(wake);
        hop.endpoint.handle_timeout(hop.now);
        hop.endpoint.check_invariants();
        copies.extend(hop.sent().iter().map(|_| hop.now));
    }
    copies
}

#[test]
fn late_wakes_bring_no_copy_too_early_and_none_too_late() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut wakes: Vec<u64> = (0..20).map(|_| random.u64(0..100_000)).collect();
        wakes.sort_unstable();
        let mut hop = Hop::new();
        hop.request(true);
        let mut copies = vec![Instant::ZERO];
        copies.extend(copies_at(&mut hop, wakes.iter().copied()));
        assert!(copies.len() <= 5);
        for pair in copies.windows(2) {
            assert!(pair[1].since(pair[0]) >= Duration::from_secs(2), "{wakes:?}: {copies:?}");
        }
        assert!(copies.iter().all(|copy| *copy <= at(45_000)), "{wakes:?}: {copies:?}");
    }
}

#[test]
fn a_wake_after_the_span_brings_no_copy_at_all() {
    let mut hop = Hop::new();
    let (exchange, _) = hop.request(true);
    assert!(copies_at(&mut hop, [45_001, 60_000, 92_000]).is_empty());
    assert_eq!(told(&mut hop, exchange), [("wait", 1), ("exhausted", 1)]);
}

#[test]
fn copies_of_a_response_drawn_anew_keep_their_distance_and_stay_inside_the_span() {
    let transmission = TransmissionParameters {
        ack_timeout: Duration::from_secs(1),
        ack_random_factor: 1.2,
        retry_jitter: 0.1,
        max_retransmit: 2,
    };
    for max_wait in [10, 90] {
        let max_wait = Duration::from_secs(max_wait);
        let mut hop =
            Hop::with(EndpointParameters { transmission, max_wait, ..EndpointParameters::default() });
        let ask = request(MessageType::Confirmable, 10, b"\xA1");
        let Got::Request(exchange) = hop.receive(&ask) else { panic!("a request") };
        hop.endpoint.acknowledge_early(exchange);
        hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
        hop.sent();
        let mut copies = vec![0];
        for millis in (0..120_000).step_by(130) {
            let timers = hop.wait(at(millis));
            copies.extend(timers.iter().map(|(millis, _)| *millis));
            hop.receive(&ask);
            copies.extend(hop.sent().iter().skip(1).map(|_| millis));
        }
        assert!(copies.windows(2).all(|pair| pair[1] - pair[0] >= 1000), "{copies:?}");
        let last = *copies.last().expect("there are some");
        assert!(last <= 45_002 && last >= 9_000.min(max_wait.as_millis() as u64), "{copies:?}");
    }
}

#[test]
fn changed_parameters_hold_for_what_comes_from_then_on() {
    let mut hop = Hop::new();
    let early_ack_after = Duration::from_millis(100);
    hop.receive(&request(MessageType::Confirmable, 1, b"\xA1"));
    hop.endpoint.set_parameters(EndpointParameters { early_ack_after, ..EndpointParameters::default() });
    hop.receive(&request(MessageType::Confirmable, 2, b"\xA2"));
    let acknowledged: Vec<_> =
        hop.wait(at(1_000)).iter().map(|(millis, sent)| (ids(sent).0, millis / 10)).collect();
    assert_eq!(acknowledged, [(2, 10), (1, 50)]);
}
