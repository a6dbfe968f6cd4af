//! The verbs over loopback, against a server of few words.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use clap::Parser;
use coapway_endpoint::{Endpoint, EndpointParameters, Event, Gate, Local, Peer, Received, Seed};
use coapway_message::{
    Code, Content, Datagram, Failure, MessageType, OptionNumber, OptionsWriter, OwnedContent, datagram,
};

use super::arguments::MAX_PAYLOAD;
use super::*;
use crate::clock::Clock;

/// Longer than anything here takes unless it hangs.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, clap::Parser)]
struct RequestLine {
    #[command(flatten)]
    arguments: RequestArguments,
}

#[derive(Debug, clap::Parser)]
struct PingLine {
    #[command(flatten)]
    arguments: PingArguments,
}

/// How a verb ended and what it wrote.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) exit: Exit,
    pub(super) output: String,
    pub(super) notes: String,
}

pub(super) fn shown(verbose: bool, run: impl FnOnce(&mut Console<'_>) -> Result<Exit, Trouble>) -> Shown {
    let (mut output, mut notes) = (Vec::new(), Vec::new());
    let mut console =
        Console { output: &mut output, ends_lines: false, notes: &mut notes, verbose, reader_left: false };
    let exit = run(&mut console).unwrap_or_else(|trouble| {
        console.note(&trouble);
        trouble.exit
    });
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Shown { exit, output: text(output), notes: text(notes) }
}

fn ask(method: Method, line: &[&str]) -> Shown {
    let line = RequestLine::try_parse_from(["coapway"].iter().chain(line)).expect("clap takes it");
    shown(line.arguments.asking.verbose, |console| run_request(method, &line.arguments, console))
}

fn ask_whether_alive(uri: &str) -> Shown {
    let line = PingLine::try_parse_from(["coapway", uri, "--timeout", "20s"]).expect("clap takes it");
    shown(false, |console| run_ping(&line.arguments, console))
}

/// When a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    AtOnce,
    /// After an empty Acknowledgement, until the answer is acknowledged.
    Separately,
}

/// What a server saw.
#[derive(Debug)]
struct Seen {
    confirmable: bool,
    content: OwnedContent,
    delivered: Option<Result<(), Failure>>,
}

pub(super) fn socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    let address = socket.local_addr().expect("an address");
    (socket, address)
}

/// Answers one request and says what it was.
fn serve(
    when: When,
    code: Code,
    options: &[(OptionNumber, &[u8])],
    payload: &[u8],
) -> (SocketAddr, Receiver<Seen>) {
    let mut encoded = Vec::new();
    let mut writer = OptionsWriter::new(&mut encoded);
    options.iter().for_each(|(number, value)| writer.push(*number, value));
    let answer = OwnedContent::from(Content { code, options: writer.finish(), payload });
    let (socket, address) = socket();
    let (saw, seen) = channel();
    std::thread::spawn(move || {
        let _ = saw.send(serve_one(&socket, when, &answer.as_content()));
    });
    (address, seen)
}

fn serve_one(socket: &UdpSocket, when: When, answer: &Content<'_>) -> Seen {
    let clock = Clock::start();
    let parameters = EndpointParameters { early_ack_after: Duration::ZERO, ..EndpointParameters::default() };
    let mut endpoint = Endpoint::new(parameters, Seed::from_number(1));
    let mut seen: Option<Seen> = None;
    let mut buffer = [0; 2048];
    loop {
        let (length, remote) = socket.recv_from(&mut buffer).expect("a datagram in time");
        let peer = Peer { local: Local::default(), remote };
        let now = clock.now();
        if let Received::Request { exchange, confirmable, content, .. } =
            endpoint.handle_datagram(&peer, &buffer[..length], now, || Gate::Take)
        {
            seen = Some(Seen { confirmable, content: content.into(), delivered: None });
            if when == When::Separately {
                // Timers may be a tick late.
                endpoint.handle_timeout(now + Duration::from_millis(2));
            }
            endpoint.respond(exchange, answer, now).expect("it is open");
        }
        while let Some(event) = endpoint.poll_event() {
            if let (Event::Delivered { outcome, .. }, Some(seen)) = (event, &mut seen) {
                seen.delivered = Some(outcome);
            }
        }
        while let Some(transmit) = endpoint.poll_transmit() {
            socket.send_to(transmit.datagram, transmit.peer.remote).expect("sent");
        }
        if let Some(seen) = seen.take_if(|seen| when == When::AtOnce || seen.delivered.is_some()) {
            return seen;
        }
    }
}

