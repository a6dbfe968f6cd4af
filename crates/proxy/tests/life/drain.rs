//! The end: nobody who was accepted is left without an answer.

use std::time::Duration;

use coapway_message::{Code, OptionNumber};
use coapway_proxy::Input;

use crate::bench::{Bench, settings};

const SECOND: Duration = Duration::from_secs(1);

fn draining(within: Duration) -> Bench {
    let mut bench = Bench::new(settings(&[("a", 1), ("n", 5683)]));
    bench.get(1, "a");
    bench.get(2, "a");
    bench.get(3, "n");
    let until = bench.now + within;
    bench.give(Input::Drain { until });
    bench
}

#[test]
fn new_requests_are_told_how_long_the_drain_may_take() {
    let mut bench = draining(20 * SECOND);
    for (passed, max_age) in [(Duration::ZERO, 20), (Duration::from_millis(500), 20), (18 * SECOND, 5)] {
        bench.pass(passed);
        bench.to_clients.clear();
        bench.get(9, "a");
        let [answer] = &bench.to_clients[..] else { panic!("one answer") };
        let content = answer.message().content;
        assert_eq!(
            (content.code, content.payload),
            (Code::SERVICE_UNAVAILABLE, &b"not-sent: shutting down"[..])
        );
        assert_eq!(content.options.uint(OptionNumber::MAX_AGE), Some(max_age), "after {passed:?}");
    }
}

#[test]
fn running_requests_are_finished() {
    let mut bench = draining(20 * SECOND);
    bench.pass(SECOND);
    let request = bench.only_sent();
    bench.respond(&request, Code::CONTENT, b"one");
    let second = bench.only_sent();
    assert!(!bench.proxy.is_idle());
    bench.respond(&second, Code::CONTENT, b"two");
    let answers = bench.answers();
    let texts: Vec<_> = answers.iter().map(|(port, _, text)| (*port, &**text)).collect();
    assert_eq!(texts, [(1, "one"), (2, "two")]);
}

#[test]
fn what_runs_out_of_time_is_answered_as_it_stands() {
    let mut bench = draining(10 * SECOND);
    bench.pass(10 * SECOND - Duration::from_millis(10));
    assert_eq!(bench.answers(), []);
    let left = bench.to_origins.len();
    bench.pass(Duration::from_millis(10));
    let mut answers = bench.answers();
    answers.sort_by_key(|(port, ..)| *port);
    assert_eq!(
        answers,
        [
            (1, Code::GATEWAY_TIMEOUT, "outcome-unknown: no answer in time".to_owned()),
            (2, Code::SERVICE_UNAVAILABLE, "not-sent: shutting down".to_owned()),
            (3, Code::SERVICE_UNAVAILABLE, "not-sent: shutting down".to_owned()),
        ]
    );
    assert_eq!(bench.to_origins.len(), left, "nothing leaves for an origin any more");
    assert!(!bench.proxy.is_idle(), "the answers are separate and not acknowledged");
    bench.pass(4 * SECOND);
    assert!(bench.proxy.drained_at().is_some_and(|end| end <= bench.now));
    assert!(bench.answers().len() >= 3, "they were sent again");
}

#[test]
fn answers_that_wait_for_their_turn_leave_before_the_end() {
    let mut bench = Bench::new(settings(&[("a", 1), ("b", 2)]));
    // One client that acknowledges nothing.
    bench.get(1, "a");
    bench.get(1, "b");
    let until = bench.now + 2 * SECOND;
    bench.give(Input::Drain { until });
    bench.pass(3 * SECOND);
    assert_eq!(bench.answers().len(), 1, "one is under way, the other in line");
    bench.pass(4 * SECOND);
    let answers = bench.answers();
    let codes: Vec<_> = answers.iter().map(|(_, code, _)| *code).collect();
    assert!(codes.len() >= 2 && codes.iter().all(|code| *code == Code::GATEWAY_TIMEOUT), "{answers:?}");
    assert_eq!(bench.proxy.occupancy().requests, 0);
}

#[test]
fn thousands_of_requests_are_cut_short_in_portions_and_each_is_answered() {
    let mut bench = Bench::new(settings(&[("a", 1)]));
    let most = 3000;
    for port in 1..=most {
        bench.get(port, "a");
    }
    bench.give(Input::Drain { until: bench.now });
    bench.pass(Duration::from_millis(2));
    let mut ports: Vec<_> = bench.answers().into_iter().map(|(port, ..)| port).collect();
    ports.sort_unstable();
    assert_eq!(ports, (1..=most).collect::<Vec<_>>());
    assert_eq!(bench.to_origins.len(), 1, "nothing left because room was made");
}
