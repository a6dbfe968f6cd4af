//! What others ship, to compare with: CoCoA as two libraries have it, and the last sample times a factor.

use std::time::Duration;

use coapway_endpoint::Timing;

/// How CoCoA is understood.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CocoaParameters {
    /// What a sample weighs in SRTT and in RTTVAR; the draft has ⅛ and ¼.
    pub gains: (f64, f64),
    /// K RTTVAR counts at least as much.
    pub granularity: Duration,
    /// No timeout is shorter, or longer.
    pub bounds: (Duration, Duration),
    /// What a weak estimate weighs in the timeout; the draft has ¼.
    pub weak_weight: f64,
    /// After more retransmissions there is no weak sample; the draft has 2.
    pub most_retransmissions: u32,
    /// What a wait below a second grows by; the draft has 3.
    pub short_factor: f32,
    /// More retransmissions than this since the last strong sample have the strong estimate begin anew.
    pub resets_after: Option<u32>,
}

impl CocoaParameters {
    /// draft-ietf-core-cocoa-03.
    pub const DRAFT: Self = Self {
        gains: (0.125, 0.25),
        granularity: Duration::ZERO,
        bounds: (Duration::ZERO, Duration::from_secs(32)),
        weak_weight: 0.25,
        most_retransmissions: 2,
        short_factor: 3.0,
        resets_after: None,
    };
    /// Californium: the gains changed places, and timeouts have a floor.
    pub const CALIFORNIUM: Self = Self {
        gains: (0.25, 0.125),
        granularity: Duration::from_millis(100),
        bounds: (Duration::from_millis(500), Duration::from_secs(32)),
        ..Self::DRAFT
    };
    /// er-coap: what is known and what is new changed places where the weak estimate is weighed.
    pub const ER_COAP: Self = Self {
        bounds: (Duration::ZERO, Duration::from_secs(60)),
        weak_weight: 0.75,
        most_retransmissions: 4,
        short_factor: 2.5,
        resets_after: Some(3),
        ..Self::DRAFT
    };
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ForeignParameters {
    /// CoCoA.
    Cocoa(CocoaParameters),
    /// Californium's Basic RTO: the last sample, from the first copy on, times a factor.
    Basic {
        /// The factor.
        factor: f64,
        /// No timeout is shorter, or longer.
        bounds: (Duration, Duration),
    },
}

/// Before anything is known, in seconds.
const INITIAL: f64 = 2.0;
/// Below this waits grow faster, in seconds.
const SHORT: f64 = 1.0;
/// Above this they grow more slowly.
const LONG: f64 = 3.0;

/// State:   the timeout; a strong and a weak (SRTT, RTTVAR); retransmissions since the last strong sample.
/// Formula: as `cocoa` of the product, with what [`CocoaParameters`] changes; or the last sample times a factor.
/// Bounds:  as asked for.
/// Ageing:  none: clients of the model are never idle.
#[derive(Clone, Debug)]
pub(crate) struct Foreign {
    parameters: ForeignParameters,
    timeout: f64,
    /// SRTT and RTTVAR in seconds, strong and weak.
    estimates: [Option<(f64, f64)>; 2],
    missed: u32,
}

impl Foreign {
    pub(crate) const fn new(parameters: ForeignParameters) -> Self {
        Self { parameters, timeout: INITIAL, estimates: [None; 2], missed: 0 }
    }

    /// The first wait of an exchange, and how waits go on.
    pub(crate) fn timing(&self) -> Timing {
        let timeout = Duration::from_secs_f64(self.timeout);
        match self.parameters {
            ForeignParameters::Cocoa(parameters) => {
                let back_off = match self.timeout {
                    ..SHORT => parameters.short_factor,
                    LONG.. if self.timeout > LONG => 1.5,
                    _ => 2.0,
                };
                Timing { timeout, random_factor: Some(1.5), back_off }
            }
            ForeignParameters::Basic { .. } => Timing { timeout, random_factor: Some(1.0), back_off: 2.0 },
        }
    }

    /// A sample after so many retransmissions, from the first copy on.
    pub(crate) fn took(&mut self, sample: Duration, retransmissions: u32) {
        let sample = sample.as_secs_f64();
        let (timeout, (least, most)) = match self.parameters {
            ForeignParameters::Basic { factor, bounds } if retransmissions <= 2 => (factor * sample, bounds),
            ForeignParameters::Cocoa(parameters) if retransmissions <= parameters.most_retransmissions => {
                (self.mixed(&parameters, sample, retransmissions), parameters.bounds)
            }
            ForeignParameters::Basic { .. } | ForeignParameters::Cocoa(_) => return,
        };
        self.timeout = timeout.clamp(least.as_secs_f64(), most.as_secs_f64());
    }

