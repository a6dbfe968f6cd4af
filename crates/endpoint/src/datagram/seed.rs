//! Where chance comes from.

/// Where an endpoint's chance comes from: fixed in a simulation, from the operating system in
/// production.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub [u8; 32]);

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed")
    }
}

impl Seed {
    /// A seed for simulations, spread out of one number.
    pub fn from_number(number: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(number);
        let mut bytes = [0; 32];
        random.fill(&mut bytes);
        Self(bytes)
    }

    /// A seed of its own for part `number` of whatever this seeds.
    pub fn part(&self, number: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(self.word(0) ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut bytes = self.0;
        bytes.iter_mut().for_each(|byte| *byte ^= random.u8(..));
        Self(bytes)
    }

    /// Eight of its bytes as a number, for a generator or a hasher.
    pub fn word(&self, index: usize) -> u64 {
        self.0
            .chunks_exact(8)
            .nth(index % 4)
            .map_or(0, |bytes| bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    }

    /// A keyed hasher.
    pub fn hasher(&self) -> ahash::RandomState {
        ahash::RandomState::with_seeds(self.word(0), self.word(1), self.word(2), self.word(3))
    }
}
