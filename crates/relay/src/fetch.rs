//! One request on its way to an origin, and the table of them.

use std::net::SocketAddr;

use coapway_message::{Evidence, ExchangeId, Method, Token};
use coapway_time::{InOrder, Instant, TimerId, Timers};
use smallvec::SmallVec;

use crate::admission::Admission;
use crate::no_response::NoResponse;
use crate::parameters::UpstreamId;

/// Names one fetch; never given out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetchId {
    /// The place in the table.
    pub slot: u32,
    generation: u32,
}

/// Where a fetch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The origin's name is being looked up.
    LookingUp,
    /// It waits for its turn towards this origin.
    Queued(SocketAddr),
    /// A request left for this origin in this exchange.
    Sent(SocketAddr, ExchangeId),
}

/// One request on its way to an origin.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The client's request it will answer.
    pub request: ExchangeId,
    /// Who asked.
    pub client: SocketAddr,
    /// What is asked.
    pub method: Method,
    /// Whether the client's request is Confirmable.
    pub confirmable: bool,
    /// Whose parameters hold.
    pub upstream: UpstreamId,
    /// On what grounds the destination was admitted.
    pub admission: Admission,
    /// The reverse route it came by; only its relay knows how to read the number.
    pub route: Option<usize>,
    /// What its client does not want to hear, be it the origin's response or an answer of ours.
    pub no_response: NoResponse,
    /// Whether it may be issued anew in a new exchange.
    pub reissuable: bool,
    /// The block-wise transfer it is part of, by a keyed hash of its resource.
    pub transfer: Option<u64>,
    /// Whether its block is the last of the request's body.
    pub is_last_block: bool,
    /// Whether its origin was found by name.
    pub is_named: bool,
    /// The client's token, where the origin is to see it.
    pub token: Option<Token>,
    /// Exchanges of it that were not answered and still may be, while a later one is under way.
    pub earlier: SmallVec<[ExchangeId; 1]>,
    /// What marks it as unanswered for a while.
    pub mark: Option<u64>,
    /// When the client's request came in.
    pub received: Instant,
    /// When it is answered at the latest.
    pub deadline: Instant,
    /// What earlier exchanges of it leave to be said; evidence only grows weaker.
    pub evidence: Evidence,
    /// Where it stands.
    pub phase: Phase,
}

/// How often the place was used before, and what is in it: with a timer, if its deadline is out of order.
type Place = (u32, Option<(Fetch, Option<TimerId>)>);

/// All fetches and their deadlines.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    places: Vec<Place>,
    free: Vec<u32>,
    /// Most deadlines are the same time away.
    in_order: InOrder<FetchId>,
    /// The others.
    deadlines: Timers<FetchId>,
}

impl Fetches {
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, fetch: Fetch) -> FetchId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[slot as usize];
        let id = FetchId { slot, generation: place.0 };
        let out_of_order = self.in_order.push(fetch.deadline, id).is_err();
        let timer = out_of_order.then(|| self.deadlines.insert(fetch.deadline, id));
        place.1 = Some((fetch, timer));
        id
    }

    pub(crate) fn get(&self, id: FetchId) -> Option<&Fetch> {
        match self.places.get(id.slot as usize) {
            Some((generation, Some((fetch, _)))) if *generation == id.generation => Some(fetch),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, id: FetchId) -> Option<&mut Fetch> {
        match self.places.get_mut(id.slot as usize) {
            Some((generation, Some((fetch, _)))) if *generation == id.generation => Some(fetch),
            _ => None,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FetchId, &Fetch)> {
        (0..).zip(&self.places).filter_map(|(slot, (generation, place))| {
            let (fetch, _) = place.as_ref()?;
            Some((FetchId { slot, generation: *generation }, fetch))
        })
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Fetch> {
        self.places.iter_mut().filter_map(|(_, place)| place.as_mut().map(|(fetch, _)| fetch))
    }

    pub(crate) fn remove(&mut self, id: FetchId) -> Option<Fetch> {
        let (generation, place) = self.places.get_mut(id.slot as usize)?;
        if *generation != id.generation {
            return None;
        }
        let (fetch, timer) = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(id.slot);
        match timer {
            Some(timer) => drop(self.deadlines.cancel(timer)),
            None => {
                let places = &self.places;
                self.in_order.forget_while(|id| !is_under_way(places, *id));
            }
        }
        Some(fetch)
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        [self.in_order.next_deadline(), self.deadlines.next_deadline()].into_iter().flatten().min()
    }

    /// The next fetch whose time is over; it stays in the table until it is removed.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<FetchId> {
        loop {
            let id = self.in_order.expire(now).or_else(|| self.deadlines.expire(now))?;
            if self.get(id).is_some() {
                return Some(id);
            }
        }
    }
}

fn is_under_way(places: &[Place], id: FetchId) -> bool {
    matches!(places.get(id.slot as usize), Some((generation, Some(_))) if *generation == id.generation)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;

    /// One whose deadline is so many seconds after the start.
    pub(crate) fn fetch(seconds: u64) -> Fetch {
        Fetch {
            request: ExchangeId { slot: 0, generation: 0 },
            client: ([127, 0, 0, 1], 1).into(),
            method: Method::Get,
            confirmable: true,
            upstream: UpstreamId(0),
            admission: Admission::Upstream,
            route: None,
            no_response: NoResponse::NONE,
            reissuable: true,
            transfer: None,
            is_last_block: true,
            is_named: false,
            token: None,
            earlier: SmallVec::new(),
            mark: None,
            received: Instant::ZERO,
            deadline: Instant::ZERO + Duration::from_secs(seconds),
            evidence: Evidence::NotSent,
            phase: Phase::LookingUp,
        }
    }

    #[test]
    fn expires_what_is_still_there() {
        let mut fetches = Fetches::default();
        let (first, second) = (fetches.insert(fetch(1)), fetches.insert(fetch(2)));
        let later = Instant::ZERO + Duration::from_secs(3);
        assert!(fetches.remove(first).is_some());
        assert_eq!(fetches.expire(later), Some(second));
        assert_eq!(fetches.expire(later), None);
        assert!(fetches.remove(second).is_some() && fetches.remove(second).is_none());
        assert_eq!(fetches.len(), 0);
    }

    #[test]
    fn a_place_used_again_has_a_new_name() {
        let mut fetches = Fetches::default();
        let first = fetches.insert(fetch(1));
        fetches.remove(first);
        let second = fetches.insert(fetch(1));
        assert_eq!(first.slot, second.slot);
        assert!(fetches.get(first).is_none() && fetches.get(second).is_some());
    }
}
