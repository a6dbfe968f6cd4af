//! How fast one client may ask (RFC 8516 §3).
//!
//! A client is an IPv4 address or an IPv6 /64. Each has two buckets of tokens: one of requests, and one
//! of answers that say it is too fast. The table is bounded: a client whose buckets are full again is as
//! good as unknown and makes room for the next; where none is found, strangers share one entry.

use std::net::IpAddr;
use std::time::Duration;

use ahash::RandomState;
use coapway_time::Instant;
use hashbrown::HashMap;

/// How long a client may be silent and make up for it afterwards.
const BURST: Duration = Duration::from_secs(2);
/// Answers a second that tell one client it is too fast; as many at once.
const ANSWERS: u32 = 10;
/// How many places are looked at for one that can be given away.
const TRIES: usize = 4;

/// What becomes of a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is served.
    Admitted,
    /// It is answered 4.29, with Max-Age.
    TooFast,
    /// It is not answered: the client has been told often enough.
    Dropped,
}

/// What [`ClientLimits`] counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounters {
    /// Requests answered 4.29.
    pub too_fast: u64,
    /// Requests dropped.
    pub dropped: u64,
    /// Requests of clients that shared an entry because the table was full.
    pub shared: u64,
}

/// How fast each client may ask.
#[derive(Debug)]
pub struct ClientLimits {
    requests: Bucket,
    answers: Bucket,
    /// Where a client's entry is.
    places: HashMap<u64, u32, RandomState>,
    entries: Vec<Entry>,
    /// For clients that have no entry.
    strangers: Levels,
    most: usize,
    /// The place looked at next for one to give away.
    hand: usize,
    counters: LimitCounters,
    last_over: Option<IpAddr>,
}

impl ClientLimits {
    /// Limits for clients that may make `rate` requests a second each, and two seconds' worth at once;
    /// 0 for any number. At most `most` clients are told apart.
    pub fn new(rate: u32, hasher: RandomState, most: usize) -> Self {
        Self {
            requests: Bucket::new(rate, BURST),
            answers: Bucket::new(ANSWERS, Duration::from_secs(1)),
            places: HashMap::with_hasher(hasher),
            entries: Vec::new(),
            strangers: Levels::default(),
            most,
            hand: 0,
            counters: LimitCounters::default(),
            last_over: None,
        }
    }

    /// From now on clients may make `rate` requests a second each, and at most `most` are told apart;
    /// those that are known stay known.
    pub fn set(&mut self, rate: u32, most: usize) {
        (self.requests, self.most) = (Bucket::new(rate, BURST), most);
    }

    /// Judges a request of this client. Loopback has no limit.
    pub fn judge(&mut self, client: IpAddr, now: Instant) -> Verdict {
        if self.requests.interval == 0 || client.to_canonical().is_loopback() {
            return Verdict::Admitted;
        }
        let (requests, answers) = (self.requests, self.answers);
        let levels = self.levels(prefix(client), now);
        if requests.take(&mut levels.requests, now) {
            return Verdict::Admitted;
        }
        let is_told = answers.take(&mut levels.answers, now);
        self.last_over = Some(client);
        if is_told {
            self.counters.too_fast += 1;
            Verdict::TooFast
        } else {
            self.counters.dropped += 1;
            Verdict::Dropped
        }
    }

    /// What was counted.
    pub const fn counters(&self) -> &LimitCounters {
        &self.counters
    }

    /// The client that was last found to be too fast.
    pub const fn last_over(&self) -> Option<IpAddr> {
        self.last_over
    }

    /// How many clients are told apart at the moment.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no client is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn levels(&mut self, prefix: u64, now: Instant) -> &mut Levels {
        let place = match self.places.get(&prefix) {
            Some(&place) => Some(place as usize),
            None => self.place_for(prefix, now),
        };
        match place.and_then(|place| self.entries.get_mut(place)) {
            Some(entry) => &mut entry.levels,
            None => {
                self.counters.shared += 1;
                &mut self.strangers
            }
        }
    }

    /// A place for a client that has none: a new one, or one whose client is as good as unknown.
    fn place_for(&mut self, prefix: u64, now: Instant) -> Option<usize> {
        let entry = Entry { prefix, levels: Levels::default() };
        if self.entries.len() < self.most {
            self.entries.push(entry);
            self.places.insert(prefix, self.entries.len() as u32 - 1);
            return Some(self.entries.len() - 1);
        }
        for _ in 0..TRIES.min(self.entries.len()) {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.entries.len();
            if let Some(old) = self.entries.get_mut(place).filter(|old| old.levels.are_full(now)) {
                self.places.remove(&old.prefix);
                *old = entry;
                self.places.insert(prefix, place as u32);
                return Some(place);
            }
        }
        None
    }
}

/// What is counted as one client: an IPv4 address, or the /64 of an IPv6 one, of which a site has
/// plenty. No site has a /64 that looks like an IPv4 address here: that is `::/32`.
fn prefix(client: IpAddr) -> u64 {
    match client.to_canonical() {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    prefix: u64,
    levels: Levels,
}

/// When the buckets of a client are full again, in nanoseconds since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Levels {
    requests: u64,
    answers: u64,
}

impl Levels {
    const fn are_full(&self, now: Instant) -> bool {
        let now = nanoseconds(now);
        self.requests <= now && self.answers <= now
    }
}

/// A bucket of tokens, kept as the time at which it is full again.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// What one token takes to come back, in nanoseconds; 0 for no limit.
    interval: u64,
    /// What an empty bucket takes to be full.
    depth: u64,
}

impl Bucket {
    fn new(rate: u32, depth: Duration) -> Self {
        let interval = 1_000_000_000_u64.checked_div(u64::from(rate)).map_or(0, |interval| interval.max(1));
        Self { interval, depth: depth.as_nanos() as u64 }
    }

    /// Takes a token, if there is one.
    fn take(self, full_at: &mut u64, now: Instant) -> bool {
        let now = nanoseconds(now);
        let after = (*full_at).max(now).saturating_add(self.interval);
        let has_one = after <= now.saturating_add(self.depth);
        if has_one {
            *full_at = after;
        }
        has_one
    }
}

const fn nanoseconds(now: Instant) -> u64 {
    now.as_micros().saturating_mul(1000)
}

#[cfg(test)]
mod tests;
