//! Which copy of a request was acknowledged (RFC 6298 §3, Karn's problem, on CoAP's wire).
//!
//! All copies carry one Message ID, so an Acknowledgement after the second copy may answer either. Two
//! things tell without asking anything of the origin:
//!
//! ```text
//!  t₀ ──copy──▶            causality: ack − t₁ is less than any round trip ever took,
//!  t₁ ──copy──▶            so it answers t₀, and the copy at t₁ was not needed
//!        ◀──ack── now
//!
//!  t₀ ──copy──▶            counting: a receiver acknowledges every copy (RFC 7252 §4.2),
//!  t₁ ──copy──▶            so as many Acknowledgements as copies means that nothing was lost,
//!        ◀──ack── a₀       and they answer in order: a₀ − t₀, a₁ − t₁
//!        ◀──ack── a₁
//! ```
//!
//! Counting needs time: Acknowledgements are awaited for a while after the first. What stays untold then
//! is told to whoever owns this, who may ask by a ping.

use std::collections::VecDeque;
use std::time::Duration;

use ahash::RandomState;
use coapway_endpoint::Peer;
use coapway_time::Instant;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// So many acknowledged messages are watched at a time; of further ones nothing is learned.
const MOST: usize = 4096;
/// A round trip this much shorter than the shortest known one cannot have been.
const CAUSALITY: f64 = 0.9;
/// Acknowledgements are awaited for the timeout in force, and at least this long.
pub(crate) const LEAST_WATCH: Duration = Duration::from_secs(2);

/// A message by what its Acknowledgements say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) peer: Peer,
    pub(crate) message_id: u16,
}

type Instants = SmallVec<[Instant; 4]>;

#[derive(Debug)]
struct Watched {
    origin: u32,
    copies: Instants,
    acknowledgements: Instants,
    until: Instant,
}

/// Round trips that were told apart, oldest copy first.
pub(crate) type RoundTrips = SmallVec<[Duration; 4]>;

/// Messages that were acknowledged after more than one copy.
#[derive(Debug)]
pub(crate) struct Apart {
    watched: HashMap<Key, Watched, RandomState>,
    /// In the order in which they were acknowledged.
    order: VecDeque<(Instant, Key)>,
}

impl Apart {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self { watched: HashMap::with_hasher(hasher), order: VecDeque::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Acknowledgements of a message of which `copies` left are counted from now on, the first of which
    /// has just come.
    pub(crate) fn watch(
        &mut self,
        key: Key,
        origin: u32,
        copies: impl Iterator<Item = Instant>,
        watch: Duration,
        now: Instant,
    ) {
        if self.order.len() >= MOST {
            return;
        }
        let until = now + watch.max(LEAST_WATCH);
        let copies: Instants = copies.collect();
        let acknowledgements = SmallVec::from_slice(&[now]);
        self.watched.insert(key, Watched { origin, copies, acknowledgements, until });
        self.order.push_back((until, key));
    }

    /// Another copy of a message left: it too will be acknowledged.
    pub(crate) fn copied(&mut self, key: &Key, now: Instant) {
        if let Some(watched) = self.watched.get_mut(key) {
            watched.copies.push(now);
        }
    }

    /// One more Acknowledgement came. Says of which origin, and what it told, once it is the last.
    pub(crate) fn acknowledged(&mut self, key: &Key, now: Instant) -> Option<(u32, RoundTrips)> {
        let watched = self.watched.get_mut(key)?;
        watched.acknowledgements.push(now);
        if watched.acknowledgements.len() < watched.copies.len() {
            return None;
        }
        let Watched { origin, copies, acknowledgements, .. } = self.watched.remove(key)?;
        let pairs = copies.iter().zip(&acknowledgements);
        Some((origin, pairs.map(|(&sent, came)| came.since(sent)).collect()))
    }

    /// When to call [`Apart::expire`] next.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.order.front().map(|&(until, _)| until)
    }

    /// The origin of a message whose Acknowledgements were awaited in vain.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<u32> {
        while let Some(&(until, key)) = self.order.front() {
            if until > now {
                return None;
            }
            self.order.pop_front();
            if self.watched.get(&key).is_some_and(|watched| watched.until <= now) {
                return self.watched.remove(&key).map(|watched| watched.origin);
            }
        }
        None
    }

    /// Nothing is learned of an origin that is forgotten.
    pub(crate) fn forget(&mut self, origin: u32) {
        self.watched.retain(|_, watched| watched.origin != origin);
    }
}

