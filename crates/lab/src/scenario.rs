//! What is simulated: a path, an origin behind it, and clients that ask.
//!
//! ```text
//! clients ── access ──▶ proxy ── path: up ──▶ origin
//!         ◀── access ──       ◀── path: down ──
//! ```

mod keys;
mod named;
mod read;
mod units;

use std::time::Duration;

use coapway_config::ConfigErrors;

use crate::law::Law;

pub use named::{find, named, source};
pub(crate) use units::seconds;

/// No run has more requests, whatever is asked for.
pub(crate) const MOST_REQUESTS: u32 = 10_000_000;
/// No run has more where nothing is asked for.
pub(crate) const USUAL_REQUESTS: u32 = 2_000_000;

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// For how long clients ask.
    pub duration: Duration,
    /// What is asked before this does not count.
    pub warmup: Duration,
    /// Nobody asks after so many requests; after 2 000 000 where nothing is said.
    pub requests: Option<u32>,
    /// Those who ask.
    pub clients: ClientLaw,
    /// Between proxy and origin.
    pub path: PathLaw,
    /// Between clients and proxy.
    pub access: PathLaw,
    /// Who answers.
    pub origin: OriginLaw,
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// Shape:  `file` is its name for messages.
    /// Errors: everything that is wrong, with file, line, key and range.
    pub fn parse(file: &std::path::Path, text: &str) -> Result<Self, ConfigErrors> {
        read::read(file, text)
    }

    /// Its name, and what it says about itself.
    pub(crate) fn title(&self) -> String {
        let Self { name, about, .. } = self;
        if about.is_empty() { name.clone() } else { format!("{name}: {about}") }
    }

    /// The same with this many requests a second, whoever asks.
    pub fn with_load(mut self, rate: f64) -> Self {
        self.clients.pace = Pace::Rate(rate);
        self
    }

    /// The same with these shares of requests.
    pub const fn with_mix(mut self, mix: Mix) -> Self {
        self.clients.mix = mix;
        self
    }
}

/// Those who ask.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientLaw {
    /// How many there are.
    pub count: u32,
    /// When they ask.
    pub pace: Pace,
    /// All ask first at the very beginning.
    pub together: bool,
    /// Each stops after so many requests.
    pub each: Option<u32>,
    /// What they ask.
    pub mix: Mix,
    /// Bytes of a POST's payload.
    pub payload: usize,
    /// After this long without an answer a client has given up.
    pub patience: Duration,
}

/// When clients ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many requests a second, all clients together, whatever becomes of them (Poisson).
    Rate(f64),
    /// Each client waits for its answer and then for so many seconds on average (exponential).
    Think(f64),
}

/// Shares of requests; what is no POST and not Non-confirmable is a Confirmable GET.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Confirmable POST.
    pub post: f64,
    /// Non-confirmable GET.
    pub non: f64,
}

/// The way between two sides, and back.
#[derive(Clone, Debug, PartialEq)]
pub struct PathLaw {
    /// There and back; each direction takes half of it.
    pub rtt: Law,
    /// What is added now and then.
    pub wake: Option<Wake>,
    /// What changes with time.
    pub phases: Vec<Phase>,
    /// After this long the phases begin anew.
    pub cycle: Option<Duration>,
    /// Bytes below CoAP, for each datagram.
    pub overhead: usize,
    /// From the asking side.
    pub up: WayLaw,
    /// To the asking side.
    pub down: WayLaw,
    /// A network address translator on the asking side.
    pub nat: Option<NatLaw>,
    /// A radio that may seldom send.
    pub radio: Option<RadioLaw>,
}

/// One direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WayLaw {
    /// The share that is lost, each datagram by itself.
    pub loss: f64,
    /// Loss in bursts, beside that.
    pub burst: Option<BurstLaw>,
    /// Bits a second through one queue.
    pub rate: Option<f64>,
    /// Bytes that fit into that queue; what does not is dropped. No limit if there is none.
    pub buffer: Option<u64>,
    /// Foreign traffic through that queue.
    pub cross: Option<CrossLaw>,
    /// The share that arrives twice.
    pub duplication: f64,
    /// The share that is held up by zero to `lag` times the round-trip time, and so overtaken.
    pub reordering: f64,
    /// See `reordering`; also how late a second copy is.
    pub lag: f64,
    /// When nothing passes.
    pub outages: Vec<Outage>,
}

