//! A channel that is good or bad for a while each: Gilbert and Elliott in continuous time.

use std::time::Duration;

use coapway_time::Instant;

use crate::random::stream;

/// How long it is good and bad in the mean, and what it loses then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// The mean time it stays good.
    pub good: Duration,
    /// The mean time it stays bad.
    pub bad: Duration,
    /// What it loses while it is good.
    pub loss_good: f64,
    /// What it loses while it is bad.
    pub loss_bad: f64,
}

impl Burst {
    /// The share of time that it is bad.
    pub fn share_bad(&self) -> f64 {
        let (good, bad) = (self.good.as_secs_f64(), self.bad.as_secs_f64());
        bad / (good + bad)
    }

    /// The probability that it is bad `later` after it was, or after it was not.
    pub fn bad_after(&self, was_bad: bool, later: Duration) -> f64 {
        let rate = 1.0 / self.good.as_secs_f64() + 1.0 / self.bad.as_secs_f64();
        let kept = (-rate * later.as_secs_f64()).exp();
        let share = self.share_bad();
        if was_bad { share + (1.0 - share) * kept } else { share * (1.0 - kept) }
    }

    fn loss(&self, is_bad: bool) -> f64 {
        if is_bad { self.loss_bad } else { self.loss_good }
    }

    /// The share that is lost.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.share_bad();
        bad * self.loss(true) + (1.0 - bad) * self.loss(false)
    }

    /// The probability that one is lost `later` after one that was.
    pub fn loss_after_loss(&self, later: Duration) -> f64 {
        let bad = self.share_bad() * self.loss_bad / self.mean_loss();
        let then = bad * self.bad_after(true, later) + (1.0 - bad) * self.bad_after(false, later);
        then * self.loss_bad + (1.0 - then) * self.loss_good
    }
}

/// Such a channel in time.
#[derive(Clone, Debug)]
pub struct Channel {
    burst: Burst,
    random: fastrand::Rng,
    is_bad: bool,
    at: Instant,
}

impl Channel {
    /// One that is as bad as it is in the mean.
    pub fn new(burst: Burst, seed: u64) -> Self {
        let mut random = stream(seed, [2, 0, 0]);
        let is_bad = random.f64() < burst.share_bad();
        Self { burst, random, is_bad, at: Instant::ZERO }
    }

    /// Whether a datagram that leaves now is lost; `now` never goes back.
    pub fn loses(&mut self, now: Instant) -> bool {
        let probability = self.burst.bad_after(self.is_bad, now.since(self.at));
        self.is_bad = self.random.f64() < probability;
        self.at = now;
        self.random.f64() < self.burst.loss(self.is_bad)
    }
}
