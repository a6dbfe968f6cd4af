//! The top level, `[record]`, `[log]` and `[admin]`: how the program runs and what it tells.

use std::path::PathBuf;

use crate::error::Wrong;
use crate::raw::Raw;
use crate::section::{Field, Key, Table, Value, choose};

/// Where names are looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Resolver {
    /// The system's resolver.
    #[default]
    System,
    /// A file in the format of `/etc/hosts`, and nothing else.
    Hosts(PathBuf),
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
            None if text.contains(':') => Err(Wrong::new("a DNS server of one's own is not in this version")
                .hint("\"system\" uses the servers the host is configured for")),
            None => Err(Wrong::new("no such resolver")),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::System => "system".to_owned(),
            Self::Hosts(file) => format!("hosts:{}", file.display()),
        }
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

/// The keys outside of any table.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    workers: u32,
    pub(crate) resolver: Resolver,
}

impl Default for Process {
    fn default() -> Self {
        Self { workers: 1, resolver: Resolver::System }
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
            field: Field::Value("\"system\" or \"hosts:FILE\"", |t| &mut t.resolver),
            doc: "Where names are looked up: as the host does, or in a file like `/etc/hosts` only.",
            why: "\"system\" is what the host itself uses",
        },
    ];
}

impl Table for RecordSettings {
    const DOC: &'static str = "Forward records: one line of JSON per request.";
    const KEYS: &'static [Key<Self>] = &[
        Key {
            name: "file",
            field: Field::Value("a file, \"-\" for standard output, or \"off\"", |t| &mut t.destination),
            doc: "Where they go; `--record` is short for it. Relative to the working directory.",
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
            doc: "Where it goes; `--log` is short for it. Relative to the working directory.",
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
