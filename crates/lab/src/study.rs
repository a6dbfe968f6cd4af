//! All runs of a study: each policy in each cell with each seed, on all cores.

use crate::chance::Chance;
use crate::figures::{Figures, METRICS, MOST_RETRIES, Timeline};
use crate::policy::Policy;
use crate::scenario::Scenario;
use crate::statistics::{Estimate, Histogram};
use crate::work::in_parallel;
use crate::world::World;

/// What is compared with what.
#[derive(Debug)]
pub struct Study {
    /// Side by side; the others are compared with the first.
    pub policies: Vec<Policy>,
    /// Under what; each in all its load and mix.
    pub cells: Vec<Scenario>,
    /// Seeds of each cell.
    pub runs: u32,
    /// What they come from.
    pub seed: u64,
    /// Threads at work; results do not depend on it.
    pub threads: usize,
}

/// What a policy came to in a cell.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What each run came to, in the order of [`METRICS`].
    pub runs: Vec<[f64; METRICS.len()]>,
    /// The means over runs.
    pub estimates: Vec<Estimate>,
    /// The means of the differences from the first policy, run by run.
    pub differences: Vec<Estimate>,
    /// Requests of all runs by the number of copies after the first, the last for more.
    pub retries: [u64; MOST_RETRIES + 1],
    /// Runs that ended before their time, since there were 2 000 000 requests.
    pub cut_short: usize,
    pub(crate) latencies: Histogram,
    /// Of the first run.
    pub(crate) timeline: Timeline,
}

impl Study {
    /// How many runs there are in all.
    pub fn jobs(&self) -> usize {
        self.cells.len() * self.policies.len() * self.runs as usize
    }

    /// Runs all of it; `progress` hears of the number of runs that are done.
    pub fn run(&self, progress: &(dyn Fn(usize) + Sync)) -> Vec<Vec<Summary>> {
        let figures = in_parallel(self.jobs(), self.threads, progress, |job| self.job(job));
        let runs = self.runs as usize;
        let cells = figures.chunks(runs * self.policies.len());
        cells.map(|cell| summaries(cell.chunks(runs))).collect()
    }

    fn job(&self, job: usize) -> Figures {
        let runs = self.runs as usize;
        let (run, rest) = (job % runs, job / runs);
        let (policy, cell) = (rest % self.policies.len(), rest / self.policies.len());
        let Chance { seed } = Chance::of_run(self.seed, run as u32);
        let mut world = World::new(&self.cells[cell], &self.policies[policy], seed, run == 0);
        world.run();
        world.figures()
    }
}

fn summaries<'f>(policies: impl Iterator<Item = &'f [Figures]>) -> Vec<Summary> {
    let mut summaries: Vec<Summary> = policies.map(Summary::of).collect();
    let first = summaries.first().map(|first| first.runs.clone()).unwrap_or_default();
    for summary in &mut summaries {
        let difference = |metric: usize| {
            Estimate::of(summary.runs.iter().zip(&first).map(|(own, first)| own[metric] - first[metric]))
        };
        summary.differences = (0..METRICS.len()).map(difference).collect();
    }
    summaries
}

impl Summary {
    fn of(runs: &[Figures]) -> Self {
        let numbers: Vec<_> = runs.iter().map(|run| run.numbers.all()).collect();
        let estimate = |metric: usize| Estimate::of(numbers.iter().map(|numbers| numbers[metric]));
        let mut latencies = Histogram::default();
        let mut retries = [0; MOST_RETRIES + 1];
        for run in runs {
            latencies.add(&run.latencies);
            retries.iter_mut().zip(&run.retries).for_each(|(sum, more)| *sum += more);
        }
        Self {
            estimates: (0..METRICS.len()).map(estimate).collect(),
            differences: Vec::new(),
            runs: numbers,
            cut_short: runs.iter().filter(|run| run.cut_short).count(),
            retries,
            latencies,
            timeline: runs.first().and_then(|run| run.timeline.clone()).unwrap_or_default(),
        }
    }

    /// The mean of a metric over runs.
    pub fn mean(&self, key: &str) -> f64 {
        crate::figures::metric(key).and_then(|place| self.estimates.get(place)).map_or(f64::NAN, |e| e.mean)
    }
}
