//! The shape of the back-off towards an origin that says nothing (RFC 7252 §4.2).

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use coapway_endpoint::{Estimator, Local};
use coapway_message::Code;
use coapway_time::Instant;

use crate::bench::{Bench, one_origin, parameters};

const CLIENT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 1)), 40_000);
const ACK_TIMEOUT: Duration = Duration::from_secs(2);
/// How late a timer may be.
const TICK: Duration = Duration::from_micros(2200);
/// CON GET /s/a.
const REQUEST: [u8; 9] = [0x41, Code::GET.0, 0x17, 0x02, 0xB2, 0xB1, b's', 0x01, b'a'];

/// From where, what and when copies of one request came to the origin.
type Copies = Vec<(Local, (u16, Vec<u8>), Instant)>;

/// The waits between them, where each of them is the same as the first.
fn waits(seed: u64, jitter: f64) -> Vec<Duration> {
    let mut silent = parameters(one_origin());
    for upstream in &mut silent.upstreams {
        upstream.rto.estimator = Estimator::Fixed;
        upstream.transmission.retry_jitter = jitter;
        upstream.retry.max_attempts = 1;
        upstream.max_wait = Duration::from_secs(100);
    }
    let log = Rc::new(RefCell::new(Copies::new()));
    let copies = Rc::clone(&log);
    let mut bench = Bench::new(silent, seed, move |asked| {
        let (id, token) = (asked.request.message_id, asked.request.token.to_vec());
        copies.borrow_mut().push((asked.local, (id, token), asked.at));
        Vec::new()
    });
    bench.ask(CLIENT, &REQUEST);
    bench.run_until(Instant::ZERO + Duration::from_secs(400));
    let copies = log.take();
    let (local, message, _) = &copies[0];
    assert!(copies.iter().all(|copy| (&copy.0, &copy.1) == (local, message)), "{copies:?}");
    copies.windows(2).map(|pair| pair[1].2.since(pair[0].2)).collect()
}

#[test]
fn first_waits_are_drawn_anew_and_each_further_one_is_twice_the_one_before() {
    let mut tenths = [0; 10];
    for seed in 0..200 {
        let waits = waits(seed, 0.0);
        assert_eq!(waits.len(), 4, "five copies: {waits:?}");
        assert!(waits[0] >= ACK_TIMEOUT && waits[0] <= ACK_TIMEOUT.mul_f64(1.5) + TICK, "{waits:?}");
        let tenth = (waits[0] - ACK_TIMEOUT).as_millis() / 100;
        tenths[tenth.min(9) as usize] += 1;
        for pair in waits.windows(2) {
            assert!(pair[1].abs_diff(pair[0] * 2) <= 2 * TICK, "{waits:?}");
        }
        assert!(waits.iter().sum::<Duration>() <= Duration::from_secs(45) + TICK, "{waits:?}");
    }
    // Twenty of them in each tenth, more or less.
    assert!(tenths.iter().all(|count| (7..=38).contains(count)), "{tenths:?}");
}

#[test]
fn jitter_lengthens_waits_by_a_tenth_at_the_most_and_the_span_holds() {
    let (mut shortest, mut longest) = (f64::MAX, 0_f64);
    for seed in 0..500 {
        let waits = waits(seed, 0.1);
        assert_eq!(waits.len(), 4, "five copies: {waits:?}");
        assert!(waits.iter().all(|wait| *wait >= ACK_TIMEOUT), "{waits:?}");
        for pair in waits.windows(2) {
            let ratio = pair[1].as_secs_f64() / pair[0].as_secs_f64();
            (shortest, longest) = (shortest.min(ratio), longest.max(ratio));
        }
        assert!(waits.iter().sum::<Duration>() <= Duration::from_secs(45), "{waits:?}");
    }
    assert!((1.81..1.9).contains(&shortest) && (2.1..2.21).contains(&longest), "{shortest} to {longest}");
}
