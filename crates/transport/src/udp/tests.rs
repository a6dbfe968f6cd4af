//! Real sockets, on loopback only. Each wait is for readiness and ends after [`LONGEST`].

use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket as StdSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::time::timeout;

use super::icmp::{IcmpCode, Unreachable};
use super::*;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const LONGEST: Duration = Duration::from_secs(5);
const V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const V6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0);
const ANY_V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
const ANY_V6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    UdpSocket::bind(address, &Options::default())
}

fn bind_dual() -> io::Result<UdpSocket> {
    UdpSocket::bind(ANY_V6, &Options { dual_stack: true, ..Options::default() })
}

/// A peer that is not of this crate.
fn peer(address: SocketAddr) -> io::Result<StdSocket> {
    let peer = StdSocket::bind(address)?;
    peer.set_read_timeout(Some(LONGEST))?;
    Ok(peer)
}

/// Where nobody listens: a port below the ephemeral ones, which no other test is given.
const DEAD_V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
const DEAD_V6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 1);

fn at(ip: impl Into<IpAddr>, socket: &UdpSocket) -> SocketAddr {
    SocketAddr::new(ip.into(), socket.local_addr().port())
}

async fn ready(socket: &UdpSocket) -> io::Result<()> {
    timeout(LONGEST, poll_fn(|cx| socket.poll_ready(cx))).await?
}

async fn is_quiet(socket: &UdpSocket) -> bool {
    // One turn of the runtime tells it all that the kernel knows already.
    tokio::task::yield_now().await;
    poll_fn(|cx| Poll::Ready(socket.poll_ready(cx).is_pending())).await
}

async fn receive(socket: &UdpSocket, batch: &mut ReceiveBatch) -> io::Result<usize> {
    loop {
        ready(socket).await?;
        let count = socket.receive(batch)?;
        if count > 0 {
            return Ok(count);
        }
    }
}

async fn receive_errors(socket: &UdpSocket, count: usize) -> io::Result<Vec<IcmpError>> {
    let mut errors = Vec::new();
    while errors.len() < count {
        ready(socket).await?;
        socket.receive_errors(&mut errors);
    }
    Ok(errors)
}

/// Sends datagrams of which none may fail.
fn send(socket: &UdpSocket, datagrams: &[(SocketAddr, Option<IpAddr>, &[u8])]) {
    let mut batch = SendBatch::new(datagrams.len());
    for (to, from, datagram) in datagrams {
        batch.push(*to, *from, datagram);
    }
    let mut failures = Vec::new();
    assert_eq!(socket.send(&mut batch, &mut failures), Progress::Done);
    assert!(failures.is_empty(), "{failures:?}");
    assert!(batch.is_empty());
}

async fn answers_a_datagram(address: SocketAddr) -> Outcome {
    let server = bind(address)?;
    let client = peer(address)?;
    client.send_to(b"ping", server.local_addr())?;

    let mut batch = ReceiveBatch::new();
    assert_eq!(receive(&server, &mut batch).await?, 1);
    let received = batch.iter().next().expect("one datagram");
    assert_eq!((received.from, received.to), (client.local_addr()?, None));
    assert_eq!((received.datagram, received.truncated), (&b"ping"[..], false));
    assert_eq!(server.receive(&mut batch)?, 0, "nothing is left");
    assert!(is_quiet(&server).await);

    send(&server, &[(client.local_addr()?, None, b"pong")]);
    let mut buffer = [0; 8];
    assert_eq!(client.recv_from(&mut buffer)?, (4, server.local_addr()));
    assert_eq!(&buffer[..4], b"pong");
    assert_eq!(server.counters(), Counters { received: 1, sent: 1, ..Counters::default() });
    Ok(())
}

#[tokio::test]
async fn answers_a_datagram_over_ipv4() -> Outcome {
    answers_a_datagram(V4).await
}

#[tokio::test]
async fn answers_a_datagram_over_ipv6() -> Outcome {
    answers_a_datagram(V6).await
}

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

