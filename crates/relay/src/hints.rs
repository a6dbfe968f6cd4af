//! What origins said about when to come again: 4.29 and 5.03 (RFC 8516, RFC 7252 §5.9.3.4).
//!
//! While such a response is fresh, similar requests are answered with it here and the origin is left
//! alone. Similar is what asks for the same resource by the same method, whoever asks: towards the
//! origin the proxy is one client. That goes for 5.03 as well: a server may be out of order for one
//! resource, and one that is itself a proxy speaks for a single origin behind it.
//!
//! ```text
//! noted             the origin's time is over          half of it again
//!   │ all are held            │ one goes through: a probe       │
//!   └─────────────────────────┴─────────────────────────────────┘
//!                               others until a time of their own, or until the probe has fared well
//! ```
//! So those who were all told one time do not all reach the origin at once, nobody is told less than the
//! origin said, and who asks alone waits no longer.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use ahash::RandomState;
use coapway_message::options::uint;
use coapway_message::{Code, Content, OptionNumber, OptionsWriter};
use coapway_time::Instant;
use hashbrown::HashMap;

use crate::answer::compose;
use crate::parameters::UpstreamId;
use crate::resource::resource_key;
use crate::route::Destination;

/// The Max-Age of a response without one, in seconds (RFC 7252 §5.10.5).
const DEFAULT_MAX_AGE: u32 = 60;
/// An origin is left alone for so many seconds at most.
const LONGEST: u32 = 300;
/// What is kept of a payload, in bytes.
const MAX_TEXT: usize = 256;

/// How a request names its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// By address.
    Address(SocketAddr),
    /// By a name, which its Uri-Host repeats, and this port.
    Named(u16),
}

impl From<&Destination> for Origin {
    fn from(destination: &Destination) -> Self {
        match *destination {
            Destination::Address(address) => Self::Address(address),
            Destination::Name { port, .. } => Self::Named(port),
        }
    }
}

/// What [`Hints`] counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintCounters {
    /// Hints of origins taken.
    pub noted: u64,
    /// Requests answered by a hint.
    pub held: u64,
    /// Hints forgotten before their time because there were too many.
    pub forgotten: u64,
}

/// The hints that hold.
#[derive(Debug)]
pub struct Hints {
    hasher: RandomState,
    held: HashMap<u64, Hint, RandomState>,
    /// Keys of `held`, oldest first.
    order: VecDeque<u64>,
    most: usize,
    /// Hints that have let a probe through.
    probed: usize,
    counters: HintCounters,
}

#[derive(Debug)]
struct Hint {
    code: Code,
    /// When the origin's time is over, and when nobody is held any more.
    until: Instant,
    spread: Duration,
    /// Whether a probe was let through.
    is_probed: bool,
    content_format: Option<u32>,
    payload: Box<[u8]>,
}

impl Hints {
    /// No hints yet, and at most `most` later.
    pub fn new(hasher: RandomState, most: usize) -> Self {
        Self {
            held: HashMap::with_hasher(hasher.clone()),
            hasher,
            order: VecDeque::new(),
            most,
            probed: 0,
            counters: HintCounters::default(),
        }
    }

    /// From now on at most `most` hints are kept.
    pub fn set_most(&mut self, most: usize) {
        self.most = most;
        while self.order.len() > most {
            self.counters.forgotten += 1;
            self.forget_oldest();
        }
    }

    /// Whether there is no hint: then there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// How many hints there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// What was counted.
    pub const fn counters(&self) -> &HintCounters {
        &self.counters
    }

    /// What similar requests have in common, by what is sent to the origin; `None` when nobody can tell,
    /// because of OSCORE.
    pub fn key(&self, upstream: UpstreamId, origin: Origin, content: &Content<'_>) -> Option<u64> {
        let target = (upstream, origin, content.code);
        let is_oscore = content.options.first(OptionNumber::OSCORE).is_some();
        (!is_oscore).then(|| resource_key(&self.hasher, target, content))
    }

