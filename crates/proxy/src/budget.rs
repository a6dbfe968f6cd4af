//! How many retries there may be beside the first attempts.

use coapway_time::Instant;

use crate::parameters::RetryParameters;

/// A budget never holds more than so many seconds of its fixed part …
const SECONDS: f64 = 10.0;
/// … and the share of so many first copies.
const FIRST_COPIES: f64 = 100.0;

/// A budget that first copies and time fill, and that re-issues and copies beyond the second use up.
///
/// State:   retries left.
/// Formula: + `budget_ratio` for each first copy, + `budget_per_second`, − 1 for each retry.
/// Bounds:  10 s of the fixed part and the share of 100 first copies; it starts full. It never stops
///          the copies of an exchange under way, which the protocol asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    left: f64,
    filled: Instant,
}

impl Budget {
    pub(crate) fn new(parameters: &RetryParameters, now: Instant) -> Self {
        Self { left: most(parameters), filled: now }
    }

    /// The first copy of a request left.
    pub(crate) fn deposit(&mut self, parameters: &RetryParameters) {
        self.left = (self.left + parameters.budget_ratio).min(most(parameters));
    }

    /// A copy beyond the second left, whether the budget allows for it or not.
    pub(crate) fn charge(&mut self) {
        self.left = (self.left - 1.0).max(0.0);
    }

    /// Whether there may be a re-issue.
    pub(crate) fn allows(&mut self, parameters: &RetryParameters, now: Instant) -> bool {
        let added = now.since(self.filled).as_secs_f64() * parameters.budget_per_second;
        self.left = (self.left + added).min(most(parameters));
        self.filled = now;
        self.left >= 1.0
    }
}

fn most(parameters: &RetryParameters) -> f64 {
    SECONDS * parameters.budget_per_second + FIRST_COPIES * parameters.budget_ratio
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_budget_used_up_refuses_until_time_or_traffic_fills_it() {
        let parameters = RetryParameters::default();
        let mut budget = Budget::new(&parameters, Instant::ZERO);
        let mut allowed = 0;
        while budget.allows(&parameters, Instant::ZERO) {
            budget.charge();
            allowed += 1;
        }
        assert_eq!(allowed, 30, "10 s of one a second and 20 % of 100");
        (0..5).for_each(|_| budget.deposit(&parameters));
        assert!(budget.allows(&parameters, Instant::ZERO), "20 % of five");
        budget.charge();
        assert!(!budget.allows(&parameters, Instant::ZERO + Duration::from_millis(900)));
        assert!(budget.allows(&parameters, Instant::ZERO + Duration::from_millis(1001)));
    }

    #[test]
    fn nothing_is_nothing() {
        let nothing = RetryParameters { budget_ratio: 0.0, budget_per_second: 0.0, max_attempts: 2 };
        let mut budget = Budget::new(&nothing, Instant::ZERO);
        budget.deposit(&nothing);
        assert!(!budget.allows(&nothing, Instant::ZERO + Duration::from_secs(9999)));
    }
}
