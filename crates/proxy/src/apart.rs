//! Which copy of a request was acknowledged (RFC 6298 §3, Karn's problem, on CoAP's wire).
//!
//! Where all copies carry one Message ID, an Acknowledgement after the second copy may answer either. Two
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
//!
//! Where copies carry Message IDs of their own nothing needs telling: each Acknowledgement is a round trip of
//! its copy, also one that comes after the exchange is over. Those are awaited for the same while.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use ahash::RandomState;
use coapway_endpoint::{Copy, Course, Peer};
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

#[derive(Clone, Copy, Debug)]
struct Watched {
    origin: u32,
    what: What,
    until: Instant,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// As many copies under one Message ID.
    Counted {
        /// Acknowledgements still to come.
        missing: u32,
        /// From the first copy to the first Acknowledgement.
        round_trip: Duration,
    },
    /// The only copy under its Message ID, and when it left.
    Only(Instant),
}

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
    pub(crate) fn watch(&mut self, key: Key, origin: u32, copies: &[Instant], watch: Duration, now: Instant) {
        let [first, others @ ..] = copies else { return };
        let what = What::Counted { missing: others.len() as u32, round_trip: now.since(*first) };
        self.await_one(key, Watched { origin, what, until: now + watch.max(LEAST_WATCH) });
    }

    /// The Acknowledgement of a copy that left at `sent` is awaited from now on; no other has its Message ID.
    pub(crate) fn watch_only(&mut self, key: Key, origin: u32, sent: Instant, watch: Duration, now: Instant) {
        let until = now + watch.max(LEAST_WATCH);
        self.await_one(key, Watched { origin, what: What::Only(sent), until });
    }

    fn await_one(&mut self, key: Key, watched: Watched) {
        if self.order.len() < MOST {
            self.watched.insert(key, watched);
            self.order.push_back((watched.until, key));
        }
    }

    /// One more Acknowledgement came. Says of which origin, and which round trip that tells: that of its
    /// copy, or, once all came, that of the first.
    pub(crate) fn acknowledged(&mut self, key: &Key, now: Instant) -> Option<(u32, Told)> {
        let watched = self.watched.get_mut(key)?;
        let told = match &mut watched.what {
            What::Only(sent) => Told { round_trip: now.since(*sent), by_counting: false },
            What::Counted { missing, round_trip } => {
                *missing = missing.saturating_sub(1);
                if *missing > 0 {
                    return None;
                }
                Told { round_trip: *round_trip, by_counting: true }
            }
        };
        self.watched.remove(key).map(|watched| (watched.origin, told))
    }

    /// When to call [`Apart::expire`] next.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.order.front().map(|&(until, _)| until)
    }

    /// A message whose Acknowledgements were counted in vain: its origin, by number and by address.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<(u32, SocketAddr)> {
        while let Some(&(until, key)) = self.order.front() {
            if until > now {
                return None;
            }
            self.order.pop_front();
            if self.watched.get(&key).is_some_and(|watched| watched.until <= now)
                && let Some(Watched { origin, what: What::Counted { .. }, .. }) = self.watched.remove(&key)
            {
                return Some((origin, key.peer.remote));
            }
        }
        None
    }
}

/// What an Acknowledgement told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) round_trip: Duration,
    /// Not by its Message ID alone.
    pub(crate) by_counting: bool,
}

/// A message of which several copies left.
#[derive(Clone, Debug)]
pub(crate) struct Several {
    pub(crate) peer: Peer,
    /// The Message ID of its first Acknowledgement.
    pub(crate) acknowledged: Option<u16>,
    copies: SmallVec<[Copy; 4]>,
}

impl Several {
    pub(crate) fn of(course: &Course<'_>) -> Self {
        let copies = std::iter::once(course.first()).chain(course.further().iter().copied());
        Self { peer: course.peer(), acknowledged: course.first_ack_id(), copies: copies.collect() }
    }

    /// `None` where an Acknowledgement to come says nothing, since all of several copies have one Message ID.
    pub(crate) fn if_told_apart(course: &Course<'_>) -> Option<Self> {
        let differ = course.further().last().is_none_or(|last| last.message_id != course.message_id());
        (course.is_confirmable() && differ).then(|| Self::of(course))
    }

    /// When the copies left under this Message ID.
    pub(crate) fn under(&self, message_id: u16) -> SmallVec<[Instant; 4]> {
        self.copies.iter().filter(|copy| copy.message_id == message_id).map(|copy| copy.sent).collect()
    }

    /// The Message IDs that were not acknowledged, each with when the only copy under it left.
    pub(crate) fn others(&self) -> impl Iterator<Item = (u16, Instant)> {
        let open = self.copies.iter().filter(|copy| Some(copy.message_id) != self.acknowledged);
        open.filter_map(|copy| match self.under(copy.message_id)[..] {
            [only] => Some((copy.message_id, only)),
            _ => None,
        })
    }
}

/// The round trip of an Acknowledgement that came at `now`, if it cannot answer any copy but the first:
/// then those after it were not needed.
///
/// Units: `shortest` is the shortest round-trip time known of the path.
pub(crate) fn by_causality(copies: &[Instant], shortest: Option<Duration>, now: Instant) -> Option<Duration> {
    let [first, second, ..] = copies else { return None };
    let possible = Duration::from_micros((shortest?.as_micros() as f64 * CAUSALITY) as u64);
    // The second is the oldest of those that must not be answered.
    (now.since(*second) < possible).then(|| now.since(*first))
}

