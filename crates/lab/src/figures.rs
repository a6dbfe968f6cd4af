//! What one run comes to.

use std::time::Duration;

use coapway_time::Instant;
use serde::Serialize;

use crate::exchange::{Exchange, Kind, Outcome};
use crate::path::{Conservation, seconds};
use crate::scenario::{Outage, Pace, Scenario};
use crate::statistics::{Histogram, quantile};

/// One thing that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// In JSON.
    pub key: &'static str,
    /// In tables.
    pub title: &'static str,
    /// How it is written.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// A share, as percents.
    Share,
    /// A plain number with decimals.
    Number,
    /// A count of things, or its mean.
    Count,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less.
    Less,
    /// More.
    More,
    /// Neither.
    Neither,
}

macro_rules! metrics {
    ($($name:ident $title:literal $unit:ident $better:ident;)*) => {
        /// Everything that is measured.
        pub const METRICS: &[Metric] = &[$(
            Metric { key: stringify!($name), title: $title, unit: Unit::$unit, better: Better::$better },
        )*];

        /// The numbers of one run; NaN where there is none.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct Numbers {
            $(pub(crate) $name: f64,)*
        }

        impl Numbers {
            const NONE: Self = Self { $($name: f64::NAN,)* };

            /// In the order of [`METRICS`].
            pub(crate) const fn all(&self) -> [f64; METRICS.len()] {
                [$(self.$name,)*]
            }
        }
    };
}

metrics! {
    requests "requests" Count Neither;
    mean "latency, mean" Seconds Less;
    p50 "latency, P50" Seconds Less;
    p95 "latency, P95" Seconds Less;
    p99 "latency, P99" Seconds Less;
    p999 "latency, P99.9" Seconds Less;
    answered "answered" Share More;
    silent "without any answer" Share Less;
    transmissions "copies per request" Number Less;
    spurious "spurious copies per request" Number Less;
    resent "sent again needlessly" Share Less;
    unknown_posts "POSTs with unknown outcome" Share Less;
    executions "executions per POST" Number Neither;
    executed_twice "POSTs executed more than once" Count Less;
    bytes "bytes per request" Count Less;
    fairness "fairness over clients (Jain)" Number More;
    peak "most copies in one second" Count Less;
    survived "answered of those asked in an outage" Share More;
    recovery "time from an outage's end to their answer" Seconds Less;
}

/// The position of a metric by its key.
pub fn metric(key: &str) -> Option<usize> {
    METRICS.iter().position(|metric| metric.key == key)
}

/// Retries are told apart up to this many.
pub(crate) const MOST_RETRIES: usize = 8;

/// What one run comes to.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) numbers: Numbers,
    /// Of those that were answered.
    pub(crate) latencies: Histogram,
    /// Requests by the number of copies after the first.
    pub(crate) retries: [u64; MOST_RETRIES + 1],
    pub(crate) timeline: Option<Timeline>,
    /// There were so many requests that it ended before its time.
    pub(crate) cut_short: bool,
}

/// What a run leaves behind.
pub(crate) struct Seen<'s> {
    pub(crate) scenario: &'s Scenario,
    pub(crate) exchanges: &'s [Exchange],
    pub(crate) path: [Conservation; 2],
    pub(crate) peak: u32,
    pub(crate) max_wait: Duration,
    pub(crate) cut_short: bool,
}

/// What was learned as time passed, and what there was to learn.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Timeline {
    pub(crate) samples: Vec<Sample>,
    /// When first copies left and how long their answer took, in seconds.
    pub(crate) round_trips: Vec<(f64, f64)>,
    /// One in so many is kept.
    #[serde(skip)]
    every: u32,
    #[serde(skip)]
    heard: u32,
}

/// What was learned at a moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sample {
    /// Seconds.
    pub(crate) at: f64,
    /// Seconds.
    pub(crate) timeout: f64,
    pub(crate) window: u32,
    pub(crate) queued: u32,
}

impl Timeline {
    /// Round trips that are kept.
    const MOST: usize = 600;

    /// Something came back to a first copy.
    pub(crate) fn heard(&mut self, exchange: &Exchange, now: Instant) {
        if self.round_trips.len() >= Self::MOST {
            let mut place = 0;
            self.round_trips.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every = (self.every.max(1)) * 2;
        }
        self.heard += 1;
        if self.heard.is_multiple_of(self.every.max(1)) {
            let took = now.since(exchange.sent).as_secs_f64();
            self.round_trips.push((seconds(exchange.sent), took));
        }
    }
}

impl Figures {
    pub(crate) fn new(seen: &Seen<'_>, timeline: Option<Timeline>) -> Self {
        let since = Instant::ZERO + seen.scenario.warmup;
        let counted: Vec<&Exchange> =
            seen.exchanges.iter().filter(|exchange| exchange.asked >= since).collect();
        let mut latencies: Vec<u32> = counted
            .iter()
            .filter(|exchange| exchange.outcome == Outcome::Answered)
            .map(|exchange| exchange.settled.since(exchange.asked).as_micros().min(u32::MAX.into()) as u32)
            .collect();
        latencies.sort_unstable();
        let mut retries = [0; MOST_RETRIES + 1];
        for exchange in counted.iter().filter(|exchange| exchange.copies > 0) {
            retries[usize::from(exchange.copies - 1).min(MOST_RETRIES)] += 1;
        }
        Self {
            numbers: numbers(seen, &counted, &latencies),
            latencies: Histogram::of(&latencies),
            retries,
            timeline,
            cut_short: seen.cut_short,
        }
    }
}

