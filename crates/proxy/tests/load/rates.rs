//! A client above its rate beside one that asks now and then.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_message::{Code, Datagram, OptionNumber};
use coapway_proxy::Occupancy;
use coapway_time::Instant;

use crate::bench::{Bench, Heard, ROUND_TRIP, answer, one_origin, parameters};

/// Requests a second that one client may make, and two seconds' worth of them at once.
const ALLOWED: u32 = 10;
const SECONDS: u32 = 5;
const GREEDY: SocketAddr = client(1);
const MODEST: SocketAddr = client(2);

#[test]
fn two_hundred_requests_a_second_cost_nobody_but_their_client() {
    let mut rated = parameters(one_origin());
    rated.relay.client_rate = ALLOWED;
    let mut bench = Bench::new(rated, 1, |asked| answer(&asked.request, b"1"));
    for request in 0..200 * SECONDS {
        bench.run_until(Instant::ZERO + Duration::from_millis(5) * request);
        bench.ask(GREEDY, &get(request));
        if request % 100 == 50 {
            bench.ask(MODEST, &get(request));
        }
    }
    let end = bench.now + Duration::from_secs(1);
    bench.run_until(end);

    let (greedy, modest): (Vec<_>, Vec<_>) = bench.heard.iter().partition(|heard| heard.client == GREEDY);
    assert_eq!(modest.len(), 2 * SECONDS as usize);
    for heard in modest {
        let asked = Instant::ZERO + Duration::from_millis(5) * number(heard);
        assert_eq!((code(heard), heard.at.since(asked)), (Code::CONTENT, ROUND_TRIP), "{heard:?}");
    }
    let told: Vec<_> = greedy.iter().filter(|heard| code(heard) == Code::TOO_MANY_REQUESTS).collect();
    let served = greedy.len() - told.len();
    assert!(greedy.iter().all(|heard| [Code::CONTENT, Code::TOO_MANY_REQUESTS].contains(&code(heard))));
    let allowed = (ALLOWED * (SECONDS + 2)) as usize;
    assert!((allowed - 2..=allowed).contains(&served), "{served} served");
    // Those are rated as well: ten at once, ten a second.
    assert!((50..=61).contains(&told.len()), "{} told", told.len());
    for heard in &told {
        let answer = Datagram::parse(&heard.bytes).expect("well formed");
        let max_age = answer.content.options.iter().find(|(number, _)| *number == OptionNumber::MAX_AGE);
        assert!(max_age.is_some_and(|(_, value)| value > b"\0"), "{heard:?} says when to come back");
    }
    let dropped = bench.proxy.counters().0.dropped;
    assert_eq!(dropped as usize, (200 * SECONDS) as usize - greedy.len(), "the rest is dropped, and counted");
    assert_eq!(bench.executed as usize, served + 2 * SECONDS as usize);

    let forgotten = bench.now + Duration::from_secs(260);
    bench.run_until(forgotten);
    assert_eq!(bench.proxy.occupancy(), Occupancy::default());
}

const fn client(host: u8) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, host)), 40_000)
}

fn code(heard: &Heard) -> Code {
    Datagram::parse(&heard.bytes).expect("well formed").content.code
}

/// Which request this answers.
fn number(heard: &Heard) -> u32 {
    Datagram::parse(&heard.bytes).expect("well formed").message_id.into()
}

/// CON GET /s/a.
fn get(number: u32) -> [u8; 9] {
    let [_, _, high, low] = number.to_be_bytes();
    [0x41, Code::GET.0, high, low, 0xB4, 0xB1, b's', 0x01, b'a']
}
