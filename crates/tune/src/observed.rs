//! What the records of one upstream say, in memory that does not grow with their number.

use std::collections::BTreeMap;

use coapway_records::{Answer, Cause, Copy, Forward, METHODS};

use crate::blocks::BLOCK;
use crate::fit::{Fit, Seen};
use crate::histogram::Histogram;
use crate::neighbours::Neighbours;
use crate::trial::{Reservoir, Trial};

/// Exchanges that left something in doubt are kept up to this number in each half; the rest of them is
/// stood for by these.
const KEPT: usize = 10_000;
/// Origins that are counted by address; one more counts as none of them.
const MOST_ORIGINS: usize = 16;

/// One half: what is proposed is learned from one and judged by the other.
#[derive(Clone, Debug)]
pub(crate) struct Half {
    exact: Histogram,
    others: Reservoir<Trial>,
    /// From the first Acknowledgement to a separate response.
    pub(crate) thinking: Histogram,
}

impl Half {
    fn new(seed: u64) -> Self {
        let others = Reservoir::new(KEPT, seed);
        Self { exact: Histogram::default(), others, thinking: Histogram::default() }
    }

    pub(crate) fn seen(&self) -> Seen<'_> {
        Seen { exact: &self.exact, others: self.others.kept(), weight: self.others.weight() }
    }
}

/// The records of one upstream.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) forwards: u64,
    /// In µs since 1970.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// Minutes in which a request came.
    pub(crate) minutes: u64,
    minute: i64,
    pub(crate) origins: BTreeMap<Box<str>, u64>,
    /// As in [`METHODS`], and all others.
    pub(crate) methods: [u64; METHODS.len() + 1],
    pub(crate) non_confirmable: u64,
    pub(crate) codes: BTreeMap<u8, u64>,
    pub(crate) causes: BTreeMap<Cause, u64>,
    /// POST and PATCH that may have been executed without an answer.
    pub(crate) outcome_unknown: u64,
    /// From receipt to answer, of those the origin answered.
    pub(crate) latency: Histogram,
    /// From receipt to answer, of those that got none in time.
    pub(crate) given_up: Histogram,
    /// The first wait for an Acknowledgement, of requests that may be repeated at will.
    pub(crate) waits: Histogram,
    pub(crate) shortest_wait: f64,
    pub(crate) queued: Histogram,
    /// Requests with so many copies after the first; the last place is for more.
    pub(crate) retries: [u64; 12],
    /// The most of them in one exchange that was given up, by whether the request is executed once only.
    pub(crate) most_in_vain: [u32; 2],
    pub(crate) window: u32,
    /// Exchanges that tell about the path.
    pub(crate) trials: u64,
    /// First copies that another one followed or nothing answered.
    pub(crate) in_vain: u64,
    pub(crate) separate: u64,
    /// Separate responses that came before anything was sent again, and those of them whose
    /// Acknowledgement had not come.
    pub(crate) separate_in_time: u64,
    pub(crate) without_acknowledgement: u64,
    /// Whether records count what came after the answer.
    pub(crate) counts_late: bool,
    pub(crate) neighbours: Neighbours,
    pub(crate) halves: [Half; 2],
}

