//! A queue and a bursty channel against their formulas; what is conserved; what is the same again.

use std::time::Duration;

use coapway_model::bottleneck::{self, Cell};
use coapway_model::burst::{Burst, Channel};
use coapway_model::loss::{self, Delay, Lossy};
use coapway_model::queueing::{Service, formula, mean_wait};
use coapway_model::{Policy, Telling};
use coapway_time::Instant;

#[test]
fn queues_wait_as_long_as_theory_says() {
    let mean = Duration::from_millis(10);
    for service in [Service::Deterministic, Service::Exponential] {
        for load in [0.3, 0.5, 0.8] {
            let waits: Duration = (0..4).map(|seed| mean_wait(service, mean, load, seed, 1_000_000)).sum();
            let (seen, expected) = (waits.as_secs_f64() / 4.0, formula(service, mean, load).as_secs_f64());
            assert!((seen / expected - 1.0).abs() < 0.02, "{service:?} at {load}: {seen}, {expected}");
        }
    }
}

const BURSTY: Burst =
    Burst { good: Duration::from_secs(2), bad: Duration::from_millis(500), loss_good: 0.005, loss_bad: 0.8 };

#[test]
fn bursts_lose_as_much_as_theory_says() {
    for (bad, expected) in [(500, 0.164), (100, 0.0429)] {
        let burst = Burst { bad: Duration::from_millis(bad), ..BURSTY };
        assert!((burst.mean_loss() - expected).abs() < 0.0005, "{}", burst.mean_loss());
        let mut channel = Channel::new(burst, 7);
        let step = Duration::from_millis(50);
        let count = 4_000_000_u32;
        let mut now = Instant::ZERO;
        let mut lost = 0;
        for _ in 0..count {
            now += step;
            lost += u32::from(channel.loses(now));
        }
        let seen = f64::from(lost) / f64::from(count);
        assert!((seen / expected - 1.0).abs() < 0.02, "{seen}, expected {expected}");
    }
}

#[test]
fn a_loss_foretells_the_next_as_theory_says() {
    for (lag, expected) in [(100, 0.64), (200, 0.54), (500, 0.34), (2000, 0.17)] {
        let lag = Duration::from_millis(lag);
        let theory = BURSTY.loss_after_loss(lag);
        assert!((theory - expected).abs() < 0.006, "{lag:?}: {theory}, expected {expected}");
        let mut channel = Channel::new(BURSTY, 7);
        let mut now = Instant::ZERO;
        let (mut first, mut both) = (0, 0);
        for _ in 0..400_000 {
            now += Duration::from_secs(20);
            let one = channel.loses(now);
            let other = channel.loses(now + lag);
            now += lag;
            first += u32::from(one);
            both += u32::from(one && other);
        }
        let seen = f64::from(both) / f64::from(first);
        assert!((seen - theory).abs() < 0.01, "{lag:?}: {seen}, expected {theory}");
    }
}

#[test]
fn nothing_is_lost_without_being_counted() {
    for policy in Policy::all() {
        for loss in [0.0, 0.15, 0.6] {
            let path = Lossy { loss, delay: Delay::NB_IOT, seed: 5 };
            loss::run(policy, path, 2000).check().unwrap_or_else(|error| panic!("{}: {error}", policy.name));
        }
        for clients in [20, 300] {
            let tally = bottleneck::run(policy, Cell::of(clients), 5, Duration::from_secs(200));
            tally.check().unwrap_or_else(|error| panic!("{}: {error}", policy.name));
            assert_eq!(tally.requests_lost + tally.answers_lost, 0);
        }
    }
}

#[test]
fn no_exchange_has_more_copies_than_allowed() {
    for policy in Policy::all() {
        let tally = loss::run(policy, Lossy { loss: 0.5, delay: Delay::WIFI, seed: 5 }, 3000);
        assert!(tally.by_retransmissions.len() <= policy.max_retransmit as usize + 1, "{}", policy.name);
        assert!(tally.copies <= tally.begun * u64::from(policy.max_retransmit + 1), "{}", policy.name);
    }
}

/// Nothing in it asks a library for a logarithm, so that it is the same wherever it runs.
fn hashes(seed: u64) -> [u64; 3] {
    let path = Lossy { loss: 0.2, delay: Delay::Constant(Duration::from_millis(80)), seed };
    let lossy = loss::run(Policy::budget("budget", 0.05, Telling::ALL), path, 5000);
    let queued = |policy| bottleneck::run(policy, Cell::of(150), seed, Duration::from_secs(300)).hash;
    [lossy.hash, queued(Policy::rfc7252()), queued(Policy::cocoa(true))]
}

#[test]
fn a_seed_is_a_run_and_another_seed_another() {
    assert_eq!(hashes(1), hashes(1));
    assert!(hashes(1).iter().zip(hashes(2)).all(|(one, other)| *one != other));
}

#[test]
fn the_run_of_a_seed_is_the_same_everywhere() {
    assert_eq!(hashes(1), [8259014284807753950, 7518135061495879145, 9719087180887542065]);
}

#[test]
fn luck_does_not_depend_on_the_policy() {
    // The first copy of an exchange has the same fate whoever sent it.
    let first_tries = |policy| {
        let path = Lossy { loss: 0.15, delay: Delay::Constant(Duration::from_millis(50)), seed: 9 };
        loss::run(policy, path, 10_000).by_retransmissions
    };
    let of_all: Vec<_> = Policy::all().into_iter().map(first_tries).collect();
    assert!(of_all.windows(2).all(|pair| pair[0] == pair[1]), "{of_all:?}");
}
