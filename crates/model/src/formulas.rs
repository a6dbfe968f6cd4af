//! What RFC 7252 comes to where each datagram is lost with the same probability, the round-trip time is below
//! ACK_TIMEOUT and answers are piggybacked.

/// The formulas for one loss and one MAX_RETRANSMIT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Formulas {
    /// The probability that a datagram gets lost, in either direction.
    pub loss: f64,
    /// Copies at the most: MAX_RETRANSMIT + 1.
    pub copies: i32,
}

impl Formulas {
    /// With four retransmissions.
    pub const fn new(loss: f64) -> Self {
        Self { loss, copies: 5 }
    }

    /// s: both a request and its answer get through.
    pub fn through(&self) -> f64 {
        (1.0 - self.loss) * (1.0 - self.loss)
    }

    /// q = 1 − s.
    pub fn round_lost(&self) -> f64 {
        1.0 - self.through()
    }

    /// Copies for each exchange: (1 − qⁿ)/s.
    pub fn mean_copies(&self) -> f64 {
        (1.0 - self.failed()) / self.through()
    }

    /// The variance of that.
    pub fn variance_of_copies(&self) -> f64 {
        let (q, n) = (self.round_lost(), self.copies);
        let mean = self.mean_copies();
        let square: f64 = (1..=n)
            .map(|k| {
                let probability = if k == n { q.powi(n - 1) } else { q.powi(k - 1) * (1.0 - q) };
                f64::from(k * k) * probability
            })
            .sum();
        square - mean * mean
    }

    /// An exchange fails: qⁿ.
    pub fn failed(&self) -> f64 {
        self.round_lost().powi(self.copies)
    }

    /// An exchange needs `k` retransmissions or more: qᵏ.
    pub fn needs(&self, k: i32) -> f64 {
        self.round_lost().powi(k)
    }

    /// The mean time that retransmissions add, of exchanges that succeed, in multiples of the mean first
    /// timeout: s/(1 − qⁿ) · (1 − (2q)ⁿ)/(1 − 2q) − 1.
    pub fn mean_wait(&self) -> f64 {
        let (q, n) = (self.round_lost(), self.copies);
        let sum: f64 = (0..n).map(|k| (2.0 * q).powi(k)).sum();
        self.through() / (1.0 - q.powi(n)) * sum - 1.0
    }

    /// The variance of that time, in the same unit squared: first timeouts are drawn evenly from
    /// [2/2.5, 3/2.5].
    pub fn variance_of_wait(&self) -> f64 {
        let (q, n) = (self.round_lost(), self.copies);
        let spread = 1.0 + (1.0_f64 / 2.5).powi(2) / 12.0;
        let square: f64 = (0..n)
            .map(|k| {
                let waited = 2.0_f64.powi(k) - 1.0;
                waited * waited * spread * q.powi(k) * (1.0 - q) / (1.0 - q.powi(n))
            })
            .sum();
        square - self.mean_wait().powi(2)
    }

    /// The origin executed it: 1 − pⁿ.
    pub fn executed(&self) -> f64 {
        1.0 - self.loss.powi(self.copies)
    }

    /// The origin executed it and the client sees a failure: qⁿ − pⁿ.
    pub fn executed_and_failed(&self) -> f64 {
        self.failed() - self.loss.powi(self.copies)
    }

    /// The origin executed what failed: 1 − (p/q)ⁿ.
    pub fn executed_given_failed(&self) -> f64 {
        1.0 - (self.loss / self.round_lost()).powi(self.copies)
    }

    /// Copies that reach the origin.
    pub fn arrived_copies(&self) -> f64 {
        self.mean_copies() * (1.0 - self.loss)
    }
}
