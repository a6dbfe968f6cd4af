//! After a late wake, what is due leaves in portions.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{
    Endpoint, EndpointParameters, Local, Peer, Schedule, Seed, SocketId, TransmissionParameters,
};
use coapway_message::{Code, Content};
use coapway_time::Instant;

const COUNT: usize = 1000;

fn peer(port: u16) -> Peer {
    let remote = SocketAddr::from(([127, 0, 0, 1], port));
    Peer { local: Local { socket: SocketId(0), address: None }, remote }
}

/// Takes what there is; how many events, and how many datagrams.
fn drain(endpoint: &mut Endpoint) -> (usize, usize) {
    let events = std::iter::from_fn(|| endpoint.poll_event()).count();
    let mut datagrams = 0;
    while endpoint.has_transmit() {
        assert!(endpoint.poll_transmit().is_some());
        datagrams += 1;
    }
    assert!(endpoint.poll_transmit().is_none());
    (events, datagrams)
}

#[test]
fn a_late_wake_sends_in_portions_until_nothing_is_due() {
    let mut endpoint = Endpoint::new(EndpointParameters::default(), Seed::from_number(1));
    let schedule = Schedule::new(&TransmissionParameters::default(), Instant::ZERO);
    for port in 1..=COUNT as u16 {
        let content = Content::bare(Code::GET);
        endpoint
            .send_request(&peer(port), true, None, &content, &schedule, Instant::ZERO)
            .expect("IDs are free");
    }
    assert_eq!(drain(&mut endpoint), (0, COUNT));

    let late = Instant::ZERO + Duration::from_secs(4);
    let mut portions = Vec::new();
    while endpoint.poll_timeout().is_some_and(|due| due <= late) {
        endpoint.handle_timeout(late);
        portions.push(drain(&mut endpoint));
    }
    assert_eq!(portions.iter().map(|(_, copies)| copies).sum::<usize>(), COUNT, "each has its second copy");
    assert!(portions.iter().all(|(events, copies)| events + copies <= 256), "{portions:?}");

    // What nobody took yet is no part of the next portion.
    let later = Instant::ZERO + Duration::from_secs(12);
    endpoint.handle_timeout(later);
    endpoint.handle_timeout(later);
    let (events, copies) = drain(&mut endpoint);
    assert_eq!(events + copies, 512);
}
