//! `coapway-sim`: replays a storm or plays scenarios and shows what happened.

use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{self, ExitCode};
use std::time::Duration;

use coapway_sim::scenario::Scenario;
use coapway_sim::soak::flood::{self, Flood};
use coapway_sim::soak::standing::{self, Standing};
use coapway_sim::soak::{measured, storms};
use coapway_sim::storm;

const USAGE: &str = "\
usage:
  coapway-sim run --seed N [--log]      replay one storm: its diagram or its whole log, and what it violated
  coapway-sim run --seeds FROM..UNTIL   run storms, and say which violated something
  coapway-sim scenario FILE...          play scenarios and show their diagrams
  coapway-sim soak storms [SEEDS] [THREADS]                    many storms; 10000 on 1 thread
  coapway-sim soak standing [EXCHANGES] [SECONDS]              that many at all times; 10000 for 3600 s
  coapway-sim soak flood [REQUESTS_PER_SECOND] [SECONDS] [SOURCE_PORTS]   to one origin; 50000, 420 s, 256";

const WRONG_USE: u8 = 2;

/// Prints a text. Whoever read the output has seen enough when nobody reads any more.
fn say(text: impl fmt::Display) {
    if let Err(error) = write!(io::stdout(), "{text}") {
        let is_over = error.kind() == io::ErrorKind::BrokenPipe;
        if !is_over {
            let _ = writeln!(io::stderr(), "coapway-sim: cannot write to standard output: {error}");
        }
        process::exit(i32::from(!is_over));
    }
}

/// The same of a line.
macro_rules! say {
    ($($text:tt)*) => { say(format_args!("{}\n", format_args!($($text)*))) };
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let passed = match &arguments[..] {
        ["run", "--seed", seed] => seed.parse().ok().map(|seed| replay(seed, false)),
        ["run", "--seed", seed, "--log"] => seed.parse().ok().map(|seed| replay(seed, true)),
        ["run", "--seeds", range] => numbers(range).map(|(from, until)| run(from, until)),
        ["soak", which, numbers @ ..] => soak(which, numbers),
        ["scenario", files @ ..] if !files.is_empty() => Some(scenarios(files)),
        _ => None,
    };
    match passed {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => {
            let _ = writeln!(io::stderr(), "{USAGE}");
            ExitCode::from(WRONG_USE)
        }
    }
}

fn numbers(range: &str) -> Option<(u64, u64)> {
    let (from, until) = range.split_once("..")?;
    Some((from.parse().ok()?, until.parse().ok()?))
}

/// What a soak can be asked: what each number is, what it is when nothing is said, and the most.
type Numbers = [(&'static str, u64, u64); 3];

/// The number at a place, or what is usual.
///
/// Errors: it is none, or one too large; a machine has no room for any number of exchanges.
fn number(given: &[&str], place: usize, numbers: &Numbers) -> Result<u64, String> {
    let (name, usual, most) = numbers[place];
    let Some(text) = given.get(place) else { return Ok(usual) };
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("{name}: {text:?} is no whole number from 1 to {most}"))
}

/// Nothing when that means nothing.
fn soak(which: &str, given: &[&str]) -> Option<bool> {
    let (standing, flood) = (Standing::default(), Flood::default());
    let places = if which == "flood" { 3 } else { 2 };
    let numbers = match which {
        "storms" => [("SEEDS", 10_000, 1_000_000_000), ("THREADS", 1, 256), ("nothing", 1, 1)],
        "standing" => [
            ("EXCHANGES", standing.exchanges as u64, 1_000_000),
            ("SECONDS", standing.duration.as_secs(), 604_800),
            ("nothing", 1, 1),
        ],
        "flood" => [
            ("REQUESTS_PER_SECOND", flood.rate.into(), 1_000_000),
            ("SECONDS", flood.seconds.into(), 604_800),
            ("SOURCE_PORTS", flood.source_ports.into(), 4096),
        ],
        _ => return None,
    };
    let numbers = match [0, 1, 2].map(|place| number(given, place, &numbers)) {
        [Ok(first), Ok(second), Ok(third)] if given.len() <= places => [first, second, third],
        all => {
            for complaint in all.into_iter().filter_map(Result::err) {
                let _ = writeln!(io::stderr(), "coapway-sim: {complaint}");
            }
            return None;
        }
    };
    let [first, second, third] = numbers;
    let report = match which {
        "storms" => measured(|| storms::run(0..first, second as usize)),
        "standing" => {
            let duration = Duration::from_secs(second);
            measured(|| standing::run(Standing { exchanges: first as usize, duration }))
        }
        _ => {
            let [rate, seconds, source_ports] = [first, second, third].map(|number| number as u32);
            measured(|| flood::run(Flood { rate, seconds, source_ports }))
        }
    };
    say!("{report}");
    Some(report.findings.is_empty())
}

fn replay(seed: u64, log: bool) -> bool {
    let world = storm::replay(seed);
    let journal = world.journal();
    say(if log { journal.log() } else { journal.diagram() });
    match storm::run(seed) {
        Ok(tally) => say!("seed {seed}: nothing violated; {tally}"),
        Err(failed) => {
            say!("{failed}");
            return false;
        }
    }
    true
}

fn run(from: u64, until: u64) -> bool {
    let failed = (from..until).filter_map(|seed| storm::run(seed).err());
    let failed = failed.map(|failed| say!("{failed}")).count();
    say!("{failed} of {} seeds violated something", until.saturating_sub(from));
    failed == 0
}

fn scenarios(files: &[&str]) -> bool {
    let mut failed = 0;
    for file in files {
        say!("{file}");
        let played = Scenario::read(Path::new(file)).and_then(|scenario| {
            let (result, journal) = scenario.rehearse(0);
            say(journal.diagram());
            result
        });
        if let Err(error) = played {
            say!("{error}");
            failed += 1;
        }
    }
    say!("{failed} of {} scenarios failed", files.len());
    failed == 0
}
