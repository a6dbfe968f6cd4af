//! Single datagrams: a client that notes when each came, and an origin that follows a script.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::clock::now;
use crate::datagram::{Code, Datagram, EMPTY, Kind, option};
use crate::process::Family;

/// A datagram and when it came.
#[derive(Clone, Debug)]
pub struct Received {
    /// When it was read from the socket.
    pub at: Instant,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What they say; `None` when they are not well formed.
    pub datagram: Option<Datagram>,
}

impl Received {
    /// What the bytes say; panics when they are not well formed.
    pub fn message(&self) -> &Datagram {
        self.datagram.as_ref().unwrap_or_else(|| panic!("not a CoAP message: {:02x?}", self.bytes))
    }
}

/// A client that does nothing by itself: no copies, no acknowledgements.
pub struct RawClient {
    socket: UdpSocket,
    proxy: SocketAddr,
}

impl RawClient {
    /// A client at a port of its own, talking to `proxy`.
    pub fn new(proxy: SocketAddr) -> Self {
        Self { socket: loopback_socket(proxy), proxy }
    }

    /// A request with a fresh Message ID and token that asks for `uri` through a forward proxy.
    pub fn forward_request(kind: Kind, method: Code, uri: &str) -> Datagram {
        fresh(kind, method).option(option::PROXY_URI, uri)
    }

    /// A request with a fresh Message ID and token for a path of one segment.
    pub fn reverse_request(kind: Kind, method: Code, segment: &str) -> Datagram {
        fresh(kind, method).option(option::URI_PATH, segment)
    }

    /// Sends a message.
    pub fn send(&self, message: &Datagram) -> Instant {
        self.send_bytes(&message.encode())
    }

    /// Sends any bytes.
    pub fn send_bytes(&self, bytes: &[u8]) -> Instant {
        self.socket.send_to(bytes, self.proxy).expect("loopback takes a datagram");
        now()
    }

    /// The next datagram from the proxy, or `None` when none has come by `limit`.
    pub fn receive(&self, limit: Instant) -> Option<Received> {
        receive(&self.socket, limit).map(|(received, from)| {
            assert_eq!(from, self.proxy, "a datagram from elsewhere: {received:?}");
            received
        })
    }

    /// All datagrams that come until `limit`, unanswered.
    pub fn receive_all(&self, limit: Instant) -> Vec<Received> {
        std::iter::from_fn(|| self.receive(limit)).collect()
    }

    /// Sends a request, acknowledges what is confirmable, and returns how it was settled; panics when there
    /// is no final answer within `patience`.
    pub fn settle(&self, request: &Datagram, patience: Duration) -> Settled {
        let sent = self.send(request);
        let mut empty_acknowledgement = None;
        loop {
            let received = self.receive(sent + patience).unwrap_or_else(|| {
                panic!("silence for {patience:?} (empty ACK: {empty_acknowledgement:?}) after {request:?}")
            });
            let message = received.message().clone();
            if message.code == EMPTY {
                assert_eq!(message, Datagram::empty(Kind::Acknowledgement, request.message_id));
                assert_eq!(empty_acknowledgement, None, "a second empty ACK without a repeat");
                empty_acknowledgement = Some(received.at - sent);
                continue;
            }
            if message.kind == Kind::Confirmable {
                self.send(&Datagram::empty(Kind::Acknowledgement, message.message_id));
            }
            return Settled { sent, after: received.at - sent, empty_acknowledgement, answer: message };
        }
    }
}

/// How a request ended.
#[derive(Clone, Debug)]
pub struct Settled {
    /// When the request left.
    pub sent: Instant,
    /// How much later the final answer came.
    pub after: Duration,
    /// How much later the empty Acknowledgement came, if any.
    pub empty_acknowledgement: Option<Duration>,
    /// The final answer.
    pub answer: Datagram,
}

/// What a script sends, and how long after the datagram it replies to.
#[derive(Clone, Debug)]
pub struct Reply {
    after: Duration,
    bytes: Vec<u8>,
}

impl Reply {
    /// A message at once.
    pub fn now(message: &Datagram) -> Self {
        Self::later(Duration::ZERO, message)
    }

