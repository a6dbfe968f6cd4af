//! Each check finds what it is there for.

mod executions;
mod limits;
mod reissue;

use std::net::SocketAddr;
use std::time::Duration;

use coapway_message::{Code, ExchangeId};
use coapway_proxy::{Cause, CopyIds, Event, Limits, Parameters, UpstreamParameters};
use coapway_time::Instant;

use super::{Checks, Rules};
use crate::sockets::LISTENER;

const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 1)), 1);
const ORIGIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 2, 0, 1)), 5683);
const UPSTREAM: SocketAddr = SocketAddr::new(LISTENER.ip(), 20_000);

const GET: &[u8] = &[0x41, 1, 0, 10, 0xA1];
const POST: &[u8] = &[0x41, 2, 0, 10, 0xA1];
const ANSWER: &[u8] = &[0x61, 0x45, 0, 10, 0xA1, 0xFF, b'1'];

fn parameters() -> Parameters {
    Parameters {
        downstream: coapway_endpoint::EndpointParameters::default(),
        upstreams: vec![UpstreamParameters::default()],
        relay: coapway_relay::Parameters { client_rate: 0, ..coapway_relay::Parameters::default() },
        answer_within: None,
        patience: coapway_proxy::Patience::Off,
        limits: Limits::default(),
    }
}

fn rules() -> Rules {
    Rules::new(&parameters(), Duration::ZERO)
}

fn checks() -> Checks {
    Checks::new(rules())
}

fn at(millis: u64) -> Instant {
    Instant::from_micros(millis * 1000)
}

/// A request of the proxy with this method, Message ID and last byte of its token.
fn request(confirmable: bool, code: u8, message_id: u8, token: u8) -> Vec<u8> {
    vec![if confirmable { 0x48 } else { 0x58 }, code, 0, message_id, 1, 2, 3, 4, 5, 6, 7, token]
}

/// What was found after these requests left for an origin.
fn sent(requests: &[(u64, Vec<u8>)]) -> String {
    let mut checks = checks();
    for (millis, bytes) in requests {
        checks.proxy_sent(UPSTREAM, ORIGIN, bytes, at(*millis));
    }
    found(&checks)
}

fn found(checks: &Checks) -> String {
    checks.violations().iter().map(|violation| format!("{violation}\n")).collect()
}

/// What was found after the client asked and the proxy sent these.
fn answered(request: &[u8], answers: &[&[u8]]) -> String {
    let mut checks = checks();
    checks.proxy_received(CLIENT, LISTENER, request, at(0));
    answers.iter().for_each(|bytes| checks.proxy_sent(LISTENER, CLIENT, bytes, at(100)));
    found(&checks)
}

#[track_caller]
fn assert_found(found: &str, what: &str) {
    assert!(found.contains(what), "{found:?} instead of {what:?}");
}

#[test]
fn a_regular_exchange_is_fine() {
    assert_eq!(answered(GET, &[ANSWER, ANSWER]), "");
    let copies: Vec<_> = [0, 2_500, 8_000, 19_500].map(|millis| (millis, request(true, 1, 1, 1))).into();
    assert_eq!(sent(&copies), "");
}

#[test]
fn a_confirmable_message_without_acknowledgement_is_found() {
    let mut checks = checks();
    checks.proxy_received(CLIENT, LISTENER, GET, at(0));
    checks.after_step(at(500));
    assert_eq!(found(&checks), "");
    checks.after_step(at(510));
    assert_found(&found(&checks), "not acknowledged in time");
}

#[test]
fn a_message_id_used_again_is_found() {
    let after = |millis| sent(&[(0, request(true, 1, 1, 1)), (millis, request(true, 1, 1, 2))]);
    assert_found(&after(246_000), "takes the Message ID of");
    assert_eq!(after(248_000), "");
}

#[test]
fn a_token_used_again_is_found() {
    assert_found(&sent(&[(0, request(true, 1, 1, 1)), (300_000, request(true, 1, 2, 1))]), "is used again");
}

