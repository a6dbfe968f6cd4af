//! Round-trip times and loss, apart from each other.
//!
//! Which copy of a repeated message was acknowledged is not to be seen, and what has not come may be lost
//! or late. Both are left open and estimated together (expectation and maximisation): each copy is lost,
//! or comes back after a time that is distributed as that of all others. First copies and further ones
//! have a loss of their own, since further ones leave when something was lost just before.
//!
//! What comes later than anything that was seen for certain counts as lost: silence cannot tell the two
//! apart.
//!
//! Assumes: the copies of one exchange share nothing but that. Where all of them are late together, what
//!          is taken for loss is too high; where records count what came after the answer, it is not.

mod expect;

use self::expect::{Belief, Expected};
use crate::histogram::{self, BINS, Histogram, bin};
use crate::trial::Trial;

/// Beyond these the times follow the chance in the data.
const MOST_ROUNDS: usize = 200;
/// What changes after these is in doubt.
const FIRM_ROUNDS: usize = 50;
const CLOSE: f64 = 1e-6;
/// Of the times that are certain, or certainly no shorter, this share is no chance.
const CERTAIN: f64 = 0.999;

/// Exchanges of one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'s> {
    /// Exact round-trip times.
    pub(crate) exact: &'s Histogram,
    /// All other exchanges, and for how many each stands.
    pub(crate) others: &'s [Trial],
    pub(crate) weight: f64,
}

/// What they say.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    /// The share of round-trip times in each bin of a [`Histogram`].
    pub(crate) times: Vec<f64>,
    /// The share of first copies that did not come back.
    pub(crate) loss: f64,
    /// The same of further copies; `None` when there were none.
    pub(crate) loss_again: Option<f64>,
    /// How far loss still moves when all that can be explained has been: what is late and what is lost
    /// look alike.
    pub(crate) doubt: f64,
    /// First copies.
    pub(crate) exchanges: f64,
    /// Further copies.
    pub(crate) again: f64,
    /// Copies that came back.
    pub(crate) arrivals: f64,
    /// Further copies that left although an earlier one came back.
    pub(crate) spurious: f64,
}

impl Fit {
    /// The round-trip time that a share does not exceed, in milliseconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        histogram::quantile(self.times.iter().copied(), share)
    }

    /// `None` when nothing ever came back.
    pub(crate) fn new(seen: &[Seen<'_>]) -> Option<Self> {
        let mut model = Model::begin(seen)?;
        let mut firm = model.came[0];
        for round in 0..MOST_ROUNDS {
            let change = model.improve(seen);
            if round < FIRM_ROUNDS {
                firm = model.came[0];
            }
            if change < CLOSE {
                break;
            }
        }
        let Model { times, came, sums, .. } = model;
        Some(Self {
            times,
            loss: 1.0 - came[0],
            doubt: (came[0] - firm).abs(),
            loss_again: (sums.copies[1] > 0.0).then_some(1.0 - came[1]),
            exchanges: sums.copies[0],
            again: sums.copies[1],
            arrivals: sums.arrivals,
            spurious: sums.spurious,
        })
    }
}

#[derive(Clone, Debug, Default)]
struct Sums {
    /// First copies, and further ones.
    copies: [f64; 2],
    /// Those of them that came back.
    came: [f64; 2],
    arrivals: f64,
    spurious: f64,
}

struct Model {
    /// Per bin, summing to 1.
    times: Vec<f64>,
    /// The share of first and of further copies that come back.
    came: [f64; 2],
    sums: Sums,
    /// Scratch: what falls into each bin, and what lies anywhere from there on.
    counts: Vec<f64>,
    beyond: Vec<f64>,
}

