//! An origin that is down.

use coapway_endpoint::Nstart;
use coapway_message::{Code, MessageType};
use coapway_proxy::{Patience, UpstreamParameters};

use crate::bench::{Bench, SECOND, settings};

const TIMEOUT: &str = "outcome-unknown: no answer in time";

fn bench() -> Bench {
    // Two copies, at 0 and some 2.5 s, and a place in the window until some 7.5 s.
    let mut upstream = UpstreamParameters::default();
    upstream.transmission.max_retransmit = 1;
    upstream.retry.max_attempts = 1;
    Bench::new(settings(upstream, Patience::Off))
}

/// Two requests have failed; 60 s have passed.
fn down() -> Bench {
    let mut bench = bench();
    for path in ["a", "b"] {
        bench.get(1, path);
        bench.pass(30 * SECOND);
        assert_eq!((bench.answer().text, bench.asked().len()), (TIMEOUT.to_owned(), 2), "as ever");
    }
    assert_eq!(std::mem::take(&mut bench.alerts), ["origin down"]);
    bench
}

#[test]
fn the_third_request_is_told_when_to_come_again_and_does_not_leave() {
    let mut bench = down();
    bench.get(1, "c");
    let answer = bench.answer();
    assert_eq!((answer.code, answer.text.as_str()), (Code::SERVICE_UNAVAILABLE, "not-sent: origin is down"));
    assert!(answer.max_age.is_some_and(|seconds| (1..=8).contains(&seconds)), "{answer:?}");
    assert!(bench.asked().is_empty());
    assert_eq!(bench.records.pop().as_deref(), Some("dormant not-sent 0"));
}

#[test]
fn one_request_at_a_time_is_the_probe_and_pauses_grow() {
    let mut bench = down();
    let mut probes = Vec::new();
    for second in 0..600u64 {
        bench.get(1, &second.to_string());
        if bench.asked().contains(&second.to_string()) {
            probes.push(second);
        }
        bench.pass(SECOND);
        bench.asked();
    }
    let gaps: Vec<_> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((6..=14).contains(&probes.len()), "{probes:?}");
    assert!(gaps.is_sorted() && gaps.ends_with(&[60, 60]), "{gaps:?}");
    assert!(bench.records.iter().all(|record| record != "timeout outcome-unknown 0"));
}

#[test]
fn who_is_told_a_time_and_comes_back_then_is_let_through() {
    let mut bench = down();
    bench.get(1, "c");
    let wait = bench.answer().max_age.expect("always there");
    bench.pass(wait * SECOND).get(1, "d");
    assert_eq!(bench.asked(), ["d"]);
    bench.get(1, "e");
    assert!(bench.answer().max_age.is_some_and(|longer| longer > wait), "the next probe is further away");
}

#[test]
fn anything_heard_ends_it() {
    for late in [false, true] {
        let mut bench = bench();
        bench.get(1, "a");
        let first = bench.sent[0].clone();
        bench.pass(30 * SECOND).get(1, "b");
        bench.pass(30 * SECOND);
        bench.sent.clear();
        bench.answers.clear();
        if late {
            bench.respond(&first);
        } else {
            bench.pass(60 * SECOND).get(1, "c");
            let probe = bench.sent.pop().expect("the probe leaves");
            bench.respond(&probe);
            assert_eq!(bench.answer().code, Code::CONTENT);
        }
        assert_eq!(bench.alerts, ["origin down", "origin back"]);
        bench.get(1, "d");
        bench.get(1, "e");
        assert_eq!(bench.asked(), ["d", "e"], "late: {late}");
    }
}

#[test]
fn what_the_network_refuses_is_told_at_once_and_ends_at_once() {
    let mut bench = bench();
    for second in 0..100 {
        bench.get(1, &second.to_string());
        let sent = bench.sent.pop().expect("it leaves");
        bench.refuse(&sent);
        assert_eq!(bench.answer().code, Code::BAD_GATEWAY, "{second}");
        bench.pass(SECOND);
    }
    bench.get(1, "a");
    bench.pass(30 * SECOND);
    assert_eq!((bench.answer().code, &bench.alerts[..]), (Code::GATEWAY_TIMEOUT, &["origin down"][..]));
}

