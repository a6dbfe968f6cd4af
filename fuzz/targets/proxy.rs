//! A script for a whole proxy: datagrams of clients and origins, look-ups, ICMP errors, time. Whatever
//! happens, its parts agree, it sends well-formed messages only and never many at once, and at the end
//! every request was settled.
//!
//! Input: commands of one byte, each with its arguments; see `World::step`.

#![no_main]

use std::collections::{HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{DuplicatesParameters, EndpointParameters, Local, Nstart, Seed, SocketId};
use coapway_fuzz::Script;
use coapway_fuzz::message::{TYPES, message, raw};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Datagram, ExchangeId, Failure, MessageType, OptionNumber};
use coapway_proxy::{
    Event, Input, Limits, Lines, Listening, Output, Parameters, Proxy, Record, Sampling, SocketRole,
    UpstreamParameters,
};
use coapway_relay::{Forward, Route, Upstream, UpstreamId};
use coapway_time::Instant;
use libfuzzer_sys::fuzz_target;

/// A script is cut here.
const MOST_STEPS: usize = 200;
/// Datagrams that are kept for later steps, in each direction.
const KEPT: usize = 8;
/// Requests that are forwarded at a time.
const MOST_FETCHES: usize = 6;
/// More outputs than this never come of one input, not even where all that is open moves at once.
const MOST_OUTPUTS: usize = 16 * MOST_FETCHES;

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script::new(bytes);
    let mut world = World::new();
    for _ in 0..MOST_STEPS {
        if world.step(&mut script).is_none() {
            break;
        }
    }
    world.end();
});

/// A datagram with the socket of ours and the remote endpoint it went from, to or between.
#[derive(Clone, Debug)]
struct Sighting {
    local: Local,
    remote: SocketAddr,
    bytes: Vec<u8>,
}

struct World {
    proxy: Proxy,
    now: Instant,
    /// When the proxy wants to be woken.
    until: Option<Instant>,
    to_clients: VecDeque<Sighting>,
    to_origins: VecDeque<Sighting>,
    from_clients: VecDeque<Sighting>,
    /// Look-ups that were asked for and not ended.
    lookups: Vec<u64>,
    /// Requests that are not answered.
    open: HashSet<ExchangeId>,
}

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

fn client(number: u8) -> SocketAddr {
    loopback(40_000 + u16::from(number % 3))
}

fn parameters() -> Parameters {
    let upstream = UpstreamParameters {
        // Few of everything, so that scripts come to the limits.
        nstart: Nstart::Auto { max: 2 },
        queue: 2,
        source_ports: 2,
        ..UpstreamParameters::default()
    };
    let route = |path: &str, upstream| Route {
        host: None,
        path: vec![path.as_bytes().into()],
        upstream: UpstreamId(upstream),
        strip: upstream == 1,
    };
    let named =
        |name: &str, host| Upstream { name: name.into(), authority: Some(Authority { host, port: 5700 }) };
    Parameters {
        downstream: EndpointParameters {
            duplicates: DuplicatesParameters { memory: 4096 },
            ..EndpointParameters::default()
        },
        upstreams: vec![upstream, upstream, UpstreamParameters { deduplicates: true, ..upstream }],
        relay: coapway_relay::Parameters {
            upstreams: vec![
                Upstream { name: "default".into(), authority: None },
                named("address", Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST))),
                named("name", Host::Name("origin.example".into())),
            ],
            routes: vec![route("a", 1), route("n", 2)],
            forward: Forward::Open,
            own: vec![loopback(5683)],
            ..coapway_relay::Parameters::default()
        },
        answer_within: None,
        patience: coapway_proxy::Patience::Off,
        limits: Limits { fetches: MOST_FETCHES, origins: 3, names: 2, clients: 4, hints: 4 },
    }
}

