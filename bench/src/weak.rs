//! A link that loses datagrams, on real sockets and in the simulator.

mod fate;
mod figures;
mod load;
mod plan;
mod relay;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use coapway_lab::{DEFAULT, Policy};

use crate::hostile::good::Tally;
use crate::hostile::random;
use crate::machine::{Busy, Machine};
use crate::process::{Process, free_address};
use crate::proxies::{Coapway, Proxy, this_program};
use crate::saying::{say, tell};
use crate::{clock, sys};
use figures::Question;
use load::Front;
use plan::Plan;
use relay::{Passed, Relay};
use report::Cell;

/// Holds coapway on a link that loses datagrams against what its simulator predicts.
///
/// Clients ask several origins through a proxy, each behind a link of its own that loses and delays datagrams. The
/// simulator then plays the same: once with the very same requests and the same fate of each copy, and once more by
/// other chance. Peers get the same requests over links with the same fates. All losses and proxies run at the same
/// time. The result is a Markdown table and verdicts; the exit code is 1 when one does not hold.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    coapway: Coapway,
    /// What is lost in each direction, in percent.
    #[arg(long, value_delimiter = ',', num_args = 1.., default_values_t = [1.0, 5.0, 15.0], value_parser = percent)]
    loss: Vec<f64>,
    /// How long each direction takes, in milliseconds.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    delay: u64,
    /// Origins, each behind a link of its own; what is learned of one says nothing of another.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u8).range(2..=250))]
    origins: u8,
    /// Clients of each origin.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=250))]
    clients: u8,
    /// Requests a second to each origin, at random.
    #[arg(long, default_value_t = 5.0, value_parser = rate)]
    rate: f64,
    /// For how long clients ask, in seconds.
    #[arg(long, default_value_t = 240, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Seed of requests and losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The policy of coapway and of the simulation: NAME or NAME,key=value,… as for `coapway simulate`.
    #[arg(long, value_name = "POLICY", default_value = DEFAULT)]
    policy: String,
    /// Simulated runs by other chance, of one origin each.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    runs: u32,
    /// How far from 1 the ratios of mean and P95 may be.
    ///
    /// By the same requests and losses they must be; by other chance they must not be further for sure.
    #[arg(long, default_value_t = 0.15)]
    within: f64,
    /// A further proxy: NAME=COMMAND with {port}; may be repeated.
    ///
    /// --peer 'libcoap=coap-server-notls -A 127.0.0.1 -p {port} -P ,x'
    #[arg(long = "peer", value_name = "NAME=COMMAND")]
    peers: Vec<Proxy>,
}

/// Measures, simulates, and prints table and verdicts.
pub(crate) fn run(args: &Args) -> Result<()> {
    let machine = Machine::look();
    sys::raise_open_files()?;
    let policy = Policy::parse(&args.policy, &[]).map_err(|problem| anyhow!("{problem}"))?;
    let settings = policy.settings.iter().map(|setting| format!("--set=upstream.{setting}"));
    let proxies: Vec<Proxy> =
        [args.coapway.proxy()?.with(settings)].into_iter().chain(args.peers.iter().cloned()).collect();
    let length = Duration::from_secs(args.seconds);
    let plan = Arc::new(Plan::new(args.seed, args.origins, args.clients, args.rate, length));
    let busy = (Busy::now(), clock::now());
    let measured = args.measure(&proxies, &plan)?;
    let used = (Busy::now().used - busy.0.used) / (clock::now() - busy.1).as_secs_f64();

    let losses: Vec<f64> = args.loss.iter().map(|percent| percent / 100.0).collect();
    let question = Question {
        seed: args.seed,
        rate: args.rate,
        length,
        round_trip: 2 * Duration::from_millis(args.delay),
        losses: losses.clone(),
        others: args.runs,
        threads: machine.cores(),
    };
    let predictions = question.ask(&plan, policy)?;
    let mut cells = Vec::new();
    let mut notes = Vec::new();
    let mut measured = measured.into_iter();
    for (&loss, predicted) in losses.iter().zip(predictions) {
        let mut of_proxies = Vec::new();
        for (proxy, (mut tallies, mut passed)) in proxies.iter().zip(measured.by_ref()) {
            notes.push(report::passed(loss, &proxy.name, &mut passed));
            notes.extend(faults(&tallies));
            let links = tallies.iter_mut().zip(&passed.copies);
            let runs = links.map(|(tally, copies)| figures::measured(tally, *copies)).collect();
            of_proxies.push((proxy.name.clone(), runs));
        }
        cells.push(Cell { loss, measured: of_proxies, predicted });
    }
    say!("{}", report::table(&cells));
    say!(
        "{} requests to {} origins in {} s, {} ms there and back; {} simulated runs by other chance; seed {}, policy {}; \
         ± is the 95 % confidence interval over links or runs\n{}; {used:.2} cores were in use on average\n",
        plan.requests.len(),
        args.origins,
        args.seconds,
        2 * args.delay,
        args.runs,
        args.seed,
        args.policy,
        machine.printed()
    );
    notes.iter().for_each(|note| say!("- {note}"));
    say!("");
    let verdicts: Vec<_> = cells.iter().flat_map(|cell| cell.verdicts(args.within)).collect();
    for (holds, words) in &verdicts {
        say!("- {}: {words}", if *holds { "holds" } else { "**does not hold**" });
    }
    ensure!(verdicts.iter().all(|(holds, _)| *holds), "not everything holds");
    Ok(())
}