async fn reports_a_dead_port(socket: &UdpSocket, dead: SocketAddr) -> Outcome {
    let mut datagram = [7; 100];
    datagram[..4].copy_from_slice(b"\x41\x01\x12\x34");
    send(socket, &[(dead, None, &datagram)]);
    let errors = receive_errors(socket, 1).await?;
    let [error] = errors.as_slice() else { panic!("one error: {errors:?}") };
    assert_eq!(error.destination, dead);
    let wildcard = socket.local_addr().ip().is_unspecified();
    assert_eq!(error.local, wildcard.then_some(dead.ip()), "it had left from the address it went to");
    assert_eq!(error.code, IcmpCode::Unreachable(Unreachable::Port));
    assert_eq!(error.payload(), &datagram[..64]);
    assert!(is_quiet(socket).await, "no error is left to wake for");
    Ok(())
}

#[tokio::test]
async fn an_icmp_error_names_the_port_and_quotes_the_datagram() -> Outcome {
    reports_a_dead_port(&bind(V4)?, DEAD_V4).await?;
    reports_a_dead_port(&bind(V6)?, DEAD_V6).await?;
    reports_a_dead_port(&bind(ANY_V4)?, DEAD_V4).await?;
    let dual = bind_dual()?;
    reports_a_dead_port(&dual, DEAD_V4).await?;
    reports_a_dead_port(&dual, DEAD_V6).await?;
    assert_eq!(dual.counters().icmp, 2);
    Ok(())
}

#[tokio::test]
async fn an_error_about_one_peer_costs_no_other_its_datagram() -> Outcome {
    let socket = bind(V4)?;
    let (dead, alive) = (DEAD_V4, peer(V4)?);
    // On loopback the error is there before the next datagram: within one batch, and between two.
    send(&socket, &[(dead, None, b"1"), (alive.local_addr()?, None, b"2"), (dead, None, b"3")]);
    send(&socket, &[(alive.local_addr()?, None, b"4")]);
    let mut buffer = [0; 8];
    for expected in [b'2', b'4'] {
        assert_eq!(alive.recv(&mut buffer)?, 1);
        assert_eq!(buffer[0], expected);
    }
    let errors = receive_errors(&socket, 2).await?;
    assert_eq!(errors.iter().map(IcmpError::payload).collect::<Vec<_>>(), [b"1", b"3"]);
    assert!(is_quiet(&socket).await);
    Ok(())
}

/// What is dead answers each datagram with an error, which the kernel lets the next send or receive
/// fail with, to whomever that is.
async fn loses_nothing_beside_a_dead_peer(address: SocketAddr, dead: SocketAddr) -> Outcome {
    const ROUNDS: u32 = 500;
    let socket = bind(address)?;
    let alive = peer(SocketAddr::new(dead.ip(), 0))?;
    let to = alive.local_addr()?;
    let (mut incoming, mut errors) = (ReceiveBatch::new(), Vec::new());
    let mut told = 0;
    for round in 0..ROUNDS {
        let bytes = round.to_be_bytes();
        match round % 3 {
            0 => send(&socket, &[(dead, None, b"x"), (to, None, &bytes), (dead, None, b"x")]),
            1 => {
                send(&socket, &[(dead, None, b"x")]);
                send(&socket, &[(to, None, &bytes)]);
                send(&socket, &[(dead, None, b"x")]);
            }
            _ => send(&socket, &[(dead, None, b"x"), (dead, None, b"x"), (to, None, &bytes)]),
        }
        let mut buffer = [0; 8];
        assert_eq!(alive.recv_from(&mut buffer)?, (4, at(dead.ip(), &socket)));
        assert_eq!(buffer[..4], bytes, "in order and without a gap");
        alive.send_to(&bytes, at(dead.ip(), &socket))?;
        loop {
            ready(&socket).await?;
            // Errors are taken each time: while some wait, it is ready without asking the runtime.
            socket.receive_errors(&mut errors);
            if socket.receive(&mut incoming)? > 0 {
                break;
            }
        }
        assert_eq!(incoming.iter().map(|received| received.datagram).collect::<Vec<_>>(), [bytes]);
        socket.receive_errors(&mut errors);
        told += errors.drain(..).inspect(|error| assert_eq!(error.destination, dead)).count();
    }
    assert_eq!(told as u32, 2 * ROUNDS, "each error is told, and none twice");
    Ok(())
}

