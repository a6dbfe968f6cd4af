//! What is known of a path, how well, and how much it would take to know it well enough.

use crate::fit::Fit;
use crate::interval::{Interval, NORMAL};
use crate::neighbours::{Bursts, Correlation};
use crate::observed::{Half, Observed};
use crate::path::{Distribution, Path};

/// How well loss must be known: to 2 percentage points or to a fifth of itself, whichever is more.
const LOSS_WIDTH: (f64, f64) = (0.02, 0.2);
/// How well the 95 % quantile of round-trip times must be known, as a share of it.
const P95_WIDTH: f64 = 0.1;
/// Fewer exchanges are never enough: with these each half has two blocks.
const LEAST: u64 = 1000;
/// Separate responses from which the two directions are told apart.
const ENOUGH_SEPARATE: u64 = 200;

/// Exchanges that there are and that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) have: u64,
    pub(crate) need: u64,
}

/// A path, as far as its records tell.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    pub(crate) fit: Fit,
    /// The share of round trips that fail.
    pub(crate) loss: Interval,
    /// The same for further copies, where there were enough.
    pub(crate) loss_again: Option<Interval>,
    /// Each way, if both ways lose alike.
    pub(crate) loss_each_way: Interval,
    /// There and back, where separate responses tell.
    pub(crate) ways: Option<(Interval, Interval)>,
    pub(crate) median: Interval,
    pub(crate) p95: Interval,
    pub(crate) p99: Interval,
    pub(crate) bursts: Option<Bursts>,
    /// How many exchanges one counts as, since losses come together.
    pub(crate) clustering: f64,
    /// Spurious copies, as a share of all copies.
    pub(crate) spurious: Interval,
}

impl Estimate {
    /// Errors: how much is missing.
    pub(crate) fn new(observed: &Observed) -> Result<Self, Need> {
        let have = observed.trials;
        let Some(fit) = observed.fit() else { return Err(Need { have, need: LEAST.max(2 * have) }) };
        let clustering = observed.clustering();
        let need = need(observed, &fit, clustering);
        if have < need {
            return Err(Need { have, need });
        }
        let exchanges = fit.exchanges / clustering;
        let counted = Interval::of_share(fit.loss * exchanges, exchanges);
        let loss = Interval {
            low: (counted.low - fit.doubt).max(0.0),
            high: (counted.high + fit.doubt).min(1.0),
            ..counted
        };
        let again = fit.again / clustering;
        let loss_again =
            fit.loss_again.filter(|_| again >= 30.0).map(|loss| Interval::of_share(loss * again, again));
        let copies = fit.exchanges + fit.again;
        Ok(Self {
            loss,
            loss_again,
            loss_each_way: loss.map(|loss| 1.0 - (1.0 - loss).sqrt()),
            ways: ways(observed, &loss),
            median: quantile(&fit, 0.5),
            p95: quantile(&fit, 0.95),
            p99: quantile(&fit, 0.99),
            bursts: observed.neighbours.bursts(fit.loss, again_as_neighbour(observed, &fit)),
            clustering,
            spurious: Interval::of_share(fit.spurious, copies),
            fit,
        })
    }
}

/// A quantile of round-trip times, with the ranks that it may have as its interval.
fn quantile(fit: &Fit, share: f64) -> Interval {
    let half = NORMAL * (share * (1.0 - share) / fit.arrivals.max(1.0)).sqrt();
    Interval {
        value: fit.quantile(share),
        low: fit.quantile(share - half),
        high: fit.quantile((share + half).min(1.0)),
    }
}

/// How many exchanges it takes for intervals as narrow as are wanted.
fn need(observed: &Observed, fit: &Fit, clustering: f64) -> u64 {
    // A little more than what was seen, since what was not seen can be chance.
    let loss = (fit.loss * fit.exchanges + 2.0) / (fit.exchanges + 4.0);
    let width = LOSS_WIDTH.0.max(LOSS_WIDTH.1 * loss);
    let for_loss = clustering * (NORMAL / width).powi(2) * loss * (1.0 - loss);
    // How steep the quantiles are around the one that is wanted: of few times that cannot be seen.
    let slope =
        if fit.arrivals >= 100.0 { (fit.quantile(0.975) / fit.quantile(0.925)).ln() / 0.05 } else { 10.0 };
    let for_p95 = (NORMAL * slope / P95_WIDTH).powi(2) * 0.95 * 0.05 / (1.0 - fit.loss).max(0.05);
    // One half is judged by the other.
    let each = for_loss.max(for_p95);
    let need = (2.0 * each / 100.0).ceil() as u64 * 100;
    if observed.trials < LEAST { need.max(LEAST) } else { need }
}

/// Both ways, where the origin answered separately: its response proves that the request had come, so a
/// missing Acknowledgement was lost on the way back.
fn ways(observed: &Observed, loss: &Interval) -> Option<(Interval, Interval)> {
    if observed.separate_in_time < ENOUGH_SEPARATE {
        return None;
    }
    let back = Interval::of_share(observed.without_acknowledgement as f64, observed.separate_in_time as f64);
    let there = |loss: f64, back: f64| (1.0 - (1.0 - loss) / (1.0 - back).max(1e-3)).clamp(0.0, 1.0);
    let there = Interval {
        value: there(loss.value, back.value),
        low: there(loss.low, back.high),
        high: there(loss.high, back.low),
    };
    Some((there, back))
}

/// A further copy leaves when the one before it seemed lost: how much likelier it is lost too.
fn again_as_neighbour(observed: &Observed, fit: &Fit) -> Option<Correlation> {
    let again = fit.loss_again.filter(|_| fit.again >= 100.0)?;
    let seconds = observed.waits.quantile(0.5)? / 1000.0;
    let error = (again * (1.0 - again) / fit.again).sqrt() / (1.0 - fit.loss);
    let value = (again - fit.loss) / (1.0 - fit.loss);
    Some(Correlation { seconds, value, error: error.max(0.005), pairs: fit.again })
}

/// The path that one half of the records saw; loss there and back as in all of them.
pub(crate) fn path(half: &Half, observed: &Observed, estimate: &Estimate, load: f64) -> Option<Path> {
    let fit = Fit::new(&[half.seen()])?;
    let each_way = 1.0 - (1.0 - fit.loss).sqrt();
    let (loss_there, loss_back) = match &estimate.ways {
        Some((_, back)) => (1.0 - (1.0 - fit.loss) / (1.0 - back.value).max(1e-3), back.value),
        None => (each_way, each_way),
    };
    let forwards = observed.forwards.max(1) as f64;
    let separate = Distribution::of(&half.thinking)
        .map(|thinking| (observed.separate as f64 / observed.trials.max(1) as f64, thinking))
        .filter(|(share, _)| *share > 0.001);
    let once = observed.methods[1] + observed.methods[5];
    Some(Path {
        round_trip: Distribution::new(&fit.times),
        delay_is_shared: false,
        loss_there: loss_there.clamp(0.0, 0.95),
        loss_back: loss_back.clamp(0.0, 0.95),
        bursts: estimate.bursts,
        outages: None,
        separate,
        load,
        once: once as f64 / forwards,
        non_confirmable: observed.non_confirmable as f64 / forwards,
    })
}
