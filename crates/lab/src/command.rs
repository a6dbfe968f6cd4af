//! `coapway simulate`: from arguments to tables.

use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use coapway_records::NoRecord;
use serde_json::json;

use crate::arguments::Arguments;
use crate::model;
use crate::plot::{self, Format};
use crate::policy::{DEFAULT, Policy};
use crate::progress::Progress;
use crate::replay::{self, Replay};
use crate::scenario::{Scenario, find, named, source};
use crate::study::Study;
use crate::{report, table};

/// What all runs come to is kept until the last is over, some kilobytes each.
const MOST_JOBS: usize = 100_000;

/// Arguments, names or files that cannot be used.
const WRONG_USE: u8 = 2;

/// Why there is nothing to show.
pub(crate) struct Trouble {
    code: u8,
    what: String,
}

impl Trouble {
    pub(crate) fn wrong_use(what: impl fmt::Display) -> Self {
        Self { code: WRONG_USE, what: what.to_string() }
    }

    pub(crate) fn failed(what: impl fmt::Display) -> Self {
        Self { code: 1, what: what.to_string() }
    }
}

/// Compares policies in scenarios and shows what comes out.
pub fn run(arguments: &Arguments) -> ExitCode {
    let text = match output(arguments) {
        Ok(text) => text,
        Err(Trouble { code, what }) => {
            // With nowhere to complain, the exit code says it.
            let _ = writeln!(io::stderr(), "coapway: {}", coapway_config::escaped_lines(what.trim_end()));
            return ExitCode::from(code);
        }
    };
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the tables has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "coapway: cannot write to standard output: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What goes to standard output.
pub(crate) fn output(arguments: &Arguments) -> Result<String, Trouble> {
    if arguments.list {
        return Ok(list(arguments.json));
    }
    if let Some(name) = &arguments.show {
        let text = source(name).ok_or_else(|| unknown(name))?;
        return Ok(text.to_owned());
    }
    if arguments.model {
        return model::output(arguments).map_err(Trouble::wrong_use);
    }
    if let Some(file) = arguments.plot.iter().find(|file| Format::of(file).is_none()) {
        let file = file.display();
        return Err(Trouble::wrong_use(format!(
            "--plot {file}: neither .svg nor .png\n  hint: --plot latencies.svg"
        )));
    }
    let study = study(arguments)?;
    let progress = Progress::new(study.jobs(), !arguments.quiet);
    let results = study.run(&|done| progress.done(done));
    progress.end();
    plot::write(&arguments.plot, &study, &results).map_err(Trouble::failed)?;
    if arguments.json {
        let mut text =
            serde_json::to_string_pretty(&report::report(&study, &results)).map_err(Trouble::failed)?;
        text.push('\n');
        return Ok(text);
    }
    let tables = study.cells.iter().zip(&results);
    let tables: Vec<_> =
        tables.map(|(scenario, summaries)| table::table(&study, scenario, summaries)).collect();
    Ok(tables.join("\n"))
}

fn study(arguments: &Arguments) -> Result<Study, Trouble> {
    let names = match arguments.policy.is_empty() {
        true => vec![DEFAULT.to_owned(), "rfc7252".to_owned()],
        false => arguments.policy.clone(),
    };
    let policies = names.iter().map(|name| Policy::parse(name, &arguments.set));
    let mut policies = policies.collect::<Result<Vec<_>, _>>().map_err(Trouble::wrong_use)?;
    tell_apart(&mut policies, &names);
    let mut scenarios = Vec::new();
    for name in &arguments.scenario {
        scenarios.extend(scenarios_of(name)?);
    }
    if let Some(records) = &arguments.replay {
        scenarios.extend(replayed(records, arguments.upstream.as_deref())?);
    }
    if scenarios.is_empty() {
        return Err(Trouble::wrong_use(format!("no scenario\n  hint: {}", there_are())));
    }
    for scenario in &mut scenarios {
        scenario.duration = arguments.duration.unwrap_or(scenario.duration);
        scenario.warmup = arguments.warmup.unwrap_or(scenario.warmup);
        scenario.requests = arguments.requests.or(scenario.requests);
        if scenario.warmup >= scenario.duration {
            let Scenario { name, warmup, duration, .. } = scenario;
            return Err(Trouble::wrong_use(format!(
                "scenario {name}: nothing would count, its warmup takes {warmup:?} and its duration is {duration:?}\n  \
                 hint: a longer --duration"
            )));
        }
    }
    let study = Study {
        policies,
        cells: cells(scenarios, arguments),
        runs: arguments.runs,
        seed: arguments.seed,
        threads: arguments.threads(),
    };
    if study.jobs() > MOST_JOBS {
        let Study { policies, cells, runs, .. } = &study;
        return Err(Trouble::wrong_use(format!(
            "{} tables of {} policies with --runs {runs} are {} runs; at most {MOST_JOBS} are kept in memory\n  \
             hint: fewer at a time, with --seed another for the next",
            cells.len(),
            policies.len(),
            study.jobs()
        )));
    }
    Ok(study)
}

/// Files of one name in several places are called by all of what was asked for.
fn tell_apart(policies: &mut [Policy], asked: &[String]) {
    let names: Vec<_> = policies.iter().map(|policy| policy.name.clone()).collect();
    for (policy, asked) in policies.iter_mut().zip(asked) {
        if names.iter().filter(|name| **name == policy.name).count() > 1 {
            policy.name.clone_from(asked);
        }
    }
}

/// Each scenario in each load and mix that is asked for.
fn cells(scenarios: Vec<Scenario>, arguments: &Arguments) -> Vec<Scenario> {
    let mut cells = Vec::new();
    for scenario in scenarios {
        let loads = arguments.load.iter().map(|rate| scenario.clone().with_load(*rate));
        let mut loaded: Vec<_> = loads.collect();
        if loaded.is_empty() {
            loaded.push(scenario);
        }
        for scenario in loaded {
            if arguments.mix.is_empty() {
                cells.push(scenario);
            } else {
                cells.extend(arguments.mix.iter().map(|mix| scenario.clone().with_mix(*mix)));
            }
        }
    }
    cells
}

fn scenarios_of(name: &str) -> Result<Vec<Scenario>, Trouble> {
    if !name.ends_with(".toml") && !name.contains('/') {
        let found = find(name);
        return if found.is_empty() { Err(unknown(name)) } else { Ok(found) };
    }
    let text = std::fs::read_to_string(name)
        .map_err(|error| Trouble::wrong_use(format!("scenario {name}: cannot be read: {error}")))?;
    let scenario = Scenario::parse(Path::new(name), &text).map_err(|errors| {
        let all: Vec<_> = errors.first().map(ToString::to_string).collect();
        Trouble::wrong_use(format!("a scenario cannot be read\n\n{}", all.join("\n\n")))
    })?;
    Ok(vec![scenario])
}

/// The paths that records have seen; what could not be used is told on standard error.
fn replayed(records: &Path, upstream: Option<&str>) -> Result<Vec<Scenario>, Trouble> {
    let place = records.display();
    let cannot = |error: io::Error| Trouble::wrong_use(format!("records {place}: cannot be read: {error}"));
    let replay = match records.to_str() {
        Some("-") => replay::read(&mut io::stdin().lock(), upstream),
        Some(_) | None => {
            let file = std::fs::File::open(records).map_err(cannot)?;
            replay::read(&mut io::BufReader::with_capacity(1 << 18, file), upstream)
        }
    };
    let Replay { scenarios, lines, bad, first_bad, without_samples, rejected } = replay.map_err(cannot)?;
    let note = |text: String| {
        // Nobody could be told that it cannot be told.
        let _ = writeln!(io::stderr(), "coapway: {}", coapway_config::escaped(text));
    };
    if let Some((number, NoRecord { why, .. })) = first_bad {
        note(format!(
            "{bad} of {lines} lines of {place} are no records and do not count; the first is line {number}: {why}"
        ));
    }
    if rejected > 0 {
        note(rejections(rejected));
    }
    if !without_samples.is_empty() {
        let names = without_samples.join(", ");
        note(format!("left out, since nothing answered a first copy: {names}"));
    }
    if scenarios.is_empty() {
        let of = upstream.map(|name| format!(" of upstream {name:?}")).unwrap_or_default();
        let hint = "coapway serve --record FILE writes them; a path is known once one answer came";
        return Err(Trouble::wrong_use(format!(
            "no forward{of} in {lines} lines of {place} shows a path\n  hint: {hint}"
        )));
    }
    Ok(scenarios)
}

fn rejections(count: u64) -> String {
    let (s, were, they, are) =
        if count == 1 { ("", "was", "it", "is") } else { ("s", "were", "they", "are") };
    format!(
        "{count} forward{s} {were} rejected (ICMP unreachable or Reset): {they} {are} not counted as lost"
    )
}

fn unknown(name: &str) -> Trouble {
    Trouble::wrong_use(format!("no scenario {name:?}\n  hint: {}", there_are()))
}

fn there_are() -> String {
    let names: Vec<_> = named().map(|scenario| scenario.name).collect();
    format!("there are {}, all, families like outage*, and files ending in .toml", names.join(", "))
}

fn list(as_json: bool) -> String {
    let policies = Policy::names();
    if as_json {
        let scenarios = named().map(|scenario| json!({ "name": scenario.name, "about": scenario.about }));
        let list = json!({ "scenarios": scenarios.collect::<Vec<_>>(), "policies": policies });
        return format!("{list:#}\n");
    }
    let scenarios: String =
        named().map(|scenario| format!("  {:<20} {}\n", scenario.name, scenario.about)).collect();
    format!(
        "scenarios:\n{scenarios}\npolicies:\n  {}\n\n--show NAME prints the file of a scenario.\n",
        policies.join(", ")
    )
}

#[cfg(test)]
mod tests;
