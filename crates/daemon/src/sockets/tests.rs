use super::*;

#[test]
fn errors_of_the_system_are_told_apart() {
    let failure = |code| failure(&io::Error::from_raw_os_error(code));
    for code in [libc::EPERM, libc::EACCES, libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EINVAL] {
        assert_eq!(failure(code), Failure::Unreachable, "{code}");
    }
    for code in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
        assert_eq!(failure(code), Failure::Overloaded, "{code}");
    }
    assert_eq!(failure(libc::EMSGSIZE), Failure::TooLarge);
}

#[test]
fn little_room_for_bursts_names_the_sysctl() {
    assert_eq!(room_for_bursts(4 << 20, 4 << 20), None);
    assert_eq!(room_for_bursts(2 << 20, 4 << 20), None);
    let warning = room_for_bursts(212_992, 4 << 20).expect("a warning");
    assert!(warning.contains("208 KiB") && warning.contains("net.core.rmem_max=4194304"), "{warning}");
}

#[tokio::test]
async fn both_families_have_a_socket_from_the_start() {
    let sockets = Sockets::bind(&["127.0.0.1:0".parse().expect("an address")]).expect("loopback has ports");
    for ipv6 in [false, true] {
        let first = SocketRole::Upstream { ipv6, number: 0 }.socket();
        let address = sockets.local_addr(first).expect("opened before it is needed");
        assert_eq!(address.is_ipv6(), ipv6);
    }
    assert_eq!(sockets.listeners().count(), 1);
}

#[tokio::test]
async fn a_datagram_without_a_way_there_comes_back_with_its_reason() {
    let listener = "0.0.0.0:0".parse().expect("an address");
    let mut sockets = Sockets::bind(&[listener]).expect("loopback has ports");
    let mut unsent = Vec::new();
    // Broadcast is forbidden to a socket that did not ask for it.
    let remote = "255.255.255.255:5683".parse().expect("an address");
    let address = Some(Ipv4Addr::LOCALHOST.into());
    let local = Local { socket: SocketRole::Listener(0).socket(), address };
    let peer = coapway_endpoint::Peer { local, remote };
    sockets.push(&Transmit { peer: &peer, datagram: b"\x40\x01\x00\x01" }, &mut unsent);
    sockets.flush(&mut unsent);
    let [unsent] = &unsent[..] else { panic!("one: {unsent:?}") };
    assert_eq!((unsent.local, unsent.remote, unsent.failure), (local, remote, Failure::Unreachable));
    assert_eq!(*unsent.quoted, *b"\x40\x01\x00\x01");
    assert_eq!(sockets.counters().failed, 1);
}
