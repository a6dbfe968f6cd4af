//! One host that asks, from many ports, for what an origin never acknowledges, beside clients that ask it for what it
//! answers.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::Nstart;
use coapway_message::{Code, Datagram, MessageType, datagram};
use coapway_proxy::Occupancy;
use coapway_time::Instant;

use crate::bench::{Bench, ROUND_TRIP, answer, one_origin, parameters};

const SECONDS: u32 = 120;
/// Requests a second, of the good ones together.
const GOOD: u32 = 10;
/// The bad ones begin after so long.
const WARM: u32 = 10;

/// How the good requests fared.
#[derive(Debug, Default)]
struct Fared {
    answered: u32,
    slowest: Duration,
}

/// So many ports of one host ask so often a second, each time for something else.
fn run(nstart: Nstart, ports: u16, rate: u32, good: impl Fn(u32) -> SocketAddr) -> Fared {
    let mut settings = parameters(one_origin());
    settings.relay.client_rate = 0;
    settings.upstreams[1].nstart = nstart;
    let mut bench = Bench::new(settings, 1, |asked| {
        let is_silent = asked.request.content.options.iter().any(|(_, value)| value == b"b");
        if is_silent { Vec::new() } else { answer(&asked.request, b"1") }
    });
    let mut fared = Fared::default();
    let mut asked = Vec::new();
    let (steps, step) = (1000 * SECONDS, Duration::from_millis(1));
    for number in 0..steps {
        bench.run_until(Instant::ZERO + step * number);
        if number >= WARM * 1000 && number.is_multiple_of(1000 / rate) {
            let count = number / (1000 / rate);
            let from = SocketAddr::from(([10, 9, 0, 1], 1024 + (count % u32::from(ports)) as u16));
            bench.ask(from, &get(number, b'b'));
        }
        if number.is_multiple_of(1000 / GOOD) {
            asked.push(bench.now);
            bench.ask(good(number), &get(number, b'a'));
        }
        for heard in std::mem::take(&mut bench.heard) {
            let message = Datagram::parse(&heard.bytes).expect("well formed");
            if message.content.code == Code::EMPTY {
                continue;
            }
            if message.message_type == MessageType::Confirmable {
                let id = message.message_id;
                bench.ask(heard.client, &datagram::empty(MessageType::Acknowledgement, id));
            }
            let number = u32::from_be_bytes(message.token.try_into().expect("four bytes"));
            if heard.client != good(number) {
                continue;
            }
            assert_eq!(message.content.code, Code::CONTENT);
            let took = heard.at.since(Instant::ZERO + step * number);
            fared.answered += 1;
            fared.slowest = fared.slowest.max(took);
        }
    }
    bench.proxy.check_invariants();
    bench.run_until(bench.now + Duration::from_secs(400));
    assert_eq!(bench.proxy.occupancy(), Occupancy::default());
    fared
}

fn get(number: u32, path: u8) -> Vec<u8> {
    let [a, b, c, d] = number.to_be_bytes();
    vec![0x44, Code::GET.0, c, d, a, b, c, d, 0xB1, b's', 0x01, path]
}

/// A client for each tenth of a second.
fn elsewhere(number: u32) -> SocketAddr {
    ([10, 1, 0, 1], 40_000 + (number / 100) as u16).into()
}

/// The same, with the address of the bad one.
fn next_door(number: u32) -> SocketAddr {
    ([10, 9, 0, 1], 40_000 + (number / 100) as u16).into()
}

#[test]
fn what_an_origin_never_acknowledges_holds_up_nobody_else() {
    for (nstart, ports, rate) in [
        (Nstart::Auto { max: 64 }, 300, 50),
        (Nstart::Auto { max: 64 }, 1, 50),
        (Nstart::Auto { max: 4 }, 30, 5),
        (Nstart::Auto { max: 1024 }, 30_000, 500),
        (Nstart::Fixed(2), 2, 1),
        (Nstart::Fixed(3), 3, 10),
        (Nstart::Fixed(16), 300, 50),
    ] {
        let fared = run(nstart, ports, rate, elsewhere);
        println!("{nstart:?}, {ports} ports, {rate}/s: {fared:?}");
        assert_eq!(fared.answered, GOOD * SECONDS);
        assert!(fared.slowest < 3 * ROUND_TRIP, "{nstart:?}, {ports} ports, {rate}/s: {fared:?}");
    }
}

#[test]
fn one_client_holds_up_no_neighbour_that_has_its_address() {
    for (nstart, rate) in [
        (Nstart::Auto { max: 64 }, 50),
        (Nstart::Auto { max: 4 }, 5),
        (Nstart::Fixed(2), 1),
        (Nstart::Fixed(3), 10),
        (Nstart::Fixed(16), 50),
    ] {
        let fared = run(nstart, 1, rate, next_door);
        println!("{nstart:?}, {rate}/s: {fared:?}");
        assert_eq!(fared.answered, GOOD * SECONDS);
        assert!(fared.slowest < 3 * ROUND_TRIP, "{nstart:?}, {rate}/s: {fared:?}");
    }
}

#[test]
fn neighbours_have_their_turn_also_where_others_ask() {
    for nstart in [Nstart::Auto { max: 64 }, Nstart::Fixed(3), Nstart::Fixed(16)] {
        let all =
            |number: u32| if number.is_multiple_of(200) { elsewhere(number) } else { next_door(number) };
        let fared = run(nstart, 1, 50, all);
        println!("{nstart:?}: {fared:?}");
        assert_eq!(fared.answered, GOOD * SECONDS);
        // It may be another's turn first.
        assert!(fared.slowest < 10 * ROUND_TRIP, "{nstart:?}: {fared:?}");
    }
}
