//! A path that gets worse.

use coapway_proxy::{Patience, UpstreamParameters};

use crate::bench::{Bench, SECOND, settings};

/// The request is answered when so many copies have left.
fn answered_at(bench: &mut Bench, copies: usize, path: &str) {
    bench.get(1, path);
    for _ in 0..100 {
        if bench.sent.len() < copies {
            bench.pass(SECOND / 10);
        }
    }
    assert_eq!(bench.sent.len(), copies);
    let last = bench.sent.pop().expect("it left");
    bench.respond(&last);
    bench.answers.clear();
    bench.sent.clear();
}

#[test]
fn retries_that_rise_are_told_and_no_further_copy_leaves_for_that() {
    let mut bench = Bench::new(settings(UpstreamParameters::default(), Patience::Off));
    for number in 0..400 {
        answered_at(&mut bench, 1, &number.to_string());
        bench.pass(SECOND);
    }
    assert!(bench.alerts.is_empty(), "{:?}", bench.alerts);
    for number in 0..150 {
        // Of three requests one needs a second copy, as when a fifth is lost each way.
        answered_at(&mut bench, if number % 3 == 0 { 2 } else { 1 }, &format!("then {number}"));
        bench.pass(SECOND);
    }
    assert_eq!(bench.alerts, ["retries rose"]);
    bench.get(1, "in vain");
    bench.pass(30 * SECOND);
    let most = 1 + UpstreamParameters::default().max_retransmit_stretched(true) as usize;
    assert_eq!(
        bench.sent.drain(..).filter(|sent| sent.path() == "in vain").count(),
        most,
        "no more than ever"
    );
    bench.answers.clear();
    for number in 0..1000 {
        answered_at(&mut bench, 1, &format!("again {number}"));
        bench.pass(SECOND);
    }
    assert_eq!(bench.alerts, ["retries rose", "retries calmed"]);
}
