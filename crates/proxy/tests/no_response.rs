//! What a client does not want to hear is not sent to it, and a Confirmable request is acknowledged all the
//! same (RFC 7967 §2).

use std::net::{Ipv4Addr, SocketAddr};

use coapway_endpoint::{EndpointParameters, Local, Seed};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, Options, OptionsWriter, datagram};
use coapway_proxy::{Input, Limits, Listening, Output, Parameters, Proxy, SocketRole, UpstreamParameters};
use coapway_relay::Forward;
use coapway_time::Instant;

const CLIENT: u16 = 40_000;
const ORIGIN: u16 = 5700;

struct Bench {
    proxy: Proxy,
    message_id: u16,
}

impl Bench {
    fn new() -> Self {
        let relay =
            coapway_relay::Parameters { forward: Forward::Open, ..coapway_relay::Parameters::default() };
        let parameters = Parameters {
            downstream: EndpointParameters::default(),
            upstreams: vec![UpstreamParameters::default()],
            relay,
            answer_within: None,
            patience: coapway_proxy::Patience::Off,
            limits: Limits::default(),
        };
        Self { proxy: Proxy::new(parameters, Listening::default(), Seed::from_number(1)), message_id: 0 }
    }

    /// Gives a datagram; returns what was sent, with the port it was sent to.
    fn give(&mut self, role: SocketRole, from: u16, bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let local = Local { socket: role.socket(), address: None };
        let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, from));
        self.proxy.handle_input(Input::Datagram { local, remote, bytes, truncated: false }, Instant::ZERO);
        self.proxy.check_invariants();
        let mut sent = Vec::new();
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    sent.push((transmit.peer.remote.port(), transmit.datagram.to_vec()));
                }
                Output::LookUp { .. } | Output::Event(_) | Output::Records(_) => {}
                Output::Wait { .. } => return sent,
            }
        }
    }

    /// A request with this No-Response, to which the origin has this to say; returns the types and codes of
    /// what the client gets.
    fn ask(
        &mut self,
        message_type: MessageType,
        no_response: &[u8],
        answer: Result<Code, ()>,
    ) -> Vec<(MessageType, Code)> {
        self.message_id += 1;
        let (mut options, mut bytes) = (Vec::new(), Vec::new());
        let mut writer = OptionsWriter::new(&mut options);
        writer.push(OptionNumber::PROXY_URI, b"coap://127.0.0.1:5700/x");
        writer.push(OptionNumber::NO_RESPONSE, no_response);
        let content = Content { code: Code::PUT, options: writer.finish(), payload: b"x" };
        datagram::encode(&mut bytes, message_type, self.message_id, b"\xA1", &content);
        let sent = self.give(SocketRole::Listener(0), CLIENT, &bytes);
        let [(ORIGIN, left)] = &sent[..] else { panic!("{sent:?}") };
        let left = Datagram::parse(left).expect("valid");
        assert_eq!(left.content.options.first(OptionNumber::NO_RESPONSE), None, "it ends here");
        let (kind, code) = match (answer, message_type) {
            (Err(()), _) => (MessageType::Reset, Code::EMPTY),
            (Ok(code), MessageType::Confirmable) => (MessageType::Acknowledgement, code),
            (Ok(code), _) => (MessageType::NonConfirmable, code),
        };
        let content = Content { code, options: Options::NONE, payload: &[] };
        let token = if kind == MessageType::Reset { &[] } else { left.token };
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, kind, left.message_id, token, &content);
        let sent = self.give(SocketRole::Upstream { ipv6: false, number: 0 }, ORIGIN, &bytes);
        assert!(self.proxy.is_idle());
        sent.iter()
            .filter(|(to, _)| *to == CLIENT)
            .map(|(_, bytes)| Datagram::parse(bytes).expect("valid"))
            .map(|datagram| (datagram.message_type, datagram.content.code))
            .collect()
    }
}

#[test]
fn unwanted_answers_are_an_empty_acknowledgement_and_others_are_sent() {
    use MessageType::{Acknowledgement, Confirmable};
    let mut bench = Bench::new();
    for (no_response, answer, heard) in [
        (&[26][..], Err(()), Code::EMPTY),
        (&[2], Ok(Code::CHANGED), Code::EMPTY),
        (&[2], Ok(Code::NOT_FOUND), Code::NOT_FOUND),
        (&[8], Ok(Code::NOT_FOUND), Code::EMPTY),
        (&[8], Err(()), Code::BAD_GATEWAY),
        (&[0], Ok(Code::CHANGED), Code::CHANGED),
        (&[], Ok(Code::CHANGED), Code::CHANGED),
    ] {
        let sent = bench.ask(Confirmable, no_response, answer);
        assert_eq!(sent, [(Acknowledgement, heard)], "{no_response:?} {answer:?}");
    }
}

#[test]
fn towards_a_non_confirmable_request_there_is_silence() {
    let mut bench = Bench::new();
    assert_eq!(bench.ask(MessageType::NonConfirmable, &[26], Ok(Code::CHANGED)), []);
    assert_eq!(
        bench.ask(MessageType::NonConfirmable, &[2], Ok(Code::NOT_FOUND)),
        [(MessageType::NonConfirmable, Code::NOT_FOUND)]
    );
}
