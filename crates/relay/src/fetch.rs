//! One request on its way to an origin, and the table of them.

use std::num::NonZeroU64;

use coapway_message::{Evidence, ExchangeId, Method, Token};
use coapway_time::{InOrder, Instant, TimerId, Timers};

use crate::admission::Admission;
use crate::no_response::NoResponse;
use crate::parameters::UpstreamId;

/// Names one fetch, by the client's request that it will answer. Never given out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetchId(pub ExchangeId);

/// An origin, by the number it has for whoever moves messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OriginId(pub u32);

/// Where a fetch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The origin's name is being looked up.
    LookingUp,
    /// It waits for its turn towards this origin.
    Queued(OriginId),
    /// A request left for this origin in this exchange.
    Sent(OriginId, ExchangeId),
}

/// One request on its way to an origin.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// Who asked, by the number that client has for whoever moves messages.
    pub client: u64,
    /// When the client's request came in.
    pub received: Instant,
    /// When it is answered at the latest.
    pub deadline: Instant,
    /// Where it stands.
    pub phase: Phase,
    /// What most fetches have nothing of.
    pub rare: Option<Box<Rare>>,
    /// Whose parameters hold.
    pub upstream: UpstreamId,
    /// The reverse route it came by; only its relay knows how to read the number.
    pub route: Option<u32>,
    /// What is asked.
    pub method: Method,
    /// Whether the client's request is Confirmable.
    pub confirmable: bool,
    /// On what grounds the destination was admitted.
    pub admission: Admission,
    /// What its client does not want to hear, be it the origin's response or an answer of ours.
    pub no_response: NoResponse,
    /// Whether it may be issued anew in a new exchange.
    pub reissuable: bool,
    /// Whether its block is the last of the request's body.
    pub is_last_block: bool,
    /// Whether its origin was found by name.
    pub is_named: bool,
    /// What earlier exchanges of it leave to be said; evidence only grows weaker.
    pub evidence: Evidence,
}

/// What most fetches have nothing of.
#[derive(Clone, Debug, Default)]
pub struct Rare {
    /// The block-wise transfer it is part of, by a keyed hash of its resource.
    pub transfer: Option<NonZeroU64>,
    /// The client's token, where the origin is to see it.
    pub token: Option<Token>,
    /// Exchanges of it that were not answered and still may be, while a later one is under way.
    pub earlier: Vec<ExchangeId>,
    /// What marks it as unanswered for a while.
    pub mark: Option<u64>,
}

impl Fetch {
    /// See [`Rare::transfer`].
    pub fn transfer(&self) -> Option<NonZeroU64> {
        self.rare.as_ref()?.transfer
    }

    /// See [`Rare::token`].
    pub fn token(&self) -> Option<&Token> {
        self.rare.as_ref()?.token.as_ref()
    }

    /// See [`Rare::earlier`].
    pub fn earlier(&self) -> &[ExchangeId] {
        self.rare.as_ref().map_or(&[], |rare| &rare.earlier)
    }

    /// See [`Rare::mark`].
    pub fn mark(&self) -> Option<u64> {
        self.rare.as_ref()?.mark
    }
}

/// One for each slot of a client's request.
#[derive(Debug, Default)]
struct Place {
    /// Of the request.
    generation: u32,
    fetch: Option<Fetch>,
}

/// All fetches and their deadlines.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    places: Vec<Place>,
    under_way: usize,
    /// Most deadlines are the same time away.
    in_order: InOrder<FetchId>,
    /// The others.
    deadlines: Timers<FetchId>,
    /// Theirs, by slot; as long as it had to be.
    timers: Vec<Option<TimerId>>,
}

impl Fetches {
    pub(crate) const fn len(&self) -> usize {
        self.under_way
    }

    /// Shape: a request's slot is used again only after its fetch was removed.
    #[inline]
    pub(crate) fn insert(&mut self, id: FetchId, fetch: Fetch) {
        let slot = id.0.slot as usize;
        if self.places.len() <= slot {
            self.places.resize_with(slot + 1, Place::default);
        }
        let place = &mut self.places[slot];
        debug_assert!(place.fetch.is_none(), "a request has one fetch");
        if self.in_order.push(fetch.deadline, id).is_err() {
            if self.timers.len() <= slot {
                self.timers.resize(slot + 1, None);
            }
            self.timers[slot] = Some(self.deadlines.insert(fetch.deadline, id));
        }
        self.under_way += usize::from(place.fetch.is_none());
        (place.generation, place.fetch) = (id.0.generation, Some(fetch));
    }

