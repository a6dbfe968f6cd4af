//! What surrounds the program where it is installed: manual pages, completions, the Debian package.

mod check;
mod completions;
mod deb;
mod files;
mod manual;
mod run;
#[cfg(test)]
mod service;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "coapway-packaging")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Manual pages into FOLDER/man, completions into FOLDER/completions.
    Documents { folder: PathBuf },
    /// The Debian package of a binary into FOLDER; prints where it is.
    Deb { binary: PathBuf, folder: PathBuf },
    /// Installs, runs, removes and purges a package in a Debian system of its own.
    Check {
        package: PathBuf,
        #[command(flatten)]
        source: check::Source,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // With nowhere to complain, the exit code says it.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("this folder is in another one")?;
    match command {
        Command::Documents { folder } => {
            let command = coapway_daemon::command_line();
            manual::write(&command, &folder.join("man"))?;
            completions::write(&command, &folder.join("completions"))
        }
        Command::Deb { binary, folder } => {
            let package = deb::build(root, &binary, &folder)?;
            writeln!(io::stdout(), "{}", package.display()).context("cannot write to standard output")
        }
        Command::Check { package, source } => check::check(root, &package, &source),
    }
}
