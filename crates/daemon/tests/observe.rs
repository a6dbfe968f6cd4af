//! Ctrl-C during `coapway observe`.

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, OptionsWriter, datagram};

/// Hears a GET with this Observe and answers it as an observation's first notification.
fn answer(origin: &UdpSocket, observe: u32) {
    let mut buffer = [0; 2048];
    let (length, client) = origin.recv_from(&mut buffer).expect("a request in time");
    let Datagram { message_id, token, content, .. } = Datagram::parse(&buffer[..length]).expect("a message");
    assert_eq!((content.code, content.options.uint(OptionNumber::OBSERVE)), (Code::GET, Some(observe)));
    let mut encoded = Vec::new();
    let mut writer = OptionsWriter::new(&mut encoded);
    writer.push_uint(OptionNumber::OBSERVE, 7);
    let content = Content { code: Code::CONTENT, options: writer.finish(), payload: b"on" };
    let mut bytes = Vec::new();
    datagram::encode(&mut bytes, MessageType::Acknowledgement, message_id, token, &content);
    origin.send_to(&bytes, client).expect("sent");
}

#[test]
fn control_c_ends_an_observation_at_its_server() {
    let origin = UdpSocket::bind("127.0.0.1:0").expect("a port");
    origin.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let uri = format!("coap://{}/t", origin.local_addr().expect("an address"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.args(["observe", &uri]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program runs");
    answer(&origin, 0);
    let mut line = String::new();
    let output = child.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "on\n");
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.expect("kill is there").success());
    answer(&origin, 1);
    assert!(child.wait().expect("an end").success());
}
