//! The forward record: everything about one forward, for people and for `tune`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{AnswerKind, Trace};
use coapway_message::{Code, Evidence, Token};
use coapway_time::Instant;

use crate::cause::Cause;

/// One forward from receipt to final answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Counts records of this proxy.
    pub id: u64,
    /// When the request came in.
    pub received: Instant,
    /// When it was answered.
    pub answered: Instant,
    /// Who asked.
    pub client: SocketAddr,
    /// The listening socket, by number.
    pub listener: u32,
    /// The upstream's name.
    pub upstream: Box<str>,
    /// The origin's address, once it was known.
    pub origin: Option<SocketAddr>,
    /// The number of our socket towards it.
    pub local_port: Option<u32>,
    /// The method.
    pub method: Code,
    /// The path of the request as the client sees it.
    pub path: Box<str>,
    /// Whether the client's request is Confirmable.
    pub confirmable: bool,
    /// The client's token.
    pub client_token: Token,
    /// The client's Message ID.
    pub client_message_id: u16,
    /// The exchanges with origins, copy by copy.
    pub traces: Vec<Trace>,
    /// When the client got an empty Acknowledgement.
    pub early_ack: Option<Instant>,
    /// How long the request waited for its turn.
    pub queued: Duration,
    /// The window towards the origin when the first copy left.
    pub window: u32,
    /// The answer's code.
    pub code: Code,
    /// Where the answer comes from.
    pub cause: Cause,
    /// What is known about execution, when the forward failed.
    pub evidence: Option<Evidence>,
    /// Bytes of the client's request without header.
    pub bytes_in: u32,
    /// Bytes of the answer without header.
    pub bytes_out: u32,
}

impl Record {
    /// Further copies that left.
    pub fn retries(&self) -> usize {
        self.traces.iter().map(|trace| trace.copies.len()).sum::<usize>().saturating_sub(1)
    }

    fn offset(&self, at: Instant) -> Millis {
        Millis(at.since(self.received))
    }

    /// Appends the record as one line of JSON, as docs/record.md describes it.
    ///
    /// Shape:  `timestamp` is the wall clock at receipt in RFC 3339; `listener` and `local_port` are
    ///         the addresses behind the socket numbers.
    pub fn write_json(
        &self,
        line: &mut Vec<u8>,
        timestamp: &str,
        listener: Option<SocketAddr>,
        local_port: Option<u16>,
    ) {
        let mut json = Object::start(line);
        json.text("ts", timestamp);
        json.text("event", "forward");
        json.display("id", self.id);
        json.quoted("client", self.client);
        json.optional("listener", listener);
        json.text("upstream", &self.upstream);
        json.optional("origin", self.origin);
        json.number_or_null("local_port", local_port);
        json.text(
            "method",
            coapway_message::Method::from_code(self.method).map_or("", |method| method.name()),
        );
        json.text("path", &self.path);
        json.text("type", if self.confirmable { "con" } else { "non" });
        json.quoted("client_token", &self.client_token);
        json.quoted("upstream_token", Hex(self.traces.last().map_or(&[], |trace| trace.token.as_bytes())));
        json.display("client_mid", self.client_message_id);
        json.key("attempts");
        self.write_attempts(json.line);
        json.display("retries", self.retries());
        let first_ack = self.traces.iter().find_map(|trace| trace.first_ack);
        json.number_or_null("first_ack_ms", first_ack.map(|at| self.offset(at)));
        json.display("acks", self.traces.iter().map(|trace| trace.acks).sum::<u32>());
        let answer = self.traces.last().and_then(|trace| trace.answer);
        json.optional_text("answer_kind", answer.map(AnswerKind::name));
        json.display("window", self.window);
        json.number_or_null("early_ack_ms", self.early_ack.map(|at| self.offset(at)));
        json.display("queue_ms", Millis(self.queued));
        json.text("cache", "bypass");
        json.quoted("code", self.code);
        json.text("cause", self.cause.name());
        json.optional_text("evidence", self.evidence.map(Evidence::name));
        json.display("total_ms", self.offset(self.answered));
        json.display("bytes_in", self.bytes_in);
        json.display("bytes_out", self.bytes_out);
        json.end();
    }

    /// With one Message ID an attempt lasts until the next copy or until the answer.
    fn write_attempts(&self, line: &mut Vec<u8>) {
        line.push(b'[');
        let copies: Vec<_> =
            self.traces.iter().flat_map(|trace| trace.copies.iter().map(move |copy| (trace, copy))).collect();
        for (index, (trace, copy)) in copies.iter().enumerate() {
            let first_of_trace = trace.copies.first() == Some(copy);
            let kind = match (index, first_of_trace) {
                (0, _) => "first",
                (_, true) => "reissue",
                (_, false) => "retransmission",
            };
            let next = copies.get(index + 1).map_or(self.answered, |(_, next)| next.sent);
            if index > 0 {
                line.push(b',');
            }
            let mut json = Object::start(line);
            json.display("mid", trace.message_id);
            json.text("kind", kind);
            json.display("at_ms", self.offset(copy.sent));
            json.display("took_ms", Millis(next.since(copy.sent)));
            json.display("rto_ms", Millis(copy.timeout));
            json.close();
        }
        line.push(b']');
    }
}

/// Milliseconds with three decimals.
struct Millis(Duration);

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let micros = self.0.as_micros();
        write!(f, "{}.{:03}", micros / 1000, micros % 1000)
    }
}

struct Hex<'b>(&'b [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Writes one JSON object. Writing into memory cannot fail.
struct Object<'l> {
    line: &'l mut Vec<u8>,
    first: bool,
}

impl<'l> Object<'l> {
    fn start(line: &'l mut Vec<u8>) -> Self {
        line.push(b'{');
        Self { line, first: true }
    }

    fn key(&mut self, key: &str) {
        if !std::mem::take(&mut self.first) {
            self.line.push(b',');
        }
        self.line.push(b'"');
        self.line.extend_from_slice(key.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        write_string(self.line, text);
    }

    fn optional_text(&mut self, key: &str, text: Option<&str>) {
        match text {
            Some(text) => self.text(key, text),
            None => self.null(key),
        }
    }

    /// For values whose text needs no escaping.
    fn quoted(&mut self, key: &str, value: impl std::fmt::Display) {
        self.key(key);
        let _ = write!(self.line, "\"{value}\"");
    }

    fn optional(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        match value {
            Some(value) => self.quoted(key, value),
            None => self.null(key),
        }
    }

    fn display(&mut self, key: &str, value: impl std::fmt::Display) {
        self.key(key);
        let _ = write!(self.line, "{value}");
    }

    fn number_or_null(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        match value {
            Some(value) => self.display(key, value),
            None => self.null(key),
        }
    }

    fn null(&mut self, key: &str) {
        self.key(key);
        self.line.extend_from_slice(b"null");
    }

    fn close(self) {
        self.line.push(b'}');
    }

    fn end(self) {
        self.line.extend_from_slice(b"}\n");
    }
}

fn write_string(line: &mut Vec<u8>, text: &str) {
    line.push(b'"');
    for character in text.chars() {
        match character {
            '"' => line.extend_from_slice(b"\\\""),
            '\\' => line.extend_from_slice(b"\\\\"),
            control if control < ' ' => {
                let _ = write!(line, "\\u{:04x}", u32::from(control));
            }
            other => line.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    line.push(b'"');
}
