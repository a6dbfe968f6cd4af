//! The learned timeout towards one origin.

mod budget;
mod cocoa;
mod estimate;
mod linux;
mod p95;
mod peakhopper;
mod pto;
mod rfc6298;
mod samples;

use std::time::Duration;

use coapway_time::Instant;

use self::estimate::Estimate;
use self::samples::{Samples, nearest_rank};
use crate::parameters::{Carry, RtoParameters, scaled};

/// Nothing is doubled past this, which is the lowest maximum that there may be (RFC 6298 §2.5, RFC 8961 §4).
const LONGEST_HELD: Duration = Duration::from_secs(60);

/// No other timeout is longer. It is above any queue that the path may have: a maximum below the round-trip
/// time makes each exchange send a copy for ever (RFC 8961 §4 wants 60 s or more).
const LONGEST: Duration = Duration::from_secs(240);

/// While nothing is heard, no more than so many times the timeout is held.
const SILENT: u32 = 4;

const SAMPLE_AGE_MICROS: u64 = RtoParameters::SAMPLE_AGE.as_secs() * 1_000_000;

/// The first timeout of an exchange, and how its waits go on from there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The shortest first wait.
    pub timeout: Duration,
    /// The longest first wait as a multiple of it, where the estimator says so itself.
    pub random_factor: Option<f64>,
    /// Each wait is this many times the one before.
    pub back_off: f32,
}

impl Timing {
    /// As RFC 7252 §4.2 has it: doubling, and ACK_RANDOM_FACTOR.
    const fn doubling(timeout: Duration) -> Self {
        Self { timeout, random_factor: None, back_off: 2.0 }
    }
}

/// Round-trip times of one origin and the timeout they give.
///
/// Samples: exact ones only, of exchanges with one copy or of copies that can be told apart (Karn;
///          R-USR-17): the last `window` of them, for 15 minutes (R-USR-20). CoCoA alone looks at ambiguous
///          ones, too.
/// Base:    what the configured estimator makes of them.
/// Back-off: a timeout that ran out is doubled and held for the exchanges to come, until an exact
///          sample comes or the origin was left alone for as long as a sample counts. It leaves room
///          for three copies in the wait it is asked for. While nothing at all is heard, less is held: who
///          asks in an outage would be the later to see its end. What is doubled, and whether, says `carry`;
///          CoCoA never does, and for `pto` any Acknowledgement ends it.
#[derive(Clone, Debug)]
pub struct RoundTrip {
    parameters: RtoParameters,
    initial: Duration,
    samples: Samples,
    estimate: Estimate,
    /// What the estimate gives, and whether that is above the cap.
    base: Timing,
    is_above_cap: bool,
    /// How many samples there were when the rank of the quantile was found, and the rank.
    ranked: (usize, usize),
    held: Option<Duration>,
    /// What will be held once the path is heard of by an Acknowledgement that tells no round trip.
    meant: Option<Duration>,
    /// When a timeout was asked for last.
    asked: Instant,
    /// Left alone for longer than this, in microseconds, what is held or estimated changes.
    rest: u64,
}

impl RoundTrip {
    /// Without samples the timeout is `initial`, which is ACK_TIMEOUT.
    pub fn new(parameters: RtoParameters, initial: Duration) -> Self {
        let mut round_trip = Self {
            parameters,
            initial,
            samples: Samples::default(),
            estimate: Estimate::new(parameters.estimator),
            base: Timing::doubling(initial),
            is_above_cap: false,
            ranked: (0, 1),
            held: None,
            meant: None,
            asked: Instant::ZERO,
            rest: SAMPLE_AGE_MICROS,
        };
        round_trip.derive();
        round_trip
    }

    /// Takes over changed parameters and keeps the samples.
    pub fn set_parameters(&mut self, parameters: RtoParameters, initial: Duration) {
        (self.parameters, self.initial, self.ranked) = (parameters, initial, (0, 1));
        if self.estimate.estimator() != parameters.estimator {
            self.estimate = Estimate::new(parameters.estimator);
            for (at, sample) in self.samples.iter() {
                self.estimate.learn(sample, initial, at);
            }
            (self.base, self.rest) = (Timing::doubling(initial), SAMPLE_AGE_MICROS);
            self.is_above_cap = false;
        }
        if self.estimate.carry(parameters.carry) == Carry::Never {
            (self.held, self.meant) = (None, None);
        }
        self.derive();
    }

