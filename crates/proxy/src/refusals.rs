//! Answers of our own, summed: floods of them are one line per cause and second.

use std::time::Duration;

use coapway_message::Code;
use coapway_time::Instant;
use smallvec::SmallVec;

use crate::cause::Cause;

/// A line sums up so long.
const PERIOD: Duration = Duration::from_secs(1);

/// So many answers of one kind in one period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusals {
    /// When the period began.
    pub since: Instant,
    /// The answer's code.
    pub code: Code,
    /// Where it comes from.
    pub cause: Cause,
    /// How many.
    pub count: u32,
}

/// The sums of the running period.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    since: Option<Instant>,
    sums: SmallVec<[(Code, Cause, u32); 4]>,
}

impl Sums {
    /// One more. There are no more kinds than codes and causes.
    pub(crate) fn add(&mut self, code: Code, cause: Cause, now: Instant) {
        self.since.get_or_insert(now);
        match self.sums.iter_mut().find(|sum| (sum.0, sum.1) == (code, cause)) {
            Some(sum) => sum.2 = sum.2.saturating_add(1),
            None => self.sums.push((code, cause, 1)),
        }
    }

    /// When the period ends.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + PERIOD)
    }

    /// The sums of a period that is over.
    pub(crate) fn take(&mut self, now: Instant) -> impl Iterator<Item = Refusals> + use<> {
        let since = self.since.filter(|&since| since + PERIOD <= now);
        let sums = if since.is_some() { std::mem::take(&mut self.sums) } else { SmallVec::new() };
        if since.is_some() {
            self.since = None;
        }
        sums.into_iter().map(move |(code, cause, count)| Refusals {
            since: since.unwrap_or(now),
            code,
            cause,
            count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_one_line_a_kind() {
        let mut sums = Sums::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        (0..1000).for_each(|millis| sums.add(Code::TOO_MANY_REQUESTS, Cause::Refused, at(millis)));
        sums.add(Code::NOT_FOUND, Cause::Refused, at(999));
        assert_eq!((sums.due(), sums.take(at(999)).count()), (Some(at(1000)), 0));
        let lines: Vec<_> = sums.take(at(1000)).map(|line| (line.since, line.code, line.count)).collect();
        assert_eq!(lines, [(at(0), Code::TOO_MANY_REQUESTS, 1000), (at(0), Code::NOT_FOUND, 1)]);
        assert_eq!((sums.due(), sums.take(at(9000)).count()), (None, 0));
    }
}
