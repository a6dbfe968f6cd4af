//! One exchange over one socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::mpsc;
use std::time::Duration;

use coapway_endpoint::{
    Endpoint, EndpointParameters, Event, Gate, Local, Peer, Received, Schedule, Seed, TransmissionParameters,
};
use coapway_message::uri::Host;
use coapway_message::{Code, Content, ExchangeId, OwnedContent};
use coapway_time::Instant;

use super::outcome::{Answer, Ended, What, Why};
use super::request::Destination;
use super::{Console, Trouble, report};
use crate::clock::Clock;

/// The largest datagram there is.
const MAX_DATAGRAM: usize = 65_535;

/// Asks `destination` and waits for the answer.
///
/// Units:  `timeout` is for everything, the look-up of a name included.
/// Errors: why there is no answer. Where a name has several addresses, that of the last one tried.
/// Source: RFC 7252 §4.2, §4.3.
pub(super) fn hold(
    destination: &Destination,
    what: What<'_>,
    timeout: Duration,
    console: &mut Console<'_>,
) -> Result<Answer, Trouble> {
    let clock = Clock::start();
    let deadline = clock.now() + timeout;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Trouble::failed(format!("no randomness: {error}"), ""))?;
    let mut addresses = look_up(destination, timeout)?.into_iter().peekable();
    while let Some(address) = addresses.next() {
        console.tell(format_args!("asking {address}"));
        let ended = match Conversation::open(address, clock, Seed(seed)) {
            Ok(mut conversation) => match conversation.hold(what, deadline, console) {
                Ok(answer) => return Ok(answer),
                Err(ended) => ended,
            },
            Err(error) => Ended { peer: address, why: Why::Socket(error), copies: 0, acknowledged: false },
        };
        let trouble = report::explain(&ended, destination.role, what, timeout);
        if addresses.peek().is_none() || !ended.allows_another_address() {
            return Err(trouble);
        }
        console.tell(trouble.what);
    }
    let what = format!("{} has no address", destination.authority.host);
    Err(Trouble::failed(what, ""))
}

/// The addresses of a host, each once, in the order the system prefers.
fn look_up(destination: &Destination, timeout: Duration) -> Result<Vec<SocketAddr>, Trouble> {
    let authority = &destination.authority;
    let name = match &authority.host {
        Host::Address(address) => return Ok(vec![SocketAddr::new(*address, authority.port)]),
        Host::Name(name) => name,
    };
    // The system's look-up knows no time limit. Its thread ends with the process at the latest.
    let (found, result) = mpsc::channel();
    let target = (name.clone(), authority.port);
    std::thread::spawn(move || {
        let (name, port) = target;
        let _ = found.send((&*name, port).to_socket_addrs());
    });
    let what = match result.recv_timeout(timeout) {
        Ok(Ok(addresses)) => {
            let mut addresses: Vec<_> = addresses.collect();
            addresses.dedup();
            return Ok(addresses);
        }
        Ok(Err(error)) => format!("cannot find {name}: {error}"),
        Err(_) => format!("cannot find {name} within {timeout:?}"),
    };
    Err(Trouble::failed(what, "is the name right? `getent hosts NAME` shows what this machine knows"))
}

/// A connected socket and the message layer on it.
#[derive(Debug)]
struct Conversation {
    socket: UdpSocket,
    peer: Peer,
    endpoint: Endpoint,
    clock: Clock,
}

