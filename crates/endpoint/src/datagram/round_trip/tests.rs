//! What is shared by all estimates, and the two that are asked most.

use super::*;
use crate::parameters::{Carry, Estimator};

pub(super) const WAIT: Duration = Duration::from_secs(93);

/// The samples of the vectors.
pub(super) const SAMPLES: [Duration; 6] = [
    Duration::from_millis(100),
    Duration::from_millis(120),
    Duration::from_millis(80),
    Duration::from_millis(400),
    Duration::from_millis(100),
    Duration::from_millis(100),
];

/// Without a floor.
pub(super) fn parameters(estimator: Estimator) -> RtoParameters {
    RtoParameters { estimator, floor: Duration::ZERO, ..RtoParameters::default() }
}

/// In milliseconds with two decimals at the most.
pub(super) fn shown(timeout: Duration) -> String {
    let hundredths = (timeout.as_secs_f64() * 1e5).round();
    format!("{}", hundredths / 100.0)
}

/// The timeout after each sample.
pub(super) fn after_each<const N: usize>(estimator: Estimator, samples: [Duration; N]) -> [String; N] {
    let mut round_trip = RoundTrip::new(parameters(estimator), Duration::from_secs(2));
    samples.map(|sample| {
        round_trip.sample(sample, Instant::ZERO);
        shown(round_trip.in_force(WAIT))
    })
}

fn round_trip() -> RoundTrip {
    RoundTrip::new(p95(), Duration::from_secs(2))
}

fn p95() -> RtoParameters {
    RtoParameters { estimator: Estimator::P95, window: 50, ..RtoParameters::default() }
}

fn fed(samples: impl IntoIterator<Item = u64>) -> RoundTrip {
    let mut round_trip = round_trip();
    for sample in samples {
        round_trip.sample(Duration::from_millis(sample), Instant::ZERO);
    }
    round_trip
}

#[test]
fn takes_the_nearest_rank() {
    for (count, rank) in [(1, 1), (20, 19), (40, 38), (50, 48)] {
        assert_eq!(fed(1..=count).quantile(), Some(Duration::from_millis(rank)), "{count}");
    }
}

#[test]
fn follows_the_requirement_s_examples() {
    assert_eq!(round_trip().timeout(WAIT, 0, Instant::ZERO).timeout, Duration::from_secs(2));
    let mut spread = fed((1..=50).map(|n| n * 100));
    assert_eq!(spread.quantile(), Some(Duration::from_millis(4800)));
    assert_eq!(spread.timeout(WAIT, 0, Instant::ZERO).timeout, Duration::from_secs(10));
    assert_eq!(fed([50; 50]).timeout(WAIT, 0, Instant::ZERO).timeout, Duration::from_millis(200));
}

#[test]
fn the_cap_never_lies_under_what_was_measured() {
    assert!(fed([12_000; 50]).timeout(WAIT, 0, Instant::ZERO).timeout > Duration::from_secs(12));
}

#[test]
fn old_samples_expire() {
    let mut round_trip = fed([100; 50]);
    let later = Instant::ZERO + Duration::from_secs(901);
    assert_eq!(round_trip.timeout(WAIT, 0, later).timeout, Duration::from_secs(2));
    assert!(round_trip.is_empty());
}

#[test]
fn a_back_off_is_held_until_an_exact_sample() {
    let mut round_trip = fed([100; 50]);
    let first = round_trip.timeout(WAIT, 0, Instant::ZERO).timeout;
    round_trip.timed_out(first, false);
    assert_eq!(round_trip.timeout(WAIT, 0, Instant::ZERO).timeout, first * 2);
    round_trip.sample(Duration::from_millis(100), Instant::ZERO);
    assert_eq!(round_trip.timeout(WAIT, 0, Instant::ZERO).timeout, first);
}

#[test]
fn parallel_losses_double_once() {
    let mut round_trip = fed([100; 50]);
    let first = round_trip.timeout(WAIT, 0, Instant::ZERO).timeout;
    for _ in 0..10 {
        round_trip.timed_out(first, false);
    }
    assert_eq!(round_trip.timeout(WAIT, 0, Instant::ZERO).timeout, first * 2);
}

