//! Predictions by the product itself: the proxy in virtual time, on a path as records describe it.

mod bottleneck;
mod node;
mod stage;
mod weather;

use crate::path::Path;
use crate::policy::Policy;
use crate::predictor::{Predictor, Run};

/// The shipped proxy, an origin that recognises duplicates, and clients near by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rehearsal;

impl Predictor for Rehearsal {
    fn run(&self, path: &Path, policy: &Policy, requests: usize, seed: u64) -> Run {
        stage::run(path, &policy.parameters, requests, seed)
    }

    fn useful_share(&self, policy: &Policy, endpoints: usize, seed: u64) -> f64 {
        bottleneck::useful_share(&policy.parameters, endpoints, seed)
    }
}

#[cfg(test)]
pub(crate) mod tests;
