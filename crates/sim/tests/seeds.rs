//! A thousand storms, each with all checks.

use coapway_sim::soak::storms;
use coapway_sim::storm::{self, Failed};

const SEEDS: u64 = 1000;

#[test]
fn a_thousand_storms_violate_nothing() {
    let (failures, tally) = storms::results(0..SEEDS, 2);
    let failures: Vec<_> = failures.iter().map(Failed::to_string).collect();
    assert!(failures.is_empty(), "{} seeds failed\n{}", failures.len(), failures.join("\n"));
    println!("{tally}");
    assert!(tally.succeeded * 6 > tally.asked, "a storm is no black hole: {tally}");
}

#[test]
fn one_seed_gives_one_log() {
    for seed in [1, 2, 3] {
        assert_eq!(storm::replay(seed).journal().log(), storm::replay(seed).journal().log());
    }
    assert_ne!(storm::replay(1).journal().log(), storm::replay(2).journal().log());
}
