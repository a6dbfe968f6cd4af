//! Settings that are read again and again under load, and a stop under the same load.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use tempfile::TempDir;

use crate::coap::{self, ACK, CON, EMPTY, Message};
use crate::hostile::good::{self, Control, Good, Tally};
use crate::hostile::random;
use crate::machine::Machine;
use crate::process::{Process, free_address};
use crate::proxies::{Coapway, this_program};
use crate::saying::{self, say};
use crate::{clock, sys};

/// Shows that a reload loses nothing and that a stop leaves nobody without an answer.
///
/// Half of the load is GET by Proxy-Uri, half POST by a route. Under it the settings are changed and read
/// again many times, then a broken file is, and then the proxy is asked to stop while one more request
/// waits for an origin that never answers. The result is a Markdown table and verdicts; the exit code is 1
/// when one does not hold.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    coapway: Coapway,
    /// Requests a second.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=50_000))]
    rate: u32,
    /// Clients.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: u16,
    /// How often the settings are read again.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    reloads: u32,
    /// Time between two reloads, in milliseconds.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pause: u64,
    /// Core of the proxy.
    #[arg(long, default_value_t = 0)]
    proxy_core: usize,
    /// Core of everybody else.
    #[arg(long, default_value_t = 1)]
    load_core: usize,
    /// Pin nothing to a core; for machines with one.
    #[arg(long)]
    no_pin: bool,
}

/// When requests are issued.
const PHASES: [&str; 5] = ["before", "reloads", "broken file", "up to the stop", "after the stop"];
const BEFORE: usize = 0;
const RELOADS: usize = 1;
const BROKEN: usize = 2;
const LAST: usize = 3;
const AFTER: usize = 4;
/// How long the load runs before and between.
const PAUSE: Duration = Duration::from_secs(1);
/// `drain_timeout`: the proxy has one request that it cannot finish.
const DRAIN: Duration = Duration::from_secs(2);
/// How long the proxy may take to do what a signal asks for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The proxy, its settings and its origins.
struct Stage {
    proxy: Process,
    listener: SocketAddr,
    good: SocketAddr,
    /// Never answers.
    silent: UdpSocket,
    spare: SocketAddr,
    config: PathBuf,
    /// Where the proxy says that it is ready again.
    manager: UnixDatagram,
    _origin: Process,
    _directory: TempDir,
}

/// Runs it, then prints table and verdicts.
pub(crate) fn run(args: &Args) -> Result<()> {
    let machine = Machine::look();
    let cores = if args.no_pin { None } else { Some((args.proxy_core, args.load_core)) };
    ensure!(cores.is_none() || machine.cores() > 1, "proxy and load need a core each; see --no-pin");
    if let Some((_, core)) = cores {
        sys::pin(core).with_context(|| format!("cannot stay on core {core}; see --no-pin"))?;
    }
    sys::raise_open_files()?;
    let stage = Stage::set(&args.coapway, cores)?;
    let control = Arc::new(Control::default());
    let load = Good {
        proxy: stage.listener,
        origin: stage.good,
        clients: args.clients,
        rate: args.rate,
        mark: random() as u32,
        phases: PHASES.len(),
    };
    let load = good::start(load, Arc::clone(&control))?;
    let outcome = args.play(&stage, &control);
    control.abandon();
    let mut tallies = load.join().map_err(|_| anyhow!("the load panicked"))??;
    let (slowest, held) = outcome?;
    saying::output(table(&mut tallies));
    say!("\n{}; longest reload {:.1} ms\n", machine.printed(), slowest.as_secs_f64() * 1e3);
    let verdicts = verdicts(args, &tallies, held);
    for (holds, words) in &verdicts {
        say!("- {}: {words}", if *holds { "holds" } else { "**does not hold**" });
    }
    ensure!(verdicts.iter().all(|(holds, _)| *holds), "not everything holds");
    Ok(())
}