/// The round trip of an Acknowledgement that came at `now`, if it cannot answer any copy but the first:
/// then those after it were not needed.
///
/// Units: `shortest` is the shortest round-trip time known of the path.
pub(crate) fn by_causality(
    mut copies: impl Iterator<Item = Instant>,
    shortest: Option<Duration>,
    now: Instant,
) -> Option<Duration> {
    let (first, second) = (copies.next()?, copies.next()?);
    let possible = Duration::from_micros((shortest?.as_micros() as f64 * CAUSALITY) as u64);
    // The second is the oldest of those that must not be answered.
    (now.since(second) < possible).then(|| now.since(first))
}

#[cfg(test)]
mod tests {
    use coapway_endpoint::Local;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn key(message_id: u16) -> Key {
        Key { peer: Peer { local: Local::default(), remote: ([127, 0, 0, 1], 5683).into() }, message_id }
    }

    fn apart() -> Apart {
        Apart::new(RandomState::with_seeds(1, 2, 3, 4))
    }

    #[test]
    fn as_many_acknowledgements_as_copies_answer_them_in_order() {
        let mut apart = apart();
        apart.watch(key(1), 7, [at(0), at(2000)].into_iter(), millis(500), at(2300));
        assert_eq!(apart.acknowledged(&key(2), at(2400)), None, "of another message");
        let told = apart.acknowledged(&key(1), at(4500));
        assert_eq!(told, Some((7, SmallVec::from_slice(&[millis(2300), millis(2500)]))));
        assert!(apart.is_empty() && apart.expire(at(10_000)).is_none(), "told once");
    }

    #[test]
    fn a_copy_that_leaves_meanwhile_is_waited_for_too() {
        let mut apart = apart();
        apart.watch(key(1), 7, [at(0), at(2000)].into_iter(), millis(500), at(2300));
        apart.copied(&key(1), at(2400));
        assert_eq!(apart.acknowledged(&key(1), at(2500)), None);
        assert!(apart.acknowledged(&key(1), at(2600)).is_some());
    }

    #[test]
    fn what_is_not_told_in_time_stays_untold() {
        let mut apart = apart();
        apart.watch(key(1), 7, [at(0), at(100)].into_iter(), millis(500), at(300));
        apart.watch(key(2), 8, [at(0), at(100)].into_iter(), millis(5000), at(300));
        assert_eq!(apart.next_end(), Some(at(2300)), "two seconds at least");
        assert_eq!((apart.expire(at(2299)), apart.expire(at(2300))), (None, Some(7)));
        assert_eq!(apart.acknowledged(&key(1), at(2400)), None, "too late");
        assert_eq!((apart.expire(at(5299)), apart.expire(at(5300))), (None, Some(8)));
    }

    #[test]
    fn a_flood_is_bounded_and_a_forgotten_origin_is_silent() {
        let mut apart = apart();
        for message_id in 0..=u16::MAX {
            apart.watch(key(message_id), 7, [at(0), at(1)].into_iter(), millis(1), at(2));
        }
        assert_eq!((apart.watched.len(), apart.order.len()), (MOST, MOST));
        apart.forget(7);
        assert!(apart.is_empty() && apart.expire(at(60_000)).is_none() && apart.order.is_empty());
    }

    #[test]
    fn an_acknowledgement_that_comes_too_soon_for_the_second_copy_answers_the_first() {
        let shortest = Some(millis(100));
        let told = |copies: &[u64], now| by_causality(copies.iter().map(|&sent| at(sent)), shortest, at(now));
        assert_eq!(told(&[0, 2000], 2089), Some(millis(2089)));
        assert_eq!(told(&[0, 2000], 2090), None, "nine tenths of the shortest: it may answer either");
        assert_eq!(told(&[0, 2000, 2080], 2120), None, "the second may be answered");
        assert_eq!(told(&[0], 50), None, "one copy needs no telling");
        assert_eq!(by_causality([at(0), at(10)].into_iter(), None, at(20)), None, "nothing is known");
    }
}