    fn mixed(&mut self, parameters: &CocoaParameters, sample: f64, retransmissions: u32) -> f64 {
        self.missed = if retransmissions == 0 { 0 } else { self.missed + retransmissions };
        if parameters.resets_after.is_some_and(|most| self.missed > most) {
            (self.estimates[0], self.missed) = (None, 0);
        }
        let (place, weight, k) = match retransmissions {
            0 => (0, 0.5, 4.0),
            _ => (1, parameters.weak_weight, 1.0),
        };
        let (gain, deviation_gain) = parameters.gains;
        let (mean, deviation) = match self.estimates[place] {
            None => (sample, sample / 2.0),
            Some((mean, deviation)) => (
                (1.0 - gain) * mean + gain * sample,
                (1.0 - deviation_gain) * deviation + deviation_gain * (mean - sample).abs(),
            ),
        };
        self.estimates[place] = Some((mean, deviation));
        let estimate = mean + (k * deviation).max(parameters.granularity.as_secs_f64());
        weight * estimate + (1.0 - weight) * self.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_each(parameters: CocoaParameters, samples: &[(u64, u32)]) -> Vec<f64> {
        let mut cocoa = Foreign::new(ForeignParameters::Cocoa(parameters));
        let after = |&(millis, retransmissions): &(u64, u32)| {
            cocoa.took(Duration::from_millis(millis), retransmissions);
            (cocoa.timeout * 1e5).round() / 100.0
        };
        samples.iter().map(after).collect()
    }

    const STRONG: [(u64, u32); 6] = [(100, 0), (120, 0), (80, 0), (400, 0), (100, 0), (100, 0)];

    #[test]
    fn as_drafted_it_has_the_vectors_of_the_draft() {
        let expected = [1150.0, 711.25, 480.47, 515.25, 497.33, 459.27];
        assert_eq!(after_each(CocoaParameters::DRAFT, &STRONG), expected);
        let with_weak = [(100, 0), (120, 0), (80, 0), (2300, 1), (100, 0), (100, 0)];
        assert_eq!(after_each(CocoaParameters::DRAFT, &with_weak)[3..], [1222.85, 717.7, 451.17]);
        assert_eq!(after_each(CocoaParameters::DRAFT, &[(9000, 3)]), [2000.0], "no sample");
    }

    #[test]
    fn californium_has_a_floor_and_gains_that_changed_places() {
        // 2 s and 100 ms + 4 · 50 ms; then 105 ms + 4 · (⅞ · 50 ms + ⅛ · 20 ms).
        let seen = after_each(CocoaParameters::CALIFORNIUM, &STRONG);
        assert_eq!(seen[..2], [1150.0, 720.0]);
        assert_eq!(seen[2], 500.0, "{seen:?}");
    }

    #[test]
    fn er_coap_believes_weak_samples_and_forgets_strong_ones() {
        // ¾ · 1.5 · 4 s + ¼ · 2 s.
        assert_eq!(after_each(CocoaParameters::ER_COAP, &[(4000, 1)]), [5000.0]);
        let mut cocoa = Foreign::new(ForeignParameters::Cocoa(CocoaParameters::ER_COAP));
        cocoa.took(Duration::from_millis(100), 0);
        (0..3).for_each(|_| cocoa.took(Duration::from_secs(1), 1));
        assert!(cocoa.estimates[0].is_some());
        cocoa.took(Duration::from_secs(1), 1);
        assert_eq!((cocoa.estimates[0], cocoa.missed), (None, 0));
    }

    #[test]
    fn basic_is_the_last_sample_times_a_factor() {
        let bounds = (Duration::from_millis(500), Duration::from_secs(32));
        let mut basic = Foreign::new(ForeignParameters::Basic { factor: 1.5, bounds });
        let mut after = |millis, retransmissions| {
            basic.took(Duration::from_millis(millis), retransmissions);
            basic.timing().timeout.as_millis()
        };
        assert_eq!([after(1000, 0), after(100, 0), after(4000, 2), after(9000, 3)], [1500, 500, 6000, 6000]);
    }
}
