//! Arrows between packages only go down.

use crate::metadata::Package;

/// What all packages of this workspace begin with.
const PREFIX: &str = "coapway-";

/// The house: every package and the floor that it is on.
const FLOORS: [(&str, u8); 14] = [
    ("daemon", 8),
    ("tune", 7),
    ("demo", 6),
    ("lab", 5),
    ("sim", 5),
    ("config", 4),
    ("model", 3),
    ("proxy", 3),
    ("transport", 3),
    ("endpoint", 2),
    ("relay", 2),
    ("message", 1),
    ("records", 1),
    ("time", 1),
];

/// Stand beside the house: they may look at everything, and nobody at them.
const OUTSIDE: [&str; 4] = ["bench", "interop", "packaging", "xtask"];

/// Pure state machines: no socket, no clock, no thread, no async, no lock, no global.
const CORE: [&str; 5] = ["time", "message", "endpoint", "relay", "proxy"];

/// Crates that the core may use, because none of them does I/O.
const WITHOUT_IO: [&str; 9] = [
    "ahash",
    "fastrand",
    "fluent-uri",
    "hashbrown",
    "ipnet",
    "slab",
    "smallvec",
    "speck-cipher",
    "thiserror",
];

/// Whether a package belongs to the core.
pub(crate) fn is_core(package: &str) -> bool {
    package.strip_prefix(PREFIX).is_some_and(|name| CORE.contains(&name))
}

/// Every arrow that goes up or sideways, and every crate that the core must not use.
pub(crate) fn check(packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    for package in packages {
        let Some(name) = package.name.strip_prefix(PREFIX) else {
            findings.push(format!("{} should be called {PREFIX}{}", package.name, package.name));
            continue;
        };
        if OUTSIDE.contains(&name) {
            continue;
        }
        let Some(floor) = floor(name) else {
            findings.push(format!("{} has no floor yet; give it one in xtask/src/layers.rs", package.name));
            continue;
        };
        let arrows = package.dependencies.iter();
        findings.extend(arrows.filter_map(|dependency| {
            let complaint = complaint(name, floor, dependency)?;
            Some(format!("{} must not depend on {dependency}: {complaint}", package.name))
        }));
    }
    findings
}

fn complaint(name: &str, own: u8, dependency: &str) -> Option<String> {
    let Some(below) = dependency.strip_prefix(PREFIX) else {
        let is_fine = !CORE.contains(&name) || WITHOUT_IO.contains(&dependency);
        return (!is_fine).then(|| "the core uses only crates from the list in xtask/src/layers.rs".into());
    };
    match floor(below) {
        Some(floor) if floor < own => None,
        Some(floor) if floor == own => Some(format!("both are on floor {own}, and neighbours never meet")),
        Some(floor) => Some(format!("that goes up from floor {own} to floor {floor}")),
        None => Some("it stands outside of the house".into()),
    }
}

fn floor(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(package, _)| *package == name).map(|(_, floor)| *floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, dependencies: &[&str]) -> Vec<String> {
        check(&[Package {
            name: format!("coapway-{name}"),
            version: "0.1.0".into(),
            licence: None,
            source: None,
            manifest: String::new(),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
        }])
    }

    #[test]
    fn lets_arrows_go_down() {
        assert!(findings("proxy", &["coapway-endpoint", "coapway-relay", "coapway-time", "slab"]).is_empty());
        assert!(findings("daemon", &["coapway-transport", "coapway-config", "tokio"]).is_empty());
    }

    #[test]
    fn stops_arrows_that_go_up_or_sideways() {
        for (name, dependency) in [
            ("endpoint", "coapway-relay"),
            ("relay", "coapway-endpoint"),
            ("message", "coapway-time"),
            ("time", "coapway-message"),
            ("proxy", "coapway-transport"),
            ("proxy", "coapway-config"),
            ("config", "coapway-sim"),
            ("daemon", "coapway-bench"),
        ] {
            assert_eq!(findings(name, &[dependency]).len(), 1, "{name} on {dependency}");
        }
    }

    #[test]
    fn keeps_io_out_of_the_core() {
        for name in CORE {
            assert_eq!(findings(name, &["tokio", "libc", "slab"]).len(), 2, "{name}");
        }
        assert!(findings("transport", &["tokio"]).is_empty());
    }

    #[test]
    fn leaves_those_outside_alone_and_asks_for_a_floor_of_newcomers() {
        assert!(findings("bench", &["coapway-daemon"]).is_empty());
        assert!(findings("dtls", &[])[0].contains("no floor yet"));
    }
}