    #[inline]
    pub(crate) fn get(&self, FetchId(request): FetchId) -> Option<&Fetch> {
        let place = self.places.get(request.slot as usize)?;
        place.fetch.as_ref().filter(|_| place.generation == request.generation)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, FetchId(request): FetchId) -> Option<&mut Fetch> {
        let place = self.places.get_mut(request.slot as usize)?;
        place.fetch.as_mut().filter(|_| place.generation == request.generation)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FetchId, &Fetch)> {
        (0..).zip(&self.places).filter_map(|(slot, place)| {
            let id = FetchId(ExchangeId { slot, generation: place.generation });
            Some((id, place.fetch.as_ref()?))
        })
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Fetch> {
        self.places.iter_mut().filter_map(|place| place.fetch.as_mut())
    }

    #[inline]
    pub(crate) fn remove(&mut self, FetchId(request): FetchId) -> Option<Fetch> {
        let place = self.places.get_mut(request.slot as usize)?;
        if place.generation != request.generation {
            return None;
        }
        let fetch = place.fetch.take()?;
        self.under_way -= 1;
        match self.timers.get_mut(request.slot as usize).and_then(Option::take) {
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

fn is_under_way(places: &[Place], FetchId(request): FetchId) -> bool {
    let place = places.get(request.slot as usize);
    place.is_some_and(|place| place.generation == request.generation && place.fetch.is_some())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;

    /// One whose deadline is so many seconds after the start.
    pub(crate) fn fetch(seconds: u64) -> Fetch {
        Fetch {
            client: 1,
            method: Method::Get,
            confirmable: true,
            upstream: UpstreamId(0),
            admission: Admission::Upstream,
            route: None,
            no_response: NoResponse::NONE,
            reissuable: true,
            is_last_block: true,
            is_named: false,
            rare: None,
            received: Instant::ZERO,
            deadline: Instant::ZERO + Duration::from_secs(seconds),
            evidence: Evidence::NotSent,
            phase: Phase::LookingUp,
        }
    }

    pub(crate) const fn id(slot: u32, generation: u32) -> FetchId {
        FetchId(ExchangeId { slot, generation })
    }

    #[test]
    fn expires_what_is_still_there() {
        let mut fetches = Fetches::default();
        let (first, second) = (id(3, 0), id(1, 0));
        fetches.insert(first, fetch(1));
        fetches.insert(second, fetch(2));
        assert_eq!(fetches.len(), 2);
        let later = Instant::ZERO + Duration::from_secs(3);
        assert!(fetches.remove(first).is_some());
        assert_eq!(fetches.expire(later), Some(second));
        assert_eq!(fetches.expire(later), None);
        assert!(fetches.remove(second).is_some() && fetches.remove(second).is_none());
        assert_eq!(fetches.len(), 0);
    }

    #[test]
    fn a_slot_used_again_has_a_new_name() {
        let mut fetches = Fetches::default();
        let (first, second) = (id(0, 0), id(0, 1));
        fetches.insert(first, fetch(1));
        fetches.remove(first);
        fetches.insert(second, fetch(1));
        assert!(fetches.get(first).is_none() && fetches.get(second).is_some());
        assert!(fetches.remove(first).is_none() && fetches.iter().map(|(id, _)| id).eq([second]));
    }

    #[test]
    fn a_deadline_out_of_order_comes_all_the_same_and_goes_with_its_fetch() {
        let mut fetches = Fetches::default();
        let [late, soon, sooner] = [id(0, 0), id(1, 0), id(2, 0)];
        for (id, seconds) in [(late, 3), (soon, 2), (sooner, 1)] {
            fetches.insert(id, fetch(seconds));
        }
        let at = |seconds: u64| Instant::ZERO + Duration::from_millis(1000 * seconds + 2);
        assert_eq!(fetches.expire(at(1)), Some(sooner));
        assert!(fetches.remove(sooner).is_some() && fetches.remove(soon).is_some());
        assert_eq!((fetches.expire(at(2)), fetches.expire(at(3))), (None, Some(late)));
    }

    #[test]
    fn what_is_rare_is_read_where_it_is() {
        let mut fetch = fetch(1);
        assert!(fetch.transfer().is_none() && fetch.token().is_none() && fetch.mark().is_none());
        assert!(fetch.earlier().is_empty());
        let (transfer, token, exchange) = (NonZeroU64::new(7), Token::new(b"t"), id(1, 2).0);
        fetch.rare = Some(
            Rare { transfer, token: Some(token.clone()), earlier: vec![exchange], mark: Some(3) }.into(),
        );
        assert_eq!((fetch.transfer(), fetch.token(), fetch.mark()), (transfer, Some(&token), Some(3)));
        assert_eq!(fetch.earlier(), [exchange]);
    }

    #[test]
    fn a_fetch_is_small() {
        assert!(size_of::<Place>() <= 80, "{}", size_of::<Place>());
    }
}
