//! What a policy would do on a path: the boundary behind which the prediction is made.

use crate::interval::Interval;
use crate::path::Path;
use crate::policy::Policy;

/// What requests went through on average, in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Run {
    /// From request to answer, in ms, of those the origin answered.
    pub mean: f64,
    /// The median of the same.
    pub median: f64,
    /// Its 95 % quantile.
    pub p95: f64,
    /// Its 99 % quantile.
    pub p99: f64,
    /// The share of requests that the origin answered.
    pub answered: f64,
    /// Copies that left per request, the first included.
    pub copies: f64,
    /// Copies per request that left although an earlier one came back.
    pub spurious: f64,
    /// The share of POST and PATCH that may have been executed and got no answer.
    pub unknown: f64,
}

/// Makes predictions.
pub trait Predictor: Sync {
    /// One run of so many requests.
    ///
    /// Shape: the same seed gives the same requests, losses and delays to every policy.
    fn run(&self, path: &Path, policy: &Policy, requests: usize, seed: u64) -> Run;

    /// So many endpoints with one request outstanding each share a link with an endless buffer that
    /// takes 26.7 ms for each reply: the share of replies that is of use once all has settled.
    fn useful_share(&self, policy: &Policy, endpoints: usize, seed: u64) -> f64;
}

/// Runs with one seed after the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Runs(pub(crate) Vec<Run>);

impl Runs {
    pub(crate) fn of(&self, measure: impl Fn(&Run) -> f64) -> Interval {
        Interval::of_mean(&self.0.iter().map(measure).collect::<Vec<_>>())
    }

    /// How much more it is than in the others, seed by seed.
    pub(crate) fn more_than(&self, others: &Self, measure: impl Fn(&Run) -> f64) -> Interval {
        let pairs = self.0.iter().zip(&others.0);
        Interval::of_mean(&pairs.map(|(one, other)| measure(one) - measure(other)).collect::<Vec<_>>())
    }
}
