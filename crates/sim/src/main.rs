//! `coapway-sim`: replays a storm or plays scenarios and shows what happened.

use std::path::Path;
use std::process::ExitCode;

use coapway_sim::scenario::Scenario;
use coapway_sim::storm;

const USAGE: &str = "\
usage:
  coapway-sim run --seed N [--log]      replay one storm: its diagram or its whole log, and what it violated
  coapway-sim run --seeds FROM..UNTIL   run storms, and say which violated something
  coapway-sim scenario FILE...          play scenarios and show their diagrams";

const WRONG_USE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let passed = match &arguments[..] {
        ["run", "--seed", seed] => seed.parse().ok().map(|seed| replay(seed, false)),
        ["run", "--seed", seed, "--log"] => seed.parse().ok().map(|seed| replay(seed, true)),
        ["run", "--seeds", range] => numbers(range).map(|(from, until)| run(from, until)),
        ["scenario", files @ ..] if !files.is_empty() => Some(scenarios(files)),
        _ => None,
    };
    match passed {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(WRONG_USE)
        }
    }
}

fn numbers(range: &str) -> Option<(u64, u64)> {
    let (from, until) = range.split_once("..")?;
    Some((from.parse().ok()?, until.parse().ok()?))
}

fn replay(seed: u64, log: bool) -> bool {
    let world = storm::replay(seed);
    let journal = world.journal();
    print!("{}", if log { journal.log() } else { journal.diagram() });
    match storm::run(seed) {
        Ok(tally) => println!("seed {seed}: nothing violated; {tally}"),
        Err(failed) => {
            println!("{failed}");
            return false;
        }
    }
    true
}

fn run(from: u64, until: u64) -> bool {
    let failed = (from..until).filter_map(|seed| storm::run(seed).err());
    let failed = failed.map(|failed| println!("{failed}")).count();
    println!("{failed} of {} seeds violated something", until.saturating_sub(from));
    failed == 0
}

fn scenarios(files: &[&str]) -> bool {
    let mut failed = 0;
    for file in files {
        println!("{file}");
        let played = Scenario::read(Path::new(file)).and_then(|scenario| {
            let (result, journal) = scenario.rehearse(0);
            print!("{}", journal.diagram());
            result
        });
        if let Err(error) = played {
            println!("{error}");
            failed += 1;
        }
    }
    println!("{failed} of {} scenarios failed", files.len());
    failed == 0
}
