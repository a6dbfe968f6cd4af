//! The page itself.

use std::fmt::Write as _;

use super::holds::{self, Studies};
use super::losses::{Loss, losses, seconds};
use super::report::{Cell, Report};

/// Below this share of answers a policy counts as collapsed.
const COLLAPSED: f64 = 0.5;

/// Own loads, all loads with GET only, and one load with a mix.
pub(super) fn page(own: &Report, loads: &Report, mixed: &Report, must: &Studies) -> String {
    let mut page = format!(
        "# Results\n\n\
         What `coapway simulate` says of the shipped settings (`default`) and of others, in every scenario that comes \
         with the program. Written by `cargo xtask results`; do not edit. [simulate.md](simulate.md) says what the \
         scenarios and measures are. The proxy is the shipped one with all its limits: `max_wait` of 30 s, the \
         learned window, the retry budget; policies differ by their estimator only. Seed {}; {} runs under each \
         scenario's own load, {} elsewhere; `±` is the 95 % confidence interval over runs.\n",
        own.seed, own.runs, loads.runs
    );
    page.push_str(&holds::section(must));
    page.push_str("\n## Where the default loses\n\n");
    page.push_str(
        "Each measure in which another policy does better run by run, with 95 % confidence and by more than 5 % (of \
         answers 0.1 %); latencies where the other answers about as many. The best of the others is named.\n",
    );
    for (title, report) in [
        ("Under the scenario's own load", own),
        ("GET at 1, 5, 20 and 100 requests/s", loads),
        ("70 % GET, 20 % POST, 10 % Non-confirmable GET at 20 requests/s", mixed),
    ] {
        let _ = writeln!(page, "\n### {title}\n");
        lost(&mut page, &losses(report));
        collapses(&mut page, report);
    }
    page.push_str("\n## Under the scenario's own load\n\n");
    page.push_str("Mean latency, P95, P99 · answered · copies per request, spurious ones of them · requests sent again needlessly · \
         where there are outages, answered of those asked in one that ended in time.\n\n",
    );
    table(&mut page, own, false, all_of);
    page.push_str(
        "\n## GET at 1, 5, 20 and 100 requests/s\n\nMean latency, P95 · answered · copies per request · requests \
         sent again needlessly; 10 minutes. \
         Scenarios that differ in nothing but their own load stand here once, and LoRaWAN carries no such load.\n\n",
    );
    table(&mut page, loads, true, short_of);
    page.push_str(
        "\n## A mix at 20 requests/s\n\n70 % GET, 20 % POST, 10 % Non-confirmable GET. Mean latency · answered · POSTs \
         with unknown outcome · POSTs executed more than once, of about 2400.\n\n",
    );
    table(&mut page, mixed, false, mixed_of);
    page.push_str("\n## The scenarios\n\n| name | what it is |\n|---|---|\n");
    for cell in &own.cells {
        let _ = writeln!(page, "| `{}` | {} |", cell.scenario, cell.about);
    }
    page
}

fn lost(page: &mut String, losses: &[Loss]) {
    if losses.is_empty() {
        page.push_str("Nowhere.\n");
        return;
    }
    page.push_str(
        "| scenario | requests/s | measure | default | best other | which |\n|---|---|---|---|---|---|\n",
    );
    for Loss { scenario, rate, measure, own, rival, by, .. } in losses {
        let rate = rate.map_or_else(|| "closed loop".to_owned(), |rate| rate.to_string());
        let _ = writeln!(page, "| {scenario} | {rate} | {measure} | {own} | {rival} | `{by}` |");
    }
}

/// Cells in which the first policy answers few while another answers many.
fn collapses(page: &mut String, report: &Report) {
    let answered =
        |cell: &Cell, policy| cell.metric(policy, "answered").map_or(0.0, |answered| answered.mean);
    let rivals =
        |cell: &Cell| (1..report.policies.len()).map(|policy| answered(cell, policy)).fold(0.0, f64::max);
    let collapsed: Vec<_> = report
        .cells
        .iter()
        .filter(|cell| answered(cell, 0) < COLLAPSED && rivals(cell) > 2.0 * answered(cell, 0))
        .map(|cell| cell.scenario.as_str())
        .collect();
    match collapsed.is_empty() {
        true => page.push_str("\nThe default collapses nowhere where another survives.\n"),
        false => {
            let _ = writeln!(
                page,
                "\n**The default collapses where another survives: {}.**",
                collapsed.join(", ")
            );
        }
    }
}

fn table(page: &mut String, report: &Report, with_rate: bool, show: fn(&Cell, usize) -> String) {
    let rate = if with_rate { " requests/s |" } else { "" };
    let rule = if with_rate { "---|" } else { "" };
    let _ = write!(page, "| scenario |{rate}");
    report.policies.iter().for_each(|policy| page.push_str(&format!(" `{policy}` |")));
    let _ = writeln!(page, "\n|---|{rule}{}", "---|".repeat(report.policies.len()));
    for cell in &report.cells {
        let _ = write!(page, "| {} |", cell.scenario);
        if with_rate {
            let _ = write!(page, " {} |", cell.rate.unwrap_or_default());
        }
        for policy in 0..report.policies.len() {
            let _ = write!(page, " {} |", show(cell, policy));
        }
        page.push('\n');
    }
}