#[test]
fn only_a_wait_like_the_one_in_force_is_doubled() {
    for (used, held) in [(900, 2000), (1100, 2200), (2000, 4000), (4000, 8000), (4100, 2000), (60_000, 2000)]
    {
        let mut round_trip = round_trip();
        round_trip.timed_out(Duration::from_millis(used), false);
        assert_eq!(
            round_trip.timeout(WAIT, 0, Instant::ZERO).timeout,
            Duration::from_millis(held),
            "{used} ms"
        );
    }
    let mut longest = RoundTrip::new(p95(), Duration::from_secs(50));
    longest.timed_out(Duration::from_secs(50), false);
    assert_eq!(longest.timeout(10 * WAIT, 0, Instant::ZERO).timeout, LONGEST_HELD);
}

#[test]
fn what_was_measured_can_be_asked_for() {
    let measured = fed([70, 50, 60]);
    let millis = |time: Option<Duration>| time.map(|time| time.as_millis());
    assert_eq!((millis(measured.minimum()), millis(measured.last())), (Some(50), Some(60)));
    assert_eq!((measured.len(), measured.is_empty(), measured.exact_samples()), (3, false, 3));
    let nothing = round_trip();
    assert_eq!((nothing.minimum(), nothing.last(), nothing.quantile()), (None, None, None));
    assert_eq!((nothing.len(), nothing.is_empty(), nothing.exact_samples()), (0, true, 0));
}

#[test]
fn a_held_back_off_leaves_room_for_three_copies() {
    let mut round_trip = fed([1000; 50]);
    let mut used = round_trip.timeout(WAIT, 0, Instant::ZERO).timeout;
    for _ in 0..8 {
        round_trip.timed_out(used, false);
        used = used.max(round_trip.timeout(WAIT, 0, Instant::ZERO).timeout);
    }
    let timeout = round_trip.timeout(Duration::from_secs(30), 0, Instant::ZERO).timeout;
    assert!(timeout * 3 * 3 / 2 <= Duration::from_secs(31), "{timeout:?}");
}

#[test]
fn a_held_back_off_ends_when_the_origin_was_left_alone() {
    let mut round_trip = round_trip();
    let start = Duration::from_secs(2);
    round_trip.timed_out(round_trip.clone().timeout(WAIT, 0, Instant::ZERO).timeout, false);
    let busy = Instant::ZERO + Duration::from_secs(900);
    assert_eq!(round_trip.timeout(WAIT, 0, busy).timeout, start * 2);
    assert_eq!(round_trip.timeout(WAIT, 0, busy + Duration::from_secs(901)).timeout, start);
}

#[test]
fn an_alert_is_due_when_the_path_is_slower_than_the_cap() {
    assert!(!round_trip().cap_is_exceeded());
    assert!(!fed([10_000; 50]).cap_is_exceeded());
    assert!(fed([10_001; 50]).cap_is_exceeded());
    let mut fixed = fed([12_000; 50]);
    let parameters = RtoParameters { estimator: Estimator::Fixed, ..RtoParameters::default() };
    fixed.set_parameters(parameters, Duration::from_secs(2));
    assert!(!fixed.cap_is_exceeded(), "nothing is capped");
    assert_eq!(fixed.timeout(WAIT, 0, Instant::ZERO).timeout, Duration::from_secs(2));
}

#[test]
fn a_constant_path_beyond_the_cap_is_learned_and_no_longer_sent_twice() {
    // 12 s of round trip and a wait of 60 s: nothing is exact until the timeout has grown past it.
    let (path, wait) = (Duration::from_secs(12), Duration::from_secs(60));
    let mut round_trip = round_trip();
    let mut clean = 0;
    for exchange in 0..10u32 {
        let now = Instant::ZERO + exchange * Duration::from_secs(20);
        let timeout = round_trip.timeout(wait, 0, now).timeout;
        if timeout > path {
            round_trip.sample(path, now + path);
            clean += 1;
            continue;
        }
        let mut used = timeout;
        let mut elapsed = used;
        while elapsed < path {
            round_trip.timed_out(used, false);
            used *= 2;
            elapsed += used;
        }
    }
    assert!(clean >= 7, "{clean} of 10");
    assert!(round_trip.timeout(wait, 0, Instant::ZERO + Duration::from_secs(200)).timeout > path);
    assert!(round_trip.cap_is_exceeded());
}

