use super::*;

const STRANGER: &str = "192.0.2.1";

fn limits(rate: u32, most: usize) -> ClientLimits {
    ClientLimits::new(rate, RandomState::with_seeds(1, 2, 3, 4), most)
}

fn at(milliseconds: u64) -> Instant {
    Instant::from_micros(milliseconds * 1000)
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// How many of `count` requests at one time were admitted, answered and dropped.
fn judged(limits: &mut ClientLimits, client: &str, count: usize, now: Instant) -> (usize, usize, usize) {
    let verdicts: Vec<_> = (0..count).map(|_| limits.judge(ip(client), now)).collect();
    let of = |wanted| verdicts.iter().filter(|&&verdict| verdict == wanted).count();
    (of(Verdict::Admitted), of(Verdict::TooFast), of(Verdict::Dropped))
}

#[test]
fn two_seconds_worth_may_come_at_once_and_the_rate_from_then_on() {
    let mut limits = limits(100, 10);
    assert_eq!(judged(&mut limits, STRANGER, 200, at(0)), (200, 0, 0));
    assert_eq!(judged(&mut limits, STRANGER, 1, at(0)), (0, 1, 0));
    assert_eq!(judged(&mut limits, STRANGER, 100, at(500)).0, 50);
    assert_eq!(judged(&mut limits, STRANGER, 1000, at(60_000)).0, 200, "the bucket does not overflow");
}

#[test]
fn answers_to_a_flood_are_limited_themselves() {
    let mut limits = limits(10, 10);
    assert_eq!(judged(&mut limits, STRANGER, 1000, at(0)), (20, 10, 970));
    assert_eq!(judged(&mut limits, STRANGER, 1000, at(1000)), (10, 10, 980));
    assert_eq!(*limits.counters(), LimitCounters { too_fast: 20, dropped: 1950, shared: 0 });
}

#[test]
fn one_client_does_not_slow_another_down() {
    let mut limits = limits(10, 10);
    judged(&mut limits, STRANGER, 1000, at(0));
    assert_eq!(judged(&mut limits, "192.0.2.2", 2, at(0)), (2, 0, 0));
    assert_eq!(judged(&mut limits, "2001:db8::1", 2, at(0)), (2, 0, 0));
}

#[test]
fn a_client_is_an_address_or_a_64() {
    let mut limits = limits(10, 10);
    judged(&mut limits, "2001:db8::1", 20, at(0));
    assert_eq!(judged(&mut limits, "2001:db8::ffff:2", 1, at(0)).0, 0, "the same /64");
    assert_eq!(judged(&mut limits, "2001:db8:0:1::1", 1, at(0)).0, 1, "another /64");
    judged(&mut limits, STRANGER, 20, at(0));
    assert_eq!(judged(&mut limits, "::ffff:192.0.2.1", 1, at(0)).0, 0, "the same address");
}

#[test]
fn loopback_and_a_rate_of_zero_have_no_limit() {
    let mut slow = limits(1, 10);
    for client in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(judged(&mut slow, client, 100, at(0)).0, 100, "{client}");
    }
    assert!(slow.is_empty());
    assert_eq!(judged(&mut limits(0, 10), STRANGER, 100_000, at(0)).0, 100_000);
}

#[test]
fn rates_from_one_a_second_to_the_highest_hold() {
    assert_eq!(judged(&mut limits(1, 10), STRANGER, 10, at(0)).0, 2);
    assert_eq!(judged(&mut limits(u32::MAX, 10), STRANGER, 1000, at(0)).0, 1000);
}

#[test]
fn a_client_whose_bucket_is_full_again_makes_room() {
    let mut limits = limits(10, 2);
    judged(&mut limits, "192.0.2.1", 1, at(0));
    judged(&mut limits, "192.0.2.2", 20, at(0));
    assert_eq!(judged(&mut limits, "192.0.2.3", 20, at(1000)).0, 20, "in place of the first");
    assert_eq!((limits.len(), limits.is_empty(), limits.counters().shared), (2, false, 0));
    assert_eq!(judged(&mut limits, "192.0.2.2", 20, at(1000)).0, 10, "the second is still known");
}

#[test]
fn strangers_share_one_bucket_when_the_table_is_full() {
    let mut limits = limits(10, 2);
    judged(&mut limits, "192.0.2.1", 20, at(0));
    judged(&mut limits, "192.0.2.2", 20, at(0));
    for client in 10..30 {
        assert_eq!(judged(&mut limits, &format!("192.0.2.{client}"), 1, at(0)).0, 1);
    }
    assert_eq!(judged(&mut limits, "192.0.2.99", 1, at(0)).0, 0);
    assert_eq!((limits.len(), limits.counters().shared), (2, 21));
}

#[test]
fn many_clients_take_a_bounded_table() {
    let mut limits = limits(1000, 100);
    for client in 0..100_000_u32 {
        let now = Instant::from_micros(u64::from(client) * 20);
        assert_eq!(limits.judge(IpAddr::from((0x0A00_0000 + client).to_be_bytes()), now), Verdict::Admitted);
    }
    assert!(limits.len() <= 100 && limits.places.len() == limits.entries.len());
}
