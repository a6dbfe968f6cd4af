//! A reverse proxy with one origin.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Nstart, Seed, SocketId};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, Datagram, Failure, MessageType, OptionNumber, OptionsWriter, datagram};
use coapway_proxy::{
    Alert, Event, Input, Limits, Listening, Output, Parameters, Patience, Proxy, Sampling, SocketRole,
    UpstreamParameters,
};
use coapway_relay::{Route, Upstream, UpstreamId};
use coapway_time::Instant;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const ORIGIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 5683);
const LISTENER: Local = Local { socket: SocketRole::Listener(0).socket(), address: None };
/// More than timers are late.
const TICK: Duration = Duration::from_millis(2);

/// A request on its way to the origin.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    from: SocketId,
    bytes: Vec<u8>,
}

impl Sent {
    pub(crate) fn path(&self) -> String {
        let options = Datagram::parse(&self.bytes).expect("well formed").content.options;
        String::from_utf8_lossy(options.first(OptionNumber::URI_PATH).unwrap_or_default()).into_owned()
    }
}

/// A response that left for a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) port: u16,
    pub(crate) code: Code,
    pub(crate) max_age: Option<u32>,
    pub(crate) text: String,
    message_id: u16,
}

pub(crate) struct Bench {
    /// Where clients are.
    pub(crate) host: IpAddr,
    pub(crate) proxy: Proxy,
    pub(crate) now: Instant,
    pub(crate) sent: Vec<Sent>,
    pub(crate) pings: Vec<Sent>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) alerts: Vec<&'static str>,
    /// For whom the origin was said to be down, for how long it was silent and how soon the probe is, in seconds.
    pub(crate) downs: Vec<(String, u64, u64)>,
    /// Cause, evidence and copies of each request that is over.
    pub(crate) records: Vec<String>,
    /// Whether clients acknowledge separate responses.
    pub(crate) acknowledges: bool,
    wake: Option<Instant>,
    message_id: u16,
}

pub(crate) fn settings(upstream: UpstreamParameters, patience: Patience) -> Parameters {
    let authority = Authority { host: Host::Address(ORIGIN.ip()), port: ORIGIN.port() };
    let names = [("default", None), ("origin", Some(authority))];
    let upstreams = names.map(|(name, authority)| Upstream { name: name.into(), authority });
    Parameters {
        downstream: EndpointParameters::default(),
        upstreams: vec![UpstreamParameters { nstart: Nstart::Fixed(8), ..upstream }; 2],
        relay: coapway_relay::Parameters {
            upstreams: upstreams.into(),
            routes: vec![Route { host: None, path: Vec::new(), upstream: UpstreamId(1), strip: false }],
            ..coapway_relay::Parameters::default()
        },
        answer_within: None,
        patience,
        limits: Limits::default(),
    }
}

impl Bench {
    pub(crate) fn new(parameters: Parameters) -> Self {
        let listening = Listening { events: true, records: Some(Sampling::ALL), late: true };
        Self {
            host: Ipv4Addr::LOCALHOST.into(),
            proxy: Proxy::new(parameters, listening, Seed::from_number(1)),
            // An hour before there may be something to remember.
            now: Instant::ZERO + 3600 * SECOND,
            sent: Vec::new(),
            pings: Vec::new(),
            answers: Vec::new(),
            alerts: Vec::new(),
            downs: Vec::new(),
            records: Vec::new(),
            acknowledges: true,
            wake: None,
            message_id: 0,
        }
    }

