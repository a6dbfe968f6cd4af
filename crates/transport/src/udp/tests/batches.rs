//! Many datagrams at once.

use super::*;

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
