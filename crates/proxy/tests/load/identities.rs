//! Message IDs and tokens towards an origin: each its own, none too soon again, and never another's answer.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use coapway_endpoint::{Local, Nstart};
use coapway_message::{Code, Datagram, MessageType, OptionNumber};
use coapway_proxy::Occupancy;
use coapway_time::Instant;

use crate::bench::{Bench, Heard, answer, one_origin, parameters, value};

/// EXCHANGE_LIFETIME (RFC 7252 §4.8.2).
const EXCHANGE_LIFETIME: Duration = Duration::from_secs(247);

/// What an origin saw of one request.
#[derive(Clone, Debug)]
struct Seen {
    local: Local,
    message_id: u16,
    token: Vec<u8>,
    path: Vec<u8>,
}

#[test]
fn two_hundred_requests_in_turn_share_neither_message_id_nor_token() {
    let runs = [1, 2].map(two_hundred);
    for seen in &runs {
        assert_eq!(seen.len(), 200, "each left once");
        let ids: HashSet<_> = seen.iter().map(|seen| (seen.local, seen.message_id)).collect();
        let tokens: HashSet<_> = seen.iter().map(|seen| (seen.local, &seen.token)).collect();
        assert_eq!((ids.len(), tokens.len()), (200, 200));
        for path in [&b"time"[..], b"location"] {
            assert_eq!(seen.iter().filter(|seen| seen.path == path).count(), 100);
        }
        // A byte drawn by chance takes some 139 values in 200 draws; a counter's high bytes few.
        let length = seen[0].token.len();
        let values = |place: usize| seen.iter().map(|seen| seen.token[place]).collect::<HashSet<_>>().len();
        let random = (0..length).filter(|&place| values(place) > 100).count();
        assert!(random >= 4, "{random} of {length} bytes are random");
    }
    let first = |place: usize| runs[place][0].clone();
    assert_ne!(first(0).message_id, first(1).message_id, "a start says nothing of the next");
    assert_ne!(first(0).token, first(1).token);
}

/// /s/time and /s/location in turn, each as soon as the last is answered by its own path.
fn two_hundred(seed: u64) -> Vec<Seen> {
    let log = Rc::new(RefCell::new(Vec::new()));
    let origin = Rc::clone(&log);
    let mut bench = Bench::new(parameters(one_origin()), seed, move |asked| {
        let Datagram { message_id, token, .. } = asked.request;
        let path = value(&asked.request, OptionNumber::URI_PATH);
        let bytes = answer(&asked.request, &path);
        origin.borrow_mut().push(Seen { local: asked.local, message_id, token: token.to_vec(), path });
        bytes
    });
    for number in 0..200_u8 {
        let path: &[u8] = if number.is_multiple_of(2) { b"time" } else { b"location" };
        let head = [0x41, Code::GET.0, 0x12, number, 0xD1, 0xB1, b's', path.len() as u8];
        bench.ask(client(0), &[&head, path].concat());
        let later = bench.now + Duration::from_secs(1);
        bench.run_until(later);
        let heard = bench.heard.pop().expect("an answer");
        let answer = Datagram::parse(&heard.bytes).expect("well formed");
        assert_eq!((answer.message_id, answer.token), (0x1200 | u16::from(number), &b"\xD1"[..]));
        assert_eq!((answer.content.code, answer.content.payload), (Code::CONTENT, path));
        assert_eq!(bench.heard, []);
    }
    log.take()
}

#[test]
fn fifty_clients_with_one_message_id_get_fifty_answers() {
    let mut bench = Bench::new(parameters(one_origin()), 1, |asked| {
        answer(&asked.request, &value(&asked.request, OptionNumber::URI_QUERY))
    });
    // The Message ID is that of a separate response of ours to the seventh.
    bench.round_trip = Duration::from_secs(1);
    bench.ask(client(7), &get(7));
    bench.run_until(Instant::ZERO + Duration::from_millis(1100));
    let heard = std::mem::take(&mut bench.heard);
    let separate = Datagram::parse(&heard[1].bytes).expect("well formed");
    assert_eq!((heard.len(), separate.message_type), (2, MessageType::Confirmable));
    let [high, low] = separate.message_id.to_be_bytes();
    bench.round_trip = Duration::from_millis(20);
    for number in 0..50 {
        let mut request = get(number);
        (request[2], request[3]) = (high, low);
        // All the same token as well.
        request[4..8].copy_from_slice(b"same");
        bench.ask(client(number), &request);
        let next = bench.now + Duration::from_micros(200);
        bench.run_until(next);
    }
    let later = bench.now + Duration::from_millis(800);
    bench.run_until(later);
    let mut answered = HashSet::new();
    for heard in &bench.heard {
        let number = u32::from(heard.client.port() - 40_000);
        let answer = Datagram::parse(&heard.bytes).expect("well formed");
        let ids = (answer.message_type, answer.message_id, answer.token);
        assert_eq!(ids, (MessageType::Acknowledgement, separate.message_id, &b"same"[..]), "{heard:?}");
        let content = (answer.content.code, answer.content.payload);
        assert_eq!(content, (Code::CONTENT, number.to_string().as_bytes()), "{heard:?}");
        assert!(answered.insert(number), "{number} is answered twice");
    }
    assert_eq!(answered.len(), 50);
    assert_eq!(bench.executed, 51);
    bench.ask(client(7), &[0x60, 0, high, low]);
}

