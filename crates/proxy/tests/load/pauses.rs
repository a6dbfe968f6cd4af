//! Twenty targets that are each asked again and again, just when what is known of them is about to be given
//! up: whether it was is nothing that a client can tell.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, OptionsWriter, datagram};
use coapway_proxy::Occupancy;
use coapway_relay::{Forward, Upstream};
use coapway_time::Instant;

use crate::bench::{Bench, Heard, LOOK_UP, ROUND_TRIP, TIME_TO_LIVE};

const TARGETS: usize = 20;
const REQUESTS: usize = 2000;
/// An origin is forgotten when nobody asked for it for so long.
const ORIGIN_LIFETIME: Duration = Duration::from_secs(900);
/// Of a second.
const TWENTIETH: Duration = Duration::from_millis(50);
/// Asks each time for a target that nobody asked for before.
const STRANGER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, 1, 1)), 40_000);
/// A timer may be this late.
const TICKS: Duration = Duration::from_micros(2200);

#[test]
fn targets_asked_once_a_second_answer_within_a_round_trip() {
    let report = ask(|target| format!("coap://{}/a", address(target)), Duration::from_secs(1), TWENTIETH);
    assert!(report.longest <= ROUND_TRIP, "{report:?}");
}

/// The name may be used for as long as the pauses are, more or less.
#[test]
fn names_asked_when_they_run_out_answer_within_a_round_trip_and_a_look_up() {
    let report = ask(|target| format!("coap://t{target}.example/a"), TIME_TO_LIVE, TWENTIETH);
    assert!(report.longest <= LOOK_UP + ROUND_TRIP + TICKS, "{report:?}");
    let looked_up = report.slow;
    assert!((REQUESTS / 4..REQUESTS).contains(&looked_up), "some had run out, some had not: {report:?}");
}

#[test]
fn targets_asked_when_they_are_forgotten_answer_within_a_round_trip() {
    let report = ask(|target| format!("coap://{}/a", address(target)), ORIGIN_LIFETIME, ROUND_TRIP * 2);
    assert!(report.longest <= ROUND_TRIP, "{report:?}");
}

#[derive(Debug)]
struct Report {
    /// The longest time an answer took.
    longest: Duration,
    /// Answers that took longer than a round trip.
    slow: usize,
}

/// 2 000 GETs, each target's spaced by `pause` and up to `more` more or less.
fn ask(uri: impl Fn(usize) -> String, pause: Duration, more: Duration) -> Report {
    let relay = coapway_relay::Parameters {
        upstreams: vec![Upstream { name: "default".into(), authority: None }],
        forward: Forward::Open,
        ..coapway_relay::Parameters::default()
    };
    let mut bench = Bench::counting(relay, 16);
    for target in 0..TARGETS {
        bench.names.insert(format!("t{target}.example"), address(target).into());
    }
    let mut random = fastrand::Rng::with_seed(176);
    let mut requests: Vec<(Instant, usize)> = Vec::new();
    for target in 0..TARGETS {
        let mut at = Instant::ZERO + more * 2 * random.u32(0..1000) / 1000;
        for _ in 0..REQUESTS / TARGETS {
            requests.push((at, target));
            at += pause - more + more * 2 * random.u32(0..=1000) / 1000;
        }
    }
    requests.sort();
    let mut asked = HashMap::new();
    for (&(at, target), number) in requests.iter().zip(0_u16..) {
        bench.run_until(at);
        asked.insert(number, at);
        bench.ask(client(target), &get(number, &uri(target)));
        // Where there is a new one, others are forgotten.
        let [high, low] = number.to_be_bytes();
        bench.ask(STRANGER, &get(number, &format!("coap://10.3.{high}.{low}/a")));
    }
    // What was asked last is answered, and no longer remembered.
    let last = bench.now;
    bench.run_until(last + Duration::from_secs(260));
    assert_eq!(bench.proxy.occupancy(), Occupancy::default());
    bench.proxy.check_invariants();
    let (_, upstream) = bench.proxy.counters();
    assert_eq!((bench.executed, upstream.retransmissions), (2 * REQUESTS as u64, 0), "each left once");
    let heard = bench.heard.iter().filter(|heard| heard.client != STRANGER);
    let times: Vec<_> = heard.map(|heard| time(heard, &mut asked)).collect();
    assert_eq!((times.len(), asked.len()), (REQUESTS, 0), "one answer each");
    let longest = times.iter().max().copied().unwrap_or_default();
    Report { longest, slow: times.iter().filter(|&&time| time > ROUND_TRIP).count() }
}

/// How long this answer took, which nobody had yet.
fn time(heard: &Heard, asked: &mut HashMap<u16, Instant>) -> Duration {
    let answer = Datagram::parse(&heard.bytes).expect("well formed");
    assert_eq!(answer.content.code, Code::CONTENT, "{heard:?}");
    assert_eq!((answer.message_type, answer.token), (MessageType::Acknowledgement, &b"\xD4"[..]));
    let at = asked.remove(&answer.message_id).expect("asked and not answered before");
    heard.at.since(at)
}

fn address(target: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 2, 0, target as u8 + 1)
}

fn client(target: usize) -> SocketAddr {
    ([10, 1, 0, target as u8 + 1], 40_000).into()
}

fn get(message_id: u16, uri: &str) -> Vec<u8> {
    let (mut options, mut bytes) = (Vec::new(), Vec::new());
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(OptionNumber::PROXY_URI, uri.as_bytes());
    let content = Content { code: Code::GET, options: writer.finish(), payload: &[] };
    datagram::encode(&mut bytes, MessageType::Confirmable, message_id, b"\xD4", &content);
    bytes
}
