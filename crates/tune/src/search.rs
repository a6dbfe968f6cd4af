//! Which policy suits a path: candidates, tried in several weathers, and the one that costs least.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fit::Fit;
use crate::path::{Path, Scenario, scenarios};
use crate::policy::{InForce, Policy, Setting, estimators, refinements};
use crate::predictor::{Predictor, Run, Runs};

/// Of the scenarios, worst first, so much counts: the conditional value at risk of the cost.
const WORST: f64 = 0.75;
/// A further setting must gain so much, since each is one more to understand.
const WORTH_IT: f64 = 0.01;
/// A policy must gain so much to be proposed.
const WORTH_A_CHANGE: f64 = 0.03;
/// So many policies that fill buffers are looked past.
const MOST_UNSTABLE: usize = 12;
/// Endpoints behind one buffer, and the share of replies that must be of use.
pub(crate) const CROWDS: [usize; 4] = [75, 100, 150, 200];
pub(crate) const USEFUL: f64 = 0.85;

/// How many requests are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effort {
    /// In each run while looking for a policy, and how many runs.
    pub(crate) search: (usize, u64),
    /// The same for what is told, by other chance.
    pub(crate) told: (usize, u64),
    pub(crate) threads: usize,
    pub(crate) seed: u64,
}

/// Runs of so many requests, with one seed after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Draw {
    pub(crate) requests: usize,
    pub(crate) first_seed: u64,
    pub(crate) seeds: u64,
}

impl Effort {
    /// Seeds of each use that one number stands for; there are never so many runs.
    const SEEDS: u64 = 1000;

    /// What policies are chosen by.
    pub(crate) const fn choosing(&self) -> Draw {
        self.draw(self.search, 0)
    }

    /// What is told of them: nothing that the choice has seen, or the choice would flatter itself.
    pub(crate) const fn telling(&self) -> Draw {
        self.draw(self.told, 1)
    }

    const fn draw(&self, (requests, seeds): (usize, u64), purpose: u64) -> Draw {
        let first_seed = self.seed.wrapping_mul(2).wrapping_add(purpose).wrapping_mul(Self::SEEDS);
        Draw { requests, first_seed, seeds }
    }
}

/// What an answer is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prices {
    /// One more copy, in ms of waiting: half of all round trips are shorter.
    pub(crate) copy: f64,
    /// A request that gets no answer, in ms: the whole wait, and once more for the failure.
    pub(crate) failure: f64,
}

impl Prices {
    pub(crate) fn new(path: &Path, in_force: &Policy) -> Self {
        let max_wait = in_force.parameters.max_wait.as_secs_f64() * 1000.0;
        Self { copy: path.round_trip.at(0.5), failure: 2.0 * max_wait }
    }

    /// The cost of a request, in ms.
    pub(crate) fn cost(&self, run: &Run) -> f64 {
        run.answered * run.mean
            + self.copy * (run.copies - 1.0).max(0.0)
            + self.failure * (1.0 - run.answered)
    }
}

/// A policy and how it did in each scenario.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) policy: Policy,
    pub(crate) runs: Vec<Runs>,
}

/// What the search came to.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// `None` when nothing is enough better than what is in force.
    pub(crate) policy: Option<Policy>,
    /// Its cost as a share of that of the policy in force.
    pub(crate) objective: f64,
    pub(crate) tried: usize,
    /// Policies that cost less but fill buffers with copies, and the useful share at the worst.
    pub(crate) unstable: Vec<(Policy, f64)>,
}

pub(crate) struct Search<'s> {
    pub(crate) predictor: &'s dyn Predictor,
    pub(crate) effort: Effort,
    /// Hears how many runs are done of how many.
    pub(crate) progress: &'s (dyn Fn(usize, usize) + Sync),
}