impl Model {
    fn begin(seen: &[Seen<'_>]) -> Option<Self> {
        // To begin with, nothing is late: the last copy was acknowledged, those before it were lost.
        let mut times = vec![0.0; BINS];
        let (mut copies, mut came) = ([0.0; 2], [0.0; 2]);
        for part in seen {
            times.iter_mut().zip(part.exact.bins()).for_each(|(weight, &count)| *weight += count as f64);
            let exact = part.exact.count() as f64;
            (copies[0], came[0]) = (copies[0] + exact, came[0] + exact);
            for trial in part.others {
                let further = trial.copies.len() - 1;
                copies[0] += part.weight;
                copies[1] += part.weight * further as f64;
                let candidates = trial.copies.iter().filter(|copy| trial.arrived && copy.is_candidate);
                if let Some(shortest) = candidates.map(|copy| bin(copy.millis.into())).min() {
                    times[shortest] += part.weight;
                    came[further.min(1)] += part.weight;
                }
            }
        }
        let first = times.iter().position(|&weight| weight > 0.0)?;
        let last = bin(1.1 * histogram::quantile(times.iter().copied(), CERTAIN)).max(first);
        let all: f64 = times.iter().sum();
        times.iter_mut().skip(last + 1).for_each(|weight| *weight = 0.0);
        for weight in times.get_mut(first..=last)? {
            *weight += all * 1e-4 / BINS as f64;
        }
        normalise(&mut times);
        let scratch = vec![0.0; BINS + 1];
        let sums = Sums::default();
        let share = |kind: usize| (came[kind] / f64::max(copies[kind], 1.0)).clamp(0.01, 0.999);
        let came = [share(0), share(1)];
        Some(Self { times, came, sums, counts: scratch.clone(), beyond: scratch })
    }

    /// One round; says how much the shares that come back have changed.
    fn improve(&mut self, seen: &[Seen<'_>]) -> f64 {
        self.counts.fill(0.0);
        self.beyond.fill(0.0);
        self.sums = Sums::default();
        let tail = tail(&self.times);
        for part in seen {
            for (&count, sum) in part.exact.bins().iter().zip(&mut self.counts) {
                *sum += count as f64;
            }
            let exact = part.exact.count() as f64;
            self.sums.copies[0] += exact;
            self.sums.came[0] += exact;
            for trial in part.others {
                let belief = Belief { times: &self.times, tail: &tail, came: self.came };
                self.add(&Expected::new(trial, belief), part.weight, &tail);
            }
        }
        // What lies beyond a bin is spread over those behind it as the times are.
        let mut spread = 0.0;
        for at in 0..BINS {
            self.counts[at] += spread * self.times[at];
            spread += self.beyond[at];
        }
        self.sums.arrivals = self.sums.came.iter().sum();
        self.times.copy_from_slice(&self.counts[..BINS]);
        normalise(&mut self.times);
        let mut change = 0.0;
        for kind in 0..2 {
            if self.sums.copies[kind] > 0.0 {
                let came = (self.sums.came[kind] / self.sums.copies[kind]).clamp(1e-6, 1.0);
                change = f64::max(change, (came - self.came[kind]).abs());
                self.came[kind] = came;
            }
        }
        change
    }

    /// Adds what is to be expected of one exchange.
    fn add(&mut self, expected: &Expected, weight: f64, tail: &[f64]) {
        let mut all_before_lost = 1.0;
        for k in 0..expected.count {
            let (kind, at) = (k.min(1), expected.bins[k]);
            let (first, later) = (expected.first[k], expected.later[k]);
            self.sums.copies[kind] += weight;
            self.sums.came[kind] += weight * (first + later);
            self.counts[at] += weight * first;
            let behind = tail[at] - self.times[at];
            if behind > 0.0 {
                self.beyond[at] += weight * later / behind;
            } else {
                self.counts[at] += weight * later;
            }
            if k > 0 {
                self.sums.spurious += weight * (1.0 - all_before_lost);
            }
            all_before_lost *= 1.0 - (first + later).min(1.0);
        }
    }
}

/// The sum of each bin and all behind it.
fn tail(times: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; times.len()];
    let mut sum = 0.0;
    for at in (0..times.len()).rev() {
        sum += times[at];
        sums[at] = sum;
    }
    sums
}

fn normalise(weights: &mut [f64]) {
    let all: f64 = weights.iter().sum();
    if all > 0.0 {
        weights.iter_mut().for_each(|weight| *weight /= all);
    }
}

#[cfg(test)]
mod tests;
