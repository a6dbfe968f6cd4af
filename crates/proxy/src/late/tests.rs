use coapway_endpoint::{Copy, Local, Trace};
use coapway_message::Token;

use super::*;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn peer() -> Peer {
    Peer { local: Local::default(), remote: ([192, 0, 2, 1], 5683).into() }
}

/// An exchange with so many copies under this Message ID, and so many Acknowledgements.
fn trace(message_id: u16, copies: u64, acks: u32) -> Trace {
    let copy = |number| Copy::new(at(number * 1000), Duration::from_millis(5000), message_id);
    Trace {
        peer: peer(),
        token: Token::default(),
        confirmable: true,
        copies: (0..copies).map(copy).collect(),
        first_ack: (acks > 0).then(|| at(500)),
        first_ack_id: (acks > 0).then_some(message_id),
        acks,
        answer: None,
        bytes: 10,
    }
}

fn record(id: u64, traces: impl IntoIterator<Item = Trace>) -> Box<Record> {
    Box::new(Record { id, exchanges: traces.into_iter().collect(), ..Record::blank() })
}

fn late() -> Late {
    Late::new(RandomState::with_seeds(1, 2, 3, 4))
}

fn told(record: Option<Box<Record>>) -> Option<(u64, Option<u32>)> {
    record.map(|record| (record.id, record.late))
}

#[test]
fn with_nothing_to_come_it_is_told_at_once() {
    let mut late = late();
    assert_eq!(told(late.hold(record(1, [trace(7, 2, 2)]), at(0))), Some((1, Some(0))));
    assert_eq!(told(late.hold(record(2, []), at(0))), Some((2, Some(0))));
    let refused = Trace { confirmable: false, ..trace(7, 1, 0) };
    assert_eq!(told(late.hold(record(3, [refused]), at(0))), Some((3, Some(0))));
    let mut unreachable = record(4, [trace(7, 1, 0)]);
    unreachable.cause = Cause::Failed(Failure::Unreachable);
    assert_eq!(told(late.hold(unreachable, at(0))), Some((4, Some(0))));
    assert_eq!(late.poll_timeout(), None);
}

#[test]
fn it_is_told_when_all_came_or_the_last_wait_is_over() {
    let mut late = late();
    assert!(late.hold(record(1, [trace(7, 3, 1)]), at(0)).is_none());
    assert!(late.hold(record(2, [trace(8, 2, 0), trace(9, 1, 1)]), at(10)).is_none());
    assert!(late.acknowledged(peer(), 10).is_none(), "of another message");
    assert!(late.acknowledged(peer(), 7).is_none(), "one is missing");
    assert_eq!(told(late.acknowledged(peer(), 7)), Some((1, Some(2))));
    assert!(late.acknowledged(peer(), 7).is_none(), "told once");
    assert!(late.acknowledged(peer(), 8).is_none());
    assert!(late.expire(at(5009)).is_none());
    assert_eq!(told(late.expire(at(5010))), Some((2, Some(1))));
    assert!(late.expire(at(99_000)).is_none() && late.poll_timeout().is_none());
    assert!(late.by_message.is_empty());
}

#[test]
fn what_is_given_up_or_finds_no_room_says_that_it_is_not_known() {
    let mut late = late();
    assert!(late.hold(record(1, [trace(7, 1, 0)]), at(0)).is_none());
    late.acknowledged(peer(), 8);
    assert_eq!(told(late.give_up()), Some((1, None)));
    assert!(late.give_up().is_none());
    for id in 0..MOST as u16 {
        assert!(late.hold(record(id.into(), [trace(id, 1, 0)]), at(0)).is_none());
    }
    assert_eq!(told(late.hold(record(9999, [trace(9999, 1, 0)]), at(0))), Some((9999, None)));
    assert_eq!(late.by_message.len(), MOST);
}
