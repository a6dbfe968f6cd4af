//! Which addresses datagrams come from, go to, and are told to have been sent to.

use super::*;

/// Asks `server` at `ip` and expects the answer from there: a connected client drops any other.
async fn answers_from(server: &UdpSocket, client: SocketAddr, ip: IpAddr) -> Outcome {
    let client = peer(client)?;
    client.connect(at(ip, server))?;
    client.send(b"ping")?;
    let mut batch = ReceiveBatch::new();
    receive(server, &mut batch).await?;
    let received = batch.iter().next().expect("one datagram");
    assert_eq!((received.from, received.to), (client.local_addr()?, Some(ip)));
    send(server, &[(received.from, received.to, b"pong")]);
    assert_eq!(client.recv(&mut [0; 8])?, 4);
    Ok(())
}

#[tokio::test]
async fn a_wildcard_socket_answers_from_the_address_it_was_asked_at() -> Outcome {
    answers_from(&bind(ANY_V4)?, V4, "127.0.0.7".parse()?).await?;
    answers_from(&bind(ANY_V6)?, V6, V6.ip()).await
}

#[tokio::test]
async fn a_dual_stack_socket_tells_ipv4_addresses_unmapped() -> Outcome {
    let server = bind_dual()?;
    answers_from(&server, V4, "127.0.0.7".parse()?).await?;
    answers_from(&server, V6, V6.ip()).await
}

#[tokio::test]
async fn an_ipv6_socket_takes_ipv4_only_when_told() -> Outcome {
    let only_v6 = bind(ANY_V6)?;
    assert!(only_v6.socket.get_ref().only_v6()?);
    assert!(!bind_dual()?.socket.get_ref().only_v6()?);
    let one_address = UdpSocket::bind(V6, &Options { dual_stack: true, ..Options::default() })?;
    assert!(one_address.socket.get_ref().only_v6()?, "there is no IPv4 at ::1");

    let mut batch = SendBatch::new(1);
    batch.push("127.0.0.1:5683".parse()?, None, b"x");
    let mut failures = Vec::new();
    assert_eq!(only_v6.send(&mut batch, &mut failures), Progress::Done);
    assert_eq!(failures.len(), 1);
    Ok(())
}

/// Joins `group` on loopback and sends to it from there; `None` where loopback has no route to groups,
/// as it has none by default over IPv6.
fn to_group(group: SocketAddr) -> Result<Option<StdSocket>, Box<dyn std::error::Error>> {
    let member = match group {
        SocketAddr::V4(group) => {
            let member = StdSocket::bind(V4)?;
            member.join_multicast_v4(group.ip(), &Ipv4Addr::LOCALHOST)?;
            let socket = socket2::SockRef::from(&member);
            socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST)?;
            member
        }
        SocketAddr::V6(group) => {
            let member = StdSocket::bind(V6)?;
            member.join_multicast_v6(group.ip(), LOOPBACK_INDEX)?;
            socket2::SockRef::from(&member).set_multicast_if_v6(LOOPBACK_INDEX)?;
            member
        }
    };
    match member.send_to(b"all", group) {
        Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable && group.is_ipv6() => {
            println!("skipped: loopback has no route to {group}");
            Ok(None)
        }
        sent => Ok(sent.map(|_| Some(member))?),
    }
}

/// The loopback interface is the first of its network namespace.
const LOOPBACK_INDEX: u32 = 1;

#[tokio::test]
async fn a_datagram_to_a_group_names_the_group() -> Outcome {
    for (socket, group) in [(bind(ANY_V4)?, "224.0.1.187"), (bind(ANY_V6)?, "ff01::fd")] {
        let group = group.parse()?;
        let Some(_member) = to_group(at(group, &socket))? else { continue };
        let mut batch = ReceiveBatch::new();
        assert_eq!(receive(&socket, &mut batch).await?, 1);
        let to: Vec<_> = batch.iter().map(|received| received.to).collect();
        assert_eq!(to, [Some(group)]);
    }
    Ok(())
}

#[tokio::test]
async fn a_broadcast_of_any_kind_is_told_as_one() -> Outcome {
    let client = peer(V4)?;
    client.set_broadcast(true)?;
    // The broadcast address of loopback's own network, 127.0.0.0/8.
    let broadcast: IpAddr = "127.255.255.255".parse()?;
    for socket in [bind(ANY_V4)?, bind_dual()?] {
        client.send_to(b"all", at(broadcast, &socket))?;
        client.send_to(b"one", at(V4.ip(), &socket))?;
        let (mut batch, mut to) = (ReceiveBatch::new(), Vec::new());
        while to.len() < 2 {
            receive(&socket, &mut batch).await?;
            to.extend(batch.iter().map(|received| received.to));
        }
        assert_eq!(to, [Some(Ipv4Addr::BROADCAST.into()), Some(V4.ip())]);
    }
    Ok(())
}

#[tokio::test]
async fn a_socket_that_tells_no_destinations_hears_no_groups() -> Outcome {
    for (any, one, group) in [(ANY_V4, V4, "224.0.1.187"), (ANY_V6, V6, "ff01::fd")] {
        let socket = UdpSocket::bind(any, &Options { destinations: false, ..Options::default() })?;
        let Some(_member) = to_group(at(group.parse::<IpAddr>()?, &socket))? else { continue };
        peer(one)?.send_to(b"one", at(one.ip(), &socket))?;
        let mut batch = ReceiveBatch::new();
        assert_eq!(receive(&socket, &mut batch).await?, 1, "what was sent to the group came first");
        assert_eq!(batch.iter().next().expect("one datagram").datagram, b"one");
    }
    Ok(())
}

#[tokio::test]
async fn a_group_or_broadcast_address_is_no_source() -> Outcome {
    let server = bind(ANY_V4)?;
    let client = peer(V4)?;
    let group: IpAddr = "224.0.1.187".parse()?;
    let broadcast: IpAddr = "255.255.255.255".parse()?;
    send(
        &server,
        &[(client.local_addr()?, Some(group), b"a"), (client.local_addr()?, Some(broadcast), b"b")],
    );
    assert_eq!(client.recv(&mut [0; 8])?, 1);
    assert_eq!(client.recv(&mut [0; 8])?, 1);
    Ok(())
}
