//! Means with confidence, quantiles, and how latencies are spread.

use serde::Serialize;

/// A mean over runs, and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean; NaN without runs.
    pub mean: f64,
    /// How far the true one may be; NaN with fewer than two runs.
    pub within: f64,
}

impl Estimate {
    /// Over what runs came to; runs without a number do not count.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        let within = match values.len() {
            0 | 1 => f64::NAN,
            runs => student(runs - 1) * libm::sqrt(squares / (count - 1.0) / count),
        };
        Self { mean, within }
    }

    /// Whether the interval leaves zero out.
    pub fn is_sure(&self) -> bool {
        self.mean.abs() > self.within
    }
}

/// The 97.5 % quantile of Student's distribution.
fn student(degrees: usize) -> f64 {
    const FIRST: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match degrees {
        1..=30 => FIRST[degrees - 1],
        // The first two terms of the expansion in 1/degrees.
        _ => 1.96 + 2.37 / degrees as f64,
    }
}

/// The value that this share of all is at or below (nearest rank).
///
/// Shape: `sorted` is.
pub(crate) fn quantile(sorted: &[u32], share: f64) -> Option<u32> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// How many values lie where, on a logarithmic scale.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    bins: Vec<u64>,
    count: u64,
}

impl Histogram {
    /// Bins in each factor of ten.
    const PER_DECADE: f64 = 40.0;
    /// From a microsecond on.
    const DECADES: usize = 10;

    /// Of microseconds.
    pub(crate) fn of(values: &[u32]) -> Self {
        let mut bins = vec![0; Self::PER_DECADE as usize * Self::DECADES];
        for &value in values {
            let bin = libm::log10(f64::from(value.max(1))) * Self::PER_DECADE;
            bins[bin as usize] += 1;
        }
        Self { bins, count: values.len() as u64 }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.bins.resize(self.bins.len().max(other.bins.len()), 0);
        self.bins.iter_mut().zip(&other.bins).for_each(|(bin, more)| *bin += more);
        self.count += other.count;
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Seconds, and how many values lie below; where that changes.
    pub(crate) fn steps(&self) -> Vec<(f64, u64)> {
        let mut below = 0;
        let mut steps = Vec::new();
        for (place, &bin) in self.bins.iter().enumerate() {
            if bin > 0 {
                let edge = |place: usize| libm::pow(10.0, place as f64 / Self::PER_DECADE) / 1e6;
                if steps.is_empty() {
                    steps.push((edge(place), 0));
                }
                below += bin;
                steps.push((edge(place + 1), below));
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::{Dice, Use};

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_mean() {
        let holds = |seed| {
            let mut dice = Dice::new(seed, Use::Run, 0, 0);
            let estimate = Estimate::of((0..8).map(|_| 3.0 + dice.normal()));
            (estimate.mean - 3.0).abs() <= estimate.within
        };
        let held = (0..4000).filter(|&seed| holds(seed)).count();
        assert!((3750..3850).contains(&held), "{held} of 4000");
    }

    #[test]
    fn what_is_missing_does_not_count() {
        let estimate = Estimate::of([1.0, f64::NAN, 3.0].into_iter());
        assert_eq!(estimate.mean, 2.0);
        assert!((estimate.within - 12.706).abs() < 1e-9);
        assert!(Estimate::of([1.0].into_iter()).within.is_nan());
        assert!(Estimate::of(std::iter::empty()).mean.is_nan());
    }

    #[test]
    fn quantiles_are_values() {
        let sorted: Vec<u32> = (1..=100).collect();
        assert_eq!(
            [0.0, 0.5, 0.95, 0.999, 1.0].map(|share| quantile(&sorted, share)),
            [1, 50, 95, 100, 100].map(Some)
        );
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn a_histogram_counts_everything_once() {
        let values: Vec<u32> = (0..32).map(|power| 1 << power).chain([0, u32::MAX]).collect();
        let mut histogram = Histogram::of(&values);
        histogram.add(&Histogram::of(&values));
        assert_eq!((histogram.count(), histogram.steps().last().map(|step| step.1)), (68, Some(68)));
        assert!(histogram.steps().is_sorted());
    }
}