    /// To be called when samples or parameters have changed.
    fn derive(&mut self) {
        // Of the usual one nothing but the timeout ever changes.
        if matches!(self.estimate, Estimate::P95) {
            let count = self.samples.len();
            if self.ranked.0 != count {
                self.ranked = (count, nearest_rank(count, self.parameters.quantile));
            }
            let learned = p95::timeout(&self.samples, self.ranked.1, &self.parameters);
            self.base.timeout = learned.unwrap_or(self.initial);
            self.is_above_cap = self.base.timeout >= self.parameters.cap
                // What is above the cap itself gives a timeout that is not below it.
                && p95::exceeds_cap(&self.samples, &self.parameters);
            return;
        }
        self.base = self.estimate.timing(&self.samples, &self.parameters, self.initial);
        self.is_above_cap = matches!(self.estimate, Estimate::Budget(_))
            && self.base.timeout >= self.parameters.cap
            && p95::exceeds_cap(&self.samples, &self.parameters);
        if let Estimate::Cocoa(cocoa) = &self.estimate {
            self.rest = u64::try_from(cocoa.rest().as_micros()).unwrap_or(u64::MAX);
        }
    }

    /// The first timeout of an exchange that starts now and may last `wait`, beside `outstanding`
    /// others.
    pub fn timeout(&mut self, wait: Duration, outstanding: u32, now: Instant) -> Timing {
        if self.samples.forget(RtoParameters::SAMPLE_AGE, now) {
            if self.samples.is_empty() {
                self.estimate.forget();
            }
            self.derive();
        }
        if now.as_micros().saturating_sub(self.asked.as_micros()) > self.rest {
            self.was_left_alone(now);
        }
        self.asked = now;
        if let Estimate::Cocoa(cocoa) = &self.estimate {
            return cocoa.beside(outstanding, self.base);
        }
        Timing { timeout: self.in_force(wait), ..self.base }
    }

    #[cold]
    fn was_left_alone(&mut self, now: Instant) {
        if now.since(self.asked) > RtoParameters::SAMPLE_AGE {
            (self.held, self.meant) = (None, None);
        }
        if self.estimate.age(self.asked, now) {
            self.derive();
        }
    }

    /// The first timeout that an exchange would have which may last `wait`; nothing changes by asking.
    pub fn in_force(&self, wait: Duration) -> Duration {
        let base = self.base.timeout;
        match self.held {
            // Copies at 0, T and 3 T: the third leaves at two thirds of the wait at the latest.
            Some(held) => base.max(held.min(scaled(wait, 2.0 / 9.0))),
            None => base,
        }
    }

    /// Whether a timeout that ran out counts for the exchanges to come, until there is an exact sample.
    pub const fn is_backed_off(&self) -> bool {
        self.held.is_some()
    }

    /// The quantile of the samples, nearest rank.
    pub fn quantile(&self) -> Option<Duration> {
        self.samples.quantile(self.parameters.quantile)
    }

    /// The smallest sample in the window.
    pub fn minimum(&self) -> Option<Duration> {
        self.samples.minimum()
    }

    /// The newest sample.
    pub fn last(&self) -> Option<Duration> {
        self.samples.last()
    }

    /// The samples that count, oldest first, and when each came.
    pub fn samples(&self) -> impl Iterator<Item = (Instant, Duration)> {
        self.samples.iter()
    }

    /// How many exact samples there ever were.
    pub const fn exact_samples(&self) -> u64 {
        self.samples.ever()
    }

    /// How many samples count now.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether no sample counts.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Whether what was learned lies above the configured cap: the path is slower than the operator
    /// allowed for, which is worth an alert. The timeout follows the path all the same (R-USR-18).
    pub const fn cap_is_exceeded(&self) -> bool {
        self.is_above_cap
    }

