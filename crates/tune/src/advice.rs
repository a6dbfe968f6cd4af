//! One upstream from its records to what is to be told.

use coapway_config::ConfigErrors;

use crate::estimate::{Estimate, Need, path};
use crate::interval::Interval;
use crate::observed::Observed;
use crate::path::{Path, Scenario, scenarios};
use crate::policy::{InForce, Policy, set};
use crate::predictor::{Run, Runs};
use crate::search::{Found, Judged, Prices, Search, objective};

/// What is told of one upstream.
pub(crate) struct Advice<'o> {
    pub(crate) name: &'o str,
    pub(crate) observed: &'o Observed,
    /// Requests a second.
    pub(crate) load: f64,
    pub(crate) verdict: Verdict,
}

/// What it came to.
pub(crate) enum Verdict {
    TooLittle(Need),
    Known(Box<Known>),
}

/// A path that is known, and what follows.
pub(crate) struct Known {
    pub(crate) estimate: Estimate,
    pub(crate) in_force: InForce,
    pub(crate) found: Found,
    pub(crate) prediction: Prediction,
}

/// What is to be expected on the half of the records that nothing was learned from.
pub(crate) struct Prediction {
    pub(crate) in_force: Judged,
    /// The proposal, even if it did not keep its promise.
    pub(crate) proposed: Option<Judged>,
    /// Its cost as a share of that of the policy in force.
    pub(crate) objective: f64,
    /// Whether it is better there as well.
    pub(crate) holds: bool,
    pub(crate) worse: Vec<Worse>,
    /// The share of POST and PATCH with an unknown outcome, without and with `deduplicates`.
    pub(crate) once: Option<(Interval, Interval)>,
    pub(crate) requests: usize,
}

/// Where the proposal is worse.
pub(crate) struct Worse {
    pub(crate) scenario: &'static str,
    pub(crate) measure: &'static Measure,
    pub(crate) in_force: f64,
    pub(crate) proposed: f64,
}

/// Something to compare.
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    pub(crate) key: &'static str,
    pub(crate) of: fn(&Run) -> f64,
    pub(crate) unit: Unit,
    /// Less is better.
    pub(crate) is_cost: bool,
    /// Differences below are none, as a share of the value or in points of a share.
    pub(crate) least: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Millis,
    Share,
    Count,
}

pub(crate) const MEASURES: [Measure; 6] = [
    Measure {
        name: "mean time to answer",
        key: "mean_ms",
        of: |run| run.mean,
        unit: Unit::Millis,
        is_cost: true,
        least: 0.02,
    },
    Measure {
        name: "95 % are answered within",
        key: "p95_ms",
        of: |run| run.p95,
        unit: Unit::Millis,
        is_cost: true,
        least: 0.02,
    },
    Measure {
        name: "99 % are answered within",
        key: "p99_ms",
        of: |run| run.p99,
        unit: Unit::Millis,
        is_cost: true,
        least: 0.05,
    },
    Measure {
        name: "answered by the origin",
        key: "answered",
        of: |run| run.answered,
        unit: Unit::Share,
        is_cost: false,
        least: 0.0005,
    },
    Measure {
        name: "copies a request",
        key: "copies",
        of: |run| run.copies,
        unit: Unit::Count,
        is_cost: true,
        least: 0.01,
    },
    Measure {
        name: "spurious copies a request",
        key: "spurious",
        of: |run| run.spurious,
        unit: Unit::Count,
        is_cost: true,
        least: 0.05,
    },
];

