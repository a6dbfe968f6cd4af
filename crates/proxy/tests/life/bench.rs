//! A reverse proxy, its clients and origins, by hand.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Nstart, Seed, SocketId};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, Options, OptionsWriter, datagram};
use coapway_proxy::{
    Event, Input, Limits, Listening, Output, Parameters, Proxy, SocketRole, UpstreamParameters,
};
use coapway_relay::{Route, Upstream, UpstreamId};
use coapway_time::Instant;

pub(crate) const CON: MessageType = MessageType::Confirmable;
pub(crate) const ACK: MessageType = MessageType::Acknowledgement;

/// A datagram that left.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) from: SocketId,
    pub(crate) to: SocketAddr,
    bytes: Vec<u8>,
}

impl Sent {
    pub(crate) fn message(&self) -> Datagram<'_> {
        Datagram::parse(&self.bytes).expect("well formed")
    }

    pub(crate) fn port(&self) -> u16 {
        self.to.port()
    }
}

/// An answer that a client got: its port, the answer's code and text, and Max-Age.
pub(crate) type Answer = (u16, Code, String);

pub(crate) struct Bench {
    pub(crate) proxy: Proxy,
    pub(crate) now: Instant,
    pub(crate) to_origins: Vec<Sent>,
    pub(crate) to_clients: Vec<Sent>,
    pub(crate) lookups: Vec<u64>,
    pub(crate) records: Vec<String>,
    wake: Option<Instant>,
    message_id: u16,
    /// The last request of a client.
    last: (Local, SocketAddr, Vec<u8>),
}

/// More than timers are late.
const TICK: Duration = Duration::from_millis(2);

/// Where the origins are: at this address if their port is below 1000, else behind a name.
const ORIGINS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Settings with these upstreams, each behind the route of its name; NSTART is 1.
pub(crate) fn settings(upstreams: &[(&str, u16)]) -> Parameters {
    let usual = UpstreamParameters { nstart: Nstart::Fixed(1), ..UpstreamParameters::default() };
    let host = |port| if port < 1000 { Host::Address(ORIGINS) } else { Host::Name("origin.example".into()) };
    let upstream = |&(name, port): &(&str, u16)| Upstream {
        name: name.into(),
        authority: Some(Authority { host: host(port), port }),
    };
    let route = |(&(name, _), number): (&(&str, u16), u32)| Route {
        host: None,
        path: vec![name.as_bytes().into()],
        upstream: UpstreamId(number),
        strip: true,
    };
    let default = Upstream { name: "default".into(), authority: None };
    Parameters {
        downstream: EndpointParameters::default(),
        upstreams: vec![usual; 1 + upstreams.len()],
        relay: coapway_relay::Parameters {
            upstreams: std::iter::once(default).chain(upstreams.iter().map(upstream)).collect(),
            routes: upstreams.iter().zip(1..).map(route).collect(),
            ..coapway_relay::Parameters::default()
        },
        answer_within: None,
        patience: coapway_proxy::Patience::Off,
        limits: Limits::default(),
    }
}