#[test]
fn ambiguous_exchanges_neither_shrink_nor_stretch_what_was_learned() {
    // 30 exact samples of 50 ms, then exchanges whose second copy is answered after 5 ms.
    let mut round_trip = fed([50; 30]);
    for _ in 0..30 {
        let used = round_trip.timeout(Duration::from_secs(30), 0, Instant::ZERO).timeout;
        assert!(used >= RtoParameters::default().floor);
        round_trip.timed_out(used, false);
        assert_eq!(round_trip.quantile(), Some(Duration::from_millis(50)));
        assert_eq!(round_trip.exact_samples(), 30);
    }
    let held = round_trip.timeout(Duration::from_secs(30), 0, Instant::ZERO).timeout;
    assert!(held <= Duration::from_secs(7), "{held:?} leaves no room for three copies");
    round_trip.sample(Duration::from_millis(50), Instant::ZERO);
    assert_eq!(round_trip.timeout(WAIT, 0, Instant::ZERO).timeout, Duration::from_millis(200));
}

#[test]
fn each_origin_has_the_timeout_of_its_own_path() {
    // 20 ms with 10 % loss beside 1.5 s without.
    let mut random = fastrand::Rng::with_seed(7);
    let (mut near, mut far) = (round_trip(), round_trip());
    let mut needless = 0;
    for exchange in 0..100u32 {
        let now = Instant::ZERO + exchange * Duration::from_millis(500);
        let used = near.timeout(WAIT, 0, now).timeout;
        if exchange >= 20 {
            assert!(used >= Duration::from_millis(200) && used < Duration::from_secs(2), "{used:?}");
        }
        if random.f64() < 0.1 {
            near.timed_out(used, false);
        } else {
            near.sample(Duration::from_millis(20), now);
        }
        let path = Duration::from_millis(1400 + random.u64(..200));
        needless += u32::from(far.timeout(WAIT, 0, now).timeout < path);
        far.sample(path, now);
    }
    assert!(needless < 3, "{needless} needless copies");
    let later = Instant::ZERO + Duration::from_secs(50 + 901);
    assert_eq!(
        (near.timeout(WAIT, 0, later).timeout, far.timeout(WAIT, 0, later).timeout),
        (Duration::from_secs(2), Duration::from_secs(2))
    );
}

#[test]
fn a_back_off_is_carried_by_all_but_cocoa_and_only_if_wanted() {
    for estimator in Estimator::ALL {
        for carry in [Carry::Auto, Carry::InForce, Carry::RanOut, Carry::Never] {
            let parameters = RtoParameters { carry, ..parameters(estimator) };
            let mut round_trip = RoundTrip::new(parameters, Duration::from_secs(2));
            round_trip.timed_out(Duration::from_secs(2), false);
            let is_cocoa = matches!(estimator, Estimator::Cocoa | Estimator::CocoaStrong);
            let expected = if carry == Carry::Never || is_cocoa { 2 } else { 4 };
            assert_eq!(round_trip.in_force(WAIT), Duration::from_secs(expected), "{estimator:?}, {carry:?}");
        }
    }
}

#[test]
fn what_chance_added_to_a_wait_is_not_carried() {
    let held = |estimator, used: &[u64]| {
        let mut round_trip = RoundTrip::new(parameters(estimator), Duration::from_secs(2));
        used.iter().for_each(|&millis| round_trip.timed_out(Duration::from_millis(millis), false));
        round_trip.in_force(Duration::MAX).as_millis()
    };
    for estimator in [Estimator::Budget, Estimator::Rfc6298, Estimator::Linux, Estimator::Pto] {
        assert_eq!(held(estimator, &[3000]), 4000, "{estimator:?}");
        assert_eq!(held(estimator, &[3000, 3000, 2100]), 4000, "in parallel");
        assert_eq!(held(estimator, &[3000, 6000, 12_000]), 16_000, "one after the other");
        assert_eq!(held(estimator, &[1999]), 2000, "a shorter one says nothing");
        assert_eq!(held(estimator, &[4001]), 2000, "one of another time neither");
        assert_eq!(held(estimator, &[1, 2, 4, 8, 16, 32, 64, 128].map(|n| n * 2000)), 60_000, "the longest");
    }
    assert_eq!(held(Estimator::P95, &[3000]), 6000, "unless that is asked for, or always was so");
    let parameters = RtoParameters { carry: Carry::InForce, ..parameters(Estimator::P95) };
    let mut round_trip = RoundTrip::new(parameters, Duration::from_secs(2));
    round_trip.timed_out(Duration::from_secs(3), false);
    assert_eq!(round_trip.in_force(WAIT), Duration::from_secs(4));
}

