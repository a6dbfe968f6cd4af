//! The top level, `[record]`, `[log]` and `[admin]`: how the program runs and what it tells.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use coapway_relay::Parameters as Relay;

use super::places::one_host;
use crate::error::Wrong;
use crate::raw::Raw;
use crate::section::{Field, Key, Table, Value, choose, count};

/// Where names are looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Resolver {
    /// The system's resolver.
    #[default]
    System,
    /// A file in the format of `/etc/hosts`, and nothing else.
    Hosts(PathBuf),
    /// This DNS server, and nothing else.
    Server(SocketAddr),
}

/// Where forward records go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RecordDestination {
    /// Nowhere.
    #[default]
    Off,
    /// Standard output.
    StandardOutput,
    /// The end of this file.
    File(PathBuf),
}

/// Where the program's own log goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogDestination {
    /// Standard error.
    #[default]
    StandardError,
    /// The end of this file.
    File(PathBuf),
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// The least severe that is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// What keeps us from working.
    Error,
    /// What should be looked at.
    Warn,
    /// What happens once in a while.
    #[default]
    Info,
    /// What happens with each request; names and addresses in full.
    Debug,
    /// What happens with each datagram.
    Trace,
}

/// `[record]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordSettings {
    /// Where records go.
    pub destination: RecordDestination,
    /// The share of forwards that is recorded; above 0 and at most 1.
    pub sample: f64,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self { destination: RecordDestination::Off, sample: 1.0 }
    }
}

/// `[log]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// Where it goes.
    pub destination: LogDestination,
    /// How a line looks.
    pub format: LogFormat,
    /// The least severe that is logged.
    pub level: LogLevel,
}

fn text(raw: &Raw) -> Result<&str, Wrong> {
    match raw.as_text() {
        Some("") => Err(Wrong::new("empty")),
        // No system takes a NUL in a name, and nobody means the others.
        Some(text) if text.contains(char::is_control) => Err(Wrong::new("holds a control character")),
        Some(text) => Ok(text),
        None => Err(Wrong::new("not a string")),
    }
}

impl Value for Resolver {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        let text = text(raw)?;
        match text.strip_prefix("hosts:") {
            _ if text == "system" => Ok(Self::System),
            Some("") => Err(Wrong::new("no file behind hosts:")),
            Some(file) => Ok(Self::Hosts(file.into())),
            None => server(text).map(Self::Server),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::System => "system".to_owned(),
            Self::Hosts(file) => format!("hosts:{}", file.display()),
            Self::Server(address) => address.to_string(),
        }
    }
}

/// The address of a DNS server.
fn server(text: &str) -> Result<SocketAddr, Wrong> {
    match (text.parse::<SocketAddr>(), text.parse::<IpAddr>()) {
        (Ok(address), _) if address.port() == 0 => Err(Wrong::new("port must be 1 to 65535")),
        (Ok(address), _) if address.ip().is_multicast() => Err(Wrong::new("not the address of one host")),
        (Ok(address), _) if has_zone(address) => Ok(address),
        (Ok(address), _) => one_host(address.ip()).map(|()| address),
        (Err(_), Ok(address)) => {
            Err(Wrong::new("no port").hint(format!("write {}", SocketAddr::new(address, 53))))
        }
        (Err(_), Err(_)) => Err(Wrong::new("no such resolver")),
    }
}

fn has_zone(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(address) if address.scope_id() != 0)
}

/// Who we are towards other proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identifier(pub(crate) String);

impl Value for Identifier {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        let text = text(raw)?;
        match text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(text.to_owned())),
            false => Err(Wrong::new("not an identifier")),
        }
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// The Hop-Limit that is added, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HopLimit(pub(crate) Option<u8>);

impl Value for HopLimit {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        if raw.as_text() == Some("off") {
            return Ok(Self(None));
        }
        count(raw, 1, 255).map(|hops| Self(u8::try_from(hops).ok()))
    }

    fn show(&self) -> String {
        self.0.map_or_else(|| "off".to_owned(), |hops| hops.to_string())
    }
}

/// The file that keeps what was learned, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State(pub(crate) Option<PathBuf>);

impl Value for State {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        Ok(match text(raw)? {
            "off" => Self(None),
            file => Self(Some(file.into())),
        })
    }

    fn show(&self) -> String {
        self.0.as_ref().map_or_else(|| "off".to_owned(), |file| file.display().to_string())
    }
}

