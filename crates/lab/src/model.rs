//! `coapway simulate --model`: timers alone under random loss with all limits lifted, and the same timers through
//! the proxy as shipped.
//!
//! One client asks as soon as it is answered. What stands in the first table is `coapway-model`'s: the product's own
//! estimators without window, `max_wait` and MAX_TRANSMIT_SPAN, as their formulas know them.

use std::fmt::Write as _;
use std::time::Duration;

use coapway_endpoint::{Carry, Estimator};
use coapway_model::loss::{self, Delay, Lossy, Row};
use coapway_model::{Ping, Policy as Alone, Telling, Timer};
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::chance::Chance;
use crate::law::Law;
use crate::policy::{NoPolicy, Policy};
use crate::progress::Progress;
use crate::scenario::{Pace, Scenario, find};
use crate::statistics::Estimate;
use crate::study::{Study, Summary};
use crate::work::in_parallel;

/// Exchanges of a run, unless said otherwise.
const EXCHANGES: u32 = 25_000;
const COLUMNS: [&str; 7] = ["mean", "p95", "p99", "copies", "spurious", "pings", "failed"];
/// The smallest `rto.floor` that the configuration takes.
const LEAST_FLOOR: Duration = Duration::from_millis(10);

/// What runs came to.
struct Numbers {
    columns: [Estimate; COLUMNS.len()],
    /// The median of their means: where a back-off is carried, some runs take half as long again.
    middle: f64,
}

/// One timer on one path.
struct Line {
    name: &'static str,
    alone: Numbers,
    /// Where the product has it.
    proxied: Option<Numbers>,
    settings: Vec<String>,
}

/// What goes to standard output.
///
/// Errors: `--set` is wrong.
pub(crate) fn output(arguments: &Arguments) -> Result<String, NoPolicy> {
    let timers = timers();
    let exchanges = arguments.requests.unwrap_or(EXCHANGES);
    let names: Vec<Option<String>> = timers.iter().map(configured).collect();
    let policies = names.iter().flatten().map(|name| Policy::parse(name, &arguments.set));
    let (cells, delays): (Vec<_>, Vec<_>) = paths().into_iter().unzip();
    let study = Study {
        policies: policies.collect::<Result<_, _>>()?,
        cells: cells.into_iter().map(|path| sequential(path, exchanges)).collect(),
        runs: arguments.runs,
        seed: arguments.seed,
        threads: arguments.threads(),
    };
    let runs = study.runs as usize;
    let jobs = study.cells.len() * timers.len() * runs;
    let progress = Progress::new(jobs + study.jobs(), !arguments.quiet);
    let rows = in_parallel(jobs, study.threads, &|done| progress.done(done), |job| {
        let (run, rest) = (job % runs, job / runs);
        let (timer, place) = (timers[rest % timers.len()], rest / timers.len());
        let Chance { seed } = Chance::of_run(study.seed, run as u32);
        let path = Lossy { loss: study.cells[place].path.up.loss, delay: delays[place], seed };
        loss::row_over(timer, path, exchanges.into())
    });
    let results = study.run(&|done| progress.done(jobs + done));
    progress.end();
    let tables = rows.chunks(timers.len() * runs).zip(&results).map(|(rows, summaries)| {
        let mut proxied = study.policies.iter().zip(summaries);
        let line = |((timer, name), rows): ((&Alone, &Option<String>), &[Row])| {
            let proxied = name.as_ref().and_then(|_| proxied.next());
            Line {
                name: timer.name,
                alone: of_rows(rows),
                proxied: proxied.map(|(_, summary)| of_summary(summary)),
                settings: proxied.map_or(Vec::new(), |(policy, _)| policy.settings.clone()),
            }
        };
        timers.iter().zip(&names).zip(rows.chunks(runs)).map(line).collect::<Vec<_>>()
    });
    let tables = study.cells.iter().zip(tables);
    if arguments.json {
        let tables: Vec<_> = tables.map(|(scenario, lines)| in_json(scenario, &lines)).collect();
        let report =
            json!({ "seed": study.seed, "runs": study.runs, "exchanges": exchanges, "tables": tables });
        return Ok(format!("{report:#}\n"));
    }
    let tables: Vec<_> = tables.map(|(scenario, lines)| text(&study, scenario, &lines)).collect();
    Ok(tables.concat().trim_end().to_owned() + "\n")
}

