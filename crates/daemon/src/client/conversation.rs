//! Exchanges over one socket.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc;
use std::time::Duration;

use coapway_endpoint::{
    Endpoint, EndpointParameters, Event, Gate, Local, Peer, Received, Schedule, Seed, TransmissionParameters,
};
use coapway_message::uri::Host;
use coapway_message::{
    Code, Content, Datagram, ExchangeId, MessageType, OptionNumber, OwnedContent, Token, datagram,
};
use coapway_time::Instant;
use tokio::net::UdpSocket;

use super::outcome::{Answer, Ended, What, Why};
use super::request::Destination;
use super::{Console, Trouble, report};
use crate::clock::Clock;

/// The largest datagram there is.
const MAX_DATAGRAM: usize = 65_535;

/// Asks `destination` and waits for the answer; the conversation can go on.
///
/// Units:  `timeout` is for everything, the look-up of a name included.
/// Errors: why there is no answer. Where a name has several addresses, that of the last one tried.
/// Source: RFC 7252 §4.2, §4.3.
pub(super) async fn hold(
    destination: &Destination,
    what: What<'_>,
    timeout: Duration,
    console: &mut Console<'_>,
) -> Result<(Conversation, Answer), Trouble> {
    let clock = Clock::start();
    let deadline = clock.now() + timeout;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Trouble::failed(format!("no randomness: {error}"), ""))?;
    let mut addresses = look_up(destination, timeout)?.into_iter().peekable();
    while let Some(address) = addresses.next() {
        console.tell(format_args!("asking {address}"));
        let ended = match Conversation::open(address, clock, Seed(seed)).await {
            Ok(mut conversation) => match conversation.hold(what, deadline, console).await {
                Ok(answer) => return Ok((conversation, answer)),
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
pub(super) struct Conversation {
    socket: UdpSocket,
    peer: Peer,
    endpoint: Endpoint,
    seed: Seed,
    begun: u64,
    clock: Clock,
    /// Of the last answer.
    token: Token,
    /// Whether notifications with that token are still welcome.
    observing: bool,
}

impl Conversation {
    /// Connects, so that the system tells at once when nobody listens.
    async fn open(remote: SocketAddr, clock: Clock, seed: Seed) -> io::Result<Self> {
        let any = match remote {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(remote).await?;
        let endpoint = Endpoint::new(EndpointParameters::default(), seed);
        let peer = Peer { local: Local::default(), remote };
        Ok(Self { socket, peer, endpoint, seed, begun: 0, clock, token: Token::new(&[]), observing: true })
    }

    /// Whom it is held with.
    pub(super) const fn remote(&self) -> SocketAddr {
        self.peer.remote
    }

    /// What the clock says.
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Asks once more, with the token of the last answer (RFC 7641 §3.3.1, §3.6).
    pub(super) async fn ask_again(
        &mut self,
        content: Content<'_>,
        confirmable: bool,
        timeout: Duration,
        console: &mut Console<'_>,
    ) -> Result<Answer, Ended> {
        // A message layer lets a token rest after use. Another one knows nothing of it.
        self.begun += 1;
        self.endpoint = Endpoint::new(EndpointParameters::default(), self.seed.part(self.begun));
        let (deadline, token) = (self.now() + timeout, self.token.clone());
        let what = What::Request { confirmable, token: Some(token.as_bytes()), content };
        self.hold(what, deadline, console).await
    }

    /// Rejects notifications from now on.
    pub(super) const fn stop_observing(&mut self) {
        self.observing = false;
    }

    async fn hold(
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
            What::Request { confirmable, token, content } => {
                self.endpoint.send_request(&self.peer, confirmable, token, &content, &schedule, now)
            }
            What::Ping => self.endpoint.send_ping(&self.peer, &schedule, now),
        }
        .expect("a new endpoint has all its Message IDs");
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            self.send().await.map_err(|error| self.give_up(exchange, error))?;
            while let Some(event) = self.endpoint.poll_event() {
                if let Some(end) = self.told(event, console) {
                    return end;
                }
            }
            let wake = self.endpoint.poll_timeout().expect("an exchange under way has a timer");
            match self.receive(Some(wake), &mut buffer).await {
                Ok(None) => self.endpoint.handle_timeout(self.clock.now()),
                Ok(Some(datagram)) => match self.take(datagram).await {
                    Ok(Some(content)) => return Ok(Answer::Response(content)),
                    Ok(None) => {}
                    Err(error) => return Err(self.give_up(exchange, error)),
                },
                Err(error) => return Err(self.give_up(exchange, error)),
            }
        }
    }

    /// Waits for the next notification until `until`; `None` when none came.
    ///
    /// What is Confirmable is acknowledged, or rejected when it cannot be understood, which ends the
    /// observation at the server.
    /// Errors: the system knows that nobody listens, or cannot receive.
    /// Source: RFC 7641 §3.5.
    pub(super) async fn notification(&mut self, until: Option<Instant>) -> io::Result<Option<OwnedContent>> {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            let Some(bytes) = self.receive(until, &mut buffer).await? else { return Ok(None) };
            match Datagram::parse(bytes) {
                Ok(datagram) if self.is_notification(&datagram) => {
                    let reply = match report::unknown_critical(&datagram.content) {
                        None => MessageType::Acknowledgement,
                        Some(_) => MessageType::Reset,
                    };
                    if datagram.message_type == MessageType::Confirmable {
                        self.socket.send(&datagram::empty(reply, datagram.message_id)).await?;
                    }
                    return Ok(Some(datagram.content.into()));
                }
                Ok(_) | Err(_) => {
                    self.take(bytes).await?;
                    self.send().await?;
                }
            }
        }
    }

    /// Whether a message answers once more what was answered last, with or without Observe.
    fn is_notification(&self, datagram: &Datagram<'_>) -> bool {
        matches!(datagram.message_type, MessageType::Confirmable | MessageType::NonConfirmable)
            && matches!(datagram.content.code.class(), 2..=5)
            && datagram.token == self.token.as_bytes()
    }

    /// Takes a datagram; a response is handed out.
    async fn take(&mut self, bytes: &[u8]) -> io::Result<Option<OwnedContent>> {
        if !self.observing
            && let Ok(datagram) = Datagram::parse(bytes)
            && self.is_notification(&datagram)
            && datagram.content.options.first(OptionNumber::OBSERVE).is_some()
        {
            // Also when it is Non-confirmable (RFC 7641 §3.6).
            self.socket.send(&datagram::empty(MessageType::Reset, datagram.message_id)).await?;
            return Ok(None);
        }
        let now = self.clock.now();
        match self.endpoint.handle_datagram(&self.peer, bytes, now, || Gate::Take) {
            Received::Nothing => Ok(None),
            Received::Response { exchange, content, .. } => {
                if let Some(course) = self.endpoint.ended(exchange) {
                    self.token = Token::new(course.token());
                }
                // The Acknowledgement of a separate response. When it cannot be sent, the response is
                // there all the same.
                let _ = self.send().await;
                Ok(Some(content.into()))
            }
            Received::Request { exchange, .. } => {
                // Nothing is served here.
                let _ = self.endpoint.respond(exchange, &Content::bare(Code::NOT_FOUND), now);
                Ok(None)
            }
        }
    }

    /// Sends what the message layer has to send.
    async fn send(&mut self) -> io::Result<()> {
        while let Some(transmit) = self.endpoint.poll_transmit() {
            self.socket.send(transmit.datagram).await?;
        }
        Ok(())
    }

    /// Waits for a datagram until `until`; `None` when none came.
    ///
    /// Errors: the system knows that nobody listens, or cannot receive.
    async fn receive<'b>(
        &self,
        until: Option<Instant>,
        buffer: &'b mut [u8],
    ) -> io::Result<Option<&'b [u8]>> {
        let length = match until {
            None => self.socket.recv(buffer).await?,
            Some(until) => {
                let until = self.clock.in_runtime(until);
                match tokio::time::timeout_at(until, self.socket.recv(buffer)).await {
                    Ok(length) => length?,
                    Err(_) => return Ok(None),
                }
            }
        };
        Ok(buffer.get(..length))
    }

    /// Whether an event ends the exchange, and how.
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
            | Event::AcknowledgedAgain { .. }
            | Event::EmptyAckSent { .. }
            | Event::Repeated { .. }
            | Event::Delivered { .. } => {}
        }
        None
    }

    fn give_up(&mut self, exchange: ExchangeId, error: io::Error) -> Ended {
        let course = self.endpoint.cancel(exchange);
        let (copies, acknowledged) =
            course.map_or((0, false), |course| (course.copies(), course.first_ack().is_some()));
        Ended { peer: self.peer.remote, why: Why::Socket(error), copies, acknowledged }
    }
}
