//! All that happened in a run, in order; written out only when somebody wants to read it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use coapway_proxy::{Event, Lines, Record};
use coapway_time::Instant;

use crate::network::Arrivals;
use crate::notation::describe;

/// Names one datagram of a run; copies made by the network share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatagramId(usize);

/// One datagram that left a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// From which address.
    pub from: SocketAddr,
    /// To which address.
    pub to: SocketAddr,
    /// Its bytes; of an ICMP error, those it quotes.
    pub bytes: Vec<u8>,
    /// Whether it is an ICMP error about a datagram in the other direction.
    pub is_error: bool,
    /// When its copies arrive.
    pub arrivals: Arrivals,
}

#[derive(Debug)]
enum Entry {
    Sent(DatagramId),
    Arrived(DatagramId),
    Refused(DatagramId),
    Told(usize),
    Recorded(usize),
    Noted(String),
}

/// The journal of one run.
#[derive(Debug, Default)]
pub struct Journal {
    sent: Vec<Sent>,
    /// Datagrams that were forgotten.
    forgotten: usize,
    events: Vec<(Instant, Event)>,
    /// With the names of their upstreams.
    records: Vec<(Instant, Record, Box<str>)>,
    entries: Vec<(Instant, Entry)>,
    names: BTreeMap<SocketAddr, Box<str>>,
    /// Where the proxy listens; what passes elsewhere is between it and origins.
    listener: Option<SocketAddr>,
}

impl Journal {
    /// Gives an address a name for readers.
    pub fn name(&mut self, address: SocketAddr, name: &str) {
        self.names.insert(address, name.into());
    }

    /// The name of an address, or the address.
    pub fn name_of(&self, address: SocketAddr) -> String {
        self.names.get(&address).map_or_else(|| address.to_string(), ToString::to_string)
    }

    /// Says where the proxy listens.
    pub fn set_listener(&mut self, address: SocketAddr) {
        self.name(address, "proxy");
        self.listener = Some(address);
    }

    /// A datagram left.
    pub fn sent(&mut self, sent: Sent) -> DatagramId {
        let id = DatagramId(self.forgotten + self.sent.len());
        self.entries.push((sent.at, Entry::Sent(id)));
        self.sent.push(sent);
        id
    }

    /// A copy reached its destination.
    pub fn arrived(&mut self, id: DatagramId, now: Instant) {
        self.entries.push((now, Entry::Arrived(id)));
    }

    /// A copy reached a closed port.
    pub fn refused(&mut self, id: DatagramId, now: Instant) {
        self.entries.push((now, Entry::Refused(id)));
    }

    /// The proxy told something.
    pub fn told(&mut self, event: Event, now: Instant) {
        self.entries.push((now, Entry::Told(self.events.len())));
        self.events.push((now, event));
    }

    /// The proxy told of a forward to this upstream.
    pub fn recorded(&mut self, record: &Record, upstream: &str, now: Instant) {
        self.entries.push((now, Entry::Recorded(self.records.len())));
        self.records.push((now, record.clone(), upstream.into()));
    }

    /// Something else worth a line.
    pub fn noted(&mut self, note: String, now: Instant) {
        self.entries.push((now, Entry::Noted(note)));
    }

    /// One datagram.
    pub fn datagram(&self, id: DatagramId) -> &Sent {
        &self.sent[id.0 - self.forgotten]
    }

    /// Forgets what happened, but for datagrams from `oldest` on; all of them, when there is none.
    pub fn forget(&mut self, oldest: Option<DatagramId>) {
        let kept = oldest.map_or(self.sent.len(), |oldest| oldest.0 - self.forgotten);
        self.sent.drain(..kept);
        self.forgotten += kept;
        self.entries.clear();
        self.events.clear();
        self.records.clear();
    }

    /// All datagrams that are not forgotten, in the order in which they left.
    pub fn datagrams(&self) -> &[Sent] {
        &self.sent
    }

    /// All forwards the proxy told of, and when.
    pub fn records(&self) -> impl Iterator<Item = (Instant, &Record)> {
        self.records.iter().map(|(at, record, _)| (*at, record))
    }

    /// All the proxy told beside.
    pub fn events(&self) -> &[(Instant, Event)] {
        &self.events
    }

    /// The run as text, one line an entry. Two runs of one seed give the same bytes.
    pub fn log(&self) -> String {
        let mut log = String::new();
        let mut lines = Lines::new(0);
        for (at, entry) in &self.entries {
            let line = match entry {
                Entry::Sent(id) => {
                    let Sent { from, to, bytes, arrivals, is_error, .. } = self.datagram(*id);
                    let fate = match &arrivals[..] {
                        [] => "  lost".to_owned(),
                        [_] => String::new(),
                        [first, second, ..] => format!("  twice, {first} and {second}"),
                    };
                    let what = if *is_error { "ICMP about " } else { "" };
                    format!("#{} {from} > {to}  {what}{}{fate}", id.0, describe(bytes))
                }
                Entry::Arrived(id) => format!("#{} arrived", id.0),
                Entry::Refused(id) => format!("#{} refused", id.0),
                Entry::Told(index) => {
                    format!("event {}", self.events[*index].1)
                }
                Entry::Recorded(index) => {
                    let (_, record, upstream) = &self.records[*index];
                    let mut line = vec![0; Lines::room(record, upstream)];
                    let length = lines.write(record, upstream, &|_| None, &mut line).unwrap_or(0);
                    format!("record {}", String::from_utf8_lossy(&line[..length]).trim_end())
                }
                Entry::Noted(note) => note.clone(),
            };
            push(&mut log, format_args!("{at} {line}\n"));
        }
        log
    }

    /// The run as a message diagram: towards clients on the left, towards origins on the right of
    /// the proxy.
    pub fn diagram(&self) -> String {
        let mut diagram = String::new();
        for sent in &self.sent {
            let right = ![Some(sent.from), Some(sent.to)].contains(&self.listener);
            let (from, to) = (self.name_of(sent.from), self.name_of(sent.to));
            let indent = if right { 44 } else { 0 };
            let fate = match &sent.arrivals[..] {
                [] => " ✗".to_owned(),
                [arrival] => format!(" +{:.3}", arrival.since(sent.at).as_secs_f64()),
                [first, second, ..] => format!(
                    " +{:.3} and +{:.3}",
                    first.since(sent.at).as_secs_f64(),
                    second.since(sent.at).as_secs_f64()
                ),
            };
            let what = if sent.is_error { "ICMP about " } else { "" };
            push(
                &mut diagram,
                format_args!(
                    "{:>11.3}  {:indent$}{from} → {to}  {what}{}{fate}\n",
                    sent.at.as_micros() as f64 / 1e6,
                    "",
                    describe(&sent.bytes),
                ),
            );
        }
        diagram
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _ = text.write_fmt(arguments);
}
