use std::collections::HashSet;

use super::*;
use crate::datagram::peers::PEER_BYTES;
use crate::peer::{Local, Peer, SocketId};

const CON: Duration = Duration::from_secs(247);
const NON: Duration = Duration::from_secs(145);

fn peer(port: u16) -> Peer {
    let local = Local { socket: SocketId(0), address: None };
    Peer { local, remote: ([127, 0, 0, 1], port).into() }
}

/// A memory and the peers whose messages are in it.
struct Memory {
    memory: Duplicates,
    peers: Peers,
}

impl Memory {
    fn new(limit: usize) -> Self {
        let hasher = || ahash::RandomState::with_seeds(1, 2, 3, 4);
        Self { memory: Duplicates::new(limit, CON, NON, hasher()), peers: Peers::new(hasher()) }
    }

    fn number(&mut self, port: u16) -> PeerNumber {
        self.peers.tidy();
        let peer = peer(port);
        let sender = self.peers.sender(&peer);
        self.peers.add(&sender)
    }

    fn remember_of(
        &mut self,
        port: u16,
        id: u16,
        digest: u64,
        class: Class,
        now: Instant,
    ) -> Option<EntryId> {
        let message = message(self.number(port), id, digest, class);
        let hash = self.memory.hash(message.peer, id);
        self.memory.remember(&mut self.peers, hash, &message, now).0
    }

    fn remember(&mut self, message_id: u16, class: Class, now: Instant) -> Option<EntryId> {
        self.remember_of(1, message_id, 42, class, now)
    }

    fn find(&mut self, port: u16, message_id: u16, digest: u64, now: Instant) -> Known {
        let peer = self.number(port);
        self.memory.find(peer, message_id, digest, now)
    }

    fn replace(&mut self, id: EntryId, message_id: u16, digest: u64, class: Class, now: Instant) -> EntryId {
        let message = message(self.number(1), message_id, digest, class);
        self.memory.replace(&mut self.peers, id, &message, now)
    }

    fn set_datagram(&mut self, id: EntryId, datagram: &[u8]) {
        self.memory.set_datagram(&mut self.peers, id, datagram);
    }

    #[track_caller]
    fn check(&self) {
        self.memory.check_invariants();
        self.peers.check_invariants(std::iter::empty(), self.memory.peers());
        let entries = || self.memory.entries.iter().filter(|entry| entry.reply.is_some());
        let bytes = |entry: &Entry| ENTRY_BYTES + entry.reply.map_or(0, Reply::stored);
        let peers = |entries: &mut dyn Iterator<Item = &Entry>| {
            PEER_BYTES * entries.map(|entry| entry.peer).collect::<HashSet<_>>().len()
        };
        let is_kept = |entry: &&Entry| entry.class.is_kept();
        let all = entries().map(bytes).sum::<usize>() + peers(&mut entries());
        let kept =
            entries().filter(is_kept).map(bytes).sum::<usize>() + peers(&mut entries().filter(is_kept));
        assert_eq!(
            (entries().count(), all, kept),
            (self.memory.len(), self.memory.sums.bytes, self.memory.sums.kept)
        );
    }
}