    fn give(&mut self, input: Input<'_>) {
        self.proxy.handle_input(input, self.now);
        self.proxy.check_invariants();
        let mut separate = Vec::new();
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    let (from, bytes) = (transmit.peer.local.socket, transmit.datagram.to_vec());
                    match SocketRole::of(from) {
                        SocketRole::Upstream { .. } => {
                            let is_ping =
                                Datagram::parse(&bytes).is_ok_and(|sent| sent.content.code == Code::EMPTY);
                            let list = if is_ping { &mut self.pings } else { &mut self.sent };
                            list.push(Sent { from, bytes });
                        }
                        SocketRole::Listener(_) => {
                            let datagram = Datagram::parse(&bytes).expect("well formed");
                            let content = datagram.content;
                            if content.code == Code::EMPTY {
                                continue;
                            }
                            let answer = Answer {
                                port: transmit.peer.remote.port(),
                                code: content.code,
                                max_age: content.options.uint(OptionNumber::MAX_AGE),
                                text: String::from_utf8_lossy(content.payload).into_owned(),
                                message_id: datagram.message_id,
                            };
                            if datagram.message_type == MessageType::Confirmable && self.acknowledges {
                                separate.push(answer.clone());
                            }
                            self.answers.push(answer);
                        }
                    }
                }
                Output::Records(records) => {
                    for (record, _) in records.iter() {
                        let copies: usize =
                            record.exchanges.traces().iter().map(|trace| trace.copies.len()).sum();
                        let evidence = record.evidence.map_or("-", |evidence| evidence.name());
                        self.records.push(format!("{} {evidence} {copies}", record.cause.name()));
                    }
                }
                Output::Event(Event::Alert(alert)) => {
                    self.alerts.push(alert.name());
                    if let Alert::OriginDown { whose, silent_for, probe_in, .. } = alert {
                        self.downs.push((whose.to_string(), silent_for.as_secs(), probe_in.as_secs()));
                    }
                }
                Output::Event(_) => {}
                Output::LookUp { .. } => panic!("nothing is looked up"),
                Output::Wait { until } => {
                    self.wake = until;
                    break;
                }
            }
        }
        separate.iter().for_each(|answer| self.reply(answer, MessageType::Acknowledgement));
    }

    /// Lets time pass and timers fire, which are up to a tick of their wheel late.
    pub(crate) fn pass(&mut self, time: Duration) -> &mut Self {
        let until = self.now + time + TICK;
        while let Some(wake) = self.wake.filter(|&wake| wake <= until) {
            self.now = self.now.max(wake);
            self.give(Input::Wake);
        }
        self.now = until;
        self
    }

    pub(crate) fn get(&mut self, port: u16, path: &str) {
        self.ask(port, path, MessageType::Confirmable, Code::GET, path.as_bytes());
    }

    pub(crate) fn ask(&mut self, port: u16, path: &str, kind: MessageType, code: Code, token: &[u8]) {
        self.message_id += 1;
        let mut options = Vec::new();
        let mut writer = OptionsWriter::new(&mut options);
        writer.push(OptionNumber::URI_PATH, path.as_bytes());
        let content = Content { code, options: writer.finish(), payload: &[] };
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, kind, self.message_id, token, &content);
        self.receive(port, &bytes);
    }

    /// A request from anywhere that so many proxies may still pass on.
    pub(crate) fn come(&mut self, from: IpAddr, path: &str, hop_limit: u8) {
        self.message_id += 1;
        let mut options = Vec::new();
        let mut writer = OptionsWriter::new(&mut options);
        writer.push(OptionNumber::URI_PATH, path.as_bytes());
        writer.push(OptionNumber::HOP_LIMIT, &[hop_limit]);
        let content = Content { options: writer.finish(), ..Content::bare(Code::GET) };
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, MessageType::Confirmable, self.message_id, b"", &content);
        let remote = SocketAddr::new(from, 40_000);
        self.give(Input::Datagram { local: LISTENER, remote, bytes: &bytes, truncated: false });
    }

    fn receive(&mut self, port: u16, bytes: &[u8]) {
        let remote = SocketAddr::new(self.host, port);
        self.give(Input::Datagram { local: LISTENER, remote, bytes, truncated: false });
    }

    /// A client acknowledges or rejects a separate response.
    pub(crate) fn reply(&mut self, answer: &Answer, kind: MessageType) {
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, kind, answer.message_id, b"", &Content::bare(Code::EMPTY));
        self.receive(answer.port, &bytes);
    }

    /// The origin answers in its Acknowledgement.
    pub(crate) fn respond(&mut self, request: &Sent) {
        let asked = Datagram::parse(&request.bytes).expect("well formed");
        let content = Content { payload: b"fine", ..Content::bare(Code::CONTENT) };
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, MessageType::Acknowledgement, asked.message_id, asked.token, &content);
        let local = Local { socket: request.from, address: None };
        self.give(Input::Datagram { local, remote: ORIGIN, bytes: &bytes, truncated: false });
    }

    /// The origin is there.
    pub(crate) fn pong(&mut self, ping: &Sent) {
        let asked = Datagram::parse(&ping.bytes).expect("well formed");
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, MessageType::Reset, asked.message_id, b"", &Content::bare(Code::EMPTY));
        let local = Local { socket: ping.from, address: None };
        self.give(Input::Datagram { local, remote: ORIGIN, bytes: &bytes, truncated: false });
    }

    /// Nobody listens there.
    pub(crate) fn refuse(&mut self, request: &Sent) {
        let local = Local { socket: request.from, address: None };
        let (quoted, failure) = (&request.bytes[..], Failure::Unreachable);
        self.give(Input::Undeliverable { local, remote: ORIGIN, quoted, failure });
    }

    /// The paths that were asked for since the last call, copies included.
    pub(crate) fn asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.sent).iter().map(Sent::path).collect()
    }

    /// The only answer since the last call.
    pub(crate) fn answer(&mut self) -> Answer {
        let answers = std::mem::take(&mut self.answers);
        let [answer] = &answers[..] else { panic!("one answer: {answers:?}") };
        answer.clone()
    }
}
