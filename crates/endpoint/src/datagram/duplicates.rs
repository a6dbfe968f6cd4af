//! Recent messages of peers and the reply a repeat gets (RFC 7252 §4.5).
//!
//! A message is known by (peer, Message ID) and by a digest of its bytes: clients do reuse Message
//! IDs within their lifetime, and such a message is a new request. Memory is bounded. When it runs
//! out, entries whose request may be done again go first, oldest first; Confirmable POST, PATCH and
//! OSCORE requests are never forgotten before their lifetime, so new ones of that kind are refused.

mod replies;

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, Hasher};
use std::time::Duration;

use coapway_message::ExchangeId;
use coapway_time::Instant;
use hashbrown::HashTable;

use self::replies::{Extent, Replies};
use super::account::Account;
use crate::peer::Peer;

/// What a repeat of a message gets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    /// Nothing yet: the request is not answered.
    Open(ExchangeId),
    /// An empty Acknowledgement, now and for ever, and the separate response while it is under way.
    EmptyAcknowledgement(Option<ExchangeId>),
    /// The bytes that [`Duplicates::datagram`] finds here.
    Datagram(Extent),
    /// Nothing: the message was Non-confirmable.
    Silence,
}

/// How long and how firmly a message is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Confirmable, must not be done twice.
    Kept = 0,
    /// Confirmable, may be done again in need.
    Confirmable = 1,
    /// Non-confirmable.
    NonConfirmable = 2,
}

/// Names an entry; stale once it was forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId {
    index: u32,
    generation: u32,
}

#[derive(Debug)]
struct Entry {
    peer: Peer,
    message_id: u16,
    generation: u32,
    digest: u64,
    class: Class,
    expires: Instant,
    account: Account,
    reply: Option<Reply>,
}

/// What is remembered of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) peer: Peer,
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
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Per class in order of arrival, which is order of expiry; each entry stands in one of them. An
    /// entry that was replaced moves when its turn comes. Beside each stands when it may be expired, so
    /// that the entry itself is not looked at before.
    queues: [VecDeque<(Moment, u32)>; 3],
    /// Datagrams that are never forgotten before their lifetime, and others: of each kind, what was
    /// written first is forgotten first.
    replies: [Replies; 2],
    lifetimes: [Duration; 3],
    bytes: usize,
    /// Of these, what belongs to entries that are never forgotten before their lifetime. They get
    /// seven eighths at most, so that others are still remembered for a while.
    kept: usize,
    limit: usize,
}

/// What is older than its lifetime by this is forgotten although nothing comes in.
const OVERDUE: Duration = Duration::from_secs(10);
/// Rounds of forgetting in one wake.
const PORTION: usize = 256;

/// What an entry costs beside its stored reply: itself, its place in the table and in a queue.
const ENTRY_BYTES: usize = size_of::<Entry>() + 8 + size_of::<(Moment, u32)>();

/// A time in steps of 2²⁰ µs, rounded up: half the bytes of an [`Instant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moment(u32);

impl Moment {
    const SHIFT: u32 = 20;

    fn at_or_after(instant: Instant) -> Self {
        Self(u32::try_from(instant.as_micros().div_ceil(1 << Self::SHIFT)).unwrap_or(u32::MAX))
    }

    const fn is_over(self, now: Instant) -> bool {
        self.0 as u64 <= now.as_micros() >> Self::SHIFT
    }

