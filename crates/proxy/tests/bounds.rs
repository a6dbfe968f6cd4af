//! What strangers and broken networks make a proxy remember has a bound, costs nobody else anything, and is
//! given back.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{DuplicatesParameters, EndpointParameters, Local, Seed};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, Datagram, Failure, MessageType, Options, datagram};
use coapway_proxy::{
    Input, Limits, Listening, Occupancy, Output, Parameters, Proxy, SocketRole, UpstreamParameters,
};
use coapway_relay::{Route, Upstream, UpstreamId};
use coapway_time::Instant;

const LISTENER: Local = Local { socket: SocketRole::Listener(0).socket(), address: None };
const ORIGIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 5683);
const MILLISECOND: Duration = Duration::from_millis(1);

/// What the origin's host does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    /// It is answered 2.05 or 2.04 at once.
    There,
    /// Nobody can be reached.
    Away,
}

/// A proxy in front of one origin, and what came of what it was given.
struct Bench {
    proxy: Proxy,
    network: Network,
    now: Instant,
    wake: Option<Instant>,
    /// Requests the origin got.
    executed: u64,
}

impl Bench {
    /// With so much memory for repeats.
    fn new(network: Network, memory: usize) -> Self {
        let authority = Authority { host: Host::Address(ORIGIN.ip()), port: ORIGIN.port() };
        let relay = coapway_relay::Parameters {
            upstreams: vec![
                Upstream { name: "default".into(), authority: None },
                Upstream { name: "origin".into(), authority: Some(authority) },
            ],
            routes: vec![Route { host: None, path: Vec::new(), upstream: UpstreamId(1), strip: false }],
            ..coapway_relay::Parameters::default()
        };
        let parameters = Parameters {
            downstream: EndpointParameters {
                duplicates: DuplicatesParameters { memory },
                ..EndpointParameters::default()
            },
            upstreams: vec![UpstreamParameters::default(); 2],
            relay,
            answer_within: None,
            patience: coapway_proxy::Patience::Off,
            limits: Limits::default(),
        };
        let proxy = Proxy::new(parameters, Listening::default(), Seed::from_number(1));
        Self { proxy, network, now: Instant::ZERO, wake: None, executed: 0 }
    }

    /// Lets time pass.
    fn run_until(&mut self, until: Instant) {
        while let Some(wake) = self.wake.filter(|wake| *wake <= until) {
            self.now = self.now.max(wake);
            let heard = self.give(Input::Wake);
            assert!(heard.is_empty(), "nothing is left to be said: {heard:?}");
        }
        self.now = until;
    }

    /// Asks in the name of a client and returns all that it hears at once.
    fn ask(&mut self, client: SocketAddr, message_id: u16, code: Code) -> Vec<Vec<u8>> {
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, MessageType::Confirmable, message_id, b"\xA1", &Content::bare(code));
        self.give(Input::Datagram { local: LISTENER, remote: client, bytes: &bytes, truncated: false })
    }

    fn give(&mut self, input: Input<'_>) -> Vec<Vec<u8>> {
        self.proxy.handle_input(input, self.now);
        let mut heard = Vec::new();
        loop {
            let (local, bytes) = match self.proxy.poll_output() {
                Output::Transmit(transmit) if transmit.peer.local.socket == LISTENER.socket => {
                    heard.push(transmit.datagram.to_vec());
                    continue;
                }
                Output::Transmit(transmit) => (transmit.peer.local, transmit.datagram.to_vec()),
                Output::LookUp { .. } | Output::Event(_) | Output::Records(_) => continue,
                Output::Wait { until } => {
                    self.wake = until;
                    return heard;
                }
            };
            let answer = answer(&bytes);
            self.executed += u64::from(self.network == Network::There);
            let input = match self.network {
                Network::There => Input::Datagram { local, remote: ORIGIN, bytes: &answer, truncated: false },
                Network::Away => {
                    let failure = Failure::Unreachable;
                    Input::Undeliverable { local, remote: ORIGIN, quoted: &bytes, failure }
                }
            };
            self.proxy.handle_input(input, self.now);
        }
    }
}

/// What the origin says to a request.
fn answer(request: &[u8]) -> Vec<u8> {
    let request = Datagram::parse(request).expect("well formed");
    let code = if request.content.code == Code::GET { Code::CONTENT } else { Code::CHANGED };
    let mut bytes = Vec::new();
    let content = Content { code, options: Options::NONE, payload: b"22.5" };
    datagram::encode(&mut bytes, MessageType::Acknowledgement, request.message_id, request.token, &content);
    bytes
}

