//! Whether exchanges vary more than independent ones would.

/// So many exchanges are one block, which goes into one half.
pub(crate) const BLOCK: u64 = 250;

/// Means of blocks, in the order in which requests came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocks {
    /// Exchanges of the block that is not complete, and how many of them were in vain.
    begun: (u64, u64),
    count: f64,
    mean: f64,
    squares: f64,
}

impl Blocks {
    pub(crate) fn add(&mut self, in_vain: bool) {
        self.begun.0 += 1;
        self.begun.1 += u64::from(in_vain);
        if self.begun.0 == BLOCK {
            let share = self.begun.1 as f64 / BLOCK as f64;
            self.begun = (0, 0);
            self.count += 1.0;
            let step = share - self.mean;
            self.mean += step / self.count;
            self.squares += step * (share - self.mean);
        }
    }

    /// How much more blocks of exchanges vary than independent exchanges would; at least 1.
    pub(crate) fn clustering(&self) -> f64 {
        let Self { count, mean, squares, .. } = *self;
        let alone = mean * (1.0 - mean) / BLOCK as f64;
        if count < 8.0 || alone <= 0.0 {
            return 1.0;
        }
        (squares / (count - 1.0) / alone).clamp(1.0, BLOCK as f64)
    }
}
