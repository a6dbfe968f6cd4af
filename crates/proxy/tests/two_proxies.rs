//! Two proxies that take each other for the origin: what goes round is ended, and how much that takes (RFC 8768).

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Nstart, Seed, SocketId};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, OptionsWriter, datagram};
use coapway_proxy::{Input, Limits, Listening, Output, Parameters, Proxy, SocketRole, UpstreamParameters};
use coapway_relay::{Route, Upstream, UpstreamId};
use coapway_time::Instant;

const LISTENER: SocketId = SocketRole::Listener(0).socket();
const CLIENT: ([u8; 4], u16) = ([10, 1, 0, 9], 40_000);
/// What a request gets that has no Hop-Limit, by default.
const LIMIT: u8 = 16;

/// Where a socket of one of the two is.
fn address(proxy: usize, socket: SocketId) -> SocketAddr {
    let host = [10, 2, 0, proxy as u8 + 1];
    match SocketRole::of(socket) {
        SocketRole::Listener(_) => (host, 5683).into(),
        SocketRole::Upstream { number, .. } => (host, 50_000 + number as u16).into(),
    }
}

/// The opposite.
fn owner(address: SocketAddr) -> Option<(usize, SocketId)> {
    (0..2).find(|&proxy| self::address(proxy, LISTENER).ip() == address.ip()).map(|proxy| {
        let socket = match address.port() {
            5683 => LISTENER,
            port => SocketRole::Upstream { ipv6: false, number: u32::from(port) - 50_000 }.socket(),
        };
        (proxy, socket)
    })
}

struct Circle {
    proxies: [Proxy; 2],
    wakes: [Option<Instant>; 2],
    now: Instant,
    /// From, to, bytes; what was sent is there at once.
    under_way: VecDeque<(SocketAddr, SocketAddr, Vec<u8>)>,
    /// Requests from proxy to proxy, and all datagrams between the two.
    hops: usize,
    datagrams: usize,
    answered: Option<(Instant, Code, String)>,
    message_id: u16,
}

impl Circle {
    fn new(nstart: Nstart) -> Self {
        let proxies = [0, 1].map(|own| {
            let next = address(1 - own, LISTENER);
            let authority = Authority { host: Host::Address(next.ip()), port: next.port() };
            let upstreams = [("default", None), ("next", Some(authority))];
            let upstreams = upstreams.map(|(name, authority)| Upstream { name: name.into(), authority });
            let path = vec![Box::from(*b"l")];
            let parameters = Parameters {
                downstream: EndpointParameters::default(),
                upstreams: vec![UpstreamParameters { nstart, ..UpstreamParameters::default() }; 2],
                relay: coapway_relay::Parameters {
                    upstreams: upstreams.into(),
                    routes: vec![Route { host: None, path, upstream: UpstreamId(1), strip: false }],
                    trusted: vec!["10.0.0.0/8".parse().expect("a network")],
                    insert_hop_limit: Some(LIMIT),
                    identifier: "p".into(),
                    ..coapway_relay::Parameters::default()
                },
                answer_within: None,
                patience: coapway_proxy::Patience::default(),
                limits: Limits::default(),
            };
            Proxy::new(parameters, Listening::default(), Seed::from_number(own as u64))
        });
        Self {
            proxies,
            wakes: [None; 2],
            now: Instant::ZERO,
            under_way: VecDeque::new(),
            hops: 0,
            datagrams: 0,
            answered: None,
            message_id: 0,
        }
    }

    fn give(&mut self, proxy: usize, input: Input<'_>) {
        self.proxies[proxy].handle_input(input, self.now);
        loop {
            match self.proxies[proxy].poll_output() {
                Output::Transmit(transmit) => {
                    let from = address(proxy, transmit.peer.local.socket);
                    self.under_way.push_back((from, transmit.peer.remote, transmit.datagram.to_vec()));
                }
                Output::Event(_) | Output::Records(_) => {}
                Output::LookUp { .. } => panic!("nothing is looked up"),
                Output::Wait { until } => {
                    self.wakes[proxy] = until;
                    return;
                }
            }
        }
    }

