//! One client: its socket, its Message IDs, and the request that it waits for.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::clock;
use crate::coap::{self, ACK, CON, CONTENT, EMPTY, Message, RST};

/// Requests on one source port; 65 536 would bring a Message ID back.
const REQUESTS_PER_PORT: u32 = 60_000;
/// ACK_TIMEOUT and MAX_RETRANSMIT of RFC 7252 §4.8.
const ACK_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_RETRANSMIT: u8 = 4;

/// What a datagram meant to the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The right answer, after so long.
    Answer(Duration),
    /// An answer to the request under way, but not the right one.
    WrongAnswer(String),
    /// Something that no request asked for.
    Stray(String),
    /// An Acknowledgement, or a copy of an earlier answer.
    Nothing,
}

struct Waiting {
    since: Instant,
    repeat_at: Option<Instant>,
    timeout: Duration,
    copies: u8,
}

/// A CoAP client with NSTART = 1.
pub(super) struct Client {
    socket: UdpSocket,
    index: u16,
    base: Vec<u8>,
    mark: u16,
    sequence: u32,
    message_id: u16,
    requests_on_port: u32,
    datagram: Vec<u8>,
    waiting: Option<Waiting>,
}

impl Client {
    pub(super) fn new(index: u16, origin: SocketAddr, socket: UdpSocket) -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self {
            socket,
            index,
            base: format!("coap://{origin}/bench/").into_bytes(),
            mark: (random >> 16) as u16,
            sequence: 0,
            message_id: random as u16,
            requests_on_port: 0,
            datagram: Vec::with_capacity(128),
            waiting: None,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether the next request wants a new source port.
    pub(super) fn needs_port(&self) -> bool {
        self.requests_on_port >= REQUESTS_PER_PORT
    }

    pub(super) fn move_to(&mut self, socket: UdpSocket) {
        self.socket = socket;
        self.requests_on_port = 0;
    }

    /// Sends the next request.
    pub(super) fn issue(&mut self, now: Instant) {
        self.sequence += 1;
        self.requests_on_port += 1;
        self.message_id = self.message_id.wrapping_add(1);
        let name = self.name(self.sequence);
        let mut uri = [0; 64];
        let uri = {
            let (base, rest) = uri.split_at_mut(self.base.len());
            base.copy_from_slice(&self.base);
            rest[..name.len()].copy_from_slice(&name);
            &uri[..self.base.len() + name.len()]
        };
        coap::write_get(&mut self.datagram, self.message_id, self.sequence.to_be_bytes(), uri);
        // ACK_TIMEOUT × 1 to ACK_RANDOM_FACTOR; the clients' Message IDs are random enough.
        let timeout = ACK_TIMEOUT + Duration::from_millis(u64::from(self.message_id % 1000));
        self.waiting = Some(Waiting { since: now, repeat_at: Some(now + timeout), timeout, copies: 0 });
        self.send();
    }

    /// Repeats the request if it is time to; true when it did.
    pub(super) fn repeat(&mut self, now: Instant) -> bool {
        let Some(waiting) = &mut self.waiting else { return false };
        if waiting.repeat_at.is_none_or(|at| at > now) {
            return false;
        }
        if waiting.copies == MAX_RETRANSMIT {
            waiting.repeat_at = None;
            return false;
        }
        waiting.copies += 1;
        waiting.timeout *= 2;
        waiting.repeat_at = Some(now + waiting.timeout);
        self.send();
        true
    }

    /// Takes one datagram from the socket, and acknowledges it if it wants that.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        let length = self.socket.recv(buffer)?;
        let (received, acknowledge) = self.take(buffer.get(..length).unwrap_or_default(), clock::now());
        if let Some(message_id) = acknowledge {
            let _lost = self.socket.send(&coap::empty(ACK, message_id));
        }
        Ok(received)
    }

    /// The verdict, and the Message ID to acknowledge.
    fn take(&mut self, datagram: &[u8], now: Instant) -> (Received, Option<u16>) {
        let Some(message) = Message::parse(datagram) else {
            return (Received::Stray("a datagram that is no CoAP message".into()), None);
        };
        let is_reply = message.message_id == self.message_id;
        match (message.kind, message.code) {
            (RST, _) if is_reply && self.waiting.take().is_some() => {
                (Received::WrongAnswer("the request was reset".into()), None)
            }
            (RST, _) => (Received::Stray("a Reset that belongs to no request".into()), None),
            (ACK, EMPTY) => {
                if let Some(waiting) = self.waiting.as_mut().filter(|_| is_reply) {
                    waiting.repeat_at = None;
                }
                (Received::Nothing, None)
            }
            (CON, _) => (self.judge(&message, true, now), Some(message.message_id)),
            (ACK, _) => (self.judge(&message, is_reply, now), None),
            _ => (self.judge(&message, true, now), None),
        }
    }