    /// An exact sample: the time from sending a Confirmable message, sent once, to its
    /// Acknowledgement. It ends a held back-off.
    pub fn sample(&mut self, sample: Duration, now: Instant) {
        if let Estimate::Budget(budget) = &mut self.estimate {
            budget.took(sample, self.base.timeout, &self.samples, self.parameters.spurious_budget);
        }
        (self.held, self.meant) = (None, None);
        self.samples.push(sample, self.parameters.window, now);
        self.estimate.learn(sample, self.initial, now);
        self.derive();
    }

    /// An Acknowledgement after one or more retransmissions: nobody knows of which copy. `since_first`
    /// is the time from the first.
    pub fn ambiguous(&mut self, since_first: Duration, retransmissions: u32, now: Instant) {
        if self.estimate.any_acknowledgement_ends_back_off() {
            (self.held, self.meant) = (None, None);
        }
        self.hold();
        if self.estimate.learn_ambiguous(since_first, retransmissions, self.initial, now) {
            self.derive();
        }
    }

    /// A round trip took at least so long, whichever copy was answered: the time since the last. That counts
    /// as a sample for `budget` where it lies above the timeout: else what is slower would never be seen. It
    /// ends no back-off.
    pub fn at_least(&mut self, bound: Duration, now: Instant) {
        let Estimate::Budget(budget) = &mut self.estimate else { return };
        budget.took_since_last(bound, &self.samples);
        if !self.samples.is_empty() && bound > self.base.timeout {
            self.samples.push_bound(bound, self.parameters.window, now);
            self.derive();
        }
    }

    /// A wait of `used` ran out. A doubled value is held for the exchanges to come, once for losses in
    /// parallel: only if the timeout in force is neither far above `used` nor already twice it (Unbound's
    /// rule). `is_silent` says that nothing came since the copy left: a path that is not there is not slow, so
    /// that no more than four times the timeout is held before it is heard of again, or a whole exchange was in
    /// vain.
    pub fn timed_out(&mut self, used: Duration, is_silent: bool) {
        let current = self.meant.or(self.held).unwrap_or(self.base.timeout);
        let doubled = match self.estimate.carry(self.parameters.carry) {
            Carry::RanOut if current >= used / 2 && current <= used * 2 => (used * 2).max(current),
            // Chance only ever lengthens a wait.
            Carry::InForce if current >= used / 2 && current <= used => current * 2,
            Carry::Auto | Carry::Never | Carry::RanOut | Carry::InForce => return,
        };
        let doubled = doubled.min(LONGEST_HELD.max(self.base.timeout));
        if is_silent {
            let most = (self.base.timeout * SILENT).max(self.held.unwrap_or_default());
            (self.held, self.meant) = (Some(doubled.min(most)), Some(doubled));
        } else {
            (self.held, self.meant) = (Some(doubled), None);
        }
    }

    /// What a silence would have held is held: it is not over, or the path was slow.
    fn hold(&mut self) {
        if let Some(meant) = self.meant.take() {
            self.held = Some(self.held.map_or(meant, |held| held.max(meant)));
        }
    }

    /// An exchange that began at `began` is over without an Acknowledgement, the wait after its last
    /// copy included.
    pub fn failed(&mut self, began: Instant, now: Instant) {
        self.hold();
        if self.estimate.restarts(began, now) {
            self.samples.clear();
            self.estimate.forget();
            self.derive();
        }
    }
}

/// A duration in nanoseconds, for formulas.
fn nanos(duration: Duration) -> f64 {
    duration.as_secs() as f64 * 1e9 + f64::from(duration.subsec_nanos())
}

/// The other way round, to the nanosecond.
fn duration(nanos: f64) -> Duration {
    Duration::from_nanos((nanos + 0.5) as u64)
}

/// What an estimate gives, in its bounds.
fn bounded(timeout: Duration, parameters: &RtoParameters) -> Duration {
    timeout.min(LONGEST).max(parameters.floor)
}

#[cfg(test)]
mod tests;