impl Args {
    /// What came of each proxy, loss by loss.
    fn measure(&self, proxies: &[Proxy], plan: &Arc<Plan>) -> Result<Vec<(Vec<Tally>, Passed)>> {
        let target = free_address()?;
        let command = this_program(&["origin", "--listen", &target.to_string(), "--seconds", "86400"])?;
        let mut origin = Process::start(&command, None, false)?;
        origin.wait_until_it_forwards(target, target, Duration::from_secs(10)).context("the origin")?;
        let losses: Vec<f64> =
            self.loss.iter().flat_map(|percent| proxies.iter().map(move |_| percent / 100.0)).collect();
        let relay = Relay::start(plan, &losses, Duration::from_millis(self.delay), target)?;
        let (mut processes, mut fronts) = (Vec::new(), Vec::new());
        for (proxy, origins) in proxies.iter().cycle().zip(&relay.addresses) {
            let listen = free_address()?;
            let command = proxy.command(listen, target);
            let mut process = Process::start(&command, None, proxy.is_quiet)?;
            process
                .wait_until_it_forwards(listen, target, Duration::from_secs(10))
                .with_context(|| format!("`{}`", command.join(" ")))?;
            processes.push(process);
            fronts.push(Front { proxy: listen, origins: origins.clone() });
        }
        tell!("{} requests to each of {} proxies, for {} s", plan.requests.len(), fronts.len(), self.seconds);
        let tallies = load::run(plan, &fronts, random() as u32)?;
        let passed = relay.finish()?;
        for process in processes {
            process.stop(Duration::from_secs(5))?;
        }
        Ok(tallies.into_iter().zip(passed).collect())
    }
}

/// Other answers than the right ones, in words.
fn faults(tallies: &[Tally]) -> Option<String> {
    let mut counted = BTreeMap::<&str, u64>::new();
    for (words, count) in tallies.iter().flat_map(|tally| &tally.faults) {
        *counted.entry(words).or_default() += count;
    }
    let silent: u64 = tallies.iter().map(|tally| tally.unanswered).sum();
    let said = counted.iter().map(|(words, count)| format!("{count} × {words}"));
    let silence = (silent > 0).then(|| format!("{silent} without answer"));
    let parts: Vec<String> = said.chain(silence).collect();
    (!parts.is_empty()).then(|| format!("  {}", parts.join("; ")))
}

fn percent(text: &str) -> Result<f64, String> {
    number(text, 0.0, 60.0)
}

fn rate(text: &str) -> Result<f64, String> {
    number(text, 0.01, 1000.0)
}

fn number(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(format!("{least} to {most} is possible")) }
}
