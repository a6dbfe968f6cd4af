//! Numbers that are known to some width.

/// A number and where it lies with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The best guess.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The standard normal deviate of 95 %, both sides.
pub(crate) const NORMAL: f64 = 1.96;

impl Interval {
    /// A share that was seen `part` times of `whole` (Wilson's interval).
    pub(crate) fn of_share(part: f64, whole: f64) -> Self {
        if whole <= 0.0 {
            return Self { value: 0.0, low: 0.0, high: 1.0 };
        }
        let (share, z) = (part / whole, NORMAL * NORMAL / whole);
        let middle = (share + z / 2.0) / (1.0 + z);
        let half = (z * (share * (1.0 - share) + z / 4.0)).max(0.0).sqrt() / (1.0 + z);
        Self { value: share, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
    }

    /// The mean of some values.
    pub(crate) fn of_mean(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count.max(1.0);
        if values.len() < 2 {
            return Self { value, low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let variance = values.iter().map(|one| (one - value).powi(2)).sum::<f64>() / (count - 1.0);
        let half = student(values.len() - 1) * (variance / count).sqrt();
        Self { value, low: value - half, high: value + half }
    }

    /// The same through a function that grows.
    pub(crate) fn map(self, grows: impl Fn(f64) -> f64) -> Self {
        Self { value: grows(self.value), low: grows(self.low), high: grows(self.high) }
    }

    /// Whether all of it lies above.
    pub(crate) fn is_above(&self, bound: f64) -> bool {
        self.low > bound
    }

    /// Whether all of it lies below.
    pub(crate) fn is_below(&self, bound: f64) -> bool {
        self.high < bound
    }
}

/// Student's deviate of 95 %, both sides.
fn student(degrees: usize) -> f64 {
    const TABLE: [f64; 15] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131,
    ];
    TABLE.get(degrees.saturating_sub(1)).copied().unwrap_or(NORMAL + 2.5 / degrees as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_wilson_s_interval() {
        let ten = Interval::of_share(10.0, 100.0);
        assert!((ten.low - 0.0552).abs() < 0.0005 && (ten.high - 0.1744).abs() < 0.0005, "{ten:?}");
        let none = Interval::of_share(0.0, 100.0);
        assert!(none.low.abs() < 1e-9 && (none.high - 0.037).abs() < 0.001, "{none:?}");
        assert_eq!(Interval::of_share(0.0, 0.0).high, 1.0);
    }

    #[test]
    fn means_have_student_s() {
        let mean = Interval::of_mean(&[1.0, 2.0, 3.0, 4.0]);
        assert!((mean.value - 2.5).abs() < 1e-9 && (mean.high - 4.554).abs() < 0.01, "{mean:?}");
        assert!(mean.is_above(0.0) && !mean.is_above(1.0) && mean.is_below(5.0));
        assert!(Interval::of_mean(&[1.0]).high.is_infinite(), "one value says nothing about its width");
    }
}
