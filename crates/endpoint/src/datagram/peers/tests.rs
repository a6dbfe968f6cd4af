use std::net::{IpAddr, Ipv4Addr};

use super::*;

fn peer(port: u16) -> Peer {
    Peer { local: Local::default(), remote: ([127, 0, 0, 1], port).into() }
}

fn peers() -> Peers {
    Peers::new(ahash::RandomState::with_seeds(1, 2, 3, 4))
}

fn add(peers: &mut Peers, peer: &Peer) -> PeerNumber {
    let sender = peers.sender(peer);
    peers.add(&sender)
}

#[test]
fn a_peer_has_one_number_while_something_refers_to_it() {
    let mut peers = peers();
    let (first, second) = (add(&mut peers, &peer(1)), add(&mut peers, &peer(2)));
    assert_ne!(first, second);
    peers.hold(first);
    peers.hold(second);
    assert_eq!((add(&mut peers, &peer(1)), peers.number(&peer(1))), (first, Some(first)));
    peers.release(first);
    assert_eq!(*peers.get(first), peer(1), "until the next datagram");
    peers.check_invariants([second].into_iter(), [].into_iter());
    peers.tidy();
    assert_eq!((peers.number(&peer(1)), peers.sender(&peer(1)).number), (None, None));
    assert_eq!(peers.sender(&peer(2)).number, Some(second));
    assert_eq!(add(&mut peers, &peer(3)), first, "its place is used again");
    peers.tidy();
    assert_eq!(peers.number(&peer(3)), None, "nothing came to refer to it");
    peers.check_invariants([second].into_iter(), [].into_iter());
}

#[test]
fn one_that_is_referred_to_again_stays() {
    let mut peers = peers();
    let number = add(&mut peers, &peer(1));
    for _ in 0..3 {
        peers.hold(number);
        peers.release(number);
    }
    peers.hold(number);
    peers.tidy();
    assert_eq!(peers.number(&peer(1)), Some(number));
    peers.release(number);
    peers.remember(number, false);
    peers.tidy();
    assert_eq!(peers.number(&peer(1)), Some(number), "a message of it is remembered");
    peers.check_invariants([].into_iter(), [(number, false)].into_iter());
    peers.forget(number, false);
    peers.tidy();
    assert_eq!(peers.number(&peer(1)), None);
}

#[test]
fn its_bytes_count_once_in_all_and_once_among_what_is_kept() {
    let mut peers = peers();
    let number = add(&mut peers, &peer(1));
    assert_eq!(peers.would_take(number, false), (PEER_BYTES, 0));
    assert_eq!(peers.remember(number, false), (PEER_BYTES, 0));
    assert_eq!(peers.would_take(number, true), (0, PEER_BYTES));
    assert_eq!(peers.remember(number, true), (0, PEER_BYTES));
    assert_eq!(peers.remember(number, true), (0, 0));
    assert_eq!(peers.forget(number, false), (0, 0));
    assert_eq!(peers.forget(number, true), (0, 0));
    assert_eq!(peers.forget(number, true), (PEER_BYTES, PEER_BYTES));
}

#[test]
fn a_peer_takes_72_bytes_and_its_place_in_the_table() {
    assert_eq!(PEER_BYTES, 72 + 8);
}

#[test]
fn those_that_spoke_to_other_addresses_of_ours_are_found() {
    let mut peers = peers();
    let at = |address| {
        let address = Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, address)));
        Peer { local: Local { address, ..Local::default() }, ..peer(1) }
    };
    let here = [add(&mut peers, &at(1)), add(&mut peers, &at(2))];
    add(&mut peers, &peer(2));
    let other_socket = Local { socket: SocketId(9), ..Local::default() };
    add(&mut peers, &Peer { local: other_socket, ..peer(1) });
    let mut found: Vec<_> = peers.at_any_address(&peer(1)).collect();
    found.sort_by_key(|number| number.number());
    assert_eq!(found, here);
    assert_eq!(peers.number(&peer(1)), None);
}

#[test]
fn message_ids_belong_to_a_peer() {
    let mut peers = peers();
    let number = add(&mut peers, &peer(1));
    assert_eq!(peers.space(number), None);
    peers.set_space(number, Some(7));
    assert_eq!(peers.space(number), Some(7));
    peers.set_space(number, None);
    assert_eq!(peers.space(number), None);
}
