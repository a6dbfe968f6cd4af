//! Every diagram in `scenarios/` happens as written, with all checks.

use std::path::{Path, PathBuf};

use coapway_sim::scenario::Scenario;

const SEEDS: u64 = 20;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let entries = std::fs::read_dir(&folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut files: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "scenario")).collect();
    files.sort();
    files
}

#[test]
fn every_scenario_happens_as_written() {
    let files = files();
    assert!(files.len() > 30, "only {} scenarios", files.len());
    // Each holds under any draw of timeouts, Message IDs and tokens; the first that fails says enough.
    let failures: Vec<_> =
        files.iter().filter_map(|file| (0..SEEDS).find_map(|seed| failure(file, seed))).collect();
    let (count, all) = (failures.len(), failures.join("\n"));
    assert!(failures.is_empty(), "{count} of {} scenarios failed\n{all}", files.len());
}

fn failure(file: &Path, seed: u64) -> Option<String> {
    let played = Scenario::read(file).and_then(|scenario| scenario.rehearse(seed).0);
    played.err().map(|error| format!("{error}\n  seed      {seed}"))
}
