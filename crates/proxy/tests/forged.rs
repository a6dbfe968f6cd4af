//! Messages that somebody forges, on both sides: each is counted, none is taken for an answer
//! (RFC 7252 §5.3.1, §5.3.2, §11.4).

use std::net::SocketAddr;

use coapway_endpoint::{EndpointParameters, Local, Nstart, Seed, SocketId};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, Datagram, MessageType, Options, datagram};
use coapway_proxy::{Input, Limits, Listening, Output, Parameters, Proxy, SocketRole, UpstreamParameters};
use coapway_relay::{Route, Upstream, UpstreamId};
use coapway_time::Instant;

const EACH: u16 = 1000;
const LISTENER: SocketId = SocketRole::Listener(0).socket();
const CLIENT: ([u8; 4], u16) = ([10, 1, 0, 1], 40_000);
const ORIGIN: ([u8; 4], u16) = ([10, 2, 0, 1], 5683);

struct Bench {
    proxy: Proxy,
    now: Instant,
    to_client: Vec<Vec<u8>>,
    to_origin: Vec<(SocketId, Vec<u8>)>,
}

impl Bench {
    fn new() -> Self {
        let origin = SocketAddr::from(ORIGIN);
        let authority = Authority { host: Host::Address(origin.ip()), port: origin.port() };
        let upstreams = [("default", None), ("origin", Some(authority))];
        let upstreams = upstreams.map(|(name, authority)| Upstream { name: name.into(), authority });
        let parameters = Parameters {
            downstream: EndpointParameters::default(),
            upstreams: vec![
                UpstreamParameters { nstart: Nstart::Fixed(8), ..UpstreamParameters::default() };
                2
            ],
            relay: coapway_relay::Parameters {
                upstreams: upstreams.into(),
                routes: vec![Route { host: None, path: Vec::new(), upstream: UpstreamId(1), strip: false }],
                trusted: vec!["10.1.0.0/16".parse().expect("a network")],
                ..coapway_relay::Parameters::default()
            },
            answer_within: None,
            patience: coapway_proxy::Patience::Off,
            limits: Limits::default(),
        };
        let proxy = Proxy::new(parameters, Listening::default(), Seed::from_number(1));
        Self { proxy, now: Instant::ZERO, to_client: Vec::new(), to_origin: Vec::new() }
    }

    fn receive(&mut self, socket: SocketId, remote: ([u8; 4], u16), bytes: &[u8]) {
        let (local, remote) = (Local { socket, address: None }, remote.into());
        self.now += std::time::Duration::from_micros(50);
        self.proxy.handle_input(Input::Datagram { local, remote, bytes, truncated: false }, self.now);
        self.proxy.check_invariants();
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    let bytes = transmit.datagram.to_vec();
                    match transmit.peer.local.socket {
                        LISTENER => self.to_client.push(bytes),
                        socket => self.to_origin.push((socket, bytes)),
                    }
                }
                Output::Event(_) | Output::Records(_) => {}
                Output::LookUp { .. } => panic!("nothing is looked up"),
                Output::Wait { .. } => return,
            }
        }
    }

    /// The client asks; returns our socket towards the origin, Message ID and token of what left.
    fn ask(&mut self, message_id: u16, token: &[u8]) -> (SocketId, u16, Vec<u8>) {
        let mut bytes = Vec::new();
        let content = Content::bare(Code::GET);
        datagram::encode(&mut bytes, MessageType::Confirmable, message_id, token, &content);
        self.receive(LISTENER, CLIENT, &bytes);
        let (socket, bytes) = self.to_origin.pop().expect("a request");
        let left = Datagram::parse(&bytes).expect("well formed");
        (socket, left.message_id, left.token.to_vec())
    }

    /// The payload of all that the client got since the last call, under which token.
    fn heard(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let heard = std::mem::take(&mut self.to_client);
        let heard = heard.iter().map(|bytes| Datagram::parse(bytes).expect("well formed"));
        heard.map(|one| (one.token.to_vec(), one.content.payload.to_vec())).collect()
    }
}

fn response(kind: MessageType, message_id: u16, token: &[u8], payload: &[u8]) -> Vec<u8> {
    let content = Content { code: Code::CONTENT, options: Options::NONE, payload };
    let mut bytes = Vec::new();
    datagram::encode(&mut bytes, kind, message_id, token, &content);
    bytes
}