#[tokio::test]
async fn a_dead_peer_costs_a_live_one_nothing() -> Outcome {
    for (address, dead) in [(V4, DEAD_V4), (V6, DEAD_V6), (ANY_V4, DEAD_V4), (ANY_V6, DEAD_V6)] {
        loses_nothing_beside_a_dead_peer(address, dead).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_error_does_not_get_in_the_way_of_receiving() -> Outcome {
    let socket = bind(V4)?;
    let client = peer(V4)?;
    send(&socket, &[(DEAD_V4, None, b"lost")]);
    client.send_to(b"ping", socket.local_addr())?;
    let mut batch = ReceiveBatch::new();
    assert_eq!(receive(&socket, &mut batch).await?, 1);
    assert_eq!(receive_errors(&socket, 1).await?.len(), 1);
    assert!(is_quiet(&socket).await);
    Ok(())
}

/// Errors that arrive amidst a batch end it early. If that were taken for an empty queue, what is
/// left there would wait for the next datagram, which here comes only after all have been received.
#[tokio::test]
async fn errors_amidst_a_batch_leave_no_datagram_behind() -> Outcome {
    const ROUNDS: usize = 500;
    const BURST: usize = 40;
    let socket = bind(V4)?;
    let client = peer(V4)?;
    let stop = Arc::new(AtomicBool::new(false));
    let storm = {
        let (socket, stop) = (socket.socket.get_ref().try_clone()?, Arc::clone(&stop));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                // It fails whenever the last error is still pending, which is what we are after.
                let _ = socket.send_to(b"lost", &DEAD_V4.into());
            }
        })
    };
    let (mut batch, mut errors) = (ReceiveBatch::new(), Vec::new());
    for _ in 0..ROUNDS {
        for _ in 0..BURST {
            client.send_to(b"x", socket.local_addr())?;
        }
        let mut count = 0;
        while count < BURST {
            ready(&socket).await?;
            count += socket.receive(&mut batch)?;
            socket.receive_errors(&mut errors);
            errors.clear();
        }
    }
    stop.store(true, Ordering::Relaxed);
    storm.join().expect("it does not panic");
    Ok(())
}

#[tokio::test]
async fn a_failing_datagram_is_named_and_holds_up_no_other() -> Outcome {
    let socket = bind(V4)?;
    let alive = peer(V4)?;
    let too_long = vec![0; 65_535];
    let mut batch = SendBatch::new(4);
    batch.push(alive.local_addr()?, None, b"1");
    batch.push(alive.local_addr()?, None, &too_long);
    batch.push("[::1]:5683".parse()?, None, b"3");
    batch.push(alive.local_addr()?, None, b"4");
    let mut failures = Vec::new();
    assert_eq!(socket.send(&mut batch, &mut failures), Progress::Done);
    let codes: Vec<_> = failures.iter().map(|f| (f.index, f.error.raw_os_error())).collect();
    assert_eq!(codes, [(1, Some(libc::EMSGSIZE)), (2, Some(libc::EAFNOSUPPORT))]);
    assert_eq!(alive.recv(&mut [0; 8])?, 1);
    assert_eq!(alive.recv(&mut [0; 8])?, 1);
    assert_eq!((socket.counters().sent, socket.counters().failed), (2, 2));
    Ok(())
}

#[tokio::test]
async fn batches_may_be_longer_than_one_system_call() -> Outcome {
    const COUNT: u16 = 200;
    let (client, server) = (bind(V4)?, bind(V4)?);
    let mut outgoing = SendBatch::new(COUNT.into());
    for number in 0..COUNT {
        assert!(!outgoing.is_full());
        outgoing.push(server.local_addr(), None, &number.to_be_bytes());
    }
    assert!(outgoing.is_full());
    let mut failures = Vec::new();
    assert_eq!(client.send(&mut outgoing, &mut failures), Progress::Done);
    assert!(failures.is_empty() && outgoing.is_empty() && !outgoing.is_full());

    let mut batch = ReceiveBatch::new();
    let (mut numbers, mut sizes) = (Vec::new(), Vec::new());
    while numbers.len() < COUNT.into() {
        sizes.push(receive(&server, &mut batch).await?);
        numbers.extend(batch.iter().map(|r| u16::from_be_bytes(r.datagram.try_into().expect("two bytes"))));
    }
    assert_eq!(sizes, [4, 64, 64, 64, 4], "there is little room at first");
    assert!(numbers.into_iter().eq(0..COUNT), "in order");
    assert!(is_quiet(&server).await);
    Ok(())
}

