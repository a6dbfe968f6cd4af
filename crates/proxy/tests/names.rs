//! Requests to names: who waits, what is remembered of a name and for how long.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Nstart, Seed};
use coapway_message::{Code, Content, Datagram, Failure, MessageType, OptionNumber, OptionsWriter, datagram};
use coapway_proxy::{Input, Limits, Listening, Output, Parameters, Proxy, SocketRole, UpstreamParameters};
use coapway_relay::Forward;
use coapway_time::Instant;

const LISTENER: Local = Local { socket: SocketRole::Listener(0).socket(), address: None };
const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

struct Bench {
    proxy: Proxy,
    now: Instant,
    message_id: u16,
}

/// What one step brought out.
#[derive(Debug, Default)]
struct Out {
    looked_up: Vec<(u64, Box<str>)>,
    /// Where requests went, and their bytes.
    sent: Vec<(Local, SocketAddr, Vec<u8>)>,
    /// Codes and texts that clients got.
    answered: Vec<(Code, String)>,
}

impl Out {
    fn only_look_up(&self) -> u64 {
        let [(lookup, _)] = self.looked_up[..] else { panic!("one look-up: {self:?}") };
        assert!(self.sent.is_empty() && self.answered.is_empty(), "{self:?}");
        lookup
    }

    fn only_origin(&self) -> IpAddr {
        let [(_, origin, _)] = &self.sent[..] else { panic!("one request: {self:?}") };
        assert!(self.looked_up.is_empty() && self.answered.is_empty(), "{self:?}");
        origin.ip()
    }

    fn only_code(&self) -> Code {
        let [(code, _)] = self.answered[..] else { panic!("one answer: {self:?}") };
        code
    }
}

impl Bench {
    fn new() -> Self {
        Self::with(Forward::Open)
    }

    fn with(forward: Forward) -> Self {
        let upstream = UpstreamParameters { nstart: Nstart::Fixed(1024), ..UpstreamParameters::default() };
        let parameters = Parameters {
            downstream: EndpointParameters::default(),
            upstreams: vec![upstream],
            relay: coapway_relay::Parameters { forward, ..coapway_relay::Parameters::default() },
            answer_within: None,
            patience: coapway_proxy::Patience::Off,
            limits: Limits { names: 8, ..Limits::default() },
        };
        let proxy = Proxy::new(parameters, Listening::default(), Seed::from_number(1));
        Self { proxy, now: Instant::ZERO, message_id: 0 }
    }

    fn after(&mut self, wait: Duration) -> &mut Self {
        self.now += wait;
        self
    }

    /// A GET of `client` for something at `name`.
    fn get(&mut self, client: u8, name: &str) -> Out {
        self.message_id += 1;
        let (mut options, mut bytes) = (Vec::new(), Vec::new());
        let mut writer = OptionsWriter::new(&mut options);
        writer.push(OptionNumber::PROXY_URI, format!("coap://{name}:5683/x").as_bytes());
        let content = Content { code: Code::GET, options: writer.finish(), payload: &[] };
        datagram::encode(&mut bytes, MessageType::Confirmable, self.message_id, b"\xA1", &content);
        let remote = SocketAddr::from(([127, 0, 1, client], 40_000));
        self.give(Input::Datagram { local: LISTENER, remote, bytes: &bytes, truncated: false })
    }

    fn resolved(&mut self, lookup: u64, addresses: &[IpAddr], ttl: Option<Duration>) -> Out {
        self.give(Input::Resolved { lookup, addresses, ttl })
    }