/// What requests ask for.
const TARGETS: [(OptionNumber, &[u8]); 8] = [
    (OptionNumber::URI_PATH, b"a"),
    (OptionNumber::URI_PATH, b"n"),
    (OptionNumber::URI_PATH, b"nowhere"),
    (OptionNumber::PROXY_URI, b"coap://127.0.0.1:5700/x"),
    (OptionNumber::PROXY_URI, b"coap://[::1]:5701/x?y"),
    (OptionNumber::PROXY_URI, b"coap://other.example/x"),
    (OptionNumber::PROXY_URI, b"coap://127.0.0.1:5683/a"),
    (OptionNumber::PROXY_URI, b"coap://127.0.0.2:5700/x"),
];

const METHODS: [Code; 7] =
    [Code::GET, Code::POST, Code::PUT, Code::DELETE, Code::FETCH, Code::PATCH, Code(0x1F)];

const RESPONSES: [Code; 8] = [
    Code::EMPTY,
    Code::CONTENT,
    Code::CREATED,
    Code::VALID,
    Code::NOT_FOUND,
    Code::SERVICE_UNAVAILABLE,
    Code::HOP_LIMIT_REACHED,
    Code(0x61),
];

impl World {
    fn new() -> Self {
        let listening = Listening { events: true, records: Some(Sampling::ALL), late: false };
        let mut world = Self {
            proxy: Proxy::new(parameters(), listening, Seed::from_number(1)),
            now: Instant::ZERO,
            until: None,
            to_clients: VecDeque::new(),
            to_origins: VecDeque::new(),
            from_clients: VecDeque::new(),
            lookups: Vec::new(),
            open: HashSet::new(),
        };
        world.drain();
        world
    }

    /// Carries out one command; `None` at the end of the script.
    fn step(&mut self, script: &mut Script<'_>) -> Option<()> {
        let command = script.byte()?;
        match command % 14 {
            // A request that may be right.
            0 | 1 => {
                let remote = client(script.byte()?);
                let (message_type, code) = (*script.pick(&TYPES[..2])?, *script.pick(&METHODS)?);
                let target = *script.pick(&TARGETS)?;
                let message_id = u16::from(script.byte()?);
                let bytes = message(message_type, message_id, &[0xA1, command], code, target, &[]);
                self.client_sends(remote, bytes);
            }
            // A request with whatever stands behind its token.
            2 => {
                let (remote, message_id) = (client(script.byte()?), u16::from(script.byte()?));
                let token = script.text()?;
                let bytes = raw(script, message_id, token)?;
                self.client_sends(remote, bytes);
            }
            // Any bytes.
            3 => {
                let remote = client(script.byte()?);
                self.client_sends(remote, script.text()?.to_vec());
            }
            // A client repeats itself.
            4 => {
                let Sighting { remote, bytes, .. } = pick(script, &self.from_clients)?;
                self.client_sends(remote, bytes);
            }
            // A client answers a datagram of ours.
            5 => {
                let to = pick(script, &self.to_clients)?;
                let message_type = *script.pick(&TYPES[2..])?;
                let Ok(read) = Datagram::parse(&to.bytes) else { return Some(()) };
                let none = (OptionNumber::OBSERVE, &[][..]);
                let bytes = message(message_type, read.message_id, &[], Code::EMPTY, none, &[]);
                self.client_sends(to.remote, bytes);
            }
            // An origin answers, with a message that may be right.
            6 | 7 => {
                let to = pick(script, &self.to_origins)?;
                let (message_type, code) = (*script.pick(&TYPES)?, *script.pick(&RESPONSES)?);
                let mask = script.byte()?;
                let Ok(read) = Datagram::parse(&to.bytes) else { return Some(()) };
                let message_id = read.message_id ^ u16::from(mask & 1);
                let token = match (code, mask & 2) {
                    (Code::EMPTY, _) => &[],
                    (_, 0) => read.token,
                    _ => b"\xA1",
                };
                let option = (OptionNumber(u16::from(script.byte()?)), script.text()?);
                let payload = if code == Code::EMPTY { &[] } else { script.text()? };
                let bytes = message(message_type, message_id, token, code, option, payload);
                self.give(to.local, to.remote, bytes, mask & 4 != 0);
            }
            // An origin answers with whatever stands behind the token.
            8 => {
                let to = pick(script, &self.to_origins)?;
                let Ok(read) = Datagram::parse(&to.bytes) else { return Some(()) };
                let bytes = raw(script, read.message_id, read.token)?;
                self.give(to.local, to.remote, bytes, false);
            }
            // Somebody sends any bytes to a socket towards origins.
            9 => {
                let number = u32::from(script.byte()?);
                let ipv6 = number & 1 != 0;
                let role = SocketRole::Upstream { ipv6, number: number >> 1 };
                let local = Local { socket: role.socket(), address: None };
                let remote =
                    if ipv6 { SocketAddr::from((Ipv6Addr::LOCALHOST, 5701)) } else { loopback(5700) };
                self.give(local, remote, script.text()?.to_vec(), false);
            }
            // A look-up ends, or one that was never asked for.
            10 => {
                let place = usize::from(script.byte()?);
                let lookup = match place < self.lookups.len() {
                    true => self.lookups.remove(place),
                    false => place as u64,
                };
                let addresses: &[IpAddr] = &[
                    IpAddr::V4(Ipv4Addr::LOCALHOST),
                    IpAddr::V6(Ipv6Addr::LOCALHOST),
                    IpAddr::V4(Ipv4Addr::BROADCAST),
                ];
                let addresses = &addresses[..usize::from(script.byte()?) % 4];
                self.proxy.handle_input(Input::Resolved { lookup, addresses, ttl: None }, self.now);
                self.drain();
            }
            // The network says that a datagram did not arrive, and quotes some of it.
            11 => {
                let upstream = script.byte()? & 1 == 0;
                let sighting = pick(script, if upstream { &self.to_origins } else { &self.to_clients })?;
                let quoted = sighting.bytes.get(..usize::from(script.byte()?)).unwrap_or(&sighting.bytes);
                let failure = *script.pick(&[Failure::Unreachable, Failure::TooLarge])?;
                let Sighting { local, remote, .. } = sighting;
                let input = Input::Undeliverable { local, remote, quoted, failure };
                self.proxy.handle_input(input, self.now);
                self.drain();
            }
            // Time passes: to the next deadline, or by a power of two in ms, in one go.
            12 => {
                let step = script.byte()? % 24;
                self.now = match (step, self.until) {
                    (0, Some(until)) => self.now.max(until),
                    (0, None) => self.now,
                    _ => self.now + Duration::from_millis(1 << (step - 1)),
                };
                self.wake();
            }
            // Other settings, or the end.
            _ => {
                let choice = script.byte()?;
                if choice == 0xFF {
                    let until = self.now + Duration::from_millis(1 << (script.byte()? % 20));
                    self.proxy.handle_input(Input::Drain { until }, self.now);
                } else {
                    self.reload(choice);
                }
                self.drain();
            }
        }
        Some(())
    }