impl Args {
    /// The longest reload, and what the request without hope was answered.
    fn play(&self, stage: &Stage, control: &Control) -> Result<(Duration, String)> {
        control.set_phase(BEFORE);
        stage.pass(PAUSE)?;
        control.set_phase(RELOADS);
        let mut slowest = Duration::ZERO;
        for reload in 0..self.reloads {
            stage.write(&stage.variant(reload as usize))?;
            let began = clock::now();
            let status = stage.reload()?;
            slowest = slowest.max(clock::now() - began);
            ensure!(status.starts_with("serving on"), "reload {reload}: {status}");
            stage.pass(Duration::from_millis(self.pause))?;
        }
        control.set_phase(BROKEN);
        stage.write("upstream.max_wait = \"5h\"")?;
        let status = stage.reload()?;
        ensure!(status.starts_with("configuration not reloaded, errors: 1"), "a broken file: {status}");
        stage.pass(PAUSE)?;

        control.set_phase(LAST);
        let hopeless = stage.ask_the_silent_origin()?;
        stage.pass(PAUSE)?;
        control.set_phase(AFTER);
        // The load has taken notice by then.
        stage.pass(Duration::from_millis(20))?;
        stage.proxy.terminate()?;
        let held = answer(&hopeless)?;
        ensure!(stage.proxy.ends_within(DRAIN + PATIENCE)?, "the proxy does not end");
        Ok((slowest, held))
    }
}

impl Stage {
    fn set(coapway: &Coapway, cores: Option<(usize, usize)>) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let (config, socket) = (directory.path().join("coapway.toml"), directory.path().join("notify"));
        let manager = UnixDatagram::bind(&socket).context("no socket for notifications")?;
        manager.set_read_timeout(Some(PATIENCE))?;
        let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (good, listener, spare) = (free_address()?, free_address()?, free_address()?);
        let command = this_program(&["origin", "--listen", &good.to_string(), "--seconds", "86400"])?;
        let mut origin = Process::start(&command, cores.map(|cores| cores.1), false)?;
        origin.wait_until_it_forwards(good, good, PATIENCE).context("the origin")?;
        fs::write(&config, configuration(listener, good, silent.local_addr()?, ""))?;
        let mut command = vec!["env".to_owned(), format!("NOTIFY_SOCKET={}", socket.display())];
        command.extend(coapway.with_config("serve", &config)?);
        let mut proxy = Process::start(&command, cores.map(|cores| cores.0), false)?;
        proxy.wait_until_it_forwards(listener, good, PATIENCE).context("coapway")?;
        let stage = Self {
            proxy,
            listener,
            good,
            silent,
            spare,
            config,
            manager,
            _origin: origin,
            _directory: directory,
        };
        let status = stage.told()?;
        ensure!(status.starts_with("serving on"), "{status}");
        Ok(stage)
    }

    /// What one reload changes.
    fn variant(&self, number: usize) -> String {
        let variants = [
            "upstream.max_wait = \"20s\"\nupstream.rto.estimator = \"fixed\"".to_owned(),
            format!("[[listen]]\nuri = \"coap://{}\"", self.spare),
            "[[upstreams]]\nname = \"third\"\nuri = \"coap://127.0.0.1:9\"".to_owned(),
            "limits.hints = 7\ndedup.memory = \"200MiB\"".to_owned(),
            String::new(),
        ];
        variants[number % variants.len()].clone()
    }

    fn write(&self, top: &str) -> Result<()> {
        let text = configuration(self.listener, self.good, self.silent.local_addr()?, top);
        fs::write(&self.config, text).context("cannot write the configuration")
    }

    /// Has the settings read again; returns the status after that.
    fn reload(&self) -> Result<String> {
        self.proxy.reload()?;
        self.told()
    }

    /// The status that comes with the next READY.
    fn told(&self) -> Result<String> {
        let mut buffer = [0; 4096];
        loop {
            let length = self.manager.recv(&mut buffer).context("the proxy says nothing")?;
            let told = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).into_owned();
            if let Some(status) = told.strip_prefix("READY=1\nSTATUS=") {
                return Ok(status.trim_end().to_owned());
            }
        }
    }

    fn pass(&self, time: Duration) -> Result<()> {
        ensure!(!self.proxy.ends_within(time)?, "the proxy ended by itself");
        Ok(())
    }

    /// Sends a request to the origin that never answers, and waits until it got there.
    fn ask_the_silent_origin(&self) -> Result<UdpSocket> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(self.listener)?;
        socket.set_read_timeout(Some(DRAIN + PATIENCE))?;
        let mut datagram = Vec::new();
        let uri = format!("coap://{}/never", self.silent.local_addr()?);
        coap::write_get(&mut datagram, 1, *b"held", uri.as_bytes());
        socket.send(&datagram)?;
        self.silent.set_read_timeout(Some(PATIENCE))?;
        self.silent.recv(&mut [0; 2048]).context("the silent origin is not asked")?;
        Ok(socket)
    }
}

