//! A name server of one's own: away, back again, with addresses of either family, some of them dead.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use coapway_interop::clock::now;
use coapway_interop::coapway::Launch;
use coapway_interop::datagram::{BAD_GATEWAY, CONTENT, Code, Datagram, GATEWAY_TIMEOUT, GET, Kind};
use coapway_interop::process::Family;
use coapway_interop::raw::{RawClient, RawOrigin, Reply};

const PATIENCE: Duration = Duration::from_secs(8);
/// What two busy cores may add to a time.
const SLACK: Duration = Duration::from_millis(300);

const A: u8 = 1;
const AAAA: u8 = 28;

/// Answers each question from a list of names and addresses.
struct NameServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    fn start(socket: UdpSocket, zone: &'static [(&'static str, &'static str)]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("not zero");
        let thread = thread::spawn(move || {
            let mut buffer = [0; 512];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                socket.send_to(&answer(&buffer[..length], zone), from).expect("loopback takes it");
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            ended.expect("dropped once").expect("it does not panic");
        }
    }
}

/// RFC 1035 §4.1: the question again, behind it an address record for each that fits.
fn answer(question: &[u8], zone: &[(&str, &str)]) -> Vec<u8> {
    let mut labels = Vec::new();
    let mut at = 12;
    while question[at] != 0 {
        let end = at + 1 + usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..end]).to_lowercase());
        at = end;
    }
    let (name, kind) = (labels.join("."), question[at + 2]);
    let known: Vec<&str> = zone.iter().filter(|(owner, _)| *owner == name).map(|&(_, value)| value).collect();
    let mut bytes = question[..at + 5].to_vec();
    bytes[2..4].copy_from_slice(&[0x81, if known.is_empty() { 0x83 } else { 0x80 }]);
    for address in known {
        let octets = match (address.parse().expect("an address"), kind) {
            (IpAddr::V4(address), A) => address.octets().to_vec(),
            (IpAddr::V6(address), AAAA) => address.octets().to_vec(),
            (IpAddr::V4(_) | IpAddr::V6(_), _) => continue,
        };
        bytes.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, octets.len() as u8]);
        bytes.extend(octets);
        bytes[7] += 1;
    }
    bytes
}

fn here(request: &Datagram) -> Vec<Reply> {
    vec![Reply::now(&request.piggybacked(CONTENT).payload("here"))]
}

fn get(client: &RawClient, uri: &str) -> (Code, Duration) {
    let settled = client.settle(&RawClient::forward_request(Kind::Confirmable, GET, uri), PATIENCE);
    (settled.answer.code, settled.after)
}

#[test]
fn without_its_name_server_it_starts_and_serves_what_needs_no_name() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a port");
    let resolver = format!("resolver={}", socket.local_addr().expect("bound"));
    let origin = RawOrigin::start(Family::V4, here);
    let proxy = Launch::forward().set(&[&resolver]).start();
    let uri = format!("coap://known.example:{}/x", origin.address().port());
    let (server, client) = (proxy.address(Family::V4), RawClient::new(proxy.address(Family::V4)));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| get(&RawClient::new(server), &uri));
        let until = now() + Duration::from_secs(1);
        while now() < until {
            let (code, after) = get(&client, &origin.uri("/x"));
            assert!(code == CONTENT && after < SLACK, "{code:?} after {after:?}");
        }
        let (code, after) = waiting.join().expect("no panic");
        assert_eq!(code, GATEWAY_TIMEOUT, "its name server was silent");
        assert!(after < Duration::from_secs(4) + SLACK, "after {after:?}");
    });
    // Nothing was learned from its silence.
    let _server = NameServer::start(socket, &[("known.example", "127.0.0.1")]);
    let (code, after) = get(&client, &uri);
    assert!(code == CONTENT && after < SLACK, "{code:?} after {after:?}");
    let (code, after) = get(&client, "coap://nowhere.example/x");
    assert!(code == BAD_GATEWAY && after < SLACK, "{code:?} after {after:?}");
}

#[test]
fn names_of_either_family_are_reached_past_dead_addresses() {
    const ZONE: &[(&str, &str)] = &[
        ("four.example", "127.0.0.1"),
        ("six.example", "::1"),
        ("both.example", "127.0.0.1"),
        ("both.example", "::1"),
        // Nobody listens at the first two.
        ("three.example", "127.0.0.3"),
        ("three.example", "127.0.0.4"),
        ("three.example", "127.0.0.1"),
    ];
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a port");
    let resolver = format!("resolver={}", socket.local_addr().expect("bound"));
    let _server = NameServer::start(socket, ZONE);
    let proxy = Launch::forward().set(&[&resolver]).start();
    let client = RawClient::new(proxy.address(Family::V4));
    let (four, six) = (RawOrigin::start(Family::V4, here), RawOrigin::start(Family::V6, here));
    for (name, origin) in [
        ("four", &four),
        ("six", &six),
        // The other family is dead there.
        ("both", &four),
        ("both", &six),
        ("three", &four),
    ] {
        for _ in 0..3 {
            let (code, after) = get(&client, &format!("coap://{name}.example:{}/x", origin.address().port()));
            assert!(code == CONTENT && after < SLACK, "{name}: {code:?} after {after:?}");
        }
    }
}
