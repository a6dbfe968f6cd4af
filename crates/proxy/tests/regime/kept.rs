//! What outlives a restart.

use std::time::Duration;

use coapway_proxy::{Kept, Learned, Patience, UpstreamParameters};
use coapway_relay::UpstreamId;

use crate::bench::{Bench, ORIGIN, SECOND, settings};

fn bench() -> Bench {
    let mut parameters = settings(UpstreamParameters::default(), Patience::Off);
    let nstart = UpstreamParameters::default().nstart;
    parameters.upstreams.iter_mut().for_each(|upstream| upstream.nstart = nstart);
    Bench::new(parameters)
}

fn learned(bench: &Bench) -> Option<Learned> {
    bench.proxy.learned(ORIGIN, UpstreamId(1))
}

/// Twenty round trips of 300 ms, a second apart.
fn experienced() -> Bench {
    let mut bench = bench();
    for number in 0..20 {
        bench.get(1, &number.to_string());
        bench.pass(Duration::from_millis(300));
        let sent = bench.sent.pop().expect("it left");
        bench.respond(&sent);
        bench.pass(Duration::from_millis(700));
    }
    bench
}

#[test]
fn timeouts_and_half_of_the_window_outlive_a_restart() {
    let old = experienced();
    let before = learned(&old).expect("known");
    let kept: Vec<_> = old.proxy.export_learned(old.now).collect();
    assert_eq!((kept.len(), kept[0].round_trips.len(), &*kept[0].upstream), (1, 20, "origin"));
    let mut new = bench();
    assert_eq!(learned(&new), None);
    assert_eq!(new.proxy.import_learned(kept.clone(), new.now), 1);
    let after = learned(&new).expect("taken over");
    let same = |learned: Learned| (learned.timeout, learned.round_trip, learned.samples);
    assert_eq!(same(after), same(before));
    assert_eq!((before.window, after.window), (4, 2));
    assert_eq!(new.proxy.import_learned(kept, new.now), 0, "what it knows itself is left alone");
    new.proxy.check_invariants();
}

#[test]
fn ages_go_on_and_old_samples_expire() {
    let old = experienced();
    let mut kept: Vec<_> = old.proxy.export_learned(old.now).collect();
    for (age, _) in &mut kept[0].round_trips {
        *age += 890 * SECOND;
    }
    let mut new = bench();
    assert_eq!(new.proxy.import_learned(kept.clone(), new.now), 1);
    assert_eq!(learned(&new).map(|learned| learned.samples), Some(10), "the others are over 900 s old");
    new.pass(20 * SECOND).get(1, "a");
    assert_eq!(learned(&new).map(|learned| learned.samples), Some(0));
    for (age, _) in &mut kept[0].round_trips {
        *age += 20 * SECOND;
    }
    assert_eq!(bench().proxy.import_learned(kept, new.now), 0);
}

#[test]
fn what_means_nothing_here_is_passed_by() {
    let kept = |upstream: &str, round_trips: &[(u64, u64)]| Kept {
        upstream: upstream.into(),
        origin: ORIGIN,
        window: u32::MAX,
        heard: true,
        round_trips: round_trips
            .iter()
            .map(|&(age, time)| (Duration::from_secs(age), Duration::from_secs(time)))
            .collect(),
    };
    let mut bench = bench();
    let now = bench.now;
    let mut takes = |kept| bench.proxy.import_learned([kept], now);
    assert_eq!(takes(kept("nobody", &[(1, 1)])), 0);
    assert_eq!(takes(kept("origin", &[])), 0);
    assert_eq!(takes(kept("origin", &[(u64::MAX, 1)])), 0);
    assert_eq!(takes(kept("origin", &[(1, 1), (5, u64::MAX), (3, 0)])), 1);
    let learned = learned(&bench).expect("taken over");
    assert_eq!((learned.samples, learned.window), (3, 1024));
}
