//! Whether losses come together: exchanges that follow each other, by how much time lies between.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::blocks::Blocks;

/// Records are written when a request is answered, or somewhat later; so many are held to bring them into the
/// order in which their requests came.
const HELD: usize = 8192;
/// The longest distance of each class, in seconds.
const DISTANCES: [f64; 9] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];
/// A correlation counts when it is so many times its standard error.
const CLEAR: f64 = 4.0;

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    pairs: f64,
    seconds: f64,
    earlier: f64,
    later: f64,
    both: f64,
}

/// Pairs of neighbours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours {
    held: BinaryHeap<Reverse<(i64, bool)>>,
    last: Option<(i64, bool)>,
    classes: [Class; DISTANCES.len()],
    pub(crate) blocks: Blocks,
}

/// Losses that come together: a path that is bad at times, and loses nothing else.
///
/// Source: Gilbert's model; rates of change follow from how the correlation falls with distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// How long it is good on average, in seconds.
    pub good: f64,
    /// How long it is bad on average, in seconds.
    pub bad: f64,
    /// The share of round trips that fail while it is bad.
    pub loss: f64,
}

impl Neighbours {
    /// An exchange: when its request came, in µs, and whether its first copy was in vain.
    pub(crate) fn add(&mut self, received: i64, in_vain: bool) {
        self.held.push(Reverse((received, in_vain)));
        if self.held.len() > HELD {
            self.take();
        }
    }

    /// Takes those that are still held.
    pub(crate) fn finish(&mut self) {
        while self.take() {}
    }

    fn take(&mut self) -> bool {
        let Some(Reverse((at, in_vain))) = self.held.pop() else { return false };
        self.blocks.add(in_vain);
        if self.last.is_some_and(|(before, _)| at < before) {
            // Its record was held for longer than others can be.
            return true;
        }
        if let Some((before, was_in_vain)) = self.last {
            let seconds = (at - before) as f64 / 1e6;
            if let Some(class) = DISTANCES.iter().position(|&longest| seconds <= longest) {
                let class = &mut self.classes[class];
                class.pairs += 1.0;
                class.seconds += seconds;
                class.earlier += f64::from(u8::from(was_in_vain));
                class.later += f64::from(u8::from(in_vain));
                class.both += f64::from(u8::from(was_in_vain && in_vain));
            }
        }
        self.last = Some((at, in_vain));
        true
    }

    /// The correlation of neighbours, with its standard error, per class of distance.
    pub(crate) fn correlations(&self) -> Vec<Correlation> {
        let usable = self.classes.iter().filter(|class| class.pairs >= 50.0);
        usable
            .filter_map(|class| {
                let (earlier, later) = (class.earlier / class.pairs, class.later / class.pairs);
                let spread = (earlier * (1.0 - earlier) * later * (1.0 - later)).sqrt();
                (spread > 0.0).then(|| Correlation {
                    seconds: class.seconds / class.pairs,
                    value: (class.both / class.pairs - earlier * later) / spread,
                    error: 1.0 / class.pairs.sqrt(),
                    pairs: class.pairs,
                })
            })
            .collect()
    }

    /// What remains of a correlation of losses where first copies were in vain more often than they were
    /// lost: copies that left needlessly do so by chance.
    fn dilution(&self, loss: f64) -> f64 {
        let (pairs, in_vain) =
            self.classes.iter().fold((0.0, 0.0), |sums, class| (sums.0 + class.pairs, sums.1 + class.later));
        let odds = |share: f64| share / (1.0 - share);
        let remains = odds(loss) / odds(in_vain / pairs);
        if remains.is_finite() { remains.clamp(0.1, 1.0) } else { 1.0 }
    }

