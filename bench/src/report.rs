//! The table of a measurement, for readers and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::machine::Machine;
use crate::run::Run;
use crate::statistics::Spread;

/// All runs so far.
pub(crate) struct Report {
    machine: String,
    repetitions: u8,
    seconds: f64,
    /// The proxy that the others are compared with.
    yardstick: String,
    /// More foreign CPU use than this makes a run doubtful, in cores.
    most_foreign: f64,
    runs: Vec<Run>,
}

impl Report {
    /// An empty one.
    pub(crate) fn new(
        machine: String,
        repetitions: u8,
        seconds: f64,
        yardstick: String,
        most_foreign: f64,
    ) -> Self {
        Self { machine, repetitions, seconds, yardstick, most_foreign, runs: Vec::new() }
    }

    /// Adds a run.
    pub(crate) fn push(&mut self, run: Run) {
        self.runs.push(run);
    }

    /// A Markdown table with a row for every number of clients and proxy, and what to know of the machine.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!(
            "| clients | proxy | requests/s | CPU µs/request | × {0} | P50 µs | P99 µs | P99 × {0} | client rtx | wrong | runs that count |\n\
             |--:|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
            self.yardstick
        );
        for (clients, proxy) in self.rows() {
            let runs: Vec<&Run> =
                self.runs.iter().filter(|run| run.clients == clients && run.proxy == proxy).collect();
            text += &self.row(clients, proxy, &runs);
        }
        let _infallible = write!(
            text,
            "\nMedian (least–greatest) of {} repetitions of {} s; × {} is the ratio to it within one \
             repetition.\n{}; {}.\n",
            self.repetitions,
            self.seconds,
            self.yardstick,
            self.machine,
            self.foreign_use()
        );
        if self.runs.iter().any(|run| !run.outcome.is_sound()) {
            text += "**!** Some runs had wrong or missing answers; they are in no median.\n";
        }
        text
    }

    /// Every run, and the machine.
    pub(crate) fn json(&self, machine: &Machine) -> Value {
        let runs: Vec<Value> =
            self.runs.iter().map(|run| run_json(run, self.ratio(run, |run| run.cpu))).collect();
        json!({
            "machine": machine.json(),
            "repetitions": self.repetitions,
            "seconds": self.seconds,
            "yardstick": self.yardstick,
            "runs": runs,
        })
    }

    /// Client counts in the order of their first run, the proxies of each in the order of theirs.
    fn rows(&self) -> Vec<(u16, &str)> {
        let first = self.runs.iter().filter(|run| run.repetition == 0);
        let mut rows: Vec<(u16, &str)> = Vec::new();
        for run in first {
            let row = (run.clients, run.proxy.as_str());
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows
    }

    fn row(&self, clients: u16, proxy: &str, runs: &[&Run]) -> String {
        let sound = || runs.iter().filter(|run| run.outcome.is_sound());
        let spread = |value: fn(&Run) -> f64, digits| {
            Spread::of(sound().map(|run| value(run)))
                .map_or_else(|| "–".into(), |spread| spread.printed(digits))
        };
        let ratio = |value: fn(&Run) -> f64| {
            Spread::of(sound().filter_map(|run| self.ratio(run, value)))
                .map_or_else(|| "–".into(), |spread| spread.printed(2))
        };
        let (cpu_ratio, p99_ratio) = (ratio(|run| run.cpu), ratio(|run| run.outcome.p99));
        let retransmissions: u64 = runs.iter().map(|run| run.outcome.retransmissions).sum();
        let wrong: u64 = runs.iter().map(|run| run.outcome.wrong + run.outcome.unanswered).sum();
        let mark = if sound().count() == runs.len() { "" } else { " **!**" };
        format!(
            "| {clients} | {proxy} | {} | {} | {cpu_ratio} | {} | {} | {p99_ratio} | {retransmissions} | {wrong} | {}/{}{mark} |\n",
            spread(|run| run.outcome.answered as f64 / run.outcome.seconds, 0),
            spread(|run| run.cpu, 2),
            spread(|run| run.outcome.p50, 0),
            spread(|run| run.outcome.p99, 0),
            sound().count(),
            runs.len()
        )
    }

    /// A value against that of the yardstick in the same repetition, if both runs count.
    fn ratio(&self, run: &Run, value: fn(&Run) -> f64) -> Option<f64> {
        let is_yardstick = |other: &&Run| {
            other.proxy == self.yardstick
                && other.clients == run.clients
                && other.repetition == run.repetition
                && other.outcome.is_sound()
        };
        let other = value(self.runs.iter().find(is_yardstick)?);
        (run.outcome.is_sound() && other > 0.0).then(|| value(run) / other)
    }

    fn foreign_use(&self) -> String {
        let spread = |value: fn(&Run) -> f64| {
            Spread::of(self.runs.iter().map(value)).map_or_else(|| "–".into(), |spread| spread.printed(2))
        };
        let doubtful = self.runs.iter().filter(|run| run.foreign > self.most_foreign).count();
        let mut text = format!(
            "cores used by others during the runs: {}, taken by the hypervisor: {}",
            spread(|run| run.foreign),
            spread(|run| run.stolen)
        );
        if doubtful > 0 {
            let _infallible = write!(
                text,
                "; **{doubtful} of {} runs saw more than {}**",
                self.runs.len(),
                self.most_foreign
            );
        }
        text
    }
}

