//! A ping where it is not told which copy was acknowledged.

use coapway_proxy::{Patience, UpstreamParameters};

use crate::bench::{Bench, SECOND, settings};

/// A request that is answered when so many copies have left.
fn answered_at(bench: &mut Bench, copies: usize) {
    bench.get(1, "a");
    while bench.sent.len() < copies {
        bench.pass(SECOND / 20);
    }
    let last = bench.sent.pop().expect("it left");
    bench.respond(&last);
    bench.answers.clear();
    bench.sent.clear();
}

/// An origin whose round trips are known.
fn known() -> Bench {
    let mut bench = Bench::new(settings(UpstreamParameters::default(), Patience::Off));
    (0..20).for_each(|_| answered_at(&mut bench, 1));
    assert!(bench.pings.is_empty());
    bench
}

/// Twice two copies, and what is asked beside the request that follows.
fn pings(bench: &mut Bench) -> usize {
    answered_at(bench, 2);
    answered_at(bench, 1);
    bench.pass(10 * SECOND);
    std::mem::take(&mut bench.pings).len()
}

#[test]
fn the_next_request_has_a_ping_beside_it() {
    let mut bench = known();
    answered_at(&mut bench, 2);
    assert!(bench.pings.is_empty(), "an origin that is asked nothing more is not woken");
    bench.get(1, "b");
    let [ping] = &std::mem::take(&mut bench.pings)[..] else { panic!("one ping") };
    bench.pong(ping);
    let sent = bench.sent.pop().expect("it left");
    bench.respond(&sent);
    assert_eq!(pings(&mut bench), 1);
}

#[test]
fn who_never_answered_one_gets_four_and_who_did_gets_more() {
    let mut bench = known();
    let silent: Vec<_> = (0..8).map(|_| pings(&mut bench)).collect();
    assert_eq!(silent, [1, 1, 1, 1, 0, 0, 0, 0]);
    let mut bench = known();
    answered_at(&mut bench, 2);
    bench.get(1, "b");
    let ping = bench.pings.pop().expect("a ping");
    bench.pong(&ping);
    let sent = bench.sent.pop().expect("it left");
    bench.respond(&sent);
    bench.sent.clear();
    let lossy: Vec<_> = (0..20).map(|_| pings(&mut bench)).collect();
    assert_eq!(lossy, [[1; 16].as_slice(), &[0; 4]].concat());
}
