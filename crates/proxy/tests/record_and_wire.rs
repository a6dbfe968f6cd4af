//! A thousand forwards over a path that loses a quarter: what the records say is what was on the wire.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Seed, SocketId};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, Options, OptionsWriter, datagram};
use coapway_proxy::{
    Input, Limits, Lines, Listening, Output, Parameters, Proxy, Sampling, SocketRole, UpstreamParameters,
};
use coapway_relay::{Route, Upstream, UpstreamId};
use coapway_time::Instant;
use serde_json::Value;

const FORWARDS: u16 = 1000;
const LOSS: f64 = 0.25;
const ONE_WAY: Duration = Duration::from_millis(30);
const SPACING: Duration = Duration::from_millis(700);
const LISTENER: SocketId = SocketRole::Listener(0).socket();
const ORIGIN: ([u8; 4], u16) = ([10, 2, 0, 1], 5683);
const CLIENT: [u8; 4] = [10, 1, 0, 1];
/// What no record may say: queries and payloads, those of answers too.
const SECRET: &[u8] = b"geheim";

/// A copy of a request on its way to the origin.
#[derive(Clone, Debug)]
struct Copy {
    at: Instant,
    socket: SocketId,
    message_id: u16,
    token: Vec<u8>,
}

/// What was on the wire of one forward.
#[derive(Debug, Default)]
struct Seen {
    asked: Instant,
    copies: Vec<Copy>,
    /// Acknowledgements of its copies that came to the proxy.
    acknowledged: Vec<(Instant, u16)>,
    early_ack: Option<Instant>,
    /// When the client got its answer for the first time, and which.
    answered: Option<(Instant, Code)>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Coming {
    Request { client: SocketAddr, bytes: Vec<u8> },
    ToOrigin { socket: u32, bytes: Vec<u8> },
    FromOrigin { socket: u32, bytes: Vec<u8> },
}

struct World {
    proxy: Proxy,
    now: Instant,
    wake: Option<Instant>,
    coming: BinaryHeap<Reverse<(Instant, u64, Coming)>>,
    entered: u64,
    random: fastrand::Rng,
    lost: usize,
    seen: Vec<Seen>,
    /// Which forward a Message ID at a socket of ours belongs to.
    by_message_id: BTreeMap<(u32, u16), usize>,
    lines: Lines,
    written: Vec<Vec<u8>>,
}

impl World {
    fn new() -> Self {
        let origin = SocketAddr::from(ORIGIN);
        let authority = Authority { host: Host::Address(origin.ip()), port: origin.port() };
        let upstreams = [("default", None), ("door", Some(authority))];
        let upstreams = upstreams.map(|(name, authority)| Upstream { name: name.into(), authority });
        let parameters = Parameters {
            downstream: EndpointParameters::default(),
            upstreams: vec![UpstreamParameters::default(); 2],
            relay: coapway_relay::Parameters {
                upstreams: upstreams.into(),
                routes: vec![Route { host: None, path: Vec::new(), upstream: UpstreamId(1), strip: false }],
                trusted: vec!["10.1.0.0/16".parse().expect("a network")],
                ..coapway_relay::Parameters::default()
            },
            answer_within: None,
            patience: coapway_proxy::Patience::Off,
            limits: Limits::default(),
        };
        let listening = Listening { events: false, records: Some(Sampling::ALL), late: true };
        Self {
            proxy: Proxy::new(parameters, listening, Seed::from_number(1)),
            now: Instant::ZERO,
            wake: None,
            coming: BinaryHeap::new(),
            entered: 0,
            random: fastrand::Rng::with_seed(1),
            lost: 0,
            seen: Vec::new(),
            by_message_id: BTreeMap::new(),
            lines: Lines::new(0),
            written: Vec::new(),
        }
    }

    fn enter(&mut self, after: Duration, coming: Coming) {
        self.coming.push(Reverse((self.now + after, self.entered, coming)));
        self.entered += 1;
    }

