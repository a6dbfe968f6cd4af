//! Exact round-trip times of one origin, the last of them and not older than their age.

use std::collections::VecDeque;
use std::time::Duration;

use coapway_time::Instant;

/// The samples that count, in order of arrival and beside that sorted, in microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    arrived: VecDeque<(Instant, u32)>,
    sorted: Vec<u32>,
    ever: u64,
}

impl Samples {
    /// Takes one more; of more than `window`, the oldest go.
    pub(super) fn push(&mut self, sample: Duration, window: usize, now: Instant) {
        let sample = u32::try_from(sample.as_micros()).unwrap_or(u32::MAX);
        while self.arrived.len() > window.max(1) {
            self.drop_oldest();
        }
        // On a full window the place of the oldest is used again, and only what lies between moves.
        let freed = match self.arrived.len() == window.max(1) {
            true => self
                .arrived
                .pop_front()
                .map(|(_, oldest)| self.sorted.partition_point(|&other| other < oldest)),
            false => None,
        };
        let place = self.sorted.partition_point(|&other| other <= sample);
        match freed {
            Some(freed) if freed < place => {
                self.sorted.copy_within(freed + 1..place, freed);
                self.sorted[place - 1] = sample;
            }
            Some(freed) => {
                self.sorted.copy_within(place..freed, place + 1);
                self.sorted[place] = sample;
            }
            None => self.sorted.insert(place, sample),
        }
        self.arrived.push_back((now, sample));
        self.ever += 1;
    }

    /// The same of what a round trip took at the least, which is no exact sample.
    pub(super) fn push_bound(&mut self, bound: Duration, window: usize, now: Instant) {
        self.push(bound, window, now);
        self.ever -= 1;
    }

    /// Forgets those that are older than `age`. Returns whether some were.
    pub(super) fn forget(&mut self, age: Duration, now: Instant) -> bool {
        let before = self.len();
        while self.arrived.front().is_some_and(|&(at, _)| at + age < now) {
            self.drop_oldest();
        }
        self.len() < before
    }

    fn drop_oldest(&mut self) {
        let Some((_, sample)) = self.arrived.pop_front() else { return };
        let place = self.sorted.partition_point(|&other| other < sample);
        self.sorted.remove(place);
    }

    /// The quantile by nearest rank: the smallest sample that at least this share does not exceed.
    pub(super) fn quantile(&self, share: f64) -> Option<Duration> {
        self.ranked(nearest_rank(self.len(), share))
    }

    /// The one that so many, it included, are not above; 1 for the smallest.
    pub(super) fn ranked(&self, rank: usize) -> Option<Duration> {
        self.sorted.get(rank.checked_sub(1)?).copied().map(duration)
    }

    /// When each came, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Instant, Duration)> {
        self.arrived.iter().map(|&(at, sample)| (at, duration(sample)))
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.arrived.clear();
        self.sorted.clear();
    }

    /// The smallest.
    pub(super) fn minimum(&self) -> Option<Duration> {
        self.sorted.first().copied().map(duration)
    }

    /// The newest.
    pub(super) fn last(&self) -> Option<Duration> {
        self.arrived.back().map(|&(_, sample)| duration(sample))
    }

    /// How many count.
    pub(super) fn len(&self) -> usize {
        self.arrived.len()
    }

    /// Whether none counts.
    pub(super) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// How many there ever were.
    pub(super) const fn ever(&self) -> u64 {
        self.ever
    }
}

/// Which of `count` samples is the quantile.
pub(super) fn nearest_rank(count: usize, share: f64) -> usize {
    let exact = share * count as f64 - 1e-9;
    // `ceil` is a call on processors that are older than some.
    let below = exact as usize;
    (below + usize::from((below as f64) < exact)).max(1)
}

fn duration(sample: u32) -> Duration {
    Duration::from_micros(sample.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_newest_samples_of_the_window_count() {
        let mut samples = Samples::default();
        for millis in [5, 3, 9, 3, 7] {
            samples.push(Duration::from_millis(millis), 3, at(millis));
        }
        assert_eq!((samples.len(), samples.ever()), (3, 5));
        assert_eq!(samples.minimum(), Some(Duration::from_millis(3)));
        assert_eq!(samples.quantile(1.0), Some(Duration::from_millis(9)));
        assert_eq!(samples.last(), Some(Duration::from_millis(7)));
    }

    #[test]
    fn it_says_whether_one_expires() {
        let mut samples = Samples::default();
        let age = Duration::from_secs(10);
        assert!(!samples.forget(age, at(0)), "there was none");
        samples.push(age, 3, at(0));
        samples.push(age, 3, at(5));
        assert!(!samples.forget(age, at(10)));
        assert!(samples.forget(age, at(11)) && samples.len() == 1);
        assert!(samples.forget(age, at(16)) && samples.is_empty());
    }
}