fn configuration(listener: SocketAddr, good: SocketAddr, silent: SocketAddr, top: &str) -> String {
    // An array of tables may not stand before keys of the top.
    let (top, bottom) = if top.starts_with("[[") { ("", top) } else { (top, "") };
    let drain = DRAIN.as_millis();
    let mut text = format!("{top}\ndrain_timeout = \"{drain}ms\"\nforward.enabled = true\n");
    text += &format!("[[listen]]\nuri = \"coap://{listener}\"\n");
    for (name, uri) in [("good", good), ("silent", silent)] {
        text += &format!("[[upstreams]]\nname = \"{name}\"\nuri = \"coap://{uri}\"\n");
    }
    text + "[[routes]]\npath = \"/good\"\nupstream = \"good\"\n" + bottom + "\n"
}

/// The answer to a request, which may have been acknowledged before.
fn answer(socket: &UdpSocket) -> Result<String> {
    let mut buffer = [0; 2048];
    loop {
        let length = socket.recv(&mut buffer).context("a request that was accepted got no answer")?;
        let Some(message) = buffer.get(..length).and_then(Message::parse) else { bail!("no CoAP message") };
        if message.kind == CON {
            socket.send(&coap::empty(ACK, message.message_id))?;
        }
        if message.code != EMPTY {
            let text = String::from_utf8_lossy(message.payload);
            return Ok(format!("{} {text:?}", coap::printed(message.code)));
        }
    }
}

const REFUSED: &str = "5.03 \"not-sent: shutting down\"";

fn table(tallies: &mut [Tally]) -> String {
    let mut text =
        "| requests issued | sent | answered | 5.03 shutting down | other answers | copies of clients | \
                    without answer | P50 µs | P99 µs |\n|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (phase, tally) in PHASES.iter().zip(tallies) {
        let [p50, p99] = [0.5, 0.99].map(|share| tally.latencies.quantile(share));
        let (refused, others) = (refused(tally), others(tally));
        let Tally { sent, right, copies, unanswered, .. } = tally;
        text += &format!(
            "| {phase} | {sent} | {right} | {refused} | {others} | {copies} | {unanswered} | {p50:.0} | {p99:.0} |\n"
        );
    }
    text
}

fn refused(tally: &Tally) -> u64 {
    tally.faults.get(REFUSED).copied().unwrap_or_default()
}

fn others(tally: &Tally) -> u64 {
    tally.faults.values().sum::<u64>() - refused(tally)
}

fn verdicts(args: &Args, tallies: &[Tally], held: String) -> Vec<(bool, String)> {
    let of = |phases: &[usize]| {
        let chosen = || phases.iter().filter_map(|&phase| tallies.get(phase));
        let sum = |count: fn(&Tally) -> u64| chosen().map(count).sum::<u64>();
        (
            sum(|tally| tally.sent),
            sum(|tally| tally.right),
            sum(refused),
            sum(others),
            sum(|tally| tally.unanswered),
        )
    };
    let words: Vec<_> =
        tallies.iter().flat_map(|tally| tally.faults.keys()).filter(|words| *words != REFUSED).collect();
    let faults = words.first().map_or_else(String::new, |words| format!("; the first other answer: {words}"));
    let (sent, right, ..) = of(&[BEFORE, RELOADS, BROKEN]);
    let (last, answered, refused, others, unanswered) = of(&[LAST]);
    let (after, after_right, after_refused, after_others, gone) = of(&[AFTER]);
    let forsaken = tallies.get(AFTER).map_or(0, |tally| tally.forsaken);
    vec![
        (
            sent == right,
            format!(
                "{} reloads and a broken file under {} requests/s: {right} of {sent} answered rightly and once{faults}",
                args.reloads, args.rate
            ),
        ),
        (
            last == answered + refused && others + unanswered == 0,
            format!(
                "of {last} accepted before the stop {answered} were answered by the origin, {refused} with 5.03"
            ),
        ),
        (
            forsaken == 0 && after_others == 0,
            format!(
                "of {after} that came with or after the stop {after_right} were answered, {after_refused} refused with \
                 5.03; {gone} found nobody, of which {forsaken} had been acknowledged"
            ),
        ),
        (
            held == "5.04 \"outcome-unknown: no answer in time\"",
            format!("the request that could not be finished within drain_timeout got {held}"),
        ),
    ]
}
