//! Whether more requests towards an origin need a second copy than used to.

use std::time::Duration;

use coapway_time::Instant;

/// The share of requests that needed help is taken from so many before any alarm.
const LEARNING: u32 = 200;
/// Were the usual share known, a stationary path would raise a false alarm once in e^20 requests. It is
/// estimated: where it is large, 15 would be reached once in a million.
const THRESHOLD: f64 = 20.0;
/// An alarm ends after so many requests and so long at the old share.
const CALM_REQUESTS: u32 = 100;
const CALM_TIME: Duration = Duration::from_secs(60);
/// How much one request counts in the recent share …
const RECENT: f64 = 0.05;
/// … and in the usual one.
const USUAL: f64 = 0.0005;

/// A one-sided CUSUM over "needed a second copy, or failed".
///
/// State:   the usual share p₀ (0.01 at least, frozen while alarmed), the recent share, the sum S.
/// Formula: S = max(0, S + ln(p₁/p₀)) for a request that needed help, else S + ln((1 − p₁)/(1 − p₀)),
///          with p₁ = max(3 p₀, p₀ + 0.1); alarm at S ≥ 20.
/// Fails:   losses in bursts count as so many independent ones.
/// Source:  R-USR-22.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    seen: u32,
    usual: f64,
    recent: f64,
    sum: f64,
    is_alarmed: bool,
    calm: u32,
    calm_from: Instant,
}

impl Default for Shift {
    fn default() -> Self {
        Self {
            seen: 0,
            usual: 0.0,
            recent: 0.0,
            sum: 0.0,
            is_alarmed: false,
            calm: 0,
            calm_from: Instant::ZERO,
        }
    }
}

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// More requests need a second copy, or fail: the usual share and the recent one.
    Raised { usual: f64, recent: f64 },
    /// It is as it was.
    Calmed,
}

impl Shift {
    /// A Confirmable request ended, or was acknowledged.
    pub(crate) fn saw(&mut self, needed_help: bool, now: Instant) -> Option<Change> {
        let one = f64::from(u8::from(needed_help));
        if self.seen < LEARNING {
            self.seen += 1;
            self.usual += (one - self.usual) / f64::from(self.seen);
            self.recent = self.usual;
            return None;
        }
        self.recent += RECENT * (one - self.recent);
        let usual = self.usual.clamp(0.01, 0.8);
        if self.is_alarmed {
            return self.calm(usual, now).then_some(Change::Calmed);
        }
        self.usual += USUAL * (one - self.usual);
        if !needed_help && self.sum == 0.0 {
            // It would sink, and does not.
            return None;
        }
        let shifted = (3.0 * usual).max(usual + 0.1).min(0.95);
        let step = if needed_help { shifted / usual } else { (1.0 - shifted) / (1.0 - usual) };
        self.sum = (self.sum + step.ln()).max(0.0);
        (self.sum >= THRESHOLD).then(|| {
            (self.is_alarmed, self.calm) = (true, 0);
            Change::Raised { usual, recent: self.recent }
        })
    }

    fn calm(&mut self, usual: f64, now: Instant) -> bool {
        let margin = (usual * (1.0 - usual) * RECENT / (2.0 - RECENT)).sqrt();
        if self.recent >= usual + margin {
            self.calm = 0;
            return false;
        }
        if self.calm == 0 {
            self.calm_from = now;
        }
        self.calm += 1;
        let is_over = self.calm >= CALM_REQUESTS && now.since(self.calm_from) >= CALM_TIME;
        if is_over {
            (self.is_alarmed, self.sum) = (false, 0.0);
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests one second apart; each needs help with probability `share`.
    fn run(
        shift: &mut Shift,
        random: &mut fastrand::Rng,
        from: u64,
        count: u64,
        share: f64,
    ) -> Vec<(u64, Change)> {
        (from..from + count)
            .filter_map(|second| {
                let now = Instant::ZERO + Duration::from_secs(second);
                Some((second - from, shift.saw(random.f64() < share, now)?))
            })
            .collect()
    }

    #[test]
    fn a_path_that_gets_lossy_raises_one_alarm_soon_and_calms_when_it_is_mended() {
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut shift = Shift::default();
            assert_eq!(run(&mut shift, &mut random, 0, 1000, 0.0), []);
            let alarms = run(&mut shift, &mut random, 1000, 400, 0.36);
            assert!(matches!(alarms[..], [(0..100, Change::Raised { .. })]), "seed {seed}: {alarms:?}");
            let calms = run(&mut shift, &mut random, 1400, 1000, 0.0);
            assert!(matches!(calms[..], [(_, Change::Calmed)]), "seed {seed}: {calms:?}");
        }
    }

    #[test]
    fn a_path_that_is_lossy_all_along_raises_none() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            assert_eq!(run(&mut Shift::default(), &mut random, 0, 20_000, 0.36), [], "seed {seed}");
        }
    }

    /// Ten and more days of a request a second, at the default threshold.
    #[test]
    fn a_million_requests_over_a_steady_path_raise_no_alarm() {
        for share in [0.0, 0.02, 0.1, 0.36] {
            let alarmed = (0..20_u64).filter(|seed| {
                let mut random = fastrand::Rng::with_seed(1000 + seed);
                !run(&mut Shift::default(), &mut random, 0, 1_000_000, share).is_empty()
            });
            assert!(alarmed.count() <= 1, "a share of {share}: 19 of 20 seeds are to stay calm");
        }
    }

    #[test]
    fn one_request_in_three_that_needs_help_is_told_within_150() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut shift = Shift::default();
            run(&mut shift, &mut random, 0, 1000, 0.0);
            let alarms = run(&mut shift, &mut random, 1000, 150, 0.36);
            assert!(matches!(alarms.first(), Some((_, Change::Raised { .. }))), "seed {seed}: {alarms:?}");
        }
    }
}
