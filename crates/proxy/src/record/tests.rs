//! The lines are those of a formatter that has nothing to hide: the standard library's.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};

use coapway_endpoint::{AnswerKind, Copy, Local, Peer, Trace};
use coapway_message::{Failure, Method, OptionNumber, OptionsWriter};
use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// 2026-11-30T06:23:17.5Z.
const START: u64 = 1_796_019_797_500_000;

/// What a line tells beside the record.
struct Outside<'o> {
    listener: Option<SocketAddr>,
    upstream: &'o str,
    local_port: Option<u16>,
}

impl Outside<'_> {
    /// Listeners are numbered 0.
    fn address(&self, socket: SocketId) -> Option<SocketAddr> {
        match socket {
            SocketId(0) => self.listener,
            _ => self.local_port.map(|port| (Ipv4Addr::UNSPECIFIED, port).into()),
        }
    }
}

/// The line of a record, made in the plainest way.
fn reference(record: &Record, outside: &Outside<'_>) -> String {
    let mut line = String::new();
    let timestamp = timestamps::Timestamps::new(START).at(record.received).escape_ascii().to_string();
    let traces = record.exchanges.traces();
    let escaped = |symbol: char| match symbol {
        '"' | '\\' => format!("\\{symbol}"),
        ..' ' => format!("\\u{:04x}", u32::from(symbol)),
        _ => symbol.to_string(),
    };
    let quoted = |text: String| format!("\"{}\"", text.chars().map(escaped).collect::<String>());
    let optional = |text: Option<String>| text.map_or("null".to_owned(), quoted);
    let millis = |duration: Duration| format!("{}.{:03}", duration.as_millis(), duration.as_micros() % 1000);
    let since = |at: Instant| millis(at.since(record.received));
    let mut field = |key: &str, value: String| {
        let first = if line.is_empty() { '{' } else { ',' };
        let _ = write!(line, "{first}\"{key}\":{value}");
    };
    field("ts", quoted(timestamp));
    field("event", quoted("forward".to_owned()));
    field("id", record.id.to_string());
    field("client", quoted(record.client.to_string()));
    field("listener", optional(outside.listener.map(|listener| listener.to_string())));
    field("upstream", quoted(outside.upstream.to_owned()));
    field("origin", optional(record.origin().map(|origin| origin.to_string())));
    field(
        "local_port",
        outside
            .local_port
            .filter(|_| record.origin().is_some())
            .map_or("null".to_owned(), |port| port.to_string()),
    );
    let method = Method::from_code(record.method).map_or("", Method::name);
    field("method", quoted(method.to_owned()));
    field("path", quoted(record.path.to_string()));
    field("type", quoted(if record.confirmable { "con" } else { "non" }.to_owned()));
    field("client_token", quoted(record.client_token.to_string()));
    field("upstream_token", quoted(traces.last().map_or(String::new(), |trace| trace.token.to_string())));
    field("client_mid", record.client_message_id.to_string());
    let copies: Vec<_> = traces.iter().flat_map(|trace| (0..).zip(&trace.copies)).collect();
    let attempt = |(index, (place, copy)): (usize, &(usize, &Copy))| {
        let kind = match (index, place) {
            (0, _) => "first",
            (_, 0) => "reissue",
            _ => "retransmission",
        };
        let next = copies.get(index + 1).map_or(record.answered, |(_, next)| next.sent);
        format!(
            r#"{{"mid":{},"kind":"{kind}","at_ms":{},"took_ms":{},"rto_ms":{}}}"#,
            copy.message_id,
            since(copy.sent),
            millis(next.since(copy.sent)),
            millis(copy.timeout()),
        )
    };
    let attempts: Vec<_> = copies.iter().enumerate().map(attempt).collect();
    field("attempts", format!("[{}]", attempts.join(",")));
    field("retries", record.retries().to_string());
    let acknowledged = traces.iter().find(|trace| trace.first_ack.is_some());
    let first_ack = acknowledged.and_then(|trace| trace.first_ack);
    field("first_ack_ms", first_ack.map_or("null".to_owned(), since));
    let first_ack_id = acknowledged.and_then(|trace| trace.first_ack_id);
    field("first_ack_mid", first_ack_id.map_or("null".to_owned(), |id| id.to_string()));
    field("acks", traces.iter().map(|trace| u64::from(trace.acks)).sum::<u64>().to_string());
    field("late", record.late.map_or("null".to_owned(), |late| late.to_string()));
    let answer = traces.last().and_then(|trace| trace.answer);
    field("answer_kind", optional(answer.map(|kind| kind.name().to_owned())));
    field("window", record.window.to_string());
    field("early_ack_ms", record.early_ack.map_or("null".to_owned(), since));
    field("queue_ms", millis(record.queued));
    field("cache", quoted("bypass".to_owned()));
    field("code", quoted(record.code.to_string()));
    field("cause", quoted(record.cause.name().to_owned()));
    field("evidence", optional(record.evidence.map(|evidence| evidence.name().to_owned())));
    field("total_ms", since(record.answered));
    field("bytes_in", record.bytes_in.to_string());
    field("bytes_out", record.bytes_out.to_string());
    line.push_str("}\n");
    line
}

