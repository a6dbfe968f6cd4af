//! What exchanges cost that stay open: memory each, and time for the others.

mod held;

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::load::Load;
use crate::memory::{self, Memory};
use crate::process::{Process, free_address};
use crate::proxies::{Coapway, Proxy, this_program};
use crate::saying::{say, tell};
use crate::statistics::Spread;
use crate::sys;
use held::Held;

/// Holds exchanges open and measures the memory of each, and the CPU time of other forwards meanwhile.
///
/// An origin acknowledges at once and answers in the end; each request is of a client of its own. In every
/// repetition coapway is started afresh, once with --few exchanges outstanding and once with --exchanges.
/// Memory is that of the process when they are open, less that after a warm-up.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    coapway: Coapway,
    /// Exchanges outstanding.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1000..=1_000_000))]
    exchanges: u32,
    /// Exchanges outstanding in the run it is compared with.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    few: u32,
    /// Clients of the load beside them.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// Length of the load, in seconds.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Repetitions.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    repetitions: u8,
    /// Fail if an exchange takes more bytes than this beside its datagram.
    #[arg(long, value_name = "BYTES")]
    at_most: Option<f64>,
    /// Fail if a forward takes more than so many times the CPU time it takes beside few exchanges.
    #[arg(long, value_name = "FACTOR")]
    factor: Option<f64>,
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

struct Observed {
    /// Bytes of memory for each exchange.
    bytes: f64,
    /// Bytes of a request.
    request: usize,
    /// CPU µs of a forward.
    cpu: f64,
    /// Datagrams lost in the proxy's socket buffers.
    lost: u64,
}

/// Measures, then prints the table.
pub(crate) fn run(args: &Args) -> Result<()> {
    let (proxy_core, load_core) =
        if args.no_pin { (None, None) } else { (Some(args.proxy_core), Some(args.load_core)) };
    if let Some(core) = load_core {
        sys::pin(core)
            .with_context(|| format!("cannot stay on core {core}; see --load-core and --no-pin"))?;
    }
    let origin = free_address()?;
    let command = this_program(&["origin", "--listen", &origin.to_string(), "--seconds", "86400"])?;
    let mut echo = Process::start(&command, load_core, false)?;
    echo.wait_until_it_forwards(origin, origin, Duration::from_secs(10)).context("the origin")?;
    let proxy = args
        .coapway
        .proxy()?
        .with([format!("--set=limits.fetches={}", 2 * args.exchanges), "--set=upstream.max_wait=1h".into()]);
    let [mut few, mut many] = [Vec::new(), Vec::new()];
    for repetition in 1..=args.repetitions {
        for (count, runs) in [(args.few, &mut few), (args.exchanges, &mut many)] {
            let observed = args.measure(&proxy, proxy_core, origin, count as usize)?;
            tell!(
                "#{repetition} {count:>7} outstanding: {:.0} bytes each, {:.2} µs CPU a forward, {} lost",
                observed.bytes,
                observed.cpu,
                observed.lost
            );
            runs.push(observed);
        }
    }
    args.report(&few, &many)
}

impl Args {
    fn measure(
        &self,
        proxy: &Proxy,
        core: Option<usize>,
        origin: SocketAddr,
        count: usize,
    ) -> Result<Observed> {
        let listen = free_address()?;
        let command = proxy.command(listen, origin);
        let mut process = Process::start(&command, core, proxy.is_quiet)?;
        process.wait_until_it_forwards(listen, origin, Duration::from_secs(10))?;
        let pid = process.id();
        let load = |clients, warm_up, seconds, requests| Load {
            proxy: listen,
            origin,
            clients,
            warm_up: Duration::from_millis(warm_up),
            window: Duration::from_secs(seconds),
            requests,
        };
        let (outcome, _) = load(self.few.min(100) as u16, 0, 5, 5000).run(|| Ok(()))?;
        ensure!(outcome.is_sound(), "the warm-up failed: {}", outcome.complaint.unwrap_or_default());
        let before = Memory::of(pid)?;
        let mut held = Held::new(v4(listen)?)?;
        held.open(count)?;
        // Clients are told when the origin's answer does not come soon.
        held.listen(Duration::from_millis(1500))?;
        let after = Memory::of(pid)?;
        let (outcome, [start, end]) =
            load(self.clients, 200, self.seconds, 10_000_000).run(|| Ok(sys::cpu_time(pid)?))?;
        ensure!(outcome.is_sound(), "the load failed: {}", outcome.complaint.unwrap_or_default());
        held.close()?;
        let lost = memory::lost_at_sockets(pid)?;
        process.stop(Duration::from_secs(10))?;
        Ok(Observed {
            bytes: after.now.saturating_sub(before.now) as f64 * 1024.0 / count as f64,
            request: held.request,
            cpu: (end - start).as_secs_f64() * 1e6 / outcome.answered.max(1) as f64,
            lost,
        })
    }

    fn report(&self, few: &[Observed], many: &[Observed]) -> Result<()> {
        say!("| outstanding | bytes each | beside its datagram | CPU µs/forward | × few | lost in buffers |");
        say!("|--:|--:|--:|--:|--:|--:|");
        let spread = |runs: &[Observed], value: fn(&Observed) -> f64| Spread::of(runs.iter().map(value));
        let ratios = few.iter().zip(many).map(|(few, many)| many.cpu / few.cpu);
        let (Some(ratio), Some(beside)) =
            (Spread::of(ratios), spread(many, |run| run.bytes - run.request as f64))
        else {
            bail!("nothing was measured")
        };
        for (count, runs, bytes, ratio_printed) in
            [(self.few, few, None, "1.00".into()), (self.exchanges, many, Some(beside), ratio.printed(2))]
        {
            let printed =
                |value: Option<Spread>, digits| value.map_or("–".into(), |value| value.printed(digits));
            say!(
                "| {count} | {} | {} | {} | {ratio_printed} | {} |",
                printed(bytes.and_then(|_| spread(runs, |run| run.bytes)), 0),
                printed(bytes, 0),
                printed(spread(runs, |run| run.cpu), 2),
                runs.iter().map(|run| run.lost).sum::<u64>(),
            );
        }
        say!("\nMedian (least–greatest) of {} repetitions.", self.repetitions);
        ensure!(
            self.at_most.is_none_or(|limit| beside.median <= limit),
            "{:.0} bytes for each exchange beside its datagram",
            beside.median
        );
        ensure!(
            self.factor.is_none_or(|limit| ratio.median <= limit),
            "a forward takes {:.2} times the CPU time it takes beside few exchanges",
            ratio.median
        );
        Ok(())
    }
}

fn v4(address: SocketAddr) -> Result<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => bail!("an IPv4 address was asked for"),
    }
}
