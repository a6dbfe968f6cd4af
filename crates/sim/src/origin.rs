//! An origin server that counts what it executes and has its moods.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{Endpoint, EndpointParameters, Gate, Local, Peer, Received, Seed};
use coapway_message::{
    Code, Content, Datagram, ExchangeId, MessageType, Method, OptionNumber, OptionsWriter, OwnedContent,
    datagram,
};
use coapway_time::Instant;

use crate::network::stream;

mod ledger;
mod mood;

use ledger::Ledger;

pub use ledger::{Executed, Run};
pub use mood::{Memory, Mood};

/// Longer than the network takes for the second of two copies it made: no endpoint could tell a refusal
/// of that one from a refusal of the first.
const REBOOT: Duration = Duration::from_secs(1);

/// An origin server.
#[derive(Debug)]
pub struct Origin {
    name: Box<str>,
    address: SocketAddr,
    memory: Memory,
    moods: Box<[Mood]>,
    seed: u64,
    endpoint: Endpoint,
    executed: Ledger,
    restarts: u32,
    /// Until then it hears nothing.
    down_until: Instant,
    /// When the first request of a key came, for those that are not served at first.
    first_seen: BTreeMap<u32, Instant>,
    due: BTreeMap<(Instant, u32), (ExchangeId, OwnedContent)>,
    forgotten: usize,
    /// When it is up again after what it executed under a key made it reboot.
    back_up: BTreeMap<u32, Instant>,
    next: u32,
    replies: Vec<(SocketAddr, Vec<u8>)>,
    /// What every answer takes beside its mood.
    slowness: Duration,
    /// Replies no `Endpoint` would give that take their time.
    slow_replies: BTreeMap<(Instant, u32), (SocketAddr, Vec<u8>)>,
}