fn run_json(run: &Run, ratio: Option<f64>) -> Value {
    let outcome = &run.outcome;
    json!({
        "repetition": run.repetition,
        "proxy": run.proxy,
        "clients": run.clients,
        "counts": outcome.is_sound(),
        "seconds": outcome.seconds,
        "answered": outcome.answered,
        "cpu_us_per_request": run.cpu,
        "times_yardstick": ratio,
        "p50_us": outcome.p50,
        "p99_us": outcome.p99,
        "client_retransmissions": outcome.retransmissions,
        "wrong": outcome.wrong,
        "unanswered": outcome.unanswered,
        "first_fault": outcome.complaint,
        "foreign_cores": run.foreign,
        "stolen_cores": run.stolen,
    })
}

#[cfg(test)]
mod tests {
    use crate::load::Outcome;

    use super::*;

    fn run(repetition: u8, proxy: &str, cpu: f64, wrong: u64) -> Run {
        let outcome =
            Outcome { seconds: 2.0, answered: 2000, p50: 10.0, p99: 20.0, wrong, ..Outcome::default() };
        Run { repetition, proxy: proxy.into(), clients: 16, outcome, cpu, foreign: 0.01, stolen: 0.0 }
    }

    fn report(runs: impl IntoIterator<Item = Run>) -> Report {
        let mut report = Report::new("a machine".into(), 2, 2.0, "bare".into(), 0.2);
        runs.into_iter().for_each(|run| report.push(run));
        report
    }

    #[test]
    fn compares_within_one_repetition() {
        let report = report([
            run(0, "bare", 4.0, 0),
            run(0, "x", 6.0, 0),
            run(1, "x", 20.0, 0),
            run(1, "bare", 8.0, 0),
        ]);
        let text = report.markdown();
        assert!(
            text.contains("| 16 | bare | 1000 | 6.00 (4.00–8.00) | 1.00 | 10 | 20 | 1.00 | 0 | 0 | 2/2 |"),
            "{text}"
        );
        assert!(text.contains("| 16 | x | 1000 | 13.00 (6.00–20.00) | 2.00 (1.50–2.50) |"), "{text}");
        assert!(!text.contains("**!**"));
    }

    #[test]
    fn leaves_out_and_marks_runs_with_wrong_answers() {
        let report = report([
            run(0, "bare", 4.0, 0),
            run(0, "x", 6.0, 3),
            run(1, "x", 5.0, 0),
            run(1, "bare", 5.0, 0),
        ]);
        let text = report.markdown();
        assert!(
            text.contains("| 16 | x | 1000 | 5.00 | 1.00 | 10 | 20 | 1.00 | 0 | 3 | 1/2 **!** |"),
            "{text}"
        );
    }

    #[test]
    fn has_no_ratio_where_the_yardstick_failed() {
        let report = report([run(0, "bare", 4.0, 1), run(0, "x", 6.0, 0)]);
        assert!(report.markdown().contains("| 16 | x | 1000 | 6.00 | – |"));
        assert_eq!(
            run_json(&report.runs[1], report.ratio(&report.runs[1], |run| run.cpu))["times_yardstick"],
            Value::Null
        );
    }

    #[test]
    fn tells_of_a_busy_machine() {
        let mut busy = run(0, "bare", 4.0, 0);
        busy.foreign = 0.7;
        assert!(report([busy]).markdown().contains("1 of 1 runs saw more than 0.2"));
    }
}
