//! A script for one endpoint: datagrams come, time passes, requests and responses are sent. Whatever
//! happens, its tables agree, it sends well-formed messages only, each exchange ends once, and at the
//! end nothing is left.
//!
//! Input: commands of one byte, each with its arguments; see `Hop::step`.

#![no_main]

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{
    DuplicatesParameters, Endpoint, EndpointParameters, Event, Gate, Local, Peer, Received, Schedule, Seed,
    SocketId, TransmissionParameters,
};
use coapway_fuzz::Script;
use coapway_fuzz::message::{TYPES, message, raw};
use coapway_message::{Code, Content, Datagram, ExchangeId, Failure, MessageType, OptionNumber};
use coapway_time::Instant;
use libfuzzer_sys::fuzz_target;

/// A script is cut here.
const MOST_STEPS: usize = 200;
/// Datagrams that are kept for later steps, in each direction.
const KEPT: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let mut hop = Hop::new();
    let mut script = Script::new(bytes);
    for _ in 0..MOST_STEPS {
        if hop.step(&mut script).is_none() {
            break;
        }
        hop.endpoint.check_invariants();
    }
    hop.end();
});

struct Hop {
    endpoint: Endpoint,
    now: Instant,
    /// The last datagrams it sent, and to whom.
    sent: Vec<(Peer, Vec<u8>)>,
    /// The last datagrams it got, and from whom.
    given: Vec<(Peer, Vec<u8>)>,
    /// Requests of peers that are not answered.
    asked: Vec<ExchangeId>,
    /// Requests and pings of ours that did not end.
    open: HashSet<ExchangeId>,
}

fn peer(number: u8) -> Peer {
    let port = 5683 + u16::from(number % 3);
    Peer {
        local: Local { socket: SocketId(u32::from(number / 3 % 2)), address: None },
        remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
    }
}

impl Hop {
    fn new() -> Self {
        // Little memory, so that scripts come to its end.
        let duplicates = DuplicatesParameters { memory: 2048 };
        let parameters = EndpointParameters { duplicates, ..EndpointParameters::default() };
        Self {
            endpoint: Endpoint::new(parameters, Seed::from_number(1)),
            now: Instant::ZERO,
            sent: Vec::new(),
            given: Vec::new(),
            asked: Vec::new(),
            open: HashSet::new(),
        }
    }

    /// Carries out one command; `None` at the end of the script.
    fn step(&mut self, script: &mut Script<'_>) -> Option<()> {
        let command = script.byte()?;
        match command % 12 {
            // Any bytes.
            0 => {
                let peer = peer(script.byte()?);
                self.give(peer, script.text()?.to_vec());
            }
            // A well-formed message, mostly a request.
            1 => {
                let peer = peer(script.byte()?);
                let (message_type, code) = (*script.pick(&TYPES)?, Code(script.byte()?));
                let message_id = u16::from(script.byte()?);
                let option = (OptionNumber(u16::from(script.byte()?)), script.text()?);
                self.give(peer, message(message_type, message_id, b"\xA1", code, option, script.text()?));
            }
            // An answer to a datagram it sent: same Message ID, same token, or only one of them.
            2 | 3 => {
                let (peer, datagram) = script.pick(&self.sent)?.clone();
                let Ok(datagram) = Datagram::parse(&datagram) else { return Some(()) };
                let mask = script.byte()?;
                let message_id = datagram.message_id ^ u16::from(mask & 1);
                let token = if mask & 2 == 0 { datagram.token } else { b"\xA1" };
                let bytes = if command % 12 == 2 {
                    let code = *script.pick(&[Code::EMPTY, Code::CONTENT, Code::BAD_REQUEST, Code(0x61)])?;
                    let token = if code == Code::EMPTY { &[] } else { token };
                    let message_type = *script.pick(&TYPES)?;
                    message(message_type, message_id, token, code, (OptionNumber::OBSERVE, &[]), &[])
                } else {
                    raw(script, message_id, token)?
                };
                self.give(peer, bytes);
            }
            // A datagram that came before comes again.
            4 => {
                let (peer, bytes) = script.pick(&self.given)?.clone();
                self.give(peer, bytes);
            }
            // Time passes: to the next deadline, or by a power of two in ms, in one go.
            5 => {
                let step = script.byte()? % 24;
                self.now = match (step, self.endpoint.poll_timeout()) {
                    (0, Some(until)) => self.now.max(until),
                    (0, None) => self.now,
                    _ => self.now + Duration::from_millis(1 << (step - 1)),
                };
                self.wake();
            }
            6 => {
                let (peer, confirmable) = (peer(script.byte()?), script.byte()? & 1 == 0);
                self.send_request(peer, confirmable);
            }
            7 => {
                let peer = peer(script.byte()?);
                if let Ok(exchange) = self.endpoint.send_ping(&peer, &self.schedule(), self.now) {
                    assert!(self.open.insert(exchange));
                }
                self.drain(1);
            }
            8 => {
                let exchange = *script.pick(&self.asked)?;
                let payload = script.text()?;
                self.respond(exchange, payload);
            }
            9 => {
                let mut open: Vec<_> = self.open.iter().copied().collect();
                open.sort();
                let exchange = *script.pick(&open)?;
                self.open.remove(&exchange);
                assert!(self.endpoint.cancel(exchange).is_some());
                self.drain(0);
            }
            // The network says that a datagram did not arrive, and quotes some of it.
            10 => {
                let (peer, datagram) = script.pick(&self.sent)?.clone();
                let quoted = datagram.get(..usize::from(script.byte()?)).unwrap_or(&datagram);
                self.endpoint.handle_unreachable(&peer, quoted, Failure::Unreachable, self.now);
                self.drain(0);
            }
            // A request under a small Message ID, so that scripts reuse it.
            _ => {
                let peer = peer(script.byte()?);
                let (message_type, code) =
                    (*script.pick(&TYPES[..2])?, *script.pick(&[Code::GET, Code::POST])?);
                let message_id = u16::from(script.byte()? % 8);
                let payload = script.text()?;
                let option = (OptionNumber::URI_PATH, &b"a"[..]);
                self.give(peer, message(message_type, message_id, b"\xA1", code, option, payload));
            }
        }
        Some(())
    }

