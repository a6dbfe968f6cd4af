//! A client: one exchange after the other, and what it learns from each.

use std::collections::VecDeque;
use std::time::Duration;

use coapway_endpoint::{RoundTrip, Schedule, TransmissionParameters};
use coapway_time::Instant;

use crate::fasor::{Fasor, FasorWaits};
use crate::foreign::Foreign;
use crate::policy::{Ping, Policy, Timer};

/// ACK_TIMEOUT.
const INITIAL: Duration = Duration::from_secs(2);
/// Duplicates of an Acknowledgement are waited for as long as this at least.
const LISTENING: Duration = Duration::from_secs(2);
/// No limit.
const UNLIMITED: Duration = Duration::MAX;

/// What is known of the path.
#[derive(Clone, Debug)]
enum Known {
    Product(Box<RoundTrip>),
    Fasor(Fasor),
    Foreign(Foreign),
}

/// The waits of one exchange.
#[derive(Clone, Copy, Debug)]
enum Waits {
    Schedule { schedule: Schedule, first: Duration },
    Fasor(FasorWaits),
}

/// An exchange under way.
#[derive(Clone, Debug)]
struct Exchange {
    number: u64,
    waits: Waits,
    sent: Vec<Instant>,
    /// The wait that runs.
    wait: Duration,
}

/// One that is over, while Acknowledgements may still come.
#[derive(Clone, Debug)]
struct Over {
    number: u64,
    sent: Vec<Instant>,
    acknowledged: Vec<Instant>,
    until: Instant,
}

/// What an Acknowledgement was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// The first one of the exchange under way, which is over now.
    First { began: Instant, copies: u32, ping: Ping },
    /// One of an exchange that is over.
    Late,
}

/// What follows a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another copy, and the wait after it.
    Copy(Duration),
    /// Nothing: the exchange failed.
    Failed,
}

#[derive(Clone, Debug)]
pub(crate) struct Client {
    policy: Policy,
    known: Known,
    random: fastrand::Rng,
    exchange: Option<Exchange>,
    over: VecDeque<Over>,
    begun: u64,
    /// What is known is forgotten after so many exchanges.
    reset_after: Option<u64>,
}

impl Client {
    pub(crate) fn new(policy: Policy, random: fastrand::Rng, reset_after: Option<u64>) -> Self {
        let known = Known::new(&policy);
        Self { policy, known, random, exchange: None, over: VecDeque::new(), begun: 0, reset_after }
    }

    /// Whether an exchange is under way.
    pub(crate) const fn is_busy(&self) -> bool {
        self.exchange.is_some()
    }

    /// Begins an exchange: its number, and the wait after its first copy.
    pub(crate) fn begin(&mut self, now: Instant) -> (u64, Duration) {
        if self.reset_after.is_some_and(|after| self.begun > 0 && self.begun.is_multiple_of(after)) {
            self.known = Known::new(&self.policy);
            self.over.clear();
        }
        let number = self.begun;
        self.begun += 1;
        let waits = self.known.begin(&self.policy, &mut self.random, now);
        let wait = self.wait(&waits, 1);
        self.exchange = Some(Exchange { number, waits, sent: vec![now], wait });
        (number, wait)
    }

    fn wait(&mut self, waits: &Waits, copies: u32) -> Duration {
        let wait = match waits {
            Waits::Schedule { schedule, first } => schedule.wait(*first, copies, &mut self.random),
            Waits::Fasor(waits) => waits.wait(copies),
        };
        wait.min(self.policy.longest_wait)
    }

    /// The wait that runs in exchange `number` after `copies` is over, unless the exchange is.
    pub(crate) fn wait_is_over(&mut self, number: u64, copies: u32, now: Instant) -> Option<Next> {
        let exchange = self.exchange.as_ref().filter(|exchange| exchange.number == number)?;
        if exchange.sent.len() as u32 != copies {
            return None;
        }
        let (waits, used) = (exchange.waits, exchange.wait);
        self.known.timed_out(used);
        if copies > self.policy.max_retransmit {
            let exchange = self.exchange.take()?;
            self.known.failed(exchange.sent[0], now);
            self.listen(exchange, Vec::new(), now);
            return Some(Next::Failed);
        }
        let wait = self.wait(&waits, copies + 1);
        let exchange = self.exchange.as_mut()?;
        exchange.sent.push(now);
        exchange.wait = wait;
        Some(Next::Copy(wait))
    }

    /// An Acknowledgement of the copy `copy`, 0 for the first, came.
    pub(crate) fn acknowledged(&mut self, number: u64, copy: usize, now: Instant) -> Acknowledged {
        let Some(exchange) = self.exchange.take_if(|exchange| exchange.number == number) else {
            self.late(number, copy, now);
            return Acknowledged::Late;
        };
        let (began, copies) = (exchange.sent[0], exchange.sent.len());
        let telling = self.policy.telling;
        let since_first = now.since(began);
        let is_exact = copies == 1 || telling.takes_all || self.is_of_the_first(&exchange.sent, now);
        if telling.fresh_message_id {
            self.known.exact(now.since(exchange.sent[copy]), now);
        } else if is_exact {
            self.known.exact(since_first, now);
        } else {
            self.known.ambiguous(since_first, copies as u32 - 1, now);
        }
        let is_known = telling.fresh_message_id || is_exact;
        if copies > 1 && (telling.fresh_message_id || !is_known) {
            self.listen(exchange, vec![now], now);
        }
        let ping = if is_known { Ping::Never } else { telling.ping };
        Acknowledged::First { began, copies: copies as u32, ping }
    }

