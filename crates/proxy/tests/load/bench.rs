//! A proxy, origins at a distance, and whoever asks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Seed};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, Options, datagram};
use coapway_proxy::{Input, Limits, Listening, Output, Parameters, Proxy, SocketRole, UpstreamParameters};
use coapway_relay::{Route, Upstream, UpstreamId};
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
    Request { client: SocketAddr, bytes: Vec<u8> },
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

/// A request that came to an origin.
pub(crate) struct Asked<'d> {
    /// The proxy's socket.
    pub(crate) local: Local,
    pub(crate) origin: SocketAddr,
    pub(crate) at: Instant,
    pub(crate) request: Datagram<'d>,
}

type Script = dyn FnMut(&Asked<'_>) -> Vec<u8>;

pub(crate) struct Bench {
    pub(crate) proxy: Proxy,
    pub(crate) now: Instant,
    pub(crate) heard: Vec<Heard>,
    /// Copies of requests that came to origins.
    pub(crate) executed: u64,
    /// What names stand for.
    pub(crate) names: BTreeMap<String, IpAddr>,
    /// How long it takes until an answer is there.
    pub(crate) round_trip: Duration,
    /// The same where it is another.
    pub(crate) round_trips: BTreeMap<SocketAddr, Duration>,
    /// What all origins answer; nothing at all where that is empty.
    origin: Box<Script>,
    wake: Option<Instant>,
    coming: BinaryHeap<Reverse<(Instant, u64, Coming)>>,
    entered: u64,
    locals: Vec<Local>,
}

impl Bench {
    pub(crate) fn new(
        parameters: Parameters,
        seed: u64,
        origin: impl FnMut(&Asked<'_>) -> Vec<u8> + 'static,
    ) -> Self {
        Self {
            proxy: Proxy::new(parameters, Listening::default(), Seed::from_number(seed)),
            now: Instant::ZERO,
            heard: Vec::new(),
            executed: 0,
            names: BTreeMap::new(),
            round_trip: ROUND_TRIP,
            round_trips: BTreeMap::new(),
            origin: Box::new(origin),
            wake: None,
            coming: BinaryHeap::new(),
            entered: 0,
            locals: Vec::new(),
        }
    }

    /// Origins say in so many bytes how often anything was asked.
    pub(crate) fn counting(relay: coapway_relay::Parameters, bytes: usize) -> Self {
        let (mut executed, mut body) = (0_u64, vec![b'x'; bytes]);
        Self::new(parameters(relay), 1, move |asked| {
            executed += 1;
            body[..8].copy_from_slice(&executed.to_be_bytes());
            answer(&asked.request, &body)
        })
    }

    /// Lets everything happen up to `until`; what arrives comes before timers.
    pub(crate) fn run_until(&mut self, until: Instant) {
        while self.step(until) {}
        self.now = until;
    }

    /// The next thing happens, if it does up to `until`.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let arrival = self.coming.peek().map(|Reverse((at, ..))| *at);
        let wake = self.wake.map(|wake| wake.max(self.now));
        let next = [arrival, wake].into_iter().flatten().min();
        let Some(at) = next.filter(|&at| at <= until) else { return false };
        self.now = at;
        if arrival.is_none_or(|arrival| arrival > at) {
            self.give(Input::Wake);
            return true;
        }
        match self.coming.pop().map(|Reverse((_, _, coming))| coming) {
            Some(Coming::Request { client, bytes }) => self.ask(client, &bytes),
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
        true
    }

    /// A client sends this so much later.
    pub(crate) fn ask_after(&mut self, after: Duration, client: SocketAddr, bytes: Vec<u8>) {
        self.enter(after, Coming::Request { client, bytes });
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
                    let request = Datagram::parse(bytes).expect("well formed");
                    let answer = match (request.content.code, request.message_type) {
                        (Code::EMPTY, MessageType::Confirmable) => {
                            datagram::empty(MessageType::Reset, request.message_id).to_vec()
                        }
                        (Code::EMPTY, _) => Vec::new(),
                        _ => {
                            self.executed += 1;
                            let (local, origin) = (peer.local, peer.remote);
                            (self.origin)(&Asked { local, origin, at: self.now, request })
                        }
                    };
                    if answer.is_empty() {
                        continue;
                    }
                    let local = self.locals.iter().position(|local| *local == peer.local);
                    let local = local.unwrap_or_else(|| {
                        self.locals.push(peer.local);
                        self.locals.len() - 1
                    }) as u64;
                    let answer = Coming::Answer { local, origin: peer.remote, bytes: answer };
                    let round_trip = self.round_trips.get(&peer.remote).copied();
                    self.enter(round_trip.unwrap_or(self.round_trip), answer);
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

/// Clients are believed, and may be as fast as they like.
pub(crate) fn parameters(relay: coapway_relay::Parameters) -> Parameters {
    let trusted = vec!["10.0.0.0/8".parse().expect("a network")];
    let relay = coapway_relay::Parameters { trusted, client_rate: 0, ..relay };
    Parameters {
        downstream: EndpointParameters::default(),
        upstreams: vec![UpstreamParameters::default(); relay.upstreams.len()],
        relay,
        answer_within: None,
        patience: coapway_proxy::Patience::Off,
        limits: Limits::default(),
    }
}

/// The route `/s` to one origin.
pub(crate) fn one_origin() -> coapway_relay::Parameters {
    origins(b"s")
}

/// A route for each of these letters, to 10.2.0.1 and so on.
pub(crate) fn origins(letters: &[u8]) -> coapway_relay::Parameters {
    let mut relay = coapway_relay::Parameters {
        upstreams: vec![Upstream { name: "default".into(), authority: None }],
        ..coapway_relay::Parameters::default()
    };
    for (&letter, number) in letters.iter().zip(1..) {
        let authority = Authority { host: Host::Address([10, 2, 0, number].into()), port: 5683 };
        let name = char::from(letter).to_string().into();
        relay.upstreams.push(Upstream { name, authority: Some(authority) });
        let path = vec![Box::from([letter])];
        relay.routes.push(Route { host: None, path, upstream: UpstreamId(number.into()), strip: true });
    }
    relay
}

/// The value of the first option of this number; empty where there is none.
pub(crate) fn value(message: &Datagram<'_>, number: OptionNumber) -> Vec<u8> {
    let found = message.content.options.iter().find(|(other, _)| *other == number);
    found.map(|(_, value)| value.to_vec()).unwrap_or_default()
}

/// What an origin says to a request: in the Acknowledgement, or as the request came.
pub(crate) fn answer(request: &Datagram<'_>, body: &[u8]) -> Vec<u8> {
    let code = if request.content.code == Code::GET { Code::CONTENT } else { Code::CHANGED };
    let content = Content { code, options: Options::NONE, payload: body };
    let message_type = match request.message_type {
        MessageType::NonConfirmable => MessageType::NonConfirmable,
        MessageType::Confirmable | MessageType::Acknowledgement | MessageType::Reset => {
            MessageType::Acknowledgement
        }
    };
    let mut bytes = Vec::with_capacity(body.len() + 16);
    datagram::encode(&mut bytes, message_type, request.message_id, request.token, &content);
    bytes
}