fn write(lines: &mut Lines, record: &Record, outside: &Outside<'_>) -> String {
    // What was there before does not matter.
    let mut bytes = vec![b'"'; Lines::room(record, outside.upstream)];
    let addresses = |socket| outside.address(socket);
    let length = lines.write(record, outside.upstream, &addresses, &mut bytes).expect("there is room");
    bytes.truncate(length);
    String::from_utf8(bytes).expect("text")
}

fn micros() -> impl Strategy<Value = u64> + Clone {
    // Of all lengths.
    (0..45_u32).prop_flat_map(|bits| 0..=(1_u64 << bits))
}

fn address() -> impl Strategy<Value = SocketAddr> {
    let segment = prop_oneof![3 => Just(0), 1 => 1..0x20_u16, 1 => any::<u16>()];
    let ipv6 = prop::array::uniform8(segment).prop_map(|segments| IpAddr::from(Ipv6Addr::from(segments)));
    let mapped = any::<Ipv4Addr>().prop_map(|ip| IpAddr::from(ip.to_ipv6_mapped()));
    let ip = prop_oneof![any::<Ipv4Addr>().prop_map(IpAddr::from), ipv6, mapped];
    let scope = prop_oneof![Just(0), any::<u32>()];
    (ip, any::<u16>(), scope).prop_map(|(ip, port, scope)| match SocketAddr::new(ip, port) {
        SocketAddr::V6(mut address) => {
            address.set_scope_id(scope);
            address.into()
        }
        address => address,
    })
}

fn token() -> impl Strategy<Value = Token> {
    let length = prop_oneof![Just(4), Just(8), 0..8_usize, 9..40_usize];
    length
        .prop_flat_map(|length| prop::collection::vec(any::<u8>(), length))
        .prop_map(|token| Token::new(&token))
}

fn path() -> impl Strategy<Value = Path> {
    let byte = prop_oneof![4 => b'a'..=b'z', 1 => Just(b'.'), 1 => any::<u8>()];
    let plain = "[a-zA-Z0-9._~-]{0,40}".prop_map(String::into_bytes);
    let segment = prop_oneof![plain, prop::collection::vec(byte, 0..60)];
    prop::collection::vec(segment, 0..5).prop_map(|segments| {
        let mut options = Vec::new();
        let mut writer = OptionsWriter::new(&mut options);
        writer.push(OptionNumber::URI_HOST, b"h");
        segments.iter().for_each(|segment| writer.push(OptionNumber::URI_PATH, segment));
        writer.push(OptionNumber::URI_QUERY, b"secret");
        Path::of(&writer.finish())
    })
}

fn trace(received: u64) -> impl Strategy<Value = Trace> {
    let copy = (prop_oneof![Just(0), micros()], micros(), any::<u16>());
    let copies =
        prop_oneof![2 => prop::collection::vec(copy.clone(), 1), 1 => prop::collection::vec(copy, 1..5)];
    let answer = prop_oneof![
        Just(None),
        Just(Some(AnswerKind::Piggybacked)),
        Just(Some(AnswerKind::Separate)),
        Just(Some(AnswerKind::NonConfirmable)),
    ];
    let acks = prop_oneof![Just(1), any::<u32>()];
    let told = (prop::option::of(micros()), acks, answer, any::<bool>());
    let copy = move |(sent, timeout, message_id)| {
        Copy::new(Instant::from_micros(received + sent), Duration::from_micros(timeout), message_id)
    };
    (address(), token(), copies, any::<prop::sample::Index>(), told).prop_map(
        move |(remote, token, copies, acknowledged, (first_ack, acks, answer, confirmable))| Trace {
            peer: Peer { local: Local { socket: SocketId(7), address: None }, remote },
            token,
            confirmable,
            first_ack: first_ack.map(|at| Instant::from_micros(received + at)),
            first_ack_id: first_ack.map(|_| acknowledged.get(&copies).2),
            copies: copies.into_iter().map(copy).collect(),
            acks,
            answer,
            bytes: 30,
        },
    )
}