#[test]
fn an_outage_of_thirty_seconds_costs_nobody_who_can_wait() {
    // A request each second; the origin hears nothing for 30 s and then answers everything.
    let mut bench = Bench::new(settings(UpstreamParameters::default(), Patience::Off));
    for second in 0..90u64 {
        bench.get(1, &second.to_string());
        for _ in 0..10 {
            bench.pass(SECOND / 10);
            let sent = std::mem::take(&mut bench.sent);
            if second >= 30 {
                sent.iter().for_each(|sent| bench.respond(sent));
            }
        }
    }
    let refused = bench.records.iter().filter(|record| record.starts_with("dormant")).count();
    let answered = bench.records.iter().filter(|record| record.starts_with("ok")).count();
    assert_eq!((refused, &bench.alerts[..]), (0, &[][..]));
    // Those that were begun first had too little time left, or no copy in it.
    assert!(answered >= 80, "{answered} of 90");
}

#[test]
fn what_waited_before_keeps_its_place_and_is_the_next_probe_confirmable_first() {
    let mut parameters = settings(UpstreamParameters::default(), Patience::Off);
    parameters.upstreams.iter_mut().for_each(|upstream| {
        upstream.nstart = Nstart::Fixed(1);
        upstream.transmission.max_retransmit = 0;
        upstream.max_wait = 20 * SECOND;
        upstream.retry.max_attempts = 1;
    });
    let mut bench = Bench::new(parameters);
    bench.get(1, "a");
    bench.pass(20 * SECOND).get(6, "b");
    // This one holds the only place until the origin is known to be down.
    bench.pass(19 * SECOND).get(1, "c");
    bench.pass(SECOND / 2);
    bench.ask(2, "non", MessageType::NonConfirmable, Code::GET, b"n");
    bench.get(3, "con");
    bench.get(4, "last");
    bench.pass(SECOND);
    assert_eq!(bench.alerts, ["origin down"]);
    assert_eq!(bench.asked(), ["a", "b", "c"]);
    bench.answers.clear();
    bench.get(5, "new");
    let told = bench.answer();
    assert_eq!((told.port, told.code), (5, Code::SERVICE_UNAVAILABLE));
    bench.pass(8 * SECOND);
    assert_eq!(bench.asked(), ["con"], "the oldest that is Confirmable");
}

#[test]
fn what_one_client_asks_for_in_vain_keeps_nobody_else_away() {
    let mut bench = down();
    bench.get(1, "c");
    assert_eq!(bench.answer().code, Code::SERVICE_UNAVAILABLE);
    for (port, path) in [(2, "d"), (3, "e")] {
        bench.get(port, path);
        assert_eq!(bench.asked(), [path]);
    }
    bench.pass(30 * SECOND);
    assert_eq!(bench.answers.len(), 2);
    bench.answers.clear();
    bench.get(4, "f");
    assert_eq!(bench.answer().code, Code::SERVICE_UNAVAILABLE, "it answers nobody");
}

#[test]
fn all_ports_of_an_address_are_one_client() {
    let mut bench = bench();
    bench.host = [10, 0, 0, 1].into();
    for port in 1..=2 {
        bench.get(port, &format!("{port}"));
        bench.pass(30 * SECOND);
    }
    bench.answers.clear();
    bench.asked();
    bench.host = [10, 0, 0, 2].into();
    bench.get(5, "other");
    assert_eq!(bench.asked(), ["other"], "nobody else is kept away");
}

#[test]
fn who_shares_an_address_with_one_that_asks_in_vain_has_its_turn() {
    let mut bench = bench();
    bench.host = [10, 0, 0, 1].into();
    for path in ["a", "b"] {
        bench.get(1, path);
        bench.pass(30 * SECOND);
    }
    bench.asked();
    for second in 0..120u64 {
        bench.get(1, &format!("in vain at {second}"));
        bench.get(2, &format!("at {second}"));
        if bench.asked().iter().any(|path| path.starts_with("at ")) {
            return;
        }
        bench.pass(SECOND);
    }
    panic!("its requests never left");
}

#[test]
fn who_asked_in_vain_leaves_the_next_probe_to_others() {
    let mut bench = bench();
    for (port, path) in [(1, "a"), (2, "b")] {
        bench.get(port, path);
        bench.pass(30 * SECOND);
    }
    bench.answers.clear();
    let mut probes = Vec::new();
    for second in 0..300u64 {
        // The first is the quickest to come back.
        for port in [1, 3] {
            let path = format!("{port} at {second}");
            bench.get(port, &path);
            if bench.asked().contains(&path) {
                probes.push(port);
            }
        }
        bench.pass(SECOND);
        bench.asked();
    }
    assert!(probes.len() >= 4, "{probes:?}");
    assert!(probes.windows(2).all(|pair| pair[0] != pair[1]), "they take turns: {probes:?}");
}