impl Observed {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            forwards: 0,
            first: i64::MAX,
            last: i64::MIN,
            minutes: 0,
            minute: i64::MIN,
            origins: BTreeMap::new(),
            methods: [0; METHODS.len() + 1],
            non_confirmable: 0,
            codes: BTreeMap::new(),
            causes: BTreeMap::new(),
            outcome_unknown: 0,
            latency: Histogram::default(),
            given_up: Histogram::default(),
            waits: Histogram::default(),
            shortest_wait: f64::INFINITY,
            queued: Histogram::default(),
            retries: [0; 12],
            most_in_vain: [0; 2],
            window: 0,
            trials: 0,
            in_vain: 0,
            separate: 0,
            separate_in_time: 0,
            without_acknowledgement: 0,
            counts_late: false,
            neighbours: Neighbours::default(),
            halves: [Half::new(seed), Half::new(seed.wrapping_add(1))],
        }
    }

    pub(crate) fn add(&mut self, forward: &Forward<'_>) {
        self.forwards += 1;
        self.first = self.first.min(forward.received);
        self.last = self.last.max(forward.received);
        let minute = forward.received.div_euclid(60_000_000);
        if minute > self.minute {
            (self.minute, self.minutes) = (minute, self.minutes + 1);
        }
        if let Some(origin) = forward.origin.as_deref() {
            let is_full = self.origins.len() >= MOST_ORIGINS;
            match self.origins.get_mut(origin) {
                Some(count) => *count += 1,
                None if is_full => {}
                None => drop(self.origins.insert(origin.into(), 1)),
            }
        }
        self.methods[forward.method] += 1;
        self.non_confirmable += u64::from(!forward.confirmable);
        *self.codes.entry(forward.code).or_default() += 1;
        *self.causes.entry(forward.cause).or_default() += 1;
        self.outcome_unknown += u64::from(forward.outcome_unknown && forward.is_once());
        match forward.cause {
            Cause::Origin => self.latency.add(forward.total),
            Cause::TimedOut => self.given_up.add(forward.total),
            Cause::Reset
            | Cause::Unreachable
            | Cause::NotFound
            | Cause::LookUpFailed
            | Cause::Unusable
            | Cause::Overloaded
            | Cause::Other => {}
        }
        self.queued.add(forward.queued);
        self.window = self.window.max(forward.window);
        self.add_copies(forward);
        if let Some(trial) = Trial::of(forward) {
            self.add_trial(forward, trial);
        }
    }

    fn add_copies(&mut self, forward: &Forward<'_>) {
        let Some(first) = forward.copies.first() else { return };
        self.retries[(forward.copies.len() - 1).min(self.retries.len() - 1)] += 1;
        if forward.confirmable && !forward.is_once() {
            self.waits.add(first.wait);
            self.shortest_wait = self.shortest_wait.min(first.wait);
        }
        if forward.cause == Cause::TimedOut && forward.first_ack.is_none() {
            let further = forward.copies.iter().skip(1).take_while(|copy| !copy.begins);
            let most = &mut self.most_in_vain[usize::from(forward.is_once())];
            *most = (*most).max(further.count() as u32);
        }
    }

    fn add_trial(&mut self, forward: &Forward<'_>, trial: Trial) {
        let in_vain = trial.copies.len() > 1 || !trial.arrived;
        let half = &mut self.halves[((self.trials / BLOCK) % 2) as usize];
        self.trials += 1;
        self.in_vain += u64::from(in_vain);
        self.counts_late |= forward.late.is_some();
        self.neighbours.add(forward.received, in_vain);
        if forward.answer == Some(Answer::Separate) {
            self.separate += 1;
            if let Some(ack) = forward.first_ack {
                half.thinking.add(forward.total - ack);
            }
            let only = forward.copies.len() == 1;
            let in_time = |first: &Copy| forward.total < first.at + first.wait;
            if only && forward.copies.first().is_some_and(in_time) {
                self.separate_in_time += 1;
                self.without_acknowledgement += u64::from(forward.first_ack.is_none());
            }
        }
        match trial.exact() {
            Some(time) => half.exact.add(time),
            None => half.others.add(trial),
        }
    }

    /// To be called when all is read.
    pub(crate) fn finish(&mut self) {
        self.neighbours.finish();
    }

    /// Both halves.
    pub(crate) fn fit(&self) -> Option<Fit> {
        Fit::new(&self.halves.each_ref().map(Half::seen))
    }

    /// From the first Acknowledgement to a separate response.
    pub(crate) fn thinking(&self) -> Histogram {
        let mut all = self.halves[0].thinking.clone();
        all.merge(&self.halves[1].thinking);
        all
    }

    /// How much more blocks of exchanges vary than independent exchanges would; at least 1.
    pub(crate) fn clustering(&self) -> f64 {
        self.neighbours.blocks.clustering()
    }

    /// Requests a second, in the minutes in which there were any, where `share` of them was recorded.
    pub(crate) fn load(&self, share: f64) -> f64 {
        let span = (self.last - self.first).max(0) as f64 / 1e6;
        let seconds = span.min(60.0 * self.minutes as f64).max(1.0);
        self.forwards as f64 / seconds / share
    }

    /// Copies after the first, per request that left.
    pub(crate) fn retries_per_request(&self) -> f64 {
        let requests: u64 = self.retries.iter().sum();
        let copies: u64 = (0..).zip(&self.retries).map(|(copies, count)| copies * count).sum();
        copies as f64 / requests.max(1) as f64
    }
}
