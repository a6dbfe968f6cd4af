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

mod addresses;
mod batches;
mod blocked;
mod errors;

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
