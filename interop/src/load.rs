//! Many requests at a steady rate, and what became of each.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::clock::now;
use crate::datagram::{Code, Datagram, EMPTY, Kind};

/// ACK_TIMEOUT and MAX_RETRANSMIT of RFC 7252 §4.8.
const ACK_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_RETRANSMIT: u32 = 4;

/// A request and what came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When its first copy left.
    pub sent: Instant,
    /// Copies beside the first.
    pub copies: u32,
    /// Whether an empty Acknowledgement came.
    pub acknowledged: bool,
    /// What it was answered with: code, text, and when.
    pub answer: Option<(Code, String, Instant)>,
    /// Another answer than that, or the same without having been asked for again.
    pub second: Option<String>,
}

struct Request {
    socket: usize,
    datagram: Datagram,
    repeat_at: Instant,
    timeout: Duration,
    /// What answered it, and how many such messages came.
    answered_by: Option<(Datagram, u32)>,
    outcome: Outcome,
}

/// Clients that ask until they are stopped.
pub struct Load {
    /// How long answers are waited for, once nothing new is to be sent.
    patience: Arc<Mutex<Option<Duration>>>,
    thread: JoinHandle<Vec<Outcome>>,
}

impl Load {
    /// Starts `clients` that make `rate` Confirmable requests a second together; `make` gets the number of
    /// each and fills in method and options.
    pub fn start(
        proxy: SocketAddr,
        clients: usize,
        rate: u32,
        make: impl Fn(u64, Datagram) -> Datagram + Send + 'static,
    ) -> Self {
        let patience = Arc::new(Mutex::new(None));
        let told = Arc::clone(&patience);
        let sockets: Vec<_> = (0..clients).map(|_| client(proxy)).collect();
        let thread = thread::spawn(move || run(&sockets, Duration::from_secs(1) / rate, &make, &told));
        Self { patience, thread }
    }

    /// Sends nothing new any more and waits for answers, so long at the most.
    pub fn finish(self, patience: Duration) -> Vec<Outcome> {
        *self.patience.lock().expect("the load does not panic") = Some(patience);
        self.thread.join().expect("the load does not panic")
    }
}

fn client(proxy: SocketAddr) -> UdpSocket {
    let any = if proxy.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let socket = UdpSocket::bind(any).expect("loopback has ports");
    socket.connect(proxy).expect("loopback can be reached");
    socket.set_nonblocking(true).expect("a socket can be made not to wait");
    socket
}

fn run(
    sockets: &[UdpSocket],
    between: Duration,
    make: &dyn Fn(u64, Datagram) -> Datagram,
    patience: &Mutex<Option<Duration>>,
) -> Vec<Outcome> {
    let mut requests: Vec<Request> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut next = now();
    let mut end = None;
    loop {
        let at = now();
        let patience = *patience.lock().expect("nobody panics");
        if let Some(patience) = patience {
            let end = *end.get_or_insert(at + patience);
            if open.is_empty() || at > end {
                return requests.into_iter().map(|request| request.outcome).collect();
            }
        } else {
            while next <= at {
                next += between;
                let number = requests.len();
                let request = issue(number, number % sockets.len(), make);
                send(sockets, &request);
                requests.push(request);
                open.push(number);
            }
        }
        for (socket, number) in sockets.iter().zip(0..) {
            receive(socket, number, &mut requests);
        }
        open.retain(|&number| {
            let request = &mut requests[number];
            let is_open = request.answered_by.is_none();
            if is_open && !request.outcome.acknowledged && request.repeat_at <= at {
                request.timeout *= 2;
                request.repeat_at = at + request.timeout;
                if request.outcome.copies < MAX_RETRANSMIT {
                    request.outcome.copies += 1;
                    send(sockets, request);
                }
            }
            is_open
        });
        thread::park_timeout(Duration::from_micros(500));
    }
}

fn issue(number: usize, socket: usize, make: &dyn Fn(u64, Datagram) -> Datagram) -> Request {
    let (number, message_id) = (number as u64, number as u16);
    let plain = Datagram::new(Kind::Confirmable, EMPTY, message_id, &number.to_be_bytes());
    let sent = now();
    let outcome = Outcome { sent, copies: 0, acknowledged: false, answer: None, second: None };
    Request {
        socket,
        datagram: make(number, plain),
        repeat_at: sent + ACK_TIMEOUT,
        timeout: ACK_TIMEOUT,
        answered_by: None,
        outcome,
    }
}

fn send(sockets: &[UdpSocket], request: &Request) {
    // What nobody listens for any more is refused here; the outcome says that it was not answered.
    let _ = sockets[request.socket].send(&request.datagram.encode());
}

fn receive(socket: &UdpSocket, number: usize, requests: &mut [Request]) {
    let mut buffer = [0; 2048];
    loop {
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
            Err(_) => return,
        };
        let message = Datagram::decode(&buffer[..length]).expect("coapway sends CoAP");
        if message.kind == Kind::Confirmable {
            let _ = socket.send(&Datagram::empty(Kind::Acknowledgement, message.message_id).encode());
        }
        if message.code == EMPTY {
            let mut of_client = requests.iter_mut().filter(|request| request.socket == number);
            if let Some(request) = of_client.rfind(|one| one.datagram.message_id == message.message_id) {
                request.outcome.acknowledged = true;
            }
            continue;
        }
        let token = message.token.as_slice().try_into().map(u64::from_be_bytes);
        let request = token.ok().and_then(|token| requests.get_mut(token as usize));
        take(request.expect("an answer to a request of ours"), message);
    }
}

fn take(request: &mut Request, message: Datagram) {
    let Request { answered_by, outcome, .. } = request;
    match answered_by {
        None => {
            let text = String::from_utf8_lossy(&message.payload).into_owned();
            outcome.answer = Some((message.code, text, now()));
            *answered_by = Some((message, 1));
        }
        // The reply to a repeat of ours, or a copy of a separate response that crossed with our
        // Acknowledgement.
        Some((first, times)) => {
            *times += 1;
            let is_asked_for = message.kind == Kind::Confirmable || *times <= 1 + outcome.copies;
            if *first != message || !is_asked_for {
                outcome.second.get_or_insert(format!("{message:?} after {first:?}"));
            }
        }
    }
}

/// How many requests were answered with which code.
pub fn codes(outcomes: &[Outcome]) -> BTreeMap<u8, usize> {
    let mut codes = BTreeMap::new();
    for (code, ..) in outcomes.iter().filter_map(|outcome| outcome.answer.as_ref()) {
        *codes.entry(code.0).or_insert(0) += 1;
    }
    codes
}
