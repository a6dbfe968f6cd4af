//! A proxy, origins at a distance, and whoever asks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Seed};
use coapway_message::{Code, Content, Datagram, MessageType, Options, datagram};
use coapway_proxy::{Input, Limits, Listening, Output, Parameters, Proxy, SocketRole, UpstreamParameters};
use coapway_time::Instant;

const LISTENER: Local = Local { socket: SocketRole::Listener(0).socket(), address: None };
/// To an origin and back.
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(20);
/// How long a look-up takes, and how long what it found may be used.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(10);
pub(crate) const TIME_TO_LIVE: Duration = Duration::from_secs(1);

/// What comes to the proxy.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Coming {
    Answer { local: u64, origin: SocketAddr, bytes: Vec<u8> },
    Address { lookup: u64, address: IpAddr },
}

/// What came to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) at: Instant,
    pub(crate) client: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

/// Origins answer in their Acknowledgements: how often they were asked anything, in as many bytes as are
/// asked for.
pub(crate) struct Bench {
    pub(crate) proxy: Proxy,
    pub(crate) now: Instant,
    pub(crate) heard: Vec<Heard>,
    /// Copies of requests that came to origins.
    pub(crate) executed: u64,
    /// What names stand for.
    pub(crate) names: BTreeMap<String, IpAddr>,
    body: Vec<u8>,
    wake: Option<Instant>,
    coming: BinaryHeap<Reverse<(Instant, u64, Coming)>>,
    entered: u64,
    locals: Vec<Local>,
}

impl Bench {
    /// Clients are believed, and may be as fast as they like.
    pub(crate) fn new(relay: coapway_relay::Parameters, body: usize) -> Self {
        let relay = coapway_relay::Parameters {
            trusted: vec!["10.0.0.0/8".parse().expect("a network")],
            client_rate: 0,
            ..relay
        };
        let parameters = Parameters {
            downstream: EndpointParameters::default(),
            upstreams: vec![UpstreamParameters::default(); relay.upstreams.len()],
            relay,
            answer_within: None,
            patience: coapway_proxy::Patience::Off,
            limits: Limits::default(),
        };
        Self {
            proxy: Proxy::new(parameters, Listening::default(), Seed::from_number(1)),
            now: Instant::ZERO,
            heard: Vec::new(),
            executed: 0,
            names: BTreeMap::new(),
            body: vec![b'x'; body],
            wake: None,
            coming: BinaryHeap::new(),
            entered: 0,
            locals: Vec::new(),
        }
    }

    /// Lets everything happen up to `until`; what arrives comes before timers.
    pub(crate) fn run_until(&mut self, until: Instant) {
        loop {
            let arrival = self.coming.peek().map(|Reverse((at, ..))| *at);
            let wake = self.wake.map(|wake| wake.max(self.now));
            let Some(at) = [arrival, wake].into_iter().flatten().min().filter(|&at| at <= until) else {
                break;
            };
            self.now = at;
            if arrival.is_none_or(|arrival| arrival > at) {
                self.give(Input::Wake);
                continue;
            }
            match self.coming.pop().map(|Reverse((_, _, coming))| coming) {
                Some(Coming::Answer { local, origin, bytes }) => {
                    let local = self.locals[local as usize];
                    self.give(Input::Datagram { local, remote: origin, bytes: &bytes, truncated: false });
                }
                Some(Coming::Address { lookup, address }) => {
                    let ttl = Some(TIME_TO_LIVE);
                    self.give(Input::Resolved { lookup, addresses: &[address], ttl });
                }
                None => {}
            }
        }
        self.now = until;
    }

    /// A client sends this, now.
    pub(crate) fn ask(&mut self, client: SocketAddr, bytes: &[u8]) {
        self.give(Input::Datagram { local: LISTENER, remote: client, bytes, truncated: false });
    }

    fn give(&mut self, input: Input<'_>) {
        self.proxy.handle_input(input, self.now);
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    let (peer, bytes) = (*transmit.peer, transmit.datagram);
                    if peer.local.socket == LISTENER.socket {
                        self.heard.push(Heard { at: self.now, client: peer.remote, bytes: bytes.to_vec() });
                        continue;
                    }
                    self.executed += 1;
                    self.body[..8].copy_from_slice(&self.executed.to_be_bytes());
                    let answer = answer(bytes, &self.body);
                    let local = self.locals.iter().position(|local| *local == peer.local);
                    let local = local.unwrap_or_else(|| {
                        self.locals.push(peer.local);
                        self.locals.len() - 1
                    }) as u64;
                    let answer = Coming::Answer { local, origin: peer.remote, bytes: answer };
                    self.enter(ROUND_TRIP, answer);
                }
                Output::LookUp { lookup, name } => {
                    let address = *self.names.get(&*name).expect("a name there is");
                    self.enter(LOOK_UP, Coming::Address { lookup, address });
                }
                Output::Event(_) | Output::Records(_) => {}
                Output::Wait { until } => {
                    self.wake = until;
                    return;
                }
            }
        }
    }

    fn enter(&mut self, after: Duration, coming: Coming) {
        self.coming.push(Reverse((self.now + after, self.entered, coming)));
        self.entered += 1;
    }
}

/// What an origin says to a request.
fn answer(request: &[u8], body: &[u8]) -> Vec<u8> {
    let request = Datagram::parse(request).expect("well formed");
    let code = if request.content.code == Code::GET { Code::CONTENT } else { Code::CHANGED };
    let content = Content { code, options: Options::NONE, payload: body };
    let mut bytes = Vec::with_capacity(body.len() + 16);
    datagram::encode(&mut bytes, MessageType::Acknowledgement, request.message_id, request.token, &content);
    bytes
}
