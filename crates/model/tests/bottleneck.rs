//! Many clients behind one queue: fixed points, and who leaves them.

use std::time::Duration;

use coapway_endpoint::Estimator;
use coapway_model::bottleneck::{Cell, Steady, steady};
use coapway_model::{Policy, Telling};

const SECOND: Duration = Duration::from_secs(1);

fn settled(policy: Policy, cell: Cell) -> Steady {
    steady(policy, cell, 7, 3000 * SECOND, 4500 * SECOND)
}

fn assert_goodput(what: &str, seen: Steady, expected: f64) {
    let off = (seen.goodput - expected).abs();
    assert!(off <= 0.005 * expected.max(0.02), "{what}: {seen:?}, expected {expected}");
}

fn policy(name: &str) -> Policy {
    let mut all = Policy::all().into_iter();
    all.find(|policy| policy.name == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn rfc_7252_rests_at_its_fixed_points() {
    // N·s, and how many copies of each exchange are carried.
    for (load, copies) in [(1.34, 1.0), (2.67, 2.0), (4.0, 3.0), (6.0, 4.0), (10.7, 5.0)] {
        let cell = Cell { service: SECOND.mul_f64(load / 200.0), ..Cell::of(200) };
        let seen = settled(Policy::rfc7252(), cell);
        assert_goodput(&format!("{load}"), seen, 1.0 / copies);
        let mean = seen.mean.as_secs_f64();
        assert!((mean / (copies * load) - 1.0).abs() < 0.005, "{load}: {mean}, expected {}", copies * load);
    }
    let beyond = settled(Policy::rfc7252(), Cell { service: SECOND.mul_f64(19.0 / 200.0), ..Cell::of(200) });
    assert!(beyond.completed == 0 && beyond.failed > 1000, "above 18.6 s everything fails: {beyond:?}");
}

#[test]
fn one_backlog_switches_a_system_that_has_two_fixed_points_for_ever() {
    let quiet = Cell { service: SECOND.mul_f64(1.8 / 100.0), spread: Duration::ZERO, ..Cell::of(100) };
    let disturbed = Cell { backlog: 6 * SECOND, ..quiet };
    assert_goodput("left alone", settled(Policy::rfc7252(), quiet), 1.0);
    assert_goodput("after 6 s of other traffic", settled(Policy::rfc7252(), disturbed), 0.5);
    for name in ["rfc6298", "cocoa", "budget 0.05", "budget 0.05 + duplicates + ping", "p95"] {
        assert_goodput(name, settled(policy(name), disturbed), 1.0);
    }
}

#[test]
fn who_carries_a_back_off_sends_each_request_once_again() {
    for name in [
        "rfc6298",
        "rfc6298 + fresh MID",
        "linux",
        "p95",
        "budget 0.05",
        "budget 0.05 + duplicates + ping",
        "budget 0.05 + fresh MID",
        "fasor, capped",
    ] {
        for clients in [50, 100, 200, 400, 800] {
            let seen = settled(policy(name), Cell::of(clients));
            assert_goodput(&format!("{name}, {clients} clients"), seen, 1.0);
            let expected = clients as f64 * Cell::SERVICE.as_secs_f64();
            assert!((seen.mean.as_secs_f64() / expected - 1.0).abs() < 0.005, "{name}, {clients}: {seen:?}");
        }
    }
}

#[test]
fn exact_samples_hold_up_to_sixteen_hundred_clients() {
    let duplicates = Policy::rfc6298("rfc6298 + duplicates", Telling::DUPLICATES);
    for policy in [
        duplicates,
        policy("rfc6298 + fresh MID"),
        policy("budget 0.05 + fresh MID"),
        Policy::budget("budget 0.05 + duplicates", 0.05, Telling::DUPLICATES),
    ] {
        assert_goodput(policy.name, settled(policy, Cell::of(1600)), 1.0);
    }
}

#[test]
fn who_carries_none_collapses_sooner_or_later() {
    for (name, clients, expected) in [
        ("cocoa", 50, 1.0),
        ("cocoa", 100, 1.0),
        ("cocoa", 200, 1.0),
        ("cocoa", 400, 1.0),
        ("cocoa", 800, 0.0),
        ("p95 without carry", 50, 1.0),
        ("p95 without carry", 100, 1.0),
        ("p95 without carry", 800, 0.0),
        ("fasor as drafted", 800, 0.0),
    ] {
        assert_goodput(
            &format!("{name}, {clients} clients"),
            settled(policy(name), Cell::of(clients)),
            expected,
        );
    }
    // Some clients got an exact sample before the queue grew, others never: no fixed point.
    let mixed = settled(policy("p95 without carry"), Cell::of(200)).goodput;
    assert!((0.40..0.55).contains(&mixed), "{mixed}");
    let mixed = settled(policy("p95 without carry"), Cell::of(400)).goodput;
    assert!((0.195..0.23).contains(&mixed), "{mixed}");
    let probe = Policy::product("pto", Estimator::Pto, Telling::CLEAN);
    let seen = settled(probe, Cell::of(400)).goodput;
    assert!(seen < 0.3, "any Acknowledgement ends its back-off: {seen}");
}

#[test]
fn what_the_first_ten_minutes_cost() {
    for (name, expected) in [("rfc6298", 0.94), ("fasor, capped", 0.91), ("budget 0.05 + fresh MID", 0.97)] {
        let seen = steady(policy(name), Cell::of(400), 7, Duration::ZERO, 600 * SECOND).goodput;
        assert!((seen / expected - 1.0).abs() < 0.05, "{name}: {seen}, expected {expected}");
    }
}

#[test]
fn clients_without_memory_fall_back_each_time() {
    for (policy, expected) in [
        (Policy::rfc7252(), 0.2),
        (policy("cocoa"), 0.2),
        (policy("fasor, capped"), 0.556),
        (Policy::rfc6298("rfc6298 + duplicates", Telling::DUPLICATES), 0.607),
        (policy("rfc6298 + fresh MID"), 0.68),
    ] {
        let seen = settled(policy, Cell { reset_after: Some(5), ..Cell::of(400) }).goodput;
        assert!((seen / expected - 1.0).abs() < 0.1, "{}: {seen}, expected {expected}", policy.name);
    }
}
