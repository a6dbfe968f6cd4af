//! Where the chance of one direction comes from.

use coapway_time::Instant;

/// What becomes of a datagram takes so many draws, whatever it is.
pub(super) type Draws = [f64; 6];

/// The chance of one direction.
#[derive(Debug)]
pub(super) enum Chance {
    /// Datagram by datagram.
    InTurn(fastrand::Rng),
    /// It follows from the moment a datagram leaves, to the millisecond, and from this seed.
    OfTheMoment(u64),
}

impl Chance {
    pub(super) fn in_turn(seed: u64) -> Self {
        Self::InTurn(fastrand::Rng::with_seed(seed))
    }

    pub(super) fn draw(&mut self, now: Instant) -> Draws {
        match self {
            Self::InTurn(random) => draws(random),
            Self::OfTheMoment(seed) => {
                // One round of multiplication, so that near moments are far apart for the generator.
                let moment = (now.as_micros() / 1000).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                draws(&mut fastrand::Rng::with_seed(*seed ^ moment))
            }
        }
    }
}

fn draws(random: &mut fastrand::Rng) -> Draws {
    std::array::from_fn(|_| random.f64())
}