#[test]
fn a_representation_goes_to_standard_output_as_it_is() {
    let (address, seen) = serve(When::AtOnce, Code::CONTENT, &[(OptionNumber::MAX_AGE, &[60])], b"22.5");
    let shown = ask(Method::Get, &[&format!("coap://{address}/t?unit=C"), "--accept", "0"]);
    assert_eq!(shown, Shown { exit: Exit::Success, output: "22.5".into(), notes: String::new() });
    let seen = seen.recv_timeout(LIMIT).expect("a request");
    assert!(seen.confirmable);
    let options: Vec<_> = seen.content.as_content().options.iter().map(|(n, v)| (n.0, v.to_vec())).collect();
    assert_eq!(options, [(11, b"t".to_vec()), (15, b"unit=C".to_vec()), (17, vec![])]);
}

#[test]
fn verbose_tells_code_and_options() {
    let (address, _seen) = serve(When::AtOnce, Code::CONTENT, &[(OptionNumber::MAX_AGE, &[60])], b"22.5");
    let shown = ask(Method::Get, &[&format!("coap://{address}/t"), "--verbose"]);
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "22.5"));
    assert_eq!(shown.notes, format!("asking {address}\n2.05 Content\n  Max-Age: 60\n"));
}

#[test]
fn a_terminal_gets_a_line_break_more() {
    for (payload, is_terminal, expected) in
        [("a", true, "a\n"), ("a\n", true, "a\n"), ("", true, ""), ("a", false, "a")]
    {
        let (mut output, mut notes) = (Vec::new(), Vec::new());
        let mut console = Console {
            output: &mut output,
            ends_lines: is_terminal,
            notes: &mut notes,
            verbose: false,
            reader_left: false,
        };
        let content = Content { payload: payload.as_bytes(), ..Content::bare(Code::CONTENT) };
        report::show(&outcome::Answer::Response(content.into()), &mut console).expect("shown");
        assert_eq!((&*output, &*notes), (expected.as_bytes(), &b""[..]));
    }
}

#[test]
fn a_separate_response_is_acknowledged() {
    let (address, seen) = serve(When::Separately, Code::CHANGED, &[], b"done");
    let shown = ask(Method::Post, &[&format!("coap://{address}/"), "--payload", "on"]);
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "done"));
    let seen = seen.recv_timeout(LIMIT).expect("a request");
    assert_eq!(seen.delivered, Some(Ok(())));
    assert_eq!(seen.content.as_content().payload, b"on");
}

#[test]
fn a_non_confirmable_request_is_answered_alike() {
    let (address, seen) = serve(When::AtOnce, Code::DELETED, &[], b"");
    let shown = ask(Method::Delete, &[&format!("coap://{address}/x"), "--non"]);
    assert_eq!(shown, Shown { exit: Exit::Success, output: String::new(), notes: String::new() });
    assert!(!seen.recv_timeout(LIMIT).expect("a request").confirmable);
}

#[test]
fn an_error_is_told_with_its_diagnostic() {
    let (address, _seen) =
        serve(When::AtOnce, Code::NOT_FOUND, &[(OptionNumber::MAX_AGE, &[])], b"no\x07thing");
    let shown = ask(Method::Get, &[&format!("coap://{address}/x")]);
    let notes = "4.04 Not Found: no\\u{7}thing\n  Max-Age: 0\n".to_owned();
    assert_eq!(shown, Shown { exit: Exit::Failed, output: String::new(), notes });
}

#[test]
fn an_error_with_a_representation_is_passed_on() {
    let format: (_, &[u8]) = (OptionNumber::CONTENT_FORMAT, &[50]);
    let (address, _seen) = serve(When::AtOnce, Code::CONFLICT, &[format], b"{}");
    let shown = ask(Method::Get, &[&format!("coap://{address}/x")]);
    let notes = "4.09 Conflict\n  Content-Format: 50\n".to_owned();
    assert_eq!(shown, Shown { exit: Exit::Failed, output: "{}".into(), notes });
}

#[test]
fn a_representation_in_blocks_is_not_taken_for_the_whole() {
    let (address, _seen) = serve(When::AtOnce, Code::CONTENT, &[(OptionNumber::BLOCK2, &[0x0A])], b"first");
    let shown = ask(Method::Get, &[&format!("coap://{address}/long")]);
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "first"));
    assert!(shown.notes.contains("only one block"), "{}", shown.notes);
}

