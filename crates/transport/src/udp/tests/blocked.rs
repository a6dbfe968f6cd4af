//! Sockets and devices that are full.

use super::*;

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
             SLOW_LOOPBACK=1 exec \"$0\" --exact udp::tests::blocked::on_a_slow_device --nocapture"
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
