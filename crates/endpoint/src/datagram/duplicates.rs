//! Recent messages of peers and the reply a repeat gets (RFC 7252 §4.5).
//!
//! A message is known by (peer, Message ID) and by a digest of its bytes: clients do reuse Message
//! IDs within their lifetime, and such a message is a new request. Memory is bounded, and that of the
//! peers counts as well. When it runs out, entries whose request may be done again go first, oldest
//! first; POST, PATCH and OSCORE requests are never forgotten before their lifetime, so new ones of that
//! kind are refused.

mod entry;
mod forgetting;
mod replies;
mod sums;

use std::collections::VecDeque;
use std::time::Duration;

use coapway_time::Instant;
use hashbrown::HashTable;

pub(super) use self::entry::{Class, EntryId, Reply};
use self::entry::{Entry, Moment};
use self::replies::Replies;
use self::sums::{Sums, exchange_reply};
use super::account::Account;
use super::chunks::Chunks;
use super::peers::{PeerNumber, Peers};

/// What is remembered of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) peer: PeerNumber,
    pub(super) message_id: u16,
    pub(super) digest: u64,
    pub(super) class: Class,
    pub(super) account: Account,
    pub(super) reply: Reply,
}

/// What is known of a message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing; this is its hash, for [`Duplicates::remember`].
    New(u64),
    /// It came before.
    Repeated(EntryId),
    /// Another message came under its Message ID.
    Reused(EntryId),
    /// It or another came under its Message ID, longer than a lifetime ago.
    Expired(EntryId),
}

#[derive(Debug)]
pub(super) struct Duplicates {
    remembered: HashTable<u32>,
    hasher: ahash::RandomState,
    entries: Chunks<Entry>,
    free: Vec<u32>,
    /// Per class in order of arrival, which is order of expiry; each entry stands in one of them. An
    /// entry that was replaced moves when its turn comes. Beside each stands when it may be expired, so
    /// that the entry itself is not looked at before.
    queues: [VecDeque<(Moment, u32)>; 4],
    /// Datagrams that are never forgotten before their lifetime, and others: of each kind, what was
    /// written first is forgotten first.
    replies: [Replies; 2],
    lifetimes: [Duration; 4],
    /// When the first in one of the queues may be expired.
    soonest: Moment,
    sums: Sums,
    limit: usize,
}

/// What an entry costs beside its stored reply and its peer: itself, its place in the table and in a
/// queue.
const ENTRY_BYTES: usize = size_of::<Entry>() + 8 + size_of::<(Moment, u32)>();

/// By class.
const fn lifetimes(confirmable: Duration, non_confirmable: Duration) -> [Duration; 4] {
    [confirmable, confirmable, non_confirmable, non_confirmable]
}

impl Duplicates {
    pub(super) fn new(
        limit: usize,
        confirmable: Duration,
        non_confirmable: Duration,
        hasher: ahash::RandomState,
    ) -> Self {
        Self {
            remembered: HashTable::new(),
            hasher,
            entries: Chunks::default(),
            free: Vec::new(),
            queues: Default::default(),
            replies: Default::default(),
            lifetimes: lifetimes(confirmable, non_confirmable),
            soonest: Moment::NEVER,
            sums: Sums::default(),
            limit,
        }
    }

    /// Takes over changed limits. What is remembered keeps its time of expiry; the number says how many
    /// entries were forgotten since there is less memory now.
    pub(super) fn set(
        &mut self,
        peers: &mut Peers,
        limit: usize,
        confirmable: Duration,
        non_confirmable: Duration,
    ) -> u64 {
        (self.limit, self.lifetimes) = (limit, lifetimes(confirmable, non_confirmable));
        self.make_room(peers, None)
    }

    /// Remembered messages.
    pub(super) fn len(&self) -> usize {
        self.remembered.len()
    }

    /// A keyed digest of a datagram.
    pub(super) fn digest(&self, datagram: &[u8]) -> u64 {
        self.hasher.hash_one(datagram)
    }

    /// What a message is found by.
    #[inline]
    pub(super) fn hash(&self, peer: PeerNumber, message_id: u16) -> u64 {
        hash(&self.hasher, peer, message_id)
    }

    #[inline]
    pub(super) fn find(&self, peer: PeerNumber, message_id: u16, digest: u64, now: Instant) -> Known {
        let hash = self.hash(peer, message_id);
        let found = self.remembered.find(hash, |&index| {
            let entry = &self.entries[index];
            entry.message_id == message_id && entry.peer == peer
        });
        match found {
            None => Known::New(hash),
            Some(&index) => {
                let entry = &self.entries[index];
                let id = EntryId { index, generation: entry.generation };
                if entry.expires <= now {
                    Known::Expired(id)
                } else if entry.digest == digest {
                    Known::Repeated(id)
                } else {
                    Known::Reused(id)
                }
            }
        }
    }

