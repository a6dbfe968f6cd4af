//! Medians, ranges and quantiles.

use std::time::Duration;

/// Middle, least and greatest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The middle one, or the mean of the middle two.
    pub(crate) median: f64,
    /// The least.
    pub(crate) least: f64,
    /// The greatest.
    pub(crate) greatest: f64,
}

impl Spread {
    /// `None` without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, greatest) = (*values.first()?, *values.last()?);
        let low = *values.get((values.len() - 1) / 2)?;
        let high = *values.get(values.len() / 2)?;
        Some(Self { median: f64::midpoint(low, high), least, greatest })
    }

    /// `4.20 (4.10–4.30)`, or only the number when there is no spread.
    pub(crate) fn printed(&self, digits: usize) -> String {
        let [median, least, greatest] =
            [self.median, self.least, self.greatest].map(|value| format!("{value:.digits$}"));
        if least == greatest { median } else { format!("{median} ({least}–{greatest})") }
    }
}

/// The latencies of a run, each kept to a tenth of a microsecond.
#[derive(Default)]
pub(crate) struct Latencies(Vec<u32>);

impl Latencies {
    /// Notes one.
    pub(crate) fn push(&mut self, latency: Duration) {
        self.0.push(u32::try_from(latency.as_nanos() / 100).unwrap_or(u32::MAX));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The mean in µs; not a number without values.
    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().map(|&latency| f64::from(latency)).sum::<f64>() / self.0.len() as f64 / 10.0
    }

    /// The value in µs that the share `share`, 0 to 1, is at or below (nearest rank); 0 without values.
    pub(crate) fn quantile(&mut self, share: f64) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        f64::from(*self.0.select_nth_unstable(rank.max(1) - 1).1) / 10.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_middle() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, least: 1.0, greatest: 3.0 }));
        assert_eq!(spread(&[4.0, 1.0]).map(|spread| spread.median), Some(2.5));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn prints_a_range_only_where_there_is_one() {
        let printed = |values: &[f64]| Spread::of(values.iter().copied()).map(|spread| spread.printed(1));
        assert_eq!(printed(&[1.0, 2.0, 4.0]).as_deref(), Some("2.0 (1.0–4.0)"));
        assert_eq!(printed(&[2.0]).as_deref(), Some("2.0"));
    }

    #[test]
    fn finds_quantiles_in_any_order() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), 0.0);
        for micros in (1..=101).rev() {
            latencies.push(Duration::from_micros(micros));
        }
        assert_eq!([0.99, 0.5, 1.0].map(|share| latencies.quantile(share)), [100.0, 51.0, 101.0]);
        assert_eq!((latencies.len(), latencies.mean()), (101, 51.0));
    }
}
