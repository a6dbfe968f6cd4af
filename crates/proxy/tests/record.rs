//! A forward record says what left and when, as it was on the wire.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Seed};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, Options, OptionsWriter, datagram};
use coapway_proxy::{
    CopyIds, Input, Limits, Lines, Listening, Output, Parameters, Proxy, Record, RetransmitParameters,
    Sampling, SocketRole, UpstreamParameters,
};
use coapway_relay::Forward;
use coapway_time::Instant;

/// What came out of the proxy.
#[derive(Default)]
struct Out {
    to_client: Vec<Vec<u8>>,
    to_origin: Vec<(Instant, Vec<u8>)>,
    records: Vec<Record>,
    wake: Option<Instant>,
}

fn proxy(sampling: Sampling) -> Proxy {
    with(UpstreamParameters::default(), sampling)
}

fn with(upstream: UpstreamParameters, sampling: Sampling) -> Proxy {
    let parameters = Parameters {
        downstream: EndpointParameters::default(),
        upstreams: vec![upstream],
        relay: coapway_relay::Parameters { forward: Forward::Open, ..coapway_relay::Parameters::default() },
        answer_within: None,
        patience: coapway_proxy::Patience::Off,
        limits: Limits::default(),
    };
    Proxy::new(
        parameters,
        Listening { events: false, records: Some(sampling), late: true },
        Seed::from_number(1),
    )
}

fn give(proxy: &mut Proxy, role: SocketRole, from: u16, bytes: &[u8], now: Instant) {
    let local = Local { socket: role.socket(), address: None };
    let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, from));
    proxy.handle_input(Input::Datagram { local, remote, bytes, truncated: false }, now);
}

fn drain(proxy: &mut Proxy, out: &mut Out, now: Instant) {
    loop {
        match proxy.poll_output() {
            Output::Transmit(transmit) => match SocketRole::of(transmit.peer.local.socket) {
                SocketRole::Listener(_) => out.to_client.push(transmit.datagram.to_vec()),
                SocketRole::Upstream { .. } => out.to_origin.push((now, transmit.datagram.to_vec())),
            },
            Output::Records(records) => {
                out.records.extend(records.iter().map(|(record, _)| record.clone()));
            }
            Output::Event(_) | Output::LookUp { .. } => {}
            Output::Wait { until } => {
                out.wake = until;
                return;
            }
        }
    }
}

