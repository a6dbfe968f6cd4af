//! What is compared: an estimator, how it tells copies apart, how its waits are drawn.

use std::time::Duration;

use coapway_endpoint::{Carry, Estimator, RtoParameters};

use crate::fasor::FasorParameters;
use crate::foreign::{CocoaParameters, ForeignParameters};

/// How timeouts are found and used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Its name in tables.
    pub name: &'static str,
    /// What finds timeouts.
    pub timer: Timer,
    /// How copies are told apart.
    pub telling: Telling,
    /// The longest first wait as a multiple of the shortest, where the estimator has none of its own.
    pub random_factor: f64,
    /// No first wait is longer before it is drawn.
    pub longest_timeout: Duration,
    /// No wait is longer.
    pub longest_wait: Duration,
    /// MAX_RETRANSMIT.
    pub max_retransmit: u32,
}

/// What finds timeouts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timer {
    /// One of the product's.
    Product(RtoParameters),
    /// FASOR, which the product does not have.
    Fasor(FasorParameters),
    /// One that others ship.
    Foreign(ForeignParameters),
}

/// How it becomes known which copy an Acknowledgement is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    /// Each copy has a Message ID of its own: always.
    pub fresh_message_id: bool,
    /// By duplicates of the Acknowledgement: when there were as many as copies, the first belongs to the
    /// first.
    pub duplicates: bool,
    /// An Acknowledgement that came too soon after each later copy is for the first.
    pub causality: bool,
    /// It does not, but a ping measures the path after each ambiguous exchange.
    pub ping: Ping,
    /// It does not, and the time from the first copy counts as exact all the same.
    pub takes_all: bool,
}

/// Whether a ping follows an ambiguous exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ping {
    /// It does not.
    #[default]
    Never,
    /// Beside the next exchange, which begins with what is known before.
    Beside,
    /// Before the next exchange, which begins when the ping is answered, or at once when it gets lost: what
    /// a ping can be worth at the most.
    Before,
}

impl Telling {
    /// Nothing: exchanges with one copy give samples.
    pub const CLEAN: Self = Self {
        fresh_message_id: false,
        duplicates: false,
        causality: false,
        ping: Ping::Never,
        takes_all: false,
    };
    /// A fresh Message ID for each copy.
    pub const FRESH: Self = Self { fresh_message_id: true, ..Self::CLEAN };
    /// A ping before the next exchange after each ambiguous one.
    pub const PING: Self = Self { ping: Ping::Before, ..Self::CLEAN };
    /// Duplicate Acknowledgements.
    pub const DUPLICATES: Self = Self { duplicates: true, ..Self::CLEAN };
    /// Duplicate Acknowledgements, causality, and a ping where both say nothing.
    pub const ALL: Self = Self { causality: true, ping: Ping::Before, ..Self::DUPLICATES };
}

const NEVER_TRUNCATED: Duration = Duration::from_secs(1 << 40);

impl Policy {
    /// An estimator of the product with its defaults, doubling and ACK_RANDOM_FACTOR 1.5.
    pub fn product(name: &'static str, estimator: Estimator, telling: Telling) -> Self {
        let parameters = RtoParameters { estimator, ..RtoParameters::default() };
        Self {
            name,
            timer: Timer::Product(parameters),
            telling,
            random_factor: 1.5,
            longest_timeout: NEVER_TRUNCATED,
            longest_wait: NEVER_TRUNCATED,
            max_retransmit: 4,
        }
    }

    /// The same with other parameters.
    fn with(self, change: impl FnOnce(&mut RtoParameters)) -> Self {
        let mut timer = self.timer;
        if let Timer::Product(parameters) = &mut timer {
            change(parameters);
        }
        Self { timer, ..self }
    }

    /// RFC 7252: fixed, without memory.
    pub fn rfc7252() -> Self {
        Self::product("rfc7252", Estimator::Fixed, Telling::CLEAN).with(|rto| rto.carry = Carry::Never)
    }

    /// RFC 6298; a back-off is carried until a usable sample.
    pub fn rfc6298(name: &'static str, telling: Telling) -> Self {
        Self::product(name, Estimator::Rfc6298, telling)
    }

    /// The same with another rule for what is carried.
    pub fn carrying(self, name: &'static str, carry: Carry) -> Self {
        Self { name, ..self }.with(|rto| rto.carry = carry)
    }

