//! The simulator's long runs, each in a process of its own so that its peak memory can be told.

use std::env;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::workspace::Workspace;

/// How long the runs are.
#[derive(Args, Clone, Copy)]
pub(crate) struct Soak {
    /// Storms to run.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// Threads for the storms.
    #[arg(long, default_value_t = 1)]
    threads: u64,
    /// Exchanges to keep outstanding.
    #[arg(long, default_value_t = 10_000)]
    exchanges: u64,
    /// Seconds of virtual time to keep them.
    #[arg(long, default_value_t = 3600)]
    standing: u64,
    /// Requests a second to one origin.
    #[arg(long, default_value_t = 50_000)]
    rate: u64,
    /// Seconds of virtual time to ask them.
    #[arg(long, default_value_t = 420)]
    flood: u64,
    /// Source ports towards that origin.
    #[arg(long, default_value_t = 256)]
    source_ports: u64,
}

/// Runs all of them, whatever each finds, and prints their tables; true when nothing was violated.
pub(crate) fn run(workspace: &Workspace, soak: Soak) -> Result<bool> {
    let Soak { seeds, threads, exchanges, standing, rate, flood, source_ports } = soak;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(&cargo)
        .args(["build", "--quiet", "--release", "--locked", "--package", "coapway-sim"])
        .current_dir(workspace.root())
        .status()
        .context("cannot run cargo build")?;
    ensure!(built.success(), "coapway-sim does not build");
    let runs: [(&str, &[u64]); 3] = [
        ("storms", &[seeds, threads]),
        ("standing", &[exchanges, standing]),
        ("flood", &[rate, flood, source_ports]),
    ];
    let mut passed = true;
    for (which, numbers) in runs {
        let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        let status = Command::new(&cargo)
            .args(["run", "--quiet", "--release", "--locked", "--package", "coapway-sim", "--"])
            .args(["soak", which])
            .args(numbers)
            .current_dir(workspace.root())
            .status()
            .context("cannot run coapway-sim")?;
        passed &= status.success();
    }
    Ok(passed)
}