#[tokio::test]
async fn counts_what_its_buffer_had_no_room_for() -> Outcome {
    let socket = UdpSocket::bind(V4, &Options { receive_buffer: 4096, ..Options::default() })?;
    let client = peer(V4)?;
    for _ in 0..100 {
        client.send_to(b"x", socket.local_addr())?;
    }
    let mut received = 0;
    let mut batch = ReceiveBatch::new();
    while !is_quiet(&socket).await {
        received += socket.receive(&mut batch)?;
    }
    assert!(received > 0 && socket.lost() > 0);
    assert_eq!(received + socket.lost() as usize, 100);
    Ok(())
}

/// Sends runs of one length and of mixed ones, to two peers, and expects each datagram as it was.
fn sends_runs(socket: &UdpSocket, peers: [StdSocket; 2], from: Option<IpAddr>) -> Outcome {
    let mut datagrams = Vec::new();
    for number in 0..200_usize {
        let length = if number < 100 { 16 } else { 16 + number % 3 };
        datagrams.push((usize::from(number % 50 > 40), vec![number as u8; length]));
    }
    let mut batch = SendBatch::new(datagrams.len());
    for (peer, datagram) in &datagrams {
        batch.push(peers[*peer].local_addr()?, from, datagram);
    }
    let mut failures = Vec::new();
    assert_eq!(socket.send(&mut batch, &mut failures), Progress::Done);
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!((socket.counters().sent, socket.counters().failed), (200, 0));
    let mut buffer = [0; 64];
    for (peer, datagram) in &datagrams {
        let (length, sender) = peers[*peer].recv_from(&mut buffer)?;
        assert_eq!(buffer[..length], datagram[..]);
        assert_eq!(sender.ip(), from.unwrap_or(socket.local_addr().ip()));
    }
    Ok(())
}

#[tokio::test]
async fn what_leaves_in_one_piece_arrives_as_datagrams() -> Outcome {
    sends_runs(&bind(V4)?, [peer(V4)?, peer(V4)?], None)?;
    sends_runs(&bind(V6)?, [peer(V6)?, peer(V6)?], None)?;
    sends_runs(&bind(ANY_V4)?, [peer(V4)?, peer(V4)?], Some("127.0.0.7".parse()?))?;
    sends_runs(&bind_dual()?, [peer(V4)?, peer(V4)?], Some("127.0.0.7".parse()?))
}

#[tokio::test]
async fn a_run_that_the_kernel_refuses_leaves_as_datagrams() -> Outcome {
    let socket = bind(V4)?;
    // Runs need checksums.
    syscalls::set_option(socket.socket.get_ref().as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1)?;
    sends_runs(&socket, [peer(V4)?, peer(V4)?], None)
}

#[tokio::test]
async fn what_has_no_order_arrives_whole() -> Outcome {
    let (socket, alive) = (bind(V4)?, peer(V4)?);
    let mut batch = SendBatch::new(200);
    for number in 0..200_usize {
        batch.push_unordered(alive.local_addr()?, None, &vec![number as u8; 10 + number % 3]);
    }
    let mut failures = Vec::new();
    assert_eq!(socket.send(&mut batch, &mut failures), Progress::Done);
    assert!(failures.is_empty(), "{failures:?}");
    let mut numbers = Vec::new();
    let mut buffer = [0; 64];
    for _ in 0..200 {
        let length = alive.recv(&mut buffer)?;
        let number = usize::from(buffer[0]);
        assert_eq!(buffer[..length], vec![number as u8; 10 + number % 3]);
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..200));
    Ok(())
}

#[tokio::test]
async fn each_datagram_to_a_dead_port_is_told_once_some_were() -> Outcome {
    let socket = bind(V4)?;
    send(&socket, &[(DEAD_V4, None, b"1"), (DEAD_V4, None, b"2")]);
    let errors = receive_errors(&socket, 1).await?;
    assert!(errors[0].payload().starts_with(b"1"), "{errors:?}");
    send(&socket, &[(DEAD_V4, None, b"3"), (DEAD_V4, None, b"4")]);
    let errors = receive_errors(&socket, 2).await?;
    assert_eq!(errors.iter().map(IcmpError::payload).collect::<Vec<_>>(), [b"3", b"4"]);
    Ok(())
}

