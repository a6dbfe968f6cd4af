//! What must hold, judged by many runs: by how much it does on average, how far runs are apart, and in how many of
//! them it does.

use std::fmt::Write as _;

use super::losses::seconds;
use super::report::{Cell, Report};

/// Answers on the path that loses 15 % each way.
const LEAST_ANSWERED: f64 = 0.995;
/// The mean latency there as a share of that of `fixed`.
const MOST_OF_FIXED: f64 = 0.25;
/// `rto.spurious_budget`.
const BUDGET: f64 = 0.05;
/// Of those asked in an outage that ends in time.
const LEAST_SURVIVED: f64 = 0.95;
/// Standard deviations and standard errors that chance is given.
const CHANCE: f64 = 3.0;

/// What is looked at.
pub(super) struct Studies {
    /// 15 % lost each way at each load, from a cold start: `default`, `fixed`, and `default` with a wide window.
    pub(super) cold: Report,
    /// The same without the first two minutes.
    pub(super) warm: Report,
    /// Paths that stay as they are: `default`.
    pub(super) steady: Report,
    /// Outages: `default`.
    pub(super) outages: Report,
}

/// A figure in many runs, and where it has to lie.
struct Figure {
    name: String,
    values: Vec<f64>,
    limit: f64,
    at_least: bool,
    /// Standard deviations of a run that a run may be off.
    slack: f64,
    show: fn(f64) -> String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Yes,
    No,
    Open,
}

impl Figure {
    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// The standard deviation between runs.
    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (self.values.len().max(2) - 1) as f64).sqrt()
    }

    /// How far on the right side of the limit a value is.
    fn beyond(&self, value: f64) -> f64 {
        if self.at_least { value - self.limit } else { self.limit - value }
    }

    /// Of the mean over all runs.
    fn verdict(&self) -> Verdict {
        let error = CHANCE * self.deviation() / (self.values.len() as f64).sqrt();
        match self.beyond(self.mean()) {
            beyond if beyond >= error => Verdict::Yes,
            beyond if beyond < -error => Verdict::No,
            _ => Verdict::Open,
        }
    }

    fn keeping(&self) -> usize {
        let slack = self.slack * self.deviation();
        self.values.iter().filter(|value| self.beyond(**value) + slack >= 0.0).count()
    }

    /// The worst run, and which it is.
    fn worst(&self) -> (usize, f64) {
        let worst = self.values.iter().copied().enumerate();
        worst.min_by(|a, b| self.beyond(a.1).total_cmp(&self.beyond(b.1))).unwrap_or((0, f64::NAN))
    }

    fn row(&self, page: &mut String) {
        let Self { name, values, limit, at_least, show, .. } = self;
        let sign = if *at_least { "≥" } else { "≤" };
        let verdict = match self.verdict() {
            Verdict::Yes => "yes",
            Verdict::No => "**no**",
            Verdict::Open => "cannot tell",
        };
        let (run, worst) = self.worst();
        let _ = writeln!(
            page,
            "| {name} | {sign} {} | {} | {} | {} (run {run}) | {} of {} | {verdict} |",
            show(*limit),
            show(self.mean()),
            show(self.deviation()),
            show(worst),
            self.keeping(),
            values.len()
        );
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn ratio(number: f64) -> String {
    format!("{number:.3}")
}

/// The mean latency of a policy over that of another, run by run.
fn ratios(cell: &Cell, policy: usize, other: usize) -> Vec<f64> {
    let (own, others) = (cell.runs(policy, "mean"), cell.runs(other, "mean"));
    own.iter().zip(others).map(|(own, other)| own / other).collect()
}

fn per_second(cell: &Cell) -> String {
    cell.rate.map_or_else(|| "its own load".to_owned(), |rate| format!("{rate}/s"))
}

/// All figures of the list, in its order.
fn figures(studies: &Studies) -> Vec<Figure> {
    let mut figures = Vec::new();
    for cell in &studies.cold.cells {
        figures.push(Figure {
            name: format!("{}, {}: answered", cell.scenario, per_second(cell)),
            values: cell.runs(0, "answered"),
            limit: LEAST_ANSWERED,
            at_least: true,
            slack: 0.0,
            show: percent,
        });
    }
    for cell in &studies.cold.cells {
        figures.push(Figure {
            name: format!("{}, {}: mean, × `fixed`", cell.scenario, per_second(cell)),
            values: ratios(cell, 0, 1),
            limit: MOST_OF_FIXED,
            at_least: false,
            slack: 0.0,
            show: ratio,
        });
    }
    for cell in &studies.steady.cells {
        figures.push(Figure {
            name: format!("{}: sent again needlessly", cell.scenario),
            values: cell.runs(0, "resent"),
            limit: BUDGET,
            at_least: false,
            slack: CHANCE,
            show: percent,
        });
    }
    for cell in &studies.outages.cells {
        figures.push(Figure {
            name: format!("{}: answered of those asked in an outage", cell.scenario),
            values: cell.runs(0, "survived"),
            limit: LEAST_SURVIVED,
            at_least: true,
            slack: 0.0,
            show: percent,
        });
    }
    figures
}

/// The section of the page.
pub(super) fn section(studies: &Studies) -> String {
    let mut page = String::from("\n## What must hold\n\n");
    let _ = write!(
        page,
        "Judged by {} runs of seed {}, each with chance of its own: a mean *holds* (or does not) when it is on its side \
         of the limit by three standard errors, by the standard deviation *between runs*; what one run of luck says is \
         worth nothing. Runs are counted from 0, as `--json` lists them. What is sent again needlessly may be off by \
         three such deviations in one run.\n\n\
         | what | limit | mean | between runs | worst run | runs that keep to it | holds |\n|---|---|---|---|---|---|---|\n",
        studies.cold.runs, studies.cold.seed
    );
    figures(studies).iter().for_each(|figure| figure.row(&mut page));
    page.push_str("\nBy these, from the top:\n\n");
    for command in &COMMANDS {
        let _ = writeln!(page, "* `coapway simulate {}`", command.join(" ").replace("--json ", ""));
    }
    costs(&mut page, studies);
    page
}

/// Where the mean latency comes from.
fn costs(page: &mut String, studies: &Studies) {
    page.push_str(
        "\n### What a cold start costs\n\n\
         Nothing is known of an origin at first: one exchange at a time (NSTART) with a timeout of 2 to 3 s. What comes \
         meanwhile waits behind it, and when the first exchanges are unlucky this backlog takes a while, in which all \
         of its requests are late. The hour of above with its start, beside ten minutes that follow on two others, and \
         beside an hour with a window that is wide from the start (`nstart=128`), where nothing waits for another.\n\n\
         | requests/s | `default` | × `fixed` | worst run | after 2 min | × `fixed` | worst run | `nstart=128` | × `fixed` |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    for (cold, warm) in studies.cold.cells.iter().zip(&studies.warm.cells) {
        let time = |cell: &Cell, policy| seconds(mean(&cell.runs(policy, "mean")));
        let times_fixed = |cell: &Cell, policy| ratio(mean(&ratios(cell, policy, 1)));
        let worst = |cell: &Cell| seconds(most(&cell.runs(0, "mean")));
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            cold.rate.unwrap_or_default(),
            time(cold, 0),
            times_fixed(cold, 0),
            worst(cold),
            time(warm, 0),
            times_fixed(warm, 0),
            worst(warm),
            time(cold, 2),
            times_fixed(cold, 2),
        );
    }
    let _ = writeln!(page, "\nThe latter by `coapway simulate {}`.", WARM.join(" ").replace("--json ", ""));
}