#[test]
fn an_estimator_that_is_changed_to_learns_from_the_samples_there_are() {
    for estimator in Estimator::ALL {
        let mut changed = RoundTrip::new(parameters(Estimator::Fixed), Duration::from_secs(2));
        let mut from_the_start = RoundTrip::new(parameters(estimator), Duration::from_secs(2));
        for sample in SAMPLES {
            changed.sample(sample, Instant::ZERO);
            from_the_start.sample(sample, Instant::ZERO);
        }
        changed.timed_out(Duration::from_secs(2), false);
        changed.set_parameters(parameters(estimator), Duration::from_secs(2));
        from_the_start.timed_out(Duration::from_secs(2), false);
        let base = |round_trip: &RoundTrip| round_trip.base.timeout;
        assert_eq!(base(&changed), base(&from_the_start), "{estimator:?}");
        let carries = changed.estimate.carry(Carry::Auto) != Carry::Never;
        assert_eq!(changed.held.is_some(), carries, "{estimator:?}");
    }
}

#[test]
fn every_estimate_is_forgotten_with_its_last_sample_or_ages_to_what_is_safe() {
    let later = Instant::ZERO + Duration::from_secs(901);
    for estimator in Estimator::ALL {
        let mut round_trip = RoundTrip::new(parameters(estimator), Duration::from_secs(2));
        (0..100).for_each(|_| round_trip.sample(Duration::from_millis(100), Instant::ZERO));
        let timing = round_trip.timeout(WAIT, 0, later);
        let is_cocoa = matches!(estimator, Estimator::Cocoa | Estimator::CocoaStrong);
        let least = Duration::from_millis(if is_cocoa { 1000 } else { 2000 });
        assert!(timing.timeout >= least && timing.timeout <= Duration::from_secs(2), "{timing:?}");
    }
}

#[test]
fn no_estimate_leaves_its_bounds() {
    let mut random = fastrand::Rng::with_seed(7);
    for estimator in Estimator::ALL {
        let mut round_trip = RoundTrip::new(RtoParameters { estimator, ..RtoParameters::default() }, WAIT);
        let mut now = Instant::ZERO;
        for step in 0..3000_u32 {
            now += Duration::from_secs(random.u64(0..100));
            // From nothing to hours, and what a broken clock would say.
            let time =
                if step % 100 == 0 { Duration::MAX } else { Duration::from_nanos(1 << random.u32(0..45)) };
            match random.u8(0..5) {
                0 => round_trip.ambiguous(time, random.u32(1..5), now),
                1 => round_trip.timed_out(time, random.bool()),
                2 => round_trip.failed(now - time, now),
                _ => round_trip.sample(time, now),
            }
            let timing = round_trip.timeout(WAIT, random.u32(0..9), now);
            assert!(timing.timeout >= RtoParameters::default().floor, "{estimator:?}: {timing:?}");
            let highest = if estimator == Estimator::P95 { Duration::from_secs(4800) } else { LONGEST };
            assert!(timing.timeout <= highest, "{estimator:?}: {timing:?}");
        }
    }
}

#[test]
fn in_a_silence_little_is_held_until_the_path_is_heard_of() {
    let learned = || {
        let mut round_trip = RoundTrip::new(parameters(Estimator::Budget), Duration::from_secs(2));
        (0..20).for_each(|_| round_trip.sample(Duration::from_millis(1000), Instant::ZERO));
        round_trip
    };
    let mut silent = learned();
    let mut used = Duration::from_millis(1100);
    for _ in 0..4 {
        silent.timed_out(used, true);
        used *= 2;
    }
    assert_eq!(silent.in_force(WAIT).as_millis(), 4400, "four times the timeout");
    let mut slow = silent.clone();
    slow.ambiguous(Duration::from_secs(20), 4, Instant::ZERO);
    assert_eq!(slow.in_force(WAIT).as_millis(), 17_600, "it was slow all along");
    let mut failed = silent.clone();
    failed.failed(Instant::ZERO, Instant::ZERO);
    assert_eq!(failed.in_force(WAIT).as_millis(), 17_600, "all copies of a schedule were in vain");
    silent.sample(Duration::from_millis(1000), Instant::ZERO);
    silent.ambiguous(Duration::from_secs(20), 4, Instant::ZERO);
    assert_eq!(silent.in_force(WAIT).as_millis(), 1100, "it was not there, and is back");
    let mut heard = learned();
    [1100, 2200, 4400].into_iter().for_each(|used| heard.timed_out(Duration::from_millis(used), false));
    assert_eq!(heard.in_force(WAIT).as_millis(), 8800);
}
