//! Whole configurations: what comes out, and what an operator reads when it does not.

mod difference;
mod dump;
mod errors;
mod impossible;
mod layers;
mod profiles;
mod summary;
mod told;

use std::path::Path;

use crate::config::Config;
use crate::error::ConfigErrors;
use crate::{Overrides, reference};

/// The example of the design.
const EXAMPLE: &str = r#"
[[listen]]
uri = "coap://0.0.0.0:5683"

[downstream]
ack_timeout = "1s"

[upstream]                     # defaults for every origin
max_wait = "30s"
rto = { estimator = "p95", window = 50, factor = 2.5, cap = "10s" }

[forward]
clients = ["10.0.0.0/8"]
allow = ["10.1.0.0/16", "*.plant.example"]

[[upstreams]]                  # a named origin: any [upstream] key may be repeated here
name = "boiler"
uri = "coap://10.1.2.3"
ack_timeout = "4s"
deduplicates = true

[[routes]]                     # reverse
path = "/boiler"               # and/or host = "boiler.example"
upstream = "boiler"
strip = true                   # default: take the prefix off; false keeps it
"#;

fn load(file: &str, environment: &[(&str, &str)], overrides: &Overrides) -> Result<Config, ConfigErrors> {
    let file = (!file.is_empty()).then_some((Path::new("coapway.toml"), file));
    Config::load(file, environment.iter().copied(), overrides)
}

fn loaded(file: &str, environment: &[(&str, &str)], overrides: &Overrides) -> Config {
    load(file, environment, overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn refused(file: &str, environment: &[(&str, &str)], overrides: &Overrides) -> String {
    match load(file, environment, overrides) {
        Ok(config) => panic!("accepted:\n{}", config.dump()),
        Err(errors) => errors.to_string(),
    }
}

fn check(file: &str, expected: &str) {
    assert_eq!(refused(file, &[], &Overrides::default()), expected, "for\n{file}");
}

fn set(settings: &[&str]) -> Overrides {
    Overrides { set: settings.iter().map(|text| (*text).to_owned()).collect(), ..Overrides::default() }
}

/// The value and the source of a key in the dump.
fn line<'d>(dump: &'d str, key: &str) -> &'d str {
    let prefix = format!("{key} = ");
    dump.lines().find_map(|line| line.strip_prefix(&*prefix)).unwrap_or_else(|| panic!("no {key} in\n{dump}"))
}

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, reference()).expect("docs is writable");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == reference(),
        "docs/configuration.md is not what the tables say; BLESS=1 cargo test -p coapway-config reference rewrites it"
    );
}
