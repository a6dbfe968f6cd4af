//! The path to an origin as a predictor needs it.

use std::sync::Arc;

use crate::histogram::{self, Histogram};
use crate::neighbours::Bursts;

/// How finely a distribution is kept.
const POINTS: usize = 1024;

/// Times by how many of them are shorter.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// In milliseconds, at shares of 0, 1/1024 and so on to 1.
    quantiles: Arc<[f64]>,
}

impl Distribution {
    /// Out of the weight of each bin of a histogram.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let at = |point: usize| {
            let share = (point as f64 / POINTS as f64).clamp(1e-9, 1.0 - 1e-4);
            histogram::quantile(weights.iter().copied(), share)
        };
        Self { quantiles: (0..=POINTS).map(at).collect() }
    }

    /// `None` of nothing.
    pub(crate) fn of(histogram: &Histogram) -> Option<Self> {
        let weights: Vec<f64> = histogram.bins().iter().map(|&count| count as f64).collect();
        (histogram.count() > 0).then(|| Self::new(&weights))
    }

    /// The time, in milliseconds, that a share from 0 to 1 does not exceed.
    pub fn at(&self, share: f64) -> f64 {
        let place = share.clamp(0.0, 1.0) * POINTS as f64;
        let below = (place as usize).min(POINTS - 1);
        let [low, high] = [self.quantiles[below], self.quantiles[below + 1]];
        low + (high - low) * (place - below as f64)
    }

    /// The same, all times longer by a factor.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        Self { quantiles: self.quantiles.iter().map(|time| time * factor).collect() }
    }
}

/// A path and what is asked over it.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// From a copy to its Acknowledgement.
    pub round_trip: Distribution,
    /// Whether one delay holds for all copies of a message; else each has its own.
    pub delay_is_shared: bool,
    /// The share of datagrams to the origin that is lost.
    pub loss_there: f64,
    /// The share of datagrams from it that is lost.
    pub loss_back: f64,
    /// Where losses come together: these instead of the two above.
    pub bursts: Option<Bursts>,
    /// Nothing passes for so long at the end of each such period, both in seconds.
    pub outages: Option<(f64, f64)>,
    /// The share of responses that come separately, and when after the Acknowledgement.
    pub separate: Option<(f64, Distribution)>,
    /// Requests a second.
    pub load: f64,
    /// The share of POST and PATCH.
    pub once: f64,
    /// The share of Non-confirmable requests.
    pub non_confirmable: f64,
}

impl Path {
    /// The share of round trips that fail.
    pub fn loss(&self) -> f64 {
        match self.bursts {
            Some(bursts) => bursts.loss * bursts.bad / (bursts.good + bursts.bad),
            None => 1.0 - (1.0 - self.loss_there) * (1.0 - self.loss_back),
        }
    }
}

/// A path as it could be, and how much it counts.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// For people: a path that is so.
    pub(crate) name: &'static str,
    pub(crate) path: Path,
    pub(crate) weight: f64,
}

/// The path as recorded and as it could be on a worse day. A policy that is tried on independent delays
/// alone learns to send copies for nothing; that all copies are late together belongs among them.
pub(crate) fn scenarios(path: &Path) -> Vec<Scenario> {
    let doubled = |loss: f64| (2.0 * loss).min(0.45);
    let bursts = path.bursts.map(|bursts| Bursts { bad: 2.0 * bursts.bad, ..bursts });
    let (loss_there, loss_back) = (doubled(path.loss_there), doubled(path.loss_back));
    let round_trip = path.round_trip.scaled(3.0);
    let all = [
        ("as recorded", path.clone(), 0.5),
        ("all copies late together", Path { delay_is_shared: true, ..path.clone() }, 0.1),
        ("twice the loss", Path { loss_there, loss_back, bursts, ..path.clone() }, 0.1),
        ("three times slower", Path { round_trip, ..path.clone() }, 0.1),
        ("twice the load", Path { load: 2.0 * path.load, ..path.clone() }, 0.1),
        ("10 s without contact every 2 min", Path { outages: Some((120.0, 10.0)), ..path.clone() }, 0.1),
    ];
    all.into_iter().map(|(name, path, weight)| Scenario { name, path, weight }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_has_the_quantiles_of_its_histogram() {
        let mut histogram = Histogram::default();
        (1..=10_000).for_each(|millis| histogram.add(f64::from(millis)));
        let distribution = Distribution::of(&histogram).unwrap();
        for share in [0.01, 0.3, 0.5, 0.95, 0.99] {
            let (found, wanted) = (distribution.at(share), 10_000.0 * share);
            assert!((found / wanted - 1.0).abs() < 0.02, "{share}: {found}");
            assert!((distribution.scaled(3.0).at(share) / found - 3.0).abs() < 1e-9);
        }
        assert!(Distribution::of(&Histogram::default()).is_none());
    }
}