    /// One way between the proxy and the origin.
    fn send(&mut self, after: Duration, coming: Coming) {
        match self.random.f64() < LOSS {
            true => self.lost += 1,
            false => self.enter(after + ONE_WAY, coming),
        }
    }

    fn run_until(&mut self, until: Instant) {
        loop {
            let arrival = self.coming.peek().map(|Reverse((at, ..))| *at);
            let wake = self.wake.map(|wake| wake.max(self.now));
            let Some(at) = [arrival, wake].into_iter().flatten().min().filter(|&at| at <= until) else {
                break;
            };
            self.now = at;
            if arrival != Some(at) {
                self.give(Input::Wake);
                continue;
            }
            match self.coming.pop() {
                Some(Reverse((_, _, Coming::Request { client, bytes }))) => self.listener(client, &bytes),
                Some(Reverse((_, _, Coming::ToOrigin { socket, bytes }))) => self.origin(socket, &bytes),
                Some(Reverse((_, _, Coming::FromOrigin { socket, bytes }))) => {
                    let message = Datagram::parse(&bytes).expect("well formed");
                    if message.message_type == MessageType::Acknowledgement {
                        let number = self.by_message_id[&(socket, message.message_id)];
                        self.seen[number].acknowledged.push((at, message.message_id));
                    }
                    let local = Local { socket: SocketId(socket), address: None };
                    let remote = ORIGIN.into();
                    self.give(Input::Datagram { local, remote, bytes: &bytes, truncated: false });
                }
                None => {}
            }
        }
        self.now = until;
    }

    fn listener(&mut self, remote: SocketAddr, bytes: &[u8]) {
        let local = Local { socket: LISTENER, address: None };
        self.give(Input::Datagram { local, remote, bytes, truncated: false });
    }

    fn give(&mut self, input: Input<'_>) {
        self.proxy.handle_input(input, self.now);
        let (mut sent, mut done) = (Vec::new(), Vec::new());
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => sent.push((*transmit.peer, transmit.datagram.to_vec())),
                Output::Records(records) => done.extend(records.iter().map(|(record, _)| record.clone())),
                Output::Event(_) => {}
                Output::LookUp { .. } => panic!("nothing is looked up"),
                Output::Wait { until } => {
                    self.wake = until;
                    break;
                }
            }
        }
        for record in done {
            let mut line = vec![0; Lines::room(&record, "door")];
            let addresses = |socket| Some(address(socket));
            let length = self.lines.write(&record, "door", &addresses, &mut line).expect("there is room");
            line.truncate(length);
            self.written.push(line);
        }
        for (peer, bytes) in sent {
            match peer.local.socket {
                LISTENER => self.client(peer.remote, &bytes),
                socket => self.leaves(socket, bytes),
            }
        }
    }

    /// A client gets something, and acknowledges it.
    fn client(&mut self, client: SocketAddr, bytes: &[u8]) {
        let message = Datagram::parse(bytes).expect("well formed");
        let seen = &mut self.seen[usize::from(client.port() - 40_000)];
        match message.content.code {
            Code::EMPTY => seen.early_ack = seen.early_ack.or(Some(self.now)),
            code => seen.answered = seen.answered.or(Some((self.now, code))),
        }
        if message.message_type == MessageType::Confirmable {
            let id = message.message_id;
            let bytes = datagram::empty(MessageType::Acknowledgement, id).to_vec();
            self.enter(Duration::ZERO, Coming::Request { client, bytes });
        }
    }

    /// Something leaves for the origin.
    fn leaves(&mut self, socket: SocketId, bytes: Vec<u8>) {
        let message = Datagram::parse(&bytes).expect("well formed");
        if message.content.code.is_request() {
            let number = number(&message);
            let (message_id, token) = (message.message_id, message.token.to_vec());
            self.by_message_id.insert((socket.0, message_id), number);
            self.seen[number].copies.push(Copy { at: self.now, socket, message_id, token });
        }
        self.send(Duration::ZERO, Coming::ToOrigin { socket: socket.0, bytes });
    }

    /// The origin answers each copy: two of three in the Acknowledgement, the others separately after 900 ms.
    fn origin(&mut self, socket: u32, bytes: &[u8]) {
        let asked = Datagram::parse(bytes).expect("well formed");
        let id = asked.message_id;
        let say = |kind, id| {
            let content = Content { code: Code::CONTENT, options: Options::NONE, payload: SECRET };
            let mut bytes = Vec::new();
            datagram::encode(&mut bytes, kind, id, asked.token, &content);
            Coming::FromOrigin { socket, bytes }
        };
        let empty = |kind| Coming::FromOrigin { socket, bytes: datagram::empty(kind, id).to_vec() };
        if !asked.content.code.is_request() {
            if asked.message_type == MessageType::Confirmable {
                self.send(Duration::ZERO, empty(MessageType::Reset));
            }
        } else if number(&asked).is_multiple_of(3) {
            self.send(Duration::ZERO, empty(MessageType::Acknowledgement));
            self.send(Duration::from_millis(900), say(MessageType::NonConfirmable, !id));
        } else {
            self.send(Duration::ZERO, say(MessageType::Acknowledgement, id));
        }
    }
}