/// A channel with a good and a bad state (Gilbert and Elliott).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLaw {
    /// Mean time in the good state, seconds.
    pub good: f64,
    /// Mean time in the bad state, seconds.
    pub bad: f64,
    /// The share lost in the good state.
    pub loss_good: f64,
    /// The share lost in the bad state.
    pub loss_bad: f64,
    /// The time in the bad state has a heavy tail: Pareto with this shape instead of exponential.
    pub shape: Option<f64>,
    /// Both directions are in the same state.
    pub shared: bool,
}

/// Foreign traffic that comes and goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossLaw {
    /// Mean time it is there, seconds.
    pub on: f64,
    /// Mean time it is not, seconds.
    pub off: f64,
    /// The share of the rate that it sends while it is there.
    pub share: f64,
    /// Bytes of its datagrams.
    pub size: u64,
}

/// A time in which nothing passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// When it begins.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// From one beginning to the next.
    pub every: Duration,
    /// How often it happens.
    pub times: u32,
}

impl Outage {
    /// The outage that is at `at` seconds, if there is one: when it begins and when it ends.
    pub(crate) fn around(&self, at: f64) -> Option<(f64, f64)> {
        let since = at - self.at.as_secs_f64();
        if since < 0.0 {
            return None;
        }
        let number = if self.times > 1 { (since / self.every.as_secs_f64()).floor() } else { 0.0 };
        let begins = self.at.as_secs_f64() + number * self.every.as_secs_f64();
        let ends = begins + self.lasts.as_secs_f64();
        (number < f64::from(self.times) && at < ends).then_some((begins, ends))
    }
}

/// An addition that is seldom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wake {
    /// How seldom.
    pub share: f64,
    /// The shortest, seconds.
    pub least: f64,
    /// The longest, seconds.
    pub most: f64,
}

/// What holds from a moment on.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// From when.
    pub at: Duration,
    /// The law in force instead of the path's.
    pub rtt: Option<Law>,
    /// Seconds on top of the round-trip time.
    pub add: f64,
}

/// A network address translator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NatLaw {
    /// A binding is gone when nothing left through it for so long.
    pub timeout: Duration,
    /// All bindings change this often, whatever they are used for.
    pub rebind: Option<Duration>,
}

/// A radio of class A: it sends seldom, and hears one answer to each message, at a fixed time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioLaw {
    /// Seconds on air: of any message, and for each byte; from the asking side.
    pub up: (f64, f64),
    /// The same to the asking side.
    pub down: (f64, f64),
    /// From the end of a message to the beginning of its answer.
    pub window: f64,
    /// The share of time that it may send.
    pub duty_cycle: f64,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginLaw {
    /// From the receipt of a request to its response.
    pub think: Law,
    /// After this long an Acknowledgement leaves by itself; `None` always waits for the response.
    pub empty_ack_after: Option<Duration>,
    /// It recognises repeated Message IDs.
    pub deduplicates: bool,
    /// What one request occupies it, one after the other, seconds on average.
    pub service: Option<Law>,
    /// Requests that may wait for that.
    pub queue: u32,
    /// What the others get.
    pub when_full: WhenFull,
    /// With this Max-Age, seconds.
    pub max_age: u32,
    /// Bytes of an answer's payload.
    pub payload: usize,
    /// When it does nothing.
    pub stalls: Vec<Outage>,
}

/// What an origin does with requests it has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Nothing.
    Silent,
    /// 5.03 with Max-Age.
    Unavailable,
    /// 4.29 with Max-Age.
    TooManyRequests,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            name: String::new(),
            about: String::new(),
            duration: Duration::from_secs(600),
            warmup: Duration::ZERO,
            requests: None,
            clients: ClientLaw {
                count: 8,
                pace: Pace::Rate(5.0),
                together: false,
                each: None,
                mix: Mix { post: 0.0, non: 0.0 },
                payload: 32,
                patience: Duration::from_secs(100),
            },
            path: PathLaw::default(),
            access: PathLaw::default(),
            origin: OriginLaw {
                think: Law::Constant(0.0),
                empty_ack_after: Some(Duration::from_secs(1)),
                deduplicates: true,
                service: None,
                queue: 16,
                when_full: WhenFull::Unavailable,
                max_age: 5,
                payload: 32,
                stalls: Vec::new(),
            },
        }
    }
}

impl Default for PathLaw {
    /// Neither time nor loss.
    fn default() -> Self {
        Self {
            rtt: Law::Constant(0.0),
            wake: None,
            phases: Vec::new(),
            cycle: None,
            overhead: 28,
            up: WayLaw { lag: 2.0, ..WayLaw::default() },
            down: WayLaw { lag: 2.0, ..WayLaw::default() },
            nat: None,
            radio: None,
        }
    }
}

#[cfg(test)]
mod tests;
