//! What estimators are told of exchanges, and what they say of waits.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::Estimator;
use coapway_message::Code;
use coapway_relay::UpstreamId;

use crate::bench::{Bench, CON, Sent, settings};

const SECOND: Duration = Duration::from_secs(1);
const A: (&str, u16) = ("a", 1);

fn bench(estimator: Estimator) -> Bench {
    let mut settings = settings(&[A]);
    settings.upstreams[1].rto.estimator = estimator;
    Bench::new(settings)
}

/// The timeout that the next exchange with `a` would have.
fn timeout(bench: &Bench) -> Duration {
    let origin = SocketAddr::from(([192, 0, 2, 1], A.1));
    bench.proxy.learned(origin, UpstreamId(1)).expect("it is known").timeout
}

/// A request to `a` is answered so long after its first copy; how many copies left.
fn answered_after(bench: &mut Bench, time: Duration) -> usize {
    bench.get(1, "a");
    bench.pass(time);
    let copies = std::mem::take(&mut bench.to_origins);
    bench.respond(&copies[0], Code::CONTENT, b"");
    bench.answers();
    copies.len()
}

/// Whether the timeout in force follows an answer after one retransmission.
fn follows_ambiguous(estimator: Estimator) -> bool {
    let mut bench = bench(estimator);
    assert_eq!(answered_after(&mut bench, 4 * SECOND), 2);
    let learned = timeout(&bench);
    // 4 s and half of that as its deviation, a quarter of which counts.
    (learned.as_secs_f64() - 3.0).abs() < 0.01
}

#[test]
fn cocoa_is_told_of_answers_after_a_retransmission_and_the_others_are_not() {
    for estimator in Estimator::ALL {
        assert_eq!(follows_ambiguous(estimator), estimator == Estimator::Cocoa, "{estimator:?}");
    }
}

#[test]
fn any_answer_ends_the_back_off_of_pto_and_an_exact_one_that_of_the_others() {
    for (estimator, is_over) in [(Estimator::Pto, true), (Estimator::Rfc6298, false), (Estimator::P95, false)]
    {
        let mut bench = bench(estimator);
        answered_after(&mut bench, 4 * SECOND);
        assert_eq!(timeout(&bench) == 2 * SECOND, is_over, "{estimator:?}: {:?}", timeout(&bench));
    }
}

#[test]
fn waits_grow_as_the_estimator_says() {
    for (estimator, least, most) in [(Estimator::Cocoa, 3.0, 3.4), (Estimator::Budget, 2.0, 2.3)] {
        let mut bench = bench(estimator);
        for _ in 0..20 {
            answered_after(&mut bench, Duration::from_millis(50));
        }
        bench.get(1, "a");
        bench.pass(10 * SECOND);
        let gaps: Vec<_> =
            bench.to_origins.windows(2).map(|pair| pair[1].at.since(pair[0].at).as_secs_f64()).collect();
        assert!((0.199..0.31).contains(&gaps[0]), "{estimator:?}: {gaps:?}");
        let growth = gaps[1] / gaps[0];
        assert!((least * 0.98..most).contains(&growth), "{estimator:?}: {gaps:?}");
    }
}

/// An exchange with `a` on a path that takes `round_trip` for each copy, and the pause after it; how many copies left.
fn exchange(bench: &mut Bench, round_trip: Duration) -> usize {
    bench.get(1, "a");
    let (mut copies, mut answered) = (Vec::new(), 0);
    let over = bench.now + 3 * round_trip + SECOND;
    while bench.now < over {
        copies.extend(bench.to_origins.drain(..).filter(|sent| sent.message().content.code == Code::GET));
        let now = bench.now;
        for copy in copies[answered..].iter().take_while(|copy| copy.at + round_trip <= now) {
            bench.respond(copy, Code::CONTENT, b"");
            answered += 1;
        }
        bench.pass(round_trip / 20);
        let separate = |sent: &&Sent| sent.message().message_type == CON;
        if let Some(response) = bench.to_clients.iter().find(separate).cloned() {
            bench.acknowledge(&response);
        }
    }
    assert_eq!(answered, copies.len());
    assert!(!bench.answers().is_empty());
    copies.len()
}

#[test]
fn a_path_that_gets_twenty_times_as_slow_is_known_again_after_a_few_exchanges() {
    let (fast, slow) = (SECOND / 5, 4 * SECOND);
    for estimator in [Estimator::Budget, Estimator::P95, Estimator::Rfc6298] {
        let mut bench = bench(estimator);
        assert!((0..20).all(|_| exchange(&mut bench, fast) == 1), "{estimator:?}");
        let copies: Vec<_> = (0..12).map(|_| exchange(&mut bench, slow)).collect();
        assert!(copies[0] > 1, "{estimator:?}: {copies:?}");
        assert!(copies[3..].iter().all(|&copies| copies == 1), "{estimator:?}: {copies:?}");
        // What was fast is no more than a memory; when it is fast again, that is known at once.
        assert!(timeout(&bench) > slow, "{estimator:?}: {:?}", timeout(&bench));
        assert!((0..20).all(|_| exchange(&mut bench, fast) == 1), "{estimator:?}");
    }
}