fn request() -> Vec<u8> {
    let (mut options, mut bytes) = (Vec::new(), Vec::new());
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(OptionNumber::PROXY_URI, b"coap://127.0.0.1:5700/door/1?key=secret");
    let content = Content { code: Code::GET, options: writer.finish(), payload: &[] };
    datagram::encode(&mut bytes, MessageType::Confirmable, 0x1234, b"\xA1\xB2", &content);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_record_agrees_with_what_left() {
    let (mut proxy, mut out) = (proxy(Sampling::ALL), Out::default());
    give(&mut proxy, SocketRole::Listener(0), 40_000, &request(), Instant::ZERO);
    drain(&mut proxy, &mut out, Instant::ZERO);
    let mut now = Instant::ZERO;
    while out.to_origin.len() < 3 {
        now = out.wake.expect("the next copy is due");
        proxy.handle_input(Input::Wake, now);
        drain(&mut proxy, &mut out, now);
    }
    now += Duration::from_millis(30);
    let left = out.to_origin[0].1.clone();
    let left = Datagram::parse(&left).expect("valid");
    let content = Content { code: Code::CONTENT, options: Options::NONE, payload: b"shut" };
    let mut answer = Vec::new();
    datagram::encode(&mut answer, MessageType::Acknowledgement, left.message_id, left.token, &content);
    give(&mut proxy, SocketRole::Upstream { ipv6: false, number: 0 }, 5700, &answer, now);
    drain(&mut proxy, &mut out, now);
    assert!(out.records.is_empty(), "two copies may still be acknowledged");
    let empty = Content::bare(Code::EMPTY);
    let mut second = Vec::new();
    datagram::encode(&mut second, MessageType::Acknowledgement, left.message_id, b"", &empty);
    give(&mut proxy, SocketRole::Upstream { ipv6: false, number: 0 }, 5700, &second, now);
    while out.records.is_empty() {
        now = out.wake.expect("not for ever");
        proxy.handle_input(Input::Wake, now);
        drain(&mut proxy, &mut out, now);
    }

    let [record] = &out.records[..] else { panic!("{} records", out.records.len()) };
    let mut line = vec![0; Lines::room(record, "default")];
    let length = Lines::new(0).write(record, "default", &|_| None, &mut line).expect("there is room");
    line.truncate(length);
    let line = String::from_utf8(line).expect("JSON is UTF-8");
    let traces = record.exchanges.traces();
    let copies: Vec<_> = traces.iter().flat_map(|trace| trace.copies.iter()).collect();
    assert_eq!(
        copies.iter().map(|copy| copy.sent).collect::<Vec<_>>(),
        out.to_origin.iter().map(|(at, _)| *at).collect::<Vec<_>>()
    );
    for part in [
        "\"client_token\":\"a1b2\"".to_owned(),
        format!("\"upstream_token\":\"{}\"", hex(left.token)),
        "\"client_mid\":4660".to_owned(),
        format!("\"mid\":{}", left.message_id),
        "\"retries\":2".to_owned(),
        "\"kind\":\"retransmission\"".to_owned(),
        "\"acks\":1,\"late\":1".to_owned(),
        "\"answer_kind\":\"piggybacked\"".to_owned(),
        "\"early_ack_ms\":500.".to_owned(),
        "\"code\":\"2.05\"".to_owned(),
        "\"cause\":\"ok\"".to_owned(),
        "\"path\":\"/door/1\"".to_owned(),
    ] {
        assert!(line.contains(&part), "{part} is not in {line}");
    }
    assert!(!line.contains("secret"), "{line}");
}

#[test]
fn a_record_names_the_message_id_of_each_copy_and_the_one_that_was_acknowledged() {
    let retransmit = RetransmitParameters { mid: CopyIds::FreshSafe, ..RetransmitParameters::default() };
    let upstream = UpstreamParameters { retransmit, ..UpstreamParameters::default() };
    let (mut proxy, mut out) = (with(upstream, Sampling::ALL), Out::default());
    give(&mut proxy, SocketRole::Listener(0), 40_000, &request(), Instant::ZERO);
    drain(&mut proxy, &mut out, Instant::ZERO);
    let mut now = Instant::ZERO;
    while out.to_origin.len() < 3 {
        now = out.wake.expect("the next copy is due");
        proxy.handle_input(Input::Wake, now);
        drain(&mut proxy, &mut out, now);
    }
    let left: Vec<_> =
        out.to_origin.iter().map(|(_, bytes)| Datagram::parse(bytes).expect("valid")).collect();
    let ids: Vec<_> = left.iter().map(|datagram| datagram.message_id).collect();
    let (mut acknowledgement, mut answer) = (Vec::new(), Vec::new());
    let content = Content::bare(Code::EMPTY);
    datagram::encode(&mut acknowledgement, MessageType::Acknowledgement, ids[1], b"", &content);
    let content = Content { code: Code::CONTENT, options: Options::NONE, payload: b"shut" };
    datagram::encode(&mut answer, MessageType::Acknowledgement, ids[0], left[0].token, &content);
    let mut after = Out::default();
    for (millis, bytes) in [(30, acknowledgement), (50, answer)] {
        let now = now + Duration::from_millis(millis);
        give(&mut proxy, SocketRole::Upstream { ipv6: false, number: 0 }, 5700, &bytes, now);
        drain(&mut proxy, &mut after, now);
    }
    assert!(after.records.is_empty(), "one copy may still be acknowledged");
    let mut third = Vec::new();
    datagram::encode(&mut third, MessageType::Acknowledgement, ids[2], b"", &Content::bare(Code::EMPTY));
    give(&mut proxy, SocketRole::Upstream { ipv6: false, number: 0 }, 5700, &third, now);
    drain(&mut proxy, &mut after, now);
    let [record] = &after.records[..] else { panic!("{} records", after.records.len()) };
    let mut line = vec![0; Lines::room(record, "default")];
    let length = Lines::new(0).write(record, "default", &|_| None, &mut line).expect("there is room");
    let line: serde_json::Value = serde_json::from_slice(&line[..length]).expect("JSON");
    let attempts = line["attempts"].as_array().expect("a list");
    assert!(attempts.iter().map(|attempt| &attempt["mid"]).eq(ids.iter()));
    let kinds: Vec<_> = attempts.iter().map(|attempt| &attempt["kind"]).collect();
    assert_eq!(kinds, ["first", "retransmission", "retransmission"]);
    assert_eq!((&line["first_ack_mid"], &line["acks"]), (&ids[1].into(), &2.into()));
    assert_eq!(line["late"], 1);
    let trace = &record.exchanges.traces()[0];
    let since_second = now.since(out.to_origin[1].0) + Duration::from_millis(30);
    assert_eq!(trace.exact_round_trip(), Some(since_second));
}

/// Asks, has the origin answer at once, and returns what came out.
fn forward(proxy: &mut Proxy, message_id: u16, now: Instant) -> Out {
    let mut out = Out::default();
    let mut asked = request();
    asked[2..4].copy_from_slice(&message_id.to_be_bytes());
    give(proxy, SocketRole::Listener(0), 40_000, &asked, now);
    drain(proxy, &mut out, now);
    let left = Datagram::parse(&out.to_origin[0].1).expect("valid");
    let content = Content { code: Code::CONTENT, options: Options::NONE, payload: b"shut" };
    let mut answer = Vec::new();
    datagram::encode(&mut answer, MessageType::Acknowledgement, left.message_id, left.token, &content);
    give(proxy, SocketRole::Upstream { ipv6: false, number: 0 }, 5700, &answer, now);
    drain(proxy, &mut out, now);
    out
}

#[test]
fn a_sample_has_the_records_that_all_have_under_the_same_numbers() {
    let ids = |sampling| {
        let mut proxy = proxy(sampling);
        let forward = |id| forward(&mut proxy, id, Instant::from_micros(u64::from(id))).records;
        (0..200).flat_map(forward).map(|record| record.id).collect::<Vec<_>>()
    };
    let share = Sampling::share(0.25);
    let all = ids(Sampling::ALL);
    assert_eq!(all, (0..200).collect::<Vec<_>>());
    assert_eq!(ids(share), all.into_iter().filter(|&id| share.keeps(id)).collect::<Vec<_>>());
}

#[test]
fn what_a_sample_leaves_out_counts_as_no_refusal() {
    let mut proxy = proxy(Sampling::share(0.0));
    assert!(forward(&mut proxy, 1, Instant::ZERO).records.is_empty());
    let mut told = 0;
    proxy.handle_input(Input::Wake, Instant::from_micros(5_000_000));
    loop {
        match proxy.poll_output() {
            Output::Event(_) | Output::Records(_) => told += 1,
            Output::Transmit(_) | Output::LookUp { .. } => {}
            Output::Wait { .. } => break,
        }
    }
    assert_eq!(told, 0);
}

#[test]
fn a_record_in_old_memory_says_nothing_of_the_one_before() {
    let mut proxy = proxy(Sampling::ALL);
    let mut out = Out::default();
    // The first one is answered late, with copies and an early Acknowledgement.
    give(&mut proxy, SocketRole::Listener(0), 40_000, &request(), Instant::ZERO);
    drain(&mut proxy, &mut out, Instant::ZERO);
    let mut now = Instant::ZERO;
    while out.records.is_empty() {
        now = out.wake.expect("it is answered in the end");
        proxy.handle_input(Input::Wake, now);
        drain(&mut proxy, &mut out, now);
    }
    assert!(out.records[0].early_ack.is_some() && out.records[0].retries() > 0);
    let now = now + Duration::from_secs(1);
    let [second] = &forward(&mut proxy, 2, now).records[..] else { panic!("one record") };
    assert_eq!((second.early_ack, second.retries(), second.evidence), (None, 0, None));
    assert_eq!((second.received, second.answered, second.queued), (now, now, Duration::ZERO));
}

#[test]
fn a_record_has_its_exchange_although_another_takes_its_place_at_once() {
    let (mut proxy, mut out, now) = (proxy(Sampling::ALL), Out::default(), Instant::from_micros(5));
    for client in [40_000, 40_001] {
        give(&mut proxy, SocketRole::Listener(0), client, &request(), now);
    }
    drain(&mut proxy, &mut out, now);
    let [(_, left)] = &out.to_origin[..] else { panic!("the second waits for the first") };
    let left = Datagram::parse(left).expect("valid");
    let content = Content { code: Code::SERVICE_UNAVAILABLE, options: Options::NONE, payload: b"" };
    let mut answer = Vec::new();
    datagram::encode(&mut answer, MessageType::Acknowledgement, left.message_id, left.token, &content);
    give(&mut proxy, SocketRole::Upstream { ipv6: false, number: 0 }, 5700, &answer, now);
    drain(&mut proxy, &mut out, now);
    assert_eq!(out.to_origin.len(), 2, "the second left");
    assert_eq!(out.records[0].exchanges.traces().len(), 1);
    give(&mut proxy, SocketRole::Listener(0), 40_002, &request(), now);
    drain(&mut proxy, &mut out, now);
    assert_eq!((out.to_origin.len(), out.to_client.len()), (2, 2), "the origin asked to be left alone");
}

#[test]
fn who_ends_knows_no_more_of_what_comes_late() {
    let (mut proxy, mut out, now) = (proxy(Sampling::ALL), Out::default(), Instant::ZERO);
    give(&mut proxy, SocketRole::Listener(0), 40_000, &request(), now);
    drain(&mut proxy, &mut out, now);
    let left = out.to_origin[0].1.clone();
    let left = Datagram::parse(&left).expect("valid");
    let (mut answer, content) = (Vec::new(), Content::bare(Code::CONTENT));
    datagram::encode(&mut answer, MessageType::NonConfirmable, 1, left.token, &content);
    give(&mut proxy, SocketRole::Upstream { ipv6: false, number: 0 }, 5700, &answer, now);
    drain(&mut proxy, &mut out, now);
    assert!(out.to_client.len() == 1 && out.records.is_empty(), "it was not acknowledged");
    proxy.close(now);
    drain(&mut proxy, &mut out, now);
    assert_eq!(out.records.iter().map(|record| record.late).collect::<Vec<_>>(), [None]);
}
