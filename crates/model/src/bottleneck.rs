//! Many clients behind one queue that never drops: each copy is served, needed or not.
//!
//! With N clients and a service time s, an exchange that takes k copies lasts k·N·s, and takes k copies because
//! it lasts so long: each such k is a fixed point, of which one share in k is useful work.

use std::time::Duration;

use coapway_time::Instant;

use crate::client::Client;
use crate::engine::Engine;
use crate::fifo::Fifo;
use crate::policy::Policy;
use crate::random::stream;
use crate::tally::Tally;

/// Who sends, and through what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Clients, each with one exchange after the other.
    pub clients: usize,
    /// How long one answer occupies the link.
    pub service: Duration,
    /// Work that lies in the queue at the start.
    pub backlog: Duration,
    /// Clients begin evenly spread over this time.
    pub spread: Duration,
    /// After so many exchanges a client forgets what it learned.
    pub reset_after: Option<u64>,
}

impl Cell {
    /// 100 bytes at 30 kbit/s.
    pub const SERVICE: Duration = Duration::from_micros(26_700);

    /// So many clients on a link of 30 kbit/s with nothing in its queue, who begin within 10 s.
    pub const fn of(clients: usize) -> Self {
        Self {
            clients,
            service: Self::SERVICE,
            backlog: Duration::ZERO,
            spread: Duration::from_secs(10),
            reset_after: None,
        }
    }
}

/// How it went between two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Completed exchanges for each answer that was carried: useful work.
    pub goodput: f64,
    /// The mean time of completed exchanges.
    pub mean: Duration,
    /// Completed exchanges.
    pub completed: u64,
    /// Exchanges that failed.
    pub failed: u64,
}

/// How it goes from `from` to `until`, both since the start.
pub fn steady(policy: Policy, cell: Cell, seed: u64, from: Duration, until: Duration) -> Steady {
    let mut engine = engine(policy, cell, seed);
    engine.run(Instant::ZERO + from, u64::MAX);
    let before = (engine.tally.answers, engine.tally.completed, engine.tally.failed);
    engine.run(Instant::ZERO + until, u64::MAX);
    let tally = engine.tally;
    let answers = tally.answers - before.0;
    let (completed, failed) = (tally.completed - before.1, tally.failed - before.2);
    let latencies = &tally.latencies[before.1 as usize..];
    let sum: u128 = latencies.iter().map(|&micros| u128::from(micros)).sum();
    Steady {
        goodput: completed as f64 / answers.max(1) as f64,
        mean: Duration::from_secs_f64(sum as f64 / 1e6 / completed.max(1) as f64),
        completed,
        failed,
    }
}

/// All that happens until `until`.
pub fn run(policy: Policy, cell: Cell, seed: u64, until: Duration) -> Tally {
    let mut engine = engine(policy, cell, seed);
    engine.run(Instant::ZERO + until, u64::MAX);
    engine.end()
}

fn engine(policy: Policy, cell: Cell, seed: u64) -> Engine<Fifo> {
    let client = |number| Client::new(policy, stream(seed, [number as u64, 0, 0]), cell.reset_after);
    Engine::new((0..cell.clients).map(client).collect(), cell.spread, Fifo::new(cell.service, cell.backlog))
}
