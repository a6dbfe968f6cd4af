//! A client above its rate beside one that asks now and then; an origin that says nothing beside one that does.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::Nstart;
use coapway_message::{Code, Datagram, OptionNumber};
use coapway_proxy::Occupancy;
use coapway_time::Instant;

use crate::bench::{Bench, Heard, ROUND_TRIP, answer, one_origin, origins, parameters, value};

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
        assert!(value(&answer, OptionNumber::MAX_AGE) > vec![0], "{heard:?} says when to come back");
    }
    let dropped = bench.proxy.counters().0.dropped;
    assert_eq!(dropped as usize, (200 * SECONDS) as usize - greedy.len(), "the rest is dropped, and counted");
    assert_eq!(bench.executed as usize, served + 2 * SECONDS as usize);

    let forgotten = bench.now + Duration::from_secs(260);
    bench.run_until(forgotten);
    assert_eq!(bench.proxy.occupancy(), Occupancy::default());
}

#[test]
fn a_hundred_clients_of_a_silent_origin_delay_nobody_elses() {
    let mut narrow = parameters(origins(b"st"));
    for upstream in &mut narrow.upstreams {
        upstream.nstart = Nstart::Fixed(1);
    }
    let max_wait = narrow.upstreams[1].max_wait;
    let mut bench = Bench::new(narrow, 1, |asked| {
        let is_silent = asked.origin.ip() == IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1));
        if is_silent { Vec::new() } else { answer(&asked.request, b"1") }
    });
    bench.round_trip = Duration::from_millis(5);
    for host in 100..200 {
        bench.ask(client(host), &to(b's', 0));
    }
    // Ten clients that ask fifty times each, as soon as they are answered.
    let begins = Instant::ZERO + Duration::from_millis(100);
    bench.run_until(begins);
    let mut left: Vec<_> = (0..10).map(|host| (client(host), 0, begins)).collect();
    left.iter().for_each(|(client, number, _)| bench.ask(*client, &to(b't', *number)));
    let mut heard: Vec<Heard> = Vec::new();
    let mut times = Vec::new();
    let end = Instant::ZERO + max_wait + Duration::from_secs(15);
    while bench.step(end) {
        for one in std::mem::take(&mut bench.heard) {
            let Some((client, number, at)) = left.iter_mut().find(|(client, ..)| *client == one.client)
            else {
                if let [0x41, _, high, low, ..] = one.bytes[..] {
                    bench.ask(one.client, &[0x60, 0, high, low]);
                }
                heard.push(one);
                continue;
            };
            assert_eq!((code(&one), self::number(&one)), (Code::CONTENT, *number), "{one:?}");
            times.push(one.at.since(*at));
            (*number, *at) = (*number + 1, one.at);
            if *number < 50 {
                bench.ask(*client, &to(b't', *number));
            }
        }
    }
    times.sort();
    assert_eq!(times.len(), 500);
    assert!(times[494] <= Duration::from_millis(50), "99 % within {:?}", times[494]);
    for host in 100..200 {
        let mine: Vec<_> = heard.iter().filter(|heard| heard.client == client(host)).collect();
        let [acknowledgements @ .., last] = &mine[..] else { panic!("{host} hears nothing") };
        let after = last.at.since(Instant::ZERO);
        match code(last) {
            Code::GATEWAY_TIMEOUT => {
                assert!(after >= max_wait && after <= max_wait + Duration::from_millis(300), "{last:?}");
                let [acknowledgement] = acknowledgements else { panic!("{mine:?}") };
                assert_eq!(acknowledgement.bytes, [0x60, 0, 0, 0]);
                assert!(acknowledgement.at < Instant::ZERO + Duration::from_millis(1500), "{mine:?}");
            }
            code => {
                assert_eq!((code, acknowledgements.len()), (Code::SERVICE_UNAVAILABLE, 0), "{mine:?}");
                let answer = Datagram::parse(&last.bytes).expect("well formed");
                assert!(value(&answer, OptionNumber::MAX_AGE) > vec![0], "{last:?} says when to come back");
                assert!(after <= Duration::from_millis(250), "{last:?}");
            }
        }
    }
}

const fn client(host: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, 0, host)), 40_000)
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
    to(b's', number)
}

/// The same for the route of a letter.
fn to(letter: u8, number: u32) -> [u8; 9] {
    let [_, _, high, low] = number.to_be_bytes();
    [0x41, Code::GET.0, high, low, 0xB4, 0xB1, letter, 0x01, b'a']
}
