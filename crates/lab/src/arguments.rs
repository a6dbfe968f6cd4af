//! The command line of `coapway simulate`.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use crate::scenario::{MOST_REQUESTS, Mix};

/// What is simulated, and how it is shown.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// A scenario by name, a family like `outage*`, `all`, or a file ending in .toml.
    #[arg(value_name = "SCENARIO")]
    pub scenario: Vec<String>,
    /// An estimator or profile by name, perhaps with settings of `[upstream]` behind it
    /// (p95,max_wait=20s), or a file with `[upstream]`; may be repeated. The first is what the others are
    /// compared with. Without it: default and rfc7252.
    #[arg(long, value_name = "NAME|FILE")]
    pub policy: Vec<String>,
    /// Any key of the configuration for all policies, e.g. upstream.max_wait=60s; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Requests a second, all clients together, whatever the scenario says; each load is a table.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = load)]
    pub load: Vec<f64>,
    /// Shares of GET, POST and Non-confirmable GET, like 70,20,10; may be repeated, each is a table.
    #[arg(long, value_name = "GET,POST,NON", value_parser = mix)]
    pub mix: Vec<Mix>,
    /// Where all chance comes from: one number gives one output, to the byte.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Runs of each policy, each with chance of its own.
    #[arg(long, value_name = "N", default_value = "10", value_parser = count::<10_000>)]
    pub runs: u32,
    /// For how long clients ask, e.g. 10min, whatever the scenario says.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// What is asked before this does not count, whatever the scenario says, e.g. 2min: what a cold start costs is
    /// the difference.
    #[arg(long, value_name = "TIME", value_parser = warmup)]
    pub warmup: Option<Duration>,
    /// Requests of each run at most; without it what the scenario says, or 2000000.
    #[arg(long, value_name = "N", value_parser = count::<MOST_REQUESTS>)]
    pub requests: Option<u32>,
    /// Threads at work; as many as there are cores without it. The output does not depend on it.
    #[arg(long, value_name = "N", value_parser = count::<256>)]
    pub threads: Option<u32>,
    /// Everything that was measured, as JSON.
    #[arg(long)]
    pub json: bool,
    /// Draw latencies, retries, timeouts over time, and what speed costs; may be repeated.
    #[arg(long, value_name = "FILE.svg|FILE.png")]
    pub plot: Vec<PathBuf>,
    /// Forward records, - for standard input: the paths seen there are simulated, one per upstream.
    #[arg(long, value_name = "RECORDS")]
    pub replay: Option<PathBuf>,
    /// Only this upstream of the records.
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub upstream: Option<String>,
    /// Timers alone under random loss, without `max_wait`, span and window, and beside them the same
    /// through the proxy: 5 and 15 % lost in each direction, one client, 25000 requests a run.
    #[arg(
        long,
        conflicts_with_all = ["scenario", "policy", "load", "mix", "duration", "warmup", "plot", "replay", "list", "show"]
    )]
    pub model: bool,
    /// Which scenarios and policies there are.
    #[arg(long)]
    pub list: bool,
    /// Print the file of a scenario, to begin one of your own with.
    #[arg(long, value_name = "NAME")]
    pub show: Option<String>,
    /// No progress bar.
    #[arg(long)]
    pub quiet: bool,
}

impl Arguments {
    /// Threads at work.
    pub(crate) fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        self.threads.map_or_else(cores, |threads| threads as usize)
    }
}

fn count<const MOST: u32>(text: &str) -> Result<u32, String> {
    let count = text.trim().parse().ok().filter(|count| (1..=MOST).contains(count));
    count.ok_or_else(|| format!("a whole number, 1 to {MOST}"))
}

fn load(text: &str) -> Result<f64, String> {
    let rate = text.trim().parse::<f64>().ok().filter(|rate| (0.0001..=100_000.0).contains(rate));
    rate.ok_or_else(|| "requests a second, 0.0001 to 100000".to_owned())
}

fn mix(text: &str) -> Result<Mix, String> {
    let parts: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    let Some([get, post, non]) = parts.as_deref() else {
        return Err("three numbers, like 70,20,10".to_owned());
    };
    let all = get + post + non;
    let fine = [get, post, non].iter().all(|share| (0.0..=1e6).contains(*share)) && all > 0.0;
    if fine {
        Ok(Mix { post: post / all, non: non / all })
    } else {
        Err("three numbers from 0 on, not all 0".to_owned())
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let seconds = crate::scenario::seconds(text).filter(|seconds| (1.0..=604_800.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a time with its unit, 1s to 168h".to_owned())
}

fn warmup(text: &str) -> Result<Duration, String> {
    let seconds = crate::scenario::seconds(text).filter(|seconds| (0.0..=604_800.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a time with its unit, 0s to 168h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_need_not_add_up_to_a_hundred() {
        assert_eq!(mix("7,2,1"), Ok(Mix { post: 0.2, non: 0.1 }));
        assert_eq!(mix("100,0,0"), Ok(Mix { post: 0.0, non: 0.0 }));
        assert!(["1,2", "0,0,0", "-1,1,1", "a,b,c", "NaN,1,1"].iter().all(|text| mix(text).is_err()));
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// Each flag that takes a value, with this one.
    fn with_each(value: &str) -> Vec<(String, Result<Line, clap::Error>)> {
        let command = <Line as clap::CommandFactory>::command();
        let flags = command.get_arguments().filter(|flag| flag.get_action().takes_values());
        let flags = flags.filter_map(|flag| flag.get_long().map(str::to_owned));
        let parse = |flag: String| {
            let parsed = <Line as clap::Parser>::try_parse_from(["simulate", &format!("--{flag}={value}")]);
            (flag, parsed)
        };
        flags.map(parse).collect()
    }

    #[test]
    fn every_number_has_an_upper_end_and_is_told_it() {
        // Names and files may be called by a number, and each is a seed.
        let texts = ["policy", "set", "plot", "replay", "upstream", "show"];
        let mut numbers = Vec::new();
        for value in ["4000000000", "18446744073709551615", "1e99"] {
            for (flag, parsed) in with_each(value).into_iter().filter(|(flag, _)| !texts.contains(&&**flag)) {
                match parsed {
                    Ok(_) => assert_eq!(flag, "seed", "{value} is taken"),
                    Err(_) if flag == "seed" => assert_eq!(value, "1e99"),
                    Err(error) => {
                        let told = error.to_string();
                        let names_range =
                            ["a whole number, 1 to ", "0.0001 to 100000", "s to 168h", "three numbers"];
                        assert!(names_range.iter().any(|range| told.contains(range)), "{told}");
                        assert!(told.contains(&format!("--{flag} ")), "{told}");
                    }
                }
                numbers.push(flag);
            }
        }
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers, ["duration", "load", "mix", "requests", "runs", "seed", "threads", "warmup"]);
        for (flag, parsed) in with_each("0").into_iter().filter(|(flag, _)| !texts.contains(&&**flag)) {
            assert_eq!(parsed.is_ok(), flag == "seed", "{flag}");
        }
    }

    #[test]
    fn loads_and_times_have_a_range() {
        assert_eq!((load("20"), time("10min")), (Ok(20.0), Ok(Duration::from_secs(600))));
        assert!(load("0").is_err() && load("x").is_err() && time("10").is_err() && time("0s").is_err());
    }
}
