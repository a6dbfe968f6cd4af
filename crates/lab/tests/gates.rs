//! What the shipped settings have to keep to, against others, on the paths that come with the program.

use std::time::Duration;

use coapway_lab::{Policy, Scenario, Study, Summary, find, metric, named};

fn policies(names: &[&str]) -> Vec<Policy> {
    let policy = |name: &&str| Policy::parse(name, &[]).unwrap_or_else(|problem| panic!("{problem}"));
    names.iter().map(policy).collect()
}

/// One run of each policy in each scenario, by scenario and then by policy.
fn run(cells: Vec<Scenario>, names: &[&str], seed: u64) -> Vec<Vec<Summary>> {
    runs(cells, names, seed, 1)
}

/// So many of them, each with chance of its own.
fn runs(cells: Vec<Scenario>, names: &[&str], seed: u64, runs: u32) -> Vec<Vec<Summary>> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Study { policies: policies(names), cells, runs, seed, threads }.run(&|_| ())
}

/// What is measured, run by run.
fn each(summary: &Summary, key: &str) -> Vec<f64> {
    let place = metric(key).expect("it is measured");
    summary.runs.iter().map(|run| run[place]).collect()
}

/// The mean over runs, and its standard error by what lies between them.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

fn of(summary: &Summary, key: &str) -> f64 {
    summary.runs[0][metric(key).expect("it is measured")]
}

fn loaded(name: &str, rate: f64, requests: u32) -> Scenario {
    let scenario = find(name).remove(0).with_load(rate);
    Scenario { requests: Some(requests), duration: Duration::from_secs(24 * 3600), ..scenario }
}

#[test]
fn on_15_percent_loss_each_load_is_answered_and_soon() {
    let loads = [1.0, 5.0, 20.0, 100.0];
    // Without the first two minutes: what a cold start costs is another matter.
    let warm = |rate: f64| Scenario {
        warmup: Duration::from_secs(120),
        ..loaded("loss-15", rate, 120 * rate as u32 + 3000)
    };
    let cells = loads.map(warm).to_vec();
    for (rate, results) in loads.iter().zip(runs(cells, &["default", "fixed"], 1, 6)) {
        let [default, fixed] = &results[..] else { panic!("two policies") };
        let (answered, error) = mean_and_error(&each(default, "answered"));
        assert!(answered - 3.0 * error >= 0.995, "{rate}/s: {answered} ± {error} answered");
        let means = each(default, "mean").into_iter().zip(each(fixed, "mean"));
        let (ratio, error) = mean_and_error(&means.map(|(own, fixed)| own / fixed).collect::<Vec<_>>());
        assert!(ratio - 3.0 * error <= 0.25, "{rate}/s: {ratio} ± {error} of a fixed timeout's");
    }
}

/// One exchange at a time and a timeout of 2 to 3 s: all that comes waits behind the first ones, and is late when they
/// are unlucky.
#[test]
fn what_a_cold_start_costs_is_a_backlog() {
    let cells = vec![loaded("loss-15", 20.0, 3000)];
    let results = &runs(cells, &["default", "default,nstart=128"], 1, 16)[0];
    let [learned, open] = &results[..] else { panic!("two policies") };
    let [learned, open] = [learned, open].map(|summary| each(summary, "mean"));
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    assert!(
        most(&learned) > 1.5 * most(&open),
        "the worst runs: {learned:?}, and {open:?} with an open window"
    );
    let (mean, _) = mean_and_error(&learned);
    assert!(mean <= 1.0, "it is worked off: {learned:?}");
}

/// `loss-15` with another share lost.
fn lossy(share: f64, rate: f64, requests: u32) -> Scenario {
    let mut scenario = loaded("loss-15", rate, requests);
    scenario.path.up.loss = share;
    scenario.path.down.loss = share;
    scenario
}

#[test]
fn loss_by_chance_alone_does_not_close_the_window() {
    let cells = vec![lossy(0.25, 20.0, 8000), lossy(0.3, 5.0, 8000), lossy(0.3, 20.0, 8000)];
    for (number, results) in runs(cells, &["default", "default,nstart=128"], 1, 6).iter().enumerate() {
        let [learned, open] = &results[..] else { panic!("two policies") };
        let of = |summary: &Summary, key| mean_and_error(&each(summary, key)).0;
        let (mean, reference) = (of(learned, "mean"), of(open, "mean"));
        assert!(mean <= 2.0 * reference, "{number}: {mean} s, and {reference} s with an open window");
        let (answered, reference) = (of(learned, "answered"), of(open, "answered"));
        assert!(answered >= reference - 0.03, "{number}: {answered}, and {reference} with an open window");
    }
}

#[test]
fn neither_do_round_trips_that_scatter_nor_bindings_that_are_forgotten() {
    let cells = vec![loaded("nb-iot-a", 20.0, 10_000), loaded("nat-rebind-midway", 100.0, 20_000)];
    for (number, results) in run(cells, &["default"], 1).iter().enumerate() {
        let answered = of(&results[0], "answered");
        assert!(answered >= 0.95, "{number}: {answered}");
    }
}

#[test]
fn no_more_is_sent_again_needlessly_than_the_budget_allows() {
    const BUDGET: f64 = 0.05;
    const REQUESTS: u32 = 2000;
    let steady = [
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
    ];
    let cells = steady.map(|name| {
        let scenario = find(name).remove(0);
        Scenario {
            requests: Some(REQUESTS),
            duration: Duration::from_secs(24 * 3600),
            warmup: Duration::ZERO,
            ..scenario
        }
    });
    let results = runs(cells.to_vec(), &["default"], 1, 5);
    for (name, results) in steady.iter().zip(results) {
        let (resent, error) = mean_and_error(&each(&results[0], "resent"));
        assert!(resent <= BUDGET + 3.0 * error, "{name}: {resent} ± {error}");
    }
}

#[test]
fn who_asks_in_an_outage_that_ends_in_time_is_answered() {
    let outages = ["outage-up", "outage-both"];
    let cells = outages.map(|name| {
        let scenario = find(name).remove(0);
        Scenario { requests: Some(3600), duration: Duration::from_secs(3600), ..scenario }
    });
    for (name, results) in outages.iter().zip(runs(cells.to_vec(), &["default"], 1, 8)) {
        let (survived, error) = mean_and_error(&each(&results[0], "survived"));
        assert!(survived - 3.0 * error >= 0.95, "{name}: {survived} ± {error}");
    }
}

#[test]
fn it_collapses_nowhere_where_another_survives() {
    let own = named().map(|scenario| {
        // Those that wait for their answers are as many as they are.
        let most = (4 * scenario.clients.count).max(500);
        Scenario { requests: Some(most), warmup: Duration::ZERO, ..scenario }
    });
    let crowded = ["nb-iot-a", "step", "overload-80", "nat-rebind-midway", "bufferbloat-cross"];
    let cells: Vec<_> = own.chain(crowded.map(|name| loaded(name, 100.0, 4000))).collect();
    let names: Vec<_> = cells.iter().map(|cell| cell.name.clone()).collect();
    for (name, results) in names.iter().zip(run(cells, &["default", "fixed", "p95", "cocoa", "rfc6298"], 1)) {
        let [default, others @ ..] = &results[..] else { panic!("no policy") };
        let answered = of(default, "answered");
        let best = others.iter().map(|other| of(other, "answered")).fold(0.0, f64::max);
        assert!(answered >= 0.5 || best <= 2.0 * answered, "{name}: {answered}, and {best} of another");
    }
}
