//! Observations of an origin that does what the test says.

use std::net::{SocketAddr, UdpSocket};

use clap::Parser as _;
use coapway_message::{Code, Datagram, MessageType, OptionsWriter, Token, datagram};

use super::super::tests::{LIMIT, Shown, shown, socket};
use super::*;
use MessageType::{Acknowledgement, Confirmable, NonConfirmable, Reset};

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    arguments: ObserveArguments,
}

/// What came to the origin.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    message_type: MessageType,
    message_id: u16,
    token: Token,
    code: Code,
    observe: Option<u32>,
}

/// Speaks to one client, message by message.
struct Origin {
    socket: UdpSocket,
    client: Option<SocketAddr>,
    interrupt: mpsc::Sender<()>,
}

impl Origin {
    fn hear(&mut self) -> Heard {
        let mut buffer = [0; 2048];
        let (length, client) = self.socket.recv_from(&mut buffer).expect("a datagram in time");
        self.client = Some(client);
        let Datagram { message_type, message_id, token, content } =
            Datagram::parse(&buffer[..length]).expect("a message");
        let observe = content.options.uint(OptionNumber::OBSERVE);
        Heard { message_type, message_id, token: Token::new(token), code: content.code, observe }
    }

    fn hear_empty(&mut self, message_type: MessageType, message_id: u16) {
        let heard = self.hear();
        assert_eq!(
            (heard.message_type, heard.message_id, heard.code),
            (message_type, message_id, Code::EMPTY)
        );
    }

    /// Hears a registration, or the end of one.
    fn hear_request(&mut self, observe: u16) -> Heard {
        let heard = self.hear();
        assert_eq!((heard.code, heard.observe), (Code::GET, Some(observe.into())));
        heard
    }

    fn say(
        &self,
        message_type: MessageType,
        message_id: u16,
        token: &Token,
        code: Code,
        options: &[(OptionNumber, u32)],
        payload: &str,
    ) {
        let mut encoded = Vec::new();
        let mut writer = OptionsWriter::new(&mut encoded);
        options.iter().for_each(|&(number, value)| writer.push_uint(number, value));
        let content = Content { code, options: writer.finish(), payload: payload.as_bytes() };
        let mut bytes = Vec::new();
        datagram::encode(&mut bytes, message_type, message_id, token.as_bytes(), &content);
        self.socket.send_to(&bytes, self.client.expect("a client that asked")).expect("sent");
    }

    fn answer(&self, to: &Heard, sequence: u32, payload: &str) {
        let observe = [(OptionNumber::OBSERVE, sequence)];
        self.say(Acknowledgement, to.message_id, &to.token, Code::CONTENT, &observe, payload);
    }

    fn notify(&self, message_type: MessageType, message_id: u16, to: &Heard, sequence: u32, payload: &str) {
        let observe = [(OptionNumber::OBSERVE, sequence)];
        self.say(message_type, message_id, &to.token, Code::CONTENT, &observe, payload);
    }

    /// Hears the end of an observation and agrees.
    fn end(&mut self, registration: &Heard) {
        let deregistration = self.hear_request(1);
        assert_eq!(deregistration.token, registration.token, "the token of the registration");
        self.say(Acknowledgement, deregistration.message_id, &deregistration.token, Code::CONTENT, &[], "");
    }
}

/// Runs `coapway observe` against an origin.
fn observe(line: &[&str], origin: impl FnOnce(Origin) + Send + 'static) -> Shown {
    let (socket, address) = socket();
    let uri = format!("coap://{address}/t");
    let line =
        Line::try_parse_from(["coapway", &uri, "--verbose"].iter().chain(line)).expect("clap takes it");
    let (interrupt, interrupts) = mpsc::channel(1);
    let kept = interrupt.clone();
    let played = std::thread::spawn(move || origin(Origin { socket, client: None, interrupt }));
    let runtime = super::super::runtime().expect("a runtime");
    let shown = shown(true, |console| {
        let observed = super::observe(&line.arguments, console, || Ok(interrupts), Duration::ZERO);
        runtime.block_on(async { tokio::time::timeout(LIMIT, observed).await.expect("an end in time") })
    });
    drop(kept);
    played.join().expect("the origin heard what it should");
    shown
}

fn notifications(shown: &Shown) -> Vec<&str> {
    shown.notes.lines().filter_map(|line| line.strip_prefix("notification ")).collect()
}