#[test]
fn copies_out_of_schedule_are_found() {
    let copies = |code, times: &[u64]| {
        sent(&times.iter().map(|&millis| (millis, request(true, code, 1, 1))).collect::<Vec<_>>())
    };
    assert_found(&copies(1, &[0, 150]), "only 150ms after the one before");
    assert_found(&copies(1, &[0, 46_000]), "46s after the first");
    assert_found(&copies(1, &[0, 2_000, 3_500]), "the wait before was 2s");
    assert_eq!(copies(1, &[0, 2_000, 4_000]), "", "the last wait need not grow");
    assert_found(&copies(1, &[0, 2_000, 4_000, 9_000]), "after the last one");
    assert_found(&copies(1, &[0, 300, 900, 2_100, 4_500, 9_300, 18_900, 38_100]), "where 7 are allowed");
    assert_found(&copies(2, &[0, 1_900]), "only 1.9s after the one before");
    assert_found(&copies(2, &[0, 2_000, 6_000]), "where 2 are allowed");
    let non = request(false, 1, 1, 1);
    assert_found(&sent(&[(0, non.clone()), (9_000, non)]), "although it is Non-confirmable");
}

/// What was found where each copy may have a Message ID of its own, after these left for an origin and these
/// came from there.
fn with_fresh_ids(ids: CopyIds, steps: &[(u64, &[u8], bool)]) -> String {
    let mut parameters = parameters();
    parameters.upstreams[0].retransmit.mid = ids;
    let mut checks = Checks::new(Rules::new(&parameters, Duration::ZERO));
    for &(millis, bytes, leaves) in steps {
        if leaves {
            checks.proxy_sent(UPSTREAM, ORIGIN, bytes, at(millis));
        } else {
            checks.proxy_received(ORIGIN, UPSTREAM, bytes, at(millis));
        }
    }
    found(&checks)
}

#[test]
fn copies_with_message_ids_of_their_own_are_judged_as_copies() {
    let copies = |ids, code, times: &[u64]| {
        let copies: Vec<_> =
            (1..).zip(times).map(|(id, &millis)| (millis, request(true, code, id, 1))).collect();
        let steps: Vec<_> = copies.iter().map(|(millis, bytes)| (*millis, &bytes[..], true)).collect();
        with_fresh_ids(ids, &steps)
    };
    let safe = CopyIds::FreshSafe;
    assert_eq!(copies(safe, 1, &[0, 2_500, 8_000, 19_500]), "");
    assert_found(&copies(CopyIds::Same, 1, &[0, 2_500]), "is used again");
    assert_found(&copies(safe, 3, &[0, 2_500]), "with a Message ID of its own");
    assert_eq!(copies(CopyIds::FreshIdempotent, 3, &[0, 2_500]), "");
    assert_found(&copies(CopyIds::FreshIdempotent, 2, &[0, 2_500]), "with a Message ID of its own");
    assert_found(&copies(safe, 1, &[0, 150]), "only 150ms after the one before");
    assert_found(
        &copies(safe, 1, &[0, 300, 900, 2_100, 4_500, 9_300, 18_900, 38_100]),
        "where 7 are allowed",
    );
}

#[test]
fn what_comes_for_any_copy_settles_it_but_for_a_reset_of_one_that_does_not_count() {
    let [first, second, third] = [1, 2, 3].map(|id| request(true, 1, id, 1));
    let after = |reply: &[u8]| {
        let steps =
            [(0, &first[..], true), (2_000, &second, true), (3_000, reply, false), (6_000, &third, true)];
        with_fresh_ids(CopyIds::FreshSafe, &steps)
    };
    for reply in [&[0x60, 0, 0, 1], &[0x60, 0, 0, 2], &[0x70, 0, 0, 2]] {
        assert_found(&after(reply), "although it was acknowledged");
    }
    assert_eq!(after(&[0x70, 0, 0, 1]), "");
    let other = request(true, 1, 2, 9);
    let steps = [(0, &first[..], true), (2_000, &second, true), (3_000, &other, true)];
    assert_found(&with_fresh_ids(CopyIds::FreshSafe, &steps), "takes the Message ID of");
}

#[test]
fn copies_after_an_acknowledgement_are_found() {
    let after = |from, reply: &[u8]| {
        let mut checks = checks();
        checks.proxy_sent(UPSTREAM, ORIGIN, &request(true, 1, 1, 1), at(0));
        checks.proxy_received(from, UPSTREAM, reply, at(1_000));
        checks.proxy_sent(UPSTREAM, ORIGIN, &request(true, 1, 1, 1), at(2_000));
        found(&checks)
    };
    let answer = [0x68, 0x45, 0, 1, 1, 2, 3, 4, 5, 6, 7, 1];
    let separate = [0x58, 0x45, 0, 77, 1, 2, 3, 4, 5, 6, 7, 1];
    let forged = [0x68, 0x45, 0, 1, 1, 2, 3, 4, 5, 6, 7, 2];
    for reply in [&[0x60, 0, 0, 1][..], &[0x70, 0, 0, 1], &answer, &separate] {
        assert_found(&after(ORIGIN, reply), "although it was acknowledged");
        assert_eq!(after(CLIENT, reply), "", "from elsewhere it means nothing");
    }
    assert_eq!(after(ORIGIN, &forged) + &after(ORIGIN, &[0x60, 0, 0, 2]), "");
}

