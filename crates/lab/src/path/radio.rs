//! A radio of class A: a duty cycle for what it sends, and one answer to each message at a fixed time.

use coapway_time::Instant;

use super::{Direction, duration};
use crate::scenario::RadioLaw;

/// When it may send, and when it listens.
#[derive(Debug)]
pub(super) struct Radio {
    law: RadioLaw,
    /// It may not send before.
    silent_until: Instant,
    /// When it listens next, once.
    listens: Option<Instant>,
}

impl Radio {
    pub(super) const fn new(law: RadioLaw) -> Self {
        Self { law, silent_until: Instant::ZERO, listens: None }
    }

    /// A message of so many bytes is to be sent; when it has been, or nothing if it cannot.
    pub(super) fn send(&mut self, to: Direction, bytes: usize, now: Instant) -> Option<Instant> {
        let airtime = |(message, byte): (f64, f64)| message + byte * bytes as f64;
        match to {
            Direction::Up if now < self.silent_until => None,
            Direction::Up => {
                let airtime = airtime(self.law.up);
                let over = now + duration(airtime);
                self.silent_until = now + duration(airtime / self.law.duty_cycle);
                self.listens = Some(over + duration(self.law.window));
                Some(over)
            }
            Direction::Down => {
                let begins = self.listens.take_if(|begins| now <= *begins)?;
                Some(begins + duration(airtime(self.law.down)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + duration(seconds)
    }

    #[test]
    fn sends_seldom_and_hears_one_answer() {
        let law = RadioLaw { up: (0.1, 0.001), down: (0.05, 0.001), window: 1.0, duty_cycle: 0.01 };
        let mut radio = Radio::new(law);
        assert_eq!(radio.send(Direction::Down, 10, at(0.0)), None, "it does not listen");
        assert_eq!(radio.send(Direction::Up, 20, at(0.0)), Some(at(0.12)));
        assert_eq!(radio.send(Direction::Up, 20, at(11.9)), None);
        assert_eq!(radio.send(Direction::Down, 10, at(0.5)), Some(at(1.18)));
        assert_eq!(radio.send(Direction::Down, 10, at(0.6)), None, "one answer");
        assert_eq!(radio.send(Direction::Up, 20, at(12.1)), Some(at(12.22)));
        assert_eq!(radio.send(Direction::Down, 10, at(13.3)), None, "too late");
    }
}