fn message(peer: PeerNumber, message_id: u16, digest: u64, class: Class) -> Message {
    let account = Account::VERIFIED;
    Message { peer, message_id, digest, class, account, reply: Reply::Silence }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn knows_a_message_by_peer_id_and_content() {
    let mut memory = Memory::new(1 << 20);
    let id = memory.remember(7, Class::Kept, at(0)).expect("room");
    assert_eq!(memory.find(1, 7, 42, at(0)), Known::Repeated(id));
    assert_eq!(memory.find(1, 7, 43, at(0)), Known::Reused(id));
    assert!(matches!(memory.find(2, 7, 42, at(0)), Known::New(_)));
    assert!(matches!(memory.find(1, 8, 42, at(0)), Known::New(_)));
}

#[test]
fn remembers_as_long_as_the_sender_may_repeat() {
    let mut memory = Memory::new(1 << 20);
    memory.remember(1, Class::Confirmable, at(0));
    memory.remember(2, Class::NonConfirmable, at(0));
    memory.remember(3, Class::Kept, at(240));
    assert!(matches!(memory.find(1, 1, 42, at(246)), Known::Repeated(_)));
    assert!(matches!(memory.find(1, 1, 42, at(247)), Known::Expired(_)));
    assert!(matches!(memory.find(1, 2, 42, at(0)), Known::New(_)), "145 s are over");
    memory.remember(4, Class::Kept, at(248));
    assert!(matches!(memory.find(1, 1, 42, at(0)), Known::New(_)), "247 s are over");
}

#[test]
fn a_full_memory_forgets_what_may_be_done_again_and_refuses_what_may_not() {
    let mut memory = Memory::new(16 * ENTRY_BYTES + PEER_BYTES);
    for id in 0..5 {
        memory.remember(id, Class::Confirmable, at(0)).expect("room");
    }
    for id in 5..18 {
        memory.remember(id, Class::Kept, at(0)).expect("makes room");
    }
    assert_eq!(memory.memory.len(), 16);
    assert_eq!(memory.remember(99, Class::Kept, at(1)), None);
    for id in 100..200 {
        memory.remember(id, Class::Confirmable, at(1)).expect("an eighth is for others");
    }
    assert!((5..18).all(|id| !matches!(memory.find(1, id, 42, at(0)), Known::New(_))));
    assert!(memory.remember(99, Class::Kept, at(248)).is_some(), "the old ones are over");
}

#[test]
fn what_must_not_be_done_twice_is_kept_also_where_it_is_not_confirmable() {
    let mut memory = Memory::new(16 * ENTRY_BYTES + PEER_BYTES);
    let once = memory.remember(1, Class::KeptNonConfirmable, at(0)).expect("room");
    for id in 100..200 {
        memory.remember(id, Class::Confirmable, at(1)).expect("makes room");
    }
    assert_eq!(memory.find(1, 1, 42, at(144)), Known::Repeated(once));
    memory.remember(2, Class::Confirmable, at(147));
    assert!(matches!(memory.find(1, 1, 42, at(0)), Known::New(_)), "145 s are over");
}

#[test]
fn stored_replies_count() {
    let mut memory = Memory::new(4 * ENTRY_BYTES + PEER_BYTES + 500);
    for message_id in 0..4 {
        let id = memory.remember(message_id, Class::Confirmable, at(0)).expect("room");
        memory.set_datagram(id, &[0; 200]);
    }
    assert!(memory.memory.sums.bytes <= memory.memory.limit);
    assert!(matches!(memory.find(1, 0, 42, at(0)), Known::New(_)));
    assert!(matches!(memory.find(1, 3, 42, at(0)), Known::Repeated(_)));
}

#[test]
fn a_replaced_entry_lives_as_long_as_its_successor() {
    let mut memory = Memory::new(1 << 20);
    let first = memory.remember(1, Class::NonConfirmable, at(0)).expect("room");
    let second = memory.replace(first, 1, 43, Class::Kept, at(100));
    memory.set_datagram(first, &[1]);
    assert!(matches!(memory.memory.reply(second), Some(Reply::Silence)), "the old name is worth nothing");
    for second in 0..9 {
        memory.remember(100 + second, Class::Confirmable, at(240 + u64::from(second)));
    }
    assert_eq!(memory.find(1, 1, 43, at(346)), Known::Repeated(second));
    for second in 0..9 {
        memory.remember(200 + second, Class::Confirmable, at(350 + u64::from(second)));
    }
    assert!(matches!(memory.find(1, 1, 43, at(0)), Known::New(_)));
}

#[test]
fn gives_everything_back() {
    let mut memory = Memory::new(1 << 20);
    for message_id in 0..1000 {
        let id = memory.remember(message_id, Class::Confirmable, at(0)).expect("room");
        memory.set_datagram(id, &[0; 20]);
    }
    for message_id in 1000..1400 {
        memory.remember(message_id, Class::Kept, at(300));
    }
    assert_eq!(memory.memory.len(), 400);
    assert_eq!(memory.memory.sums.bytes, 400 * ENTRY_BYTES + PEER_BYTES);
}

#[test]
fn one_peer_has_at_most_one_entry_for_each_message_id() {
    // The quota per source: 65 536 Message IDs, whatever the peer sends (R-DED-09).
    let mut memory = Memory::new(64 << 20);
    for round in 0..2 {
        for message_id in 0..=u16::MAX {
            let digest = u64::from(message_id) + round;
            match memory.find(1, message_id, digest, at(round)) {
                Known::New(_) => {
                    memory.remember_of(1, message_id, digest, Class::Kept, at(round));
                }
                Known::Reused(id) => {
                    memory.replace(id, message_id, digest, Class::Kept, at(round));
                }
                Known::Repeated(_) | Known::Expired(_) => panic!("neither repeated nor expired"),
            }
        }
        assert_eq!(memory.memory.len(), 65_536);
    }
    assert!(memory.remember_of(2, 1, 1, Class::Kept, at(1)).is_some());
}

#[test]
fn replies_to_what_was_open_when_it_ran_full_are_kept_and_nothing_new_is_taken() {
    let mut memory = Memory::new(5 * ENTRY_BYTES + PEER_BYTES);
    let open: Vec<_> = (0..4).filter_map(|id| memory.remember(id, Class::Kept, at(0))).collect();
    assert_eq!(open.len(), 4);
    for id in open {
        memory.set_datagram(id, &[0; 100]);
        assert!(matches!(memory.memory.reply(id), Some(Reply::Datagram(_))));
    }
    assert_eq!(memory.memory.sums.bytes, 4 * ENTRY_BYTES + 4 * 100 + PEER_BYTES);
    assert_eq!(memory.remember(9, Class::NonConfirmable, at(1)), None);
    assert_eq!(memory.remember(9, Class::Confirmable, at(1)), None);
}

#[test]
fn an_entry_takes_48_bytes() {
    assert_eq!(size_of::<Entry>(), 48);
    assert_eq!(ENTRY_BYTES, 48 + 16, "and its places in table and queue");
}

#[test]
fn strangers_leave_room_for_others_as_well() {
    // Each request that must not be done twice comes from another peer, whose bytes count with it.
    let mut memory = Memory::new(100 * (ENTRY_BYTES + PEER_BYTES));
    for port in 0..1000 {
        memory.remember_of(port, 1, 42, Class::Kept, at(0));
    }
    assert_eq!(memory.memory.len(), 87, "seven eighths");
    for port in 1000..2000 {
        memory.remember_of(port, 1, 42, Class::Confirmable, at(0)).expect("an eighth is for others");
        memory.check();
    }
    assert_eq!(memory.memory.len(), 100);
    memory.peers.tidy();
    assert!(memory.peers.number(&peer(1000)).is_none() && memory.peers.number(&peer(1999)).is_some());
}

#[test]
fn table_entries_and_sums_agree_whatever_comes() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let limit = random.usize(1..40) * ENTRY_BYTES + 3 * PEER_BYTES;
        let mut memory = Memory::new(limit);
        let (mut now, mut known, mut open) = (Instant::ZERO, Vec::new(), 0);
        for _ in 0..3000 {
            now += Duration::from_millis(random.u64(0..20_000));
            let class = Class::ALL[random.usize(..4)];
            let (port, message_id, digest) = (random.u16(1..4), random.u16(..20), random.u64(..2));
            match memory.find(port, message_id, digest, now) {
                Known::New(_) => {
                    let before = memory.memory.sums.bytes;
                    let entry = memory.remember_of(port, message_id, digest, class, now);
                    assert!(
                        memory.memory.sums.bytes <= limit.max(before),
                        "nothing is taken beyond the limit"
                    );
                    known.extend(entry);
                }
                Known::Reused(id) | Known::Expired(id) => {
                    let message = message(memory.number(port), message_id, digest, class);
                    known.push(memory.memory.replace(&mut memory.peers, id, &message, now));
                }
                Known::Repeated(id) => {
                    let size = random.usize(..200);
                    open += usize::from(matches!(memory.memory.reply(id), Some(Reply::Silence)));
                    memory.set_datagram(id, &vec![0; size]);
                }
            }
            if let Some(&id) = random.choice(&known) {
                memory.memory.set_reply(id, Reply::EmptyAcknowledgement);
            }
            memory.check();
        }
        assert!(open > 0 && memory.memory.len() <= 60);
    }
}
