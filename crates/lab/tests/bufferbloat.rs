//! Crowds behind one large buffer, through the proxy as shipped: where as many endpoints would fill the buffer
//! with their copies, each by a timeout of its own, the window of the proxy leaves it empty.
//!
//! With N clients and a service time s a round is over after N·s, if each request crosses the link once.

use std::time::Duration;

use coapway_lab::{Outage, Policy, Scenario, Study, Summary, find, metric};

/// Bytes of an answer with what carries it.
const ANSWER: f64 = 100.0;
const SETTLED: Duration = Duration::from_secs(150);
const END: Duration = Duration::from_secs(300);

/// What is shipped, and timers under which as many endpoints collapse sooner or later.
const POLICIES: [&str; 4] = ["default", "rfc7252", "p95,rto.carry=never", "cocoa"];

fn policies(names: &[&str]) -> Vec<Policy> {
    let parse = |name: &&str| Policy::parse(name, &[]).unwrap_or_else(|problem| panic!("{problem}"));
    names.iter().map(parse).collect()
}

fn crowd(clients: u32) -> Scenario {
    let scenario = find(&format!("bufferbloat-{clients}")).remove(0);
    assert_eq!(scenario.clients.count, clients);
    Scenario { warmup: SETTLED, duration: END, ..scenario }
}

/// What the link takes for one answer, in seconds.
fn service(scenario: &Scenario) -> f64 {
    8.0 * ANSWER / scenario.path.down.rate.expect("a link with a rate")
}

fn run(cells: Vec<Scenario>, names: &[&str]) -> Vec<Vec<Summary>> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Study { policies: policies(names), cells, runs: 1, seed: 1, threads }.run(&|_| ())
}

fn of(summary: &Summary, key: &str) -> f64 {
    summary.runs[0][metric(key).expect("it is measured")]
}

/// Of the copies that crossed the link, the share that answered something.
fn useful(summary: &Summary) -> f64 {
    of(summary, "answered") / of(summary, "transmissions")
}

#[track_caller]
fn assert_rests_at_one_copy(what: &str, scenario: &Scenario, seen: &Summary, tolerance: f64) {
    let (answered, useful, mean) = (of(seen, "answered"), useful(seen), of(seen, "mean"));
    let expected = f64::from(scenario.clients.count) * service(scenario);
    assert_eq!(answered, 1.0, "{what}");
    assert!(useful > 1.0 - tolerance, "{what}: {useful} of all copies of use");
    assert!((mean / expected - 1.0).abs() < tolerance, "{what}: {mean} s, expected {expected} s");
}

#[test]
fn each_request_crosses_the_link_once_whatever_the_timer() {
    let cells = [50, 100, 200, 400, 800].map(crowd);
    for (cell, results) in cells.iter().zip(run(cells.to_vec(), &POLICIES)) {
        for (name, seen) in POLICIES.iter().zip(&results) {
            assert_rests_at_one_copy(&format!("{}, {name}", cell.name), cell, seen, 0.005);
        }
    }
}

/// N·s = 1.8 s: with timeouts of 2 to 3 s both one copy and two copies of each request can last. An origin that
/// does nothing for 6 s makes a backlog.
fn pair() -> [Scenario; 2] {
    let mut quiet = crowd(100);
    quiet.path.down.rate = Some(8.0 * ANSWER * 100.0 / 1.8);
    let mut disturbed = quiet.clone();
    let second = Duration::from_secs(1);
    disturbed.origin.stalls = vec![Outage { at: 60 * second, lasts: 6 * second, every: END, times: 1 }];
    [quiet, disturbed]
}

#[test]
fn one_backlog_does_not_switch_it() {
    let [_, disturbed] = pair();
    for (name, seen) in POLICIES.iter().zip(&run(vec![disturbed.clone()], &POLICIES)[0]) {
        // CoCoA never carries a back-off, and remembers the stall for a while.
        let tolerance = if *name == "cocoa" { 0.02 } else { 0.005 };
        assert_rests_at_one_copy(name, &disturbed, seen, tolerance);
    }
}

#[test]
fn it_is_the_window_that_keeps_the_buffer_empty() {
    // Without one each request has its timeout to itself, as an endpoint has.
    let open = ["rfc7252,nstart=1024,max_wait=300s"];
    let [quiet, disturbed] = pair();
    for (cell, copies) in [(crowd(200), 4.0), (quiet, 1.0), (disturbed, 2.0)] {
        let rest = f64::from(cell.clients.count) * service(&cell) * copies;
        let seen = run(vec![cell], &open).remove(0).remove(0);
        let (useful, mean) = (useful(&seen), of(&seen, "mean"));
        assert!((useful * copies - 1.0).abs() < 0.005, "{copies} copies: {useful}");
        assert!((mean / rest - 1.0).abs() < 0.005, "{copies} copies: {mean} s, expected {rest} s");
    }
}

#[test]
fn a_crowd_that_cannot_be_served_in_time_leaves_the_link_in_full_use() {
    // 1600 · 26.7 ms are more than max_wait: most are told at once to come back.
    let crowd = crowd(1600);
    let capacity = 1.0 / service(&crowd);
    let time = (crowd.duration - crowd.warmup).as_secs_f64();
    for (name, seen) in POLICIES.iter().zip(&run(vec![crowd], &POLICIES[..1])[0]) {
        let (useful, silent) = (useful(seen), of(seen, "silent"));
        let rate = of(seen, "requests") * of(seen, "answered") / time;
        assert!(useful > 0.99, "{name}: {useful} of all copies of use");
        assert!(rate > 0.98 * capacity, "{name}: {rate} answers a second, and the link carries {capacity}");
        assert_eq!(silent, 0.0, "{name}: those without an answer are told so");
    }
}
