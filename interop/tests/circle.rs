//! Two proxies that point at each other: a request that goes round is ended (RFC 8768).

use std::time::Duration;

use coapway_interop::coapway::Proxy;
use coapway_interop::datagram::{Code, GET, Kind, option};
use coapway_interop::process::Family;
use coapway_interop::raw::RawClient;

const HOP_LIMIT_REACHED: Code = Code(5 << 5 | 8);
/// What a log says of a loop.
const LOOP: &str = "a request came round to this proxy and was ended";
const BAD_REQUEST: Code = Code(4 << 5);
/// The first time round takes until the first empty Acknowledgement, 500 ms; all others together as long.
const PATIENCE: Duration = Duration::from_secs(2);

#[test]
fn a_request_that_goes_round_is_ended_although_nobody_gave_it_a_hop_limit() {
    let proxies = Proxy::circle(&["identifier=p"]);
    let client = RawClient::new(proxies[0].address(Family::V4));
    let settled = client.settle(&RawClient::reverse_request(Kind::Confirmable, GET, "round"), PATIENCE);
    assert_eq!(settled.answer.code, HOP_LIMIT_REACHED, "{settled:?}");
    let hops = String::from_utf8(settled.answer.payload).expect("identifiers are ASCII");
    assert!((2..=16).contains(&hops.split(' ').filter(|hop| *hop == "p").count()), "{hops:?}");
    let logs = proxies.map(Proxy::stop);
    let alerts = logs.iter().map(|log| log.matches(LOOP).count());
    assert!(
        alerts.clone().all(|alerts| alerts <= 1) && alerts.sum::<usize>() >= 1,
        "one alert each: {logs:?}"
    );
}

#[test]
fn a_hop_limit_of_its_own_ends_it_sooner() {
    let proxies = Proxy::circle(&[]);
    let client = RawClient::new(proxies[0].address(Family::V4));
    for (limit, code) in [(3, HOP_LIMIT_REACHED), (1, HOP_LIMIT_REACHED), (0, BAD_REQUEST)] {
        let request = RawClient::reverse_request(Kind::Confirmable, GET, "round");
        let settled = client.settle(&request.option(option::HOP_LIMIT, [limit]), PATIENCE);
        assert_eq!(settled.answer.code, code, "Hop-Limit {limit}: {settled:?}");
    }
}
