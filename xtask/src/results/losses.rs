//! Where another policy does better than the first, beyond chance.

use super::report::{Cell, Report};

/// One measure in which the first policy loses.
#[derive(Debug, PartialEq)]
pub(super) struct Loss {
    pub(super) scenario: String,
    pub(super) rate: Option<f64>,
    pub(super) measure: &'static str,
    pub(super) own: String,
    pub(super) rival: String,
    pub(super) by: String,
    /// What is lost, relative to the rival's, to sort by.
    weight: f64,
}

/// What is compared, and from which share of the rival's on it counts.
struct Measure {
    key: &'static str,
    title: &'static str,
    more_is_better: bool,
    show: fn(f64) -> String,
    counts: f64,
    /// Compared between those only that answer about as many.
    of_the_answered: bool,
}

const MEASURES: [Measure; 7] = [
    Measure {
        key: "answered",
        title: "answered",
        more_is_better: true,
        show: percent,
        counts: 0.001,
        of_the_answered: false,
    },
    Measure {
        key: "mean",
        title: "mean latency",
        more_is_better: false,
        show: seconds,
        counts: 0.05,
        of_the_answered: true,
    },
    Measure {
        key: "p95",
        title: "P95",
        more_is_better: false,
        show: seconds,
        counts: 0.05,
        of_the_answered: true,
    },
    Measure {
        key: "p99",
        title: "P99",
        more_is_better: false,
        show: seconds,
        counts: 0.05,
        of_the_answered: true,
    },
    Measure {
        key: "survived",
        title: "answered of those asked in an outage",
        more_is_better: true,
        show: percent,
        counts: 0.001,
        of_the_answered: false,
    },
    Measure {
        key: "resent",
        title: "sent again needlessly",
        more_is_better: false,
        show: percent,
        counts: 0.05,
        of_the_answered: true,
    },
    Measure {
        key: "spurious",
        title: "spurious copies per request",
        more_is_better: false,
        show: plain,
        counts: 0.05,
        of_the_answered: true,
    },
];

/// Fewer spurious copies than this per request are nobody's concern.
const FEW_COPIES: f64 = 0.01;
/// A share of answers that counts as equal.
const AS_MANY: f64 = 0.005;

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

pub(super) fn seconds(seconds: f64) -> String {
    if seconds < 0.1 { format!("{seconds:.4} s") } else { format!("{seconds:.2} s") }
}

fn plain(number: f64) -> String {
    format!("{number:.3}")
}

/// All of them, the worst first; each measure of a cell once, against the rival that does best.
pub(super) fn losses(report: &Report) -> Vec<Loss> {
    let mut losses: Vec<Loss> = report
        .cells
        .iter()
        .flat_map(|cell| MEASURES.iter().filter_map(|measure| loss(report, cell, measure)))
        .collect();
    losses.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    losses
}

fn loss(report: &Report, cell: &Cell, measure: &Measure) -> Option<Loss> {
    let own = cell.metric(0, measure.key)?.mean;
    let answered = |policy| cell.metric(policy, "answered").map_or(0.0, |answered| answered.mean);
    let better = |policy: &usize| {
        let difference = cell.difference(*policy, measure.key)?;
        let gain = if measure.more_is_better { difference.mean } else { -difference.mean };
        let rival = own + difference.mean;
        let comparable = !measure.of_the_answered || answered(*policy) >= answered(0) - AS_MANY;
        let matters = !matches!(measure.key, "spurious" | "resent") || own > FEW_COPIES;
        // Against next to nothing everything is a loss without bounds.
        let weight = gain / rival.abs().max(own.abs() / 10.0);
        (comparable && matters && gain > difference.within && weight > measure.counts)
            .then_some((*policy, rival, weight))
    };
    let all = (1..report.policies.len()).filter_map(|policy| better(&policy));
    let (policy, rival, weight) = all.max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some(Loss {
        scenario: cell.scenario.clone(),
        rate: cell.rate,
        measure: measure.title,
        own: (measure.show)(own),
        rival: (measure.show)(rival),
        by: report.policies[policy].clone(),
        weight,
    })
}