    /// Upstreams change places, go, are renamed; limits and listeners change.
    fn reload(&mut self, choice: u8) {
        let mut parameters = parameters();
        let Parameters { upstreams, relay, .. } = &mut parameters;
        if choice & 1 != 0 {
            upstreams.swap(1, 2);
            relay.upstreams.swap(1, 2);
            relay.routes.iter_mut().for_each(|route| route.upstream = UpstreamId(3 - route.upstream.0));
        }
        if choice & 2 != 0 {
            upstreams.pop();
            relay.upstreams.pop();
            relay.routes.retain(|route| route.upstream.0 < 2);
        }
        if choice & 4 != 0 {
            relay.upstreams[1].name = "renamed".into();
            relay.routes.iter_mut().for_each(|route| route.strip = !route.strip);
        }
        if choice & 8 != 0 {
            upstreams.iter_mut().for_each(|upstream| upstream.nstart = Nstart::Fixed(1));
            parameters.limits.fetches = 2;
            parameters.downstream.duplicates.memory = 1024;
        }
        let listening =
            Listening { events: true, records: (choice & 16 != 0).then_some(Sampling::ALL), late: false };
        let closing = if choice & 32 != 0 { &[SocketId(0)][..] } else { &[] };
        self.proxy.handle_input(Input::Reconfigure { parameters: &parameters, listening, closing }, self.now);
    }

