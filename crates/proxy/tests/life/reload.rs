//! Other settings while requests are under way: none is lost, and what was learned stays.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use coapway_endpoint::{Estimator, Nstart};
use coapway_message::{Code, OptionNumber};
use coapway_proxy::{Input, Limits, Listening, PostGuard, SocketRole};

use crate::bench::{Bench, path, settings};

const SECOND: Duration = Duration::from_secs(1);
const A: (&str, u16) = ("a", 1);
const B: (&str, u16) = ("b", 2);

fn content(port: u16, text: &str) -> (u16, Code, String) {
    (port, Code::CONTENT, text.to_owned())
}

#[test]
fn what_is_queued_leaves_under_the_new_settings_and_is_answered_by_the_old_deadline() {
    let mut bench = Bench::new(settings(&[A]));
    for port in 1..=5 {
        bench.get(port, "a");
    }
    let first = bench.only_sent();
    let mut changed = settings(&[A]);
    changed.upstreams[1].nstart = Nstart::Fixed(4);
    changed.upstreams[1].max_wait = 5 * SECOND;
    bench.reload(&changed);
    assert_eq!(bench.to_origins.len(), 3, "there is room for three more");
    bench.respond(&first, Code::CONTENT, b"one");
    assert_eq!(bench.answers(), [content(1, "one")]);
    assert_eq!(bench.to_origins.len(), 4);
    bench.pass(29 * SECOND);
    assert_eq!(bench.answers(), [], "they were promised 30 s");
    bench.pass(SECOND);
    let answers = bench.answers();
    assert_eq!(answers.len(), 4);
    assert!(answers.iter().all(|(_, code, _)| *code == Code::GATEWAY_TIMEOUT), "{answers:?}");
    bench.get(6, "a");
    bench.pass(5 * SECOND);
    let answers = bench.answers();
    assert_eq!(answers.iter().filter(|(port, ..)| *port == 6).count(), 1, "the new one was promised 5 s");
}

#[test]
fn copies_of_a_request_under_way_keep_their_schedule_and_message_id() {
    let mut bench = Bench::new(settings(&[A]));
    bench.get(1, "a");
    let mut changed = settings(&[A]);
    changed.upstreams[1].transmission.max_retransmit = 0;
    changed.upstreams[1].transmission.ack_timeout = Duration::from_millis(10);
    bench.reload(&changed);
    bench.pass(25 * SECOND);
    assert_eq!(bench.to_origins.len(), 4, "as many as before");
    assert!(bench.to_origins.iter().all(|copy| copy.message() == bench.to_origins[0].message()));
    assert!(bench.to_origins[1].at.since(bench.to_origins[0].at) >= 2 * SECOND);
}

#[test]
fn an_upstream_that_is_gone_still_serves_what_is_under_way_and_waits() {
    let mut bench = Bench::new(settings(&[A, B]));
    bench.get(1, "a");
    bench.get(2, "a");
    bench.reload(&settings(&[B]));
    bench.get(3, "a");
    let refused = (3, Code::NOT_FOUND, "no such resource".to_owned());
    assert_eq!(bench.answers(), [refused]);
    let first = bench.only_sent();
    bench.respond(&first, Code::CONTENT, b"one");
    let second = bench.only_sent();
    assert_eq!(second.to, first.to);
    bench.reload(&settings(&[B]));
    bench.respond(&second, Code::CONTENT, b"two");
    assert_eq!(bench.answers(), [content(1, "one"), content(2, "two")]);
}

