//! One client, one exchange after the other, over a path that loses each datagram with the same probability.

use std::time::Duration;

use coapway_time::Instant;

use crate::client::Client;
use crate::engine::{Engine, Fate, Name, Path};
use crate::policy::Policy;
use crate::random::{normal, stream};
use crate::tally::Tally;

/// Round-trip times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    /// Always the same.
    Constant(Duration),
    /// Lognormal.
    Lognormal {
        /// Half are shorter.
        median: Duration,
        /// The deviation of the logarithm.
        sigma: f64,
        /// Whether all copies of an exchange meet the same one.
        shared: bool,
    },
}

impl Delay {
    /// A median of 100 ms, drawn for each copy.
    pub const WIFI: Self = Self::Lognormal { median: Duration::from_millis(100), sigma: 0.5, shared: false };
    /// A median of 1.6 s and much scatter, drawn for each copy.
    pub const NB_IOT: Self =
        Self::Lognormal { median: Duration::from_millis(1600), sigma: 0.8, shared: false };
    /// The same, drawn for each exchange.
    pub const NB_IOT_SHARED: Self =
        Self::Lognormal { median: Duration::from_millis(1600), sigma: 0.8, shared: true };
}

/// A path that loses at random.
#[derive(Clone, Copy, Debug)]
pub struct Lossy {
    /// The probability that a datagram gets lost, the same for both directions.
    pub loss: f64,
    /// How long a request and its answer take.
    pub delay: Delay,
    /// Where luck comes from: a copy of an exchange has the same for every policy.
    pub seed: u64,
}

impl Path for Lossy {
    fn carry(&mut self, name: Name, now: Instant) -> Fate {
        let Name { client, exchange, copy } = name;
        let mut random = stream(self.seed, [client as u64, exchange, copy as u64]);
        let lost = [random.f64() < self.loss, random.f64() < self.loss];
        let delay = match self.delay {
            Delay::Constant(delay) => delay,
            Delay::Lognormal { median, sigma, shared } => {
                let drawn = match shared {
                    true => normal(&mut stream(self.seed ^ 1, [client as u64, exchange, 0])),
                    false => normal(&mut random),
                };
                median.mul_f64((sigma * drawn).exp())
            }
        };
        match lost {
            [true, _] => Fate::RequestLost,
            [_, true] => Fate::AnswerLost,
            [false, false] => Fate::Answered(now + delay),
        }
    }
}

/// One row of the table of random loss.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Of which policy.
    pub policy: &'static str,
    /// The mean time of those that were acknowledged.
    pub mean: Duration,
    /// Half of them took no longer.
    pub p50: Duration,
    /// 95 % of them.
    pub p95: Duration,
    /// 99 % of them.
    pub p99: Duration,
    /// 99.9 % of them.
    pub p999: Duration,
    /// Copies for each exchange, pings excluded.
    pub copies: f64,
    /// Pings for each exchange.
    pub pings: f64,
    /// Copies for each exchange that left although an answer to an earlier one was on its way.
    pub spurious: f64,
    /// The share of exchanges that failed.
    pub failed: f64,
}

/// One client and `exchanges` exchanges over a path with a median of 100 ms (σ = 0.5).
pub fn row(policy: Policy, loss: f64, seed: u64, exchanges: u64) -> Row {
    row_over(policy, Lossy { loss, delay: Delay::WIFI, seed }, exchanges)
}

/// The same over any path.
pub fn row_over(policy: Policy, path: Lossy, exchanges: u64) -> Row {
    let tally = run(policy, path, exchanges);
    let [p50, p95, p99, p999] = tally.quantiles([0.5, 0.95, 0.99, 0.999]);
    Row {
        policy: policy.name,
        mean: tally.mean(),
        p50,
        p95,
        p99,
        p999,
        copies: tally.per_exchange(tally.copies),
        pings: tally.per_exchange(tally.pings),
        spurious: tally.per_exchange(tally.spurious),
        failed: tally.per_exchange(tally.failed),
    }
}

/// All that happens in `exchanges` exchanges.
pub fn run(policy: Policy, path: Lossy, exchanges: u64) -> Tally {
    let client = Client::new(policy, stream(path.seed, [u64::MAX, 0, 0]), None);
    let mut engine = Engine::new(vec![client], Duration::ZERO, path);
    engine.run(Instant::FAR_FUTURE, exchanges);
    engine.end()
}
