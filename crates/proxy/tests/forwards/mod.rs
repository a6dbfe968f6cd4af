//! Plain forwards through a proxy without sockets: a client asks, the origin answers in its
//! Acknowledgement, nothing is lost.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Seed};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, MessageType, OptionNumber, Options, OptionsWriter, datagram};
use coapway_proxy::{
    Input, Limits, Listening, Output, Parameters, Proxy, Sampling, SocketRole, UpstreamParameters,
};
use coapway_relay::{Forward, Route, Upstream, UpstreamId};
use coapway_time::Instant;

const ORIGIN: u16 = 5700;

/// A proxy with its clients and one origin.
pub(crate) struct Forwards {
    proxy: Proxy,
    now: Instant,
    /// From one round to the next.
    pace: Duration,
    requests: Vec<Vec<u8>>,
    /// What left towards the origin and is not answered: source port, then type to token.
    asked: Vec<(Local, [u8; 12])>,
    answer: Vec<u8>,
    message_id: u16,
    /// Responses that clients got.
    pub(crate) answered: u64,
}

impl Forwards {
    /// `clients` that ask at the same time, each once per round.
    pub(crate) fn new(clients: u16, pace: Duration, records: bool) -> Self {
        let relay = coapway_relay::Parameters { forward: Forward::Open, ..Default::default() };
        let uri = |client| format!("coap://127.0.0.1:{ORIGIN}/sensors/{client}");
        let requests = (0..clients).map(|client| request(client, OptionNumber::PROXY_URI, &uri(client)));
        Self::with(relay, requests.collect(), pace, records)
    }

    /// The same through a route to an origin that is known by name.
    #[allow(dead_code, reason = "not everybody who has this module asks for it")]
    pub(crate) fn reverse(clients: u16, pace: Duration) -> Self {
        let authority = Authority { host: Host::Name("origin.test".into()), port: ORIGIN };
        let named = Upstream { name: "origin".into(), authority: Some(authority) };
        let route = Route { host: None, path: Vec::new(), upstream: UpstreamId(1), strip: true };
        let mut relay = coapway_relay::Parameters { routes: vec![route], ..Default::default() };
        relay.upstreams.push(named);
        let requests =
            (0..clients).map(|client| request(client, OptionNumber::URI_PATH, &format!("sensor-{client}")));
        Self::with(relay, requests.collect(), pace, false)
    }

    fn with(relay: coapway_relay::Parameters, requests: Vec<Vec<u8>>, pace: Duration, records: bool) -> Self {
        let parameters = Parameters {
            downstream: EndpointParameters::default(),
            upstreams: vec![UpstreamParameters::default(); relay.upstreams.len()],
            relay,
            answer_within: None,
            patience: coapway_proxy::Patience::Off,
            limits: Limits::default(),
        };
        Self {
            proxy: Proxy::new(
                parameters,
                Listening { events: false, records: records.then_some(Sampling::ALL), late: false },
                Seed::from_number(7),
            ),
            now: Instant::ZERO,
            pace,
            requests,
            asked: Vec::new(),
            answer: Vec::new(),
            message_id: 0,
            answered: 0,
        }
    }

    /// Each client asks once and is answered.
    pub(crate) fn round(&mut self) {
        self.now += self.pace;
        self.message_id = self.message_id.wrapping_add(1);
        let mut requests = std::mem::take(&mut self.requests);
        for (client, request) in (40_000..).zip(&mut requests) {
            request[2..4].copy_from_slice(&self.message_id.to_be_bytes());
            self.give(Local { socket: SocketRole::Listener(0).socket(), address: None }, client, request);
        }
        self.requests = requests;
        self.drain();
        // What waited for its turn leaves when others are answered.
        while !self.asked.is_empty() {
            let mut asked = std::mem::take(&mut self.asked);
            for (local, header) in asked.drain(..) {
                self.answer(local, header);
            }
            std::mem::swap(&mut self.asked, &mut asked);
            self.drain();
        }
    }

    fn answer(&mut self, local: Local, header: [u8; 12]) {
        let [_, _, high, low, token @ ..] = header;
        let mut answer = std::mem::take(&mut self.answer);
        answer.clear();
        let content = Content { code: Code::CONTENT, options: Options::NONE, payload: b"sixteen bytes ok" };
        let message_id = u16::from_be_bytes([high, low]);
        datagram::encode(&mut answer, MessageType::Acknowledgement, message_id, &token, &content);
        self.give(local, ORIGIN, &answer);
        self.answer = answer;
    }

    fn give(&mut self, local: Local, from: u16, bytes: &[u8]) {
        let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, from));
        self.proxy.handle_input(Input::Datagram { local, remote, bytes, truncated: false }, self.now);
    }

    fn drain(&mut self) {
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => match SocketRole::of(transmit.peer.local.socket) {
                    SocketRole::Listener(_) => {
                        assert_eq!(transmit.datagram[1], Code::CONTENT.0);
                        self.answered += 1;
                    }
                    SocketRole::Upstream { .. } => {
                        let header = transmit.datagram[..12].try_into().expect("a token of 8 bytes");
                        self.asked.push((transmit.peer.local, header));
                    }
                },
                Output::Event(_) | Output::Records(_) => {}
                Output::LookUp { lookup, .. } => {
                    let addresses = [Ipv4Addr::LOCALHOST.into()];
                    let ttl = Some(Duration::from_secs(30));
                    self.proxy.handle_input(Input::Resolved { lookup, addresses: &addresses, ttl }, self.now);
                }
                Output::Wait { until } => {
                    if until.is_some_and(|until| until <= self.now) {
                        self.proxy.handle_input(Input::Wake, self.now);
                    } else {
                        return;
                    }
                }
            }
        }
    }
}

fn request(client: u16, number: OptionNumber, value: &str) -> Vec<u8> {
    let (mut options, mut bytes) = (Vec::new(), Vec::new());
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(number, value.as_bytes());
    let content = Content { code: Code::GET, options: writer.finish(), payload: &[] };
    datagram::encode(&mut bytes, MessageType::Confirmable, 0, &client.to_be_bytes(), &content);
    bytes
}