impl<'o> Advice<'o> {
    /// Errors: what is wrong with the configuration file.
    pub(crate) fn new(
        name: &'o str,
        observed: &'o Observed,
        share: f64,
        file: Option<(&std::path::Path, &str)>,
        search: &Search<'_>,
    ) -> Result<Self, ConfigErrors> {
        let load = observed.load(share);
        let told = |verdict| Ok(Self { name, observed, load, verdict });
        let estimate = match Estimate::new(observed) {
            Ok(estimate) => estimate,
            Err(need) => return told(Verdict::TooLittle(need)),
        };
        let [learned, held_out] = &observed.halves;
        let paths = path(learned, observed, &estimate, load).zip(path(held_out, observed, &estimate, load));
        let Some((learned, held_out)) = paths else {
            let have = observed.trials;
            return told(Verdict::TooLittle(Need { have, need: 2 * have }));
        };
        let in_force = InForce::new(file, name, observed, Some(&estimate.fit))?;
        let found = search.find(&learned, &estimate.fit, &in_force);
        let prediction = predict(search, &held_out, &in_force, &found);
        told(Verdict::Known(Box::new(Known { estimate, in_force, found, prediction })))
    }
}

fn predict(search: &Search<'_>, held_out: &Path, in_force: &InForce, found: &Found) -> Prediction {
    let scenarios = scenarios(held_out);
    let prices = Prices::new(held_out, &in_force.policy);
    let draw = search.effort.telling();
    let policies: Vec<Policy> = [in_force.policy.clone()].into_iter().chain(found.policy.clone()).collect();
    let mut judged = search.judge(&scenarios, &policies, draw).into_iter();
    let base = judged.next();
    let proposed = judged.next();
    let base = base.unwrap_or_else(|| Judged { policy: in_force.policy.clone(), runs: Vec::new() });
    let cost = proposed.as_ref().map(|one| objective(&scenarios, &one.runs, &base.runs, &prices));
    let holds = proposed.as_ref().is_some_and(|proposed| {
        let more = proposed.runs[0].more_than(&base.runs[0], |run| prices.cost(run));
        cost.is_some_and(|cost| cost < 1.0) && more.is_below(0.0)
    });
    let worse = proposed.as_ref().map_or_else(Vec::new, |proposed| worse(&scenarios, proposed, &base));
    let once = once(search, &scenarios[..1], in_force, found);
    Prediction {
        in_force: base,
        proposed,
        objective: cost.unwrap_or(1.0),
        holds,
        worse,
        once,
        requests: draw.requests,
    }
}

/// Measures that are worse, beyond chance and beyond what matters.
fn worse(scenarios: &[Scenario], proposed: &Judged, base: &Judged) -> Vec<Worse> {
    let mut all = Vec::new();
    for (scenario, (proposed, base)) in scenarios.iter().zip(proposed.runs.iter().zip(&base.runs)) {
        for measure in &MEASURES {
            let more = proposed.more_than(base, measure.of);
            let (before, after) = (base.of(measure.of).value, proposed.of(measure.of).value);
            let off = (after - before).abs();
            let matters = match measure.unit {
                Unit::Millis => off > measure.least * before,
                Unit::Share | Unit::Count => off > measure.least,
            };
            let is_worse = if measure.is_cost { more.is_above(0.0) } else { more.is_below(0.0) };
            if is_worse && matters {
                all.push(Worse { scenario: scenario.name, measure, in_force: before, proposed: after });
            }
        }
    }
    all
}

/// What `deduplicates` would do for POST and PATCH, where there are any and it is not set.
fn once(
    search: &Search<'_>,
    recorded: &[Scenario],
    in_force: &InForce,
    found: &Found,
) -> Option<(Interval, Interval)> {
    let asked = recorded.first()?.path.once;
    if asked < 0.005 || in_force.policy.parameters.deduplicates {
        return None;
    }
    let settings = found.policy.as_ref().map_or(&[][..], |policy| &policy.settings);
    let without = in_force.with(settings)?;
    let with = in_force.with(&[settings, &[set("deduplicates", true)]].concat())?;
    let judged = search.judge(recorded, &[without, with], search.effort.telling());
    let unknown = |one: &Judged| one.runs.first().map(|runs: &Runs| runs.of(|run| run.unknown));
    Some((unknown(judged.first()?)?, unknown(judged.get(1)?)?))
}

#[cfg(test)]
mod tests;
