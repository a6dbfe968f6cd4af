//! One table per cell: policies side by side, for people.

use std::fmt::Write as _;

use coapway_config::escaped;

use crate::figures::{METRICS, Metric, Unit, metric};
use crate::scenario::{Pace, Scenario, USUAL_REQUESTS};
use crate::statistics::Estimate;
use crate::study::{Study, Summary};

/// What is compared with the first policy.
const COMPARED: [&str; 6] = ["mean", "p95", "p99", "answered", "transmissions", "spurious"];
const WIDTH: usize = 20;
const TITLE: usize = 42;

/// The table of a cell.
pub(crate) fn table(study: &Study, scenario: &Scenario, summaries: &[Summary]) -> String {
    let mut text = format!("{}\n{}\n", escaped(scenario.title()), described(study, scenario));
    let line = |text: &mut String, title: &str, cells: &mut dyn Iterator<Item = String>| {
        let _ = write!(text, "  {title:<TITLE$}");
        for cell in cells {
            let _ = write!(text, " {cell:>WIDTH$}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    };
    text.push('\n');
    let heads: Vec<_> = study.policies.iter().map(|policy| head(&policy.name)).collect();
    for row in 0..heads.iter().map(Vec::len).max().unwrap_or_default() {
        let part = |head: &Vec<String>| head.get(row).cloned().unwrap_or_default();
        line(&mut text, "", &mut heads.iter().map(part));
    }
    for (place, metric) in METRICS.iter().enumerate() {
        let estimates = summaries.iter().filter_map(|summary| summary.estimates.get(place));
        if estimates.clone().all(|estimate| estimate.mean.is_nan()) {
            continue;
        }
        line(&mut text, metric.title, &mut estimates.map(|estimate| cell(metric.unit, *estimate)));
    }
    let cut_short: usize = summaries.iter().map(|summary| summary.cut_short).sum();
    if cut_short > 0 {
        let of = summaries.len() * study.runs as usize;
        let _ = writeln!(
            text,
            "\n  {cut_short} of {of} runs ended after {USUAL_REQUESTS} requests, before their time; --requests allows more"
        );
    }
    if summaries.len() > 1 && study.runs > 1 {
        let first = escaped(&study.policies[0].name);
        let _ = writeln!(
            text,
            "\n  more or less than {first}, run by run; = where 95 % confidence does not tell"
        );
        for key in COMPARED {
            let Some(place) = metric(key) else { continue };
            let Metric { title, unit, .. } = METRICS[place];
            let differences = summaries.iter().skip(1).filter_map(|summary| summary.differences.get(place));
            let cells = differences.map(|estimate| difference(unit, *estimate));
            line(&mut text, title, &mut std::iter::once(String::new()).chain(cells));
        }
    }
    text
}

/// What a cell is, in one line.
pub(crate) fn described(study: &Study, scenario: &Scenario) -> String {
    let clients = &scenario.clients;
    let pace = match clients.pace {
        Pace::Rate(1.0) => "1 request/s together".to_owned(),
        Pace::Rate(rate) => format!("{} requests/s together", rounded(rate)),
        Pace::Think(think) => format!("each {} s after its last answer", rounded(think)),
    };
    let percent = |share: f64| (share * 1000.0).round() / 10.0;
    let mix = clients.mix;
    let shares = [("GET", 1.0 - mix.post - mix.non), ("POST", mix.post), ("NON", mix.non)];
    let shares: Vec<_> = shares
        .into_iter()
        .filter(|(_, share)| *share > 0.0005)
        .map(|(name, share)| format!("{} % {name}", percent(share)))
        .collect();
    let seconds = rounded(scenario.duration.as_secs_f64());
    let runs = if study.runs == 1 { "1 run".to_owned() } else { format!("{} runs", study.runs) };
    let (count, s) = (clients.count, if clients.count == 1 { "" } else { "s" });
    let requests = scenario.requests.map(|most| format!(" or {most} requests")).unwrap_or_default();
    format!(
        "{count} client{s}, {pace}, {}; {seconds} s{requests}, {runs}, seed {}",
        shares.join(", "),
        study.seed
    )
}

/// With four decimals where there are any.
fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

/// The head of a column, in as many lines as it takes: policies often differ in their last letters only. Lines
/// end behind a comma where they can.
fn head(name: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let name = escaped(name).to_string();
    for part in name.split_inclusive(',') {
        let mut letters: Vec<char> = part.chars().collect();
        while !letters.is_empty() {
            let rest = letters.split_off(letters.len().min(WIDTH));
            if let Some(last) = lines.last_mut() {
                let taken = last.chars().count();
                if taken > 0 && taken + letters.len() > WIDTH {
                    lines.push(letters.into_iter().collect());
                } else {
                    last.extend(letters);
                }
            }
            letters = rest;
        }
    }
    lines
}

fn cell(unit: Unit, Estimate { mean, within }: Estimate) -> String {
    if mean.is_nan() {
        return "-".to_owned();
    }
    if unit == Unit::Share && (mean - within < 0.0 || mean + within > 1.0) {
        return share_at_its_end(mean, within);
    }
    let (mean, suffix) = shown(unit, mean);
    if within.is_nan() || unit == Unit::Count && within == 0.0 {
        return format!("{mean}{suffix}");
    }
    let (within, _) = shown(unit, within);
    format!("{mean} ±{within}{suffix}")
}

/// A share with an interval that would go beyond 0 or 100 %.
fn share_at_its_end(mean: f64, within: f64) -> String {
    let digits = if within < 0.01 { 2 } else { 1 };
    let told = |share: f64| format!("{:.digits$}", share * 100.0);
    let side = |sign: char, width: f64| match told(within.min(width)) {
        none if none.bytes().all(|byte| matches!(byte, b'0' | b'.')) => String::new(),
        width => format!(" {sign}{width}"),
    };
    format!("{}{}{} %", told(mean), side('−', mean), side('+', 1.0 - mean))
}

fn difference(unit: Unit, estimate: Estimate) -> String {
    let Estimate { mean, within } = estimate;
    if mean.is_nan() || within.is_nan() {
        return "-".to_owned();
    }
    if !estimate.is_sure() {
        let (within, suffix) = shown(unit, within);
        return format!("= ±{within}{suffix}");
    }
    let sign = if mean < 0.0 { '-' } else { '+' };
    let ((mean, suffix), (within, _)) = (shown(unit, mean.abs()), shown(unit, within));
    format!("{sign}{mean} ±{within}{suffix}")
}

/// A number and what stands behind it.
pub(crate) fn shown(unit: Unit, value: f64) -> (String, &'static str) {
    match unit {
        Unit::Seconds => (decimals(value), " s"),
        Unit::Share => (format!("{:.2}", value * 100.0), " %"),
        Unit::Number => (format!("{value:.3}"), ""),
        Unit::Count if value >= 100.0 => (format!("{value:.0}"), ""),
        Unit::Count => (format!("{value:.1}"), ""),
    }
}

/// To the millisecond, to a tenth of it where that is all there is, or to the microsecond.
pub(crate) fn decimals(seconds: f64) -> String {
    if (1e-6..1e-3).contains(&seconds) {
        format!("{seconds:.6}")
    } else if seconds < 0.1 {
        format!("{seconds:.4}")
    } else if seconds < 10.0 {
        format!("{seconds:.3}")
    } else {
        format!("{seconds:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_that_begin_alike_stay_apart() {
        assert_eq!(head("default"), ["default"]);
        assert_eq!(head("p95,nstart=1"), ["p95,nstart=1"]);
        assert_eq!(head("p95,rto.factor=1.5,max_wait=20s"), ["p95,rto.factor=1.5,", "max_wait=20s"]);
        assert_eq!(head("p95,rto.factor=1.5,max_wait=30s")[1], "max_wait=30s");
        let long = "a-configuration-of-mine-number-2.toml";
        assert_eq!(head(long).concat(), long);
        assert_eq!(head("a\u{1b}[31m.toml"), ["a\\u{1b}[31m.toml"]);
        assert!(
            [long, "p95,rto.factor=1.5,max_wait=30s", "é".repeat(99).as_str()]
                .iter()
                .all(|name| { head(name).iter().all(|line| (1..=WIDTH).contains(&line.chars().count())) })
        );
    }

    #[test]
    fn times_below_a_millisecond_are_not_nothing() {
        let told = [0.0, 4e-7, 3.1e-6, 0.000_999, 0.001, 0.0314, 0.5, 12.345].map(decimals);
        let expected = ["0.0000", "0.0000", "0.000003", "0.000999", "0.0010", "0.0314", "0.500", "12.35"];
        assert_eq!(told, expected);
        let widest = cell(Unit::Seconds, Estimate { mean: 0.000_312, within: 0.000_012 });
        assert_eq!(widest, "0.000312 ±0.000012 s");
    }

    #[test]
    fn no_share_goes_beyond_what_a_share_can_be() {
        let told = |mean, within| cell(Unit::Share, Estimate { mean, within });
        for (mean, within, text) in [
            (0.5, 0.02, "50.00 ±2.00 %"),
            (1.0, 0.0, "100.00 ±0.00 %"),
            (0.97, 0.1271, "97.0 −12.7 +3.0 %"),
            (0.0017, 0.0211, "0.2 −0.2 +2.1 %"),
            (0.995, 0.0099, "99.50 −0.99 +0.50 %"),
            (0.999_99, 0.002, "100.00 −0.20 %"),
            (0.5, 6.0, "50.0 −50.0 +50.0 %"),
        ] {
            assert_eq!(told(mean, within), text);
            assert!(text.chars().count() <= WIDTH);
        }
        assert_eq!(cell(Unit::Number, Estimate { mean: 1.0, within: 0.5 }), "1.000 ±0.500");
    }
}