#[test]
fn a_response_with_an_unknown_critical_option_is_rejected() {
    let (address, _seen) = serve(When::AtOnce, Code::CONTENT, &[(OptionNumber(65_001), b"")], b"?");
    let shown = ask(Method::Get, &[&format!("coap://{address}/")]);
    assert_eq!((shown.exit, &*shown.output), (Exit::Failed, ""));
    assert!(shown.notes.contains("65001"), "{}", shown.notes);
}

#[test]
fn a_proxy_is_asked_for_the_whole_uri() {
    let (address, seen) = serve(When::AtOnce, Code::CONTENT, &[], b"relayed");
    let uri = "coap://device.example/t";
    let shown = ask(Method::Get, &[uri, "--proxy", &format!("coap://{address}")]);
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "relayed"));
    let seen = seen.recv_timeout(LIMIT).expect("a request");
    let content = seen.content.as_content();
    assert_eq!(content.options.first(OptionNumber::PROXY_URI), Some(uri.as_bytes()));
    assert_eq!(content.options.iter().count(), 1);
}

#[test]
fn a_port_where_nobody_listens_is_told_at_once() {
    let (socket, address) = socket();
    // The port stays taken, and what we send finds no socket: this one hears its peer only.
    socket.connect((Ipv4Addr::LOCALHOST, 9)).expect("connected");
    let shown = ask(Method::Get, &[&format!("coap://{address}/"), "--timeout", "1h"]);
    assert_eq!((shown.exit, &*shown.output), (Exit::Failed, ""));
    let what = format!("coapway: nobody listens at {address}: connection refused\n  hint: ");
    assert!(shown.notes.starts_with(&what), "{}", shown.notes);
}

#[test]
fn each_address_of_a_name_is_tried() {
    let (address, seen) = serve(When::AtOnce, Code::CONTENT, &[], b"here");
    // Where localhost is ::1 first, nobody listens there.
    let uri = format!("coap://localhost:{}/", address.port());
    let shown = ask(Method::Get, &[&uri]);
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "here"), "{}", shown.notes);
    let seen = seen.recv_timeout(LIMIT).expect("a request");
    assert_eq!(seen.content.as_content().options.first(OptionNumber::URI_HOST), Some(&b"localhost"[..]));
}

#[test]
fn silence_ends_in_time_and_says_what_is_known() {
    let (_socket, address) = socket();
    let uri = format!("coap://{address}/");
    let shown = ask(Method::Post, &[&uri, "--timeout", "20ms"]);
    assert_eq!(shown.exit, Exit::Failed);
    let what = format!("no answer from {address} within 20ms, copies sent: 1; the request may have been");
    assert!(shown.notes.contains(&what), "{}", shown.notes);
}

#[test]
fn a_reset_ends_the_exchange() {
    let (socket, address) = socket();
    std::thread::spawn(move || {
        let mut buffer = [0; 100];
        let (length, peer) = socket.recv_from(&mut buffer).expect("a request");
        let message_id = Datagram::parse(&buffer[..length]).expect("a message").message_id;
        let _ = socket.send_to(&datagram::empty(MessageType::Reset, message_id), peer);
    });
    let shown = ask(Method::Get, &[&format!("coap://{address}/")]);
    assert_eq!(shown.exit, Exit::Failed);
    assert!(shown.notes.contains("Reset"), "{}", shown.notes);
}

#[test]
fn a_ping_is_answered_with_the_round_trip_time() {
    // Any CoAP endpoint answers a ping; this one serves a request afterwards, and ends.
    let (address, _seen) = serve(When::AtOnce, Code::CONTENT, &[], b"");
    let shown = ask_whether_alive(&format!("coap://{address}"));
    assert_eq!((shown.exit, &*shown.notes), (Exit::Success, ""));
    assert!(shown.output.starts_with(&format!("{address} is alive, round trip ")), "{}", shown.output);
    assert_eq!(ask(Method::Get, &[&format!("coap://{address}/")]).exit, Exit::Success);
}

#[test]
fn a_request_too_large_for_a_datagram_is_told() {
    let (_socket, address) = socket();
    let line = [&*format!("coap://{address}/"), "--payload", &"x".repeat(MAX_PAYLOAD)];
    let shown = ask(Method::Put, &line);
    assert_eq!(shown.exit, Exit::Failed);
    assert!(shown.notes.contains("does not fit into a datagram"), "{}", shown.notes);
}