#[test]
fn notifications_are_shown_in_order_acknowledged_and_after_the_end_rejected() {
    let shown = observe(&["--count", "3"], |mut origin| {
        let registration = origin.hear_request(0);
        origin.answer(&registration, 10, "a");
        origin.notify(Confirmable, 1, &registration, 12, "b");
        origin.hear_empty(Acknowledgement, 1);
        origin.notify(NonConfirmable, 2, &registration, 11, "too late");
        origin.notify(Confirmable, 1, &registration, 12, "b");
        origin.hear_empty(Acknowledgement, 1);
        origin.notify(NonConfirmable, 3, &registration, 13, "c\n");
        let deregistration = origin.hear_request(1);
        assert_eq!(deregistration.token, registration.token);
        origin.notify(Confirmable, 4, &registration, 14, "d");
        origin.hear_empty(Reset, 4);
        origin.notify(NonConfirmable, 5, &registration, 15, "e");
        origin.hear_empty(Reset, 5);
        origin.say(Acknowledgement, deregistration.message_id, &registration.token, Code::CONTENT, &[], "e");
    });
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "a\nb\nc\n"), "{}", shown.notes);
    let expected =
        ["10", "12", "11 is not newer than the last one", "12 is not newer than the last one", "13"];
    assert_eq!(notifications(&shown), expected);
    assert!(shown.notes.ends_with("deregistered\n"), "{}", shown.notes);
}

#[test]
fn an_interrupt_ends_the_observation_at_the_server() {
    let shown = observe(&[], |mut origin| {
        let registration = origin.hear_request(0);
        origin.answer(&registration, 1, "on");
        origin.interrupt.blocking_send(()).expect("somebody waits for it");
        origin.end(&registration);
    });
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "on\n"), "{}", shown.notes);
}

#[test]
fn a_second_interrupt_leaves_at_once() {
    let shown = observe(&["--timeout", "1h"], |mut origin| {
        let registration = origin.hear_request(0);
        origin.answer(&registration, 1, "on");
        origin.interrupt.blocking_send(()).expect("somebody waits for it");
        origin.hear_request(1);
        origin.interrupt.blocking_send(()).expect("somebody waits for it");
    });
    assert_eq!(shown.exit, Exit::Success);
}

#[test]
fn an_observation_ends_after_its_time() {
    let shown = observe(&["--for", "20ms"], |mut origin| {
        let registration = origin.hear_request(0);
        origin.answer(&registration, 1, "on");
        origin.end(&registration);
    });
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "on\n"), "{}", shown.notes);
}

#[test]
fn a_server_that_does_not_hear_the_end_is_told() {
    let shown = observe(&["--count", "1", "--timeout", "100ms"], |mut origin| {
        let registration = origin.hear_request(0);
        origin.answer(&registration, 1, "on");
        origin.hear_request(1);
    });
    assert_eq!(shown.exit, Exit::Success);
    assert!(shown.notes.contains("did not hear that the observation is over"), "{}", shown.notes);
}

#[test]
fn an_answer_without_observe_is_shown_and_said_to_be_the_only_one() {
    let shown = observe(&[], |mut origin| {
        let request = origin.hear_request(0);
        origin.say(Acknowledgement, request.message_id, &request.token, Code::CONTENT, &[], "22.5");
    });
    assert_eq!((shown.exit, &*shown.output), (Exit::Failed, "22.5\n"));
    assert!(shown.notes.contains("answered without Observe"), "{}", shown.notes);
}

#[test]
fn a_proxy_that_passes_no_observation_on_is_named() {
    let (socket, address) = socket();
    let (interrupt, _kept) = mpsc::channel(1);
    let mut proxy = Origin { socket, client: None, interrupt };
    let played = std::thread::spawn(move || {
        let request = proxy.hear_request(0);
        proxy.say(Acknowledgement, request.message_id, &request.token, Code::CONTENT, &[], "22.5");
    });
    let line = ["coapway", "coap://device.example/t", "--proxy", &format!("coap://{address}")];
    let arguments = Line::try_parse_from(line).expect("clap takes it").arguments;
    let runtime = super::super::runtime().expect("a runtime");
    let interrupts = || Ok(mpsc::channel(1).1);
    let shown = shown(false, |console| {
        runtime.block_on(super::observe(&arguments, console, interrupts, Duration::ZERO))
    });
    played.join().expect("the proxy heard what it should");
    assert_eq!((shown.exit, &*shown.output), (Exit::Failed, "22.5\n"));
    assert!(shown.notes.contains("this proxy does not pass observations on"), "{}", shown.notes);
}