    fn arrive(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let message = Datagram::parse(bytes).expect("well formed");
        let Some((proxy, socket)) = owner(to) else {
            let content = message.content;
            if content.code != Code::EMPTY {
                let text = String::from_utf8_lossy(content.payload).into_owned();
                assert_eq!(self.answered.replace((self.now, content.code, text)), None, "one answer");
            }
            if message.message_type == MessageType::Confirmable {
                let bytes = datagram::empty(MessageType::Acknowledgement, message.message_id).to_vec();
                self.under_way.push_back((to, from, bytes));
            }
            return;
        };
        if owner(from).is_some() {
            self.datagrams += 1;
            self.hops += usize::from(message.content.code.is_request());
        }
        let local = Local { socket, address: None };
        self.give(proxy, Input::Datagram { local, remote: from, bytes, truncated: false });
    }

    /// Asks for what goes round, and lets so much time pass.
    fn ask(&mut self, hop_limit: Option<u8>, time: Duration) -> (Duration, Code, String) {
        self.message_id += 1;
        (self.hops, self.datagrams) = (0, 0);
        let (mut options, mut bytes) = (Vec::new(), Vec::new());
        let mut writer = OptionsWriter::new(&mut options);
        writer.push(OptionNumber::URI_PATH, b"l");
        writer.push(OptionNumber::URI_PATH, b"x");
        if let Some(hop_limit) = hop_limit {
            writer.push(OptionNumber::HOP_LIMIT, &[hop_limit]);
        }
        let content = Content { options: writer.finish(), ..Content::bare(Code::GET) };
        let token = self.message_id.to_be_bytes();
        datagram::encode(&mut bytes, MessageType::Confirmable, self.message_id, &token, &content);
        let (began, until) = (self.now, self.now + time);
        self.under_way.push_back((CLIENT.into(), address(0, LISTENER), bytes));
        loop {
            while let Some((from, to, bytes)) = self.under_way.pop_front() {
                self.arrive(from, to, &bytes);
            }
            let wakes = [0, 1].map(|proxy| self.wakes[proxy].map(|wake| (wake.max(self.now), proxy)));
            let Some((at, proxy)) = wakes.into_iter().flatten().min().filter(|(at, _)| *at <= until) else {
                break;
            };
            self.now = at;
            self.give(proxy, Input::Wake);
        }
        self.now = until;
        let (at, code, text) = self.answered.take().expect("it is answered");
        (at.since(began), code, text)
    }
}

/// Hops, and datagrams between the two, that a request takes to end.
fn cost(given: Option<u8>, nstart: Nstart) -> (usize, usize) {
    let mut circle = Circle::new(nstart);
    let (after, code, text) = circle.ask(given, Duration::from_secs(300));
    assert_eq!(code, Code::HOP_LIMIT_REACHED);
    assert!(after < Duration::from_secs(2), "{given:?}: {after:?}");
    assert_eq!(
        text.split(' ').filter(|name| *name == "p").count(),
        circle.hops + 1,
        "who passed it on: {text}"
    );
    (circle.hops, circle.datagrams)
}

#[test]
fn what_goes_round_takes_no_more_hops_than_its_limit_and_two_datagrams_for_each() {
    // The client's own hop is the first where it gave the limit; the first proxy gives 16 for those behind it.
    for (given, hops) in [(None, 16), (Some(16), 15), (Some(3), 2), (Some(2), 1), (Some(1), 0)] {
        let limit = usize::from(given.unwrap_or(LIMIT));
        let took = cost(given, Nstart::Fixed(64));
        assert_eq!(took, (hops, 2 * hops), "{given:?}");
        assert!(took.0 <= limit && took.1 <= 2 * limit, "{given:?}: {took:?}");
    }
}

/// A request that waits for room in the window has its client acknowledged after 500 ms, and the response is one of its
/// own that is acknowledged.
#[test]
fn where_requests_wait_for_room_each_hop_takes_at_most_an_acknowledgement_more_each_way() {
    for (given, hops) in [(None, 16), (Some(16), 15), (Some(3), 2)] {
        let took = cost(given, UpstreamParameters::default().nstart);
        assert_eq!(took.0, hops, "{given:?}");
        assert!(took.1 <= 4 * hops, "{given:?}: {took:?}");
    }
}

#[test]
fn a_hop_limit_of_nothing_is_malformed_and_goes_nowhere() {
    let mut circle = Circle::new(Nstart::Fixed(64));
    let (_, code, _) = circle.ask(Some(0), Duration::from_secs(300));
    assert_eq!((code, circle.datagrams), (Code::BAD_REQUEST, 0));
}
