//! Our own addresses: groups (R-GRP-01), and ICMP errors of a socket that listens on all of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use coapway_endpoint::{Event, Local, Peer};
use coapway_message::{Failure, MessageType, datagram};

use crate::hop::{Got, Hop, OTHER, PEER, RESPONSE, empty_ack, request};

fn at_address(address: IpAddr, peer: Peer) -> Peer {
    Peer { local: Local { address: Some(address), ..peer.local }, ..peer }
}

#[test]
fn what_is_sent_to_a_group_or_to_everyone_is_met_with_silence() {
    let mut hop = Hop::new();
    let groups = [
        IpAddr::V6(Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 0xFD)),
        IpAddr::V6(Ipv6Addr::new(0xFF05, 0, 0, 0, 0, 0, 0, 0xFD)),
        IpAddr::V4(Ipv4Addr::new(224, 0, 1, 187)),
        IpAddr::V4(Ipv4Addr::BROADCAST),
    ];
    let con = request(MessageType::Confirmable, 1, b"\xA1");
    let malformed = [0x50, 1, 0, 1, 0xFF];
    let ping = datagram::empty(MessageType::Confirmable, 2);
    for group in groups {
        for datagram in [&con[..], &malformed, &[0x4F, 1, 0, 3], &ping, &[]] {
            assert_eq!(hop.receive_from(at_address(group, PEER), datagram), Got::Nothing);
        }
    }
    assert!(hop.sent().is_empty() && hop.events().is_empty());
    assert_eq!((hop.endpoint.counters().group, hop.endpoint.remembered()), (20, 0));
    let unicast = at_address(Ipv4Addr::LOCALHOST.into(), PEER);
    assert!(matches!(hop.receive_from(unicast, &con), Got::Request(_)));
}

#[test]
fn an_icmp_error_finds_a_response_that_left_from_one_of_several_addresses() {
    let mut hop = Hop::new();
    let client = at_address(Ipv4Addr::LOCALHOST.into(), PEER);
    let ask = request(MessageType::Confirmable, 10, b"\xA1");
    let Got::Request(exchange) = hop.receive_from(client, &ask) else { panic!("a request") };
    hop.endpoint.acknowledge_early(exchange);
    assert_eq!(hop.sent(), [empty_ack(10)]);
    hop.endpoint.respond(exchange, &RESPONSE, hop.now).expect("open");
    let response = hop.sent().remove(0);
    hop.events();
    let mut forged = response.clone();
    forged[1] ^= 1;
    let longer = [&response[..], b"x"].concat();
    for (peer, quoted) in [(PEER, &forged[..]), (PEER, &longer), (OTHER, &response), (PEER, &response[..3])] {
        hop.endpoint.handle_unreachable(&peer, quoted, Failure::Unreachable, hop.now);
        assert!(hop.events().is_empty(), "{quoted:02x?}");
    }
    hop.endpoint.handle_unreachable(&PEER, &response, Failure::Unreachable, hop.now);
    assert!(matches!(
        hop.events()[..],
        [Event::Delivered { outcome: Err(Failure::Unreachable), copies: 1, .. }]
    ));
    hop.endpoint.check_invariants();
}
