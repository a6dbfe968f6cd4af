//! System calls per forward: what a forward asks of the kernel, steady where CPU time is not.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, process};

use anyhow::{Context as _, Result, ensure};

use crate::load::Load;
use crate::process::{Process, free_address};
use crate::proxies::{Coapway, Proxy, this_program};
use crate::saying::say;
use crate::sys;

/// Calls that are told by themselves, by what they do.
const RECEIVING: [&str; 4] = ["recvmmsg", "recvfrom", "recvmsg", "read"];
const SENDING: [&str; 4] = ["sendmmsg", "sendto", "sendmsg", "write"];
const WAITING: [&str; 4] = ["epoll_wait", "epoll_pwait", "epoll_pwait2", "futex"];
const ALL: &str = "raw_syscalls:sys_enter";
const ASLEEP: &str = "context-switches";

/// Counts the system calls of a forward, with perf and the kernel's tracepoints; usually only for root.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    coapway: Coapway,
    /// Leave the bare forwarder out.
    #[arg(long)]
    without_bare: bool,
    /// A further proxy: NAME=COMMAND with {port}, and {origin} if it wants to know; may be repeated.
    #[arg(long = "peer", value_name = "NAME=COMMAND")]
    peers: Vec<Proxy>,
    /// Numbers of clients to count with.
    #[arg(long, value_delimiter = ',', num_args = 1.., default_values_t = [1, 16, 256, 1024],
          value_parser = clap::value_parser!(u16).range(1..=8192))]
    clients: Vec<u16>,
    /// How long they are counted, in seconds.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Core of the proxy.
    #[arg(long, default_value_t = 0)]
    proxy_core: usize,
    /// Core of the load generator and the origin.
    #[arg(long, default_value_t = 1)]
    load_core: usize,
    /// Pin nothing to a core; for machines with one.
    #[arg(long)]
    no_pin: bool,
}

/// Counts, then prints the table.
pub(crate) fn run(args: &Args) -> Result<()> {
    let (proxy_core, load_core) =
        if args.no_pin { (None, None) } else { (Some(args.proxy_core), Some(args.load_core)) };
    if let Some(core) = load_core {
        sys::pin(core)
            .with_context(|| format!("cannot stay on core {core}; see --load-core and --no-pin"))?;
    }
    let bare = if args.without_bare { None } else { Some(Proxy::bare()?) };
    let proxies: Vec<Proxy> =
        bare.into_iter().chain([args.coapway.proxy()?]).chain(args.peers.iter().cloned()).collect();
    let origin = free_address()?;
    let command = this_program(&["origin", "--listen", &origin.to_string(), "--seconds", "86400"])?;
    let mut echo = Process::start(&command, load_core, false)?;
    echo.wait_until_it_forwards(origin, origin, Duration::from_secs(10)).context("the origin")?;
    say!("| clients | proxy | receiving | sending | waiting | other | all | slept |");
    say!("|--:|:--|--:|--:|--:|--:|--:|--:|");
    for &clients in &args.clients {
        for proxy in &proxies {
            let load = Load {
                proxy: free_address()?,
                origin,
                clients,
                warm_up: Duration::from_millis(700),
                window: Duration::from_secs(args.seconds + 1),
                requests: 10_000_000,
            };
            let counts = count(proxy, &load, proxy_core, args.seconds)
                .with_context(|| format!("{} with {clients} clients", proxy.name))?;
            say!("| {clients} | {} | {} |", proxy.name, counts.printed());
        }
    }
    Ok(())
}

fn count(proxy: &Proxy, load: &Load, core: Option<usize>, seconds: u64) -> Result<Counts> {
    let mut process = Process::start(&proxy.command(load.proxy, load.origin), core, proxy.is_quiet)?;
    process.wait_until_it_forwards(load.proxy, load.origin, Duration::from_secs(10))?;
    let file = env::temp_dir().join(format!("coapway-bench-{}.perf", process::id()));
    let mut perf = None;
    let pid = process.id();
    let (outcome, _) = load.run(|| {
        // At the second end of the window it has come to its own.
        if perf.is_none() {
            perf = Some(start(pid, seconds, &file)?);
        }
        Ok(())
    })?;
    let status = perf.context("the load did not begin")?.wait()?;
    let text = fs::read_to_string(&file).unwrap_or_default();
    // It may never have been made.
    let _gone = fs::remove_file(&file);
    ensure!(status.success(), "perf stat failed; it needs tracepoints and the right to use them: {text}");
    ensure!(outcome.is_sound(), "{}", outcome.complaint.unwrap_or_default());
    process.stop(Duration::from_secs(5))?;
    let forwards = outcome.answered as f64 / outcome.seconds * seconds as f64;
    Counts::parse(&text, forwards).with_context(|| format!("perf stat counts nothing: {text}"))
}

fn start(pid: u32, seconds: u64, file: &Path) -> Result<Child> {
    let events: Vec<String> = [RECEIVING, SENDING, WAITING]
        .concat()
        .into_iter()
        .map(|call| format!("syscalls:sys_enter_{call}"))
        .chain([ALL, ASLEEP].map(String::from))
        .collect();
    Command::new("perf")
        .args(["stat", "-x", ",", "-o"])
        .arg(file)
        .args(["-e", &events.join(","), "-p", &pid.to_string(), "--", "sleep", &seconds.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run perf")
}

/// Calls per forward.
#[derive(Debug, PartialEq)]
struct Counts {
    receiving: f64,
    sending: f64,
    waiting: f64,
    all: f64,
    asleep: f64,
}

impl Counts {
    /// Reads what `perf stat -x ,` wrote of a proxy that forwarded so much meanwhile.
    fn parse(text: &str, forwards: f64) -> Option<Self> {
        let value = |event: &str| {
            let line = text.lines().find(|line| line.split(',').nth(2) == Some(event))?;
            line.split(',').next()?.parse::<f64>().ok()
        };
        let sum = |calls: [&str; 4]| {
            let counts = calls.iter().filter_map(|call| value(&format!("syscalls:sys_enter_{call}")));
            counts.sum::<f64>() / forwards
        };
        Some(Self {
            receiving: sum(RECEIVING),
            sending: sum(SENDING),
            waiting: sum(WAITING),
            all: value(ALL)? / forwards,
            asleep: value(ASLEEP)? / forwards,
        })
    }

    fn printed(&self) -> String {
        let other = (self.all - self.receiving - self.sending - self.waiting).max(0.0);
        [self.receiving, self.sending, self.waiting, other, self.all, self.asleep]
            .map(|value| format!("{value:.2}"))
            .join(" | ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_perf_wrote() {
        let text = "# started\n\n2000,,syscalls:sys_enter_recvmmsg,1,100.00,,\n1000,,syscalls:sys_enter_sendmmsg,1,100.00,,\n\
            500,,syscalls:sys_enter_epoll_wait,1,100.00,,\n4000,,raw_syscalls:sys_enter,1,100.00,,\n20,,context-switches,1,100.00,,\n";
        let counts = Counts::parse(text, 2000.0).expect("all are there");
        assert_eq!(counts, Counts { receiving: 1.0, sending: 0.5, waiting: 0.25, all: 2.0, asleep: 0.01 });
        assert_eq!(counts.printed(), "1.00 | 0.50 | 0.25 | 0.25 | 2.00 | 0.01");
        assert_eq!(Counts::parse("perf: no", 1000.0), None);
    }
}