    fn client_sends(&mut self, remote: SocketAddr, bytes: Vec<u8>) {
        let local = Local { socket: SocketId(0), address: None };
        keep(&mut self.from_clients, Sighting { local, remote, bytes: bytes.clone() });
        self.give(local, remote, bytes, false);
    }

    fn give(&mut self, local: Local, remote: SocketAddr, bytes: Vec<u8>, truncated: bool) {
        self.proxy.handle_input(Input::Datagram { local, remote, bytes: &bytes, truncated }, self.now);
        self.drain();
    }

    fn wake(&mut self) {
        if self.until.is_some_and(|until| until <= self.now) {
            self.proxy.handle_input(Input::Wake, self.now);
            self.drain();
            assert!(self.until.is_none_or(|until| until > self.now), "all deadlines are met");
        }
    }

    fn told(&mut self, event: &Event) {
        match event {
            Event::Received { request, .. } => assert!(self.open.insert(*request), "a request is new once"),
            Event::Answered { request, .. } => {
                assert!(self.open.remove(request), "a request is answered once");
            }
            _ => {}
        }
    }

    /// Takes out all there is to do.
    fn drain(&mut self) {
        for _ in 0..MOST_OUTPUTS {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    let read = Datagram::parse(transmit.datagram).expect("what it sends is well-formed");
                    let empty = read.content.code == Code::EMPTY;
                    assert!(empty || read.message_type != MessageType::Reset, "a Reset is empty");
                    let (local, remote) = (transmit.peer.local, transmit.peer.remote);
                    let sighting = Sighting { local, remote, bytes: transmit.datagram.to_vec() };
                    match SocketRole::of(local.socket) {
                        SocketRole::Listener(_) => keep(&mut self.to_clients, sighting),
                        SocketRole::Upstream { ipv6, .. } => {
                            assert_eq!(remote.is_ipv6(), ipv6);
                            assert_ne!(remote, loopback(5683), "it never asks itself");
                            keep(&mut self.to_origins, sighting);
                        }
                    }
                }
                Output::LookUp { lookup, .. } => self.lookups.push(lookup),
                Output::Event(event) => self.told(&event),
                Output::Records(records) => {
                    records.iter().for_each(|(record, upstream)| recorded(record, upstream));
                }
                Output::Wait { until } => {
                    self.until = until;
                    self.proxy.check_invariants();
                    let occupancy = self.proxy.occupancy();
                    assert!(occupancy.fetches <= MOST_FETCHES && occupancy.exchanges <= MOST_FETCHES);
                    assert_eq!(occupancy.requests, occupancy.fetches);
                    return;
                }
            }
        }
        panic!("more than {MOST_OUTPUTS} outputs at once");
    }

    /// Nothing more comes, and time passes until nothing is left to wait for.
    fn end(&mut self) {
        let mut wakes = 0;
        while let Some(until) = self.until {
            self.now = self.now.max(until);
            self.wake();
            wakes += 1;
            assert!(wakes < 100_000, "waits for ever");
        }
        assert!(self.proxy.is_idle() && self.open.is_empty(), "a request is never settled");
        assert_eq!(self.proxy.occupancy().queued + self.proxy.occupancy().exchanges, 0);
    }
}

fn pick(script: &mut Script<'_>, list: &VecDeque<Sighting>) -> Option<Sighting> {
    let place = usize::from(script.byte()?);
    list.get(place.checked_rem(list.len())?).cloned()
}

fn keep(list: &mut VecDeque<Sighting>, sighting: Sighting) {
    if list.len() == KEPT {
        list.pop_front();
    }
    list.push_back(sighting);
}

/// Every record is one line, whatever the client asked for.
fn recorded(record: &Record, upstream: &str) {
    let mut line = vec![0; Lines::room(record, upstream)];
    let length = Lines::new(0).write(record, upstream, &|_| None, &mut line).expect("there is room");
    let text = std::str::from_utf8(&line[..length]).expect("it is text");
    assert!(text.starts_with('{') && text.ends_with("}\n"), "{text:?}");
    assert_eq!(text.chars().filter(|symbol| symbol.is_control()).count(), 1, "{text:?}");
}
