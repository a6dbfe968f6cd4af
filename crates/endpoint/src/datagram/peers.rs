//! Peers by number. An address takes 56 bytes, and much is kept by peer: everything else names it by
//! its number, and what comes from the same peer as the datagram before needs no table.
//!
//! A peer stays while something refers to it. What was the last to do so may still be read, and a
//! datagram to it may still leave: it is forgotten when the next one comes ([`Peers::tidy`]).

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use hashbrown::HashTable;

use super::chunks::Chunks;
use crate::peer::{Local, Peer, SocketId};

/// Names a peer that something refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct PeerNumber(u32);

impl PeerNumber {
    /// Less than 2³¹.
    pub(super) const fn number(self) -> u32 {
        self.0
    }

    pub(super) const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// Who a datagram came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender<'p> {
    pub(super) peer: &'p Peer,
    pub(super) number: Option<PeerNumber>,
    /// Worth nothing where the number is known.
    hash: u64,
}

#[derive(Debug)]
struct Place {
    peer: Peer,
    /// What refers to it, messages that are remembered left out.
    users: u32,
    /// Messages of it that are remembered.
    remembered: u32,
    /// Of these, those that are never forgotten before their lifetime.
    kept: u32,
    /// Where its Message IDs are.
    space: u32,
}

const NONE: u32 = u32::MAX;
/// `users` of a place that is free.
const FREE: u32 = u32::MAX;

impl Default for Place {
    fn default() -> Self {
        let remote = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        let peer = Peer { local: Local { socket: SocketId(0), address: None }, remote };
        Self { peer, users: FREE, remembered: 0, kept: 0, space: NONE }
    }
}

/// What a peer costs: its place, and its own in the table.
pub(super) const PEER_BYTES: usize = size_of::<Place>() + 8;

#[derive(Debug)]
pub(super) struct Peers {
    numbers: HashTable<u32>,
    hasher: ahash::RandomState,
    places: Chunks<Place>,
    free: Vec<u32>,
    /// The one that was asked for last.
    last: u32,
    /// To which nothing referred for a moment at least.
    unused: Vec<PeerNumber>,
}

impl Peers {
    pub(super) fn new(hasher: ahash::RandomState) -> Self {
        Self {
            numbers: HashTable::new(),
            hasher,
            places: Chunks::default(),
            free: Vec::new(),
            last: NONE,
            unused: Vec::new(),
        }
    }