#[test]
fn two_that_ask_in_vain_keep_no_third_one_away() {
    let mut bench = bench();
    for second in 0..200u64 {
        for number in [1, 2] {
            bench.host = [10, 0, 0, number].into();
            bench.get(u16::from(number), &format!("in vain at {second}"));
        }
        bench.asked();
        if second >= 70 && second % 7 == 0 {
            bench.host = [10, 0, 0, 3].into();
            bench.get(3, "fine");
            if bench.asked() == ["fine"] {
                assert!(second > 70, "it was told to come again first");
                return;
            }
        }
        bench.pass(SECOND);
        bench.answers.clear();
    }
    panic!("it was kept away");
}

#[test]
fn it_can_be_turned_off() {
    let upstream = UpstreamParameters { dormant: false, ..UpstreamParameters::default() };
    let mut bench = Bench::new(settings(upstream, Patience::Off));
    for path in ["a", "b", "c", "d"] {
        bench.get(1, path);
        assert_eq!(bench.asked().first().map(String::as_str), Some(path));
        bench.pass(30 * SECOND);
        assert_eq!(bench.answer().text, TIMEOUT);
        bench.sent.clear();
    }
    assert!(bench.alerts.is_empty());
}

#[test]
fn it_is_told_for_whom_an_origin_is_down_since_when_and_when_the_probe_goes() {
    let mut bench = bench();
    bench.host = [10, 0, 0, 1].into();
    for path in ["a", "b"] {
        bench.get(1, path);
        bench.pass(30 * SECOND);
    }
    let [(whose, silent_for, probe_in)] = &bench.downs[..] else { panic!("told once: {:?}", bench.downs) };
    assert_eq!((whose.as_str(), *silent_for), ("10.0.0.1", 60));
    assert!((1..=8).contains(probe_in), "{probe_in}");
    let probe_in = *probe_in;
    bench.asked();
    bench.pass(SECOND * probe_in as u32).get(1, "sooner");
    assert_eq!(bench.asked(), [""; 0]);
    bench.pass(SECOND).get(1, "then");
    assert_eq!(bench.asked(), ["then"]);
    // Another one fails, too: that is a change.
    bench.host = [10, 0, 0, 2].into();
    bench.get(1, "c");
    bench.pass(30 * SECOND).get(1, "d");
    assert_eq!(bench.downs.len(), 2);
    assert_eq!((bench.downs[1].0.as_str(), &bench.alerts[..]), ("everybody", &["origin down"; 2][..]));
    bench.pass(60 * SECOND).get(1, "e");
    let probe = bench.sent.pop().expect("it leaves");
    bench.respond(&probe);
    assert_eq!(bench.alerts, ["origin down", "origin down", "origin back"]);
}

#[test]
fn what_one_site_asks_for_in_vain_is_told_once_as_long_as_that_goes_on() {
    let mut bench = bench();
    let [vain, other] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
    // It asks every ten seconds; another one hears of the origin every hundred.
    let mut refused = Vec::new();
    for second in 0..1800u64 {
        if second % 10 == 0 {
            bench.host = vain;
            bench.get(1, "in vain");
        }
        if second % 100 == 99 {
            bench.host = other;
            bench.sent.clear();
            bench.get(2, "fine");
            let sent = bench.sent.pop().expect("nothing keeps it away");
            bench.respond(&sent);
        }
        bench.pass(SECOND);
        let dormant = bench.records.iter().filter(|record| record.starts_with("dormant")).count();
        refused.push(dormant);
    }
    let verdicts = refused.windows(100).step_by(100).filter(|pair| pair[99] > pair[0]).count();
    assert!(verdicts >= 10, "it is down for that one again and again: {verdicts}");
    assert_eq!(bench.alerts, ["origin down", "origin back"]);
    // After a rest it is news again.
    bench.pass(300 * SECOND);
    bench.host = vain;
    for path in ["a", "b"] {
        bench.get(1, path);
        bench.pass(30 * SECOND);
    }
    assert_eq!(bench.alerts, ["origin down", "origin back", "origin down"]);
}
