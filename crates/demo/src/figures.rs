//! What a policy brings and costs, over the last minutes.

use std::collections::VecDeque;
use std::time::Duration;

use coapway_message::Method;
use coapway_proxy::Record;
use coapway_time::Instant;

/// What is older does not count.
pub(crate) const WINDOW: Duration = Duration::from_secs(180);

/// How a request ended for its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// With the origin's answer.
    Answered,
    /// With word of what is known instead, 5.04 for example.
    Told,
    /// With nothing.
    Silent,
}

/// A request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) at: Instant,
    pub(crate) key: u32,
    pub(crate) device: usize,
    pub(crate) method: Method,
    pub(crate) fate: Fate,
    pub(crate) took: Duration,
}

/// What ended within the window.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    settled: VecDeque<Settled>,
    /// Copies of each request that was forwarded.
    copies: VecDeque<(Instant, usize)>,
}

/// A policy in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Summary {
    /// Requests that ended, and how.
    pub(crate) ended: usize,
    pub(crate) answered: usize,
    pub(crate) told: usize,
    pub(crate) silent: usize,
    /// How long answers took; nothing without any.
    pub(crate) mean: Option<Duration>,
    pub(crate) p95: Option<Duration>,
    /// Messages on the weak link for one request, towards the origin.
    pub(crate) copies: Option<f64>,
    /// POSTs among them, those without an answer, and those the origin executed more than once.
    pub(crate) posts: usize,
    pub(crate) posts_unanswered: usize,
    pub(crate) posts_twice: usize,
}

impl Summary {
    pub(crate) fn share_answered(&self) -> Option<f64> {
        share(self.answered, self.ended)
    }

    pub(crate) fn share_silent(&self) -> Option<f64> {
        share(self.silent, self.ended)
    }

    pub(crate) fn share_posts_unanswered(&self) -> Option<f64> {
        share(self.posts_unanswered, self.posts)
    }

    pub(crate) fn share_posts_twice(&self) -> Option<f64> {
        share(self.posts_twice, self.posts)
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Figures {
    pub(crate) fn recorded(&mut self, at: Instant, record: &Record) {
        let copies = record.exchanges.traces().iter().map(|trace| trace.copies.len()).sum();
        self.copies.push_back((at, copies));
    }

    pub(crate) fn settled(&mut self, settled: &[Settled], now: Instant) {
        self.settled.extend(settled);
        while self.settled.pop_front_if(|settled| settled.at + WINDOW <= now).is_some() {}
        while self.copies.pop_front_if(|&mut (at, _)| at + WINDOW <= now).is_some() {}
    }

    /// The first key that still counts; requests of one device end out of order.
    pub(crate) fn oldest_key(&self) -> Option<u32> {
        self.settled.iter().map(|settled| settled.key).min()
    }

    pub(crate) fn summary(&self, executions: impl Fn(u32) -> usize) -> Summary {
        let count = |fate| self.settled.iter().filter(|settled| settled.fate == fate).count();
        let answered = self.settled.iter().filter(|settled| settled.fate == Fate::Answered);
        let mut took: Vec<_> = answered.map(|settled| settled.took).collect();
        took.sort_unstable();
        let posts: Vec<_> = self.settled.iter().filter(|settled| settled.method == Method::Post).collect();
        // A device that asks the origin itself sends one copy of each.
        let (copies, forwarded) = match self.copies.is_empty() {
            true => (self.settled.len(), self.settled.len()),
            false => (self.copies.iter().map(|&(_, copies)| copies).sum(), self.copies.len()),
        };
        Summary {
            ended: self.settled.len(),
            answered: took.len(),
            told: count(Fate::Told),
            silent: count(Fate::Silent),
            mean: (!took.is_empty()).then(|| took.iter().sum::<Duration>() / took.len() as u32),
            p95: (!took.is_empty()).then(|| took[(took.len() * 95).div_ceil(100) - 1]),
            copies: share(copies, forwarded),
            posts: posts.len(),
            posts_unanswered: posts.iter().filter(|settled| settled.fate != Fate::Answered).count(),
            posts_twice: posts.iter().filter(|settled| executions(settled.key) > 1).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(key: u32, method: Method, fate: Fate, millis: u64) -> Settled {
        let at = Instant::ZERO + Duration::from_secs(key.into());
        Settled { at, key, device: 0, method, fate, took: Duration::from_millis(millis) }
    }

    #[test]
    fn counts_what_ended() {
        let mut figures = Figures::default();
        let mut all: Vec<_> =
            (1..=20).map(|n| ended(n, Method::Get, Fate::Answered, n as u64 * 10)).collect();
        all.push(ended(21, Method::Post, Fate::Told, 6000));
        all.push(ended(22, Method::Post, Fate::Silent, 7000));
        all.push(ended(23, Method::Post, Fate::Answered, 200));
        figures.settled(&all, all[22].at);
        let summary = figures.summary(|key| if key == 22 { 2 } else { 1 });
        assert_eq!((summary.ended, summary.answered, summary.told, summary.silent), (23, 21, 1, 1));
        assert_eq!((summary.posts, summary.posts_unanswered, summary.posts_twice), (3, 2, 1));
        assert_eq!(summary.p95, Some(Duration::from_millis(200)));
        assert_eq!(summary.mean.map(|mean| mean.as_millis()), Some(109));
        assert_eq!(summary.copies, Some(1.0));
    }

    #[test]
    fn what_is_old_does_not_count() {
        let mut figures = Figures::default();
        let all = [ended(1, Method::Get, Fate::Silent, 1), ended(60, Method::Get, Fate::Answered, 1)];
        figures.settled(&all, all[1].at);
        assert_eq!(figures.oldest_key(), Some(1));
        figures.settled(&[], all[0].at + WINDOW);
        assert_eq!(figures.oldest_key(), Some(60));
        assert_eq!(figures.summary(|_| 1).share_answered(), Some(1.0));
        figures.settled(&[], all[1].at + WINDOW);
        assert_eq!(figures.summary(|_| 1), Summary::default());
    }
}