    fn give(&mut self, input: Input<'_>) -> Out {
        self.proxy.handle_input(input, self.now);
        self.proxy.check_invariants();
        let mut out = Out::default();
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) if transmit.peer.local.socket == LISTENER.socket => {
                    let datagram = Datagram::parse(transmit.datagram).expect("well formed");
                    let text = String::from_utf8_lossy(datagram.content.payload).into_owned();
                    out.answered.push((datagram.content.code, text));
                }
                Output::Transmit(transmit) => {
                    let peer = transmit.peer;
                    out.sent.push((peer.local, peer.remote, transmit.datagram.to_vec()));
                }
                Output::LookUp { lookup, name } => out.looked_up.push((lookup, name)),
                Output::Event(_) | Output::Records(_) => {}
                Output::Wait { .. } => return out,
            }
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_name_is_looked_up_once_for_all_who_wait() {
    let mut bench = Bench::new();
    let lookup = bench.get(1, "a.example").only_look_up();
    for client in 2..10 {
        let out = bench.get(client, "a.example");
        assert!(out.looked_up.is_empty() && out.sent.is_empty(), "{out:?}");
    }
    assert_eq!(bench.resolved(lookup, &[ONE], None).sent.len(), 9);
    assert_eq!(bench.get(1, "a.example").only_origin(), ONE);
}

#[test]
fn addresses_are_used_for_as_long_as_the_source_says_and_never_more_than_30_s() {
    for (ttl, seconds) in [(None, 30), (Some(5), 5), (Some(86_400), 30)] {
        let mut bench = Bench::new();
        let lookup = bench.get(1, "a.example").only_look_up();
        bench.resolved(lookup, &[ONE], ttl.map(Duration::from_secs));
        let lifetime = Duration::from_secs(seconds);
        assert_eq!(bench.after(lifetime - SECOND).get(2, "a.example").only_origin(), ONE, "{ttl:?}");
        bench.after(SECOND).get(3, "a.example").only_look_up();
    }
    let mut bench = Bench::new();
    let lookup = bench.get(1, "a.example").only_look_up();
    assert_eq!(bench.resolved(lookup, &[ONE], Some(Duration::ZERO)).sent.len(), 1);
    bench.get(2, "a.example").only_look_up();
}

#[test]
fn an_unknown_name_is_unknown_for_2_s() {
    let mut bench = Bench::new();
    let lookup = bench.get(1, "a.example").only_look_up();
    assert_eq!(bench.resolved(lookup, &[], None).only_code(), Code::BAD_GATEWAY);
    assert_eq!(bench.after(SECOND).get(2, "a.example").only_code(), Code::BAD_GATEWAY);
    bench.after(SECOND).get(3, "a.example").only_look_up();
}

/// Neither a name that is listed nor an address behind one that is not opens what the list does not name.
#[test]
fn a_name_that_leads_to_this_host_or_to_what_is_not_listed_is_refused_and_nothing_is_sent() {
    let forward = || Forward::Listed {
        clients: vec!["127.0.0.0/8".parse().expect("a network")],
        allow: ["a.example", "192.0.2.1"].map(|text| text.parse().expect("a pattern")).into(),
    };
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for (name, address) in [("a.example", loopback), ("b.example", loopback), ("b.example", OTHER)] {
        let mut bench = Bench::with(forward());
        let lookup = bench.get(1, name).only_look_up();
        let out = bench.resolved(lookup, &[address], None);
        let refusal = (Code::PROXYING_NOT_SUPPORTED, "not-sent: target not allowed".to_owned());
        assert_eq!((&out.answered[..], &out.sent[..]), (&[refusal][..], &[][..]), "{name} at {address}");
        // Nor afterwards, when it is known where it is.
        let out = bench.get(2, name);
        assert_eq!((out.only_code(), out.sent.len()), (Code::PROXYING_NOT_SUPPORTED, 0));
    }
    for (name, address) in [("a.example", OTHER), ("b.example", ONE)] {
        let mut bench = Bench::with(forward());
        let lookup = bench.get(1, name).only_look_up();
        assert_eq!(bench.resolved(lookup, &[address], None).only_origin(), address, "{name}");
    }
}