    fn schedule(&self) -> Schedule {
        Schedule::new(&TransmissionParameters::default(), self.now)
    }

    fn send_request(&mut self, peer: Peer, confirmable: bool) {
        let content = Content::bare(Code::GET);
        // Every other one has a Message ID of its own for each copy.
        let schedule = Schedule { fresh_ids: self.open.len() % 2 == 1, ..self.schedule() };
        let sent = self.endpoint.send_request(&peer, confirmable, None, &content, &schedule, self.now);
        if let Ok(exchange) = sent {
            assert!(self.open.insert(exchange), "a name is given once");
        }
        self.drain(1);
    }

    fn give(&mut self, peer: Peer, bytes: Vec<u8>) {
        match self.endpoint.handle_datagram(&peer, &bytes, self.now, || Gate::Take) {
            Received::Nothing => {}
            Received::Request { exchange, .. } => {
                assert!(!self.asked.contains(&exchange), "a request is told once");
                self.asked.push(exchange);
            }
            Received::Response { exchange, .. } => {
                assert!(self.open.remove(&exchange), "an exchange ends once");
            }
        }
        // At most an Acknowledgement and a response that is drawn anew.
        self.drain(2);
        keep(&mut self.given, (peer, bytes));
    }

    fn respond(&mut self, exchange: ExchangeId, payload: &[u8]) {
        self.asked.retain(|&other| other != exchange);
        let content = Content { payload, ..Content::bare(Code::CONTENT) };
        let _ = self.endpoint.respond(exchange, &content, self.now);
        assert!(self.endpoint.respond(exchange, &content, self.now).is_err(), "a request is answered once");
        self.drain(1);
    }

    fn wake(&mut self) {
        let most = self.endpoint.outstanding() + self.endpoint.pending_requests();
        while self.endpoint.poll_timeout().is_some_and(|until| until <= self.now) {
            self.endpoint.handle_timeout(self.now);
            self.drain(most);
        }
    }

    /// Takes out all there is; `most` datagrams may have been sent.
    fn drain(&mut self, most: usize) {
        let mut count = 0;
        while let Some(transmit) = self.endpoint.poll_transmit() {
            count += 1;
            let datagram = Datagram::parse(transmit.datagram).expect("what it sends is well-formed");
            let empty = datagram.content.code == Code::EMPTY;
            assert!(empty || datagram.message_type != MessageType::Reset, "a Reset is empty");
            keep(&mut self.sent, (*transmit.peer, transmit.datagram.to_vec()));
        }
        assert!(count <= most, "{count} datagrams at once");
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Failed { exchange, .. } | Event::Alive { exchange, .. } => {
                    assert!(self.open.remove(&exchange), "an exchange ends once");
                }
                _ => {}
            }
        }
        assert_eq!(self.endpoint.pending_requests(), self.asked.len());
        assert!(self.endpoint.outstanding() >= self.open.len());
    }

    /// All requests are answered, and time passes until nothing is left to wait for.
    fn end(&mut self) {
        while let Some(exchange) = self.asked.last().copied() {
            self.respond(exchange, &[]);
        }
        let mut wakes = 0;
        while let Some(until) = self.endpoint.poll_timeout() {
            self.now = self.now.max(until);
            self.wake();
            self.endpoint.check_invariants();
            wakes += 1;
            assert!(wakes < 100_000, "waits for ever");
        }
        assert!(self.open.is_empty() && self.endpoint.outstanding() == 0, "something never ends");
    }
}

fn keep(list: &mut Vec<(Peer, Vec<u8>)>, item: (Peer, Vec<u8>)) {
    if list.len() == KEPT {
        list.remove(0);
    }
    list.push(item);
}