/// Where our sockets are.
fn address(socket: SocketId) -> SocketAddr {
    match SocketRole::of(socket) {
        SocketRole::Listener(_) => ([10, 0, 0, 1], 5683).into(),
        SocketRole::Upstream { number, .. } => ([10, 0, 0, 1], 50_000 + number as u16).into(),
    }
}

/// The number of a forward is the last segment of its path.
fn number(message: &Datagram<'_>) -> usize {
    let segments = message.content.options.iter().filter(|(option, _)| *option == OptionNumber::URI_PATH);
    let last = segments.last().map(|(_, value)| std::str::from_utf8(value).expect("a number"));
    last.expect("a path").parse().expect("a number")
}

fn code(number: u16) -> Code {
    if number.is_multiple_of(2) { Code::GET } else { Code::PUT }
}

fn token(number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    [0xA1, high, low, 0, 1, 2, 3, 4][..3 + usize::from(number % 6)].to_vec()
}

fn request(number: u16) -> Vec<u8> {
    let (mut options, mut bytes) = (Vec::new(), Vec::new());
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(OptionNumber::URI_PATH, b"door");
    writer.push(OptionNumber::URI_PATH, number.to_string().as_bytes());
    writer.push(OptionNumber::URI_QUERY, &[b"key=", SECRET].concat());
    let payload = if code(number) == Code::PUT { SECRET } else { b"" };
    let content = Content { code: code(number), options: writer.finish(), payload };
    datagram::encode(&mut bytes, MessageType::Confirmable, number ^ 0x5A5A, &token(number), &content);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Milliseconds with three decimals are microseconds.
fn millis(value: &Value) -> Option<Duration> {
    value.as_f64().map(|millis| Duration::from_micros((millis * 1000.0).round() as u64))
}

fn agrees(line: &Value, number: u16, seen: &Seen) {
    let since = |at: Instant| Some(at.since(seen.asked));
    let (answered, answer) = seen.answered.expect("each is answered");
    assert_eq!(line["client"], SocketAddr::from((CLIENT, 40_000 + number)).to_string());
    assert_eq!(line["method"], if code(number) == Code::GET { "GET" } else { "PUT" });
    assert_eq!(line["type"], "con");
    assert_eq!(line["client_token"], hex(&token(number)));
    assert_eq!(line["client_mid"], number ^ 0x5A5A);
    assert_eq!(line["code"], format!("{}.{:02}", answer.class(), answer.detail()));
    assert_eq!(millis(&line["total_ms"]), since(answered));
    assert_eq!(millis(&line["early_ack_ms"]), seen.early_ack.and_then(since));

    let attempts = line["attempts"].as_array().expect("a list");
    assert_eq!(attempts.len(), seen.copies.len());
    assert_eq!(line["retries"], seen.copies.len() - 1);
    let ends = seen.copies.iter().skip(1).map(|copy| copy.at).chain([answered]);
    for (attempt, (copy, end)) in attempts.iter().zip(seen.copies.iter().zip(ends)) {
        assert_eq!(attempt["mid"], copy.message_id);
        assert_eq!(millis(&attempt["at_ms"]), since(copy.at));
        assert_eq!(millis(&attempt["took_ms"]), Some(end.since(copy.at)));
    }
    for (pair, attempt) in seen.copies.windows(2).zip(&attempts[1..]) {
        let is_same = pair[0].token == pair[1].token;
        assert_eq!(attempt["kind"], if is_same { "retransmission" } else { "reissue" });
    }
    let last = seen.copies.last().expect("a copy");
    assert_eq!(line["upstream_token"], hex(&last.token));
    assert_eq!(line["local_port"], address(last.socket).port());
    assert_eq!(line["origin"], SocketAddr::from(ORIGIN).to_string());

    let first = seen.acknowledged.first().filter(|(at, _)| *at <= answered);
    assert_eq!(millis(&line["first_ack_ms"]), first.and_then(|(at, _)| since(*at)));
    assert_eq!(line["first_ack_mid"].as_u64(), first.map(|(_, id)| u64::from(*id)));
    let in_time = seen.acknowledged.iter().filter(|(at, _)| *at <= answered).count();
    assert_eq!(line["acks"], in_time);
    if let Some(late) = line["late"].as_u64() {
        assert!(late as usize <= seen.acknowledged.len() - in_time);
    }
}

#[test]
fn a_thousand_records_agree_with_the_wire_and_none_tells_a_query_or_a_payload() {
    let mut world = World::new();
    for number in 0..FORWARDS {
        let until = Instant::ZERO + SPACING * number.into();
        world.run_until(until);
        world.seen.push(Seen { asked: until, ..Seen::default() });
        world.listener((CLIENT, 40_000 + number).into(), &request(number));
    }
    let end = world.now + Duration::from_secs(400);
    world.run_until(end);
    assert_eq!(world.written.len(), usize::from(FORWARDS), "a record each");
    let copies: usize = world.seen.iter().map(|seen| seen.copies.len()).sum();
    assert!(copies > usize::from(FORWARDS) * 5 / 4, "{copies} copies");
    assert!(world.lost > copies / 3, "{} of what went to and fro for {copies} copies", world.lost);

    let mut told = vec![false; FORWARDS.into()];
    let mut ways = BTreeMap::<String, usize>::new();
    for written in &world.written {
        let text = std::str::from_utf8(written).expect("UTF-8");
        let line = text.strip_suffix('\n').expect("the end of a line");
        assert!(!line.contains('\n') && !line.contains("geheim") && !line.contains(&hex(SECRET)), "{line}");
        let record: Value = serde_json::from_str(line).expect("JSON");
        let path = record["path"].as_str().expect("a path");
        let number = path.strip_prefix("/door/").and_then(|number| number.parse().ok());
        let number: u16 = number.expect("that of a forward, and no query");
        assert!(!std::mem::replace(&mut told[usize::from(number)], true), "one record of {number}");
        for way in ["answer_kind", "cause"].map(|key| &record[key]) {
            *ways.entry(way.to_string()).or_default() += 1;
        }
        agrees(&record, number, &world.seen[usize::from(number)]);
    }
    println!("{copies} copies, {} lost on the way; {ways:?}", world.lost);
    assert!(["\"piggybacked\"", "\"non\""].iter().all(|way| ways[*way] > 100), "{ways:?}");
}
