//! Standard output that nobody reads or that is full: no panic, and an exit code that tells what was done.

use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, OptionsWriter, datagram};

/// Runs the program; how it ends, and what it says on standard error.
fn run(arguments: &[&str], output: Stdio) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.args(arguments).env_clear().stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
    let ended = command.spawn().and_then(std::process::Child::wait_with_output).expect("the program runs");
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

/// A pipe whose reader has gone.
fn nobody() -> Stdio {
    let (reader, writer) = io::pipe().expect("pipes can be had");
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("it is there").into()
}

const TALKING: [&[&str]; 9] = [
    &["check"],
    &["check", "--dump"],
    &["simulate", "--list"],
    &["simulate", "lan", "--runs", "1", "--requests", "20"],
    &["--help"],
    &["serve", "--help"],
    &["-h"],
    &["--version"],
    &["help", "get"],
];

#[test]
fn who_has_read_enough_is_no_failure() {
    for arguments in TALKING {
        assert_eq!(run(arguments, nobody()), (Some(0), String::new()), "{arguments:?}");
    }
    let (code, told) = run(&["check", "--set", "workers=0"], nobody());
    assert_eq!(code, Some(2), "what is wrong stays wrong: {told}");
}

#[test]
fn what_cannot_be_written_is_told() {
    for arguments in &TALKING {
        let (code, told) = run(arguments, full());
        assert_eq!(code, Some(1), "{arguments:?}: {told}");
        assert!(told.starts_with("coapway: cannot write to standard output: No space left"), "{told}");
    }
}

/// Answers `count` requests as an observation; what they say of it.
fn origin(count: u32) -> (String, thread::JoinHandle<Vec<Option<u32>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let uri = format!("coap://{}/t", socket.local_addr().expect("an address"));
    let answer = move |sequence: u32| {
        let mut buffer = [0; 2048];
        let (length, client) = socket.recv_from(&mut buffer).expect("a request in time");
        let asked = Datagram::parse(&buffer[..length]).expect("a message");
        let mut encoded = Vec::new();
        let mut writer = OptionsWriter::new(&mut encoded);
        writer.push_uint(OptionNumber::OBSERVE, sequence);
        let content = Content { code: Code::CONTENT, options: writer.finish(), payload: b"on" };
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, MessageType::Acknowledgement, asked.message_id, asked.token, &content);
        socket.send_to(&bytes, client).expect("sent");
        asked.content.options.uint(OptionNumber::OBSERVE)
    };
    (uri, thread::spawn(move || (0..count).map(answer).collect()))
}

#[test]
fn an_answer_nobody_reads_is_an_answer() {
    let (uri, origin) = origin(1);
    assert_eq!(run(&["get", &uri], nobody()), (Some(0), String::new()));
    assert_eq!(origin.join().expect("it was asked"), [None]);
}

#[test]
fn an_observation_nobody_reads_is_ended_at_its_server() {
    let (uri, origin) = origin(2);
    let (code, told) = run(&["observe", &uri], nobody());
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(origin.join().expect("it was asked twice"), [Some(0), Some(1)]);
}