#[test]
fn sixty_four_clients_use_up_one_port_and_nobody_gets_anothers_answer() {
    let outcome = rush(1, Duration::from_secs(270));
    // All there are before the first may be used again, and more afterwards.
    assert!((65_000..=65_536).contains(&outcome.answered_early), "{outcome:?}");
    assert!(outcome.refused >= 64 && outcome.answered > outcome.answered_early + 10_000, "{outcome:?}");
    assert!(outcome.shortest.is_some_and(|shortest| shortest >= EXCHANGE_LIFETIME), "{outcome:?}");
    // They wait where one will be free in time, and are told at once where none will.
    assert!(outcome.longest_refusal <= Duration::from_millis(100), "{outcome:?}");
}

/// More ports than one are the cure.
#[test]
fn with_further_ports_eighty_thousand_requests_are_all_answered() {
    let outcome = rush(64, Duration::from_secs(32));
    assert!(outcome.answered >= 80_000, "{outcome:?}");
    assert_eq!((outcome.refused, outcome.shortest), (0, None), "{outcome:?}");
}

#[derive(Debug, Default)]
struct Outcome {
    /// Answered 2.05 with what was asked for; of these, before the first Message ID could come again.
    answered: u32,
    answered_early: u32,
    /// Answered 5.03 with a Max-Age and that nothing was sent; how long that took at the most.
    refused: u32,
    longest_refusal: Duration,
    /// The shortest time between two uses of a Message ID from one port.
    shortest: Option<Duration>,
}

/// When each Message ID left each port last, and the shortest time between two.
#[derive(Debug, Default)]
struct Uses {
    last: HashMap<(Local, u16), Instant>,
    shortest: Option<Duration>,
}

/// Each of 64 clients asks for something else as soon as it is answered, Confirmable and not in turn; one that
/// is refused waits as it was told.
fn rush(source_ports: u32, duration: Duration) -> Outcome {
    let uses = Rc::new(RefCell::new(Uses::default()));
    let origin = Rc::clone(&uses);
    let mut parameters = parameters(one_origin());
    for upstream in &mut parameters.upstreams {
        (upstream.source_ports, upstream.nstart) = (source_ports, Nstart::Fixed(64));
    }
    let mut bench = Bench::new(parameters, 1, move |asked| {
        let mut uses = origin.borrow_mut();
        let last = uses.last.insert((asked.local, asked.request.message_id), asked.at);
        if let Some(age) = last.map(|last| asked.at.since(last)) {
            uses.shortest = Some(uses.shortest.map_or(age, |shortest| shortest.min(age)));
        }
        answer(&asked.request, &value(&asked.request, OptionNumber::URI_QUERY))
    });
    let end = Instant::ZERO + duration;
    let mut outcome = Outcome::default();
    // By client, its latest request and when it left.
    let mut asked = vec![(0_u32, Instant::ZERO); 64];
    for number in 0..64 {
        asked[number as usize] = (number, bench.now);
        bench.ask(client(number), &get(number));
    }
    while bench.step(end) {
        for heard in std::mem::take(&mut bench.heard) {
            if heard.bytes[1] == Code::EMPTY.0 {
                continue;
            }
            if let &[0x44, _, high, low, ..] = &heard.bytes[..] {
                bench.ask(heard.client, &[0x60, 0, high, low]);
            }
            let place = usize::from(heard.client.port() - 40_000);
            let (number, at) = asked[place];
            let pause = judge(&heard, number, heard.at.since(at), &mut outcome);
            let next = number + 64;
            asked[place] = (next, heard.at + pause);
            if heard.at + pause < end {
                bench.ask_after(pause, heard.client, get(next));
            }
        }
    }
    bench.run_until(end + EXCHANGE_LIFETIME + Duration::from_secs(15));
    assert_eq!(bench.proxy.occupancy(), Occupancy::default());
    outcome.shortest = uses.borrow().shortest;
    outcome
}

/// Whether this is what was asked for, or that there is nothing now; how long to wait with the next.
fn judge(heard: &Heard, number: u32, after: Duration, outcome: &mut Outcome) -> Duration {
    let answer = Datagram::parse(&heard.bytes).expect("well formed");
    let is_confirmable = (number / 64).is_multiple_of(2);
    assert_eq!(answer.message_type != MessageType::NonConfirmable, is_confirmable, "{heard:?}");
    assert_eq!(answer.token, number.to_be_bytes(), "{heard:?}");
    match answer.content.code {
        Code::CONTENT => {
            assert_eq!(answer.content.payload, number.to_string().as_bytes(), "another's answer");
            outcome.answered += 1;
            outcome.answered_early += u32::from(heard.at < Instant::ZERO + Duration::from_secs(240));
            Duration::from_millis(5)
        }
        Code::SERVICE_UNAVAILABLE => {
            assert!(answer.content.payload.starts_with(b"not-sent"), "{heard:?}");
            let max_age = value(&answer, OptionNumber::MAX_AGE);
            let seconds = max_age.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
            assert!(seconds > 0, "{heard:?} says when to come back");
            outcome.refused += 1;
            outcome.longest_refusal = outcome.longest_refusal.max(after);
            Duration::from_secs(seconds.max(1))
        }
        other => panic!("{other}: {heard:?}"),
    }
}

fn client(number: u32) -> SocketAddr {
    let client = number % 64;
    ([10, 1, 0, client as u8 + 1], 40_000 + client as u16).into()
}

/// GET /s/a?NUMBER; the token is the number.
fn get(number: u32) -> Vec<u8> {
    let turn = number / 64;
    let head = if turn.is_multiple_of(2) { 0x44 } else { 0x54 };
    let query = number.to_string();
    let [_, _, high, low] = turn.to_be_bytes();
    let [a, b, c, d] = number.to_be_bytes();
    let options = [0xB1, b's', 0x01, b'a', 0x40 | query.len() as u8];
    [&[head, Code::GET.0, high, low, a, b, c, d][..], &options, query.as_bytes()].concat()
}