#[test]
fn a_failed_look_up_says_nothing_of_the_name() {
    let mut bench = Bench::new();
    let lookup = bench.get(1, "a.example").only_look_up();
    let out = bench.give(Input::LookUpFailed { lookup, failure: Failure::LookUpFailed });
    assert_eq!(out.answered, [(Code::BAD_GATEWAY, "not-sent: name look-up failed".into())]);
    let lookup = bench.get(2, "a.example").only_look_up();
    let out = bench.give(Input::LookUpFailed { lookup, failure: Failure::LookUpTimedOut });
    assert_eq!(out.answered, [(Code::GATEWAY_TIMEOUT, "not-sent: name look-up timed out".into())]);
    let lookup = bench.get(2, "a.example").only_look_up();
    bench.resolved(lookup, &[ONE], None);
    // Known before: used on while look-ups fail, and asked for again after 2 s.
    for _ in 0..3 {
        let lookup = bench.after(30 * SECOND).get(3, "a.example").only_look_up();
        assert_eq!(
            bench.give(Input::LookUpFailed { lookup, failure: Failure::LookUpFailed }).only_origin(),
            ONE
        );
        assert_eq!(bench.after(SECOND).get(4, "a.example").only_origin(), ONE);
        let lookup = bench.after(SECOND).get(5, "a.example").only_look_up();
        assert_eq!(bench.resolved(lookup, &[ONE], None).sent.len(), 1);
    }
}

#[test]
fn too_many_look_ups_at_a_time_are_our_own_fault() {
    let mut bench = Bench::new();
    let lookup = bench.get(1, "a.example").only_look_up();
    let out = bench.give(Input::LookUpFailed { lookup, failure: Failure::Overloaded });
    assert_eq!(out.answered, [(Code::SERVICE_UNAVAILABLE, "not-sent: overloaded".into())]);
    bench.get(2, "a.example").only_look_up();
}

#[test]
fn a_name_whose_address_refused_is_looked_up_anew_for_the_next_request() {
    let mut bench = Bench::new();
    let lookup = bench.get(1, "a.example").only_look_up();
    let out = bench.resolved(lookup, &[ONE], None);
    let (local, remote, quoted) = &out.sent[0];
    let (local, remote, failure) = (*local, *remote, Failure::Unreachable);
    let out = bench.give(Input::Undeliverable { local, remote, quoted, failure });
    assert_eq!(out.answered, [(Code::BAD_GATEWAY, "not-executed: origin unreachable".into())]);
    let lookup = bench.get(2, "a.example").only_look_up();
    assert_eq!(bench.resolved(lookup, &[OTHER], None).only_origin(), OTHER);
    assert_eq!(bench.get(3, "a.example").only_origin(), OTHER, "the new address is trusted");
}

#[test]
fn one_client_cannot_have_everybody_wait() {
    let mut bench = Bench::new();
    let lookup = bench.get(1, "a.example").only_look_up();
    for _ in 1..64 {
        let out = bench.get(1, "a.example");
        assert!(out.answered.is_empty() && out.looked_up.is_empty(), "{out:?}");
    }
    let out = bench.get(1, "b.example");
    assert_eq!(out.answered, [(Code::SERVICE_UNAVAILABLE, "not-sent: overloaded".into())]);
    assert!(bench.get(2, "a.example").answered.is_empty());
    assert_eq!(bench.resolved(lookup, &[ONE], None).sent.len(), 65);
    bench.get(1, "b.example").only_look_up();
}

#[test]
fn names_make_room_for_names_but_not_while_they_are_looked_up() {
    let mut bench = Bench::new();
    let lookups: Vec<_> = (0..8).map(|n| bench.get(n, &format!("{n}.example")).only_look_up()).collect();
    assert_eq!(bench.get(9, "9.example").only_code(), Code::SERVICE_UNAVAILABLE);
    for (lookup, second) in lookups.into_iter().zip(0..) {
        bench.now = Instant::ZERO + SECOND * second;
        bench.resolved(lookup, &[ONE], None);
    }
    bench.get(9, "9.example").only_look_up();
    assert_eq!(bench.get(1, "1.example").only_origin(), ONE);
    bench.get(0, "0.example").only_look_up();
}

#[test]
fn names_learned_again_and_again_take_no_more_room() {
    let mut bench = Bench::new();
    for round in 0..1000 {
        let out = bench.after(3 * SECOND).get((round % 200) as u8, "a.example");
        if let [(lookup, _)] = out.looked_up[..] {
            bench.resolved(lookup, if round % 2 == 0 { &[ONE] } else { &[] }, None);
        }
    }
    bench.after(31 * SECOND).get(1, "b.example").only_look_up();
}
