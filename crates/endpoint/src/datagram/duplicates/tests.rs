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
    remember_as(memory, message_id, 42, class, now)
}

fn remember_as(
    memory: &mut Duplicates,
    message_id: u16,
    digest: u64,
    class: Class,
    now: Instant,
) -> Option<EntryId> {
    let (peer, account) = (peer(1), Account::VERIFIED);
    let hash = hash(&memory.hasher, &peer, message_id);
    memory.remember(hash, Message { peer, message_id, digest, class, account, reply: Reply::Silence }, now).0
}

#[test]
fn knows_a_message_by_peer_id_and_content() {
    let mut memory = memory(1 << 20);
    let id = remember(&mut memory, 7, Class::Kept, at(0)).expect("room");
    assert_eq!(memory.find(&peer(1), 7, 42, at(0)), Known::Repeated(id));
    assert_eq!(memory.find(&peer(1), 7, 43, at(0)), Known::Reused(id));
    assert!(matches!(memory.find(&peer(2), 7, 42, at(0)), Known::New(_)));
    assert!(matches!(memory.find(&peer(1), 8, 42, at(0)), Known::New(_)));
}

#[test]
fn remembers_as_long_as_the_sender_may_repeat() {
    let mut memory = memory(1 << 20);
    remember(&mut memory, 1, Class::Confirmable, at(0));
    remember(&mut memory, 2, Class::NonConfirmable, at(0));
    remember(&mut memory, 3, Class::Kept, at(240));
    assert!(matches!(memory.find(&peer(1), 1, 42, at(246)), Known::Repeated(_)));
    assert!(matches!(memory.find(&peer(1), 1, 42, at(247)), Known::Expired(_)));
    assert!(matches!(memory.find(&peer(1), 2, 42, at(0)), Known::New(_)), "145 s are over");
    remember(&mut memory, 4, Class::Kept, at(248));
    assert!(matches!(memory.find(&peer(1), 1, 42, at(0)), Known::New(_)), "247 s are over");
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
    assert!((5..19).all(|id| !matches!(memory.find(&peer(1), id, 42, at(0)), Known::New(_))));
    assert!(remember(&mut memory, 99, Class::Kept, at(248)).is_some(), "the old ones are over");
}

#[test]
fn stored_replies_count() {
    let mut memory = memory(4 * ENTRY_BYTES + 500);
    for message_id in 0..4 {
        let id = remember(&mut memory, message_id, Class::Confirmable, at(0)).expect("room");
        memory.set_datagram(id, &[0; 200]);
    }
    assert!(memory.bytes <= memory.limit);
    assert!(matches!(memory.find(&peer(1), 0, 42, at(0)), Known::New(_)));
    assert!(matches!(memory.find(&peer(1), 3, 42, at(0)), Known::Repeated(_)));
}

#[test]
fn a_replaced_entry_lives_as_long_as_its_successor() {
    let mut memory = memory(1 << 20);
    let first = remember(&mut memory, 1, Class::NonConfirmable, at(0)).expect("room");
    let second = memory.replace(first, 43, Class::Kept, Account::VERIFIED, Reply::Silence, at(100));
    memory.set_datagram(first, &[1]);
    assert!(matches!(memory.reply(second), Some(Reply::Silence)), "the old name is worth nothing");
    for second in 0..9 {
        remember(&mut memory, 100 + second, Class::Confirmable, at(240 + u64::from(second)));
    }
    assert_eq!(memory.find(&peer(1), 1, 43, at(346)), Known::Repeated(second));
    for second in 0..9 {
        remember(&mut memory, 200 + second, Class::Confirmable, at(350 + u64::from(second)));
    }
    assert!(matches!(memory.find(&peer(1), 1, 43, at(0)), Known::New(_)));
}

#[test]
fn gives_everything_back() {
    let mut memory = memory(1 << 20);
    for message_id in 0..1000 {
        let id = remember(&mut memory, message_id, Class::Confirmable, at(0)).expect("room");
        memory.set_datagram(id, &[0; 20]);
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
                Known::New(_) => {
                    remember_as(&mut memory, message_id, digest, Class::Kept, at(round));
                }
                Known::Reused(id) => {
                    memory.replace(id, digest, Class::Kept, Account::VERIFIED, Reply::Silence, at(round));
                }
                Known::Repeated(_) | Known::Expired(_) => panic!("neither repeated nor expired"),
            }
        }
        assert_eq!(memory.len(), 65_536);
    }
    let other = Message {
        peer: peer(2),
        message_id: 1,
        digest: 1,
        class: Class::Kept,
        account: Account::VERIFIED,
        reply: Reply::Silence,
    };
    assert!(memory.remember(hash(&memory.hasher, &other.peer, 1), other, at(1)).0.is_some());
}

#[test]
fn replies_to_what_was_open_when_it_ran_full_are_kept_and_nothing_new_is_taken() {
    let mut memory = memory(5 * ENTRY_BYTES);
    let open: Vec<_> = (0..4).filter_map(|id| remember(&mut memory, id, Class::Kept, at(0))).collect();
    assert_eq!(open.len(), 4);
    for id in open {
        memory.set_datagram(id, &[0; 100]);
        assert!(matches!(memory.reply(id), Some(Reply::Datagram(_))));
    }
    assert_eq!(memory.bytes, 4 * ENTRY_BYTES + 4 * 100);
    assert_eq!(remember(&mut memory, 9, Class::NonConfirmable, at(1)), None);
    assert_eq!(remember(&mut memory, 9, Class::Confirmable, at(1)), None);
}

#[test]
fn an_entry_takes_104_bytes() {
    assert_eq!(size_of::<Entry>(), 104);
    assert_eq!(ENTRY_BYTES, 104 + 16, "and its places in table and queue");
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
                Known::New(_) => {
                    let before = memory.bytes;
                    let entry = remember_as(&mut memory, message_id, digest, class, now);
                    assert!(memory.bytes <= limit.max(before), "nothing is taken beyond the limit");
                    known.extend(entry);
                }
                Known::Reused(id) | Known::Expired(id) => {
                    known.push(memory.replace(id, digest, class, account, Reply::Silence, now));
                }
                Known::Repeated(id) => {
                    let size = random.usize(..200);
                    open += usize::from(matches!(memory.reply(id), Some(Reply::Silence)));
                    memory.set_datagram(id, &vec![0; size]);
                }
            }
            if let Some(&id) = random.choice(&known) {
                memory.set_reply(id, Reply::EmptyAcknowledgement(None));
            }
            memory.check_invariants();
            let replies = || memory.entries.iter().filter_map(|entry| entry.reply);
            let bytes: usize = replies().map(|reply| ENTRY_BYTES + stored(reply)).sum();
            assert_eq!((replies().count(), bytes), (memory.len(), memory.bytes));
            let kept = memory.entries.iter().filter(|entry| entry.class == Class::Kept);
            let kept = kept.filter_map(|entry| entry.reply);
            assert_eq!(kept.map(|reply| ENTRY_BYTES + stored(reply)).sum::<usize>(), memory.kept);
        }
        assert!(open > 0 && memory.len() <= 60);
    }
}
