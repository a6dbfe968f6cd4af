//! ICMP errors, and datagrams that fail.

use super::*;

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
