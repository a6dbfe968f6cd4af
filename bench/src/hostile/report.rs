//! The table of phases and the verdicts.

use std::collections::BTreeMap;

use super::good::Tally;
use crate::memory::Memory;

/// A part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Good load alone, not judged: everything is new.
    WarmUp,
    /// Good load alone: the measure of the others.
    Quiet,
    /// Hostile datagrams at the asked rate beside it.
    Hostile,
    /// As many of them as possible.
    FlatOut,
    /// A pause from them, not judged: what was lost is repeated.
    Recovery,
    /// Good load alone again.
    After,
}

impl Phase {
    /// In their order.
    pub(super) const ALL: [Self; 6] =
        [Self::WarmUp, Self::Quiet, Self::Hostile, Self::FlatOut, Self::Recovery, Self::After];

    fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Quiet => "quiet",
            Self::Hostile => "hostile",
            Self::FlatOut => "flat out",
            Self::Recovery => "recovery",
            Self::After => "quiet again",
        }
    }
}

/// What was measured of a phase from outside.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observed {
    /// Its length.
    pub(super) seconds: f64,
    /// Hostile datagrams sent by clients and by origins.
    pub(super) hostile: [u64; 2],
    /// Datagrams that found a socket of the proxy full.
    pub(super) lost: u64,
    /// The proxy's memory at its end.
    pub(super) memory: Memory,
    /// The proxy's CPU time in it, in seconds.
    pub(super) cpu: f64,
    /// Whether the proxy answered a ping at its end.
    pub(super) answers_ping: bool,
}

/// What a phase is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Hostile datagrams a second in [`Phase::Hostile`].
    pub(super) rate: u64,
    /// How many times the quiet P99 another P99 may be.
    pub(super) factor: f64,
    /// Memory in MiB.
    pub(super) bound: f64,
}

/// One line of the table.
pub(super) struct Row {
    phase: Phase,
    observed: Observed,
    tally: Tally,
    quantiles: [f64; 4],
}

impl Row {
    /// From both sides of the measurement.
    pub(super) fn new(phase: Phase, observed: Observed, mut tally: Tally) -> Self {
        let quantiles = [0.5, 0.99, 0.999, 1.0].map(|share| tally.latencies.quantile(share));
        Self { phase, observed, tally, quantiles }
    }

    fn p99(&self) -> f64 {
        self.quantiles[1]
    }

    fn rates(&self) -> [f64; 2] {
        self.observed.hostile.map(|sent| sent as f64 / self.observed.seconds)
    }

    fn all_right(&self) -> bool {
        self.tally.sent > 0 && self.tally.right == self.tally.sent && self.tally.faults.is_empty()
    }

    fn printed(&self) -> String {
        let Self { observed, tally, quantiles: [p50, p99, p999, most], .. } = self;
        let [clients, origins] = self.rates();
        let mebibytes = |kibibytes: u64| kibibytes as f64 / 1024.0;
        format!(
            "| {} | {:.0} | {} | {} | {} | {} | {} | {p50:.0} | {p99:.0} | {p999:.0} | {most:.0} | {clients:.0} | {origins:.0} | {} | {:.1} | {:.1} | {:.2} |\n",
            self.phase.name(),
            observed.seconds,
            tally.sent,
            tally.right,
            tally.repeated,
            tally.faults.values().sum::<u64>(),
            tally.unanswered,
            observed.lost,
            mebibytes(observed.memory.now),
            mebibytes(observed.memory.peak),
            observed.cpu,
        )
    }
}

/// The table in Markdown, with the faults below it.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| phase | s | good sent | right | of which repeated | faults | unanswered | P50 µs | P99 µs | P99.9 µs | most µs | hostile/s, clients | hostile/s, origins | lost at full sockets | RSS MiB | peak MiB | CPU s |\n\
         |:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut faults: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in rows {
        text += &row.printed();
        for (words, count) in &row.tally.faults {
            *faults.entry((row.phase.name(), words)).or_insert(0) += count;
        }
    }
    for ((phase, words), count) in faults {
        text += &format!("\nfault in phase {phase}, {count} times: {words}");
    }
    text + "\n"
}