const fn client(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

fn listener(number: u32) -> SocketId {
    SocketRole::Listener(number).socket()
}

impl Bench {
    pub(crate) fn new(parameters: Parameters) -> Self {
        Self {
            proxy: Proxy::new(parameters, Listening::default(), Seed::from_number(1)),
            now: Instant::ZERO,
            to_origins: Vec::new(),
            to_clients: Vec::new(),
            lookups: Vec::new(),
            records: Vec::new(),
            wake: None,
            message_id: 0,
            last: (Local::default(), client(0), Vec::new()),
        }
    }

    pub(crate) fn give(&mut self, input: Input<'_>) {
        self.proxy.handle_input(input, self.now);
        self.proxy.check_invariants();
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    let (from, to) = (transmit.peer.local.socket, transmit.peer.remote);
                    let sent = Sent { at: self.now, from, to, bytes: transmit.datagram.to_vec() };
                    match SocketRole::of(from) {
                        SocketRole::Listener(_) => self.to_clients.push(sent),
                        SocketRole::Upstream { .. } => self.to_origins.push(sent),
                    }
                }
                Output::LookUp { lookup, .. } => self.lookups.push(lookup),
                Output::Records(records) => {
                    self.records.extend(records.iter().map(|(_, upstream)| upstream.to_owned()));
                }
                Output::Event(Event::Refused(refused)) => {
                    self.records.push(format!("{} {} {}", refused.count, refused.code, refused.cause.name()));
                }
                Output::Event(_) => {}
                Output::Wait { until } => {
                    self.wake = until;
                    return;
                }
            }
        }
    }

    pub(crate) fn reload(&mut self, parameters: &Parameters) {
        let listening = Listening::default();
        self.give(Input::Reconfigure { parameters, listening, closing: &[] });
    }

    /// Lets time pass and timers fire, which are up to a tick of their wheel late.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now + time + TICK;
        while let Some(wake) = self.wake.filter(|&wake| wake <= until) {
            self.now = self.now.max(wake);
            self.give(Input::Wake);
        }
        self.now = until;
    }

    pub(crate) fn get(&mut self, port: u16, path: &str) {
        self.request(0, port, Code::GET, path, b"");
    }

    /// A Confirmable request of the client at a port, to a listener.
    pub(crate) fn request(&mut self, number: u32, port: u16, code: Code, path: &str, payload: &[u8]) {
        self.message_id += 1;
        let mut options = Vec::new();
        let mut writer = OptionsWriter::new(&mut options);
        path.split('/').for_each(|segment| writer.push(OptionNumber::URI_PATH, segment.as_bytes()));
        let content = Content { code, options: writer.finish(), payload };
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, CON, self.message_id, &port.to_be_bytes(), &content);
        self.last = (Local { socket: listener(number), address: None }, client(port), bytes);
        self.repeat();
    }

    /// The last request comes in, perhaps once more.
    pub(crate) fn repeat(&mut self) {
        let (local, remote, bytes) = self.last.clone();
        self.give(Input::Datagram { local, remote, bytes: &bytes, truncated: false });
    }

    /// A client acknowledges a datagram.
    pub(crate) fn acknowledge(&mut self, sent: &Sent) {
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, ACK, sent.message().message_id, b"", &Content::bare(Code::EMPTY));
        let local = Local { socket: sent.from, address: None };
        self.give(Input::Datagram { local, remote: sent.to, bytes: &bytes, truncated: false });
    }

    /// An origin answers a request in its Acknowledgement.
    pub(crate) fn respond(&mut self, request: &Sent, code: Code, payload: &[u8]) {
        let asked = request.message();
        let (message_id, token) = (asked.message_id, asked.token.to_vec());
        let mut options = Vec::new();
        let mut writer = OptionsWriter::new(&mut options);
        if code == Code::CREATED {
            writer.push(OptionNumber::LOCATION_PATH, b"new");
        }
        let content = Content { code, options: writer.finish(), payload };
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, ACK, message_id, &token, &content);
        let local = Local { socket: request.from, address: None };
        self.give(Input::Datagram { local, remote: request.to, bytes: &bytes, truncated: false });
    }

    /// The last request that left, and no other since the last call.
    pub(crate) fn only_sent(&mut self) -> Sent {
        let sent = std::mem::take(&mut self.to_origins);
        let [sent] = &sent[..] else { panic!("one request: {sent:?}") };
        sent.clone()
    }

    /// What clients were answered since the last call, empty Acknowledgements left out.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        let sent = std::mem::take(&mut self.to_clients);
        let answers = sent.iter().filter(|sent| sent.message().content.code != Code::EMPTY);
        answers
            .map(|sent| {
                let content = sent.message().content;
                let text = String::from_utf8_lossy(content.payload).into_owned();
                (sent.port(), content.code, text)
            })
            .collect()
    }
}

/// The path or location that a message names.
pub(crate) fn path(options: &Options<'_>, number: OptionNumber) -> String {
    let segments: Vec<_> = options.values(number).map(String::from_utf8_lossy).collect();
    segments.join("/")
}
