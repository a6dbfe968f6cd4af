//! Times counted on a logarithmic scale, in memory that does not grow.

/// The lower end of the first bin, in milliseconds.
const FIRST: f64 = 0.01;
/// The natural logarithm of how much longer each bin is than the one before: 2 %.
const STEP: f64 = 0.02;
/// They end at 2.9 hours.
pub(crate) const BINS: usize = 1040;

/// How often times fell into bins that grow by 2 % each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Histogram {
    bins: Box<[u64]>,
    count: u64,
    sum: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: vec![0; BINS].into(), count: 0, sum: 0.0 }
    }
}

/// The bin of a time in milliseconds.
pub(crate) fn bin(millis: f64) -> usize {
    (((millis.max(FIRST) / FIRST).ln() / STEP) as usize).min(BINS - 1)
}

/// The lower end of a bin, in milliseconds.
pub(crate) fn edge(bin: usize) -> f64 {
    FIRST * (STEP * bin as f64).exp()
}

impl Histogram {
    pub(crate) fn add(&mut self, millis: f64) {
        self.bins[bin(millis)] += 1;
        self.count += 1;
        self.sum += millis;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.bins.iter_mut().zip(&other.bins).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.sum += other.sum;
    }

    pub(crate) fn bins(&self) -> &[u64] {
        &self.bins
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// `None` of nothing.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The time that a share of the times does not exceed; `None` of nothing.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        (self.count > 0).then(|| quantile(self.bins.iter().map(|&count| count as f64), share))
    }
}

/// The quantile of times whose weights per bin are these; inside of a bin they lie evenly.
pub(crate) fn quantile(weights: impl Iterator<Item = f64> + Clone, share: f64) -> f64 {
    let wanted = share * weights.clone().sum::<f64>();
    let (mut below, mut last) = (0.0, 0);
    for (bin, weight) in weights.enumerate() {
        if weight > 0.0 {
            if below + weight >= wanted {
                let part = ((wanted - below) / weight).clamp(0.0, 1.0);
                return edge(bin) + part * (edge(bin + 1) - edge(bin));
            }
            (below, last) = (below + weight, bin);
        }
    }
    edge(last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_a_bin() {
        let mut histogram = Histogram::default();
        (1..=10_000).for_each(|millis| histogram.add(f64::from(millis)));
        for (share, millis) in [(0.01, 100.0), (0.5, 5000.0), (0.95, 9500.0), (1.0, 10_000.0)] {
            let found = histogram.quantile(share).unwrap();
            assert!((found / millis - 1.0_f64).abs() < 0.01, "{share}: {found}");
        }
        assert_eq!((histogram.count(), histogram.mean()), (10_000, Some(5000.5)));
        assert_eq!((Histogram::default().quantile(0.5), Histogram::default().mean()), (None, None));
    }

    #[test]
    fn no_time_lies_outside() {
        assert_eq!((bin(0.0), bin(f64::MIN_POSITIVE), bin(1e300)), (0, 0, BINS - 1));
        for bin_ in [0, 1, 500, BINS - 1] {
            assert_eq!(bin(edge(bin_) * 1.01), bin_);
        }
    }

    #[test]
    fn what_is_merged_was_counted_together() {
        let (mut one, mut other, mut both) = <(Histogram, Histogram, Histogram)>::default();
        for millis in [1.0, 7.5, 300.0] {
            one.add(millis);
            both.add(millis);
        }
        for millis in [2.0, 7.5] {
            other.add(millis);
            both.add(millis);
        }
        one.merge(&other);
        assert_eq!(one, both);
    }
}
