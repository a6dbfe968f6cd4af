//! `cargo xtask`: the checks of this workspace, all of them in a row, and the package.
//!
//! Every check is a function from text to findings; only `workspace` and `ci` touch files and processes.

mod ci;
mod circles;
mod fuzz;
mod layers;
mod licences;
mod lines;
mod metadata;
mod package;
mod proofs;
mod purity;
mod requirements;
mod results;
mod saying;
mod soak;
mod source;
mod spdx;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use saying::tell;
use workspace::Workspace;

/// Checks this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Subcommand)]
enum Command {
    /// What CI runs: format, clippy, layers, licences, shape, requirements, docs, fuzzing, and all tests at the end.
    Ci,
    /// The layer rule: arrows only go down, and the core has no clock, socket, thread, lock or global.
    Layers,
    /// Every package comes from crates.io or this workspace, under a licence that may be used.
    Licences,
    /// Every requirement is in docs/requirements.md, and every test that shows one is there.
    Requirements,
    /// Names .rs files that have grown too long; never fails.
    Lines,
    /// Names modules that import each other in a circle.
    Circles {
        /// Fail if there are any.
        #[arg(long)]
        strict: bool,
    },
    /// The simulator's long runs, as Markdown tables: storms, standing exchanges, a flood.
    Soak(soak::Soak),
    /// Simulates the shipped policy against others in every scenario, and writes docs/results.md.
    Results(results::Results),
    /// Manual pages and completions, made from the command line's definitions, into target/package.
    Documents,
    /// The Debian package, into target/package.
    Deb {
        /// Of what `cargo build` makes, which is quickly there.
        #[arg(long)]
        debug: bool,
    },
    /// Builds the package; installs, runs, removes and purges it in a Debian system of its own; for root.
    DebCheck {
        /// Of what `cargo build` makes, which is quickly there.
        #[arg(long)]
        debug: bool,
        /// Further arguments, e.g. --mirror URI --suite NAME, or --empty: a folder instead of Debian.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Builds the fuzz targets with a sanitizer and runs each for a while.
    Fuzz {
        /// How long each target runs.
        #[arg(long, value_name = "N", default_value_t = 30)]
        seconds: u64,
        /// Runs one input instead; needs one target.
        #[arg(long, value_name = "FILE")]
        replay: Option<PathBuf>,
        /// Only these targets.
        targets: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            tell!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one command; false when it found something that must not be.
fn run(command: Command) -> Result<bool> {
    let workspace = Workspace::find()?;
    match command {
        Command::Ci => ci::run(&workspace),
        Command::Layers => Ok(report("error", &workspace.layer_findings()?)),
        Command::Licences => Ok(report("error", &workspace.licence_findings()?)),
        Command::Requirements => Ok(report("error", &workspace.requirement_findings()?)),
        Command::Lines => {
            report("warning", &workspace.line_findings()?);
            Ok(true)
        }
        Command::Soak(soak) => soak::run(&workspace, soak),
        Command::Results(results) => results::run(&workspace, results),
        Command::Documents => package::documents(&workspace),
        Command::Deb { debug } => package::build(&workspace, debug).map(|package| package.is_some()),
        Command::DebCheck { debug, arguments } => package::check(&workspace, debug, &arguments),
        Command::Circles { strict } => {
            let level = if strict { "error" } else { "warning" };
            Ok(report(level, &workspace.circle_findings()?) || !strict)
        }
        Command::Fuzz { seconds, replay, targets } => {
            let task = replay.as_deref().map_or(fuzz::Task::Search(seconds), fuzz::Task::Replay);
            fuzz::run(&workspace, &targets, task)
        }
    }
}

/// Prints findings; true when there are none.
fn report(level: &str, findings: &[String]) -> bool {
    for finding in findings {
        tell!("{level}: {finding}");
    }
    findings.is_empty()
}
