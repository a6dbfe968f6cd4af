//! An endpoint, its clock, and what comes and goes.

use std::time::Duration;

use coapway_endpoint::{
    AnswerKind, Endpoint, EndpointParameters, Event, Gate, Local, Peer, Received, Schedule, Seed, SocketId,
    Trace, TransmissionParameters,
};
use coapway_message::{Code, Content, Datagram, ExchangeId, Failure, MessageType, datagram};
use coapway_time::Instant;

pub(crate) const PEER: Peer = Peer {
    local: Local { socket: SocketId(0), address: None },
    remote: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5683),
};
pub(crate) const OTHER: Peer = Peer {
    remote: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5684),
    ..PEER
};

pub(crate) fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

pub(crate) fn bytes(
    message_type: MessageType,
    message_id: u16,
    token: &[u8],
    content: &Content<'_>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    datagram::encode(&mut bytes, message_type, message_id, token, content);
    bytes
}

pub(crate) struct Hop {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: Instant,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Got {
    Nothing,
    Request(ExchangeId),
    Response(ExchangeId, AnswerKind, Code),
}

impl Hop {
    pub(crate) fn new() -> Self {
        Self::with(EndpointParameters::default())
    }

    pub(crate) fn with(parameters: EndpointParameters) -> Self {
        Self { endpoint: Endpoint::new(parameters, Seed::from_number(1)), now: Instant::ZERO }
    }

    pub(crate) fn receive_from(&mut self, peer: Peer, bytes: &[u8]) -> Got {
        self.receive_through(Gate::Take, peer, bytes)
    }

    pub(crate) fn receive_through(&mut self, gate: Gate, peer: Peer, bytes: &[u8]) -> Got {
        let got = match self.endpoint.handle_datagram(&peer, bytes, self.now, || gate) {
            Received::Nothing => Got::Nothing,
            Received::Request { exchange, .. } => Got::Request(exchange),
            Received::Response { exchange, kind, content, .. } => Got::Response(exchange, kind, content.code),
        };
        self.endpoint.check_invariants();
        got
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Got {
        self.receive_from(PEER, bytes)
    }

    pub(crate) fn sent(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.endpoint.poll_transmit().map(|transmit| transmit.datagram.to_vec()))
            .collect()
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }

    /// Lets time pass until `until` and returns what was sent, with the time in ms.
    pub(crate) fn wait(&mut self, until: Instant) -> Vec<(u64, Vec<u8>)> {
        let mut sent = Vec::new();
        while let Some(wake) = self.endpoint.poll_timeout().filter(|wake| *wake <= until) {
            self.now = self.now.max(wake);
            self.endpoint.handle_timeout(self.now);
            self.endpoint.check_invariants();
            let millis = self.now.as_micros() / 1000;
            sent.extend(self.sent().into_iter().map(|datagram| (millis, datagram)));
        }
        self.now = until;
        sent
    }

    pub(crate) fn request(&mut self, confirmable: bool) -> (ExchangeId, Vec<u8>) {
        let schedule = Schedule::new(&TransmissionParameters::default(), self.now);
        let exchange = self
            .endpoint
            .send_request(&PEER, confirmable, None, &Content::bare(Code::GET), &schedule, self.now)
            .expect("Message IDs are free");
        (exchange, self.sent().pop().expect("the first copy leaves at once"))
    }
}

pub(crate) fn ids(datagram: &[u8]) -> (u16, Vec<u8>) {
    let datagram = Datagram::parse(datagram).expect("valid");
    (datagram.message_id, datagram.token.to_vec())
}

pub(crate) fn failure(events: &[Event]) -> Option<(Failure, &Trace)> {
    events.iter().find_map(|event| match event {
        Event::Failed { failure, trace, .. } => Some((*failure, &**trace)),
        Event::EmptyAckSent { .. }
        | Event::Repeated { .. }
        | Event::Delivered { .. }
        | Event::Acknowledged { .. }
        | Event::Retransmitted { .. }
        | Event::Exhausted { .. }
        | Event::AcknowledgedAgain { .. }
        | Event::Alive { .. } => None,
    })
}

pub(crate) const RESPONSE: Content<'static> = Content::bare(Code::CONTENT);

/// A request of a peer.
pub(crate) fn request(message_type: MessageType, message_id: u16, token: &[u8]) -> Vec<u8> {
    bytes(message_type, message_id, token, &Content::bare(Code::GET))
}

pub(crate) fn empty_ack(message_id: u16) -> Vec<u8> {
    datagram::empty(MessageType::Acknowledgement, message_id).to_vec()
}

/// A response of so many bytes when it goes out with a token of `token` bytes.
pub(crate) fn payload_for(bytes: usize, token: usize) -> Vec<u8> {
    vec![b'x'; bytes - 4 - token - 1]
}