#[test]
fn upstreams_change_places_and_are_not_taken_for_each_other() {
    let mut bench = Bench::new(settings(&[A, B]));
    bench.get(1, "a");
    bench.get(2, "b");
    let sent = std::mem::take(&mut bench.to_origins);
    let mut changed = settings(&[("c", 3), B, A]);
    changed.upstreams[3].max_wait = 3 * SECOND;
    bench.reload(&changed);
    for request in &sent {
        bench.respond(request, Code::CONTENT, request.port().to_string().as_bytes());
    }
    assert_eq!(bench.answers(), [content(1, "1"), content(2, "2")]);
    for (port, name) in [(3, "a"), (4, "b"), (5, "c")] {
        bench.get(port, name);
    }
    let ports: Vec<_> = bench.to_origins.iter().map(|sent| sent.port()).collect();
    assert_eq!(ports, [1, 2, 3]);
    bench.pass(3 * SECOND);
    let answers = bench.answers();
    assert!(matches!(answers[..], [(3, Code::GATEWAY_TIMEOUT, _)]), "only a has 3 s: {answers:?}");
}

/// Answers requests to `a` after 50 ms each, until the timeout towards it is learned.
fn taught(bench: &mut Bench) {
    for port in 1..=20 {
        bench.get(port, "a");
        bench.pass(Duration::from_millis(50));
        let request = bench.only_sent();
        bench.respond(&request, Code::CONTENT, b"");
    }
    bench.answers();
}

/// How long the first copy of a request waits for the second.
fn first_wait(bench: &mut Bench, path: &str) -> Duration {
    bench.get(99, path);
    bench.pass(29 * SECOND);
    let copies = std::mem::take(&mut bench.to_origins);
    bench.pass(SECOND);
    bench.to_origins.clear();
    copies[1].at.since(copies[0].at)
}

#[test]
fn what_was_learned_of_an_origin_stays_wherever_its_upstream_stands_and_whatever_its_name() {
    for new in [&[A][..], &[("c", 3), A], &[("renamed", 1)]] {
        let mut bench = Bench::new(settings(&[A]));
        taught(&mut bench);
        bench.reload(&settings(new));
        let name = new.iter().find(|(_, port)| *port == 1).expect("it is there").0;
        let wait = first_wait(&mut bench, name);
        assert!(wait < SECOND, "{new:?}: learned from 50 ms, and yet {wait:?}");
    }
    let mut bench = Bench::new(settings(&[A]));
    taught(&mut bench);
    bench.reload(&settings(&[("a", 7)]));
    assert!(first_wait(&mut bench, "a") >= 2 * SECOND, "of another origin nothing is known");
}

#[test]
fn samples_outlive_a_change_of_the_estimator() {
    let mut bench = Bench::new(settings(&[A]));
    taught(&mut bench);
    let mut fixed = settings(&[A]);
    fixed.upstreams[1].rto.estimator = Estimator::Fixed;
    bench.reload(&fixed);
    assert!(first_wait(&mut bench, "a") >= 2 * SECOND);
    // An exact sample ends the back-off that the silence has left behind.
    bench.get(1, "a");
    let request = bench.only_sent();
    bench.pass(Duration::from_millis(50));
    bench.respond(&request, Code::CONTENT, b"");
    bench.reload(&settings(&[A]));
    assert!(first_wait(&mut bench, "a") < SECOND, "the old samples count again");
}

#[test]
fn message_ids_and_source_ports_of_an_origin_go_on() {
    let mut bench = Bench::new(settings(&[A]));
    bench.get(1, "a");
    let first = bench.only_sent();
    bench.respond(&first, Code::CONTENT, b"");
    bench.reload(&settings(&[B, A]));
    bench.get(1, "a");
    let second = bench.only_sent();
    assert_eq!(second.from, first.from);
    assert_eq!(second.message().message_id, first.message().message_id.wrapping_add(1));
}

#[test]
fn a_repeat_gets_the_reply_from_before() {
    let mut bench = Bench::new(settings(&[A]));
    bench.request(0, 1, Code::POST, "a", b"on");
    let request = bench.only_sent();
    bench.respond(&request, Code::CHANGED, b"done");
    let first = bench.answers();
    let mut changed = settings(&[B]);
    changed.downstream.duplicates.memory = 1 << 20;
    bench.reload(&changed);
    bench.repeat();
    assert_eq!(bench.answers(), first);
    assert!(bench.to_origins.is_empty(), "it is not executed again");
}