    fn judge(&mut self, message: &Message<'_>, id_fits: bool, now: Instant) -> Received {
        let Some(sequence) = message.token.try_into().ok().map(u32::from_be_bytes) else {
            return Received::Stray(format!("a response with the token {:02x?}", message.token));
        };
        let is_right = message.code == CONTENT && message.payload == self.name(sequence);
        if sequence != self.sequence || self.waiting.is_none() {
            let is_old = sequence <= self.sequence;
            return if is_old && is_right {
                Received::Nothing
            } else {
                Received::Stray(format!("{} to no request of this client", described(message)))
            };
        }
        if !id_fits {
            return Received::Stray("an Acknowledgement with another Message ID".into());
        }
        match self.waiting.take() {
            Some(waiting) if is_right => Received::Answer(now - waiting.since),
            _ => {
                let name = String::from_utf8_lossy(&self.name(sequence)).into_owned();
                Received::WrongAnswer(format!("{} where {name} was asked for", described(message)))
            }
        }
    }

    /// 16 bytes that no other request of this or an earlier run has: run, client and number.
    fn name(&self, sequence: u32) -> [u8; 16] {
        let value = u64::from(self.mark) << 48 | u64::from(self.index) << 32 | u64::from(sequence);
        let mut name = [0; 16];
        for (place, byte) in name.iter_mut().enumerate() {
            let digit = (value >> (60 - 4 * place) & 0x0f) as u8;
            *byte = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        }
        name
    }

    fn send(&self) {
        // A full buffer or a refusal is a lost datagram; the request is repeated in time.
        let _lost = self.socket.send(&self.datagram);
    }
}

fn described(message: &Message<'_>) -> String {
    let payload = String::from_utf8_lossy(message.payload);
    format!("{} {:?}", coap::printed(message.code), payload.chars().take(40).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn client(index: u16) -> Client {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        Client::new(index, SocketAddr::from((Ipv4Addr::LOCALHOST, 5683)), socket)
    }

    fn reply(request: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let request = Message::parse(request).expect("a message");
        coap::write_reply(&mut out, &request, CONTENT, payload);
        out
    }

    fn name_in(request: &[u8]) -> Vec<u8> {
        Message::parse(request).and_then(|message| message.last_segment).expect("a path").to_vec()
    }

    #[test]
    fn takes_the_right_answer_once() {
        let (mut client, now) = (client(3), clock::now());
        client.issue(now);
        let answer = reply(&client.datagram, &name_in(&client.datagram));
        let later = now + Duration::from_millis(7);
        assert_eq!(client.take(&answer, later).0, Received::Answer(Duration::from_millis(7)));
        assert_eq!(client.take(&answer, later).0, Received::Nothing);
    }

    #[test]
    fn notices_the_answer_to_another_clients_request() {
        let (mut one, mut other, now) = (client(1), client(2), clock::now());
        one.issue(now);
        other.issue(now);
        let answer = reply(&one.datagram, &name_in(&other.datagram));
        assert!(matches!(one.take(&answer, now).0, Received::WrongAnswer(_)));
        assert!(!one.is_waiting());
    }

    #[test]
    fn notices_other_codes_resets_and_nonsense() {
        let (mut client, now) = (client(1), clock::now());
        client.issue(now);
        let mut answer = reply(&client.datagram, &name_in(&client.datagram));
        answer[1] = 0xa4;
        assert!(matches!(client.take(&answer, now).0, Received::WrongAnswer(text) if text.contains("5.04")));
        client.issue(now);
        let reset = coap::empty(RST, client.message_id);
        assert!(matches!(client.take(&reset, now).0, Received::WrongAnswer(_)));
        assert!(matches!(client.take(b"nonsense", now).0, Received::Stray(_)));
    }

    #[test]
    fn waits_for_a_separate_response_and_acknowledges_it() {
        let (mut client, now) = (client(1), clock::now());
        client.issue(now);
        let name = name_in(&client.datagram);
        assert_eq!(client.take(&coap::empty(ACK, client.message_id), now), (Received::Nothing, None));
        assert!(!client.repeat(now + Duration::from_secs(60)));
        let mut response = reply(&client.datagram, &name);
        response[0] = 0x44;
        response[2..4].copy_from_slice(&[0xab, 0xcd]);
        assert_eq!(client.take(&response, now), (Received::Answer(Duration::ZERO), Some(0xabcd)));
    }

    #[test]
    fn repeats_four_times_with_doubled_timeouts() {
        let (mut client, now) = (client(1), clock::now());
        client.issue(now);
        assert!(!client.repeat(now + Duration::from_millis(1999)));
        let repeated: Vec<u64> =
            (0..200).filter(|seconds| client.repeat(now + Duration::from_secs(*seconds))).collect();
        assert_eq!(repeated.len(), usize::from(MAX_RETRANSMIT));
        assert!(client.is_waiting());
    }

    #[test]
    fn wants_a_new_port_before_a_message_id_comes_back() {
        let (mut client, now) = (client(1), clock::now());
        client.requests_on_port = REQUESTS_PER_PORT - 1;
        assert!(!client.needs_port());
        client.issue(now);
        assert!(client.needs_port());
    }
}