    /// Looks up who a datagram came from.
    #[inline]
    pub(super) fn sender<'p>(&mut self, peer: &'p Peer) -> Sender<'p> {
        if self.places.get(self.last).is_some_and(|place| place.peer == *peer) {
            return Sender { peer, number: Some(PeerNumber(self.last)), hash: 0 };
        }
        let hash = self.hasher.hash_one(peer);
        let number = self.numbers.find(hash, |&number| self.places[number].peer == *peer).copied();
        if let Some(number) = number {
            self.last = number;
        }
        Sender { peer, number: number.map(PeerNumber), hash }
    }

    /// The number of a peer, if it has one.
    pub(super) fn number(&self, peer: &Peer) -> Option<PeerNumber> {
        let hash = self.hasher.hash_one(peer);
        self.numbers.find(hash, |&number| self.places[number].peer == *peer).copied().map(PeerNumber)
    }

    /// Those that differ from `peer` at most in which of our addresses they spoke to.
    pub(super) fn at_any_address(&self, peer: &Peer) -> impl Iterator<Item = PeerNumber> {
        // Our address is compared and not hashed.
        let (remote, socket) = (peer.remote, peer.local.socket);
        let is_alike = move |other: &Peer| other.remote == remote && other.local.socket == socket;
        let numbers = self.numbers.iter_hash(self.hasher.hash_one(peer)).copied();
        numbers.filter(move |&number| is_alike(&self.places[number].peer)).map(PeerNumber)
    }

    /// Gives the sender a number, unless it has one. Something is to refer to it before the next datagram
    /// comes.
    #[inline]
    pub(super) fn add(&mut self, sender: &Sender<'_>) -> PeerNumber {
        match sender.number {
            Some(number) => number,
            None => self.add_new(sender.peer, sender.hash),
        }
    }

    fn add_new(&mut self, peer: &Peer, hash: u64) -> PeerNumber {
        let number = match self.free.pop() {
            Some(number) => number,
            None => self.places.add(),
        };
        self.places[number] = Place { peer: *peer, users: 0, ..Place::default() };
        let (hasher, places) = (&self.hasher, &self.places);
        self.numbers.insert_unique(hash, number, |&number| hasher.hash_one(places[number].peer));
        self.last = number;
        self.unused.push(PeerNumber(number));
        PeerNumber(number)
    }

    /// The peer with this number; another one when nothing refers to it any more.
    #[inline]
    pub(super) fn get(&self, number: PeerNumber) -> &Peer {
        &self.places[number.0].peer
    }

    /// Something more refers to a peer.
    #[inline]
    pub(super) fn hold(&mut self, number: PeerNumber) {
        self.places[number.0].users += 1;
    }

    /// Something refers to it no more.
    #[inline]
    pub(super) fn release(&mut self, number: PeerNumber) {
        let place = &mut self.places[number.0];
        place.users -= 1;
        if place.users == 0 && place.remembered == 0 {
            self.unused.push(number);
        }
    }

    /// One more message of a peer is remembered. Says how many bytes its own are in all, and how many of
    /// those that belong to what is kept.
    #[inline]
    pub(super) fn remember(&mut self, number: PeerNumber, is_kept: bool) -> (usize, usize) {
        let place = &mut self.places[number.0];
        place.remembered += 1;
        place.kept += u32::from(is_kept);
        let is_first = |count| if count == 1 { PEER_BYTES } else { 0 };
        (is_first(place.remembered), if is_kept { is_first(place.kept) } else { 0 })
    }

    /// What the next one would say.
    #[inline]
    pub(super) fn would_take(&self, number: PeerNumber, is_kept: bool) -> (usize, usize) {
        let place = &self.places[number.0];
        let is_first = |count| if count == 0 { PEER_BYTES } else { 0 };
        (is_first(place.remembered), if is_kept { is_first(place.kept) } else { 0 })
    }

    /// A message of a peer is forgotten; the numbers are what is given back.
    pub(super) fn forget(&mut self, number: PeerNumber, is_kept: bool) -> (usize, usize) {
        let place = &mut self.places[number.0];
        place.remembered -= 1;
        place.kept -= u32::from(is_kept);
        if place.users == 0 && place.remembered == 0 {
            self.unused.push(number);
        }
        self.would_take(number, is_kept)
    }

    /// A message of a peer that is remembered is kept from now on. Says how many of the peer's bytes belong
    /// to what is kept now and did not before.
    pub(super) fn keep(&mut self, number: PeerNumber) -> usize {
        let bytes = self.would_take(number, true).1;
        self.places[number.0].kept += 1;
        bytes
    }

    /// It is remembered, and kept no more; the number is what does not belong to it any more.
    pub(super) fn keep_no_more(&mut self, number: PeerNumber) -> usize {
        self.places[number.0].kept -= 1;
        self.would_take(number, true).1
    }

    /// Where the Message IDs towards a peer are.
    #[inline]
    pub(super) fn space(&self, number: PeerNumber) -> Option<usize> {
        let space = self.places[number.0].space;
        (space != NONE).then_some(space as usize)
    }

    pub(super) fn set_space(&mut self, number: PeerNumber, space: Option<usize>) {
        self.places[number.0].space = space.map_or(NONE, |space| space as u32);
    }

    /// Forgets those that nothing refers to; no datagram to them may be on its way out.
    #[inline]
    pub(super) fn tidy(&mut self) {
        if !self.unused.is_empty() {
            self.forget_unused();
        }
    }

    fn forget_unused(&mut self) {
        while let Some(PeerNumber(number)) = self.unused.pop() {
            let place = &mut self.places[number];
            // It may be in use again, and it may have been here twice.
            if place.users > 0 || place.remembered > 0 {
                continue;
            }
            place.users = FREE;
            if self.last == number {
                self.last = NONE;
            }
            let hash = self.hasher.hash_one(place.peer);
            if let Ok(found) = self.numbers.find_entry(hash, |&other| other == number) {
                found.remove();
            }
            self.free.push(number);
        }
    }

    /// Panics when what refers to peers was counted wrongly; each of `users` is a reference.
    pub(super) fn check_invariants(
        &self,
        users: impl Iterator<Item = PeerNumber>,
        remembered: impl Iterator<Item = (PeerNumber, bool)>,
    ) {
        let mut counts = vec![(0, 0, 0); self.places.len() as usize];
        users.for_each(|PeerNumber(number)| counts[number as usize].0 += 1);
        for (PeerNumber(number), is_kept) in remembered {
            let count = &mut counts[number as usize];
            *count = (count.0, count.1 + 1, count.2 + u32::from(is_kept));
        }
        for (number, (place, (users, remembered, kept))) in (0..).zip(self.places.iter().zip(counts)) {
            let is_free = place.users == FREE;
            let counted = if is_free { 0 } else { place.users };
            assert_eq!((counted, place.remembered, place.kept), (users, remembered, kept), "{place:?}");
            let is_unused = users == 0 && remembered == 0;
            assert!(!is_unused || is_free || self.unused.contains(&PeerNumber(number)), "{place:?}");
        }
        assert_eq!(self.numbers.len() + self.free.len(), self.places.len() as usize);
    }
}

#[cfg(test)]
mod tests;
