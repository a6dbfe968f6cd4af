//! When copies leave for origins that were asked some dozens of times.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use coapway_message::{Code, Datagram};
use coapway_proxy::UpstreamParameters;
use coapway_time::Instant;

use crate::bench::{Bench, answer, origins, parameters};

/// When the copies of each request came to each origin, in order of the requests.
type Copies = Rc<RefCell<HashMap<SocketAddr, Vec<(u16, Vec<Instant>)>>>>;

/// Whether a copy is lost: the request's place, and which copy of it, both from 0.
type IsLost = fn(usize, usize) -> bool;

fn bench(letters: &[u8], is_lost: impl Fn(SocketAddr) -> IsLost + 'static) -> (Bench, Copies) {
    let copies = Copies::default();
    let log = Rc::clone(&copies);
    let bench = Bench::new(parameters(origins(letters)), 1, move |asked| {
        let mut log = log.borrow_mut();
        let requests = log.entry(asked.origin).or_default();
        let message_id = asked.request.message_id;
        if requests.last().is_none_or(|(last, _)| *last != message_id) {
            requests.push((message_id, Vec::new()));
        }
        let place = requests.len() - 1;
        let Some((_, times)) = requests.last_mut() else { return Vec::new() };
        times.push(asked.at);
        let lost = is_lost(asked.origin)(place, times.len() - 1);
        if lost { Vec::new() } else { answer(&asked.request, b"1") }
    });
    (bench, copies)
}

/// Each of the clients asks its origin so many times, each time when it is answered.
fn ask(bench: &mut Bench, letters: &[u8], times: u16) {
    let client = |place: usize| SocketAddr::from(([10, 1, 0, place as u8 + 1], 40_000));
    let get = |letter, number: u16| {
        let [high, low] = number.to_be_bytes();
        [0x41, Code::GET.0, high, low, 0xC3, 0xB1, letter, 0x01, b'a']
    };
    let mut asked = vec![0; letters.len()];
    for (place, &letter) in letters.iter().enumerate() {
        bench.ask(client(place), &get(letter, 0));
    }
    while bench.step(Instant::ZERO + Duration::from_secs(3600)) {
        for heard in std::mem::take(&mut bench.heard) {
            let answer = Datagram::parse(&heard.bytes).expect("well formed");
            if answer.content.code == Code::EMPTY {
                continue;
            }
            assert_eq!(answer.content.code, Code::CONTENT, "{heard:?}");
            if let [0x41, _, high, low, ..] = heard.bytes[..] {
                bench.ask(heard.client, &[0x60, 0, high, low]);
            }
            let place = (0..letters.len()).find(|&place| client(place) == heard.client).expect("it asked");
            asked[place] += 1;
            if asked[place] < times {
                bench.ask(heard.client, &get(letters[place], asked[place]));
            }
        }
    }
    assert!(asked.iter().all(|asked| *asked == times), "{asked:?}");
}

/// How long each request waited with its second copy, from the one at `from` on.
fn first_waits(copies: &Copies, origin: SocketAddr, from: usize) -> Vec<Duration> {
    let copies = copies.borrow();
    let requests = copies[&origin].iter().skip(from);
    requests.filter_map(|(_, times)| Some(times.get(1)?.since(times[0]))).collect()
}

fn origin(number: u8) -> SocketAddr {
    ([10, 2, 0, number], 5683).into()
}

#[test]
fn a_near_lossy_origin_and_a_far_one_have_each_its_own_timeout() {
    let (mut bench, copies) = bench(b"st", |address| match address == origin(1) {
        // One copy in ten.
        true => |place, copy| copy == 0 && place % 10 == 9,
        false => |_, _| false,
    });
    bench.round_trips.insert(origin(2), Duration::from_millis(1500));
    ask(&mut bench, b"st", 100);
    let floor = UpstreamParameters::default().rto.floor;
    let near = first_waits(&copies, origin(1), 20);
    assert_eq!(near.len(), 8, "one for each loss: {near:?}");
    assert!(near.iter().all(|wait| *wait >= floor && *wait < Duration::from_secs(1)), "{near:?}");
    let needless: usize = copies.borrow()[&origin(2)].iter().map(|(_, times)| times.len() - 1).sum();
    assert!(needless < 3, "{needless} in a hundred");
}

/// Thirty exact samples of 50 ms; then each first copy is lost, and each second one answered within 5 ms.
#[test]
fn answers_to_second_copies_neither_shrink_nor_stretch_what_was_learned() {
    let (mut bench, copies) = bench(b"s", |_| |place, copy| place >= 30 && copy == 0);
    bench.round_trip = Duration::from_millis(50);
    ask(&mut bench, b"s", 30);
    bench.round_trip = Duration::from_millis(5);
    ask(&mut bench, b"s", 30);
    let waits = first_waits(&copies, origin(1), 30);
    assert_eq!(waits.len(), 30);
    // A back-off is held until a ping tells the round trip, some exchanges later; then it is as it was.
    let floor = UpstreamParameters::default().rto.floor;
    assert!(waits.iter().all(|wait| *wait >= floor && *wait < Duration::from_secs(5)), "{waits:?}");
    let short = waits.iter().skip(10).filter(|wait| **wait < floor * 2).count();
    assert!(short >= 3, "{waits:?}");
}
