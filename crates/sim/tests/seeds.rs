//! A thousand storms, each with all checks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use coapway_sim::storm::{self, Failed, Tally};

const SEEDS: u64 = 1000;

#[test]
fn a_thousand_storms_violate_nothing() {
    let next = AtomicU64::new(0);
    let work = || {
        let (mut failures, mut tally) = (Vec::new(), Tally::default());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= SEEDS || failures.len() >= 20 {
                return (failures, tally);
            }
            match storm::run(seed) {
                Ok(one) => tally += one,
                Err(failure) => failures.push(failure),
            }
        }
    };
    let (first, second) = thread::scope(|scope| {
        let (first, second) = (scope.spawn(work), scope.spawn(work));
        (first.join().expect("failures are caught"), second.join().expect("failures are caught"))
    });
    let failures: Vec<_> = first.0.iter().chain(&second.0).map(Failed::to_string).collect();
    assert!(failures.is_empty(), "{} seeds failed\n{}", failures.len(), failures.join("\n"));
    let mut tally = first.1;
    tally += second.1;
    println!("{tally}");
    assert!(tally.succeeded * 5 > tally.asked, "a storm is no black hole: {tally}");
}

#[test]
fn one_seed_gives_one_log() {
    for seed in [1, 2, 3] {
        assert_eq!(storm::replay(seed).journal().log(), storm::replay(seed).journal().log());
    }
    assert_ne!(storm::replay(1).journal().log(), storm::replay(2).journal().log());
}
