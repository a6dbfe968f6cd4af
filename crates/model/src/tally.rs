//! What happened, counted.

use std::time::Duration;

/// What happened, counted; times in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Exchanges that began.
    pub begun: u64,
    /// Exchanges that were acknowledged.
    pub completed: u64,
    /// Exchanges whose copies were all in vain.
    pub failed: u64,
    /// Exchanges under way at the end.
    pub under_way: u64,
    /// Copies that were sent, pings excluded.
    pub copies: u64,
    /// Pings that were sent.
    pub pings: u64,
    /// Copies and pings that got lost on their way.
    pub requests_lost: u64,
    /// Copies and pings that arrived at the origin.
    pub executed_copies: u64,
    /// Answers that got lost on their way back.
    pub answers_lost: u64,
    /// Answers that arrived.
    pub answers: u64,
    /// Answers on their way at the end.
    pub in_flight: u64,
    /// Copies that left although an answer to an earlier one was on its way.
    pub spurious: u64,
    /// Exchanges of which a copy arrived at the origin.
    pub executed: u64,
    /// Those of them that failed.
    pub executed_and_failed: u64,
    /// Timers that were set, went off, went off in vain, and are still to go off.
    pub timers: Timers,
    /// Exchanges by retransmissions, of those that were completed.
    pub by_retransmissions: Vec<u64>,
    /// How long completed exchanges took, in order.
    pub latencies: Vec<u64>,
    /// When the last of it happened.
    pub now: Duration,
    /// A hash over all that happened.
    pub hash: u64,
}

/// Timers by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    /// Set.
    pub set: u64,
    /// Went off.
    pub fired: u64,
    /// Went off when nothing waited for them any more.
    pub cancelled: u64,
    /// Are still to go off.
    pub pending: u64,
}

impl Tally {
    pub(crate) fn note(&mut self, what: u64, at: u64) {
        self.now = Duration::from_micros(at);
        // FNV-1a, a word at a time.
        for word in [what, at] {
            self.hash = (self.hash ^ word).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Every sum that must be right whatever happens.
    ///
    /// Errors: what contradicts what.
    pub fn check(&self) -> Result<(), String> {
        let same = |what: &str, one: u64, other: u64| match one == other {
            true => Ok(()),
            false => Err(format!("{what}: {one} and {other} in {self:?}")),
        };
        let Timers { set, fired, cancelled, pending } = self.timers;
        same("exchanges begun and accounted for", self.begun, self.completed + self.failed + self.under_way)?;
        same(
            "datagrams sent and arrived or lost",
            self.copies + self.pings,
            self.executed_copies + self.requests_lost,
        )?;
        same(
            "answers made and accounted for",
            self.executed_copies,
            self.answers + self.answers_lost + self.in_flight,
        )?;
        same("timers set and accounted for", set, fired + cancelled + pending)?;
        same("copies sent and exchanges with them", self.timers.set, self.copies)?;
        same("latencies and completed exchanges", self.latencies.len() as u64, self.completed)
    }

    /// The mean time of completed exchanges.
    pub fn mean(&self) -> Duration {
        let sum: u128 = self.latencies.iter().map(|&micros| u128::from(micros)).sum();
        Duration::from_secs_f64(sum as f64 / 1e6 / self.latencies.len().max(1) as f64)
    }

    /// Quantiles of the time of completed exchanges, nearest rank.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [Duration; N] {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        shares.map(|share| {
            let rank = ((share * sorted.len() as f64).ceil() as usize).max(1);
            Duration::from_micros(sorted.get(rank - 1).copied().unwrap_or_default())
        })
    }

    /// `count` for each exchange that is over.
    pub fn per_exchange(&self, count: u64) -> f64 {
        count as f64 / (self.completed + self.failed).max(1) as f64
    }
}
