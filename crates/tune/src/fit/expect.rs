//! What is to be expected of the copies of one exchange, given what was seen of it.

use crate::histogram::{bin, edge};
use crate::trial::{MOST, Trial};

/// Per copy.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub(super) count: usize,
    /// Into which bin its time falls, or how much of it is over without an Acknowledgement.
    pub(super) bins: [usize; MOST],
    /// That it is the one which was acknowledged first.
    pub(super) first: [f64; MOST],
    /// That it comes back later than what was seen.
    pub(super) later: [f64; MOST],
}

/// What is believed of the path so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Belief<'b> {
    /// The share of times in each bin, and in it and all behind.
    pub(super) times: &'b [f64],
    pub(super) tail: &'b [f64],
    /// The share of first and of further copies that come back.
    pub(super) came: [f64; 2],
}

/// What could have become of each copy, unnormalised.
#[derive(Default)]
struct Fates {
    now: [f64; MOST],
    later: [f64; MOST],
    lost: [f64; MOST],
}

impl Expected {
    pub(super) fn new(trial: &Trial, belief: Belief<'_>) -> Self {
        let mut expected = Self { count: trial.copies.len().min(MOST), ..Self::default() };
        let mut fates = Fates::default();
        for (k, copy) in trial.copies.iter().take(MOST).enumerate() {
            let (at, came) = (bin(copy.millis.into()), belief.came[k.min(1)]);
            let time = belief.times[at];
            expected.bins[k] = at;
            fates.lost[k] = 1.0 - came;
            fates.later[k] = came * (belief.tail[at] - time / 2.0).max(0.0);
            if trial.arrived && copy.is_candidate {
                fates.now[k] = came * time / (edge(at + 1) - edge(at));
            }
        }
        let counted = trial.arrivals.is_some_and(|arrivals| expected.count(trial, arrivals as usize, &fates));
        if !counted {
            expected.guess(trial, &fates);
        }
        expected
    }

    /// How many came back is not known: copies are independent of each other.
    fn guess(&mut self, trial: &Trial, fates: &Fates) {
        let mut sum = 0.0;
        for k in 0..self.count {
            self.first[k] = fates.now[k] / (fates.later[k] + fates.lost[k]).max(1e-12);
            sum += self.first[k];
        }
        let candidates = trial.copies.iter().filter(|copy| trial.arrived && copy.is_candidate).count();
        for (k, copy) in trial.copies.iter().take(self.count).enumerate() {
            let is_candidate = trial.arrived && copy.is_candidate;
            self.first[k] = match (sum > 0.0, is_candidate) {
                (true, _) => self.first[k] / sum,
                (false, true) => 1.0 / candidates.max(1) as f64,
                (false, false) => 0.0,
            };
            let open = fates.later[k] + fates.lost[k];
            let later = if open > 0.0 { fates.later[k] / open } else { 0.0 };
            self.later[k] = (1.0 - self.first[k]) * later;
        }
    }

    /// So many came back. `false` when that cannot be, as far as is believed.
    fn count(&mut self, trial: &Trial, arrivals: usize, fates: &Fates) -> bool {
        let arrivals = arrivals.min(self.count);
        let all = 0..self.count;
        if !trial.arrived {
            let sum = fates.ways(all.clone(), arrivals);
            for k in all.clone().filter(|_| sum > 0.0 && arrivals > 0) {
                let others = all.clone().filter(|&other| other != k);
                self.later[k] = fates.later[k] * fates.ways(others, arrivals - 1) / sum;
            }
            return sum > 0.0;
        }
        let others = arrivals.saturating_sub(1);
        for j in all.clone() {
            self.first[j] = fates.now[j] * fates.ways(all.clone().filter(|&k| k != j), others);
        }
        let sum: f64 = self.first[..self.count].iter().sum();
        if sum <= 0.0 {
            return false;
        }
        for j in all.clone().filter(|&j| fates.now[j] > 0.0) {
            for k in all.clone().filter(|&k| k != j && others > 0) {
                let rest = all.clone().filter(|&other| other != j && other != k);
                self.later[k] += fates.now[j] * fates.later[k] * fates.ways(rest, others - 1) / sum;
            }
        }
        self.first.iter_mut().for_each(|first| *first /= sum);
        true
    }
}

impl Fates {
    /// That exactly so many of these copies are to come and the others are lost.
    fn ways(&self, copies: impl Iterator<Item = usize>, count: usize) -> f64 {
        let mut ways = [0.0; MOST + 1];
        ways[0] = 1.0;
        for k in copies {
            for come in (0..=count).rev() {
                let with_this = if come > 0 { ways[come - 1] * self.later[k] } else { 0.0 };
                ways[come] = ways[come] * self.lost[k] + with_this;
            }
        }
        ways[count]
    }
}