/// Those that the model knows, and what is shipped.
fn timers() -> Vec<Alone> {
    let telling = Telling { ping: Ping::Beside, ..Telling::ALL };
    let shipped = Alone::product("default", Estimator::Budget, telling);
    Alone::all().into_iter().chain([shipped]).collect()
}

/// The paths, and the same for the model: lognormal with a median of 100 ms, and with one of 1.6 s as on NB-IoT.
fn paths() -> Vec<(Scenario, Delay)> {
    let wifi = ["loss-5", "loss-15"].into_iter().flat_map(find).map(|path| (path, Delay::WIFI));
    let slow = |name: &str, loss: f64, is_shared: bool| {
        let each = if is_shared { "exchange" } else { "copy" };
        let mut path = Scenario {
            name: name.to_owned(),
            about: format!("around 1.6 s (σ 0.8) for each {each}, {} % lost in each direction", loss * 100.0),
            ..find("loss-5").remove(0)
        };
        let carried = is_shared.then_some(0.0);
        path.path.rtt = Law::Lognormal { median: 1.6, sigma: 0.8, most: f64::INFINITY, carried };
        (path.path.up.loss, path.path.down.loss) = (loss, loss);
        (path, if is_shared { Delay::NB_IOT_SHARED } else { Delay::NB_IOT })
    };
    wifi.chain([
        slow("nb-iot-5", 0.05, false),
        slow("nb-iot-shared-0", 0.0, true),
        slow("nb-iot-shared-5", 0.05, true),
    ])
    .collect()
}

/// One client that asks as soon as it is answered.
fn sequential(mut scenario: Scenario, exchanges: u32) -> Scenario {
    scenario.clients.count = 1;
    scenario.clients.pace = Pace::Think(0.0);
    Scenario { requests: Some(exchanges), duration: Duration::MAX / 4, warmup: Duration::ZERO, ..scenario }
}

/// How an operator asks for this timer; `None` where the product has none such.
fn configured(policy: &Alone) -> Option<String> {
    let telling = policy.telling;
    let Timer::Product(rto) = policy.timer else { return None };
    if telling.takes_all {
        return None;
    }
    if rto.estimator == Estimator::Fixed {
        return Some("rfc7252".to_owned());
    }
    let carry = match rto.carry {
        Carry::Auto => "auto",
        Carry::Never => "never",
        Carry::InForce => "in_force",
        Carry::RanOut => "ran_out",
    };
    let probe = if telling.ping == Ping::Never { "off" } else { "ping_on_ambiguity" };
    let mid = if telling.fresh_message_id { "fresh_safe" } else { "same" };
    Some(format!(
        "{},rto.window={},rto.spurious_budget={:?},rto.margin={:?},rto.carry={carry},rto.floor={}ms,\
         retransmit.dup_ack_match={},retransmit.probe={probe},retransmit.mid={mid}",
        rto.estimator.name(),
        rto.window,
        rto.spurious_budget,
        rto.margin,
        rto.floor.max(LEAST_FLOOR).as_millis(),
        telling.duplicates,
    ))
}

fn of_rows(rows: &[Row]) -> Numbers {
    let numbers = |row: &Row| {
        let [mean, p95, p99] = [row.mean, row.p95, row.p99].map(|time| time.as_secs_f64());
        [mean, p95, p99, row.copies, row.spurious, row.pings, row.failed]
    };
    Numbers {
        columns: std::array::from_fn(|column| Estimate::of(rows.iter().map(|row| numbers(row)[column]))),
        middle: middle(rows.iter().map(|row| row.mean.as_secs_f64())),
    }
}