    /// A message after a while.
    pub fn later(after: Duration, message: &Datagram) -> Self {
        Self { after, bytes: message.encode() }
    }

    /// Any bytes at once.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self { after: Duration::ZERO, bytes }
    }
}

/// An origin that follows a script and remembers every datagram.
pub struct RawOrigin {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RawOrigin {
    /// Starts an origin. `script` is called with each well-formed request, copies included.
    pub fn start(family: Family, script: impl FnMut(&Datagram) -> Vec<Reply> + Send + 'static) -> Self {
        Self::start_at(family.address(0), script)
    }

    /// Starts one at an address of its own.
    pub fn start_at(
        address: SocketAddr,
        mut script: impl FnMut(&Datagram) -> Vec<Reply> + Send + 'static,
    ) -> Self {
        let socket = UdpSocket::bind(address).expect("nobody else is there");
        let address = socket.local_addr().expect("a bound socket has an address");
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (log, stopped) = (Arc::clone(&received), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut due: Vec<(Instant, SocketAddr, Vec<u8>)> = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let now = now();
                due.retain(|(at, to, bytes)| {
                    let keep = *at > now;
                    if !keep {
                        socket.send_to(bytes, to).expect("loopback takes a datagram");
                    }
                    keep
                });
                let soon = now + Duration::from_millis(20);
                let limit = due.iter().map(|(at, ..)| *at).fold(soon, Instant::min);
                let Some((datagram, from)) = receive(&socket, limit) else { continue };
                let request = datagram.datagram.clone().filter(|message| (1..32).contains(&message.code.0));
                let at = datagram.at;
                log.lock().expect("no holder panics").push(datagram);
                let replies = request.map(|request| script(&request)).unwrap_or_default();
                due.extend(replies.into_iter().map(|reply| (at + reply.after, from, reply.bytes)));
            }
        });
        Self { address, received, stop, thread: Some(thread) }
    }

    /// An origin that never answers.
    pub fn black_hole(family: Family) -> Self {
        Self::start(family, |_| Vec::new())
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URI with a path.
    pub fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.address)
    }

    /// All datagrams so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().expect("the origin's script does not panic").clone()
    }

    /// The requests so far, copies included.
    pub fn requests(&self) -> Vec<Datagram> {
        let received = self.received();
        let messages = received.into_iter().filter_map(|received| received.datagram);
        messages.filter(|message| (1..32).contains(&message.code.0)).collect()
    }

    /// The first message that satisfies `wanted`, when it has come by `limit`.
    pub fn wait_for(&self, limit: Instant, wanted: impl Fn(&Datagram) -> bool) -> Option<Received> {
        loop {
            let received = self.received();
            let found = received.into_iter().find(|one| one.datagram.as_ref().is_some_and(&wanted));
            if found.is_some() || now() > limit {
                return found;
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    }
}

impl Drop for RawOrigin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            ended.expect("dropped once").expect("the origin's script does not panic");
        }
    }
}

/// A request with a Message ID and an eight-byte token that no other request of this process has.
fn fresh(kind: Kind, method: Code) -> Datagram {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let token = (u64::from(std::process::id()) << 32 | u64::from(number)).to_be_bytes();
    Datagram::new(kind, method, number as u16 ^ 0x5a00, &token)
}

fn loopback_socket(peer: SocketAddr) -> UdpSocket {
    let family = if peer.is_ipv4() { Family::V4 } else { Family::V6 };
    UdpSocket::bind(family.address(0)).expect("loopback has a free port")
}

fn receive(socket: &UdpSocket, limit: Instant) -> Option<(Received, SocketAddr)> {
    // Longer than any datagram that the proxy takes or sends.
    let mut buffer = [0; 4096];
    loop {
        let left = limit.saturating_duration_since(now());
        if left.is_zero() {
            return None;
        }
        socket.set_read_timeout(Some(left)).expect("the timeout is not zero");
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                let bytes = buffer[..length].to_vec();
                let datagram = Datagram::decode(&bytes);
                return Some((Received { at: now(), bytes, datagram }, from));
            }
            Err(error) => {
                // A process that was stopped and continued is interrupted.
                let waited = matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                );
                assert!(waited, "receive fails: {error}");
            }
        }
    }
}
