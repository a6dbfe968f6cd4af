//! `retransmit.mid`: which requests get a Message ID of its own for each copy, and what is learned from it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{Carry, Estimator};
use coapway_message::Code;
use coapway_proxy::CopyIds;
use coapway_relay::UpstreamId;

use crate::bench::{Bench, Sent, settings};

const SECOND: Duration = Duration::from_secs(1);
const A: (&str, u16) = ("a", 1);

fn bench(ids: CopyIds) -> Bench {
    let mut settings = settings(&[A]);
    settings.upstreams[1].retransmit.mid = ids;
    settings.upstreams[1].deduplicates = true;
    Bench::new(settings)
}

fn ids(copies: &[Sent]) -> BTreeSet<u16> {
    copies.iter().map(|copy| copy.message().message_id).collect()
}

/// The copies of a request to `a` after so long.
fn copies(bench: &mut Bench, code: Code, time: Duration) -> Vec<Sent> {
    bench.request(0, 1, code, "a", b"");
    bench.pass(time);
    std::mem::take(&mut bench.to_origins)
}

/// The timeout that the next exchange with `a` would have, in seconds.
fn timeout(bench: &Bench) -> f64 {
    let origin = SocketAddr::from(([192, 0, 2, 1], A.1));
    bench.proxy.learned(origin, UpstreamId(1)).expect("it is known").timeout.as_secs_f64()
}

#[track_caller]
fn about(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 0.02, "{found} instead of {wanted}");
}

#[test]
fn only_what_may_be_executed_again_gets_them() {
    let (safe, idempotent) = ([Code::GET, Code::FETCH], [Code::PUT, Code::DELETE, Code::IPATCH]);
    for (setting, fresh) in [
        (CopyIds::Same, Vec::new()),
        (CopyIds::FreshSafe, safe.to_vec()),
        (CopyIds::FreshIdempotent, [&safe[..], &idempotent].concat()),
    ] {
        for code in [&safe[..], &idempotent, &[Code::POST, Code::PATCH]].concat() {
            let mut bench = bench(setting);
            let copies = copies(&mut bench, code, 10 * SECOND);
            assert_eq!(copies.len(), 3, "{code} at 0 s, 2 s to 3 s, 6 s to 9 s");
            let wanted = if fresh.contains(&code) { 3 } else { 1 };
            assert_eq!(ids(&copies).len(), wanted, "{code} with {setting:?}");
            let tokens: BTreeSet<_> = copies.iter().map(|copy| copy.message().token.to_vec()).collect();
            let ports: BTreeSet<_> = copies.iter().map(|copy| copy.from.0).collect();
            assert_eq!((tokens.len(), ports.len()), (1, 1), "they are one exchange");
        }
    }
}

#[test]
fn an_answer_is_a_sample_of_the_copy_whose_message_id_it_carries() {
    for (copy, time) in [(0, 4.1), (1, 4.1 - 2.0)] {
        let mut settings = settings(&[A]);
        settings.upstreams[1].retransmit.mid = CopyIds::FreshSafe;
        settings.upstreams[1].transmission.ack_random_factor = 1.0;
        settings.upstreams[1].transmission.retry_jitter = 0.0;
        settings.upstreams[1].rto.estimator = Estimator::Rfc6298;
        let mut bench = Bench::new(settings);
        let copies = copies(&mut bench, Code::GET, Duration::from_millis(4_100));
        assert_eq!(copies.len(), 2);
        bench.respond(&copies[copy], Code::CONTENT, b"");
        assert_eq!(bench.answers().len(), 1);
        // A first sample, and four times its half as the deviation (RFC 6298 §2.2).
        about(timeout(&bench), 3.0 * time);
        // The other copy is answered as well: another round trip, though the exchange is over.
        bench.pass(SECOND);
        bench.respond(&copies[1 - copy], Code::CONTENT, b"");
        assert!(bench.answers().is_empty() && bench.to_origins.is_empty(), "nobody hears of it");
        let (first, second) = (time, 5.1 - if copy == 0 { 2.0 } else { 0.0 });
        let deviation = 0.75 * first / 2.0 + 0.25 * (first - second).abs();
        about(timeout(&bench), 0.875 * first + 0.125 * second + 4.0 * deviation);
        let learned = timeout(&bench);
        bench.respond(&copies[1 - copy], Code::CONTENT, b"");
        about(timeout(&bench), learned);
    }
}

#[test]
fn a_copy_that_was_answered_when_all_had_failed_still_tells_how_long_the_path_takes() {
    let mut settings = settings(&[A]);
    settings.upstreams[1].retransmit.mid = CopyIds::FreshSafe;
    settings.upstreams[1].rto.carry = Carry::Never;
    settings.upstreams[1].rto.estimator = Estimator::Rfc6298;
    settings.upstreams[1].retry.max_attempts = 1;
    let mut bench = Bench::new(settings);
    let copies = copies(&mut bench, Code::GET, 31 * SECOND);
    assert_eq!(bench.answers().last().expect("an answer").1, Code::GATEWAY_TIMEOUT);
    about(timeout(&bench), 2.0);
    bench.respond(&copies[0], Code::CONTENT, b"");
    about(timeout(&bench), 3.0 * 31.0);
}

#[test]
fn one_that_is_acknowledged_needs_no_ping() {
    let mut bench = bench(CopyIds::FreshSafe);
    for _ in 0..3 {
        let copies = copies(&mut bench, Code::GET, Duration::from_millis(3_500));
        assert!(copies.iter().all(|copy| copy.message().content.code == Code::GET), "no ping");
        bench.respond(copies.last().expect("some"), Code::CONTENT, b"");
        bench.answers();
        bench.pass(10 * SECOND);
    }
}

#[test]
fn a_reload_holds_for_what_leaves_from_then_on() {
    let mut bench = bench(CopyIds::Same);
    bench.get(1, "a");
    let mut changed = settings(&[A]);
    changed.upstreams[1].retransmit.mid = CopyIds::FreshSafe;
    bench.reload(&changed);
    bench.pass(4 * SECOND);
    let before = std::mem::take(&mut bench.to_origins);
    assert_eq!((before.len(), ids(&before).len()), (2, 1));
    bench.respond(&before[0], Code::CONTENT, b"");
    let after = copies(&mut bench, Code::GET, 10 * SECOND);
    assert_eq!(ids(&after).len(), after.len());
}