/// The code of the only answer.
#[track_caller]
fn code(heard: &[Vec<u8>]) -> Code {
    let [answer] = heard else { panic!("one answer: {heard:?}") };
    Datagram::parse(answer).expect("well formed").content.code
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn a_new_port_for_each_request_leaves_nothing_behind() {
    // 50 000 in 100 s, from one host; the memory holds a sixth of them.
    let mut bench = Bench::new(Network::There, 1 << 20);
    let mut most = 0;
    for request in 0..50_000_u16 {
        bench.run_until(Instant::ZERO + MILLISECOND * 2 * u32::from(request));
        let client = SocketAddr::from(([10, 1, 0, 1], 1024 + request));
        assert_eq!(code(&bench.ask(client, request % 7, Code::GET)), Code::CONTENT, "{request}");
        most = most.max(bench.proxy.occupancy().remembered);
    }
    assert_eq!(bench.executed, 50_000);
    assert!((5_000..20_000).contains(&most), "{most}");
    // All but what came in the last ten seconds: nothing has come since that would have it looked at.
    bench.run_until(at(100 + 250));
    let remembered = bench.proxy.occupancy().remembered;
    assert!(remembered <= 5_000, "{remembered}");
    assert_eq!(bench.proxy.occupancy(), Occupancy { remembered, ..Occupancy::default() });
    bench.run_until(at(100 + 260));
    assert_eq!(bench.proxy.occupancy(), Occupancy::default());
    bench.proxy.check_invariants();
}

#[test]
fn while_the_network_is_away_everybody_is_told_at_once_and_nothing_grows() {
    // 20 requests/s for 15 minutes.
    let mut bench = Bench::new(Network::Away, EndpointParameters::default().duplicates.memory);
    let mut at_five_minutes = 0;
    for request in 0..18_000_u16 {
        bench.run_until(Instant::ZERO + MILLISECOND * 50 * u32::from(request));
        let client = SocketAddr::from(([10, 1, 0, 1], 40_000));
        assert_eq!(code(&bench.ask(client, request, Code::GET)), Code::BAD_GATEWAY, "{request}");
        let occupancy = bench.proxy.occupancy();
        assert_eq!(occupancy, Occupancy { remembered: occupancy.remembered, ..Occupancy::default() });
        if bench.now <= at(300) {
            at_five_minutes = occupancy.remembered;
        }
        assert!(occupancy.remembered * 10 <= at_five_minutes.max(5_000) * 11, "{request}: {occupancy:?}");
    }
    bench.network = Network::There;
    let client = SocketAddr::from(([10, 1, 0, 1], 40_001));
    assert_eq!(code(&bench.ask(client, 1, Code::GET)), Code::CONTENT, "it is back");
    bench.run_until(at(15 * 60 + 300));
    assert_eq!(bench.proxy.occupancy(), Occupancy::default());
}

#[test]
fn a_flood_of_one_client_costs_no_other_what_is_known_of_it() {
    let mut bench = Bench::new(Network::There, 1 << 14);
    let [one, other] = [1, 2].map(|host| SocketAddr::from(([10, 1, 0, host], 40_000)));
    let answered = bench.ask(one, 1, Code::POST);
    assert_eq!(code(&answered), Code::CHANGED);
    let mut flood = 0..;
    let refused = flood.find(|&message_id| code(&bench.ask(other, message_id, Code::POST)) != Code::CHANGED);
    let refused = refused.expect("the memory has a bound");
    assert!((10..200).contains(&refused), "{refused}");
    assert_eq!(code(&bench.ask(other, refused, Code::POST)), Code::SERVICE_UNAVAILABLE);
    for message_id in 1_000..2_000 {
        assert_eq!(code(&bench.ask(other, message_id, Code::GET)), Code::CONTENT, "the rest is for others");
    }
    let executed = bench.executed;
    assert_eq!(bench.ask(one, 1, Code::POST), answered, "a repeat hears what was said before");
    for message_id in 0..refused {
        assert_eq!(code(&bench.ask(other, message_id, Code::POST)), Code::CHANGED);
    }
    assert_eq!(bench.executed, executed, "nothing is done twice");
    bench.run_until(at(248));
    assert_eq!(code(&bench.ask(other, 5_000, Code::POST)), Code::CHANGED, "there is room again");
}
