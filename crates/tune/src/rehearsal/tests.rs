use coapway_proxy::{Lines, Record, UpstreamParameters};

use super::node::ORIGIN;
use super::stage::Stage;
use super::*;
use crate::path::Distribution;

/// The product's own record writer.
fn write(record: &Record, upstream: &str, bytes: &mut Vec<u8>) {
    let mut line = vec![0; Lines::room(record, upstream)];
    let length = Lines::new(1_796_019_797_000_000)
        .write(record, upstream, &|_| Some(ORIGIN), &mut line)
        .expect("there is room");
    bytes.extend_from_slice(&line[..length]);
}

/// Records of the product on this path.
pub(crate) fn records(path: &Path, policy: &UpstreamParameters, requests: usize, seed: u64) -> (String, Run) {
    let mut stage = Stage::new(path, policy, Some(write), requests, seed);
    stage.play();
    let run = stage.run(0);
    (String::from_utf8(stage.into_written()).expect("JSON"), run)
}

/// A path that loses `loss` each way and takes 100 ms · e^(N/2) otherwise.
pub(crate) fn path(loss: f64) -> Path {
    let mut random = fastrand::Rng::with_seed(99);
    let mut histogram = crate::histogram::Histogram::default();
    for _ in 0..200_000 {
        let normal = (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos();
        histogram.add(100.0 * (0.5 * normal).exp());
    }
    Path {
        round_trip: Distribution::of(&histogram).expect("there are times"),
        delay_is_shared: false,
        loss_there: loss,
        loss_back: loss,
        bursts: None,
        outages: None,
        separate: None,
        load: 5.0,
        once: 0.0,
        non_confirmable: 0.0,
    }
}

#[test]
fn without_loss_each_request_takes_one_round_trip() {
    let run = stage::run(&path(0.0), &UpstreamParameters::default(), 1000, 1);
    assert_eq!(run.answered, 1.0);
    assert!(run.copies - run.spurious < 1.001 && run.spurious < 0.05, "{run:?}");
    assert!((90.0..115.0).contains(&run.median), "{run:?}");
}

#[test]
fn loss_costs_what_the_closed_form_says() {
    // 1/s copies a request at s = 0.85², where nearly all are answered: 1.382.
    let run = stage::run(&path(0.15), &UpstreamParameters::default(), 4000, 1);
    assert!((run.copies - run.spurious - 1.382).abs() < 0.06, "{run:?}");
    assert!(run.answered > 0.985, "{run:?}");
}

#[test]
fn one_seed_is_one_run() {
    let policy = UpstreamParameters::default();
    let [one, same, other] = [3, 3, 4].map(|seed| stage::run(&path(0.1), &policy, 300, seed));
    assert_eq!(one, same);
    assert_ne!(one, other);
}

#[test]
fn separate_and_non_confirmable_responses_come_as_well() {
    let path =
        Path { separate: Some((0.5, path(0.0).round_trip.scaled(20.0))), non_confirmable: 0.3, ..path(0.1) };
    let run = stage::run(&path, &UpstreamParameters::default(), 1000, 1);
    assert!((0.9..1.0).contains(&run.answered), "{run:?}");
    assert!(run.p95 > 2000.0, "{run:?}");
}

#[test]
fn a_fixed_timeout_under_the_round_trip_fills_the_buffer_with_copies() {
    let learned = UpstreamParameters::default();
    let mut fixed = learned;
    fixed.rto.estimator = coapway_endpoint::Estimator::Fixed;
    // 100 endpoints · 26.7 ms are above the 2 s that it begins with; a back-off helps now and then.
    let share = bottleneck::useful_share(&fixed, 100, 1);
    assert!((0.4..0.75).contains(&share), "{share}");
    assert!(bottleneck::useful_share(&learned, 100, 1) > 0.9);
}
