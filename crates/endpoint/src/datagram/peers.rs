//! Peers by number. An address takes 56 bytes, and much is kept by peer: everything else names it by
//! its number. One that speaks IPv4 is itself a word: its address, its port, and the number of what it
//! spoke to of ours. What comes from the same peer as the datagram before needs no table.
//!
//! A peer stays while something refers to it. What was the last to do so may still be read, and a
//! datagram to it may still leave: it is forgotten when the next one comes ([`Peers::tidy`]).

mod locals;
mod place;
mod word;

use hashbrown::HashTable;
use slab::Slab;

use self::locals::Locals;
#[cfg(test)]
pub(super) use self::place::PEER_BYTES;
use self::place::{FREE, NONE, Place};
use self::word::Word;
use super::chunks::Chunks;
use crate::peer::{Peer, SocketId};

/// Names a peer that something refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct PeerNumber(u32);

impl PeerNumber {
    /// Less than 2³¹.
    #[inline]
    pub(super) const fn number(self) -> u32 {
        self.0
    }

    #[inline]
    pub(super) const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// Who a datagram came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender<'p> {
    pub(super) peer: &'p Peer,
    pub(super) number: Option<PeerNumber>,
    /// These are worth nothing where the number is known.
    word: Option<Word>,
    hash: u64,
}

#[derive(Debug)]
pub(super) struct Peers {
    numbers: HashTable<u32>,
    hasher: ahash::RandomState,
    places: Chunks<Place>,
    free: Vec<u32>,
    /// Those that do not fit in a word.
    wide: Slab<Peer>,
    locals: Locals,
    /// The one that was asked for last, unless it has been forgotten.
    last: Option<(Word, PeerNumber)>,
    /// The same of those that do not fit.
    last_wide: Option<(Peer, PeerNumber)>,
    /// To which nothing referred for a moment at least.
    unused: Vec<PeerNumber>,
}

impl Peers {
    pub(super) fn new(hasher: ahash::RandomState) -> Self {
        Self {
            numbers: HashTable::new(),
            locals: Locals::new(hasher.clone()),
            hasher,
            places: Chunks::default(),
            free: Vec::new(),
            wide: Slab::new(),
            last: None,
            last_wide: None,
            unused: Vec::new(),
        }
    }

