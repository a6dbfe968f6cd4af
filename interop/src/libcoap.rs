//! libcoap's example programs in both roles.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::exchange::{Answer, Request, Via};
use crate::peers::Peer;
use crate::process::{Family, Process, free_port};

/// `coap-server-notls` on both loopback addresses, as two processes.
pub struct LibcoapOrigin {
    port: u16,
    _processes: [Process; 2],
}

impl LibcoapOrigin {
    /// Starts it with room for resources that PUT creates.
    pub fn start() -> Self {
        let port = free_port();
        let processes = Family::ALL.map(|family| {
            let program = &Peer::LibcoapServer.find().expect("the test asked for libcoap's server").program;
            let mut command = Command::new(program);
            command.args(["-A", &family.loopback().to_string(), "-p", &port.to_string(), "-d", "10000"]);
            let mut process = Process::start("coap-server", &mut command);
            process.wait_until_it_answers(&[family.address(port)]);
            process
        });
        Self { port, _processes: processes }
    }

    /// Its port, the same on both addresses.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// One message in the log of `coap-client`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Whether the client sent it.
    pub sent: bool,
    /// Milliseconds of the day by the client's clock.
    pub at_ms: u64,
    /// CON, NON, ACK or RST.
    pub kind: String,
    /// `GET`, `2.05`, or `0.00` for an Empty message.
    pub code: String,
    /// The Message ID in hexadecimal.
    pub message_id: String,
    /// The options as libcoap writes them.
    pub options: String,
}

/// All that a run of `coap-client` showed.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Its messages in order.
    pub messages: Vec<Logged>,
    /// The payload it received.
    pub payload: Vec<u8>,
    /// Its log.
    pub log: String,
}

impl Exchange {
    /// The one response; `Err` when there was none or more than one.
    pub fn answer(&self) -> Result<Answer, String> {
        let responses: Vec<_> =
            self.messages.iter().filter(|m| !m.sent && m.code.starts_with(['2', '3', '4', '5'])).collect();
        let [response] = responses[..] else {
            return Err(format!("{} responses: {}", responses.len(), self.log));
        };
        let named = |name: &str| {
            let (_, value) = response.options.split_once(name)?;
            Some(value.split([',', ' ']).next().unwrap_or_default().to_owned())
        };
        Ok(Answer {
            code: response.code.clone(),
            kind: response.kind.clone(),
            payload: self.payload.clone(),
            content_format: named("Content-Format:").map(|name| content_format(&name)),
            etag: named("ETag:").map(|value| etag(&value)),
        })
    }
}

/// Runs `coap-client` once. `Err` when it cannot be run or its log is not understood.
///
/// Its port is free when it is chosen and may be taken a moment later: then another one is.
pub fn request(request: &Request) -> Result<Exchange, String> {
    let mut exchange = attempt(request)?;
    for _ in 0..TRIES {
        if !exchange.log.contains("bind: Address already in use") {
            break;
        }
        exchange = attempt(request)?;
    }
    Ok(exchange)
}

/// How often another port is tried.
const TRIES: usize = 5;

fn attempt(request: &Request) -> Result<Exchange, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (input, output) = (folder.path().join("request"), folder.path().join("response"));
    let program = &Peer::LibcoapClient.find().expect("the test asked for libcoap's client").program;
    let mut command = Command::new(program);
    // A port of its own: its socket may share one that the system chooses with another client's.
    command.args(["-p", &free_port().to_string()]);
    command.args(["-v", "7", "-m", request.method.name(), "-B", &request.patience.as_secs().to_string()]);
    command.arg("-o").arg(&output);
    if !request.confirmable {
        command.arg("-N");
    }
    if let Some(number) = request.content_format {
        command.args(["-t", &number.to_string()]);
    }
    for (number, value) in &request.options {
        let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        command.args(["-O", &format!("{number},0x{digits}")]);
    }
    if !request.payload.is_empty() {
        fs::write(&input, &request.payload).map_err(|error| error.to_string())?;
        command.arg("-f").arg(&input);
    }
    match request.via {
        Via::Direct | Via::Reverse(_) => {}
        Via::ProxyUri(proxy) => {
            command.args(["-P", &format!("coap://{proxy}")]);
        }
        Via::ProxyScheme(_) => return Err("libcoap's client has no way to choose Proxy-Scheme".to_owned()),
    }
    let finished =
        command.arg(request.uri()).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let diagnostic = diagnostic_payload(&String::from_utf8_lossy(&finished.stderr));
    let log = String::from_utf8_lossy(&[finished.stdout, finished.stderr].concat()).into_owned();
    let payload = diagnostic.unwrap_or_else(|| fs::read(&output).unwrap_or_default());
    Ok(Exchange { messages: messages_of(&log)?, payload, log })
}

/// The time between two messages of one run.
pub fn between(first: &Logged, second: &Logged) -> Duration {
    const DAY_MS: u64 = 86_400_000;
    Duration::from_millis((second.at_ms + DAY_MS - first.at_ms) % DAY_MS)
}

/// Each message is two lines: `Nov 30 05:48:35.785 DEBG *  … received 4 bytes`, then
/// `v:1 t:ACK c:0.00 i:7267 {} [ … ]` and perhaps ` :: payload`.
fn messages_of(log: &str) -> Result<Vec<Logged>, String> {
    let mut messages = Vec::new();
    let mut lines = log.lines().peekable();
    while let Some(line) = lines.next() {
        let sent = line.contains(" : sent ");
        if !(sent || line.contains(" : received ")) {
            continue;
        }
        let described = lines.peek().and_then(|next| parse(sent, line, next));
        messages.push(described.ok_or_else(|| format!("no message after {line:?} in {log}"))?);
    }
    Ok(messages)
}

fn parse(sent: bool, line: &str, described: &str) -> Option<Logged> {
    let clock: Vec<u64> = line
        .split_whitespace()
        .nth(2)?
        .split([':', '.'])
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let &[hours, minutes, seconds, milliseconds] = clock.as_slice() else { return None };
    let field = |name: &str| {
        let mut words = described.strip_prefix("v:1 ")?.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)).map(str::to_owned)
    };
    Some(Logged {
        sent,
        at_ms: ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds,
        kind: field("t:")?,
        code: field("c:")?,
        message_id: field("i:")?,
        options: described.split_once("[ ")?.1.split(" ] ::").next()?.trim_end_matches(" ]").to_owned(),
    })
}

/// The payload of a 4.xx or 5.xx goes to standard error, as `4.04 Not Found`.
fn diagnostic_payload(stderr: &str) -> Option<Vec<u8>> {
    let coded = |line: &&str| line.as_bytes().get(1) == Some(&b'.') && line.starts_with(['4', '5']);
    let (_, text) = stderr.lines().find(coded)?.split_at_checked(4)?;
    Some(text.strip_prefix(' ').unwrap_or(text).as_bytes().to_vec())
}

fn content_format(name: &str) -> u16 {
    match name {
        "text/plain" => 0,
        "application/octet-stream" => 42,
        "application/json" => 50,
        "application/cbor" => 60,
        other => other.parse().unwrap_or(u16::MAX),
    }
}

/// libcoap writes an ETag as `0x` and hexadecimal digits.
fn etag(text: &str) -> Vec<u8> {
    let digits = text.strip_prefix("0x").unwrap_or_default();
    let byte = |place: usize| digits.get(place..place + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    (0..digits.len()).step_by(2).map_while(byte).collect()
}