/// The verdicts: whether each holds, and its words.
pub(super) fn verdicts(rows: &[Row], limits: Limits) -> Vec<(bool, String)> {
    let row = |phase| rows.iter().find(|row| row.phase == phase);
    let mut verdicts = Vec::new();
    let quiet = row(Phase::Quiet).map_or(0.0, Row::p99);
    for row in rows.iter().filter(|row| matches!(row.phase, Phase::Quiet | Phase::Hostile | Phase::After)) {
        let Tally { sent, right, repeated, .. } = row.tally;
        let name = row.phase.name();
        verdicts.push((
            row.all_right(),
            format!(
                "{name}: {right} of {sent} good requests answered rightly and once, {repeated} after a repeat"
            ),
        ));
        if row.phase != Phase::Quiet {
            let holds = row.p99() <= limits.factor * quiet;
            let times = row.p99() / quiet;
            verdicts.push((
                holds,
                format!("{name}: P99 is {times:.2} times the quiet one, {} allowed", limits.factor),
            ));
        }
    }
    if let Some(row) = row(Phase::Hostile) {
        let sent: f64 = row.rates().iter().sum();
        let holds = sent >= 0.95 * limits.rate as f64;
        verdicts
            .push((holds, format!("hostile: {sent:.0} hostile datagrams/s sent, {} wanted", limits.rate)));
    }
    for row in rows.iter().filter(|row| !matches!(row.phase, Phase::WarmUp | Phase::Recovery)) {
        let words = if row.observed.answers_ping { "answered" } else { "not answered" };
        verdicts.push((
            row.observed.answers_ping,
            format!("{}: a ping at its end was {words}", row.phase.name()),
        ));
    }
    let peak = rows.iter().map(|row| row.observed.memory.peak).max().unwrap_or(0) as f64 / 1024.0;
    verdicts
        .push((peak <= limits.bound, format!("memory: peak {peak:.1} MiB, {:.0} MiB allowed", limits.bound)));
    verdicts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn row(phase: Phase, p99: u64, right: u64) -> Row {
        let mut tally = Tally { sent: 100, right, ..Tally::default() };
        (0..100).for_each(|_| tally.latencies.push(Duration::from_micros(p99)));
        let observed = Observed {
            seconds: 1.0,
            hostile: [15_000, 5000],
            memory: Memory { now: 1024, peak: 2048 },
            answers_ping: true,
            ..Observed::default()
        };
        Row::new(phase, observed, tally)
    }

    fn rows(hostile_p99: u64, right: u64) -> Vec<Row> {
        let of = |phase| {
            let (p99, right) = if phase == Phase::Hostile { (hostile_p99, right) } else { (100, 100) };
            row(phase, p99, right)
        };
        Phase::ALL.into_iter().map(of).collect()
    }

    fn broken(rows: &[Row], limits: Limits) -> Vec<String> {
        let verdicts = verdicts(rows, limits).into_iter();
        verdicts.filter(|(holds, _)| !holds).map(|(_, words)| words).collect()
    }

    const LIMITS: Limits = Limits { rate: 20_000, factor: 2.0, bound: 3.0 };

    #[test]
    fn all_holds_when_everything_is_within_its_limit() {
        assert_eq!(broken(&rows(200, 100), LIMITS), Vec::<String>::new());
    }

    #[test]
    fn each_limit_is_judged() {
        for (rows, limits, word) in [
            (rows(201, 100), LIMITS, "P99"),
            (rows(200, 99), LIMITS, "answered rightly"),
            (rows(200, 100), Limits { rate: 30_000, ..LIMITS }, "sent"),
            (rows(200, 100), Limits { bound: 1.9, ..LIMITS }, "memory"),
        ] {
            let broken = broken(&rows, limits);
            assert!(broken.len() == 1 && broken[0].contains(word), "{broken:?}");
        }
    }

    #[test]
    fn the_table_names_faults() {
        let mut rows = rows(100, 100);
        rows[2].tally.faults.insert("5.03 \"full\"".into(), 7);
        let table = table(&rows);
        assert!(table.contains("fault in phase hostile, 7 times: 5.03 \"full\""), "{table}");
        assert_eq!(table.lines().filter(|line| line.starts_with('|')).count(), 8);
    }
}
