use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::*;
use crate::peer::Local;

/// Its port is the same number.
fn narrow(number: u16) -> Peer {
    Peer { local: Local::default(), remote: ([127, 0, 0, 1], number).into() }
}

fn wide(number: u16) -> Peer {
    Peer { remote: (Ipv6Addr::LOCALHOST, number).into(), ..narrow(number) }
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
    for peer in [narrow, wide] {
        let mut peers = peers();
        let (first, second) = (add(&mut peers, &peer(1)), add(&mut peers, &peer(2)));
        assert_ne!(first, second);
        peers.hold(first);
        peers.hold(second);
        assert_eq!((add(&mut peers, &peer(1)), peers.number(&peer(1))), (first, Some(first)));
        peers.release(first);
        assert_eq!(peers.get(first), peer(1), "until the next datagram");
        peers.check_invariants([second].into_iter(), [].into_iter());
        peers.tidy();
        assert_eq!((peers.number(&peer(1)), peers.sender(&peer(1)).number), (None, None));
        assert_eq!((peers.sender(&peer(2)).number, peers.get(second)), (Some(second), peer(2)));
        assert_eq!(add(&mut peers, &peer(3)), first, "its place is used again");
        peers.tidy();
        assert_eq!(peers.number(&peer(3)), None, "nothing came to refer to it");
        peers.check_invariants([second].into_iter(), [].into_iter());
    }
}

#[test]
fn one_that_is_referred_to_again_stays() {
    let mut peers = peers();
    let number = add(&mut peers, &narrow(1));
    for _ in 0..3 {
        peers.hold(number);
        peers.release(number);
    }
    peers.hold(number);
    peers.tidy();
    assert_eq!(peers.number(&narrow(1)), Some(number));
    peers.release(number);
    peers.remember(number, false);
    peers.tidy();
    assert_eq!(peers.number(&narrow(1)), Some(number), "a message of it is remembered");
    peers.check_invariants([].into_iter(), [(number, false)].into_iter());
    peers.forget(number, false);
    peers.tidy();
    assert_eq!(peers.number(&narrow(1)), None);
}

#[test]
fn each_of_many_is_told_from_the_others() {
    let address = |number: u16| Some(IpAddr::V4(Ipv4Addr::from_bits(number.into())));
    let all: Vec<Peer> = (0..9000_u16)
        .map(|number| match number % 3 {
            0 => narrow(number),
            1 => wide(number / 2),
            // More of our addresses than have numbers.
            _ => Peer { local: Local { address: address(number / 2), socket: SocketId(2) }, ..narrow(1) },
        })
        .chain([Peer { local: Local { address: None, socket: SocketId(7) }, ..narrow(3) }])
        .collect();
    let mut peers = peers();
    let numbers: Vec<_> = all
        .iter()
        .map(|peer| {
            let number = add(&mut peers, peer);
            peers.hold(number);
            number
        })
        .collect();
    for (peer, &number) in all.iter().zip(&numbers) {
        assert_eq!((peers.number(peer), peers.sender(peer).number), (Some(number), Some(number)));
        assert_eq!((peers.get(number), peers.socket(number)), (*peer, peer.local.socket));
    }
    assert!(numbers.iter().zip(0..).all(|(number, expected)| number.number() == expected));
    peers.check_invariants(numbers.into_iter(), [].into_iter());
}

#[test]
fn its_bytes_count_once_in_all_and_once_among_what_is_kept() {
    for (peer, bytes) in [(narrow(1), PEER_BYTES), (wide(1), PEER_BYTES + 64)] {
        let mut peers = peers();
        let number = add(&mut peers, &peer);
        assert_eq!(peers.would_take(number, true), (bytes, bytes));
        assert_eq!(peers.would_take(number, false), (bytes, 0));
        peers.remember(number, false);
        assert_eq!(peers.would_take(number, false), (0, 0));
        assert_eq!(peers.would_take(number, true), (0, bytes));
        peers.remember(number, true);
        assert_eq!(peers.would_take(number, true), (0, 0));
        assert_eq!((peers.keep(number), peers.keep_no_more(number)), (0, 0));
        assert_eq!((peers.keep_no_more(number), peers.keep(number)), (bytes, bytes));
        assert_eq!((peers.forget(number, false), peers.forget(number, true)), ((0, 0), (bytes, bytes)));
    }
    assert_eq!(PEER_BYTES, 24 + 8, "and its own in the table");
}

#[test]
fn those_that_spoke_to_other_addresses_of_ours_are_found() {
    for (remote, other) in [(narrow(1), narrow(2)), (wide(1), wide(2))] {
        let mut peers = peers();
        let at = |address| {
            let address = Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, address)));
            Peer { local: Local { address, ..Local::default() }, ..remote }
        };
        let here = [add(&mut peers, &at(1)), add(&mut peers, &at(2))];
        add(&mut peers, &other);
        let elsewhere = Local { socket: SocketId(9), ..Local::default() };
        add(&mut peers, &Peer { local: elsewhere, ..remote });
        let mut found: Vec<_> = peers.at_any_address(&remote).collect();
        found.sort_by_key(|number| number.number());
        assert_eq!(found, here);
        assert_eq!(peers.number(&remote), None);
    }
}

#[test]
fn message_ids_belong_to_a_peer() {
    let mut peers = peers();
    let number = add(&mut peers, &narrow(1));
    assert_eq!(peers.space(number), None);
    peers.set_space(number, Some(7));
    assert_eq!(peers.space(number), Some(7));
    peers.set_space(number, None);
    assert_eq!(peers.space(number), None);
}
