//! CPU time per forwarded request, each proxy beside the bare forwarder.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::load::Load;
use crate::machine::{Busy, Machine};
use crate::process::{Process, free_address};
use crate::proxies::{Coapway, Proxy, this_program};
use crate::report::Report;
use crate::run::Run;
use crate::saying::{self, tell};
use crate::sys;

/// Compares coapway's CPU time per forward with that of a bare UDP forwarder.
///
/// In every repetition each proxy is started afresh, one after the other, in front of the same origin and
/// under the same closed-loop load: CON GET with Proxy-Uri, a new URI for every request. The result is a
/// Markdown table. A run counts only when every answer was the right one.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    coapway: Coapway,
    /// Leave coapway out: what the bare forwarder, and peers, do on this machine.
    #[arg(long)]
    without_coapway: bool,
    /// A further proxy: NAME=COMMAND with {port}, and {origin} if it wants to know; may be repeated.
    ///
    /// The command must be the proxy itself, without a shell around it:
    /// --peer 'libcoap=coap-server-notls -A 127.0.0.1 -p {port} -P ,x'
    #[arg(long = "peer", value_name = "NAME=COMMAND")]
    peers: Vec<Proxy>,
    /// Numbers of clients to measure with.
    #[arg(long, value_delimiter = ',', num_args = 1.., default_values_t = [1, 16, 256, 1024],
          value_parser = clap::value_parser!(u16).range(1..=8192))]
    clients: Vec<u16>,
    /// Repetitions.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    repetitions: u8,
    /// Length of each measured window, in seconds.
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,
    /// Load before the measured window, in seconds.
    #[arg(long, default_value_t = 0.7, value_parser = seconds)]
    warm_up: f64,
    /// The most requests of one run.
    #[arg(long, default_value_t = 2_000_000)]
    max_requests: u64,
    /// Core of the proxy.
    #[arg(long, default_value_t = 0)]
    proxy_core: usize,
    /// Core of the load generator and the origin.
    #[arg(long, default_value_t = 1)]
    load_core: usize,
    /// Pin nothing to a core; for machines with one.
    #[arg(long)]
    no_pin: bool,
    /// The proxy that the others are compared with: `bare`, or the name of a peer.
    #[arg(long, value_name = "NAME", default_value = "bare")]
    yardstick: String,
    /// More cores than this in use by others make a run doubtful.
    #[arg(long, value_name = "CORES", default_value_t = 0.2)]
    most_foreign: f64,
    /// How often a run is made at most while others use more than that; the quietest counts.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    tries: u8,
    /// How long to wait before a run for others to be quiet, in seconds.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3600))]
    settle: u64,
    /// Write every run as JSON into this file, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Everybody's CPU time at one end of the measured window.
struct Usage {
    proxy: Duration,
    own: Duration,
    origin: Duration,
    machine: Busy,
}

/// Measures, then prints the table.
pub(crate) fn run(args: &Args) -> Result<()> {
    let machine = Machine::look();
    let proxies = args.proxies()?;
    let (proxy_core, load_core) =
        if args.no_pin { (None, None) } else { (Some(args.proxy_core), Some(args.load_core)) };
    ensure!(
        args.no_pin || machine.cores() > 1,
        "proxy and load need a core each, and there is only one; --no-pin measures anyway"
    );
    if let Some(core) = load_core {
        sys::pin(core)
            .with_context(|| format!("cannot stay on core {core}; see --load-core and --no-pin"))?;
    }
    let origin = free_address()?;
    let command = this_program(&["origin", "--listen", &origin.to_string(), "--seconds", "86400"])?;
    let mut origin_process = Process::start(&command, load_core, false)?;
    origin_process.wait_until_it_forwards(origin, origin, Duration::from_secs(10)).context("the origin")?;
    ensure!(
        proxies.iter().any(|proxy| proxy.name == args.yardstick),
        "no proxy is called {}, which --yardstick names",
        args.yardstick
    );
    let mut report = Report::new(
        machine.printed(),
        args.repetitions,
        args.seconds,
        args.yardstick.clone(),
        args.most_foreign,
    );
    for repetition in 0..args.repetitions {
        for clients in &args.clients {
            for place in 0..proxies.len() {
                // Another one goes first each time, so that no proxy always has the rested machine.
                let Some(proxy) = proxies.get((place + usize::from(repetition)) % proxies.len()) else {
                    continue;
                };
                let load = args.load(*clients, origin);
                let run = args
                    .quietest(|| measure(proxy, &load, repetition, proxy_core, origin_process.id()))
                    .with_context(|| format!("{} with {clients} clients", proxy.name))?;
                report.push(run);
            }
        }
    }
    origin_process.stop(Duration::from_secs(5))?;
    saying::output(report.markdown());
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&report.json(&machine))? + "\n";
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

