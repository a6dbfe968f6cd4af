//! The scenarios that come with the program: files like any operator's.

use std::path::Path;

use super::Scenario;

macro_rules! files {
    ($($name:literal)*) => {
        const FILES: &[(&str, &str)] = &[$(
            ($name, include_str!(concat!("../../scenarios/", $name, ".toml"))),
        )*];
    };
}

files! {
    "lan"
    "loss-1" "loss-5" "loss-15"
    "lte-m"
    "nb-iot-a" "nb-iot-b"
    "lora-sf7" "lora-sf9" "lora-sf12"
    "wifi-burst" "wifi-burst-long" "wifi-burst-rare" "wifi-burst-pareto"
    "bufferbloat-50" "bufferbloat-100" "bufferbloat-200" "bufferbloat-400" "bufferbloat-800" "bufferbloat-1600"
    "bufferbloat-1bdp" "bufferbloat-10bdp" "bufferbloat-cross"
    "cross-isp"
    "outage-up" "outage-both" "outage-flaps"
    "slow-origin" "slow-origin-1s" "slow-origin-late" "slow-origin-never" "slow-origin-stall"
    "dup-reorder"
    "nat-rebind-30" "nat-rebind-60" "nat-rebind-180" "nat-rebind-midway"
    "step" "step-far"
    "overload-80" "overload-100" "overload-120" "overload-429"
    "fan-in"
}

/// All of them, in their order.
pub fn named() -> impl Iterator<Item = Scenario> {
    FILES.iter().filter_map(|(name, text)| Scenario::parse(Path::new(&format!("{name}.toml")), text).ok())
}

/// Those that a name stands for: one, a family (`outage` for all that begin with `outage-`), or `all`.
pub fn find(name: &str) -> Vec<Scenario> {
    if let Some(one) = named().find(|scenario| scenario.name == name) {
        // `lte-m` is no family, but `wifi-burst` is one and a scenario too.
        return vec![one];
    }
    let family = name.strip_suffix('*').unwrap_or(name);
    let of_family = |scenario: &Scenario| {
        scenario.name.strip_prefix(family).is_some_and(|rest| rest.starts_with('-') || rest.is_empty())
    };
    named().filter(|scenario| name == "all" || of_family(scenario)).collect()
}

/// The file of a scenario.
pub fn source(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}