/// Any record, and half of them as most are.
fn record() -> impl Strategy<Value = Record> {
    let cause = prop_oneof![
        Just(Cause::Origin),
        Just(Cause::Refused),
        Just(Cause::Withheld),
        Just(Cause::Failed(Failure::TimedOut)),
        Just(Cause::Failed(Failure::Unreachable)),
    ];
    let evidence = prop::option::of(prop_oneof![Just(Evidence::NotSent), Just(Evidence::OutcomeUnknown)]);
    let who = (any::<u64>(), address(), token(), any::<u16>(), any::<bool>(), path(), 0..9_u8);
    let end = (micros(), cause, evidence, 0x40..0xC0_u8, any::<[u32; 3]>(), any::<bool>());
    let wait = (prop::option::of(micros()), prop_oneof![Just(0), micros()], prop::option::of(0..3_u32));
    let what = micros().prop_flat_map(|received| {
        (
            Just(received),
            prop_oneof![
                prop::collection::vec(trace(received), 1),
                prop::collection::vec(trace(received), 0..4)
            ],
        )
    });
    (who, what, wait, end).prop_map(|(who, (received, traces), (early, queued, late), end)| {
        let (id, client, client_token, client_message_id, confirmable, path, method) = who;
        let (took, cause, evidence, code, [window, bytes_in, bytes_out], is_plain) = end;
        let at = |micros| Instant::from_micros(received + micros);
        let mut record = Record {
            id,
            received: at(0),
            answered: at(took),
            client,
            method: Code(method),
            path,
            confirmable,
            client_token,
            client_message_id,
            late,
            early_ack: early.map(at),
            queued: Duration::from_micros(queued),
            window,
            code: Code(code),
            cause,
            evidence,
            bytes_in,
            bytes_out,
            ..Record::blank()
        };
        for mut trace in traces {
            if is_plain {
                trace.first_ack = Some(record.answered);
                trace.first_ack_id = trace.first_ack_id.or(trace.copies.first().map(|copy| copy.message_id));
                (trace.acks, trace.answer, trace.confirmable) = (1, Some(AnswerKind::Piggybacked), true);
                (record.early_ack, record.queued) = (None, Duration::ZERO);
                record.late = record.late.and(Some(0));
                (record.cause, record.evidence) = (Cause::Origin, None);
            }
            add(&mut record, &trace);
        }
        record
    })
}

proptest! {
    #[test]
    fn lines_are_as_the_standard_library_would_write_them(
        records in prop::collection::vec(record(), 1..4),
        listener in prop::option::of(address()),
        upstream in prop_oneof![Just("default".to_owned()), ".{0,90}"],
        local_port in prop::option::of(any::<u16>()),
    ) {
        let outside = Outside { listener, upstream: &upstream, local_port };
        let mut lines = Lines::new(START);
        // The second time what they have in common is known.
        for record in records.iter().chain(&records) {
            let line = write(&mut lines, record, &outside);
            prop_assert_eq!(&line, &reference(record, &outside));
            let value: Value = serde_json::from_str(&line).expect("JSON");
            prop_assert_eq!(&value["upstream"], &upstream);
            prop_assert_eq!(&value["path"], &record.path.to_string());
        }
    }

    #[test]
    fn exchanges_come_out_as_they_went_in(traces in prop::collection::vec(trace(1000), 0..4)) {
        let mut exchanges = Exchanges::None;
        for course in traces.iter().filter_map(Trace::course) {
            exchanges.add(&course, Instant::from_micros(1000));
        }
        prop_assert_eq!(exchanges.traces().into_vec(), traces);
    }

    #[test]
    fn too_little_room_is_no_line(record in record(), length in 0..1200_usize) {
        let outside = Outside { listener: None, upstream: "default", local_port: None };
        // It either does not fit, or is right.
        let mut bytes = vec![0; length];
        if let Some(length) = Lines::new(START).write(&record, "default", &|_| None, &mut bytes) {
            let expected = reference(&record, &outside);
            prop_assert_eq!(&bytes[..length], expected.as_bytes());
        }
    }
}

fn path_of(segments: &[&[u8]]) -> String {
    let mut options = Vec::new();
    let mut writer = OptionsWriter::new(&mut options);
    segments.iter().for_each(|segment| writer.push(OptionNumber::URI_PATH, segment));
    Path::of(&writer.finish()).to_string()
}