#[test]
fn a_refusal_is_a_failure() {
    let shown = observe(&[], |mut origin| {
        let request = origin.hear_request(0);
        origin.say(Acknowledgement, request.message_id, &request.token, Code::NOT_FOUND, &[], "nothing");
    });
    assert_eq!((shown.exit, &*shown.output), (Exit::Failed, ""));
    assert!(shown.notes.contains("4.04 Not Found: nothing"), "{}", shown.notes);
}

#[test]
fn what_a_server_says_at_the_end_is_shown() {
    for (code, told) in
        [(Code::NOT_FOUND, "4.04 Not Found: gone"), (Code::CONTENT, "has ended the observation")]
    {
        let shown = observe(&[], move |mut origin| {
            let registration = origin.hear_request(0);
            origin.answer(&registration, 1, "on");
            origin.say(Confirmable, 9, &registration.token, code, &[], "gone");
            origin.hear_empty(Acknowledgement, 9);
        });
        assert_eq!(shown.exit, Exit::Failed);
        assert!(shown.notes.contains(told), "{}", shown.notes);
    }
}

#[test]
fn a_notification_that_cannot_be_understood_is_rejected() {
    let shown = observe(&[], |mut origin| {
        let registration = origin.hear_request(0);
        origin.answer(&registration, 1, "on");
        let options = [(OptionNumber::OBSERVE, 2), (OptionNumber(65_001), 0)];
        origin.say(Confirmable, 9, &registration.token, Code::CONTENT, &options, "?");
        origin.hear_empty(Reset, 9);
    });
    assert_eq!((shown.exit, &*shown.output), (Exit::Failed, "on\n"));
    assert!(shown.notes.contains("65001"), "{}", shown.notes);
}

#[test]
fn a_server_that_is_silent_for_longer_than_its_answer_is_fresh_is_asked_anew() {
    let shown = observe(&["--count", "2"], |mut origin| {
        let first = origin.hear_request(0);
        let options = [(OptionNumber::OBSERVE, 900), (OptionNumber::MAX_AGE, 0)];
        origin.say(Acknowledgement, first.message_id, &first.token, Code::CONTENT, &options, "before");
        let second = origin.hear_request(0);
        assert_eq!(second.token, first.token, "the same observation");
        origin.answer(&second, 1, "after a restart");
        origin.end(&second);
    });
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "before\nafter a restart\n"), "{}", shown.notes);
}

#[test]
fn a_separate_first_answer_begins_an_observation_too() {
    let shown = observe(&["--count", "1"], |mut origin| {
        let registration = origin.hear_request(0);
        origin.notify(Confirmable, 77, &registration, 5, "on");
        origin.hear_empty(Acknowledgement, 77);
        origin.end(&registration);
    });
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "on\n"), "{}", shown.notes);
}

#[test]
fn other_messages_are_answered_as_always() {
    let shown = observe(&["--count", "2"], |mut origin| {
        let registration = origin.hear_request(0);
        origin.answer(&registration, 1, "on");
        origin.say(Confirmable, 7, &Token::default(), Code::EMPTY, &[], "");
        origin.hear_empty(Reset, 7);
        origin.notify(Confirmable, 8, &Heard { token: Token::new(b"other"), ..registration }, 2, "forged");
        origin.hear_empty(Reset, 8);
        let (message_type, token) = (NonConfirmable, Token::default());
        origin.say(message_type, 9, &token, Code::GET, &[], "");
        assert_eq!(origin.hear().code, Code::NOT_FOUND);
        origin.interrupt.blocking_send(()).expect("somebody waits for it");
        origin.hear_request(1);
        origin.interrupt.blocking_send(()).expect("somebody waits for it");
    });
    assert_eq!((shown.exit, &*shown.output), (Exit::Success, "on\n"), "{}", shown.notes);
}

#[test]
fn observe_is_not_given_twice() {
    let shown = observe(&["--option", "Observe=1"], |_| {});
    assert_eq!(shown.exit, Exit::WrongUse);
}