#[test]
fn a_thousand_of_each_kind_are_counted_one_by_one_on_both_sides_and_the_true_answer_arrives() {
    let mut bench = Bench::new();
    let (socket, asked, token) = bench.ask(7, b"true");
    let wrong = |number: u16| {
        [&token[..6], &(u16::from_be_bytes([token[6], token[7]]) ^ number).to_be_bytes()].concat()
    };
    for number in 1..=EACH {
        let other = asked.wrapping_add(number);
        for (socket, from) in [(socket, ORIGIN), (LISTENER, CLIENT)] {
            // Responses: a wrong token, in the Acknowledgement a wrong token and a wrong Message ID.
            let wrong = wrong(number);
            for bytes in [
                response(MessageType::NonConfirmable, other, &wrong, b"forged"),
                response(MessageType::Acknowledgement, asked, &wrong, b"forged"),
                response(MessageType::Acknowledgement, other, &token, b"forged"),
                datagram::empty(MessageType::Acknowledgement, other).to_vec(),
                datagram::empty(MessageType::Reset, other).to_vec(),
            ] {
                bench.receive(socket, from, &bytes);
            }
        }
    }
    assert!(bench.to_client.is_empty() && bench.to_origin.is_empty(), "nothing is said to them");
    let (downstream, upstream) = bench.proxy.counters();
    for (side, counters) in [("clients", downstream), ("origins", upstream)] {
        let each = u64::from(EACH);
        assert_eq!((counters.unmatched, counters.unexpected), (each, 4 * each), "{side}: {counters:?}");
        assert_eq!((counters.malformed, counters.ignored, counters.late), (0, 0, 0), "{side}: {counters:?}");
    }
    bench.receive(socket, ORIGIN, &response(MessageType::Acknowledgement, asked, &token, b"true"));
    assert_eq!(bench.heard(), [(b"true".to_vec(), b"true".to_vec())]);
}

/// A Confirmable one is rejected, so that its sender stops (RFC 7252 §4.2).
#[test]
fn a_thousand_confirmable_responses_that_nobody_asked_for_are_counted_and_rejected() {
    let mut bench = Bench::new();
    let (socket, asked, token) = bench.ask(7, b"true");
    for (socket, from) in [(socket, ORIGIN), (LISTENER, CLIENT)] {
        for number in 1..=EACH {
            bench.receive(socket, from, &response(MessageType::Confirmable, number, b"guessed", b"forged"));
        }
    }
    let resets: Vec<_> =
        (1..=EACH).map(|number| datagram::empty(MessageType::Reset, number).to_vec()).collect();
    assert_eq!(std::mem::take(&mut bench.to_client), resets);
    assert_eq!(bench.to_origin.iter().map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>(), resets);
    let (downstream, upstream) = bench.proxy.counters();
    assert_eq!((downstream.unmatched, upstream.unmatched), (EACH.into(), EACH.into()));
    bench.receive(socket, ORIGIN, &response(MessageType::Acknowledgement, asked, &token, b"true"));
    assert_eq!(bench.heard(), [(b"true".to_vec(), b"true".to_vec())]);
}

/// Whatever the length of the client's: there is none that is shorter and could be raised.
#[test]
fn tokens_towards_origins_have_eight_bytes_however_short_the_clients_are() {
    let mut bench = Bench::new();
    for length in 0..=8 {
        let (socket, asked, token) = bench.ask(length, &[7; 8][..length.into()]);
        assert_eq!(token.len(), 8);
        bench.receive(socket, ORIGIN, &response(MessageType::Acknowledgement, asked, &token, b"true"));
    }
    assert_eq!(bench.heard().len(), 9);
}

/// The late copy of an answer, with the token of the request that is under way by then.
#[test]
fn the_message_id_of_one_request_and_the_token_of_another_answer_neither() {
    let mut bench = Bench::new();
    let (socket, first, first_token) = bench.ask(1, b"a");
    bench.receive(socket, ORIGIN, &response(MessageType::Acknowledgement, first, &first_token, b"one"));
    assert_eq!(bench.heard(), [(b"a".to_vec(), b"one".to_vec())]);
    let (socket, second, second_token) = bench.ask(2, b"b");
    assert_ne!((first, &first_token), (second, &second_token));
    bench.receive(socket, ORIGIN, &response(MessageType::Acknowledgement, first, &second_token, b"one"));
    assert_eq!(bench.heard(), []);
    bench.receive(socket, ORIGIN, &response(MessageType::Acknowledgement, second, &second_token, b"two"));
    assert_eq!(bench.heard(), [(b"b".to_vec(), b"two".to_vec())]);
}
