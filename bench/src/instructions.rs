//! Instructions of user code per forward: steady where CPU time is not.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, process};

use anyhow::{Context as _, Result, bail, ensure};

use crate::callgrind::Profile;
use crate::load::Load;
use crate::process::{Process, free_address};
use crate::proxies::{Coapway, Proxy, this_program};
use crate::saying::{say, tell};

/// Counts the instructions of user code per forward, with valgrind's callgrind.
///
/// The proxy is started twice and forwards --requests, then three times as many; the difference
/// leaves out start and end. The kernel's share is not in the number.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    coapway: Coapway,
    /// Measure the bare forwarder instead.
    #[arg(long, conflicts_with = "command")]
    bare: bool,
    /// Measure another proxy instead: a command with {port}.
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// Requests of the shorter run.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(100..=100_000))]
    requests: u64,
    /// Clients, so that many requests are under way at once.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// Functions to list.
    #[arg(long, default_value_t = 25)]
    top: usize,
    /// Keep callgrind's files in this directory, which must exist.
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// Fail if a forward takes more instructions than this.
    #[arg(long, value_name = "INSTRUCTIONS")]
    at_most: Option<f64>,
}

/// The longest that one load may take; valgrind slows a program down about fifty times.
const LIMIT: Duration = Duration::from_secs(300);

/// Measures, then prints the number and the functions behind it.
pub(crate) fn run(args: &Args) -> Result<()> {
    let proxy = args.proxy()?;
    let scratch = env::temp_dir().join(format!("coapway-bench-{}", process::id()));
    let directory = args.keep.clone().unwrap_or_else(|| scratch.clone());
    if args.keep.is_none() {
        fs::create_dir(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    }
    let outcome = compare(args, &proxy, &directory);
    if args.keep.is_none() {
        fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    }
    let (per_forward, functions) = outcome?;
    say!("{}: {per_forward:.0} instructions of user code per forward\n", proxy.name);
    say!("| instructions | share | function |\n|--:|--:|:--|");
    for (name, count) in functions.iter().take(args.top).filter(|(_, count)| *count >= 1.0) {
        say!("| {count:.0} | {:.1} % | `{name}` |", 100.0 * count / per_forward);
    }
    match args.at_most {
        Some(limit) if per_forward > limit => {
            bail!("{per_forward:.0} instructions per forward, {limit} allowed")
        }
        _ => Ok(()),
    }
}

impl Args {
    fn proxy(&self) -> Result<Proxy> {
        match &self.command {
            Some(command) => Proxy::from_command("the command", command).map_err(anyhow::Error::msg),
            None if self.bare => Proxy::bare(),
            None => self.coapway.proxy(),
        }
    }
}

fn compare(args: &Args, proxy: &Proxy, directory: &Path) -> Result<(f64, Vec<(String, f64)>)> {
    let origin = free_address()?;
    let command = this_program(&["origin", "--listen", &origin.to_string()])?;
    let mut origin_process = Process::start(&command, None, false)?;
    origin_process.wait_until_it_forwards(origin, origin, Duration::from_secs(10)).context("the origin")?;
    let profile = |requests| {
        let load = Load {
            proxy: free_address()?,
            origin,
            clients: args.clients,
            warm_up: Duration::ZERO,
            window: LIMIT,
            requests,
        };
        profile(proxy, &load, &directory.join(format!("callgrind.{requests}")))
    };
    let shorter = profile(args.requests)?;
    let longer = profile(3 * args.requests)?;
    Ok(longer.per_request(&shorter, 2 * args.requests))
}

fn profile(proxy: &Proxy, load: &Load, file: &Path) -> Result<Profile> {
    let mut command: Vec<String> =
        ["valgrind", "--quiet", "--tool=callgrind"].map(String::from).into_iter().collect();
    command.push(format!("--callgrind-out-file={}", file.display()));
    command.extend(proxy.command(load.proxy, load.origin));
    tell!("{} requests under callgrind …", load.requests);
    let mut process = Process::start(&command, None, proxy.is_quiet)?;
    process
        .wait_until_it_forwards(load.proxy, load.origin, Duration::from_secs(60))
        .with_context(|| format!("`{}`", command.join(" ")))?;
    let (outcome, _) = load.run(|| Ok(()))?;
    ensure!(
        outcome.is_sound() && outcome.answered == load.requests,
        "{} of {} requests got the right answer: {}",
        outcome.answered,
        load.requests,
        outcome.complaint.as_deref().unwrap_or("the time was over")
    );
    // callgrind writes its file when the program ends.
    ensure!(process.stop(Duration::from_secs(60))?, "the proxy did not end at SIGTERM");
    Profile::read(file)
}
