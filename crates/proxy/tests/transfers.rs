//! Block-wise uploads of different clients to one resource leave from different source ports, since an
//! origin tells them apart by nothing else (RFC 7959 §2.5).

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Nstart, Seed};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, Options, OptionsWriter, datagram};
use coapway_proxy::{Input, Limits, Listening, Output, Parameters, Proxy, SocketRole, UpstreamParameters};
use coapway_relay::Forward;
use coapway_time::Instant;

const NUM_0_MORE: &[u8] = &[0x0A];
const NUM_1_MORE: &[u8] = &[0x1A];
const NUM_2_LAST: &[u8] = &[0x22];

struct Bench {
    proxy: Proxy,
    now: Instant,
    message_id: u16,
}

/// A request that left: from which source port, and its datagram.
struct Left {
    port: u32,
    bytes: Vec<u8>,
}

impl Bench {
    fn new(source_ports: u32) -> Self {
        let upstream =
            UpstreamParameters { source_ports, nstart: Nstart::Fixed(16), ..UpstreamParameters::default() };
        let parameters = Parameters {
            downstream: EndpointParameters::default(),
            upstreams: vec![upstream],
            relay: coapway_relay::Parameters {
                forward: Forward::Open,
                ..coapway_relay::Parameters::default()
            },
            answer_within: None,
            patience: coapway_proxy::Patience::Off,
            limits: Limits::default(),
        };
        let proxy = Proxy::new(parameters, Listening::default(), Seed::from_number(1));
        Self { proxy, now: Instant::ZERO, message_id: 0 }
    }

    fn give(&mut self, role: SocketRole, from: SocketAddr, bytes: &[u8]) {
        let local = Local { socket: role.socket(), address: None };
        self.proxy.handle_input(Input::Datagram { local, remote: from, bytes, truncated: false }, self.now);
        self.proxy.check_invariants();
    }

    /// A block of an upload by the client at `port`; returns what left for the origin.
    fn block(&mut self, port: u16, path: &str, block: &[u8]) -> Option<Left> {
        self.message_id += 1;
        let (mut options, mut bytes) = (Vec::new(), Vec::new());
        let uri = format!("coap://127.0.0.1:5700/{path}");
        let mut writer = OptionsWriter::new(&mut options);
        writer.push(OptionNumber::BLOCK1, block);
        writer.push(OptionNumber::PROXY_URI, uri.as_bytes());
        let content = Content { code: Code::PUT, options: writer.finish(), payload: &[7; 64] };
        datagram::encode(&mut bytes, MessageType::Confirmable, self.message_id, b"\xA1", &content);
        self.give(SocketRole::Listener(0), client(port), &bytes);
        self.left().pop()
    }

    /// What left for the origin by now.
    fn left(&mut self) -> Vec<Left> {
        let mut left = Vec::new();
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    if let SocketRole::Upstream { number, .. } = SocketRole::of(transmit.peer.local.socket) {
                        left.push(Left { port: number, bytes: transmit.datagram.to_vec() });
                    }
                }
                Output::Wait { .. } => return left,
                Output::LookUp { .. } | Output::Event(_) | Output::Records(_) => {}
            }
        }
    }

    /// The origin answers; returns what leaves because of that.
    fn answer(&mut self, request: &Left, code: Code) -> Vec<Left> {
        let asked = Datagram::parse(&request.bytes).expect("valid");
        let content = Content { code, options: Options::NONE, payload: &[] };
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, MessageType::Acknowledgement, asked.message_id, asked.token, &content);
        let role = SocketRole::Upstream { ipv6: false, number: request.port };
        self.give(role, SocketAddr::from((Ipv4Addr::LOCALHOST, 5700)), &bytes);
        self.left()
    }

    fn wait(&mut self, duration: Duration) -> Vec<Left> {
        self.now += duration;
        self.proxy.handle_input(Input::Wake, self.now);
        self.proxy.check_invariants();
        self.left()
    }
}

fn client(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

#[test]
fn uploads_to_one_resource_have_a_port_each_and_keep_it() {
    let mut bench = Bench::new(64);
    let first = bench.block(1, "fw", NUM_0_MORE).expect("it leaves");
    let second = bench.block(2, "fw", NUM_0_MORE).expect("it leaves too");
    assert_ne!(first.port, second.port);
    bench.answer(&first, Code::CONTINUE);
    bench.answer(&second, Code::CONTINUE);
    for (client, port) in [(1, first.port), (2, second.port)] {
        for block in [NUM_1_MORE, NUM_2_LAST] {
            let left = bench.block(client, "fw", block).expect("it leaves");
            assert_eq!(left.port, port);
            bench.answer(&left, if block == NUM_2_LAST { Code::CHANGED } else { Code::CONTINUE });
        }
    }
}

#[test]
fn uploads_to_other_resources_may_share_a_port() {
    let mut bench = Bench::new(64);
    let first = bench.block(1, "fw", NUM_0_MORE).expect("it leaves");
    let second = bench.block(2, "other", NUM_0_MORE).expect("it leaves");
    assert_eq!(first.port, second.port);
}

#[test]
fn with_one_port_the_second_upload_waits_for_the_last_block_of_the_first() {
    let mut bench = Bench::new(1);
    let first = bench.block(1, "fw", NUM_0_MORE).expect("it leaves");
    assert!(bench.block(2, "fw", NUM_0_MORE).is_none());
    assert!(bench.answer(&first, Code::CONTINUE).is_empty());
    let last = bench.block(1, "fw", NUM_2_LAST).expect("the first goes on");
    let next = bench.answer(&last, Code::CHANGED);
    assert_eq!(next.len(), 1, "now it is the second one's turn");
}

#[test]
fn with_one_port_an_upload_that_stands_still_for_ten_seconds_gives_way() {
    let mut bench = Bench::new(1);
    let first = bench.block(1, "fw", NUM_0_MORE).expect("it leaves");
    bench.answer(&first, Code::CONTINUE);
    assert!(bench.block(2, "fw", NUM_0_MORE).is_none());
    assert!(bench.wait(Duration::from_millis(9_900)).is_empty());
    assert_eq!(bench.wait(Duration::from_millis(110)).len(), 1);
}
