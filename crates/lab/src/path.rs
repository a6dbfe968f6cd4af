//! What becomes of a datagram on its way: lost, dropped, late, twice.
//!
//! ```text
//! send ─▶ outage? ─▶ queue with a rate ─▶ lost? ─▶ half the round-trip time ─▶ held up? ─▶ twice? ─▶ arrives
//!           radio: may it send now?                 law, phase, wake
//! ```
//!
//! What is drawn is drawn for the exchange, its copy and the direction, so that all policies meet the same.

mod bursts;
mod fifo;
mod nat;
mod radio;

use std::time::Duration;

use coapway_time::Instant;

use crate::chance::Chance;
use crate::dice::{Dice, Use};
use crate::law::Law;
use crate::scenario::{Outage, PathLaw, WayLaw};

use bursts::Bursts;
use fifo::Fifo;
use radio::Radio;

pub(crate) use crate::chance::{Direction, Label};
pub(crate) use nat::Nat;

/// When a datagram arrives, and when once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrivals {
    pub(crate) first: Option<Instant>,
    pub(crate) second: Option<Instant>,
}

/// What was counted in one direction: `sent + duplicated = delivered + lost + dropped + under way`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conservation {
    /// Datagrams that were sent.
    pub(crate) sent: u64,
    /// Their bytes, and those of what carries them.
    pub(crate) bytes: u64,
    /// Second copies the path made.
    pub(crate) duplicated: u64,
    /// Copies that arrived.
    pub(crate) delivered: u64,
    /// Copies that were lost.
    pub(crate) lost: u64,
    /// Datagrams that found a full buffer, a silent radio or no binding.
    pub(crate) dropped: u64,
}

impl Conservation {
    /// Copies that must be queued or in flight.
    pub(crate) const fn under_way(&self) -> u64 {
        self.sent + self.duplicated - self.delivered - self.lost - self.dropped
    }
}

/// A way there and back.
#[derive(Debug)]
pub(crate) struct Path<'s> {
    law: &'s PathLaw,
    seed: u64,
    up: Way<'s>,
    down: Way<'s>,
    radio: Option<Radio>,
}

#[derive(Debug)]
struct Way<'s> {
    law: &'s WayLaw,
    bursts: Option<Bursts>,
    fifo: Option<Fifo>,
    counted: Conservation,
}

impl<'s> Path<'s> {
    pub(crate) fn new(law: &'s PathLaw, seed: u64) -> Self {
        let way = |law: &'s WayLaw, number: u64| Way {
            law,
            bursts: law.burst.map(|burst| {
                Bursts::new(burst, Dice::new(seed, Use::Bursts, if burst.shared { 0 } else { number }, 0))
            }),
            fifo: law
                .rate
                .map(|rate| Fifo::new(rate, law.buffer, law.cross, Dice::new(seed, Use::Cross, number, 0))),
            counted: Conservation::default(),
        };
        Self { law, seed, up: way(&law.up, 1), down: way(&law.down, 2), radio: law.radio.map(Radio::new) }
    }

    /// Whether a datagram arrives as soon as it is sent, whatever it is.
    pub(crate) fn is_nothing(&self) -> bool {
        *self.law == PathLaw::default()
    }

    /// A datagram of so many bytes leaves.
    pub(crate) fn send(&mut self, to: Direction, label: Label, bytes: usize, now: Instant) -> Arrivals {
        let size = bytes + self.law.overhead;
        let way = match to {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        way.counted.sent += 1;
        way.counted.bytes += size as u64;
        let mut departs = now;
        if let Some(radio) = &mut self.radio {
            match radio.send(to, bytes, now) {
                Some(over) => departs = over,
                None => {
                    way.counted.dropped += 1;
                    return Arrivals::default();
                }
            }
        }
        if let Some(fifo) = &mut way.fifo {
            match fifo.push(size as u64, departs) {
                Some(over) => departs = over,
                None => {
                    way.counted.dropped += 1;
                    return Arrivals::default();
                }
            }
        }
        let chance = Chance { seed: self.seed };
        let mut dice = chance.of_datagram(label, to);
        let at = seconds(departs);
        let lost = dice.share() < way.law.loss;
        let (burst, twice, held_up) = (dice.share(), dice.share(), dice.share());
        let burst = way.bursts.as_mut().is_some_and(|bursts| burst < bursts.loss_at(at));
        if lost || burst || is_out(&way.law.outages, at) {
            way.counted.lost += 1;
            return Arrivals::default();
        }
        let rtt = round_trip(self.law, &mut chance.of_copy(label), label.level, at);
        let mut delay = rtt / 2.0;
        if held_up < way.law.reordering {
            delay += dice.share() * way.law.lag * rtt;
        }
        let first = departs + duration(delay);
        let second = (twice < way.law.duplication).then(|| {
            way.counted.duplicated += 1;
            first + duration(dice.share() * way.law.lag * rtt)
        });
        Arrivals { first: Some(first), second }
    }

    /// A copy came to the end of its way, where somebody takes it or nobody can be found.
    pub(crate) const fn arrived(&mut self, to: Direction, taken: bool) {
        let way = match to {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        if taken {
            way.counted.delivered += 1;
        } else {
            way.counted.dropped += 1;
        }
    }

    /// What was counted, up and down.
    pub(crate) const fn counted(&self) -> [&Conservation; 2] {
        [&self.up.counted, &self.down.counted]
    }

    /// Datagrams that are in a queue, up and down.
    #[cfg(test)]
    pub(crate) fn queued(&mut self, now: Instant) -> [u64; 2] {
        [&mut self.up, &mut self.down].map(|way| way.fifo.as_mut().map_or(0, |fifo| fifo.queued(now)))
    }
}

/// There and back at this moment, in seconds.
fn round_trip(law: &PathLaw, dice: &mut Dice, level: f64, at: f64) -> f64 {
    let place = law.cycle.map_or(at, |cycle| at % cycle.as_secs_f64());
    let phase = law.phases.iter().rev().find(|phase| phase.at.as_secs_f64() <= place);
    let rtt: &Law = phase.and_then(|phase| phase.rtt.as_ref()).unwrap_or(&law.rtt);
    let mut time = rtt.draw(dice, level, at) + phase.map_or(0.0, |phase| phase.add);
    if let Some(wake) = law.wake {
        let (share, wakes) = (dice.share(), dice.between(wake.least, wake.most));
        if share < wake.share {
            time += wakes;
        }
    }
    time
}

/// Whether nothing passes.
pub(crate) fn is_out(outages: &[Outage], at: f64) -> bool {
    outages.iter().any(|outage| outage.around(at).is_some())
}

pub(crate) fn seconds(at: Instant) -> f64 {
    at.as_micros() as f64 / 1e6
}

pub(crate) fn duration(seconds: f64) -> Duration {
    Duration::from_nanos((seconds.max(0.0) * 1e9) as u64)
}

#[cfg(test)]
mod tests;
