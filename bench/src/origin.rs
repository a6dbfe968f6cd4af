//! The echo origin: answers a GET or POST with the last segment of its path.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::coap::{self, CHANGED, CON, CONTENT, EMPTY, GET, Message, NOT_FOUND, POST, RST};
use crate::{clock, sys};

/// Runs a minimal origin server: 2.05, or 2.04 to a POST, with the last path segment as payload.
///
/// A Proxy-Uri counts as path, so that the datagrams of a client can come through unchanged.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address and port to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5711")]
    listen: SocketAddr,
    /// Ends by itself after so many seconds.
    #[arg(long, default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Answer every N-th request with the name of the one before: a load must notice that.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    confuse: Option<u32>,
}

/// Answers until the time is over.
pub(crate) fn run(args: &Args) -> Result<()> {
    let socket = UdpSocket::bind(args.listen).with_context(|| format!("cannot listen on {}", args.listen))?;
    sys::enlarge_buffers(&socket);
    socket.set_read_timeout(Some(Duration::from_millis(500)))?;
    let end = clock::now() + Duration::from_secs(args.seconds);
    let mut buffer = [0; 2048];
    let mut reply = Vec::with_capacity(2048);
    let mut earlier = Vec::new();
    let mut served = 0_u32;
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                served = served.wrapping_add(1);
                let request = Message::parse(buffer.get(..length).unwrap_or_default());
                if let Some(request) = request
                    && answer(&request, &mut reply)
                {
                    if args.confuse.is_some_and(|each| served.is_multiple_of(each)) {
                        coap::write_reply(&mut reply, &request, CONTENT, &earlier);
                    }
                    // A full send buffer is a lost datagram, and the client repeats its request.
                    let _lost = socket.send_to(&reply, from);
                    if args.confuse.is_some() {
                        earlier.clear();
                        earlier.extend(request.last_segment.unwrap_or_default());
                    }
                }
                // One look at the clock in a thousand requests is enough.
                if served.is_multiple_of(1024) && clock::now() >= end {
                    return Ok(());
                }
            }
            Err(error) if is_quiet(&error) => {
                if clock::now() >= end {
                    return Ok(());
                }
            }
            Err(error) => return Err(error).context("cannot receive"),
        }
    }
}

fn is_quiet(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    [ConnectionRefused, Interrupted, TimedOut, WouldBlock].contains(&error.kind())
}

/// Puts the reply to `request` into `reply`; false when there is nothing to say.
fn answer(request: &Message<'_>, reply: &mut Vec<u8>) -> bool {
    match (request.kind, request.code, request.last_segment) {
        (CON, GET, Some(name)) => coap::write_reply(reply, request, CONTENT, name),
        (CON, POST, Some(name)) => coap::write_reply(reply, request, CHANGED, name),
        (CON, EMPTY, _) => {
            reply.clear();
            reply.extend(coap::empty(RST, request.message_id));
        }
        (CON, ..) => coap::write_reply(reply, request, NOT_FOUND, &[]),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coap::ACK;

    fn reply_to(datagram: &[u8]) -> Option<Vec<u8>> {
        let mut reply = Vec::new();
        let request = Message::parse(datagram).expect("a message");
        answer(&request, &mut reply).then_some(reply)
    }

    #[test]
    fn echoes_the_last_segment() {
        let mut request = Vec::new();
        coap::write_get(&mut request, 9, *b"toke", b"coap://h/a/0123");
        let reply = reply_to(&request).expect("a reply");
        let reply = Message::parse(&reply).expect("a message");
        assert_eq!((reply.code, reply.message_id, reply.payload), (CONTENT, 9, &b"0123"[..]));
    }

    #[test]
    fn resets_a_ping_and_ignores_an_acknowledgement() {
        assert_eq!(reply_to(&coap::empty(CON, 5)), Some(coap::empty(RST, 5).to_vec()));
        assert_eq!(reply_to(&coap::empty(ACK, 5)), None);
    }
}