#[test]
fn a_second_answer_is_found() {
    assert_found(&answered(POST, &[ANSWER, &[0x61, 0x45, 0, 10, 0xA1, 0xFF, b'2']]), "after another answer");
}

#[test]
fn an_answer_that_belongs_to_nothing_is_found() {
    assert_found(&answered(GET, &[&[0x61, 0x45, 0, 10, 0xA2]]), "a token the client did not use");
    assert_found(&answered(GET, &[&[0x61, 0x45, 0, 11, 0xA1]]), "acknowledges another message");
    assert_found(&answered(GET, &[&[0x51, 0x45, 0, 11, 0xA1]]), "answers a Confirmable request");
    assert_found(&answered(&[0x51, 1, 0, 10, 0xA1], &[ANSWER]), "answers a Non-confirmable request");
}

#[test]
fn requests_settled_twice_late_or_never_are_found() {
    let request = ExchangeId { slot: 0, generation: 0 };
    let received = Event::Received { request, client: CLIENT, code: Code::GET, confirmable: true };
    let answered = Event::Answered { request, code: Code::CONTENT, cause: Cause::Origin, evidence: None };
    let told = |events: &[(u64, &Event)], end| {
        let mut checks = checks();
        events.iter().for_each(|(millis, event)| checks.told(event, at(*millis)));
        checks.after_step(at(end));
        checks.settlement.finish().into_iter().for_each(|what| checks.violated(what, at(end)));
        found(&checks)
    };
    assert_eq!(told(&[(0, &received), (30_000, &answered)], 40_000), "");
    assert_found(&told(&[(0, &received), (1, &answered), (2, &answered)], 3), "answered twice");
    assert_found(&told(&[(0, &received)], 30_010), "after its deadline");
    assert_found(&told(&[(0, &received)], 1), "never answered");
    assert_found(&told(&[(1, &answered)], 2), "never received");
    let early = Event::EmptyAckSent { request };
    assert_found(
        &told(&[(0, &received), (1, &early), (2, &answered)], 3),
        "nothing was told of the delivery",
    );
}

#[test]
fn a_request_dropped_for_its_client_s_pace_is_counted_or_found() {
    for (dropped, what) in [(1, ""), (0, "not acknowledged in time")] {
        let mut checks = Checks::new(Rules { limits_clients: true, ..rules() });
        checks.proxy_received(CLIENT, LISTENER, GET, at(0));
        checks.after_step(at(510));
        assert_eq!(found(&checks), "");
        checks.acknowledgement.finish(dropped).into_iter().for_each(|what| checks.violated(what, at(600)));
        assert_found(&found(&checks), what);
    }
}

#[test]
fn a_copy_from_another_port_is_found() {
    let mut checks = checks();
    checks.proxy_sent(UPSTREAM, ORIGIN, &request(true, 1, 1, 1), at(0));
    checks.proxy_sent(SocketAddr::new(LISTENER.ip(), 20_001), ORIGIN, &request(true, 1, 1, 1), at(2_500));
    assert_found(&found(&checks), "left from 10.0.0.1:20001, the first from 10.0.0.1:20000");
}

#[test]
fn a_client_s_token_comes_back_after_its_lifetime_only() {
    let after = |preserves_tokens, millis| {
        let mut checks = Checks::new(Rules { preserves_tokens, ..rules() });
        let token = [1, 2, 3, 4, 5, 6, 7, 1];
        checks.proxy_received(CLIENT, LISTENER, &[&[0x48, 1, 0, 10][..], &token].concat(), at(0));
        checks.proxy_sent(UPSTREAM, ORIGIN, &request(true, 1, 1, 1), at(1));
        checks.proxy_sent(UPSTREAM, ORIGIN, &request(true, 1, 2, 1), at(millis));
        found(&checks)
    };
    assert_eq!(after(true, 248_000), "");
    assert_found(&after(true, 246_000), "preserved token 0102030405060701 is used again");
    assert_found(&after(false, 248_000), "is used again");
}
