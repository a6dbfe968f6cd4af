//! Round-trip times and loss, apart from each other.
//!
//! Which copy of a repeated message was acknowledged is not to be seen, and what has not come may be lost
//! or late. Both are left open and estimated together (expectation and maximisation): each copy is lost,
//! or comes back after a time that is distributed as that of all others. First copies and further ones
//! have a loss of their own, since further ones leave when something was lost just before.
//!
//! Assumes: the copies of one exchange share nothing but that. Where all of them are late together, what
//!          is taken for loss is too high; where records count what came after the answer, it is not.

use crate::histogram::{self, BINS, Histogram, bin, edge};
use crate::trial::Trial;

const MOST_ROUNDS: usize = 300;
const CLOSE: f64 = 1e-6;

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
        for _ in 0..MOST_ROUNDS {
            if model.improve(seen) < CLOSE {
                break;
            }
        }
        let Model { times, came, sums, .. } = model;
        Some(Self {
            times,
            loss: 1.0 - came[0],
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
        // A little everywhere, up to the longest wait: what was never seen can still be.
        let mut times = vec![0.0; BINS];
        let mut longest = 0;
        for part in seen {
            part.exact.bins().iter().zip(&mut times).for_each(|(&count, weight)| *weight += count as f64);
            for trial in part.others {
                for copy in &trial.copies {
                    let at = bin(copy.millis.into());
                    longest = longest.max(at);
                    if trial.arrived && copy.is_candidate {
                        times[at] += part.weight / trial.copies.len() as f64;
                    }
                }
            }
        }
        let shortest = times.iter().position(|&weight| weight > 0.0)?;
        let all: f64 = times.iter().sum();
        for weight in times.get_mut(shortest..=longest.max(shortest))? {
            *weight += all * 1e-4 / BINS as f64;
        }
        normalise(&mut times);
        let scratch = vec![0.0; BINS + 1];
        let sums = Sums::default();
        Some(Self { times, came: [0.9; 2], sums, counts: scratch.clone(), beyond: scratch })
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
                self.expect(trial, part.weight, &tail);
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

    /// What is to be expected of the copies of one exchange.
    fn expect(&mut self, trial: &Trial, weight: f64, tail: &[f64]) {
        const MOST: usize = 16;
        let count = trial.copies.len().min(MOST);
        let (mut bins, mut late, mut first) = ([0; MOST], [0.0; MOST], [0.0; MOST]);
        for (k, copy) in trial.copies.iter().take(count).enumerate() {
            let at = bin(copy.millis.into());
            let came = self.came[k.min(1)];
            // It is still to come with this probability, given that it has not come so far.
            let later = came * (tail[at] - self.times[at] / 2.0).max(0.0);
            let not_yet = 1.0 - came + later;
            bins[k] = at;
            late[k] = if not_yet > 0.0 { later / not_yet } else { 0.0 };
            if trial.arrived && copy.is_candidate {
                let density = self.times[at] / (edge(at + 1) - edge(at));
                first[k] = came * density / not_yet.max(1e-12);
            }
        }
        if trial.arrived {
            let all: f64 = first.iter().sum();
            let candidates = trial.copies.iter().take(count).filter(|copy| copy.is_candidate).count();
            for (k, copy) in trial.copies.iter().take(count).enumerate() {
                first[k] = match (all > 0.0, copy.is_candidate) {
                    (true, _) => first[k] / all,
                    (false, true) => 1.0 / candidates.max(1) as f64,
                    (false, false) => 0.0,
                };
            }
        }
        if let Some(arrivals) = trial.arrivals {
            // Of the others so many came as the record counts.
            let known = (arrivals as f64).min(count as f64) - f64::from(u8::from(trial.arrived));
            let expected: f64 = (0..count).map(|k| (1.0 - first[k]) * late[k]).sum();
            let most: f64 = (0..count).map(|k| 1.0 - first[k]).sum();
            for k in 0..count {
                let share = if known <= expected || most <= expected {
                    if expected > 0.0 { late[k] * known / expected } else { 0.0 }
                } else {
                    late[k] + (1.0 - late[k]) * (known - expected) / (most - expected)
                };
                late[k] = share.clamp(0.0, 1.0);
            }
        }
        let mut all_before_lost = 1.0;
        for k in 0..count {
            let (kind, at) = (k.min(1), bins[k]);
            let later = (1.0 - first[k]) * late[k];
            self.sums.copies[kind] += weight;
            self.sums.came[kind] += weight * (first[k] + later);
            self.counts[at] += weight * first[k];
            let behind = tail[at] - self.times[at];
            if behind > 0.0 {
                self.beyond[at] += weight * later / behind;
            } else {
                self.counts[at] += weight * later;
            }
            if k > 0 {
                self.sums.spurious += weight * (1.0 - all_before_lost);
            }
            all_before_lost *= 1.0 - (first[k] + later).min(1.0);
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