/// The median; NaN of nothing.
fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let place = values.len() / 2;
    match values.len() % 2 {
        1 => values[place],
        _ if values.is_empty() => f64::NAN,
        _ => f64::midpoint(values[place - 1], values[place]),
    }
}

/// Pings of the proxy are not told apart.
fn of_summary(summary: &Summary) -> Numbers {
    let none = Estimate { mean: f64::NAN, within: f64::NAN };
    let of = |key| crate::figures::metric(key).map_or(none, |place| summary.estimates[place]);
    let answered = of("answered");
    let failed = Estimate { mean: 1.0 - answered.mean, ..answered };
    let mean = crate::figures::metric("mean").unwrap_or_default();
    Numbers {
        columns: [of("mean"), of("p95"), of("p99"), of("transmissions"), of("spurious"), none, failed],
        middle: middle(summary.runs.iter().map(|run| run[mean])),
    }
}

fn text(study: &Study, scenario: &Scenario, lines: &[Line]) -> String {
    let Study { runs, seed, .. } = study;
    let exchanges = scenario.requests.unwrap_or_default();
    let mut text = format!(
        "{}: {}\none client, one exchange after the other; {runs} runs of {exchanges}, seed {seed}\n\n",
        scenario.name, scenario.about
    );
    table(&mut text, "timers alone, limits lifted", lines.iter().map(|line| (line.name, Some(&line.alone))));
    let proxied = lines.iter().map(|line| (line.name, line.proxied.as_ref()));
    table(&mut text, "through the proxy as shipped", proxied);
    text
}

fn table<'l>(text: &mut String, title: &str, lines: impl Iterator<Item = (&'l str, Option<&'l Numbers>)>) {
    let mut line = |name: &str, mean: &str, cells: [String; COLUMNS.len()]| {
        let [middle, p95, p99, copies, spurious, pings, failed] = cells;
        let _ = writeln!(
            text,
            "  {name:<33}{mean:>14}{middle:>10}{p95:>8}{p99:>8}{copies:>8}{spurious:>10}{pings:>8}{failed:>9}"
        );
    };
    let titles = ["mid run", "P95", "P99", "copies", "spurious", "pings", "failed"].map(str::to_owned);
    line(title, "mean, s", titles);
    for (name, numbers) in lines {
        let Some(Numbers { columns, middle }) = numbers else {
            line(name, "-", std::array::from_fn(|_| "-".to_owned()));
            continue;
        };
        let [Estimate { mean, within }, rest @ ..] = columns;
        let mean = match within.is_finite() {
            true => format!("{mean:.3} ±{within:.3}"),
            false => format!("{mean:.3}"),
        };
        let plain = |value: f64| if value.is_nan() { "-".to_owned() } else { format!("{value:.3}") };
        let [p95, p99, copies, spurious, pings, failed] = rest.map(|estimate| estimate.mean);
        let failed = format!("{:.2} %", failed * 100.0);
        let cells = [*middle, p95, p99, copies, spurious, pings].map(plain);
        let [middle, p95, p99, copies, spurious, pings] = cells;
        line(name, &mean, [middle, p95, p99, copies, spurious, pings, failed]);
    }
    text.push('\n');
}

fn in_json(scenario: &Scenario, lines: &[Line]) -> Value {
    let numbers = |numbers: &Numbers| -> Map<String, Value> {
        let all = COLUMNS.iter().zip(&numbers.columns).filter(|(_, estimate)| !estimate.mean.is_nan());
        let all = all.map(|(key, estimate)| ((*key).to_owned(), json!(estimate)));
        all.chain([("middle_mean".to_owned(), json!(numbers.middle))]).collect()
    };
    let row = |line: &Line| {
        json!({
            "policy": line.name,
            "alone": numbers(&line.alone),
            "settings": line.settings,
            "proxy": line.proxied.as_ref().map(numbers),
        })
    };
    let rows: Vec<_> = lines.iter().map(row).collect();
    json!({ "scenario": scenario.name, "loss": scenario.path.up.loss, "rows": rows })
}

#[cfg(test)]
mod tests;