    /// Remembers a message that [`Duplicates::find`] did not find, under its hash.
    ///
    /// Errors: `None` when the memory is full of entries that must not be forgotten, and while the
    ///         replies to those that were open when it became so take more than their share. The
    ///         number says how many others were forgotten to make room.
    pub(super) fn remember(
        &mut self,
        peers: &mut Peers,
        hash: u64,
        message: &Message,
        now: Instant,
    ) -> (Option<EntryId>, u64) {
        let &Message { peer, message_id, digest, class, account, reply } = message;
        if self.soonest.is_over(now) {
            self.expire(peers, now);
        }
        let is_kept = class.is_kept();
        let (mut of_peer, of_peer_kept) = peers.would_take(peer, is_kept);
        if is_kept && self.sums.kept + ENTRY_BYTES + of_peer_kept > self.limit / 8 * 7 {
            return (None, 0);
        }
        let mut forgotten = 0;
        if self.sums.bytes + ENTRY_BYTES + of_peer > self.limit {
            forgotten = self.make_room(peers, Some(peer));
            of_peer = peers.would_take(peer, is_kept).0;
            if self.sums.bytes + ENTRY_BYTES + of_peer > self.limit {
                return (None, forgotten);
            }
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.entries.add(),
        };
        let expires = now + self.lifetimes[class as usize];
        let place = &mut self.entries[index];
        let generation = place.generation;
        let reply = Some(reply);
        *place = Entry { digest, expires, account, reply, peer, generation, message_id, class };
        let (entries, hasher) = (&self.entries, &self.hasher);
        self.remembered.insert_unique(hash, index, |&index| {
            let entry = &entries[index];
            self::hash(hasher, entry.peer, entry.message_id)
        });
        self.enqueue(class, expires, index);
        peers.remember(peer, is_kept);
        self.sums.bytes += ENTRY_BYTES + of_peer;
        self.sums.kept += if is_kept { ENTRY_BYTES + of_peer_kept } else { 0 };
        (Some(EntryId { index, generation }), forgotten)
    }

    #[inline]
    fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(id.index).filter(|entry| entry.generation == id.generation)
    }

    pub(super) fn reply(&self, id: EntryId) -> Option<Reply> {
        self.entry(id)?.reply
    }

    /// The bytes of a [`Reply::Datagram`].
    pub(super) fn datagram(&self, id: EntryId) -> Option<&[u8]> {
        let &Entry { reply, class, .. } = self.entry(id)?;
        match reply? {
            Reply::Datagram(extent) => self.replies[class.memory()].get(extent),
            Reply::Open(_) | Reply::EmptyAcknowledgement | Reply::Separate(_) | Reply::Silence => None,
        }
    }

    /// The account of a request whose entry was not forgotten.
    pub(super) fn account(&mut self, id: EntryId) -> Option<&mut Account> {
        let entry = self.entries.get_mut(id.index)?;
        entry.is_remembered_as(id).then_some(&mut entry.account)
    }

    /// Changes what a repeat gets; nothing happens when the entry was forgotten.
    pub(super) fn set_reply(&mut self, id: EntryId, reply: Reply) {
        if let Some(entry) = self.entries.get_mut(id.index)
            && entry.is_remembered_as(id)
        {
            exchange_reply(entry, &mut self.replies, &mut self.sums, Some(reply));
        }
    }

    /// From now on a repeat gets this datagram. The number says how many entries were forgotten to make
    /// room.
    #[inline]
    pub(super) fn set_datagram(&mut self, peers: &mut Peers, id: EntryId, datagram: &[u8]) -> u64 {
        let Some(entry) = self.entries.get_mut(id.index) else { return 0 };
        if !entry.is_remembered_as(id) {
            return 0;
        }
        // None can be sent that is too long to be stored.
        let stored = self.replies[entry.class.memory()].push(datagram);
        let reply = stored.map_or(Reply::EmptyAcknowledgement, Reply::Datagram);
        exchange_reply(entry, &mut self.replies, &mut self.sums, Some(reply));
        if self.sums.bytes <= self.limit { 0 } else { self.make_room(peers, None) }
    }

    /// Another message came under the Message ID of this entry and takes its place.
    pub(super) fn replace(
        &mut self,
        peers: &mut Peers,
        id: EntryId,
        message: &Message,
        now: Instant,
    ) -> EntryId {
        let &Message { peer, digest, class, account, reply, .. } = message;
        let entry = &mut self.entries[id.index];
        exchange_reply(entry, &mut self.replies, &mut self.sums, Some(reply));
        debug_assert_eq!(entry.peer, peer);
        match (entry.class.is_kept(), class.is_kept()) {
            (false, true) => self.sums.kept += ENTRY_BYTES + peers.keep(peer),
            (true, false) => self.sums.kept -= ENTRY_BYTES + peers.keep_no_more(peer),
            (true, true) | (false, false) => {}
        }
        entry.generation = entry.generation.wrapping_add(1);
        entry.account = account;
        (entry.digest, entry.class, entry.expires) = (digest, class, now + self.lifetimes[class as usize]);
        EntryId { index: id.index, generation: entry.generation }
    }

    /// The peers of what is remembered, and whether it is never forgotten before its lifetime.
    pub(super) fn peers(&self) -> impl Iterator<Item = (PeerNumber, bool)> {
        let remembered = self.entries.iter().filter(|entry| entry.reply.is_some());
        remembered.map(|entry| (entry.peer, entry.class.is_kept()))
    }

    /// Panics when table, entries and queues contradict each other.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.entries.len() as usize, self.remembered.len() + self.free.len());
        assert_eq!(self.queues.iter().map(VecDeque::len).sum::<usize>(), self.remembered.len());
        assert!(self.sums.bytes >= self.remembered.len() * ENTRY_BYTES && self.sums.bytes >= self.sums.kept);
        let fronts = self.queues.iter().filter_map(|queue| Some(queue.front()?.0));
        assert_eq!(self.soonest, fronts.min().unwrap_or(Moment::NEVER));
    }
}

#[inline]
fn hash(hasher: &ahash::RandomState, peer: PeerNumber, message_id: u16) -> u64 {
    hasher.hash_one(u64::from(peer.number()) << 16 | u64::from(message_id))
}

#[cfg(test)]
mod tests;
