//! What becomes of a datagram: a function of the seed, of what it is and of when it leaves, so that one
//! policy's copies do not shift what happens to another's.

use crate::path::Path;

/// Chance on a path.
pub(crate) struct Weather<'p> {
    path: &'p Path,
    seed: u64,
    /// When the path turns bad and good again in turn, in µs; it begins good.
    turns: Vec<u64>,
    random: fastrand::Rng,
}

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    There,
    Back,
}

impl<'p> Weather<'p> {
    pub(crate) fn new(path: &'p Path, seed: u64) -> Self {
        Self { path, seed, turns: Vec::new(), random: fastrand::Rng::with_seed(mixed(seed ^ 0x77)) }
    }

    /// Of the draws that belong to `copy` of a request, the one called `what`; from 0 to 1.
    pub(crate) fn draw(&self, request: u32, copy: u32, what: u32) -> f64 {
        let key = u64::from(request) << 24 | u64::from(copy & 0xFFF) << 12 | u64::from(what);
        (mixed(self.seed ^ mixed(key)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The round-trip time of a copy, in µs.
    pub(crate) fn round_trip(&self, request: u32, copy: u32) -> u64 {
        let copy = if self.path.delay_is_shared { 0 } else { copy };
        (self.path.round_trip.at(self.draw(request, copy, 0)) * 1000.0) as u64
    }

    /// Whether what leaves now is lost, where `draw` decides.
    pub(crate) fn loses(&mut self, way: Way, draw: f64, now: u64) -> bool {
        if let Some((every, lasting)) = self.path.outages
            && now as f64 / 1e6 % every >= every - lasting
        {
            return true;
        }
        let loss = match (self.path.bursts, way) {
            (Some(bursts), _) if self.is_bad(bursts.good, bursts.bad, now) => {
                1.0 - (1.0 - bursts.loss).sqrt()
            }
            (Some(_), _) => 0.0,
            (None, Way::There) => self.path.loss_there,
            (None, Way::Back) => self.path.loss_back,
        };
        draw < loss
    }

    fn is_bad(&mut self, good: f64, bad: f64, now: u64) -> bool {
        while self.turns.last().is_none_or(|&last| last <= now) {
            let mean = if self.turns.len().is_multiple_of(2) { good } else { bad };
            let lasts = (-mean * (1.0 - self.random.f64()).ln() * 1e6) as u64;
            self.turns.push(self.turns.last().copied().unwrap_or(0) + lasts.max(1));
        }
        self.turns.partition_point(|&turn| turn <= now) % 2 == 1
    }
}

/// One round of splitmix: near numbers give far ones.
pub(crate) const fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}
