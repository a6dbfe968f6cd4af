//! Recent messages of peers and the reply a repeat gets (RFC 7252 §4.5).
//!
//! A message is known by (peer, Message ID) and by a digest of its bytes: clients do reuse Message
//! IDs within their lifetime, and such a message is a new request. Memory is bounded. When it runs
//! out, entries whose request may be done again go first, oldest first; Confirmable POST, PATCH and
//! OSCORE requests are never forgotten before their lifetime, so new ones of that kind are refused.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, Hasher};
use std::time::Duration;

use coapway_message::ExchangeId;
use coapway_time::Instant;
use hashbrown::HashTable;

use super::account::Account;
use crate::peer::Peer;

/// What a repeat of a message gets.
#[derive(Debug)]
pub(super) enum Reply {
    /// Nothing yet: the request is not answered.
    Open(ExchangeId),
    /// An empty Acknowledgement, now and for ever, and the separate response while it is under way.
    EmptyAcknowledgement(Option<ExchangeId>),
    /// These bytes.
    Datagram(Box<[u8]>),
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

/// What is known of a message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing.
    New,
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
    /// entry that was replaced moves when its turn comes.
    queues: [VecDeque<u32>; 3],
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
const ENTRY_BYTES: usize = size_of::<Entry>() + 8 + size_of::<u32>();

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
            lifetimes: [confirmable, confirmable, non_confirmable],
            bytes: 0,
            kept: 0,
            limit,
        }
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
            None => Known::New,
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

    /// Remembers a message that [`Duplicates::find`] did not find.
    ///
    /// Errors: `None` when the memory is full of entries that must not be forgotten, and while the
    ///         replies to those that were open when it became so take more than their share. The
    ///         number says how many others were forgotten to make room.
    pub(super) fn remember(
        &mut self,
        peer: Peer,
        message_id: u16,
        digest: u64,
        class: Class,
        account: Account,
        now: Instant,
    ) -> (Option<EntryId>, u64) {
        self.expire(now);
        if class == Class::Kept && self.kept + ENTRY_BYTES > self.limit / 8 * 7 {
            return (None, 0);
        }
        let forgotten = self.make_room(ENTRY_BYTES);
        if self.bytes + ENTRY_BYTES > self.limit {
            return (None, forgotten);
        }
        let expires = now + self.lifetimes[class as usize];
        let index = self.free.pop().unwrap_or_else(|| {
            let (generation, reply) = (0, None);
            self.entries.push(Entry { peer, message_id, generation, digest, class, expires, account, reply });
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[index as usize];
        (entry.peer, entry.message_id, entry.digest, entry.expires) = (peer, message_id, digest, expires);
        (entry.class, entry.account, entry.reply) = (class, account, Some(Reply::Silence));
        let id = EntryId { index, generation: entry.generation };
        let (entries, hasher) = (&self.entries, &self.hasher);
        self.remembered.insert_unique(hash(hasher, &peer, message_id), index, |&index| {
            let entry = &entries[index as usize];
            hash(hasher, &entry.peer, entry.message_id)
        });
        self.queues[class as usize].push_back(index);
        self.bytes += ENTRY_BYTES;
        self.kept += if class == Class::Kept { ENTRY_BYTES } else { 0 };
        (Some(id), forgotten)
    }

    pub(super) fn reply(&self, id: EntryId) -> Option<&Reply> {
        let entry = self.entries.get(id.index as usize)?;
        if entry.generation != id.generation {
            return None;
        }
        entry.reply.as_ref()
    }

    /// The account of a request whose entry was not forgotten.
    pub(super) fn account(&mut self, id: EntryId) -> Option<&mut Account> {
        let entry = self.entries.get_mut(id.index as usize)?;
        (entry.generation == id.generation && entry.reply.is_some()).then_some(&mut entry.account)
    }

    /// Changes what a repeat gets; nothing happens when the entry was forgotten. The number says how
    /// many entries were forgotten to make room.
    pub(super) fn set_reply(&mut self, id: EntryId, reply: Reply) -> u64 {
        let Some(entry) = self.entries.get_mut(id.index as usize) else { return 0 };
        if entry.generation != id.generation {
            return 0;
        }
        let Some(before) = entry.reply.replace(reply) else { return 0 };
        let (less, more) = (stored(&before), entry.reply.as_ref().map_or(0, stored));
        self.bytes = self.bytes - less + more;
        if entry.class == Class::Kept {
            self.kept = self.kept - less + more;
        }
        self.make_room(0)
    }

    /// Another message came under the Message ID of this entry and takes its place.
    pub(super) fn replace(
        &mut self,
        id: EntryId,
        digest: u64,
        class: Class,
        account: Account,
        now: Instant,
    ) -> EntryId {
        let entry = &mut self.entries[id.index as usize];
        let less = entry.reply.replace(Reply::Silence).as_ref().map_or(0, stored);
        self.bytes -= less;
        self.kept -= if entry.class == Class::Kept { ENTRY_BYTES + less } else { 0 };
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
        let entry = &mut self.entries[index as usize];
        let Some(reply) = entry.reply.take() else { return };
        entry.generation = entry.generation.wrapping_add(1);
        let hash = hash(&self.hasher, &entry.peer, entry.message_id);
        if let Ok(found) = self.remembered.find_entry(hash, |&other| other == index) {
            found.remove();
        }
        let freed = ENTRY_BYTES + stored(&reply);
        self.kept -= if entry.class == Class::Kept { freed } else { 0 };
        self.free.push(index);
        self.bytes -= freed;
    }

    /// When [`Duplicates::expire_overdue`] has something to do; traffic mostly comes before it.
    pub(super) fn next_overdue(&self) -> Option<Instant> {
        let oldest = self.queues.iter().filter_map(|queue| self.entries.get(*queue.front()? as usize));
        oldest.map(|entry| entry.expires + OVERDUE).min()
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
                let Some(&index) = self.queues[class as usize].front() else { break };
                let entry = &self.entries[index as usize];
                let (expired, home) = (entry.expires <= now, entry.class);
                if !expired && home == class {
                    break;
                }
                self.queues[class as usize].pop_front();
                if expired {
                    self.forget(index);
                } else {
                    self.queues[home as usize].push_back(index);
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
            let Some((class, index)) = next else { break };
            let home = self.entries[index as usize].class;
            if home == Class::Kept && class != home {
                self.queues[home as usize].push_back(index);
            } else {
                self.forget(index);
                forgotten += 1;
            }
        }
        forgotten
    }
}

fn stored(reply: &Reply) -> usize {
    match reply {
        // 16 is what an allocation costs beside its bytes.
        Reply::Datagram(bytes) => bytes.len() + 16,
        Reply::Open(_) | Reply::EmptyAcknowledgement(_) | Reply::Silence => 0,
    }
}

fn hash(hasher: &ahash::RandomState, peer: &Peer, message_id: u16) -> u64 {
    let mut state = hasher.build_hasher();
    peer.hash(&mut state);
    state.write_u16(message_id);
    state.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::{Local, SocketId};

    const CON: Duration = Duration::from_secs(247);
    const NON: Duration = Duration::from_secs(145);

    fn peer(port: u16) -> Peer {
        let local = Local { socket: SocketId(0), address: None };
        Peer { local, remote: ([127, 0, 0, 1], port).into() }
    }

    fn memory(limit: usize) -> Duplicates {
        Duplicates::new(limit, CON, NON, ahash::RandomState::with_seeds(1, 2, 3, 4))
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn remember(memory: &mut Duplicates, message_id: u16, class: Class, now: Instant) -> Option<EntryId> {
        memory.remember(peer(1), message_id, 42, class, Account::VERIFIED, now).0
    }

    #[test]
    fn knows_a_message_by_peer_id_and_content() {
        let mut memory = memory(1 << 20);
        let id = remember(&mut memory, 7, Class::Kept, at(0)).expect("room");
        assert_eq!(memory.find(&peer(1), 7, 42, at(0)), Known::Repeated(id));
        assert_eq!(memory.find(&peer(1), 7, 43, at(0)), Known::Reused(id));
        assert_eq!(memory.find(&peer(2), 7, 42, at(0)), Known::New);
        assert_eq!(memory.find(&peer(1), 8, 42, at(0)), Known::New);
    }

    #[test]
    fn remembers_as_long_as_the_sender_may_repeat() {
        let mut memory = memory(1 << 20);
        remember(&mut memory, 1, Class::Confirmable, at(0));
        remember(&mut memory, 2, Class::NonConfirmable, at(0));
        remember(&mut memory, 3, Class::Kept, at(240));
        assert!(matches!(memory.find(&peer(1), 1, 42, at(246)), Known::Repeated(_)));
        assert!(matches!(memory.find(&peer(1), 1, 42, at(247)), Known::Expired(_)));
        assert_eq!(memory.find(&peer(1), 2, 42, at(0)), Known::New, "145 s are over");
        remember(&mut memory, 4, Class::Kept, at(248));
        assert_eq!(memory.find(&peer(1), 1, 42, at(0)), Known::New, "247 s are over");
    }

    #[test]
    fn a_full_memory_forgets_what_may_be_done_again_and_refuses_what_may_not() {
        let mut memory = memory(16 * ENTRY_BYTES);
        for id in 0..5 {
            remember(&mut memory, id, Class::Confirmable, at(0)).expect("room");
        }
        for id in 5..19 {
            remember(&mut memory, id, Class::Kept, at(0)).expect("makes room");
        }
        assert_eq!(memory.len(), 16);
        assert_eq!(remember(&mut memory, 99, Class::Kept, at(1)), None);
        for id in 100..200 {
            remember(&mut memory, id, Class::Confirmable, at(1)).expect("an eighth is for others");
        }
        assert!((5..19).all(|id| memory.find(&peer(1), id, 42, at(0)) != Known::New));
        assert!(remember(&mut memory, 99, Class::Kept, at(248)).is_some(), "the old ones are over");
    }

    #[test]
    fn stored_replies_count() {
        let mut memory = memory(4 * ENTRY_BYTES + 500);
        for message_id in 0..4 {
            let id = remember(&mut memory, message_id, Class::Confirmable, at(0)).expect("room");
            memory.set_reply(id, Reply::Datagram(vec![0; 200].into()));
        }
        assert!(memory.bytes <= memory.limit);
        assert_eq!(memory.find(&peer(1), 0, 42, at(0)), Known::New);
        assert!(matches!(memory.find(&peer(1), 3, 42, at(0)), Known::Repeated(_)));
    }

    #[test]
    fn a_replaced_entry_lives_as_long_as_its_successor() {
        let mut memory = memory(1 << 20);
        let first = remember(&mut memory, 1, Class::NonConfirmable, at(0)).expect("room");
        let second = memory.replace(first, 43, Class::Kept, Account::VERIFIED, at(100));
        memory.set_reply(first, Reply::Datagram(vec![1].into()));
        assert!(matches!(memory.reply(second), Some(Reply::Silence)), "the old name is worth nothing");
        for second in 0..9 {
            remember(&mut memory, 100 + second, Class::Confirmable, at(240 + u64::from(second)));
        }
        assert_eq!(memory.find(&peer(1), 1, 43, at(346)), Known::Repeated(second));
        for second in 0..9 {
            remember(&mut memory, 200 + second, Class::Confirmable, at(350 + u64::from(second)));
        }
        assert_eq!(memory.find(&peer(1), 1, 43, at(0)), Known::New);
    }

    #[test]
    fn gives_everything_back() {
        let mut memory = memory(1 << 20);
        for message_id in 0..1000 {
            let id = remember(&mut memory, message_id, Class::Confirmable, at(0)).expect("room");
            memory.set_reply(id, Reply::Datagram(vec![0; 20].into()));
        }
        for message_id in 1000..1400 {
            remember(&mut memory, message_id, Class::Kept, at(300));
        }
        assert_eq!(memory.len(), 400);
        assert_eq!(memory.bytes, 400 * ENTRY_BYTES);
    }

    #[test]
    fn one_peer_has_at_most_one_entry_for_each_message_id() {
        // The quota per source: 65 536 Message IDs, whatever the peer sends (R-DED-09).
        let mut memory = memory(64 << 20);
        for round in 0..2 {
            for message_id in 0..=u16::MAX {
                let digest = u64::from(message_id) + round;
                match memory.find(&peer(1), message_id, digest, at(round)) {
                    Known::New => {
                        memory.remember(
                            peer(1),
                            message_id,
                            digest,
                            Class::Kept,
                            Account::VERIFIED,
                            at(round),
                        );
                    }
                    Known::Reused(id) => {
                        memory.replace(id, digest, Class::Kept, Account::VERIFIED, at(round));
                    }
                    Known::Repeated(_) | Known::Expired(_) => panic!("neither repeated nor expired"),
                }
            }
            assert_eq!(memory.len(), 65_536);
        }
        assert!(memory.remember(peer(2), 1, 1, Class::Kept, Account::VERIFIED, at(1)).0.is_some());
    }

    #[test]
    fn replies_to_what_was_open_when_it_ran_full_are_kept_and_nothing_new_is_taken() {
        let mut memory = memory(5 * ENTRY_BYTES);
        let open: Vec<_> = (0..4).filter_map(|id| remember(&mut memory, id, Class::Kept, at(0))).collect();
        assert_eq!(open.len(), 4);
        for id in open {
            memory.set_reply(id, Reply::Datagram(vec![0; 100].into()));
            assert!(matches!(memory.reply(id), Some(Reply::Datagram(_))));
        }
        assert_eq!(memory.bytes, 4 * ENTRY_BYTES + 4 * 116);
        assert_eq!(remember(&mut memory, 9, Class::NonConfirmable, at(1)), None);
        assert_eq!(remember(&mut memory, 9, Class::Confirmable, at(1)), None);
    }

    #[test]
    fn an_entry_takes_112_bytes() {
        assert_eq!(size_of::<Entry>(), 112);
        assert_eq!(ENTRY_BYTES, 112 + 12, "and its places in table and queue");
    }

    #[test]
    fn table_entries_and_sum_agree_whatever_comes() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let limit = random.usize(1..40) * ENTRY_BYTES;
            let mut memory = memory(limit);
            let (mut now, mut known, mut open) = (Instant::ZERO, Vec::new(), 0);
            for _ in 0..3000 {
                now += Duration::from_millis(random.u64(0..20_000));
                let class = [Class::Kept, Class::Confirmable, Class::NonConfirmable][random.usize(..3)];
                let (message_id, digest) = (random.u16(..60), random.u64(..2));
                let account = Account::VERIFIED;
                match memory.find(&peer(1), message_id, digest, now) {
                    Known::New => {
                        let before = memory.bytes;
                        let entry = memory.remember(peer(1), message_id, digest, class, account, now).0;
                        assert!(memory.bytes <= limit.max(before), "nothing is taken beyond the limit");
                        known.extend(entry);
                    }
                    Known::Reused(id) | Known::Expired(id) => {
                        known.push(memory.replace(id, digest, class, account, now));
                    }
                    Known::Repeated(id) => {
                        let size = random.usize(..200);
                        open += usize::from(matches!(memory.reply(id), Some(Reply::Silence)));
                        memory.set_reply(id, Reply::Datagram(vec![0; size].into()));
                    }
                }
                if let Some(&id) = random.choice(&known) {
                    memory.set_reply(id, Reply::EmptyAcknowledgement(None));
                }
                memory.check_invariants();
                let replies = || memory.entries.iter().filter_map(|entry| entry.reply.as_ref());
                let bytes: usize = replies().map(|reply| ENTRY_BYTES + stored(reply)).sum();
                assert_eq!((replies().count(), bytes), (memory.len(), memory.bytes));
                let kept = memory.entries.iter().filter(|entry| entry.class == Class::Kept);
                let kept = kept.filter_map(|entry| entry.reply.as_ref());
                assert_eq!(kept.map(|reply| ENTRY_BYTES + stored(reply)).sum::<usize>(), memory.kept);
            }
            assert!(open > 0 && memory.len() <= 60);
        }
    }
}
