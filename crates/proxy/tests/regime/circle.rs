//! Requests whose Hop-Limit is used up here (RFC 8768 §3, §4).

use std::net::{IpAddr, Ipv4Addr};

use coapway_message::Code;
use coapway_proxy::{Patience, UpstreamParameters};

use crate::bench::{Bench, ORIGIN, SECOND, settings};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 7));

fn bench() -> Bench {
    Bench::new(settings(UpstreamParameters::default(), Patience::default()))
}

#[test]
fn a_client_that_allows_one_hop_only_is_answered_and_nobody_alerted() {
    let mut bench = bench();
    bench.come(CLIENT, "a", 1);
    assert_eq!((bench.answer().code, bench.sent.len()), (Code::HOP_LIMIT_REACHED, 0));
    // Nor where somebody waits in vain for what it asks for.
    bench.get(1, "a");
    bench.pass(SECOND);
    bench.come(CLIENT, "a", 1);
    assert_eq!(bench.answer().code, Code::HOP_LIMIT_REACHED);
    assert!(bench.alerts.is_empty(), "{:?}", bench.alerts);
}

#[test]
fn what_comes_back_from_where_it_was_sent_to_is_a_loop() {
    let mut bench = bench();
    bench.get(1, "a");
    bench.pass(SECOND);
    bench.come(ORIGIN.ip(), "b", 1);
    assert_eq!((bench.answer().code, bench.alerts.len()), (Code::HOP_LIMIT_REACHED, 0));
    bench.come(ORIGIN.ip(), "a", 1);
    assert_eq!((bench.answer().code, &bench.alerts[..]), (Code::HOP_LIMIT_REACHED, &["loop"][..]));
}
