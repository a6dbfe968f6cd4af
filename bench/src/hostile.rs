//! Good load beside hostile datagrams, from clients and from origins.

mod answers;
pub(crate) mod good;
mod malformed;

mod origin;
mod pace;
mod report;
mod requests;
mod stage;
mod strangers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::machine::Machine;
use crate::memory::{self, Memory};
use crate::proxies::Coapway;
use crate::saying::{say, tell};
use crate::{clock, sys};
use good::Good;
use pace::FLAT_OUT;
use report::{Limits, Observed, Phase, Row};
use requests::Targets;
use stage::Stage;
use strangers::Aim;

/// The longest load before anything is measured, and the pause after the flood.
const WARM_UP: Duration = Duration::from_secs(3);
const RECOVERY: Duration = Duration::from_secs(5);

/// Shows that hostile datagrams do not hurt good clients.
///
/// A good load is answered through coapway: first alone, then beside hostile datagrams from clients and
/// from an origin, then beside as many of them as this machine can send, then alone again. The result is
/// a Markdown table and verdicts; the exit code is 1 when one does not hold.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    coapway: Coapway,
    /// Length of the hostile phase, in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Length of the phase without a limit, in seconds; 0 leaves it out.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=600))]
    flat_out: u64,
    /// Length of each phase without hostile datagrams, in seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    quiet: u64,
    /// Hostile datagrams a second; a quarter of them comes from origins.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    rate: u64,
    /// Good requests a second.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..=20_000))]
    good: u32,
    /// Good clients.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: u16,
    /// How many times the quiet P99 the P99 beside hostile datagrams may be.
    #[arg(long, default_value_t = 2.0)]
    factor: f64,
    /// The most memory the proxy may take, in MiB [default: what `coapway check` prints].
    #[arg(long, value_name = "MIB")]
    bound_mib: Option<f64>,
    /// Seed of the hostile datagrams [default: a random one, which is printed].
    #[arg(long)]
    seed: Option<u64>,
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

/// Everybody beside the proxy.
struct Players {
    good: Arc<good::Control>,
    hostile: [Arc<pace::Control>; 2],
}

/// Runs the phases, then prints table and verdicts.
pub(crate) fn run(args: &Args) -> Result<()> {
    let machine = Machine::look();
    let cores = if args.no_pin { None } else { Some((args.proxy_core, args.load_core)) };
    ensure!(cores.is_none() || machine.cores() > 1, "proxy and load need a core each; see --no-pin");
    if let Some((_, core)) = cores {
        sys::pin(core)
            .with_context(|| format!("cannot stay on core {core}; see --load-core and --no-pin"))?;
    }
    sys::raise_open_files()?;
    let stage = Stage::set(&args.coapway, cores.map(|cores| cores.0), cores.map(|cores| cores.1))?;
    let Some(bound) = args.bound_mib.or(stage.bound) else {
        bail!("`coapway check` prints no bound for the memory; name one with --bound-mib");
    };
    let seed = args.seed.unwrap_or_else(random);
    tell!("seed {seed}; {}", stage.printed());
    let limits = Limits { rate: args.rate, factor: args.factor, bound };
    let (rows, died) = args.play(&stage, seed)?;
    // Clients that never acknowledge would hold up its end for as long as it drains.
    stage.proxy.stop(Duration::from_secs(1))?;
    say!("{}", report::table(&rows));
    say!("{}; seed {seed}\n", machine.printed());
    let mut verdicts = report::verdicts(&rows, limits);
    verdicts.push((!died, "the proxy lived to the end".into()));
    for (holds, words) in &verdicts {
        say!("- {}: {words}", if *holds { "holds" } else { "**does not hold**" });
    }
    ensure!(verdicts.iter().all(|(holds, _)| *holds), "not everything holds");
    Ok(())
}

impl Args {
    /// The phases, and whether the proxy ended in one of them.
    fn play(&self, stage: &Stage, seed: u64) -> Result<(Vec<Row>, bool)> {
        let players = Players { good: Arc::default(), hostile: [Arc::default(), Arc::default()] };
        let [clients, origins] = players.hostile.clone();
        let aim = Aim {
            shared: stage.shared,
            other: stage.other,
            targets: Targets { good: stage.good, closed: stage.closed.clone() },
        };
        let load = Good {
            proxy: SocketAddr::V4(stage.shared),
            origin: stage.good,
            clients: self.clients,
            rate: self.good,
            mark: random() as u32,
            phases: Phase::ALL.len(),
        };
        let strangers = strangers::start(aim, seed, clients)?;
        let origin = origin::start(stage.hostile.try_clone()?, seed ^ 1, origins)?;
        let load = good::start(load, Arc::clone(&players.good))?;
        let (mut observed, mut died) = (Vec::new(), false);
        for (index, phase) in Phase::ALL.into_iter().enumerate() {
            let (rate, length) = self.plan(phase);
            if length.is_zero() {
                continue;
            }
            players.good.set_phase(index);
            for (control, part) in players.hostile.iter().zip([3, 1]) {
                control.set_rate(if rate == FLAT_OUT { rate } else { rate * part / 4 });
            }
            match observe(stage, &players, length) {
                Ok(seen) => observed.push((index, phase, seen)),
                Err(error) => {
                    tell!("{error:#}");
                    died = true;
                    break;
                }
            }
        }
        players.hostile.iter().for_each(|control| control.stop());
        for thread in [strangers, origin] {
            thread.join().map_err(|_| anyhow::anyhow!("a generator panicked"))??;
        }
        players.good.stop();
        let mut tallies = load.join().map_err(|_| anyhow::anyhow!("the good load panicked"))??;
        let rows = observed.into_iter().filter_map(|(index, phase, seen)| {
            Some(Row::new(phase, seen, tallies.get_mut(index).map(std::mem::take)?))
        });
        Ok((rows.collect(), died))
    }

    fn plan(&self, phase: Phase) -> (u64, Duration) {
        match phase {
            Phase::WarmUp => (0, WARM_UP.min(Duration::from_secs(self.quiet))),
            Phase::Quiet | Phase::After => (0, Duration::from_secs(self.quiet)),
            Phase::Hostile => (self.rate, Duration::from_secs(self.seconds)),
            Phase::FlatOut => (FLAT_OUT, Duration::from_secs(self.flat_out)),
            Phase::Recovery => (0, if self.flat_out > 0 { RECOVERY } else { Duration::ZERO }),
        }
    }
}

/// Lets a phase pass. Errors: the proxy is gone.
fn observe(stage: &Stage, players: &Players, length: Duration) -> Result<Observed> {
    let pid = stage.proxy.id();
    let sent = || players.hostile.each_ref().map(|control| control.sent());
    let (start, before, lost, cpu) =
        (clock::now(), sent(), memory::lost_at_sockets(pid)?, sys::cpu_time(pid)?);
    let end = start + length;
    loop {
        let left = end.saturating_duration_since(clock::now());
        if left.is_zero() {
            break;
        }
        ensure!(!stage.proxy.ends_within(left)?, "the proxy ended by itself");
    }
    let after = sent();
    let seconds = (clock::now() - start).as_secs_f64();
    Ok(Observed {
        seconds,
        hostile: [after[0] - before[0], after[1] - before[1]],
        lost: memory::lost_at_sockets(pid)?.saturating_sub(lost),
        cpu: (sys::cpu_time(pid)? - cpu).as_secs_f64(),
        answers_ping: stage.answers_ping()?,
        memory: Memory::of(pid)?,
    })
}

/// A number that nobody else has.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
