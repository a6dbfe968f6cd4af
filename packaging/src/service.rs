//! The unit, the configuration it comes with, and the rotation of its files.

use std::env;
use std::path::Path;
use std::process::Command;

use coapway_config::{Config, Overrides};

use crate::run::output;

const UNIT: &str = include_str!("../coapway.service");
const CONFIGURATION: &str = include_str!("../coapway.toml");
const ROTATION: &str = include_str!("../coapway.logrotate");

/// What systemd says about the exposure of the unit, in tenths; 0 is none and 100 all there is.
const MOST_EXPOSURE: &str = "15";

fn load(text: &str) -> Config {
    let file = Path::new("coapway.toml");
    match Config::load(Some((file, text)), [("", ""); 0], &Overrides::default()) {
        Ok(config) => config,
        Err(errors) => panic!("{errors}"),
    }
}

#[test]
fn the_configuration_that_is_installed_serves_this_host_only() {
    let listeners = load(CONFIGURATION).listen().to_vec();
    assert!(!listeners.is_empty() && listeners.iter().all(|address| address.ip().is_loopback()));
}

#[test]
fn each_example_in_it_can_be_used() {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(example) if !example.starts_with(' ') => format!("{example}\n"),
        Some(_) | None => format!("{line}\n"),
    };
    let text: String = CONFIGURATION.lines().map(line).collect();
    assert_eq!(load(&text).listen().len(), 2);
    for table in ["[[upstreams]]", "[[routes]]", "[forward]", "[upstream]", "[record]"] {
        assert!(text.lines().any(|line| line == table), "no {table}");
    }
}

#[test]
fn records_of_the_example_are_rotated() {
    assert!(CONFIGURATION.contains("\"/var/log/coapway/forwards.jsonl\""));
    assert!(ROTATION.contains("/var/log/coapway/*.jsonl") && ROTATION.contains("SIGUSR1"));
}

#[test]
fn the_unit_is_understood_and_leaves_little_exposed() {
    if output(Command::new("systemd-analyze").arg("--version")).is_err() {
        assert!(env::var_os("COAPWAY_REQUIRE_PEERS").is_none(), "systemd-analyze is not here");
        eprintln!("skipped: systemd-analyze is not here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("coapway.service");
    // Where it is not installed.
    std::fs::write(&unit, UNIT.replace("/usr/bin/coapway", "/bin/true")).unwrap();
    let verified = output(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit));
    assert_eq!(verified.unwrap(), "");
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--no-pager", &format!("--threshold={MOST_EXPOSURE}")]);
    output(security.arg(&unit)).unwrap();
}
