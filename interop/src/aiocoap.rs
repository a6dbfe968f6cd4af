//! aiocoap in both roles: `peers/client.py` and `peers/origin.py`.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::datagram::option;
use crate::exchange::{Answer, Request, Via};
use crate::peers::{Peer, workspace};
use crate::process::{Family, Process, free_port};

/// What the origin noted of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The method in aiocoap's spelling: `GET`, `iPATCH`.
    pub method: String,
    /// CON or NON.
    pub kind: String,
    /// The segments of the path.
    pub path: Vec<String>,
    /// The parts of the query.
    pub query: Vec<String>,
    /// The Content-Format.
    pub content_format: Option<u16>,
    /// How long the payload was.
    pub length: usize,
    /// [`fingerprint`] of the payload.
    pub fingerprint: String,
    /// Every option with its value.
    pub options: Vec<(u16, Vec<u8>)>,
}

/// 64-bit FNV-1a, which the origin computes too.
pub fn fingerprint(payload: &[u8]) -> String {
    let step = |value: u64, byte: &u8| (value ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", payload.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// The text with which the origin answers `/size/N`.
pub fn text_of(size: usize) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(size).collect()
}

/// A running `peers/origin.py`.
pub struct AiocoapOrigin {
    dialogue: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    port: u16,
    _process: Process,
}

impl AiocoapOrigin {
    /// Starts it on both loopback addresses.
    pub fn start() -> Self {
        let port = free_port();
        let mut command = script("origin.py");
        command.arg(port.to_string()).args(Family::ALL.map(|family| family.loopback().to_string()));
        let mut process = Process::start_dialogue("origin.py", &mut command);
        process.wait_until_it_answers(&Family::ALL.map(|family| family.address(port)));
        Self { dialogue: Mutex::new(process.dialogue()), port, _process: process }
    }

    /// Its port, the same on both addresses.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The requests that arrived with the Uri-Query `key=KEY`, copies left out by aiocoap's deduplication.
    pub fn seen(&self, key: &str) -> Vec<Seen> {
        let (stdin, stdout) = &mut *self.dialogue.lock().expect("no holder panics");
        writeln!(stdin, "{}", json!({ "seen": key })).expect("the origin reads its standard input");
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the origin writes text");
        let records: Vec<Value> = serde_json::from_str(&line).expect("the origin answers with a list");
        records.iter().map(seen_of).collect()
    }
}

/// A running `peers/client.py`.
pub struct AiocoapClient {
    stdin: Mutex<ChildStdin>,
    waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>>,
    _process: Process,
}

impl AiocoapClient {
    /// Starts it.
    pub fn start() -> Self {
        let mut process = Process::start_dialogue("client.py", &mut script("client.py"));
        let (stdin, stdout) = process.dialogue();
        let waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>> = Arc::default();
        let registry = Arc::clone(&waiting);
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let result: Value = serde_json::from_str(&line).expect("the client writes JSON");
                let id = result["id"].as_u64().expect("a result has an id");
                let sender = registry.lock().expect("no holder panics").remove(&id);
                // The one who asked may have lost patience.
                sender.map(|sender| sender.send(result));
            }
        });
        Self { stdin: Mutex::new(stdin), waiting, _process: process }
    }

    /// Sends a request and waits for its answer.
    pub fn request(&self, request: &Request) -> Result<Answer, String> {
        let (sender, receiver) = mpsc::channel();
        let id = {
            let mut waiting = self.waiting.lock().expect("no holder panics");
            let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            waiting.insert(id, sender);
            id
        };
        let (proxy_uri, proxy_scheme) = match request.via {
            Via::Direct | Via::Reverse(_) => (None, None),
            Via::ProxyUri(proxy) => (Some(format!("coap://{proxy}")), None),
            Via::ProxyScheme(proxy) => (None, Some(format!("coap://{proxy}"))),
        };
        let options: Vec<_> =
            request.options.iter().map(|(number, value)| json!([number, hex(value)])).collect();
        let line = json!({
            "id": id,
            "method": request.method.name(),
            "uri": request.uri(),
            "proxy_uri": proxy_uri,
            "proxy_scheme": proxy_scheme,
            "confirmable": request.confirmable,
            "payload": hex(&request.payload),
            "content_format": request.content_format,
            "options": options,
            "timeout": request.patience.as_secs_f64(),
        });
        writeln!(self.stdin.lock().expect("no holder panics"), "{line}")
            .map_err(|error| error.to_string())?;
        let result = receiver
            .recv_timeout(request.patience + Duration::from_secs(10))
            .map_err(|error| format!("client.py does not report: {error}"))?;
        if let Some(error) = result["error"].as_str() {
            return Err(format!("aiocoap: {error}"));
        }
        let etag = pairs(&result["options"]).into_iter().find(|(number, _)| *number == option::ETAG);
        Ok(Answer {
            code: text(&result["code"]),
            kind: text(&result["type"]),
            payload: unhex(&text(&result["payload"])),
            content_format: number(&result["content_format"]),
            etag: etag.map(|(_, value)| value),
        })
    }
}

static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

fn script(name: &str) -> Command {
    let python = Peer::Aiocoap.find().expect("the test asked whether aiocoap is present");
    let mut command = Command::new(&python.program);
    command.arg(workspace().join("interop/peers").join(name)).stdin(Stdio::piped());
    command
}

fn seen_of(record: &Value) -> Seen {
    let list = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
    Seen {
        method: text(&record["method"]),
        kind: text(&record["type"]),
        path: list(&record["path"]),
        query: list(&record["query"]),
        content_format: number(&record["content_format"]),
        length: record["length"].as_u64().expect("a length is a number") as usize,
        fingerprint: text(&record["fingerprint"]),
        options: pairs(&record["options"]),
    }
}

fn pairs(value: &Value) -> Vec<(u16, Vec<u8>)> {
    let pairs = value.as_array().into_iter().flatten();
    pairs.map(|pair| (number(&pair[0]).expect("an option has a number"), unhex(&text(&pair[1])))).collect()
}

fn number(value: &Value) -> Option<u16> {
    value.as_u64().map(|number| u16::try_from(number).expect("the number has 16 bits"))
}

fn text(value: &Value) -> String {
    value.as_str().expect("the field is text").to_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digit =
        |place: usize| u8::from_str_radix(&text[place..place + 2], 16).expect("the text is hexadecimal");
    (0..text.len()).step_by(2).map(digit).collect()
}
