//! Chance: a stream for each thing that happens, so that no policy shifts the luck of another.

use std::time::Duration;

/// A stream of its own for these numbers.
pub(crate) fn stream(seed: u64, numbers: [u64; 3]) -> fastrand::Rng {
    let mixed = numbers.into_iter().fold(mix(seed), |state, number| mix(state ^ number));
    fastrand::Rng::with_seed(mixed)
}

/// SplitMix64.
const fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

/// An exponential time.
pub(crate) fn exponential(mean: Duration, random: &mut fastrand::Rng) -> Duration {
    mean.mul_f64(-(1.0 - random.f64()).ln())
}

/// A normal number of mean 0 and deviation 1.
pub(crate) fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}