    /// Whether only the first copy can have been answered by now.
    fn is_of_the_first(&self, sent: &[Instant], now: Instant) -> bool {
        let Some(minimum) = self.known.minimum().filter(|_| self.policy.telling.causality) else {
            return false;
        };
        sent[1..].iter().all(|&later| now.since(later) < minimum.mul_f64(0.9))
    }

    /// A ping that left at `sent` was answered.
    pub(crate) fn alive(&mut self, sent: Instant, now: Instant) {
        self.known.exact(now.since(sent), now);
    }

    /// What comes later may still tell copies apart.
    fn listen(&mut self, exchange: Exchange, acknowledged: Vec<Instant>, now: Instant) {
        let telling = self.policy.telling;
        if telling.fresh_message_id || telling.duplicates {
            let until = now + self.known.timeout().max(LISTENING);
            let Exchange { number, sent, .. } = exchange;
            self.over.push_back(Over { number, sent, acknowledged, until });
        }
        self.over.retain(|over| over.until >= now);
    }

    fn late(&mut self, number: u64, copy: usize, now: Instant) {
        let Some(place) = self.over.iter().position(|over| over.number == number && over.until >= now) else {
            return;
        };
        let over = &mut self.over[place];
        over.acknowledged.push(now);
        if self.policy.telling.fresh_message_id {
            let sample = now.since(over.sent[copy]);
            self.known.exact(sample, now);
        } else if over.acknowledged.len() == over.sent.len() {
            let sample = over.acknowledged[0].since(over.sent[0]);
            self.known.exact(sample, now);
        }
    }
}

impl Known {
    fn new(policy: &Policy) -> Self {
        match policy.timer {
            Timer::Product(parameters) => Self::Product(Box::new(RoundTrip::new(parameters, INITIAL))),
            Timer::Fasor(parameters) => Self::Fasor(Fasor::new(parameters)),
            Timer::Foreign(parameters) => Self::Foreign(Foreign::new(parameters)),
        }
    }

    fn begin(&mut self, policy: &Policy, random: &mut fastrand::Rng, now: Instant) -> Waits {
        let timing = match self {
            Self::Product(round_trip) => round_trip.timeout(UNLIMITED, 0, now),
            Self::Foreign(foreign) => foreign.timing(),
            Self::Fasor(fasor) => return Waits::Fasor(fasor.begin(random)),
        };
        let schedule = Schedule {
            timeout: timing.timeout.min(policy.longest_timeout),
            random_factor: timing.random_factor.unwrap_or(policy.random_factor),
            back_off: timing.back_off,
            max_retransmit: policy.max_retransmit,
            span: UNLIMITED,
            last_copy_before: Instant::FAR_FUTURE,
            deadline: Instant::FAR_FUTURE,
            ..Schedule::new(&TransmissionParameters::default(), now)
        };
        Waits::Schedule { schedule, first: schedule.first_wait(random) }
    }

    fn timeout(&self) -> Duration {
        match self {
            Self::Product(round_trip) => round_trip.in_force(UNLIMITED),
            Self::Fasor(fasor) => fasor.timeout(),
            Self::Foreign(foreign) => foreign.timing().timeout,
        }
    }

    fn minimum(&self) -> Option<Duration> {
        match self {
            Self::Product(round_trip) => round_trip.minimum(),
            Self::Fasor(_) | Self::Foreign(_) => None,
        }
    }

    fn exact(&mut self, sample: Duration, now: Instant) {
        match self {
            Self::Product(round_trip) => round_trip.sample(sample, now),
            Self::Fasor(fasor) => fasor.exact(sample),
            Self::Foreign(foreign) => foreign.took(sample, 0),
        }
    }

    fn ambiguous(&mut self, since_first: Duration, retransmissions: u32, now: Instant) {
        match self {
            Self::Product(round_trip) => round_trip.ambiguous(since_first, retransmissions, now),
            Self::Fasor(fasor) => fasor.ambiguous(since_first),
            Self::Foreign(foreign) => foreign.took(since_first, retransmissions),
        }
    }

    fn timed_out(&mut self, used: Duration) {
        match self {
            Self::Product(round_trip) => round_trip.timed_out(used, false),
            Self::Fasor(_) | Self::Foreign(_) => {}
        }
    }

    fn failed(&mut self, began: Instant, now: Instant) {
        match self {
            Self::Product(round_trip) => round_trip.failed(began, now),
            Self::Fasor(fasor) => fasor.failed(began, now),
            Self::Foreign(_) => {}
        }
    }
}
