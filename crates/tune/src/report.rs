//! What is found, for people.

mod proposal;

use std::fmt::Write as _;

pub(crate) use self::proposal::toml;

use coapway_records::METHODS;

use crate::advice::{Advice, Known, Verdict};
use crate::estimate::{Estimate, Need};
use crate::numbers::{between, bytes, count, minute, percent, time};
use crate::observed::Observed;
use crate::tally::{MOST_UPSTREAMS, Tally};

/// Where the second column begins.
const COLUMN: usize = 22;

/// A line with its name in front.
fn row(text: &mut String, name: &str, what: &str) {
    let _ = writeln!(text, "    {name:COLUMN$}{what}");
}

/// What was read.
pub(crate) fn head(tally: &Tally) -> String {
    let mut text = String::new();
    let upstreams = match tally.upstreams.len() {
        1 => "1 upstream".to_owned(),
        many => format!("{many} upstreams"),
    };
    let read = (count(tally.forwards), bytes(tally.bytes), count(tally.lines));
    let _ = writeln!(text, "{} forward records of {upstreams} in {} ({} lines)", read.0, read.1, read.2);
    if tally.bad_lines() > 0 {
        let lines = if tally.bad_lines() == 1 { "line" } else { "lines" };
        let _ = writeln!(text, "{} {lines} could not be used:", count(tally.bad_lines()));
        for (bad, (number, example)) in &tally.bad {
            let first = format!("first {}:{}, {}", example.file, example.line, example.why);
            let _ = writeln!(text, "    {:>9}  {}; {first}", count(*number), bad.told());
        }
    }
    if tally.recorded() < 1.0 {
        let _ = writeln!(
            text,
            "About {} of all forwards were recorded, as their numbers say.",
            percent(tally.recorded())
        );
    }
    if tally.beyond > 0 {
        let left_out = count(tally.beyond);
        let _ = writeln!(
            text,
            "{left_out} records are of upstreams beyond the first {MOST_UPSTREAMS} and were left out."
        );
    }
    text
}

/// One upstream.
pub(crate) fn upstream(advice: &Advice<'_>) -> String {
    let mut text = String::new();
    let Advice { name, observed, load, verdict } = advice;
    let when = format!("{} to {} UTC", minute(observed.first), minute(observed.last));
    let (forwards, s) = (count(observed.forwards), if observed.forwards == 1 { "" } else { "s" });
    let _ = writeln!(text, "\n{name}: {forwards} forward{s}, {when}, {load:.1} requests/s");
    let _ = writeln!(text, "\n  Requests and answers");
    traffic(&mut text, observed);
    match verdict {
        Verdict::TooLittle(need) => too_little(&mut text, need, observed),
        Verdict::Known(known) => {
            let _ = writeln!(text, "\n  The path");
            path(&mut text, observed, &known.estimate);
            let _ = writeln!(text, "\n  What the parameters in force did");
            in_force(&mut text, observed, known);
            proposal::tell(&mut text, known, name);
        }
    }
    text
}

fn traffic(text: &mut String, observed: &Observed) {
    let all = observed.forwards.max(1) as f64;
    let named = METHODS.iter().copied().chain(["others"]);
    let mut methods: Vec<_> = observed.methods.iter().zip(named).filter(|(number, _)| **number > 0).collect();
    methods.sort_by(|one, other| other.0.cmp(one.0));
    let told: Vec<_> =
        methods.iter().map(|(number, name)| format!("{name} {}", percent(**number as f64 / all))).collect();
    let non = observed.non_confirmable as f64 / all;
    let non = if non > 0.0 { format!("; {} Non-confirmable", percent(non)) } else { String::new() };
    row(text, "methods", &(told.join(", ") + &non));
    let causes: Vec<_> = observed
        .causes
        .iter()
        .map(|(cause, number)| format!("{} {}", percent(*number as f64 / all), cause.told()))
        .collect();
    row(text, "outcome", &causes.join(", "));
    let once = observed.methods[1] + observed.methods[5];
    if once > 0 {
        let told = format!("{} of {} POST and PATCH", count(observed.outcome_unknown), count(once));
        row(text, "outcome unknown", &told);
    }
    if let (Some(mean), Some(median), Some(p95)) =
        (observed.latency.mean(), observed.latency.quantile(0.5), observed.latency.quantile(0.95))
    {
        row(
            text,
            "time to answer",
            &format!("mean {}, median {}, 95 % within {}", time(mean), time(median), time(p95)),
        );
    }
    if let Some(p95) = observed.queued.quantile(0.95).filter(|&p95| p95 > 1.0) {
        row(
            text,
            "time in the queue",
            &format!("95 % within {}; at most {} at a time", time(p95), observed.window),
        );
    }
}