fn numbers(seen: &Seen<'_>, counted: &[&Exchange], latencies: &[u32]) -> Numbers {
    let all = counted.len() as f64;
    if counted.is_empty() {
        return Numbers { requests: 0.0, ..Numbers::NONE };
    }
    let share =
        |is: &dyn Fn(&Exchange) -> bool| counted.iter().filter(|exchange| is(exchange)).count() as f64 / all;
    let sum =
        |of: &dyn Fn(&Exchange) -> u16| counted.iter().map(|exchange| f64::from(of(exchange))).sum::<f64>();
    let posts = counted.iter().filter(|exchange| exchange.kind == Kind::Post);
    let (count, unknown, executions, twice) = posts.fold((0.0, 0.0, 0.0, 0.0), |sums, post| {
        let is_unknown = post.outcome == Outcome::Unknown;
        (
            sums.0 + 1.0,
            sums.1 + f64::from(u8::from(is_unknown)),
            sums.2 + f64::from(post.executions),
            sums.3 + f64::from(u8::from(post.executions > 1)),
        )
    });
    let of_posts = |number: f64| if count > 0.0 { number / count } else { f64::NAN };
    let at = |share| quantile(latencies, share).map_or(f64::NAN, |micros| f64::from(micros) / 1e6);
    let micros = latencies.iter().map(|&micros| f64::from(micros)).sum::<f64>();
    let bytes = seen.path.iter().map(|way| way.bytes).sum::<u64>() as f64;
    let (survived, recovery) = outages(seen, counted);
    Numbers {
        requests: all,
        mean: if latencies.is_empty() { f64::NAN } else { micros / latencies.len() as f64 / 1e6 },
        p50: at(0.5),
        p95: at(0.95),
        p99: if latencies.len() >= 100 { at(0.99) } else { f64::NAN },
        p999: if latencies.len() >= 1000 { at(0.999) } else { f64::NAN },
        answered: share(&|exchange| exchange.outcome == Outcome::Answered),
        silent: share(&|exchange| matches!(exchange.outcome, Outcome::Silence | Outcome::Open)),
        transmissions: sum(&|exchange| exchange.copies) / all,
        spurious: sum(&Exchange::spurious) / all,
        resent: share(&|exchange| exchange.spurious() > 0),
        unknown_posts: of_posts(unknown),
        executions: of_posts(executions),
        executed_twice: if count > 0.0 { twice } else { f64::NAN },
        bytes: bytes / seen.exchanges.len() as f64,
        fairness: fairness(seen.scenario, counted),
        peak: f64::from(seen.peak),
        survived,
        recovery,
    }
}

/// Jain's index over what clients got: of those that ask at a rate, the share of their requests that was
/// answered; of others, the number.
fn fairness(scenario: &Scenario, counted: &[&Exchange]) -> f64 {
    let mut clients = vec![(0.0, 0.0); scenario.clients.count as usize];
    for exchange in counted {
        if let Some((asked, answered)) = clients.get_mut(exchange.client as usize) {
            *asked += 1.0;
            *answered += f64::from(u8::from(exchange.outcome == Outcome::Answered));
        }
    }
    let got = |&(asked, answered): &(f64, f64)| match scenario.clients.pace {
        Pace::Rate(_) => answered / asked,
        Pace::Think(_) => answered,
    };
    let got: Vec<f64> = clients.iter().filter(|(asked, _)| *asked > 0.0).map(got).collect();
    let (sum, squares) = got.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    if squares > 0.0 { sum * sum / (got.len() as f64 * squares) } else { f64::NAN }
}

/// Of Confirmable requests but POST that were asked in an outage which ends at least a round trip before their
/// time is over: the share that was answered, and how long after its end on average.
fn outages(seen: &Seen<'_>, counted: &[&Exchange]) -> (f64, f64) {
    let path = &seen.scenario.path;
    let outages: Vec<&Outage> = path.up.outages.iter().chain(&path.down.outages).collect();
    if outages.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    let most = seen.max_wait.as_secs_f64() - path.rtt.typical();
    let (mut asked, mut answered, mut took) = (0.0, 0.0, 0.0);
    for exchange in counted.iter().filter(|exchange| exchange.kind == Kind::Get) {
        let at = seconds(exchange.asked);
        let ends = outages.iter().filter_map(|outage| outage.around(at)).map(|(_, ends)| ends);
        let Some(ends) = ends.reduce(f64::max).filter(|ends| ends - at <= most) else { continue };
        asked += 1.0;
        if exchange.outcome == Outcome::Answered {
            answered += 1.0;
            took += (seconds(exchange.settled) - ends).max(0.0);
        }
    }
    (answered / asked, took / answered)
}
