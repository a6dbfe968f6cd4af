//! FASOR (draft-ietf-core-fasor), to compare with; the product does not have it.

use std::time::Duration;

use coapway_time::Instant;

/// What the draft leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FasorParameters {
    /// Slow RTO is no longer than this.
    pub cap: Option<Duration>,
    /// Whether an exchange that fails counts as one that needed retransmissions.
    pub counts_failures: bool,
    /// RTTVAR after the first sample R is R over this: 8 in the text, 2 in the appendix.
    pub first_deviation: f64,
}

impl FasorParameters {
    /// The text of the draft.
    pub const DRAFT: Self = Self { cap: None, counts_failures: false, first_deviation: 8.0 };
    /// With a cap above the longest queue, and a rule for failures.
    pub const CAPPED: Self =
        Self { cap: Some(Duration::from_secs(240)), counts_failures: true, first_deviation: 8.0 };
}

/// Which series of waits comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series {
    Fast,
    FastSlowFast,
    SlowFast,
}

/// FASOR.
///
/// State:   FastRTO (SRTT, RTTVAR), SlowRTO, one of three series.
/// Formula: FastRTO as RFC 6298 from exact samples, drawn between + SRTT/4 and + SRTT. An exchange with
///          retransmissions sets SlowRTO to 1.5 times its time from the first copy, and the series goes
///          FAST, FAST_SLOW_FAST, SLOW_FAST; one without leads back to FAST. With F the FastRTO:
///          F, 2F, 4F …; F, max(Slow, 2F), 2F, 4F …; Slow, F, 2F ….
/// Bounds:  none in the draft; here SlowRTO has the cap that is asked for.
/// Ageing:  none.
/// Fails:   as drafted no exchange that fails is learned from; and SlowRTO grows by half with each lossy
///          exchange.
#[derive(Clone, Debug)]
pub(crate) struct Fasor {
    parameters: FasorParameters,
    /// SRTT and RTTVAR in seconds.
    smoothed: Option<(f64, f64)>,
    slow: f64,
    series: Series,
}

/// The waits of one exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FasorWaits {
    fast: f64,
    slow: f64,
    series: Series,
}

/// INITIAL_RTO in seconds.
const INITIAL: f64 = 2.0;
const SLOW_FACTOR: f64 = 1.5;

impl Fasor {
    pub(crate) const fn new(parameters: FasorParameters) -> Self {
        Self { parameters, smoothed: None, slow: INITIAL, series: Series::Fast }
    }

    fn fast(&self) -> (f64, f64) {
        self.smoothed
            .map_or((INITIAL, INITIAL / 3.0), |(mean, deviation)| (mean + (4.0 * deviation).max(0.001), mean))
    }

    /// FastRTO.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.fast().0)
    }

    pub(crate) fn begin(&self, random: &mut fastrand::Rng) -> FasorWaits {
        let (fast, mean) = self.fast();
        let fast = fast + mean * (0.25 + 0.75 * random.f64());
        FasorWaits { fast, slow: self.slow, series: self.series }
    }

    pub(crate) fn exact(&mut self, sample: Duration) {
        let sample = sample.as_secs_f64();
        self.smoothed = Some(match self.smoothed {
            None => (sample, sample / self.parameters.first_deviation),
            Some((mean, deviation)) => {
                (0.875 * mean + 0.125 * sample, 0.75 * deviation + 0.25 * (mean - sample).abs())
            }
        });
        self.series = Series::Fast;
    }

    pub(crate) fn ambiguous(&mut self, since_first: Duration) {
        let slow = SLOW_FACTOR * since_first.as_secs_f64();
        self.slow = self.parameters.cap.map_or(slow, |cap| slow.min(cap.as_secs_f64()));
        self.series = match self.series {
            Series::Fast => Series::FastSlowFast,
            Series::FastSlowFast | Series::SlowFast => Series::SlowFast,
        };
    }

    pub(crate) fn failed(&mut self, began: Instant, now: Instant) {
        if self.parameters.counts_failures {
            self.ambiguous(now.since(began));
        }
    }
}

impl FasorWaits {
    /// The wait after copy `copies`, 1 for the first.
    pub(crate) fn wait(&self, copies: u32) -> Duration {
        let doubled = |k: u32| self.fast * f64::from(1u32 << k.min(30));
        let seconds = match (self.series, copies) {
            (Series::Fast, k) => doubled(k - 1),
            (Series::FastSlowFast, 1) => self.fast,
            (Series::FastSlowFast, 2) => self.slow.max(doubled(1)),
            (Series::SlowFast, 1) => self.slow,
            (Series::FastSlowFast | Series::SlowFast, k) => doubled(k - 2),
        };
        Duration::from_secs_f64(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_each(first_deviation: f64) -> Vec<f64> {
        let mut fasor = Fasor::new(FasorParameters { first_deviation, ..FasorParameters::DRAFT });
        let millis = [100, 120, 80, 400, 100, 100];
        let timeouts = millis.map(|sample| {
            fasor.exact(Duration::from_millis(sample));
            (fasor.fast().0 * 1e5).round() / 100.0
        });
        timeouts.into()
    }

    #[test]
    fn its_vectors() {
        assert_eq!(after_each(8.0), [150.0, 160.0, 165.31, 486.76, 431.95, 385.61]);
        assert_eq!(after_each(2.0), [300.0, 272.5, 249.69, 550.04, 479.41, 421.2], "that of RFC 6298");
    }

    #[test]
    fn the_three_series() {
        let fasor = Fasor { slow: 7.0, smoothed: Some((1.0, 0.0)), ..Fasor::new(FasorParameters::DRAFT) };
        let seconds = |series| {
            let waits = FasorWaits { fast: 1.0, slow: fasor.slow, series };
            [1, 2, 3, 4, 5].map(|copies| waits.wait(copies).as_secs())
        };
        assert_eq!(seconds(Series::Fast), [1, 2, 4, 8, 16]);
        assert_eq!(seconds(Series::FastSlowFast), [1, 7, 2, 4, 8]);
        assert_eq!(seconds(Series::SlowFast), [7, 1, 2, 4, 8]);
    }

    #[test]
    fn retransmissions_lead_away_from_fast_and_a_clean_exchange_back() {
        let mut fasor = Fasor::new(FasorParameters::CAPPED);
        let second = Duration::from_secs(1);
        fasor.ambiguous(4 * second);
        assert_eq!((fasor.series, fasor.slow), (Series::FastSlowFast, 6.0));
        fasor.failed(Instant::ZERO, Instant::ZERO + 400 * second);
        assert_eq!((fasor.series, fasor.slow), (Series::SlowFast, 240.0));
        fasor.exact(second);
        assert_eq!(fasor.series, Series::Fast);
    }

    #[test]
    fn the_first_wait_is_drawn_above_the_timeout() {
        let mut random = fastrand::Rng::with_seed(7);
        let fasor = Fasor::new(FasorParameters::DRAFT);
        let draws: Vec<_> = (0..500).map(|_| fasor.begin(&mut random).fast).collect();
        assert!(draws.iter().all(|draw| (2.0 + 0.5 / 3.0..=2.0 + 2.0 / 3.0).contains(draw)));
        assert!(draws.iter().any(|draw| *draw > 2.6) && draws.iter().any(|draw| *draw < 2.2));
    }
}