const WARM: [&str; 17] = [
    "loss-15",
    "--policy",
    "default",
    "--policy",
    "fixed",
    "--policy",
    "default,nstart=128",
    "--load",
    "1,5,20,100",
    "--duration",
    "12min",
    "--warmup",
    "2min",
    "--runs",
    "40",
    "--mix",
    "100,0,0",
];

/// What the studies are: cold, steady, outages.
pub(super) const COMMANDS: [&[&str]; 3] = [
    &[
        "loss-15",
        "--policy",
        "default",
        "--policy",
        "fixed",
        "--policy",
        "default,nstart=128",
        "--load",
        "1,5,20,100",
        "--duration",
        "1h",
        "--runs",
        "40",
        "--mix",
        "100,0,0",
    ],
    &[
        "lan",
        "loss-1",
        "loss-5",
        "loss-15",
        "lte-m",
        "nb-iot-a",
        "nb-iot-b",
        "wifi-burst",
        "wifi-burst-long",
        "wifi-burst-rare",
        "bufferbloat-100",
        "bufferbloat-1bdp",
        "slow-origin",
        "slow-origin-1s",
        "slow-origin-late",
        "slow-origin-never",
        "dup-reorder",
        "overload-80",
        "--policy",
        "default",
        "--requests",
        "4000",
        "--duration",
        "48h",
        "--warmup",
        "0s",
        "--runs",
        "40",
    ],
    &["outage-up", "outage-both", "--policy", "default", "--runs", "40"],
];

/// Runs them.
///
/// Errors: those of `study`.
pub(super) fn studies(study: impl Fn(&[&str]) -> anyhow::Result<Report>) -> anyhow::Result<Studies> {
    let [cold, steady, outages] = COMMANDS;
    Ok(Studies { cold: study(cold)?, warm: study(&WARM)?, steady: study(steady)?, outages: study(outages)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(values: &[f64], at_least: bool, slack: f64) -> Figure {
        Figure { name: "x".to_owned(), values: values.to_vec(), limit: 0.5, at_least, slack, show: ratio }
    }

    #[test]
    fn a_mean_holds_by_more_than_runs_are_apart() {
        let near = [0.4, 0.6, 0.4, 0.62];
        assert_eq!(figure(&near, true, 0.0).verdict(), Verdict::Open);
        assert_eq!(figure(&[0.6, 0.61, 0.6, 0.62], true, 0.0).verdict(), Verdict::Yes);
        assert_eq!(figure(&[0.6, 0.61, 0.6, 0.62], false, 0.0).verdict(), Verdict::No);
        assert_eq!(figure(&[0.5; 4], false, 0.0).verdict(), Verdict::Yes, "it is the limit itself");
        assert_eq!(figure(&near, true, 0.0).worst(), (0, 0.4));
        assert_eq!(figure(&near, false, 0.0).worst(), (3, 0.62));
        assert_eq!((figure(&near, true, 0.0).keeping(), figure(&near, true, 3.0).keeping()), (2, 4));
    }

    #[test]
    fn a_row_says_all_of_it() {
        let mut page = String::new();
        figure(&[0.6, 0.7], true, 0.0).row(&mut page);
        assert_eq!(page, "| x | ≥ 0.500 | 0.650 | 0.071 | 0.600 (run 0) | 2 of 2 | cannot tell |\n");
    }
}
