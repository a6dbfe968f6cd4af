//! How many datagrams are due, and how many left.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// The most datagrams of one batch.
pub(super) const BATCH: usize = 64;
/// The rate that stands for as many as possible.
pub(super) const FLAT_OUT: u64 = u64::MAX;
/// What a generator may make up for after it was held up, in seconds of its rate.
const BACKLOG: f64 = 0.25;

/// What the phases tell a generator, and what it tells them.
#[derive(Default)]
pub(super) struct Control {
    rate: AtomicU64,
    sent: AtomicU64,
    stopped: AtomicBool,
}

impl Control {
    /// From now on `rate` datagrams a second, or [`FLAT_OUT`].
    pub(super) fn set_rate(&self, rate: u64) {
        self.rate.store(rate, Ordering::Relaxed);
    }

    /// Datagrams that left so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Ends the generator.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Turns a rate and the time that passes into datagrams.
pub(super) struct Pace<'a> {
    control: &'a Control,
    last: Instant,
    /// Datagrams that may leave; below zero when more than that left.
    credit: f64,
}

impl<'a> Pace<'a> {
    pub(super) fn new(control: &'a Control, now: Instant) -> Self {
        Self { control, last: now, credit: 0.0 }
    }

    /// How many datagrams are to leave now, 0 to [`BATCH`].
    pub(super) fn due(&mut self, now: Instant) -> usize {
        let rate = self.control.rate.load(Ordering::Relaxed);
        let passed = now.saturating_duration_since(self.last).as_secs_f64();
        self.last = now;
        if rate == FLAT_OUT {
            self.credit = 0.0;
            return BATCH;
        }
        let rate = rate as f64;
        self.credit = (self.credit + rate * passed).min(rate * BACKLOG);
        self.credit.clamp(0.0, BATCH as f64) as usize
    }

    /// So many left.
    pub(super) fn left(&mut self, datagrams: usize) {
        self.credit -= datagrams as f64;
        self.control.sent.fetch_add(datagrams as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock;

    #[test]
    fn keeps_the_rate_over_a_second() {
        let (control, start) = (Control::default(), clock::now());
        control.set_rate(20_000);
        let mut pace = Pace::new(&control, start);
        for step in 1..=1000 {
            let due = pace.due(start + Duration::from_millis(step));
            pace.left(due);
        }
        assert!((19_990..=20_000).contains(&control.sent()), "{}", control.sent());
    }

    #[test]
    fn makes_up_for_a_quarter_of_a_second_at_most() {
        let (control, start) = (Control::default(), clock::now());
        control.set_rate(1000);
        let mut pace = Pace::new(&control, start);
        let later = start + Duration::from_secs(100);
        loop {
            match pace.due(later) {
                0 => break,
                due => pace.left(due),
            }
        }
        assert_eq!(control.sent(), 250);
    }

    #[test]
    fn flat_out_is_always_a_batch_and_silence_none() {
        let (control, start) = (Control::default(), clock::now());
        let mut pace = Pace::new(&control, start);
        assert_eq!(pace.due(start + Duration::from_secs(1)), 0);
        control.set_rate(FLAT_OUT);
        assert_eq!(pace.due(start), BATCH);
    }
}
