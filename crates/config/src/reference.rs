//! The reference page, docs/configuration.md, out of the tables of keys.

use std::fmt::Write as _;

use crate::document::Array;
use crate::schema::places::{Listen, NamedOrigin, Route};
use crate::section::{AnySection, Section};
use crate::settings::Settings;
use crate::source::short_variables;

const INTRODUCTION: &str = "\
# Configuration

This page is generated from the tables of `crates/config`; `BLESS=1 cargo test -p coapway-config reference` \
rewrites it.

One TOML file, named by `--config`. A value is taken from the strongest of these that has it:

1. the command line: `--listen`, `--reverse`, `--admin`, `--record`, `--log`, `--log-format`, and \
`--set dotted.key=value` for every key;
2. the environment;
3. the file;
4. the default below.

Unknown keys and variables, and values out of range, stop the start; \
all of them are told at once, with file, line, key, value and what is allowed. A bad value is an error even \
where a stronger source overrides it. An address that is not this host's, a port without permission for it and \
a file that cannot be used are told in the same way, by `coapway serve` and `coapway check`; a port in use stops \
`serve` and is a note of `check`, which is run beside the service that has it. `coapway check --dump` prints every \
value in use with its source and what follows from it.

## Values

- Durations have a unit: `us`, `ms`, `s`, `min` or `h`, as in `\"500ms\"` and `\"1.5s\"`.
- Sizes are whole numbers with a unit: `B`, `KiB`, `MiB` or `GiB`.
- Behind `--set` and in `COAPWAY__` variables a value is a TOML value or a bare word: \
`--set upstream.max_wait=20s`, `--set 'forward.clients=[\"10.0.0.0/8\"]'`. A list may be written with commas.

## Environment

`COAPWAY__SECTION__KEY` sets `section.key`, and `COAPWAY__UPSTREAM__RTO__ESTIMATOR` sets `upstream.rto.estimator`. \
These have variables of their own instead, whose durations are seconds without a unit, decimals allowed:

";

/// The reference page, docs/configuration.md.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (variable, key) in short_variables() {
        line(&mut page, format_args!("- `{variable}`: `{key}`"));
    }
    let settings = Settings::default();
    for section in settings.sections() {
        if section.name().is_empty() {
            heading(&mut page, "Top level", section);
            table_of(&mut page, Array::Listen);
        } else {
            heading(&mut page, &format!("`[{}]`", section.name()), section);
        }
        if section.name() == settings.upstream.name {
            table_of(&mut page, Array::Upstreams);
            table_of(&mut page, Array::Routes);
        }
    }
    page
}

fn table_of(page: &mut String, array: Array) {
    let title = format!("`[[{}]]`", array.name());
    match array {
        Array::Listen => heading(page, &title, &Section::<Listen>::new(array.name())),
        Array::Upstreams => heading(page, &title, &Section::<NamedOrigin>::new(array.name())),
        Array::Routes => heading(page, &title, &Section::<Route>::new(array.name())),
    }
}

fn heading(page: &mut String, title: &str, section: &dyn AnySection) {
    line(page, format_args!("\n## {title}\n\n{}\n", section.doc()));
    line(page, format_args!("| key | default | allowed | meaning |\n|---|---|---|---|"));
    for key in section.descriptions() {
        let default = if key.default == "unset" { "-".to_owned() } else { format!("`{}`", key.default) };
        let why = if key.why.is_empty() { String::new() } else { format!(" Limits: {}.", key.why) };
        line(page, format_args!("| `{}` | {default} | {} | {}{why} |", key.name, key.allowed, key.doc));
    }
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("a String takes everything");
}