impl Value for RecordDestination {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        Ok(match text(raw)? {
            "off" => Self::Off,
            "-" => Self::StandardOutput,
            file => Self::File(file.into()),
        })
    }

    fn show(&self) -> String {
        match self {
            Self::Off => "off".to_owned(),
            Self::StandardOutput => "-".to_owned(),
            Self::File(file) => file.display().to_string(),
        }
    }
}

impl Value for LogDestination {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        Ok(match text(raw)? {
            "-" => Self::StandardError,
            file => Self::File(file.into()),
        })
    }

    fn show(&self) -> String {
        match self {
            Self::StandardError => "-".to_owned(),
            Self::File(file) => file.display().to_string(),
        }
    }
}

const FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];

const LEVELS: [(&str, LogLevel); 5] = [
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

impl LogLevel {
    /// Its name in the file.
    pub const fn name(self) -> &'static str {
        LEVELS[self as usize].0
    }
}

impl Value for LogFormat {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &FORMATS)
    }

    fn show(&self) -> String {
        FORMATS[*self as usize].0.to_owned()
    }
}

impl Value for LogLevel {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        choose(raw, &LEVELS)
    }

    fn show(&self) -> String {
        self.name().to_owned()
    }
}

/// What is run for each alert: a program and its arguments, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AlertCommand(pub(crate) Vec<String>);

impl Value for AlertCommand {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        if raw.as_text() == Some("off") {
            return Ok(Self::default());
        }
        let words = raw.as_texts().ok_or_else(|| Wrong::new("not an array of strings"))?;
        match words.first() {
            None => Err(Wrong::new("no program").hint("\"off\" runs none")),
            _ if words.iter().any(|word| word.contains('\0')) => {
                Err(Wrong::new("holds a NUL, which no program can be given"))
            }
            Some(program) if program.starts_with('/') => {
                Ok(Self(words.into_iter().map(str::to_owned).collect()))
            }
            Some(program) => Err(Wrong::new(format!("{program:?} is no absolute path"))),
        }
    }

    fn show(&self) -> String {
        if self.0.is_empty() { "off".to_owned() } else { format!("{:?}", self.0) }
    }
}

/// The keys outside of any table.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    workers: u32,
    pub(crate) resolver: Resolver,
    pub(crate) identifier: Identifier,
    pub(crate) insert_hop_limit: HopLimit,
    pub(crate) drain_timeout: Duration,
    pub(crate) on_alert: AlertCommand,
    pub(crate) state: State,
}

impl Default for Process {
    fn default() -> Self {
        let identifier = Identifier(Relay::default().identifier.into());
        let drain_timeout = Duration::from_secs(30);
        Self {
            workers: 1,
            resolver: Resolver::System,
            identifier,
            insert_hop_limit: HopLimit::default(),
            drain_timeout,
            on_alert: AlertCommand::default(),
            state: State::default(),
        }
    }
}