    const fn instant(self) -> Instant {
        Instant::from_micros((self.0 as u64) << Self::SHIFT)
    }
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
            entries: Vec::new(),
            free: Vec::new(),
            queues: Default::default(),
            replies: Default::default(),
            lifetimes: [confirmable, confirmable, non_confirmable],
            bytes: 0,
            kept: 0,
            limit,
        }
    }

    /// Takes over changed limits. What is remembered keeps its time of expiry; the number says how many
    /// entries were forgotten since there is less memory now.
    pub(super) fn set(&mut self, limit: usize, confirmable: Duration, non_confirmable: Duration) -> u64 {
        (self.limit, self.lifetimes) = (limit, [confirmable, confirmable, non_confirmable]);
        self.make_room(0)
    }

    /// Remembered messages.
    pub(super) fn len(&self) -> usize {
        self.remembered.len()
    }

    /// A keyed digest of a datagram.
    pub(super) fn digest(&self, datagram: &[u8]) -> u64 {
        self.hasher.hash_one(datagram)
    }

    pub(super) fn find(&self, peer: &Peer, message_id: u16, digest: u64, now: Instant) -> Known {
        let hash = hash(&self.hasher, peer, message_id);
        let found = self.remembered.find(hash, |&index| {
            let entry = &self.entries[index as usize];
            entry.message_id == message_id && entry.peer == *peer
        });
        match found {
            None => Known::New(hash),
            Some(&index) => {
                let entry = &self.entries[index as usize];
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

    /// Remembers a message that [`Duplicates::find`] did not find, under the hash it gave.
    ///
    /// Errors: `None` when the memory is full of entries that must not be forgotten, and while the
    ///         replies to those that were open when it became so take more than their share. The
    ///         number says how many others were forgotten to make room.
    pub(super) fn remember(&mut self, hash: u64, message: Message, now: Instant) -> (Option<EntryId>, u64) {
        let Message { peer, message_id, digest, class, account, reply } = message;
        self.expire(now);
        if class == Class::Kept && self.kept + ENTRY_BYTES > self.limit / 8 * 7 {
            return (None, 0);
        }
        let forgotten = self.make_room(ENTRY_BYTES);
        if self.bytes + ENTRY_BYTES > self.limit {
            return (None, forgotten);
        }
        let expires = now + self.lifetimes[class as usize];
        let reply = Some(reply);
        let mut entry = Entry { peer, message_id, generation: 0, digest, class, expires, account, reply };
        let index = match self.free.pop() {
            Some(index) => {
                let place = &mut self.entries[index as usize];
                entry.generation = place.generation;
                *place = entry;
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        let id = EntryId { index, generation: self.entries[index as usize].generation };
        let (entries, hasher) = (&self.entries, &self.hasher);
        self.remembered.insert_unique(hash, index, |&index| {
            let entry = &entries[index as usize];
            self::hash(hasher, &entry.peer, entry.message_id)
        });
        self.queues[class as usize].push_back((Moment::at_or_after(expires), index));
        self.bytes += ENTRY_BYTES;
        self.kept += if class == Class::Kept { ENTRY_BYTES } else { 0 };
        (Some(id), forgotten)
    }

    pub(super) fn reply(&self, id: EntryId) -> Option<Reply> {
        let entry = self.entries.get(id.index as usize)?;
        if entry.generation != id.generation {
            return None;
        }
        entry.reply
    }

    /// The bytes of a [`Reply::Datagram`].
    pub(super) fn datagram(&self, id: EntryId) -> Option<&[u8]> {
        match (self.reply(id)?, self.entries.get(id.index as usize)?.class) {
            (Reply::Datagram(extent), class) => self.replies[place(class)].get(extent),
            (Reply::Open(_) | Reply::EmptyAcknowledgement(_) | Reply::Silence, _) => None,
        }
    }

    /// The account of a request whose entry was not forgotten.
    pub(super) fn account(&mut self, id: EntryId) -> Option<&mut Account> {
        let entry = self.entries.get_mut(id.index as usize)?;
        (entry.generation == id.generation && entry.reply.is_some()).then_some(&mut entry.account)
    }

    /// Changes what a repeat gets; nothing happens when the entry was forgotten.
    pub(super) fn set_reply(&mut self, id: EntryId, reply: Reply) {
        if self.is_remembered(id) {
            self.exchange_reply(id.index, Some(reply));
        }
    }

    /// From now on a repeat gets this datagram. The number says how many entries were forgotten to make
    /// room.
    pub(super) fn set_datagram(&mut self, id: EntryId, datagram: &[u8]) -> u64 {
        if !self.is_remembered(id) {
            return 0;
        }
        let class = self.entries[id.index as usize].class;
        let extent = self.replies[place(class)].push(datagram);
        self.exchange_reply(id.index, Some(Reply::Datagram(extent)));
        self.make_room(0)
    }

    fn is_remembered(&self, id: EntryId) -> bool {
        let entry = self.entries.get(id.index as usize);
        entry.is_some_and(|entry| entry.generation == id.generation && entry.reply.is_some())
    }

    /// Puts another reply into an entry and keeps count of the bytes.
    fn exchange_reply(&mut self, index: u32, reply: Option<Reply>) -> Option<Reply> {
        let entry = &mut self.entries[index as usize];
        let before = std::mem::replace(&mut entry.reply, reply);
        let (less, more) = (before.map_or(0, stored), reply.map_or(0, stored));
        self.bytes = self.bytes - less + more;
        if entry.class == Class::Kept {
            self.kept = self.kept - less + more;
        }
        if let Some(Reply::Datagram(extent)) = before {
            self.replies[place(entry.class)].release(extent);
        }
        before
    }

    /// Another message came under the Message ID of this entry and takes its place.
    pub(super) fn replace(
        &mut self,
        id: EntryId,
        digest: u64,
        class: Class,
        account: Account,
        reply: Reply,
        now: Instant,
    ) -> EntryId {
        self.exchange_reply(id.index, Some(reply));
        let entry = &mut self.entries[id.index as usize];
        self.kept -= if entry.class == Class::Kept { ENTRY_BYTES } else { 0 };
        self.kept += if class == Class::Kept { ENTRY_BYTES } else { 0 };
        entry.generation = entry.generation.wrapping_add(1);
        entry.account = account;
        (entry.digest, entry.class, entry.expires) = (digest, class, now + self.lifetimes[class as usize]);
        EntryId { index: id.index, generation: entry.generation }
    }

    /// Panics when table, entries and queues contradict each other.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.entries.len(), self.remembered.len() + self.free.len());
        assert_eq!(self.queues.iter().map(VecDeque::len).sum::<usize>(), self.remembered.len());
        assert!(self.bytes >= self.remembered.len() * ENTRY_BYTES);
    }

    fn forget(&mut self, index: u32) {
        if self.exchange_reply(index, None).is_none() {
            return;
        }
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        let hash = hash(&self.hasher, &entry.peer, entry.message_id);
        if let Ok(found) = self.remembered.find_entry(hash, |&other| other == index) {
            found.remove();
        }
        self.kept -= if entry.class == Class::Kept { ENTRY_BYTES } else { 0 };
        self.free.push(index);
        self.bytes -= ENTRY_BYTES;
    }

    /// When [`Duplicates::expire_overdue`] has something to do; traffic mostly comes before it.
    pub(super) fn next_overdue(&self) -> Option<Instant> {
        let oldest = self.queues.iter().filter_map(|queue| Some(queue.front()?.0)).min()?;
        Some(oldest.instant() + OVERDUE)
    }

    /// Forgets what no traffic made us forget, a portion at a time.
    pub(super) fn expire_overdue(&mut self, now: Instant) {
        for _ in 0..PORTION {
            if self.next_overdue().is_none_or(|due| due > now) {
                return;
            }
            self.expire(now);
        }
    }

    /// Forgets what is older than its lifetime, a few at a time.
    fn expire(&mut self, now: Instant) {
        for class in [Class::Kept, Class::Confirmable, Class::NonConfirmable] {
            for _ in 0..4 {
                let Some(&(moment, index)) = self.queues[class as usize].front() else { break };
                if !moment.is_over(now) {
                    break;
                }
                self.queues[class as usize].pop_front();
                let Entry { expires, class: home, .. } = self.entries[index as usize];
                if expires <= now {
                    self.forget(index);
                } else {
                    self.queues[home as usize].push_back((Moment::at_or_after(expires), index));
                }
            }
        }
    }

    fn make_room(&mut self, wanted: usize) -> u64 {
        let mut forgotten = 0;
        while self.bytes + wanted > self.limit {
            let next = [Class::NonConfirmable, Class::Confirmable]
                .into_iter()
                .find_map(|class| Some((class, self.queues[class as usize].pop_front()?)));
            let Some((class, (_, index))) = next else { break };
            let Entry { expires, class: home, .. } = self.entries[index as usize];
            if home == Class::Kept && class != home {
                self.queues[home as usize].push_back((Moment::at_or_after(expires), index));
            } else {
                self.forget(index);
                forgotten += 1;
            }
        }
        forgotten
    }
}

const fn stored(reply: Reply) -> usize {
    match reply {
        Reply::Datagram(extent) => extent.len(),
        Reply::Open(_) | Reply::EmptyAcknowledgement(_) | Reply::Silence => 0,
    }
}

/// Which of the two memories of datagrams.
const fn place(class: Class) -> usize {
    match class {
        Class::Kept => 0,
        Class::Confirmable | Class::NonConfirmable => 1,
    }
}

fn hash(hasher: &ahash::RandomState, peer: &Peer, message_id: u16) -> u64 {
    let mut state = hasher.build_hasher();
    peer.hash(&mut state);
    state.write_u16(message_id);
    state.finish()
}

#[cfg(test)]
mod tests;