fn time(cell: &Cell, policy: usize, key: &str) -> String {
    cell.metric(policy, key).map_or_else(|| "-".to_owned(), |estimate| seconds(estimate.mean))
}

fn number(cell: &Cell, policy: usize, key: &str, decimals: usize) -> String {
    cell.metric(policy, key)
        .map_or_else(|| "-".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
}

fn share(cell: &Cell, policy: usize, key: &str) -> String {
    cell.metric(policy, key)
        .map_or_else(|| "-".to_owned(), |estimate| format!("{:.2} %", estimate.mean * 100.0))
}

fn all_of(cell: &Cell, policy: usize) -> String {
    let mean = cell.metric(policy, "mean").map_or_else(
        || "-".to_owned(),
        |estimate| match estimate.within.is_finite() {
            true => format!("{} ±{:.1} %", seconds(estimate.mean), estimate.within / estimate.mean * 100.0),
            false => seconds(estimate.mean),
        },
    );
    let (p95, p99) = (time(cell, policy, "p95"), time(cell, policy, "p99"));
    let answered = share(cell, policy, "answered");
    let (copies, spurious) = (number(cell, policy, "transmissions", 2), number(cell, policy, "spurious", 3));
    let resent = share(cell, policy, "resent");
    let survived = match cell.metric(policy, "survived") {
        Some(_) => format!(" · {}", share(cell, policy, "survived")),
        None => String::new(),
    };
    format!("{mean}, {p95}, {p99} · {answered} · {copies}, {spurious} · {resent}{survived}")
}

fn short_of(cell: &Cell, policy: usize) -> String {
    let (mean, p95) = (time(cell, policy, "mean"), time(cell, policy, "p95"));
    format!(
        "{mean}, {p95} · {} · {} · {}",
        share(cell, policy, "answered"),
        number(cell, policy, "transmissions", 2),
        share(cell, policy, "resent")
    )
}

fn mixed_of(cell: &Cell, policy: usize) -> String {
    let mean = time(cell, policy, "mean");
    let (answered, unknown) = (share(cell, policy, "answered"), share(cell, policy, "unknown_posts"));
    format!("{mean} · {answered} · {unknown} · {}", number(cell, policy, "executed_twice", 1))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn report(own: (f64, f64), rival: (f64, f64), within: f64) -> Report {
        let result = |policy: &str, (mean, answered): (f64, f64), difference: Value| {
            let estimate = |mean: f64| json!({ "mean": mean, "within": 0.01 });
            json!({
                "policy": policy,
                "metrics": { "mean": estimate(mean), "answered": estimate(answered) },
                "differences_from_first": difference,
            })
        };
        let difference = |own: f64, rival: f64| json!({ "mean": rival - own, "within": within });
        let differences =
            json!({ "mean": difference(own.0, rival.0), "answered": difference(own.1, rival.1) });
        let results = [result("default", own, Value::Null), result("fixed", rival, differences)];
        let report = json!({
            "seed": 1, "runs": 3, "policies": [{ "name": "default" }, { "name": "fixed" }],
            "cells": [{ "scenario": "lan", "about": "near", "rate": 5.0, "results": results }],
        });
        Report::new(&report).expect("complete")
    }

    fn nothing() -> Studies {
        let none = || {
            let report = json!({ "seed": 1, "runs": 40, "policies": [], "cells": [] });
            Report::new(&report).expect("complete")
        };
        Studies { cold: none(), warm: none(), steady: none(), outages: none() }
    }

    fn found(own: (f64, f64), rival: (f64, f64), within: f64) -> Vec<&'static str> {
        losses(&report(own, rival, within)).iter().map(|loss| loss.measure).collect()
    }

    #[test]
    fn a_loss_is_sure_large_and_fair() {
        assert_eq!(found((1.0, 1.0), (0.5, 1.0), 0.1), ["mean latency"]);
        assert!(found((1.0, 1.0), (0.5, 1.0), 0.6).is_empty(), "chance");
        assert!(found((1.0, 1.0), (0.97, 1.0), 0.0).is_empty(), "small");
        assert!(found((1.0, 1.0), (0.5, 0.9), 0.0).is_empty(), "it answers fewer");
        assert_eq!(found((1.0, 0.9), (2.0, 1.0), 0.0), ["answered"]);
    }

    #[test]
    fn the_page_says_where_the_default_loses_or_collapses() {
        let fine = || report((0.5, 1.0), (1.0, 1.0), 0.1);
        let text = page(&fine(), &fine(), &fine(), &nothing());
        assert!(text.contains("Nowhere.") && text.contains("collapses nowhere"), "{text}");
        assert!(text.contains("| lan | 0.50 s ±2.0 %, -, - · 100.00 % · -, - · - |"), "{text}");
        let bad = report((1.0, 0.2), (0.5, 0.9), 0.1);
        let text = page(&bad, &fine(), &fine(), &nothing());
        assert!(text.contains("| lan | 5 | answered | 20.00 % | 90.00 % | `fixed` |"), "{text}");
        assert!(text.contains("collapses where another survives: lan"), "{text}");
    }
}