impl Table for Process {
    const DOC: &'static str = "Keys outside of any table; in the file they stand before the first one.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "workers",
            field: Field::Count(1, 1, |t| &mut t.workers),
            doc: "Threads that serve requests.",
            why: "several workers are not in this version: with one, what is learned of an origin and NSTART \
                  are exact",
        },
        Key {
            name: "resolver",
            field: Field::Value("\"system\", \"hosts:FILE\" or \"ADDRESS:PORT\"", |t| &mut t.resolver),
            doc: "Where names are looked up: as the host does, in a file like `/etc/hosts` only, or by one DNS \
                  server only. Addresses are used for 30 s, and looked up anew once one of them fails; a file is \
                  read again when it has changed, and the last good content stands while it has none.",
            why: "\"system\" is what the host itself uses; a server is an address, since names are what it is \
                  asked for",
        },
        Key {
            name: "identifier",
            field: Field::Value("1 to 64 visible ASCII characters without a space", |t| &mut t.identifier),
            doc: "Who we are in the diagnostic payload of a 5.08, which tells an operator where a request went \
                  round in a circle (RFC 8768 §4). Proxies in a row need different ones: who finds its own in \
                  such a payload raises an alert.",
            why: "proxies on the way add themselves to it, with a space between them",
        },
        Key {
            name: "insert_hop_limit",
            field: Field::Value("\"off\" or 1 to 255", |t| &mut t.insert_hop_limit),
            doc: "The Hop-Limit of a request that comes without one, so that other proxies end a circle too; 16 \
                  is what the RFC inserts (RFC 8768 §3).",
            why: "with none left the first proxy refuses it; the option is one byte",
        },
        Key {
            name: "drain_timeout",
            field: Field::Duration(Duration::from_millis(100), Duration::from_secs(3600), |t| {
                &mut t.drain_timeout
            }),
            doc: "How long running requests may take once the process is asked to stop; it ends earlier when \
                  all are answered. What is not is then told so: 5.03 if it never left, else 5.04.",
            why: "in less than 100ms no path answers; no request is kept longer than an hour",
        },
        Key {
            name: "on_alert",
            field: Field::Value("an array: an absolute path and its arguments; \"off\"", |t| &mut t.on_alert),
            doc: "A command that is run for each alert (retries rose or calmed, an origin down, for all or for one \
                  client, or back, a learned timeout over its cap, a loop). It finds one JSON object on its standard input, and COAPWAY_ALERT, \
                  COAPWAY_UPSTREAM, COAPWAY_ORIGIN and COAPWAY_CLIENT in its environment. One runs at a time, \
                  for 30 s at most (then it and what it started are ended, as with the program), ten begin in a \
                  minute; what is left out is counted and told to the next.",
            why: "no shell and no search path stands between: what runs is what is written",
        },
        Key {
            name: "state",
            field: Field::Value("a file or \"off\"", |t| &mut t.state),
            doc: "Where what was learned of origins is kept over a restart: round-trip times with their age and, \
                  halved, the window. Written every minute and at the end, as a whole; a file that cannot be \
                  read or written later is worth a warning and no more. It names the origins. Relative to the \
                  working directory.",
            why: "",
        },
    ];
}

impl Table for RecordSettings {
    const DOC: &'static str = "Forward records: one line of JSON per request.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "file",
            field: Field::Value("a file, \"-\" for standard output, or \"off\"", |t| &mut t.destination),
            doc: "Where they go; `--record` is short for it. Relative to the working directory. No other file that is \
                  named here: what is written has a file of its own. Records are added to the end of a file that \
                  is there, which is refused if it begins with anything else than a record: its readers, \
                  `coapway tune` among them, could make nothing of either.",
            why: "",
        },
        Key {
            name: "sample",
            field: Field::Number(1e-6, 1.0, |t| &mut t.sample),
            doc: "The share of forwards that is recorded.",
            why: "one in a million at the least; file = \"off\" records none",
        },
    ];
}

impl Table for LogSettings {
    const DOC: &'static str = "The program's own log.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "file",
            field: Field::Value("a file, or \"-\" for standard error", |t| &mut t.destination),
            doc: "Where it goes; `--log` is short for it. Relative to the working directory. A file of its own, like that \
                  of records. Lines are added to the end of a file that is there, whoever wrote the others; one whose \
                  first line is not text, or that is a script, is refused: a program or a database would be spoiled.",
            why: "",
        },
        Key {
            name: "format",
            field: Field::Value("\"text\" or \"json\"", |t| &mut t.format),
            doc: "How a line looks; `--log-format` is short for it.",
            why: "",
        },
        Key {
            name: "level",
            field: Field::Value("\"error\", \"warn\", \"info\", \"debug\" or \"trace\"", |t| &mut t.level),
            doc: "The least severe that is logged. Addresses and paths are shown in full from `debug` on.",
            why: "",
        },
    ];
}

/// No administration yet.
#[derive(Clone, Copy, Debug, Default)]
struct AdminOff;

impl Value for AdminOff {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        match text(raw)? {
            "off" => Ok(Self),
            _ => Err(Wrong::new("an administration interface is not in this version")),
        }
    }

    fn show(&self) -> String {
        "off".to_owned()
    }
}

/// `[admin]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admin {
    listen: AdminOff,
}

impl Table for Admin {
    const DOC: &'static str = "The administration interface, which is not in this version.";
    const KEYS: &'static [Key<Self>] = &[Key {
        name: "listen",
        field: Field::Value("\"off\"", |t| &mut t.listen),
        doc: "Where it listens; `--admin` is short for it.",
        why: "leave it out, or say \"off\"",
    }];
}