    /// Looks up who a datagram came from.
    #[inline]
    pub(super) fn sender<'p>(&mut self, peer: &'p Peer) -> Sender<'p> {
        let local = self.locals.number(&peer.local);
        let word = Word::of(&peer.remote, local);
        match (word, self.last) {
            (Some(word), Some((last, number))) if word == last => {
                Sender { peer, number: Some(number), word: Some(word), hash: 0 }
            }
            _ => self.look_up(peer, word),
        }
    }

    fn look_up<'p>(&mut self, peer: &'p Peer, word: Option<Word>) -> Sender<'p> {
        if let (None, Some((last, number))) = (word, &self.last_wide)
            && last == peer
        {
            return Sender { peer, number: Some(*number), word, hash: 0 };
        }
        let (hash, number) = self.find(peer, word);
        if let Some(number) = number {
            self.set_last(peer, word, number);
        }
        Sender { peer, number, word, hash }
    }

    fn set_last(&mut self, peer: &Peer, word: Option<Word>, number: PeerNumber) {
        match word {
            Some(word) => self.last = Some((word, number)),
            None => self.last_wide = Some((*peer, number)),
        }
    }

    fn find(&self, peer: &Peer, word: Option<Word>) -> (u64, Option<PeerNumber>) {
        let (hash, found) = match word {
            Some(word) => {
                let hash = self.hasher.hash_one(word.0);
                (hash, self.numbers.find(hash, |&number| self.places[number].word == word))
            }
            None => {
                let hash = self.hasher.hash_one(peer);
                (hash, self.numbers.find(hash, |&number| self.wide(number) == Some(peer)))
            }
        };
        (hash, found.copied().map(PeerNumber))
    }

    fn wide(&self, number: u32) -> Option<&Peer> {
        self.wide.get(self.places[number].word.wide_place()?)
    }

    /// The number of a peer, if it has one.
    pub(super) fn number(&self, peer: &Peer) -> Option<PeerNumber> {
        // A local end that is not known is that of no peer but those that do not fit for want of room.
        self.find(peer, Word::of(&peer.remote, self.locals.known(&peer.local))).1
    }

    /// Those that differ from `peer` at most in which of our addresses they spoke to.
    pub(super) fn at_any_address(&self, peer: &Peer) -> impl Iterator<Item = PeerNumber> {
        let socket = peer.local.socket;
        let words = self.locals.at(socket).filter_map(|local| Word::of(&peer.remote, Some(local)));
        let narrow = words.filter_map(|word| self.find(peer, Some(word)).1);
        // Our address is compared and not hashed.
        let alike = self.numbers.iter_hash(self.hasher.hash_one(peer)).copied();
        let wide = alike.filter(move |&number| {
            let is_alike = |other: &Peer| other.remote == peer.remote && other.local.socket == socket;
            self.wide(number).is_some_and(is_alike)
        });
        narrow.chain(wide.map(PeerNumber))
    }

    /// Gives the sender a number, unless it has one. Something is to refer to it before the next datagram
    /// comes.
    #[inline]
    pub(super) fn add(&mut self, sender: &Sender<'_>) -> PeerNumber {
        match sender.number {
            Some(number) => number,
            None => self.add_new(sender),
        }
    }

    fn add_new(&mut self, sender: &Sender<'_>) -> PeerNumber {
        let word = sender.word.unwrap_or_else(|| Word::wide(self.wide.insert(*sender.peer)));
        let number = match self.free.pop() {
            Some(number) => number,
            None => self.places.add(),
        };
        self.places[number] = Place { word, users: 0, ..Place::default() };
        let (hasher, places, wide) = (&self.hasher, &self.places, &self.wide);
        self.numbers.insert_unique(sender.hash, number, |&number| hash(hasher, wide, places[number].word));
        self.set_last(sender.peer, sender.word, PeerNumber(number));
        self.unused.push(PeerNumber(number));
        PeerNumber(number)
    }

    /// The peer with this number; another one when nothing refers to it any more.
    #[inline]
    pub(super) fn get(&self, number: PeerNumber) -> Peer {
        let word = self.places[number.0].word;
        match word.wide_place() {
            None => Peer { local: self.locals.get(word.0 as u16), remote: word.remote() },
            Some(place) => self
                .wide
                .get(place)
                .copied()
                .unwrap_or(Peer { local: Default::default(), remote: word.remote() }),
        }
    }

    /// The socket a peer spoke to.
    pub(super) fn socket(&self, number: PeerNumber) -> SocketId {
        self.get(number).local.socket
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
        if place.is_unused() {
            self.unused.push(number);
        }
    }

    /// How many of a peer's bytes one more message that is remembered would add in all, and to those that
    /// belong to what is kept.
    #[inline]
    pub(super) fn would_take(&self, number: PeerNumber, is_kept: bool) -> (usize, usize) {
        let place = &self.places[number.0];
        let first = |count| if count == 0 { place.bytes() } else { 0 };
        (first(place.remembered), if is_kept { first(place.kept) } else { 0 })
    }

    /// One more message of a peer is remembered.
    #[inline]
    pub(super) fn remember(&mut self, number: PeerNumber, is_kept: bool) {
        let place = &mut self.places[number.0];
        place.remembered += 1;
        place.kept += u32::from(is_kept);
    }

    /// A message of a peer is forgotten; the numbers are what is given back.
    pub(super) fn forget(&mut self, number: PeerNumber, is_kept: bool) -> (usize, usize) {
        let place = &mut self.places[number.0];
        place.remembered -= 1;
        place.kept -= u32::from(is_kept);
        if place.is_unused() {
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
            if !place.is_unused() {
                continue;
            }
            place.users = FREE;
            let word = place.word;
            self.last = self.last.filter(|&(_, PeerNumber(last))| last != number);
            self.last_wide = self.last_wide.filter(|&(_, PeerNumber(last))| last != number);
            let hash = hash(&self.hasher, &self.wide, word);
            if let Ok(found) = self.numbers.find_entry(hash, |&other| other == number) {
                found.remove();
            }
            if let Some(place) = word.wide_place() {
                self.wide.try_remove(place);
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
        let mut wide = 0;
        for (number, (place, counted)) in (0..).zip(self.places.iter().zip(counts)) {
            let is_free = place.users == FREE;
            let users = if is_free { 0 } else { place.users };
            assert_eq!((users, place.remembered, place.kept), counted, "{place:?}");
            assert!(!place.is_unused() || self.unused.contains(&PeerNumber(number)), "{place:?}");
            wide += usize::from(!is_free && place.word.wide_place().is_some());
        }
        assert_eq!(wide, self.wide.len(), "each address belongs to a peer");
        assert_eq!(self.numbers.len() + self.free.len(), self.places.len() as usize);
    }
}

fn hash(hasher: &ahash::RandomState, wide: &Slab<Peer>, word: Word) -> u64 {
    match word.wide_place().and_then(|place| wide.get(place)) {
        Some(peer) => hasher.hash_one(peer),
        None => hasher.hash_one(word.0),
    }
}

#[cfg(test)]
mod tests;