impl Args {
    fn proxies(&self) -> Result<Vec<Proxy>> {
        let mut proxies = vec![Proxy::bare()?];
        if !self.without_coapway {
            proxies.push(self.coapway.proxy()?);
        }
        proxies.extend(self.peers.iter().cloned());
        Ok(proxies)
    }

    /// Makes a run again while others disturb it.
    fn quietest(&self, measure: impl Fn() -> Result<Run>) -> Result<Run> {
        let mut best: Option<Run> = None;
        for _ in 0..self.tries {
            Busy::settle(self.most_foreign, Duration::from_secs(self.settle))?;
            let run = measure()?;
            tell!("{}", run.printed());
            if best.as_ref().is_none_or(|best| run.foreign < best.foreign) {
                best = Some(run);
            }
            if best.as_ref().is_some_and(|best| best.foreign <= self.most_foreign) {
                break;
            }
        }
        best.context("no run was made")
    }

    /// The proxy's address is filled in when it is started.
    fn load(&self, clients: u16, origin: SocketAddr) -> Load {
        Load {
            proxy: origin,
            origin,
            clients,
            warm_up: Duration::from_secs_f64(self.warm_up),
            window: Duration::from_secs_f64(self.seconds),
            requests: self.max_requests,
        }
    }
}

impl Usage {
    fn now(proxy: u32, origin: u32) -> Result<Self> {
        let time =
            |pid| sys::cpu_time(pid).with_context(|| format!("cannot read the CPU time of process {pid}"));
        Ok(Self {
            proxy: time(proxy)?,
            own: time(std::process::id())?,
            origin: time(origin)?,
            machine: Busy::now(),
        })
    }
}

fn measure(proxy: &Proxy, load: &Load, repetition: u8, core: Option<usize>, origin_pid: u32) -> Result<Run> {
    let load = Load { proxy: free_address()?, ..load.clone() };
    let command = proxy.command(load.proxy, load.origin);
    let mut process = Process::start(&command, core, proxy.is_quiet)?;
    process
        .wait_until_it_forwards(load.proxy, load.origin, Duration::from_secs(10))
        .with_context(|| format!("`{}`", command.join(" ")))?;
    let pid = process.id();
    let (outcome, [before, after]) = load.run(|| Usage::now(pid, origin_pid))?;
    process.stop(Duration::from_secs(5))?;
    let spent = (after.proxy - before.proxy).as_secs_f64();
    let known = spent + (after.own - before.own).as_secs_f64() + (after.origin - before.origin).as_secs_f64();
    let used = after.machine.used - before.machine.used;
    Ok(Run {
        repetition,
        proxy: proxy.name.clone(),
        clients: load.clients,
        cpu: spent * 1e6 / outcome.answered.max(1) as f64,
        foreign: ((used - known) / outcome.seconds).max(0.0),
        stolen: (after.machine.stolen - before.machine.stolen) / outcome.seconds,
        outcome,
    })
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.05..=600.0).contains(&seconds) { Ok(seconds) } else { Err("0.05 to 600 is possible".into()) }
}
