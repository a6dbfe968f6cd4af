//! When copies leave for origins that were asked some dozens of times.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use coapway_endpoint::{Estimator, RtoParameters};
use coapway_message::{Code, Datagram};
use coapway_proxy::{Probe, UpstreamParameters};
use coapway_time::Instant;

use crate::bench::{Bench, answer, origins, parameters};

/// When the copies of each request came to each origin, in order of the requests.
type Copies = Rc<RefCell<HashMap<SocketAddr, Vec<(u16, Vec<Instant>)>>>>;

/// Whether a copy is lost: the request's place, and which copy of it, both from 0.
type IsLost = fn(usize, usize) -> bool;

fn bench(letters: &[u8], is_lost: impl Fn(SocketAddr) -> IsLost + 'static) -> (Bench, Copies) {
    bench_of(UpstreamParameters::default(), letters, is_lost)
}

/// The same with these settings for all origins.
fn bench_of(
    settings: UpstreamParameters,
    letters: &[u8],
    is_lost: impl Fn(SocketAddr) -> IsLost + 'static,
) -> (Bench, Copies) {
    let copies = Copies::default();
    let log = Rc::clone(&copies);
    let mut parameters = parameters(origins(letters));
    parameters.upstreams.fill(settings);
    let bench = Bench::new(parameters, 1, move |asked| {
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
    ask_and(bench, letters, times, |_, _| ());
}

/// The same, and something is done before each request: it has this number.
fn ask_and(bench: &mut Bench, letters: &[u8], times: u16, before: impl Fn(&mut Bench, u16)) {
    let client = |place: usize| SocketAddr::from(([10, 1, 0, place as u8 + 1], 40_000));
    let get = |letter, number: u16| {
        let [high, low] = number.to_be_bytes();
        [0x41, Code::GET.0, high, low, 0xC3, 0xB1, letter, 0x01, b'a']
    };
    let mut asked = vec![0; letters.len()];
    for (place, &letter) in letters.iter().enumerate() {
        before(bench, 0);
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
                before(bench, asked[place]);
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

/// What the configuration ships with, P95, and both without what tells copies apart.
fn ways() -> [UpstreamParameters; 4] {
    let [mut blind, shipped] = [UpstreamParameters::default(); 2];
    blind.retransmit.dup_ack_match = false;
    blind.retransmit.probe = Probe::Off;
    let p95 = |mut way: UpstreamParameters| {
        way.rto.estimator = Estimator::P95;
        way
    };
    [shipped, blind, p95(shipped), p95(blind)]
}

/// Sixty GETs one by one. Thirty exact samples of 50 ms; then each first copy is lost, and each second one
/// answered within 5 ms.
#[test]
fn answers_to_second_copies_neither_shrink_nor_stretch_what_was_learned() {
    for way in ways() {
        let (mut bench, copies) = bench_of(way, b"s", |_| |place, copy| place >= 30 && copy == 0);
        ask_and(&mut bench, b"s", 60, |bench, number| {
            bench.round_trip = Duration::from_millis(if number < 30 { 50 } else { 5 });
        });
        let all = copies.borrow()[&origin(1)].iter().map(|(_, times)| times.len()).collect::<Vec<_>>();
        assert_eq!(all, [[1; 30], [2; 30]].concat(), "each is answered once it has its second copy");
        let waits = first_waits(&copies, origin(1), 30);
        // Never near the 5 ms that the second copies seem to take.
        assert!(waits.iter().all(|wait| *wait >= way.rto.floor), "{waits:?}");
        // No more than a wait that ran out is doubled, and what chance adds to it.
        let growth = 2.0 * way.transmission.ack_random_factor;
        assert!(waits.windows(2).all(|pair| pair[1] <= pair[0].mul_f64(growth)), "{waits:?}");
        if way.retransmit.probe == Probe::Off {
            // A back-off is held, and leaves room for three copies (R-USR-20).
            let most = way.max_wait.mul_f64(way.transmission.ack_random_factor * 2.0 / 9.0);
            assert!(waits.iter().all(|wait| *wait <= most), "{waits:?}");
        } else {
            // Until a ping tells the round trip, one exchange later; then it is as it was.
            assert!(waits.iter().all(|wait| *wait < Duration::from_secs(1)), "{waits:?}");
            let short = waits.iter().filter(|wait| **wait < way.rto.floor.mul_f64(1.5)).count();
            assert!(short >= 15, "{waits:?}");
        }
    }
}

/// From 200 ms to 4 s: no copy after a wait of 200 ms would ever give an exact sample.
#[test]
fn a_path_that_became_twenty_times_as_slow_is_learned_within_a_few_exchanges() {
    // Of fifty samples P95 looks at the third from above: it has to see three.
    for (way, few) in ways().into_iter().zip([2, 2, 5, 10]) {
        let (mut bench, copies) = bench_of(way, b"s", |_| |place, copy| place == 100 && copy == 0);
        ask_and(&mut bench, b"s", 100, |bench, number| {
            bench.round_trip = Duration::from_millis(if number < 60 { 200 } else { 4000 });
        });
        let needless =
            copies.borrow()[&origin(1)].iter().map(|(_, times)| times.len() - 1).collect::<Vec<_>>();
        assert!(needless[..60].iter().all(|copies| *copies == 0), "{needless:?}");
        assert!(needless[60] > 0, "nobody knew: {needless:?}");
        assert!(needless[60 + few..].iter().all(|copies| *copies == 0), "{needless:?}");
        assert!(needless.iter().sum::<usize>() <= 12, "{needless:?}");
        // A quarter of an hour later nothing of that counts: it is ACK_TIMEOUT again.
        let later = bench.now + RtoParameters::SAMPLE_AGE;
        bench.run_until(later);
        ask(&mut bench, b"s", 1);
        let waits = first_waits(&copies, origin(1), 100);
        let [wait] = waits[..] else { panic!("{waits:?}") };
        assert!((Duration::from_secs(2)..=Duration::from_secs(3)).contains(&wait), "{wait:?}");
    }
}