impl Origin {
    /// An origin that draws its mood from `moods`, per key.
    pub fn new(name: &str, address: SocketAddr, memory: Memory, moods: &[Mood], seed: u64) -> Self {
        let seed = stream(seed, &["origin ", name]);
        Self {
            name: name.into(),
            address,
            memory,
            moods: moods.into(),
            seed,
            endpoint: endpoint(seed, 0),
            executed: Ledger::default(),
            restarts: 0,
            down_until: Instant::ZERO,
            first_seen: BTreeMap::new(),
            due: BTreeMap::new(),
            forgotten: 0,
            back_up: BTreeMap::new(),
            next: 0,
            replies: Vec::new(),
            slowness: Duration::ZERO,
            slow_replies: BTreeMap::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it recognises duplicates.
    pub const fn memory(&self) -> Memory {
        self.memory
    }

    /// What it executed, by key.
    pub const fn executed(&self) -> &BTreeMap<u32, Executed> {
        self.executed.all()
    }

    /// Forgets what it executed under keys before this one.
    pub fn forget_before(&mut self, key: u32) {
        self.executed.forget_before(key);
        self.first_seen = self.first_seen.split_off(&key);
        self.back_up = self.back_up.split_off(&key);
    }

    /// From now on it recognises duplicates, or does not.
    pub const fn set_memory(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// From now on every answer takes so much longer.
    pub const fn set_slowness(&mut self, slowness: Duration) {
        self.slowness = slowness;
    }

    /// How often it restarted.
    pub const fn restarts(&self) -> u32 {
        self.restarts
    }

    /// It loses its state: duplicates, exchanges under way, answers it owes. Until `until` it hears
    /// nothing; what it executed stays done.
    pub fn restart(&mut self, until: Instant) {
        self.restarts += 1;
        self.down_until = until;
        self.endpoint = endpoint(self.seed, self.restarts);
        self.due.clear();
        self.replies.clear();
        self.slow_replies.clear();
        self.forgotten = 0;
    }

    /// What is still under way, without what it never meant to answer.
    pub fn open(&self) -> usize {
        let requests = self.endpoint.pending_requests() - self.forgotten;
        self.endpoint.outstanding() + requests + self.replies.len() + self.slow_replies.len()
    }

    pub(crate) fn handle_datagram(&mut self, from: SocketAddr, bytes: &[u8], now: Instant) {
        if now < self.down_until {
            return;
        }
        let peer = Peer { local: Local::default(), remote: from };
        let parsed = Datagram::parse(bytes).ok().filter(|datagram| datagram.content.code.is_request());
        if let Some(request) = &parsed
            && let Some(reply) = self.reply_by_hand(from, request, now)
        {
            let reply = reply.map(|reply| (from, reply));
            if self.slowness.is_zero() {
                self.replies.extend(reply);
            } else {
                self.next += 1;
                self.slow_replies.extend(reply.map(|reply| ((now + self.slowness, self.next), reply)));
            }
            return;
        }
        match self.endpoint.handle_datagram(&peer, bytes, now, || Gate::Take) {
            Received::Nothing | Received::Response { .. } => {}
            Received::Request { exchange, message_id, content, .. } => {
                let run = Run { from, message_id, restarts: self.restarts };
                self.serve(exchange, &content, run, now);
            }
        }
        self.settle();
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let (exchange, content) = entry.remove();
            let _ = self.endpoint.respond(exchange, &content.as_content(), now);
        }
        while let Some(entry) = self.slow_replies.first_entry().filter(|entry| entry.key().0 <= now) {
            self.replies.push(entry.remove());
        }
        self.endpoint.handle_timeout(now);
        self.settle();
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let due = self.due.keys().next().map(|&(at, _)| at);
        let slow = self.slow_replies.keys().next().map(|&(at, _)| at);
        [due, slow, self.endpoint.poll_timeout()].into_iter().flatten().min()
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        if let Some(reply) = self.replies.pop() {
            return Some(reply);
        }
        let transmit = self.endpoint.poll_transmit()?;
        Some((transmit.peer.remote, transmit.datagram.to_vec()))
    }

    fn mood(&self, key: u32) -> Mood {
        let mut random = fastrand::Rng::with_seed(stream(self.seed, &["mood ", &key.to_string()]));
        random.choice(&self.moods).copied().unwrap_or(Mood::Answers(Duration::ZERO))
    }

    /// The reply no `Endpoint` would give, if this request gets one; the inner `None` is silence.
    fn reply_by_hand(
        &mut self,
        from: SocketAddr,
        request: &Datagram<'_>,
        now: Instant,
    ) -> Option<Option<Vec<u8>>> {
        let key = key(&request.content);
        let run = Run { from, message_id: request.message_id, restarts: self.restarts };
        let confirmable = request.message_type == MessageType::Confirmable;
        match self.mood(key) {
            Mood::Ignores => Some(None),
            Mood::Reboots if !self.executed.all().contains_key(&key) => {
                self.execute(&request.content, run, now);
                self.back_up.insert(key, now + REBOOT);
                Some(None)
            }
            Mood::Reboots if self.back_up.get(&key).is_some_and(|&up| now < up) => Some(None),
            Mood::Resets | Mood::Reboots => {
                let reset = || datagram::empty(MessageType::Reset, request.message_id).to_vec();
                Some(confirmable.then(reset))
            }
            Mood::Babbles => {
                let mut bytes = self.encode(request, &Content::bare(Code::CONTENT));
                bytes.push(0xF0);
                Some(Some(bytes))
            }
            Mood::Answers(_) | Mood::Refuses(_) | Mood::Busy(..) if self.memory == Memory::None => {
                let content = self.execute(&request.content, run, now);
                Some(Some(self.encode(request, &content.as_content())))
            }
            Mood::Answers(_) | Mood::Refuses(_) | Mood::Busy(..) | Mood::Forgets => None,
        }
    }

    fn encode(&mut self, request: &Datagram<'_>, content: &Content<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (message_type, message_id) = match request.message_type {
            MessageType::Confirmable => (MessageType::Acknowledgement, request.message_id),
            MessageType::NonConfirmable | MessageType::Acknowledgement | MessageType::Reset => {
                self.next += 1;
                (MessageType::NonConfirmable, self.next as u16)
            }
        };
        datagram::encode(&mut bytes, message_type, message_id, request.token, content);
        bytes
    }

    fn serve(&mut self, exchange: ExchangeId, content: &Content<'_>, run: Run, now: Instant) {
        let answer = self.execute(content, run, now);
        match self.mood(key(content)) {
            Mood::Forgets => self.forgotten += 1,
            Mood::Answers(delay) => {
                self.next += 1;
                self.due.insert((now + delay + self.slowness, self.next), (exchange, answer));
                self.handle_timeout(now);
            }
            Mood::Refuses(_)
            | Mood::Busy(..)
            | Mood::Ignores
            | Mood::Resets
            | Mood::Babbles
            | Mood::Reboots => {
                let _ = self.endpoint.respond(exchange, &answer.as_content(), now);
            }
        }
    }

    fn execute(&mut self, content: &Content<'_>, run: Run, now: Instant) -> OwnedContent {
        let key = key(content);
        if let Some(refusal) = self.not_yet(key, now) {
            return refusal;
        }
        let method = Method::from_code(content.code).unwrap_or(Method::Get);
        let code = match (self.mood(key), method) {
            (Mood::Refuses(code), _) => code,
            (_, Method::Get | Method::Fetch) => Code::CONTENT,
            (_, Method::Post | Method::Put | Method::Patch | Method::IPatch) => Code::CHANGED,
            (_, Method::Delete) => Code::DELETED,
        };
        self.executed.note(key, method, run);
        let mut buffer = Vec::new();
        let mut options = OptionsWriter::new(&mut buffer);
        options.push_uint(OptionNumber::MAX_AGE, key % 100);
        Content { code, options: options.finish(), payload: answer_to(key).as_bytes() }.into()
    }

    /// The refusal of an origin that is busy for a while.
    fn not_yet(&mut self, key: u32, now: Instant) -> Option<OwnedContent> {
        let Mood::Busy(code, duration) = self.mood(key) else { return None };
        let until = *self.first_seen.entry(key).or_insert(now) + duration;
        let left = (now < until).then(|| until.since(now))?;
        let mut buffer = Vec::new();
        let mut options = OptionsWriter::new(&mut buffer);
        options.push_uint(OptionNumber::MAX_AGE, left.as_secs() as u32);
        Some(Content { code, options: options.finish(), payload: b"busy" }.into())
    }

    fn settle(&mut self) {
        while self.endpoint.poll_event().is_some() {}
    }
}

fn endpoint(seed: u64, restarts: u32) -> Endpoint {
    let parameters =
        EndpointParameters { early_ack_after: Duration::from_secs(1), ..EndpointParameters::default() };
    Endpoint::new(parameters, Seed::from_number(stream(seed, &["life ", &restarts.to_string()])))
}

/// The payload that answers the request of this key.
pub fn answer_to(key: u32) -> String {
    format!("answer to {key}")
}

/// The number behind `k=` in the query, that of a Proxy-Uri included.
pub fn key(content: &Content<'_>) -> u32 {
    let queries = content.options.values(OptionNumber::URI_QUERY);
    let uris = content.options.values(OptionNumber::PROXY_URI);
    let texts = queries.chain(uris).filter_map(|value| std::str::from_utf8(value).ok());
    texts.filter_map(|text| text.rsplit_once("k=")?.1.parse().ok()).last().unwrap_or(0)
}