fn too_little(text: &mut String, need: &Need, observed: &Observed) {
    let _ = writeln!(text, "\n  Too little to say more");
    if need.have == 0 {
        let _ = writeln!(
            text,
            "    None of these forwards tells about the path: that takes Confirmable requests that were\n    \
             answered or timed out."
        );
        return;
    }
    let missing = need.need.saturating_sub(need.have);
    let _ = writeln!(
        text,
        "    {} of them tell about the path; it takes {}, {} more, to know its loss to 2 percentage\n    \
         points or a fifth and 95 % of its round trips to a tenth, on one half of the records, and to\n    \
         judge by the other.",
        count(need.have),
        count(need.need),
        count(missing)
    );
    let seconds = (observed.last - observed.first).max(0) as f64 / 1e6;
    if seconds >= 60.0 {
        let minutes = (seconds * missing as f64 / need.have as f64 / 60.0).ceil();
        let _ = writeln!(text, "    At this pace that is another {} minutes.", count(minutes as u64));
    }
}

fn path(text: &mut String, observed: &Observed, estimate: &Estimate) {
    let Estimate { fit, .. } = estimate;
    let times = format!(
        "half within {}, 95 % within {}, 99 % within {}",
        time(estimate.median.value),
        between(&estimate.p95, time),
        time(estimate.p99.value)
    );
    row(text, "round trip", &times);
    row(text, "lost there or back", &between(&estimate.loss, percent));
    match &estimate.ways {
        Some((there, back)) => {
            row(
                text,
                "",
                &format!(
                    "{} there, {} back, as separate responses tell",
                    between(there, percent),
                    between(back, percent)
                ),
            );
        }
        None => {
            let each = between(&estimate.loss_each_way, percent);
            row(text, "", &format!("{each} each way, if both lose alike: these records cannot tell"));
        }
    }
    if let Some(again) = &estimate.loss_again {
        row(text, "further copies lost", &between(again, percent));
    }
    match &estimate.bursts {
        Some(bursts) => {
            let told = format!(
                "losses come together: {} lost for {} on average, nothing for {}",
                percent(bursts.loss),
                time(1000.0 * bursts.bad),
                time(1000.0 * bursts.good)
            );
            row(text, "bursts", &told);
        }
        None => row(text, "bursts", "none seen: a loss makes the next one no likelier"),
    }
    if estimate.clustering > 1.5 {
        let told = format!(
            "exchanges vary as if there were {:.1} times fewer; widths count that",
            estimate.clustering
        );
        row(text, "", &told);
    }
    let thinking = observed.thinking();
    if let (Some(median), Some(p95)) = (thinking.quantile(0.5), thinking.quantile(0.95)) {
        let share = percent(observed.separate as f64 / observed.trials.max(1) as f64);
        let told =
            format!("{share}; the origin thinks: half within {}, 95 % within {}", time(median), time(p95));
        row(text, "separate responses", &told);
    }
    let exact = if observed.counts_late { ", with what came after the answer" } else { "" };
    row(
        text,
        "seen in",
        &format!(
            "{} exchanges, {} further copies{exact}",
            count(fit.exchanges as u64),
            count(fit.again as u64)
        ),
    );
}

fn in_force(text: &mut String, observed: &Observed, known: &Known) {
    let Known { estimate, in_force, .. } = known;
    let from = match (in_force.is_given, in_force.read().is_empty()) {
        (true, _) => "as the configuration says".to_owned(),
        (false, true) => {
            "taken for the defaults, which the records do not contradict; --config FILE says".to_owned()
        }
        (false, false) => {
            let read: Vec<_> =
                in_force.read().iter().map(|one| format!("{} = {}", one.key, one.value)).collect();
            format!("defaults, but as the records show {}; --config FILE says", read.join(", "))
        }
    };
    row(text, "parameters", &from);
    if let (Some(median), Some(p95)) = (observed.waits.quantile(0.5), observed.waits.quantile(0.95)) {
        let times = median / estimate.p95.value;
        let told = format!(
            "half within {}, 95 % within {}; the median is {times:.1} times the 95 % round trip",
            time(median),
            time(p95)
        );
        row(text, "first wait", &told);
    }
    let copies = format!("{:.3} a request", 1.0 + observed.retries_per_request());
    row(
        text,
        "copies",
        &format!("{copies}; {} of them spurious: an earlier one came back", percent(estimate.spurious.value)),
    );
    let all: u64 = observed.retries.iter().sum();
    let shares: Vec<_> = (0..)
        .zip(&observed.retries)
        .filter(|(_, number)| **number > 0)
        .map(|(copies, number)| format!("{copies}: {}", percent(*number as f64 / all.max(1) as f64)))
        .collect();
    row(text, "repeated so often", &shares.join(", "));
}