#[test]
fn paths_are_in_normal_form() {
    assert_eq!(path_of(&[]), "/");
    assert_eq!(path_of(&[b""]), "/");
    assert_eq!(path_of(&[b"a", b""]), "/a/");
    assert_eq!(path_of(&[b".well-known", b"core"]), "/.well-known/core");
    assert_eq!(path_of(&[b"a\"b\\c/\n", b"\xC3\xBC~_$&'()*+,;=:@"]), "/a%22b%5Cc%2F%0A/%C3%BC~_$&'()*+,;=:@");
    assert_eq!(path_of(&[&[b'x'; 255], b"y z"]), format!("/{}/y%20z", "x".repeat(255)));
}

#[test]
fn a_path_that_was_long_gives_its_memory_back() {
    let mut options = Vec::new();
    let mut writer = OptionsWriter::new(&mut options);
    (0..8).for_each(|_| writer.push(OptionNumber::URI_PATH, &[0xFF; 255]));
    let mut path = Path::of(&writer.finish());
    assert_eq!(path.as_bytes().len(), 8 * (1 + 3 * 255));
    path.shrink();
    path.set(&coapway_message::Options::NONE);
    assert_eq!((path.to_string().as_str(), path.kept()), ("/", 64));
}

fn add(record: &mut Record, trace: &Trace) {
    record.exchanges.add(&trace.course().expect("a copy left"), record.received);
}

/// As the first version of this program wrote them, and two fields more.
#[test]
fn lines_stay_what_they_were() {
    let copy = |message_id, sent, timeout| {
        Copy::new(Instant::from_micros(sent), Duration::from_micros(timeout), message_id)
    };
    let trace = |copies: &[Copy], acks, answer| Trace {
        peer: Peer {
            local: Local { socket: SocketId(7), address: None },
            remote: ([10, 1, 2, 3], 5683).into(),
        },
        token: Token::new(&[0x9F, 0x3C, 0x52, 0xD1, 0x7E, 0x08, 0x4A, 0xB6]),
        confirmable: true,
        copies: copies.iter().copied().collect(),
        first_ack: (acks > 0).then_some(Instant::from_micros(3_272_690)),
        first_ack_id: copies.last().filter(|_| acks > 0).map(|copy| copy.message_id),
        acks,
        answer,
        bytes: 30,
    };
    let mut options = Vec::new();
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(OptionNumber::URI_PATH, b"temperature");
    let mut record = Record {
        id: 17,
        received: Instant::from_micros(1_000_000),
        answered: Instant::from_micros(3_272_690),
        client: ([10, 0, 0, 7], 40_000).into(),
        method: Code::GET,
        path: Path::of(&writer.finish()),
        confirmable: true,
        client_token: Token::new(&[0xA1, 0xB2]),
        client_message_id: 4711,
        window: 4,
        code: Code::CONTENT,
        bytes_in: 12,
        bytes_out: 6,
        late: Some(0),
        ..Record::blank()
    };
    let listener = Some(([10, 0, 0, 1], 5683).into());
    let outside = Outside { listener, upstream: "boiler", local_port: Some(40_001) };
    let mut lines = Lines::new(START);
    let first = copy(17, 1_000_000, 2_211_288);
    add(&mut record, &trace(&[first], 1, Some(AnswerKind::Piggybacked)));
    assert!(matches!(record.exchanges, Exchanges::Plain(_)));
    assert_eq!(write(&mut lines, &record, &outside), include_str!("tests/plain.jsonl"));

    record.exchanges = Exchanges::None;
    let copies = [copy(17, 1_000_412, 2_211_288), copy(17, 3_211_712, 4_422_576)];
    add(&mut record, &trace(&copies, 1, Some(AnswerKind::Separate)));
    add(&mut record, &trace(&[copy(18, 3_212_000, 1000)], 0, None));
    record.early_ack = Some(Instant::from_micros(1_500_103));
    record.late = Some(1);
    record.queued = Duration::from_micros(412);
    (record.code, record.cause) = (Code::GATEWAY_TIMEOUT, Cause::Failed(Failure::TimedOut));
    record.evidence = Some(Evidence::OutcomeUnknown);
    assert_eq!(write(&mut lines, &record, &outside), include_str!("tests/failed.jsonl"));

    let nothing = Outside { listener: None, upstream: "a\"b", local_port: None };
    let blank = Record { client: "[2001:db8::1]:5683".parse().expect("valid"), ..Record::blank() };
    assert_eq!(write(&mut lines, &blank, &nothing), include_str!("tests/nothing.jsonl"));
}
