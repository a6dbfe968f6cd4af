//! What chance decides in a run, for whoever plays the same run on a real link.

use crate::dice::{Dice, Use, mix};

/// For messages that are no copies of a request and no answers to one.
const ERRAND: u64 = 0xE44A_0001;

/// All chance of one run that does not depend on what the proxy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance {
    pub(crate) seed: u64,
}

/// What a datagram between proxy and origin belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Errand {
    /// A copy of a client's request, or the answer to that copy; all counted from 0.
    Copy {
        /// Who asked.
        client: u32,
        /// Which request of that client.
        number: u32,
        /// Which copy, re-issues included.
        copy: u32,
    },
    /// Something else, one after the other from 1.
    Other(u64),
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the asking side.
    Up,
    /// To it.
    Down,
}

/// What a datagram is: its chance hangs on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    /// Of which exchange, or other errand.
    pub(crate) errand: u64,
    /// Which copy, or the answer to which.
    pub(crate) copy: u32,
    /// What the copies of an exchange share.
    pub(crate) level: f64,
}

impl Chance {
    /// That of the run with this number in a study with this seed.
    pub fn of_run(seed: u64, run: u32) -> Self {
        Self { seed: Dice::new(seed, Use::Run, run.into(), 0).bits() }
    }

    /// Seconds before a client's request with this number, since its last one or the beginning; the mean of them is
    /// given.
    pub fn gap(self, client: u32, number: u32, mean: f64) -> f64 {
        Dice::new(self.seed, Use::Asking, client.into(), number.into()).exponential(mean)
    }

    /// Whether a datagram is lost on a path that loses this share of them, each by itself.
    pub fn loses(self, errand: Errand, to: Direction, share: f64) -> bool {
        self.of_datagram(errand.label(), to).share() < share
    }

    /// What becomes of a datagram; the first draw is its loss.
    pub(crate) fn of_datagram(self, label: Label, to: Direction) -> Dice {
        Dice::new(self.seed, Use::Datagram, label.errand, u64::from(label.copy) << 2 | (1 + to as u64))
    }

    /// What both ways of a copy share.
    pub(crate) fn of_copy(self, label: Label) -> Dice {
        Dice::new(self.seed, Use::Datagram, label.errand, u64::from(label.copy) << 2)
    }
}

impl Errand {
    pub(crate) fn label(self) -> Label {
        match self {
            Self::Copy { client, number, copy } => {
                Label { errand: of_request(client, number), copy, level: 0.0 }
            }
            Self::Other(number) => Label { errand: mix(ERRAND, number), copy: 0, level: 0.0 },
        }
    }
}

/// What a client's request is known by.
pub(crate) const fn of_request(client: u32, number: u32) -> u64 {
    mix(mix(0, client as u64), number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_lost_each_way_and_independently() {
        let chance = Chance::of_run(1, 0);
        let loses = |number, to| chance.loses(Errand::Copy { client: 3, number, copy: 1 }, to, 0.15);
        let both = (0..100_000).fold([0; 3], |[up, down, both], number| {
            let (is_up, is_down) = (loses(number, Direction::Up), loses(number, Direction::Down));
            [up + u32::from(is_up), down + u32::from(is_down), both + u32::from(is_up && is_down)]
        });
        // Four standard deviations of a binomial distribution.
        let near = |is: u32, share: f64| {
            (f64::from(is) - 1e5 * share).abs() < 4.0 * (1e5 * share * (1.0 - share)).sqrt()
        };
        assert!(near(both[0], 0.15) && near(both[1], 0.15) && near(both[2], 0.0225), "{both:?}");
    }

    #[test]
    fn runs_differ_and_each_comes_again() {
        let gap = |run| Chance::of_run(7, run).gap(0, 5, 1.0);
        assert_eq!(gap(1), gap(1));
        assert_ne!(gap(1), gap(2));
        assert_ne!(Chance::of_run(8, 1), Chance::of_run(7, 1));
    }
}