impl Search<'_> {
    /// Looks for a better policy on `path`.
    pub(crate) fn find(&self, path: &Path, fit: &Fit, in_force: &InForce) -> Found {
        let scenarios = scenarios(path);
        let prices = Prices::new(path, &in_force.policy);
        let draw = self.effort.choosing();
        let base = self.judge(&scenarios, std::slice::from_ref(&in_force.policy), draw).remove(0);
        let rank = |policies: Vec<Policy>| -> Vec<(f64, Policy)> {
            let judged = self.judge(&scenarios, &policies, draw);
            let cost = |one: Judged| (objective(&scenarios, &one.runs, &base.runs, &prices), one.policy);
            let mut ranked: Vec<_> = judged.into_iter().map(cost).collect();
            ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
            ranked
        };
        let differs = |policy: &Policy| policy.parameters != in_force.policy.parameters;
        let known = |settings: &Vec<Setting>| in_force.with(settings).filter(differs);
        let mut ranked = rank(estimators().iter().filter_map(known).collect());
        let mut tried = ranked.len();
        let mut unstable = Vec::new();
        let mut best = (1.0, in_force.policy.clone());
        let worth_trying = ranked.extract_if(.., |one| one.0 < 1.0 - WORTH_IT);
        for one in worth_trying.take(MOST_UNSTABLE) {
            let useful = self.useful(&one.1);
            if useful >= USEFUL {
                best = one;
                break;
            }
            unstable.push((one.1, useful));
        }
        let mut fallback = best.clone();
        for options in refinements(fit, &in_force.policy.parameters) {
            let with = |option: Setting| {
                let settings: Vec<_> = best.1.settings.iter().cloned().chain([option]).collect();
                in_force.with(&settings).filter(|policy| policy.parameters != best.1.parameters)
            };
            let candidates: Vec<_> = options.into_iter().filter_map(with).collect();
            tried += candidates.len();
            if let Some(first) =
                rank(candidates).into_iter().next().filter(|first| first.0 < best.0 - WORTH_IT)
            {
                best = first;
            }
        }
        if best.1 != fallback.1 {
            let useful = self.useful(&best.1);
            if useful < USEFUL {
                unstable.push((best.1, useful));
                best = std::mem::replace(&mut fallback, (1.0, in_force.policy.clone()));
            }
        }
        let (objective, policy) = best;
        let policy = Some(policy).filter(|_| objective < 1.0 - WORTH_A_CHANGE);
        Found { policy, objective, tried, unstable }
    }

    /// The useful share of replies where buffers are large, at the worst of the crowds whose round trips
    /// without copies take at most a sixth of `max_wait`. A back-off is held to what leaves room for three
    /// copies; where that is no longer than the round trips of a crowd, no estimator helps.
    pub(crate) fn useful(&self, policy: &Policy) -> f64 {
        let room = policy.parameters.max_wait.as_secs_f64() / 6.0;
        let crowds = CROWDS.into_iter().filter(|&crowd| crowd as f64 * 0.0267 <= room);
        let mut worst = f64::INFINITY;
        for crowd in crowds {
            worst = f64::min(worst, self.predictor.useful_share(policy, crowd, self.effort.seed));
            if worst < USEFUL {
                break;
            }
        }
        worst
    }

    /// Tries each policy in each scenario, all with the same seeds.
    pub(crate) fn judge(&self, scenarios: &[Scenario], policies: &[Policy], draw: Draw) -> Vec<Judged> {
        let Draw { requests, first_seed, seeds } = draw;
        let per_policy = scenarios.len() * seeds as usize;
        let count = policies.len() * per_policy;
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let results = Mutex::new(vec![Run::default(); count]);
        let work = || {
            loop {
                let job = next.fetch_add(1, Ordering::Relaxed);
                if job >= count {
                    return;
                }
                let (policy, scenario) =
                    (&policies[job / per_policy], &scenarios[job % per_policy / seeds as usize]);
                let seed = first_seed.wrapping_add(job as u64 % seeds);
                let run = self.predictor.run(&scenario.path, policy, requests, seed);
                if let Ok(mut results) = results.lock() {
                    results[job] = run;
                }
                (self.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, count);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.effort.threads.min(count.max(1)) {
                scope.spawn(work);
            }
            work();
        });
        let results = results.into_inner().unwrap_or_default();
        let mut runs = results.chunks(seeds.max(1) as usize).map(|some| Runs(some.to_vec()));
        let judged = |policy: &Policy| Judged {
            policy: policy.clone(),
            runs: runs.by_ref().take(scenarios.len()).collect(),
        };
        policies.iter().map(judged).collect()
    }
}

/// The cost of a policy as a share of that of another, over the scenarios in which it does worst.
pub(crate) fn objective(scenarios: &[Scenario], runs: &[Runs], base: &[Runs], prices: &Prices) -> f64 {
    let cost = |runs: &Runs| runs.of(|run| prices.cost(run)).value;
    let mut shares: Vec<_> = scenarios
        .iter()
        .zip(runs.iter().zip(base))
        .map(|(scenario, (runs, base))| (cost(runs) / cost(base).max(1e-9), scenario.weight))
        .collect();
    shares.sort_by(|one, other| other.0.total_cmp(&one.0));
    let counted = WORST * shares.iter().map(|(_, weight)| weight).sum::<f64>();
    let (mut sum, mut left) = (0.0, counted);
    for (share, weight) in shares {
        let weight = weight.min(left);
        sum += share * weight;
        left -= weight;
    }
    sum / counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearsal::tests::path;

    fn runs(mean: f64) -> Runs {
        Runs(vec![Run { mean, answered: 1.0, copies: 1.0, ..Run::default() }; 2])
    }

    #[test]
    fn what_a_policy_does_at_its_best_does_not_count() {
        let scenarios = scenarios(&path(0.1));
        let prices = Prices { copy: 100.0, failure: 60_000.0 };
        let base: Vec<_> = scenarios.iter().map(|_| runs(100.0)).collect();
        let with = |means: [f64; 6]| objective(&scenarios, &means.map(runs), &base, &prices);
        assert!((with([100.0; 6]) - 1.0).abs() < 1e-9);
        assert!((with([50.0; 6]) - 0.5).abs() < 1e-9);
        // The first one has half of the weight: half of that, the best quarter of all, is left out.
        assert!((with([10.0, 100.0, 100.0, 100.0, 100.0, 100.0]) - (0.5 + 0.25 * 0.1) / 0.75).abs() < 1e-9);
        assert!(with([100.0, 300.0, 100.0, 100.0, 100.0, 100.0]) > 1.2);
    }

    #[test]
    fn copies_and_failures_have_their_price() {
        let prices = Prices { copy: 100.0, failure: 60_000.0 };
        let run = Run { mean: 200.0, answered: 0.99, copies: 1.5, ..Run::default() };
        assert!((prices.cost(&run) - (198.0 + 50.0 + 600.0)).abs() < 1e-9);
    }
}
