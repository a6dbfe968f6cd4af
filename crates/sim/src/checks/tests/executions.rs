//! What is done twice that must be done once is found, or counted where nobody could help it.

use super::*;
use crate::actor::Actor;
use crate::origin::{Memory, Mood, Origin};

const MOVED: SocketAddr = SocketAddr::new(CLIENT.ip(), 2);

/// POST /?k=7 of a client with this Message ID.
fn post(message_id: u8) -> Vec<u8> {
    vec![0x41, 2, 0, message_id, 0xA1, 0xD3, 2, b'k', b'=', b'7']
}

/// The same, as the proxy sends it.
fn forwarded(message_id: u8, token: u8) -> Vec<u8> {
    let mut bytes = request(true, 2, message_id, token);
    bytes.extend([0xD3, 2, b'k', b'=', b'7']);
    bytes
}

fn at_the_end(checks: &mut Checks, origin: Origin) -> String {
    let found = checks.executions.finish(&[Actor::Origin(origin)], &checks.exchanges);
    found.into_iter().for_each(|what| checks.violated(what, at(99_000)));
    super::found(checks)
}

fn origin(memory: Memory) -> Origin {
    Origin::new("origin", ORIGIN, memory, &[Mood::Answers(Duration::ZERO)], 1)
}

#[test]
fn a_second_exchange_for_one_post_is_found() {
    let mut checks = checks();
    for at_millis in [0, 2_000] {
        checks.proxy_received(CLIENT, LISTENER, &post(10), at(at_millis));
    }
    checks.proxy_sent(UPSTREAM, ORIGIN, &forwarded(1, 1), at(0));
    assert_eq!(found(&checks), "");
    checks.proxy_sent(UPSTREAM, ORIGIN, &forwarded(2, 2), at(9_000));
    assert_found(&found(&checks), "is exchange 2 of 1 that may be executed");
}

#[test]
fn a_post_refused_at_its_first_copy_may_be_sent_again() {
    let after = |copies: u8, refusal: &[u8]| {
        let mut checks = checks();
        checks.proxy_received(CLIENT, LISTENER, &post(10), at(0));
        (0..copies).for_each(|copy| {
            checks.proxy_sent(UPSTREAM, ORIGIN, &forwarded(1, 1), at(3_000 * u64::from(copy)));
        });
        match refusal {
            [] => checks.proxy_refused(UPSTREAM, ORIGIN, &forwarded(1, 1), at(4_000)),
            refusal => checks.proxy_received(ORIGIN, UPSTREAM, refusal, at(4_000)),
        }
        checks.proxy_sent(UPSTREAM, ORIGIN, &forwarded(2, 2), at(9_000));
        found(&checks)
    };
    let reset = [0x70, 0, 0, 1];
    assert_eq!(after(1, &[]) + &after(1, &reset), "");
    assert_found(&after(2, &[]), "is exchange 2 of 1");
    assert_found(&after(2, &reset), "is exchange 2 of 1");
}

#[test]
fn what_a_moving_client_causes_is_counted_and_no_more_than_that() {
    let mut checks = checks();
    checks.proxy_received(CLIENT, LISTENER, &post(10), at(0));
    checks.proxy_received(MOVED, LISTENER, &post(10), at(3_000));
    let mut origin = origin(Memory::Deduplicates);
    for number in [1, 2] {
        checks.proxy_sent(UPSTREAM, ORIGIN, &forwarded(number, number), at(3_000));
        origin.handle_datagram(UPSTREAM, &forwarded(number, number), at(3_000));
    }
    assert_eq!(at_the_end(&mut checks, origin), "");
    assert_eq!(checks.again(), crate::checks::Again { rebound: 1, ..Default::default() });
    checks.proxy_sent(UPSTREAM, ORIGIN, &forwarded(3, 3), at(3_000));
    assert_found(&found(&checks), "is exchange 3 of 2");
}

#[test]
fn a_message_id_that_comes_back_to_its_first_use_is_counted_apart() {
    let mut checks = checks();
    let other = [0x41, 1, 0, 10, 0xA2];
    for (millis, bytes) in [(0, &post(10)[..]), (1_000, &other), (2_000, &post(10))] {
        checks.proxy_received(CLIENT, LISTENER, bytes, at(millis));
    }
    let mut origin = origin(Memory::Deduplicates);
    for number in [1, 2] {
        checks.proxy_sent(UPSTREAM, ORIGIN, &forwarded(number, number), at(3_000));
        origin.handle_datagram(UPSTREAM, &forwarded(number, number), at(3_000));
    }
    assert_eq!(at_the_end(&mut checks, origin), "");
    assert_eq!(checks.again(), crate::checks::Again { reused: 1, ..Default::default() });
}

#[test]
fn what_an_origin_without_memory_does_is_counted_apart() {
    for (memory, restarts, again) in [
        (Memory::None, false, crate::checks::Again { undeduplicated: 1, ..Default::default() }),
        (Memory::Deduplicates, true, crate::checks::Again { restarted: 1, ..Default::default() }),
        (Memory::Deduplicates, false, crate::checks::Again::default()),
    ] {
        let mut checks = checks();
        checks.proxy_received(CLIENT, LISTENER, &post(10), at(0));
        let mut origin = origin(memory);
        for millis in [0, 3_000] {
            checks.proxy_sent(UPSTREAM, ORIGIN, &forwarded(1, 1), at(millis));
            origin.handle_datagram(UPSTREAM, &forwarded(1, 1), at(millis));
            if restarts {
                origin.restart(at(millis + 1));
            }
        }
        assert_eq!(at_the_end(&mut checks, origin), "");
        assert_eq!(checks.again(), again, "{memory:?}");
    }
}

#[test]
fn an_execution_that_nothing_explains_is_found() {
    let mut checks = checks();
    checks.proxy_received(CLIENT, LISTENER, &post(10), at(0));
    let mut origin = origin(Memory::Deduplicates);
    // The checks do not see these leave, as if another had sent them.
    for number in [1, 2] {
        origin.handle_datagram(UPSTREAM, &forwarded(number, number), at(0));
    }
    assert_found(&at_the_end(&mut checks, origin), "executed POST 7 2 times, in 2 exchanges of 1 requests");
}

#[test]
fn what_carries_one_request_tag_is_one_and_counted_where_it_is_not() {
    // Request-Tag 1 behind the query.
    let tagged = |number, tag| [&forwarded(number, number)[..], &[0xE1, 0, 8, tag]].concat();
    let mut checks = checks();
    checks.proxy_received(CLIENT, LISTENER, &post(10), at(0));
    let mut origin = origin(Memory::Deduplicates);
    for number in [1, 2] {
        checks.proxy_sent(UPSTREAM, ORIGIN, &tagged(number, 1), at(9_000 * u64::from(number)));
        origin.handle_datagram(UPSTREAM, &tagged(number, 1), at(0));
    }
    assert_eq!(at_the_end(&mut checks, origin), "");
    assert_eq!(checks.again(), crate::checks::Again { tagged: 1, ..Default::default() });
    checks.proxy_sent(UPSTREAM, ORIGIN, &tagged(3, 2), at(30_000));
    assert_found(&found(&checks), "is exchange 2 of 1 that may be executed");
}
