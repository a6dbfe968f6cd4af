//! RFC 7252 under random loss, against its formulas.

use std::time::Duration;

use coapway_model::formulas::Formulas;
use coapway_model::loss::{Delay, Lossy, run};
use coapway_model::{Policy, Tally};

const EXCHANGES: u64 = 200_000;
/// Below ACK_TIMEOUT, and constant, so that each wait shows.
const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Whether `seen` of `count` tries is within four standard deviations of `expected`.
fn assert_share(what: &str, seen: u64, count: u64, expected: f64) {
    let deviation = (expected * (1.0 - expected) / count as f64).sqrt();
    let share = seen as f64 / count as f64;
    assert!((share - expected).abs() <= 4.0 * deviation + 1e-12, "{what}: {share}, expected {expected}");
}

fn assert_mean(what: &str, mean: f64, expected: f64, variance: f64, count: u64) {
    let deviation = (variance / count as f64).sqrt();
    assert!((mean - expected).abs() <= 4.0 * deviation, "{what}: {mean}, expected {expected} ± {deviation}");
}

fn tally(loss: f64) -> Tally {
    run(Policy::rfc7252(), Lossy { loss, delay: Delay::Constant(ROUND_TRIP), seed: 1 }, EXCHANGES)
}

#[test]
fn the_formulas_give_the_known_values() {
    for (loss, copies, failed, wait, executed) in [
        (0.01, 1.0203, 3.12e-9, 0.0518, 0.968),
        (0.05, 1.1080, 8.81e-6, 0.3020, 0.965),
        (0.10, 1.2343, 2.476e-4, 0.7411, 0.960),
        (0.15, 1.3818, 1.646e-3, 1.3516, 0.954),
        (0.20, 1.5531, 6.047e-3, 2.1367, 0.947),
        (0.30, 1.9704, 3.450e-2, 4.1028, 0.930),
    ] {
        let formulas = Formulas::new(loss);
        let close = |seen: f64, expected: f64| (seen / expected - 1.0).abs() < 1e-3;
        assert!(close(formulas.mean_copies(), copies), "{formulas:?}");
        assert!(close(formulas.failed(), failed), "{formulas:?}");
        assert!(close(2.5 * formulas.mean_wait(), wait), "{formulas:?}");
        assert!(close(formulas.executed_given_failed(), executed), "{formulas:?}");
    }
}

#[test]
fn copies_failures_and_executions_are_as_the_formulas_say() {
    for loss in [0.01, 0.05, 0.1, 0.15, 0.2, 0.3] {
        let formulas = Formulas::new(loss);
        let tally = tally(loss);
        let count = tally.completed + tally.failed;
        assert_eq!(count, EXCHANGES);
        let copies = tally.per_exchange(tally.copies);
        assert_mean("copies", copies, formulas.mean_copies(), formulas.variance_of_copies(), count);
        assert_share("failed", tally.failed, count, formulas.failed());
        for k in 1..=4_usize {
            let needed = tally.by_retransmissions.iter().skip(k).sum::<u64>() + tally.failed;
            assert_share("retransmissions", needed, count, formulas.needs(k as i32));
        }
        assert_share("executed", tally.executed, count, formulas.executed());
        assert_share("executed and failed", tally.executed_and_failed, count, formulas.executed_and_failed());
        assert_share("reached", tally.executed_copies, tally.copies, 1.0 - loss);
    }
}

#[test]
fn waits_are_as_the_formulas_say() {
    for loss in [0.01, 0.05, 0.1, 0.15, 0.2, 0.3] {
        let formulas = Formulas::new(loss);
        let tally = tally(loss);
        let waited = (tally.mean() - ROUND_TRIP).as_secs_f64() / 2.5;
        assert_mean("wait", waited, formulas.mean_wait(), formulas.variance_of_wait(), tally.completed);
    }
}

#[test]
fn an_exchange_in_vain_is_given_up_after_31_first_timeouts() {
    // All is lost: nothing but failures, one behind the other.
    let tally = run(Policy::rfc7252(), Lossy { loss: 1.0, delay: Delay::WIFI, seed: 1 }, 20_000);
    assert_eq!((tally.completed, tally.failed, tally.copies), (0, 20_000, 20_000 * 5 + 1));
    // The last timer of each went off 31 T after its first copy, T evenly from 2 to 3 s.
    let mean = tally.now.as_secs_f64() / 20_000.0;
    assert_mean("given up after", mean, 77.5, (31.0_f64).powi(2) / 12.0, 20_000);
}
