//! The clients of a storm, out of its seed.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::TransmissionParameters;
use coapway_message::Method;
use coapway_time::Instant;

use super::{CLOSED, DISCREET, FORGETFUL, NOWHERE, STEADY};
use crate::client::{Habits, Move, Request, Target};

const CLIENTS: u32 = 5;
const REQUESTS: u32 = 8;
/// The first port of each client; those behind one address are this far apart.
const PORT: u16 = 40_000;
const PORTS: u16 = 100;

/// What each client is like.
pub(super) fn clients(random: &mut fastrand::Rng) -> Vec<Habits> {
    let rush = Duration::from_millis(random.choice(&[500, 5_000, 60_000]).copied().unwrap_or(500));
    // All behind one address, two, or none.
    let shared = random.choice(&[0, 0, 2, CLIENTS]).copied().unwrap_or(0);
    (1..=CLIENTS)
        .map(|number| {
            let host = if number <= shared { 1 } else { number };
            let address = SocketAddr::new([10, 1, 0, host as u8].into(), PORT + PORTS * number as u16);
            let planned = requests(number, rush, random);
            let moves = moves(address, number, &planned, random);
            let mask = if random.u8(0..8) == 0 { 3 } else { u16::MAX };
            Habits { address, moves, mask, transmission: TransmissionParameters::default(), planned }
        })
        .collect()
}

/// A NAT between client and proxy gives it another port with each request, loses its binding now and
/// then, or is replaced by another.
fn moves(address: SocketAddr, number: u32, planned: &[Request], random: &mut fastrand::Rng) -> Vec<Move> {
    let port = |place: usize| SocketAddr::new(address.ip(), address.port() + 1 + place as u16);
    match random.u8(0..10) {
        0 => {
            let before = planned.iter().enumerate();
            before
                .map(|(place, request)| Move { at: request.at, to: port(place), grace: grace(random) })
                .collect()
        }
        1 | 2 => {
            let mut times: Vec<_> =
                (0..random.usize(1..4)).map(|_| Instant::from_micros(random.u64(0..70_000_000))).collect();
            times.sort_unstable();
            let times = times.into_iter().enumerate();
            times.map(|(place, at)| Move { at, to: port(place), grace: grace(random) }).collect()
        }
        3 => {
            let to = SocketAddr::new([10, 1, 1, number as u8].into(), address.port());
            let at = Instant::from_micros(random.u64(0..30_000_000));
            vec![Move { at, to, grace: Duration::ZERO }]
        }
        _ => Vec::new(),
    }
}

fn grace(random: &mut fastrand::Rng) -> Duration {
    Duration::from_secs(random.choice(&[0, 0, 2, 30]).copied().unwrap_or(0))
}

fn requests(client: u32, rush: Duration, random: &mut fastrand::Rng) -> Vec<Request> {
    let mut requests: Vec<_> = (0..REQUESTS)
        .map(|number| Request {
            at: Instant::from_micros(random.u64(0..rush.as_micros() as u64)),
            key: client * 100 + number,
            method: Method::ALL[random.usize(0..Method::ALL.len())],
            confirmable: random.u8(0..4) > 0,
            target: target(random),
            patience: Duration::from_secs(random.u64(5..100)),
        })
        .collect();
    requests.sort_by_key(|request| request.at);
    requests
}

fn target(random: &mut fastrand::Rng) -> Target {
    let uri = |authority: &str| Target::Uri(format!("coap://{authority}/t"));
    match random.u8(0..20) {
        0..6 => uri(STEADY),
        6..9 => uri(DISCREET),
        9..12 => uri(FORGETFUL),
        12 => uri(CLOSED),
        13 => uri(NOWHERE),
        14 => uri("steady.example"),
        15 => uri("unknown.example"),
        16 => uri("slow.example"),
        17 => Target::Path(vec!["nothing", "here"]),
        _ => Target::Path(vec!["discreet", "t"]),
    }
}