#[test]
fn a_request_that_waits_for_a_name_goes_on_by_the_route_it_took() {
    let mut bench = Bench::new(settings(&[("a", 5683)]));
    bench.request(0, 1, Code::POST, "a", b"x");
    let lookup = bench.lookups[0];
    bench.reload(&settings(&[B]));
    let addresses = [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9))];
    bench.give(Input::Resolved { lookup, addresses: &addresses, ttl: None });
    let request = bench.only_sent();
    assert_eq!(request.to.ip(), addresses[0]);
    bench.reload(&settings(&[("a", 5683), B]));
    bench.respond(&request, Code::CREATED, b"");
    let [answer] = &bench.to_clients[..] else { panic!("one answer") };
    let location = path(&answer.message().content.options, OptionNumber::LOCATION_PATH);
    assert_eq!(location, "a/new", "the prefix of its route is put before it");
}

#[test]
fn a_location_gets_the_prefix_of_the_route_its_request_took_through_any_number_of_reloads() {
    let mut bench = Bench::new(settings(&[A]));
    bench.request(0, 1, Code::POST, "a", b"x");
    let request = bench.only_sent();
    let mut other = settings(&[B, ("c", 1)]);
    other.relay.routes[1].strip = false;
    for _ in 0..3 {
        bench.reload(&other);
        bench.reload(&settings(&[]));
    }
    bench.respond(&request, Code::CREATED, b"");
    let [answer] = &bench.to_clients[..] else { panic!("one answer") };
    assert_eq!(path(&answer.message().content.options, OptionNumber::LOCATION_PATH), "a/new");
}

#[test]
fn an_equal_request_waits_for_the_first_one_over_a_reload_and_gets_its_answer_after_it() {
    let mut guarded = settings(&[A]);
    guarded.upstreams[1].post_guard = PostGuard::Fingerprint;
    let mut bench = Bench::new(guarded.clone());
    bench.request(0, 1, Code::POST, "a", b"on");
    bench.request(0, 2, Code::POST, "a", b"on");
    let request = bench.only_sent();
    let mut reordered = settings(&[B, A]);
    reordered.upstreams[2].post_guard = PostGuard::Fingerprint;
    bench.reload(&reordered);
    bench.request(0, 3, Code::POST, "a", b"on");
    bench.respond(&request, Code::CHANGED, b"done");
    let done = |port| (port, Code::CHANGED, "done".to_owned());
    assert_eq!(bench.answers(), [done(1), done(2), done(3)]);
    bench.reload(&guarded);
    bench.request(0, 4, Code::POST, "a", b"on");
    assert_eq!(bench.answers(), [done(4)]);
    let mut moved = settings(&[("a", 9)]);
    moved.upstreams[1].post_guard = PostGuard::Fingerprint;
    bench.reload(&moved);
    bench.request(0, 5, Code::POST, "a", b"on");
    assert_eq!(bench.only_sent().port(), 9, "another origin has not answered it");
}

#[test]
fn separate_responses_under_way_are_offered_on() {
    let mut bench = Bench::new(settings(&[A]));
    bench.get(1, "a");
    let request = bench.only_sent();
    bench.pass(SECOND);
    bench.respond(&request, Code::CONTENT, b"late");
    assert_eq!(bench.answers(), [content(1, "late")]);
    let mut changed = settings(&[B]);
    changed.downstream.max_wait = SECOND;
    changed.downstream.nstart = Nstart::Fixed(1);
    bench.reload(&changed);
    bench.pass(6 * SECOND);
    let copy = bench.to_clients.pop().expect("a copy leaves");
    assert_eq!(copy.message().content.payload, b"late");
    assert!(!bench.proxy.is_idle_at(copy.from) && !bench.proxy.is_idle());
    bench.acknowledge(&copy);
    assert!(bench.proxy.is_idle_at(copy.from) && bench.proxy.is_idle());
}