#[tokio::test]
async fn a_datagram_longer_than_a_slot_arrives_cut_and_marked() -> Outcome {
    let server = bind(V4)?;
    let client = peer(V4)?;
    for length in [SLOT_SIZE, SLOT_SIZE + 1, 60_000, 0] {
        client.send_to(&vec![1; length], server.local_addr())?;
    }
    let mut batch = ReceiveBatch::new();
    assert_eq!(receive(&server, &mut batch).await?, 4);
    let seen: Vec<_> = batch.iter().map(|r| (r.datagram.len(), r.truncated)).collect();
    assert_eq!(seen, [(SLOT_SIZE, false), (SLOT_SIZE, true), (SLOT_SIZE, true), (0, false)]);
    assert_eq!(server.counters().truncated, 2);
    Ok(())
}

#[tokio::test]
async fn sockets_share_a_port_only_when_both_want_to() -> Outcome {
    let shared = Options { reuse_port: true, ..Options::default() };
    let first = UdpSocket::bind(V4, &shared)?;
    UdpSocket::bind(first.local_addr(), &shared)?;
    let refused = bind(first.local_addr()).expect_err("it is taken");
    assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    Ok(())
}

#[tokio::test]
async fn tells_the_buffer_it_was_granted() -> Outcome {
    let options = Options { receive_buffer: 65_536, ..Options::default() };
    assert_eq!(UdpSocket::bind(V4, &options)?.granted_receive_buffer(), 65_536);
    assert_eq!(options.granted_receive_buffer()?, 65_536);
    Ok(())
}

#[tokio::test]
async fn a_socket_that_is_not_blocked_is_writable() -> Outcome {
    let socket = bind(V4)?;
    timeout(LONGEST, poll_fn(|cx| socket.poll_writable(cx))).await??;
    Ok(())
}

/// A full buffer and a full device need a slow device, so this runs itself again in a network
/// namespace of its own, where loopback is slow. Small enough a queue fills the device first, a large
/// one leaves that to the buffer.
#[test]
fn a_blocked_batch_is_sent_in_the_end() -> Outcome {
    let program = std::env::current_exe()?;
    for limit in ["16k", "1m"] {
        let script = format!(
            "ip link set lo up && tc qdisc add dev lo root tbf rate 8mbit burst 4k limit {limit} && \
             SLOW_LOOPBACK=1 exec \"$0\" --exact udp::tests::on_a_slow_device --nocapture"
        );
        let output =
            std::process::Command::new("unshare").args(["-rn", "sh", "-c", &script]).arg(&program).output();
        let output = match output {
            Ok(output) if output.status.success() || required() => output,
            Err(error) if required() => return Err(error.into()),
            _ => {
                println!("skipped: needs unshare, ip and tc, and the right to use them");
                return Ok(());
            }
        };
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.contains("blocked "), "{out}{err}");
    }
    Ok(())
}

/// Whether what is missing on this machine is a failure.
fn required() -> bool {
    std::env::var_os("COAPWAY_REQUIRE_PEERS").is_some()
}

#[tokio::test]
async fn on_a_slow_device() -> Outcome {
    if std::env::var_os("SLOW_LOOPBACK").is_some() { a_blocked_batch().await } else { Ok(()) }
}

async fn a_blocked_batch() -> Outcome {
    const COUNT: usize = 300;
    let socket = UdpSocket::bind(V4, &Options { send_buffer: 65_536, ..Options::default() })?;
    let server = bind(V4)?;
    // An ICMP error must not make the wait for room a busy one.
    send(&socket, &[(DEAD_V4, None, b"lost")]);
    assert_eq!(receive_errors(&socket, 1).await?.len(), 1);
    let mut batch = SendBatch::new(COUNT);
    for _ in 0..COUNT {
        batch.push(server.local_addr(), None, &[0; 1000]);
    }
    let (mut failures, mut blocked) = (Vec::new(), 0_u32);
    while socket.send(&mut batch, &mut failures) == Progress::Blocked {
        blocked += 1;
        timeout(LONGEST, poll_fn(|cx| socket.poll_writable(cx))).await??;
    }
    assert!(failures.is_empty(), "{failures:?}");
    assert!((1..1000).contains(&blocked), "blocked {blocked} times");
    let mut incoming = ReceiveBatch::new();
    while server.counters().received < COUNT as u64 {
        receive(&server, &mut incoming).await?;
    }
    println!("blocked {blocked} times: {:?}", socket.counters());
    Ok(())
}
