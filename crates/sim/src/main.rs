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

/// Nothing when that means nothing.
fn soak(which: &str, numbers: &[&str]) -> Option<bool> {
    let numbers: Vec<u64> = numbers.iter().map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let number = |place: usize, usual| numbers.get(place).copied().unwrap_or(usual);
    let report = match which {
        "storms" => {
            let (seeds, threads) = (number(0, 10_000), number(1, 1));
            measured(|| storms::run(0..seeds, threads as usize))
        }
        "standing" => {
            let usual = Standing::default();
            let exchanges = number(0, usual.exchanges as u64) as usize;
            let duration = Duration::from_secs(number(1, usual.duration.as_secs()));
            measured(|| standing::run(Standing { exchanges, duration }))
        }
        "flood" => {
            let Flood { rate, seconds, source_ports } = Flood::default();
            let [rate, seconds, source_ports] = [rate, seconds, source_ports].map(u64::from);
            let narrow = |place, usual| u32::try_from(number(place, usual)).ok();
            let (rate, seconds) = (narrow(0, rate)?, narrow(1, seconds)?);
            let source_ports = narrow(2, source_ports)?;
            measured(|| flood::run(Flood { rate, seconds, source_ports }))
        }
        _ => return None,
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