/// Round trips of one origin that [`by_causality`] told, and nothing else since.
///
/// A path that has become slow is told so once: from then on it is waited for. Told again and again it is one
/// that has become faster than all that is known of it, and loses first copies; each would be taken for a
/// round trip that is longer than the last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inferred {
    /// When the first was told, and how many exact samples there were with the last.
    run: Option<(Instant, u64)>,
}

impl Inferred {
    /// Whether one more may be believed, of a message that first left at `sent`.
    pub(crate) fn may_be_believed(&self, sent: Instant, exact_samples: u64) -> bool {
        self.run.is_none_or(|(began, samples)| samples != exact_samples || sent < began)
    }

    /// One was believed, and was a sample more.
    pub(crate) fn believed(&mut self, exact_samples: u64, now: Instant) {
        let began =
            self.run.filter(|&(_, samples)| samples + 1 == exact_samples).map_or(now, |(began, _)| began);
        self.run = Some((began, exact_samples));
    }
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
    fn what_is_told_by_causality_is_believed_once_until_there_is_an_exact_sample() {
        let mut inferred = Inferred::default();
        assert!(inferred.may_be_believed(at(0), 5));
        inferred.believed(6, at(1_000));
        assert!(inferred.may_be_believed(at(900), 6), "it left when nothing was told");
        inferred.believed(7, at(1_100));
        assert!(!inferred.may_be_believed(at(1_000), 7), "it was waited for as long as was told");
        assert!(inferred.may_be_believed(at(2_000), 8), "another sample came");
        inferred.believed(9, at(3_000));
        assert!(inferred.may_be_believed(at(2_900), 9) && !inferred.may_be_believed(at(3_000), 9));
    }

    #[test]
    fn as_many_acknowledgements_as_copies_tell_that_the_first_answers_the_first() {
        let mut apart = apart();
        apart.watch(key(1), 7, &[at(0), at(2000), at(2200)], millis(500), at(2300));
        assert_eq!(apart.acknowledged(&key(2), at(2400)), None, "of another message");
        assert_eq!(apart.acknowledged(&key(1), at(2400)), None, "one is missing");
        let told = Told { round_trip: millis(2300), by_counting: true };
        assert_eq!(apart.acknowledged(&key(1), at(2400)), Some((7, told)));
        assert!(apart.is_empty() && apart.expire(at(10_000)).is_none(), "told once");
        assert_eq!(apart.acknowledged(&key(1), at(2400)), None, "the network made that one");
    }

    #[test]
    fn what_is_not_told_in_time_stays_untold() {
        let mut apart = apart();
        apart.watch(key(1), 7, &[at(0), at(100)], millis(500), at(300));
        apart.watch(key(2), 8, &[at(0), at(100)], millis(5000), at(300));
        assert_eq!(apart.next_end(), Some(at(2300)), "two seconds at least");
        let peer = key(1).peer.remote;
        assert_eq!((apart.expire(at(2299)), apart.expire(at(2300))), (None, Some((7, peer))));
        assert_eq!(apart.acknowledged(&key(1), at(2300)), None, "too late");
        assert_eq!((apart.expire(at(5299)), apart.expire(at(5300))), (None, Some((8, peer))));
    }

    #[test]
    fn a_copy_with_a_message_id_of_its_own_is_told_by_it() {
        let mut apart = apart();
        apart.watch_only(key(1), 7, at(100), millis(500), at(300));
        apart.watch_only(key(2), 7, at(200), millis(500), at(300));
        let told = Told { round_trip: millis(900), by_counting: false };
        assert_eq!(apart.acknowledged(&key(1), at(1000)), Some((7, told)));
        assert_eq!(apart.acknowledged(&key(1), at(1001)), None, "the network made that one");
        assert_eq!(apart.expire(at(2300)), None, "that one stays silent asks for no ping");
        assert!(apart.is_empty() && apart.next_end().is_none());
    }

    #[test]
    fn of_several_copies_those_count_that_left_alone_under_their_message_id() {
        let copies = [(1, 10), (2, 20), (3, 30), (3, 40)];
        let copy = |(id, sent)| Copy::new(at(sent), millis(10), id);
        let several = |acknowledged| Several {
            peer: key(1).peer,
            acknowledged,
            copies: copies.into_iter().map(copy).collect(),
        };
        let others = |acknowledged| several(acknowledged).others().collect::<Vec<_>>();
        assert_eq!(others(None), [(1, at(10)), (2, at(20))]);
        assert_eq!(others(Some(1)), [(2, at(20))]);
        assert_eq!(others(Some(3)), [(1, at(10)), (2, at(20))]);
        assert_eq!(several(None).under(3)[..], [at(30), at(40)]);
    }

    #[test]
    fn a_flood_is_bounded() {
        let mut apart = apart();
        for message_id in 0..=u16::MAX {
            apart.watch(key(message_id), 7, &[at(0), at(1)], millis(1), at(2));
        }
        assert_eq!((apart.watched.len(), apart.order.len()), (MOST, MOST));
    }

    #[test]
    fn an_acknowledgement_that_comes_too_soon_for_the_second_copy_answers_the_first() {
        let told = |copies: &[u64], now| {
            let copies: Vec<_> = copies.iter().map(|&sent| at(sent)).collect();
            by_causality(&copies, Some(millis(100)), at(now))
        };
        assert_eq!(told(&[0, 2000], 2089), Some(millis(2089)));
        assert_eq!(told(&[0, 2000], 2090), None, "nine tenths of the shortest: it may answer either");
        assert_eq!(told(&[0, 2000, 2080], 2120), None, "the second may be answered");
        assert_eq!(told(&[0], 50), None, "one copy needs no telling");
        assert_eq!(by_causality(&[at(0), at(10)], None, at(20)), None, "nothing is known");
    }
}