    /// An origin answered a request with this key. An answer of ours is no hint.
    ///
    /// Codes other than 4.29 and 5.03 say nothing, nor does a Max-Age of 0.
    pub fn note(&mut self, key: u64, response: &Content<'_>, now: Instant) {
        self.forget_expired(now);
        let is_hint = matches!(response.code, Code::TOO_MANY_REQUESTS | Code::SERVICE_UNAVAILABLE);
        let max_age = match response.options.first(OptionNumber::MAX_AGE) {
            Some(value) => uint(value).unwrap_or(0).min(LONGEST),
            None => DEFAULT_MAX_AGE,
        };
        if !is_hint || max_age == 0 || self.most == 0 {
            return;
        }
        self.counters.noted += 1;
        let until = now + seconds(max_age);
        let (content_format, payload) = repeatable(response);
        // Half of the time again, unless that is too long.
        let spread = (seconds(max_age) / 2).min(seconds(LONGEST - max_age));
        let (code, payload) = (response.code, payload.into());
        let hint = Hint { code, until, spread, is_probed: false, content_format, payload };
        match self.held.insert(key, hint) {
            Some(before) => self.probed -= usize::from(before.is_probed),
            None => self.order.push_back(key),
        }
        while self.order.len() > self.most {
            self.counters.forgotten += 1;
            self.forget_oldest();
        }
    }

    /// Whether probes were let through, whose answers say something.
    pub const fn has_probes(&self) -> bool {
        self.probed > 0
    }

    /// An origin answered a request with this key by something that is no hint: if that was a probe, the
    /// others may follow.
    pub fn lift(&mut self, key: u64) {
        if let Some(hint) = self.held.get_mut(&key).filter(|hint| hint.is_probed) {
            self.probed -= 1;
            (hint.is_probed, hint.spread) = (false, Duration::ZERO);
        }
    }

    /// The answer to a request of `client` with this key, in `scratch`, which is cleared; `None` when the
    /// origin may be asked.
    ///
    /// Units:  its Max-Age is what is left in seconds, rounded up.
    pub fn held<'s>(
        &mut self,
        key: u64,
        client: SocketAddr,
        now: Instant,
        scratch: &'s mut Vec<u8>,
    ) -> Option<Content<'s>> {
        let hint = self.held.get_mut(&key).filter(|hint| hint.until + hint.spread > now)?;
        if now >= hint.until && !hint.is_probed {
            hint.is_probed = true;
            self.probed += 1;
            return None;
        }
        let until = match now < hint.until {
            true => hint.until,
            false => {
                let drawn = self.hasher.hash_one((client, key, hint.until)) >> 32;
                hint.until + hint.spread.mul_f64(drawn as f64 / f64::from(u32::MAX))
            }
        };
        if until <= now {
            return None;
        }
        self.counters.held += 1;
        scratch.clear();
        let mut options = OptionsWriter::new(scratch);
        if let Some(format) = hint.content_format {
            options.push_uint(OptionNumber::CONTENT_FORMAT, format);
        }
        let left = until.since(now).as_micros().div_ceil(1_000_000);
        options.push_uint(OptionNumber::MAX_AGE, u32::try_from(left).unwrap_or(LONGEST));
        Some(compose(hint.code, |scratch| scratch.extend_from_slice(&hint.payload), scratch))
    }

    /// Those behind one that holds are left until it does not: none holds longer than [`LONGEST`].
    fn forget_expired(&mut self, now: Instant) {
        while self
            .order
            .front()
            .and_then(|key| self.held.get(key))
            .is_some_and(|hint| hint.until + hint.spread <= now)
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(key) = self.order.pop_front() {
            let hint = self.held.remove(&key);
            self.probed -= usize::from(hint.is_some_and(|hint| hint.is_probed));
        }
    }
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(count.into())
}

/// What of a response may be said again on another request: Content-Format and payload, when they mean
/// something without the other options. A text that is too long is cut, anything else left out.
fn repeatable<'d>(response: &Content<'d>) -> (Option<u32>, &'d [u8]) {
    let Content { options, payload, .. } = *response;
    if options.iter().any(|(number, _)| number.is_critical()) {
        return (None, &[]);
    }
    let format = options.uint(OptionNumber::CONTENT_FORMAT);
    if payload.len() <= MAX_TEXT {
        return (format, payload);
    }
    let text = std::str::from_utf8(payload).ok().filter(|_| format.is_none()).unwrap_or("");
    let end = (0..=MAX_TEXT.min(text.len())).rfind(|&end| text.is_char_boundary(end)).unwrap_or(0);
    (None, payload.get(..end).unwrap_or(&[]))
}

#[cfg(test)]
mod tests;
