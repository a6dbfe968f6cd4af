//! What exceeds a limit of a peer or origin is found.

use super::*;

/// A separate response with this Message ID, to a token.
fn separate(message_id: u8) -> [u8; 5] {
    [0x41, 0x45, 0, message_id, message_id]
}

#[test]
fn too_many_exchanges_with_an_origin_are_found() {
    let after = |reply: &[u8]| {
        let mut checks = Checks::new(Rules { upstream_nstart: 1, ..rules() });
        checks.proxy_sent(UPSTREAM, ORIGIN, &request(true, 1, 1, 1), at(0));
        checks.proxy_received(ORIGIN, UPSTREAM, reply, at(100));
        let mut second = request(true, 1, 2, 2);
        second.extend([0xB1, b't']);
        checks.proxy_sent(UPSTREAM, ORIGIN, &second, at(100));
        checks.after_step(at(100));
        found(&checks)
    };
    assert_found(&after(&[0x60, 0, 0, 9]), "2 exchanges with 10.2.0.1:5683 where 1 are allowed");
    assert_eq!(after(&[0x60, 0, 0, 1]) + &after(&[0x70, 0, 0, 1]), "");
    assert_eq!(after(&[0x58, 0x45, 0, 9, 1, 2, 3, 4, 5, 6, 7, 1]), "");
}

#[test]
fn an_icmp_error_gives_its_place_back_and_one_about_an_acknowledgement_does_not() {
    for (quoted, what) in [(request(true, 1, 1, 1), ""), (vec![0x60, 0, 0, 1], "2 exchanges")] {
        let mut checks = Checks::new(Rules { upstream_nstart: 1, ..rules() });
        checks.proxy_sent(UPSTREAM, ORIGIN, &request(true, 1, 1, 1), at(0));
        checks.proxy_refused(UPSTREAM, ORIGIN, &quoted, at(100));
        let second = [&request(true, 1, 2, 2)[..], &[0xB1, b't']].concat();
        checks.proxy_sent(UPSTREAM, ORIGIN, &second, at(100));
        checks.after_step(at(100));
        assert_found(&found(&checks), what);
        assert_eq!(found(&checks).is_empty(), what.is_empty());
    }
}

#[test]
fn an_exchange_counts_again_when_a_copy_follows_after_all() {
    let mut checks = Checks::new(Rules { upstream_nstart: 1, ..rules() });
    let second = [&request(true, 1, 2, 2)[..], &[0xB1, b't']].concat();
    for (millis, bytes) in [(0, &request(true, 1, 1, 1)), (1_000, &second)] {
        checks.proxy_sent(UPSTREAM, ORIGIN, bytes, at(millis));
        checks.after_step(at(millis));
    }
    assert_eq!(found(&checks), "", "the wait for the first may be over");
    checks.proxy_sent(UPSTREAM, ORIGIN, &request(true, 1, 1, 1), at(1_100));
    checks.after_step(at(1_100));
    assert_found(&found(&checks), "2 exchanges with 10.2.0.1:5683");
}

#[test]
fn too_many_separate_responses_to_a_client_are_found() {
    let mut checks = Checks::new(Rules { downstream_nstart: Some(1), ..rules() });
    for token in [1, 2, 3] {
        checks.proxy_received(CLIENT, LISTENER, &[0x41, 1, 0, token, token], at(0));
        checks.proxy_sent(LISTENER, CLIENT, &[0x60, 0, 0, token], at(500));
    }
    checks.proxy_sent(LISTENER, CLIENT, &separate(1), at(1_000));
    checks.proxy_received(CLIENT, LISTENER, &[0x60, 0, 0, 1], at(1_100));
    checks.proxy_sent(LISTENER, CLIENT, &separate(2), at(1_200));
    checks.after_step(at(1_200));
    assert_eq!(found(&checks), "");
    checks.proxy_sent(LISTENER, CLIENT, &separate(3), at(1_300));
    checks.after_step(at(1_300));
    assert_found(&found(&checks), "2 separate responses to 10.1.0.1:1, 1 are allowed");
}

#[test]
fn a_silent_origin_that_gets_too_many_bytes_is_found() {
    let after = |heard, millis| {
        let mut checks = Checks::new(Rules { probing_rate: Some(1.0), ..rules() });
        if heard {
            checks.proxy_received(ORIGIN, UPSTREAM, &[0x70, 0, 0, 9], at(0));
        }
        checks.proxy_sent(UPSTREAM, ORIGIN, &request(false, 1, 1, 1), at(0));
        (2..100).for_each(|id| checks.proxy_sent(UPSTREAM, ORIGIN, &request(false, 1, id, id), at(millis)));
        found(&checks)
    };
    assert_found(&after(false, 11_900), "after 12 bytes it did not react to");
    assert_found(&after(false, 12_000), "after 24 bytes it did not react to");
    assert_eq!(after(true, 59_000), "", "it may still be slow");
    assert_found(&after(true, 61_000), "after 72 bytes it did not react to");
}

#[test]
fn what_was_refused_on_its_way_is_not_charged() {
    let mut checks = Checks::new(Rules { probing_rate: Some(1.0), ..rules() });
    checks.proxy_sent(UPSTREAM, ORIGIN, &request(false, 1, 1, 1), at(0));
    checks.proxy_refused(UPSTREAM, ORIGIN, &request(false, 1, 1, 1), at(50));
    checks.proxy_sent(UPSTREAM, ORIGIN, &request(false, 1, 2, 2), at(100));
    assert_eq!(found(&checks), "");
    checks.proxy_sent(UPSTREAM, ORIGIN, &request(false, 1, 3, 3), at(200));
    assert_found(&found(&checks), "after 12 bytes it did not react to");
}

#[test]
fn an_unverified_address_that_gets_too_much_is_found() {
    let answer = |length| [&[0x61, 0x45, 0, 10, 0xA1, 0xFF][..], &vec![b'1'; length]].concat();
    let after = |client, requests: usize, answers: &[usize]| {
        let relay = coapway_relay::Parameters {
            trusted: vec!["10.9.0.0/16".parse().expect("a network")],
            ..coapway_relay::Parameters::default()
        };
        let mut checks = Checks::new(Rules { unverified: Some(relay), ..rules() });
        (0..requests).for_each(|_| checks.proxy_received(client, LISTENER, GET, at(0)));
        answers.iter().for_each(|&length| checks.proxy_sent(LISTENER, client, &answer(length), at(1)));
        found(&checks)
    };
    let trusted = SocketAddr::new([10, 9, 0, 1].into(), 1);
    assert_eq!(after(CLIENT, 1, &[130]) + &after(trusted, 1, &[500]), "");
    assert_found(&after(CLIENT, 1, &[131]), "got 137 bytes for 5; 136 are allowed");
    assert_found(&after(CLIENT, 2, &[70, 70]), "got 152 bytes for 10; 136 are allowed");
    assert_eq!(after(CLIENT, 40, &[130, 130, 130, 130]), "");
}
