//! One proxy with its upstream, and the datagrams that come and go.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use coapway_endpoint::{DuplicatesParameters, EndpointParameters, Local, Seed, SocketId};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, MessageType, OptionNumber, Options, OptionsWriter, datagram};
use coapway_proxy::{
    Input, Limits, Listening, Output, Parameters, Patience, Proxy, Record, Sampling, SocketRole,
    UpstreamParameters,
};
use coapway_relay::{Route, Upstream, UpstreamId};
use coapway_time::Instant;
use smallvec::SmallVec;

/// Where the origin is.
pub(crate) const ORIGIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 5683);
/// Clients, each behind a port of its own.
const CLIENTS: u32 = 64;

/// A datagram.
pub(crate) type Bytes = SmallVec<[u8; 64]>;

/// A datagram that left.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) from: SocketId,
    pub(crate) bytes: Bytes,
}

impl Sent {
    pub(crate) const fn is_for_client(&self) -> bool {
        matches!(SocketRole::of(self.from), SocketRole::Listener(_))
    }
}

/// Writes a record of an upstream with this name.
pub(crate) type Write = fn(&Record, &str, &mut Vec<u8>);

/// A proxy.
pub(crate) struct Node {
    proxy: Proxy,
    wake: Option<Instant>,
    sent: Vec<Sent>,
    records: Option<Write>,
    /// What the records came to.
    pub(crate) written: Vec<u8>,
}

impl Node {
    /// Records are made where they are written.
    pub(crate) fn new(upstream: &UpstreamParameters, records: Option<Write>, seed: u64) -> Self {
        let authority = Some(Authority { host: Host::Address(ORIGIN.ip()), port: ORIGIN.port() });
        let downstream = EndpointParameters {
            duplicates: DuplicatesParameters { memory: 32 << 20 },
            ..EndpointParameters::default()
        };
        let parameters = Parameters {
            downstream,
            upstreams: vec![*upstream; 2],
            relay: coapway_relay::Parameters {
                upstreams: vec![
                    Upstream { name: "default".into(), authority: None },
                    Upstream { name: "origin".into(), authority },
                ],
                routes: vec![Route { host: None, path: Vec::new(), upstream: UpstreamId(1), strip: true }],
                ..coapway_relay::Parameters::default()
            },
            answer_within: None,
            patience: Patience::Off,
            limits: Limits::default(),
        };
        let listening = Listening { events: false, records: records.map(|_| Sampling::ALL), late: true };
        let proxy = Proxy::new(parameters, listening, Seed::from_number(seed));
        Self { proxy, wake: None, sent: Vec::new(), records, written: Vec::new() }
    }

    /// When it wants to be woken, in µs.
    pub(crate) fn wake(&self) -> Option<u64> {
        self.wake.map(Instant::as_micros)
    }

    /// A datagram comes to a socket.
    pub(crate) fn arrive(&mut self, to: SocketId, from: SocketAddr, bytes: &[u8], now: u64) {
        let local = Local { socket: to, address: None };
        self.give(Input::Datagram { local, remote: from, bytes, truncated: false }, now);
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: u64) {
        self.give(Input::Wake, now);
    }

    /// Nothing more comes: records that are held are made.
    pub(crate) fn close(&mut self, now: u64) {
        self.proxy.close(Instant::from_micros(now));
        self.carry_out();
    }

    fn give(&mut self, input: Input<'_>, now: u64) {
        self.proxy.handle_input(input, Instant::from_micros(now));
        self.carry_out();
    }

    fn carry_out(&mut self) {
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    self.sent.push(Sent { from: transmit.peer.local.socket, bytes: transmit.datagram.into() })
                }
                Output::Records(records) => {
                    if let Some(write) = self.records {
                        records.iter().for_each(|(record, name)| write(record, name, &mut self.written));
                    }
                }
                Output::Event(_) | Output::LookUp { .. } => {}
                Output::Wait { until } => {
                    self.wake = until;
                    return;
                }
            }
        }
    }

    /// What left since the last call.
    pub(crate) fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) confirmable: bool,
    pub(crate) once: bool,
}

/// Where request `number` comes from.
pub(crate) fn client(number: u32) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 40_000 + (number % CLIENTS) as u16).into()
}

/// Request `number`: its path tells the origin which it is, and its token the client.
pub(crate) fn request(number: u32, kind: Kind) -> Bytes {
    let mut options = Vec::new();
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(OptionNumber::URI_PATH, format!("{number}").as_bytes());
    let code = if kind.once { Code::POST } else { Code::GET };
    let content = Content { code, options: writer.finish(), payload: &[] };
    let message_type = if kind.confirmable { MessageType::Confirmable } else { MessageType::NonConfirmable };
    encoded(message_type, (number / CLIENTS) as u16, &number.to_be_bytes(), &content)
}

/// The number in a request's path.
pub(crate) fn number(content: &Content<'_>) -> Option<u32> {
    std::str::from_utf8(content.options.first(OptionNumber::URI_PATH)?).ok()?.parse().ok()
}

/// A response with a little payload.
pub(crate) fn response(message_type: MessageType, message_id: u16, token: &[u8]) -> Bytes {
    let content = Content { code: Code::CONTENT, options: Options::NONE, payload: b"ok" };
    encoded(message_type, message_id, token, &content)
}

/// An empty Acknowledgement.
pub(crate) fn acknowledgement(message_id: u16) -> Bytes {
    datagram::empty(MessageType::Acknowledgement, message_id)[..].into()
}

fn encoded(message_type: MessageType, message_id: u16, token: &[u8], content: &Content<'_>) -> Bytes {
    let mut bytes = Vec::with_capacity(64);
    datagram::encode(&mut bytes, message_type, message_id, token, content);
    Bytes::from_vec(bytes)
}
