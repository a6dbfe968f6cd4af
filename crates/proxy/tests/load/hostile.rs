//! One host that sends whatever it likes, five hundred datagrams a second for ten minutes, beside clients that ask once a
//! second.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_message::{Code, Datagram};
use coapway_proxy::{Limits, Occupancy, Parameters};
use coapway_time::Instant;

use crate::bench::{Bench, ROUND_TRIP, answer, origins, parameters};

const RATE: u32 = 500;
const MINUTES: u32 = 10;
const CLIENTS: u16 = 10;

/// Who is limited to a rate, and who is not: what else bounds it has to do alone then.
#[test]
fn ten_minutes_of_one_hostile_host_cost_nobody_an_answer_and_no_more_memory_than_there_is_for_it() {
    for client_rate in [50, 0] {
        let mut rated = parameters(origins(b"sn"));
        rated.relay.trusted.clear();
        rated.relay.client_rate = client_rate;
        hostile(rated);
    }
}

fn hostile(parameters: Parameters) {
    let (limits, room) = (parameters.limits, parameters.downstream.duplicates.memory as i64);
    // The second origin says nothing.
    let silent = SocketAddr::from(([10, 2, 0, 2], 5683));
    let mut bench = Bench::new(parameters, 1, move |asked| match asked.origin == silent {
        true => Vec::new(),
        false => answer(&asked.request, b"1"),
    });
    let mut random = fastrand::Rng::with_seed(1);
    let (mut heap, mut seen, mut answered) = (0, Vec::new(), 0);
    for minute in 0..MINUTES {
        let counted = allocation_counter::measure(|| {
            for step in 0..60 * RATE {
                let step = minute * 60 * RATE + step;
                bench.run_until(Instant::ZERO + Duration::from_secs(1) * step / RATE);
                let from = SocketAddr::from(([10, 9, 0, 1], random.u16(1024..)));
                bench.ask(from, &datagram(step, &mut random));
                if step % RATE < CLIENTS.into() {
                    bench.ask(client((step % RATE) as u16), &get(step / RATE));
                }
                answered +=
                    bench.heard.drain(..).filter(|heard| is_right(heard.client, &heard.bytes)).count();
            }
        });
        heap += counted.bytes_current;
        within(bench.proxy.occupancy(), limits);
        bench.proxy.check_invariants();
        seen.push((heap, counted.bytes_max as i64));
    }
    bench.run_until(bench.now + 2 * ROUND_TRIP);
    answered += bench.heard.drain(..).filter(|heard| is_right(heard.client, &heard.bytes)).count();
    assert_eq!(answered, usize::from(CLIENTS) * (60 * MINUTES) as usize);
    let (steady, _) = seen[MINUTES as usize / 2];
    assert!(seen.iter().all(|&(heap, _)| heap < room + room / 2), "{seen:?} of {room}");
    assert!(seen[MINUTES as usize / 2..].iter().all(|&(heap, _)| heap <= steady + steady / 50), "{seen:?}");
    println!("{seen:?} of {room}");

    bench.run_until(bench.now + Duration::from_secs(260));
    assert_eq!(bench.proxy.occupancy(), Occupancy::default());
    bench.proxy.check_invariants();
}

fn within(occupancy: Occupancy, limits: Limits) {
    assert!(occupancy.fetches <= limits.fetches, "{occupancy:?}");
    assert!(occupancy.queued <= limits.fetches, "{occupancy:?}");
}

const fn client(number: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 1)), 40_000 + number)
}

fn get(second: u32) -> Vec<u8> {
    let [a, b, c, d] = second.to_be_bytes();
    vec![0x44, Code::GET.0, c, d, a, b, c, d, 0xB1, b's', 0x01, b'a']
}

/// A client's answer of the origin.
fn is_right(to: SocketAddr, bytes: &[u8]) -> bool {
    let is_client = to.ip() == client(0).ip();
    let code = Datagram::parse(bytes).expect("well formed").content.code;
    assert!(!is_client || code == Code::CONTENT, "{to} was told {code}");
    is_client
}

/// Requests of each kind, for both origins and for none, what belongs to nothing, and bytes.
fn datagram(step: u32, random: &mut fastrand::Rng) -> Vec<u8> {
    let [a, b, c, d] = step.to_be_bytes();
    let code =
        [Code::GET, Code::PUT, Code::POST, Code::FETCH, Code::PATCH, Code::DELETE][random.usize(0..6)].0;
    let first = if random.bool() { 0x44 } else { 0x54 };
    let path = [0xB1, if random.bool() { b's' } else { b'n' }, 0x01, b'a'];
    let mut bytes = vec![first, code, c, d, a, b, c, d];
    match random.u8(0..8) {
        0..4 => bytes.extend(path),
        4 => bytes.extend([0xB1, b'x']),
        // A body of unknown length in blocks, each the first of one.
        5 => {
            bytes.extend(path);
            bytes.extend([0xD1, 0x03, 0x0E]);
            bytes.extend([0xFF].into_iter().chain(std::iter::repeat_n(b'y', 1024)));
        }
        6 => bytes = vec![[0x60, 0x70, 0x40, 0x50][random.usize(0..4)], 0, c, d],
        _ => {
            bytes.resize(random.usize(0..200), 0);
            random.fill(&mut bytes);
        }
    }
    bytes
}
