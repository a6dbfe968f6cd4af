//! Many storms, on all cores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::{Report, grouped};
use crate::storm::{self, Failed, Tally};

/// So many failures say enough.
const MOST_FAILURES: usize = 20;

/// Runs the storms of these seeds on so many threads.
pub fn run(seeds: std::ops::Range<u64>, threads: usize) -> Report {
    let (failures, tally) = results(seeds.clone(), threads);
    let mut report = Report::new(format!("{} storms", grouped(seeds.end - seeds.start)));
    report.row("seeds", format!("{} to {}", seeds.start, seeds.end.saturating_sub(1)));
    for (what, count) in tally.rows() {
        report.row(what, grouped(count));
    }
    report.findings = failures.iter().map(Failed::to_string).collect();
    report
}

/// What failed, and what came of the others.
pub fn results(seeds: std::ops::Range<u64>, threads: usize) -> (Vec<Failed>, Tally) {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let (mut failures, mut tally) = (Vec::new(), Tally::default());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || failures.len() >= MOST_FAILURES {
                return (failures, tally);
            }
            match storm::run(seed) {
                Ok(one) => tally += one,
                Err(failure) => failures.push(failure),
            }
        }
    };
    let results = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("failures are caught")).collect::<Vec<_>>()
    });
    results.into_iter().fold((Vec::new(), Tally::default()), |(mut failures, mut tally), (more, one)| {
        failures.extend(more);
        tally += one;
        (failures, tally)
    })
}
