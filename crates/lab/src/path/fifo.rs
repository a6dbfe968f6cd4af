//! One queue in front of something that sends at a rate, shared by all who use the direction.

use std::collections::VecDeque;
use std::time::Duration;

use coapway_time::Instant;

use super::{duration, seconds};
use crate::dice::Dice;
use crate::scenario::CrossLaw;

/// A queue with a rate.
#[derive(Debug)]
pub(super) struct Fifo {
    /// Bits a second.
    rate: f64,
    /// Bytes.
    buffer: Option<u64>,
    busy_until: Instant,
    cross: Option<Cross>,
    /// When those that wait will have left.
    departures: VecDeque<Instant>,
}

/// Foreign traffic, up to the next of its datagrams.
#[derive(Debug)]
struct Cross {
    law: CrossLaw,
    dice: Dice,
    /// Seconds from one datagram to the next.
    gap: f64,
    next: f64,
    on_until: f64,
}

impl Cross {
    fn new(law: CrossLaw, rate: f64, mut dice: Dice) -> Self {
        let gap = law.size as f64 * 8.0 / (rate * law.share);
        let next = dice.exponential(law.off);
        let on_until = next + dice.exponential(law.on);
        Self { law, dice, gap, next, on_until }
    }

    /// When its next datagram comes, if that is not after `now`.
    fn poll(&mut self, now: f64) -> Option<f64> {
        let at = self.next;
        if at > now {
            return None;
        }
        self.next += self.gap;
        if self.next > self.on_until {
            self.next = self.on_until + self.dice.exponential(self.law.off);
            self.on_until = self.next + self.dice.exponential(self.law.on);
        }
        Some(at)
    }
}

impl Fifo {
    pub(super) fn new(rate: f64, buffer: Option<u64>, cross: Option<CrossLaw>, dice: Dice) -> Self {
        let cross = cross.map(|law| Cross::new(law, rate, dice));
        Self { rate, buffer, busy_until: Instant::ZERO, cross, departures: VecDeque::new() }
    }

    /// A datagram comes; returns when it has left, or nothing when it found no room.
    pub(super) fn push(&mut self, size: u64, now: Instant) -> Option<Instant> {
        while let Some(cross) = &mut self.cross {
            let Some(at) = cross.poll(seconds(now)) else { break };
            let size = cross.law.size;
            self.enter(size, Instant::ZERO + duration(at));
        }
        let over = self.enter(size, now)?;
        while self.departures.front().is_some_and(|&over| over <= now) {
            self.departures.pop_front();
        }
        self.departures.push_back(over);
        Some(over)
    }

    /// How many wait or are being sent.
    #[cfg(test)]
    pub(super) fn queued(&mut self, now: Instant) -> u64 {
        self.departures.retain(|&over| over > now);
        self.departures.len() as u64
    }

    fn enter(&mut self, size: u64, now: Instant) -> Option<Instant> {
        let backlog = self.busy_until.since(now).as_secs_f64() * self.rate / 8.0;
        if self.buffer.is_some_and(|buffer| backlog + size as f64 > buffer as f64) {
            return None;
        }
        let takes: Duration = duration(size as f64 * 8.0 / self.rate);
        self.busy_until = self.busy_until.max(now) + takes;
        Some(self.busy_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Use;

    /// The mean wait before service, in units of the service time of 1 s, when a share `load` is used.
    fn mean_wait(load: f64) -> f64 {
        let dice = Dice::new(5, Use::Cross, 0, 0);
        let mut fifo = Fifo::new(8000.0, None, None, dice.clone());
        let (mut dice, mut at, mut waits) = (dice, 0.0, 0.0);
        let count = 400_000;
        for _ in 0..count {
            at += dice.exponential(1.0 / load);
            let now = Instant::ZERO + duration(at);
            let over = fifo.push(1000, now).expect("no limit");
            waits += over.since(now).as_secs_f64() - 1.0;
        }
        waits / f64::from(count)
    }

    #[test]
    fn those_who_come_by_chance_wait_as_the_formula_says() {
        for load in [0.3, 0.6, 0.8] {
            let expected = load / (2.0 * (1.0 - load));
            let wait = mean_wait(load);
            assert!((wait / expected - 1.0).abs() < 0.02, "M/D/1 at {load}: {wait}, {expected}");
        }
    }

    #[test]
    fn what_does_not_fit_is_dropped() {
        let mut fifo = Fifo::new(8000.0, Some(2500), None, Dice::new(1, Use::Cross, 0, 0));
        let fits = (0..4).map(|_| fifo.push(1000, Instant::ZERO).is_some()).collect::<Vec<_>>();
        assert_eq!(fits, [true, true, false, false]);
        assert_eq!(fifo.queued(Instant::from_micros(1_500_000)), 1);
        assert!(fifo.push(1000, Instant::from_micros(1_500_000)).is_some());
    }

    #[test]
    fn foreign_traffic_takes_its_share() {
        let law = CrossLaw { on: 1.0, off: 1.0, share: 2.0, size: 100 };
        let mut fifo = Fifo::new(8000.0, None, Some(law), Dice::new(1, Use::Cross, 0, 0));
        let busy: f64 = (0..10_000)
            .map(|step| {
                let now = Instant::from_micros(step * 1_000_000);
                fifo.push(1, now).map_or(0.0, |over| over.since(now).as_secs_f64())
            })
            .sum();
        assert!(busy > 5000.0, "those who come wait behind it: {busy} s");
    }
}