#[test]
fn a_listener_that_closes_refuses_what_is_new_and_answers_what_runs() {
    let mut bench = Bench::new(settings(&[A]));
    bench.request(1, 1, Code::GET, "a", b"");
    let request = bench.only_sent();
    let closing = SocketRole::Listener(1).socket();
    let (parameters, listening) = (settings(&[A]), Listening::default());
    bench.give(Input::Reconfigure { parameters: &parameters, listening, closing: &[closing] });
    bench.request(1, 2, Code::GET, "a", b"");
    let refused = (2, Code::SERVICE_UNAVAILABLE, "not-sent: shutting down".to_owned());
    assert_eq!(bench.answers(), [refused]);
    assert!(!bench.proxy.is_idle_at(closing));
    bench.get(3, "a");
    bench.respond(&request, Code::CONTENT, b"one");
    assert!(bench.to_clients.iter().all(|sent| sent.from == closing));
    assert_eq!(bench.answers(), [content(1, "one")]);
    assert!(bench.proxy.is_idle_at(closing), "the request at the other one does not matter");
    bench.reload(&parameters);
    let request = bench.only_sent();
    bench.respond(&request, Code::CONTENT, b"three");
    bench.request(1, 4, Code::GET, "a", b"");
    assert_eq!(bench.answers(), [content(3, "three")], "it takes requests again");
}

#[test]
fn less_room_than_is_taken_lets_nobody_go() {
    let mut bench = Bench::new(settings(&[A, B]));
    for port in 1..=4 {
        bench.get(port, "a");
    }
    let mut changed = settings(&[A, B]);
    changed.limits = Limits { fetches: 2, origins: 1, names: 1, clients: 1, hints: 0 };
    changed.upstreams[1].queue = 1;
    bench.reload(&changed);
    bench.get(5, "b");
    let full = (5, Code::SERVICE_UNAVAILABLE, "not-sent: overloaded".to_owned());
    assert_eq!(bench.answers(), [full]);
    for port in 1..=4 {
        let request = bench.only_sent();
        bench.respond(&request, Code::CONTENT, b"");
        assert_eq!(bench.answers(), [content(port, "")]);
    }
}

#[test]
fn records_begin_and_end_with_a_reload_and_tell_no_half_truths() {
    let mut bench = Bench::new(settings(&[A]));
    let parameters = settings(&[A]);
    let recording = |records: bool| Listening {
        events: false,
        records: records.then_some(coapway_proxy::Sampling::ALL),
        late: false,
    };
    bench.get(1, "a");
    bench.give(Input::Reconfigure { parameters: &parameters, listening: recording(true), closing: &[] });
    let request = bench.only_sent();
    bench.respond(&request, Code::CONTENT, b"");
    bench.get(2, "a");
    let request = bench.only_sent();
    bench.respond(&request, Code::CONTENT, b"");
    bench.get(3, "nowhere");
    assert_eq!(bench.records, ["a"], "of the first one too little is known");
    bench.get(4, "a");
    let request = bench.only_sent();
    bench.give(Input::Reconfigure { parameters: &parameters, listening: recording(false), closing: &[] });
    assert_eq!(bench.records, ["a", "1 4.04 refused"], "what was summed up is told");
    bench.respond(&request, Code::CONTENT, b"");
    bench.pass(2 * SECOND);
    assert_eq!(bench.records.len(), 2);
}

#[test]
fn places_of_upstreams_that_are_gone_are_used_again() {
    let mut bench = Bench::new(settings(&[A]));
    for round in 0..200_u16 {
        let name = format!("u{round}");
        bench.reload(&settings(&[(&name, 100 + round % 800)]));
        bench.get(1, &name);
        let request = bench.only_sent();
        assert_eq!(request.port(), 100 + round % 800);
        bench.respond(&request, Code::CONTENT, b"");
    }
    let parameters = format!("{:?}", bench.proxy);
    assert!(parameters.matches("max_retransmit_non_idempotent").count() < 8, "the table does not grow");
}
