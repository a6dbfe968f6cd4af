//! A datagram that was cut on its way in is answered, never passed on as if it were whole.

use coapway_endpoint::{Local, Seed};
use coapway_message::{Code, Content, Datagram, MessageType, OptionsWriter, datagram};
use coapway_proxy::{Input, Limits, Listening, Output, Parameters, Proxy, SocketRole, UpstreamParameters};
use coapway_relay::Forward;
use coapway_time::Instant;

const CLIENT: std::net::SocketAddr =
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 40_000);

fn proxy() -> Proxy {
    let parameters = Parameters {
        downstream: coapway_endpoint::EndpointParameters::default(),
        upstreams: vec![UpstreamParameters::default()],
        relay: coapway_relay::Parameters { forward: Forward::Open, ..coapway_relay::Parameters::default() },
        answer_within: None,
        patience: coapway_proxy::Patience::Off,
        limits: Limits::default(),
    };
    Proxy::new(parameters, Listening::default(), Seed::from_number(1))
}

fn give(proxy: &mut Proxy, role: SocketRole, from: std::net::SocketAddr, bytes: &[u8], truncated: bool) {
    let local = Local { socket: role.socket(), address: None };
    proxy.handle_input(Input::Datagram { local, remote: from, bytes, truncated }, Instant::ZERO);
    proxy.check_invariants();
}

fn sent(proxy: &mut Proxy) -> Option<(std::net::SocketAddr, Vec<u8>)> {
    match proxy.poll_output() {
        Output::Transmit(transmit) => Some((transmit.peer.remote, transmit.datagram.to_vec())),
        Output::LookUp { .. } | Output::Event(_) | Output::Records(_) | Output::Wait { .. } => None,
    }
}

fn request() -> Vec<u8> {
    let (mut options, mut bytes) = (Vec::new(), Vec::new());
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(coapway_message::OptionNumber::PROXY_URI, b"coap://127.0.0.1:5700/x");
    let content = Content { code: Code::POST, options: writer.finish(), payload: b"cut" };
    datagram::encode(&mut bytes, MessageType::Confirmable, 7, b"\xA1", &content);
    bytes
}

#[test]
fn a_request_that_was_cut_is_too_large_and_goes_nowhere() {
    // Its header and token are five bytes.
    for length in 5..=request().len() {
        let mut proxy = proxy();
        give(&mut proxy, SocketRole::Listener(0), CLIENT, &request()[..length], true);
        let (to, answer) = sent(&mut proxy).expect("never silence");
        let answer = Datagram::parse(&answer).expect("valid");
        assert_eq!((to, answer.content.code), (CLIENT, Code::REQUEST_ENTITY_TOO_LARGE), "{length}");
        assert_eq!(answer.token, b"\xA1");
        assert_eq!(sent(&mut proxy), None);
    }
}

#[test]
fn a_response_that_was_cut_is_a_bad_gateway() {
    for cut in 0..12 {
        let mut proxy = proxy();
        give(&mut proxy, SocketRole::Listener(0), CLIENT, &request(), false);
        let (origin, forwarded) = sent(&mut proxy).expect("it is forwarded");
        let forwarded = Datagram::parse(&forwarded).expect("valid");
        let (mut options, mut bytes) = (Vec::new(), Vec::new());
        let mut writer = OptionsWriter::new(&mut options);
        writer.push(coapway_message::OptionNumber::ETAG, b"seven is");
        let content = Content { code: Code::CONTENT, options: writer.finish(), payload: b"cut" };
        let (kind, id) = (MessageType::Acknowledgement, forwarded.message_id);
        datagram::encode(&mut bytes, kind, id, forwarded.token, &content);
        bytes.truncate(bytes.len() - cut);
        give(&mut proxy, SocketRole::Upstream { ipv6: false, number: 0 }, origin, &bytes, true);
        let (to, answer) = sent(&mut proxy).expect("never silence");
        let answer = Datagram::parse(&answer).expect("valid");
        assert_eq!((to, answer.content.code), (CLIENT, Code::BAD_GATEWAY), "{cut}");
    }
}

#[test]
fn a_request_that_was_cut_in_its_token_is_rejected() {
    // Nothing can be answered under a token of which a part is missing (RFC 7252 §4.2; RFC 8974 §2.1).
    let token = [7; 600];
    let mut bytes = Vec::new();
    let content = Content::bare(Code::GET);
    for (kind, answer) in [
        (MessageType::Confirmable, Some((CLIENT, datagram::empty(MessageType::Reset, 7).to_vec()))),
        (MessageType::NonConfirmable, None),
    ] {
        bytes.clear();
        datagram::encode(&mut bytes, kind, 7, &token, &content);
        for length in [5, 6, 300, 605] {
            let mut proxy = proxy();
            give(&mut proxy, SocketRole::Listener(0), CLIENT, &bytes[..length], true);
            assert_eq!(sent(&mut proxy), answer, "{length}");
        }
    }
}