    /// Bursts that explain the correlations, where these are there beyond chance; `again` adds how much
    /// more often a further copy is lost than a first one, as a correlation at the distance of the two.
    pub(crate) fn bursts(&self, loss: f64, again: Option<Correlation>) -> Option<Bursts> {
        let undiluted = self.correlations().into_iter().map(|one| one.undiluted(self.dilution(loss)));
        let seen: Vec<_> = undiluted.chain(again).collect();
        let clear = seen.iter().any(|one| one.value > CLEAR * one.error && one.value > 0.03);
        if !clear || !(0.001..0.95).contains(&loss) {
            return None;
        }
        // value = start · e^(-seconds / time): for each time the best start is known.
        let fitted = (-40..=60).map(|step| {
            let time = 10_f64.powf(f64::from(step) / 20.0);
            let (mut above, mut below) = (0.0, 0.0);
            for one in &seen {
                let fall = (-one.seconds / time).exp();
                above += one.value * fall / one.error.powi(2);
                below += fall * fall / one.error.powi(2);
            }
            let start = if below > 0.0 { (above / below).clamp(0.0, 1.0) } else { 0.0 };
            let wrong: f64 = seen
                .iter()
                .map(|one| ((one.value - start * (-one.seconds / time).exp()) / one.error).powi(2))
                .sum();
            (wrong, start, time)
        });
        let (_, start, time) = fitted.min_by(|one, other| one.0.total_cmp(&other.0))?;
        if start < 0.02 {
            return None;
        }
        // A share `bad` of the time, all loss in it: correlation = (loss in it - loss) / (1 - loss).
        let loss_in_bad = loss + start * (1.0 - loss);
        let bad = loss / loss_in_bad;
        Some(Bursts { good: time / bad, bad: time / (1.0 - bad), loss: loss_in_bad })
    }
}

/// How much likelier a loss is next to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Correlation {
    /// The time between, on average.
    pub(crate) seconds: f64,
    /// From -1 to 1.
    pub(crate) value: f64,
    /// Its standard error.
    pub(crate) error: f64,
    /// Pairs it was seen in.
    pub(crate) pairs: f64,
}

impl Correlation {
    /// As it were without what hides so much of it.
    fn undiluted(self, remains: f64) -> Self {
        Self { value: (self.value / remains).min(1.0), error: self.error / remains, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 60 000 exchanges, one each 200 ms, on a path with these bursts; answered in another order.
    fn seen(bursts: Option<Bursts>, loss: f64) -> Neighbours {
        let mut random = fastrand::Rng::with_seed(3);
        let mut neighbours = Neighbours::default();
        let (mut is_bad, mut until) = (false, 0.0);
        let mut all = Vec::new();
        for number in 0..60_000 {
            let now = f64::from(number) * 0.2;
            let lost = match bursts {
                Some(bursts) => {
                    while until <= now {
                        is_bad = !is_bad;
                        let mean = if is_bad { bursts.bad } else { bursts.good };
                        until += -mean * (1.0 - random.f64()).ln();
                    }
                    if is_bad { bursts.loss } else { 0.0 }
                }
                None => loss,
            };
            all.push(((now * 1e6) as i64, random.f64() < lost));
        }
        for some in all.chunks_mut(100) {
            random.shuffle(some);
            some.iter().for_each(|&(at, in_vain)| neighbours.add(at, in_vain));
        }
        neighbours.finish();
        neighbours
    }

    #[test]
    fn independent_losses_are_no_bursts() {
        assert_eq!(seen(None, 0.2).bursts(0.2, None), None);
        assert_eq!(Neighbours::default().bursts(0.2, None), None);
    }

    #[test]
    fn bursts_are_found_as_they_are() {
        let bursts = Bursts { good: 20.0, bad: 2.0, loss: 0.8 };
        let share = bursts.bad / (bursts.good + bursts.bad);
        let neighbours = seen(Some(bursts), 0.0);
        // One distance alone leaves open how fast the correlation falls.
        let fall = |seconds: f64| (-seconds * (1.0 / bursts.good + 1.0 / bursts.bad)).exp();
        let whole = (bursts.loss - share * bursts.loss) / (1.0 - share * bursts.loss);
        let again = Correlation { seconds: 2.0, value: whole * fall(2.0), error: 0.01, pairs: 1e4 };
        let found = neighbours.bursts(share * bursts.loss, Some(again)).expect("they are there");
        assert!((found.loss - bursts.loss).abs() < 0.1, "{found:?}");
        assert!((found.bad / bursts.bad - 1.0).abs() < 0.3, "{found:?}");
        assert!((found.good / bursts.good - 1.0).abs() < 0.3, "{found:?}");
    }
}