impl Conversation {
    /// Connects, so that the system tells at once when nobody listens.
    fn open(remote: SocketAddr, clock: Clock, seed: Seed) -> io::Result<Self> {
        let any = match remote {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(remote)?;
        let endpoint = Endpoint::new(EndpointParameters::default(), seed);
        Ok(Self { socket, peer: Peer { local: Local::default(), remote }, endpoint, clock })
    }

    fn hold(
        &mut self,
        what: What<'_>,
        deadline: Instant,
        console: &mut Console<'_>,
    ) -> Result<Answer, Ended> {
        let now = self.clock.now();
        // The protocol's own copies, and ears until the very end.
        let schedule = Schedule::new(&TransmissionParameters::default(), now);
        let schedule = Schedule { last_copy_before: deadline, deadline, ..schedule };
        let exchange = match what {
            What::Request { confirmable, content } => {
                self.endpoint.send_request(self.peer, confirmable, None, &content, schedule, now)
            }
            What::Ping => self.endpoint.send_ping(self.peer, schedule, now),
        }
        .expect("a new endpoint has all its Message IDs");
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            self.send().map_err(|error| self.give_up(exchange, error))?;
            while let Some(event) = self.endpoint.poll_event() {
                if let Some(end) = self.told(event, console) {
                    return end;
                }
            }
            match self.receive(&mut buffer) {
                Ok(None) => self.endpoint.handle_timeout(self.clock.now()),
                Ok(Some(datagram)) => {
                    let now = self.clock.now();
                    match self.endpoint.handle_datagram(self.peer, datagram, now, || Gate::Take) {
                        Received::Nothing => {}
                        Received::Response { content, .. } => {
                            let content = OwnedContent::from(content);
                            // The Acknowledgement of a separate response. When it cannot be sent,
                            // the response is there all the same.
                            let _ = self.send();
                            return Ok(Answer::Response(content));
                        }
                        Received::Request { exchange, .. } => {
                            // Nothing is served here.
                            let _ = self.endpoint.respond(exchange, &Content::bare(Code::NOT_FOUND), now);
                        }
                    }
                }
                Err(error) => return Err(self.give_up(exchange, error)),
            }
        }
    }

    /// Sends what the message layer has to send.
    fn send(&mut self) -> io::Result<()> {
        while let Some(transmit) = self.endpoint.poll_transmit() {
            self.socket.send(transmit.datagram)?;
        }
        Ok(())
    }

    /// Waits for a datagram until the message layer wants to be woken; `None` when it does.
    ///
    /// Errors: the system knows that nobody listens, or cannot receive.
    fn receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        let wake = self.endpoint.poll_timeout().expect("an exchange under way has a timer");
        let wait = wake.since(self.clock.now());
        if wait.is_zero() {
            return Ok(None);
        }
        self.socket.set_read_timeout(Some(wait))?;
        match self.socket.recv(buffer) {
            Ok(length) => Ok(buffer.get(..length)),
            Err(error) if is_only_time(error.kind()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether an event ends the conversation, and how.
    fn told(&self, event: Event, console: &mut Console<'_>) -> Option<Result<Answer, Ended>> {
        let peer = self.peer.remote;
        match event {
            Event::Failed { failure, trace, .. } => {
                let (copies, acknowledged) = (trace.copies.len() as u32, trace.first_ack.is_some());
                return Some(Err(Ended { peer, why: Why::Failure(failure), copies, acknowledged }));
            }
            Event::Alive { round_trip, .. } => return Some(Ok(Answer::Alive { peer, round_trip })),
            Event::Acknowledged { .. } => console.tell("acknowledged; the response comes separately"),
            Event::Retransmitted { copies, timeout, .. } => {
                console.tell(format_args!("no answer in {timeout:.1?}; {copies} copies sent so far"));
            }
            Event::Exhausted { .. }
            | Event::EmptyAckSent { .. }
            | Event::Repeated { .. }
            | Event::Delivered { .. } => {}
        }
        None
    }

    fn give_up(&mut self, exchange: ExchangeId, error: io::Error) -> Ended {
        let trace = self.endpoint.cancel(exchange);
        let (copies, acknowledged) =
            trace.map_or((0, false), |trace| (trace.copies.len() as u32, trace.first_ack.is_some()));
        Ended { peer: self.peer.remote, why: Why::Socket(error), copies, acknowledged }
    }
}

const fn is_only_time(error: io::ErrorKind) -> bool {
    matches!(error, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