    /// The quantile with a budget of needless copies, of 100 samples, without margin.
    pub fn budget(name: &'static str, spurious: f64, telling: Telling) -> Self {
        Self::product(name, Estimator::Budget, telling).with(|rto| {
            (rto.spurious_budget, rto.margin, rto.window) = (spurious, 1.0, 100);
        })
    }

    /// CoCoA, or its strong half.
    pub fn cocoa(takes_weak: bool) -> Self {
        let (name, estimator) = match takes_weak {
            true => ("cocoa", Estimator::Cocoa),
            false => ("cocoa_strong", Estimator::CocoaStrong),
        };
        let policy = Self::product(name, estimator, Telling::CLEAN).with(|rto| rto.floor = Duration::ZERO);
        Self { longest_wait: Duration::from_secs(32), ..policy }
    }

    /// Peak-Hopper, which libraries use without carrying a back-off.
    pub fn peakhopper() -> Self {
        Self::product("peakhopper", Estimator::PeakHopper, Telling::CLEAN)
            .with(|rto| rto.carry = Carry::Never)
    }

    /// The quantile times a factor, without carrying a back-off.
    pub fn p95(name: &'static str, telling: Telling) -> Self {
        Self::product(name, Estimator::P95, telling).with(|rto| rto.carry = Carry::Never)
    }

    /// The quantile times a factor of all samples there are, ambiguous ones as well, and at most 10 s: as one
    /// finds it described, and why it takes a cap.
    fn p95_of_all() -> Self {
        let policy = Self::p95("p95 of all, capped", Telling { takes_all: true, ..Telling::CLEAN });
        Self { longest_timeout: Duration::from_secs(10), ..policy }
    }

    /// FASOR.
    pub fn fasor(name: &'static str, parameters: FasorParameters) -> Self {
        Self { timer: Timer::Fasor(parameters), ..Self::product(name, Estimator::Fixed, Telling::CLEAN) }
    }

    /// What others ship; they tell copies apart by nothing.
    pub fn foreign(name: &'static str, parameters: ForeignParameters) -> Self {
        Self { timer: Timer::Foreign(parameters), ..Self::product(name, Estimator::Fixed, Telling::CLEAN) }
    }

    /// CoCoA as others understand it.
    fn cocoa_of(name: &'static str, parameters: CocoaParameters) -> Self {
        let longest_wait = Duration::from_secs(32);
        Self { longest_wait, ..Self::foreign(name, ForeignParameters::Cocoa(parameters)) }
    }

    /// Californium's Basic RTO.
    fn basic() -> Self {
        let bounds = (Duration::from_millis(500), Duration::from_secs(32));
        Self::foreign("basic 1.5 (Californium)", ForeignParameters::Basic { factor: 1.5, bounds })
    }

    /// What the tables show.
    pub fn all() -> Vec<Self> {
        vec![
            Self::rfc7252(),
            Self::rfc6298("rfc6298", Telling::CLEAN),
            Self::rfc6298("rfc6298 + ping", Telling::PING),
            Self::rfc6298("rfc6298 + fresh MID", Telling::FRESH),
            Self::product("linux", Estimator::Linux, Telling::CLEAN),
            Self::cocoa(true),
            Self::cocoa(false),
            Self::cocoa_of("cocoa (Californium)", CocoaParameters::CALIFORNIUM),
            Self::cocoa_of("cocoa (er-coap)", CocoaParameters::ER_COAP),
            Self::basic(),
            Self::peakhopper(),
            Self::product("pto", Estimator::Pto, Telling::CLEAN),
            Self::p95("p95 without carry", Telling::CLEAN),
            Self::product("p95", Estimator::P95, Telling::CLEAN),
            Self::p95("p95", Telling::CLEAN).carrying("p95 in force", Carry::InForce),
            Self::p95_of_all(),
            Self::budget("budget 0.05", 0.05, Telling::CLEAN),
            Self::budget("budget", 0.05, Telling::CLEAN).carrying("budget 0.05 ran out", Carry::RanOut),
            Self::budget("budget 0.05 + ping", 0.05, Telling::PING),
            Self::budget("budget 0.05 + duplicates + ping", 0.05, Telling::ALL),
            Self::budget("budget 0.05 + fresh MID", 0.05, Telling::FRESH),
            Self::budget("budget 0.10 + fresh MID", 0.10, Telling::FRESH),
            Self::budget("budget 0.20 + fresh MID", 0.20, Telling::FRESH),
            Self::fasor("fasor as drafted", FasorParameters::DRAFT),
            Self::fasor("fasor, capped", FasorParameters::CAPPED),
        ]
    }
}
