//! A client: it asks what it is told to, repeats as RFC 7252 has it, takes what comes first,
//! acknowledges, and gives up when its patience ends. Its address may change under it, and some are
//! careless with Message IDs.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{
    Endpoint, EndpointParameters, Event, Gate, Local, Peer, Received, Schedule, Seed, TransmissionParameters,
};
use coapway_message::{
    Code, Content, ExchangeId, Failure, Method, OptionNumber, OptionsWriter, OwnedContent, Token,
};
use coapway_time::Instant;

use crate::network::stream;

mod home;
mod message_ids;

use home::Home;
use message_ids::Narrow;

pub use home::Move;

/// What a client is to ask.
#[derive(Clone, Debug)]
pub struct Request {
    /// When.
    pub at: Instant,
    /// Goes with the request to the origin and comes back in its answer, as the query `k=KEY`.
    pub key: u32,
    /// The method.
    pub method: Method,
    /// Whether to ask Confirmably.
    pub confirmable: bool,
    /// What is asked for.
    pub target: Target,
    /// For how long an answer is waited for.
    pub patience: Duration,
}

/// What a request is for.
#[derive(Clone, Debug)]
pub enum Target {
    /// The proxy's own namespace: this path, segment by segment.
    Path(Vec<&'static str>),
    /// Another server's: the beginning of a Proxy-Uri without a query.
    Uri(String),
}

/// How a request ended for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has not ended.
    Waiting,
    /// An answer came.
    Answered {
        /// When.
        at: Instant,
        /// Its code.
        code: Code,
        /// Its payload.
        payload: Vec<u8>,
    },
    /// None came.
    Failed {
        /// When.
        at: Instant,
        /// Why.
        failure: Failure,
    },
}

/// A request that left.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What was asked.
    pub request: Request,
    /// Under which token.
    pub token: Token,
    /// How it ended.
    pub outcome: Outcome,
    exchange: ExchangeId,
}

/// What a client is like.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Its first address.
    pub address: SocketAddr,
    /// When it gets others, in order of time.
    pub moves: Vec<Move>,
    /// The bits its Message IDs differ in: all, unless it is careless.
    pub mask: u16,
    /// How it repeats what is not acknowledged.
    pub transmission: TransmissionParameters,
    /// What it asks, in order of time.
    pub planned: Vec<Request>,
}

/// A client of the proxy.
#[derive(Debug)]
pub struct Client {
    name: Box<str>,
    home: Home,
    message_ids: Narrow,
    proxy: Peer,
    transmission: TransmissionParameters,
    endpoint: Endpoint,
    planned: VecDeque<Request>,
    asked: Vec<Asked>,
}

impl Client {
    /// A client that speaks to the proxy at `proxy`.
    pub fn new(
        name: &str,
        proxy: SocketAddr,
        Habits { address, moves, mask, transmission, planned }: Habits,
        seed: u64,
    ) -> Self {
        debug_assert!(planned.is_sorted_by_key(|request| request.at));
        let seed = Seed::from_number(stream(seed, &["client ", name]));
        Self {
            name: name.into(),
            home: Home::new(address, moves),
            message_ids: Narrow::new(mask),
            proxy: Peer { local: Local::default(), remote: proxy },
            transmission,
            endpoint: Endpoint::new(EndpointParameters::default(), seed),
            planned: planned.into(),
            asked: Vec::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    pub const fn address(&self) -> SocketAddr {
        self.home.address()
    }

    /// Each address it has, had or will have.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.home.all()
    }

    /// Whether a datagram to `address` reaches it.
    pub fn is_at(&self, address: SocketAddr, now: Instant) -> bool {
        self.home.is_at(address, now)
    }

    /// Whether it comes back to a Message ID too soon, and so may take one answer for another.
    pub const fn is_careless(&self) -> bool {
        self.message_ids.is_narrow()
    }

    /// What it asked so far.
    pub fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// Has it ask something more, not before what it is to ask already.
    pub fn plan(&mut self, request: Request) {
        debug_assert!(self.planned.back().is_none_or(|last| last.at <= request.at));
        self.planned.push_back(request);
    }

    /// What it asked and what has ended; it is forgotten here.
    pub fn take_ended(&mut self) -> impl Iterator<Item = Asked> {
        self.asked.extract_if(.., |asked| asked.outcome != Outcome::Waiting)
    }

    /// Messages it still has under way, and requests it has not asked yet.
    pub fn open(&self) -> usize {
        self.endpoint.outstanding() + self.endpoint.pending_requests() + self.planned.len()
    }

    pub(crate) fn handle_datagram(&mut self, from: SocketAddr, bytes: &[u8], now: Instant) {
        let peer = Peer { remote: from, ..self.proxy };
        let mut bytes = bytes.to_vec();
        self.message_ids.incoming(&mut bytes);
        match self.endpoint.handle_datagram(&peer, &bytes, now, || Gate::Take) {
            Received::Nothing => {}
            Received::Request { exchange, .. } => {
                // A client serves nothing.
                let _ = self.endpoint.respond(exchange, &Content::bare(Code::NOT_FOUND), now);
            }
            Received::Response { exchange, content, .. } => {
                let (code, payload) = (content.code, content.payload.to_vec());
                self.end(exchange, Outcome::Answered { at: now, code, payload });
            }
        }
        self.settle(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.home.handle_timeout(now);
        self.endpoint.handle_timeout(now);
        while let Some(request) = self.planned.pop_front_if(|request| request.at <= now) {
            self.ask(request, now);
        }
        self.settle(now);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let planned = self.planned.front().map(|request| request.at);
        [planned, self.home.next_move(), self.endpoint.poll_timeout()].into_iter().flatten().min()
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let transmit = self.endpoint.poll_transmit()?;
        let (to, mut bytes) = (transmit.peer.remote, transmit.datagram.to_vec());
        self.message_ids.outgoing(&mut bytes);
        Some((to, bytes))
    }

    fn ask(&mut self, request: Request, now: Instant) {
        let schedule = Schedule {
            deadline: now + request.patience,
            last_copy_before: now + request.patience,
            ..Schedule::new(&self.transmission, now)
        };
        let content = content(&request);
        let sent = self.endpoint.send_request(
            &self.proxy,
            request.confirmable,
            None,
            &content.as_content(),
            &schedule,
            now,
        );
        let exchange = sent.expect("a client has Message IDs for what a run asks");
        let token =
            self.endpoint.trace(exchange).map(|course| Token::new(course.token())).unwrap_or_default();
        self.asked.push(Asked { request, token, outcome: Outcome::Waiting, exchange });
    }

    fn settle(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Failed { exchange, failure, .. } => {
                    self.end(exchange, Outcome::Failed { at: now, failure });
                }
                Event::Acknowledged { .. }
                | Event::Retransmitted { .. }
                | Event::Exhausted { .. }
                | Event::AcknowledgedAgain { .. }
                | Event::Alive { .. }
                | Event::EmptyAckSent { .. }
                | Event::Repeated { .. }
                | Event::Delivered { .. } => {}
            }
        }
    }

    fn end(&mut self, exchange: ExchangeId, outcome: Outcome) {
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.exchange == exchange) {
            debug_assert_eq!(asked.outcome, Outcome::Waiting, "an exchange ends once");
            asked.outcome = outcome;
        }
    }
}

fn content(request: &Request) -> OwnedContent {
    let mut buffer = Vec::new();
    let mut options = OptionsWriter::new(&mut buffer);
    let query = format!("k={}", request.key);
    match &request.target {
        Target::Path(segments) => {
            segments.iter().for_each(|segment| options.push(OptionNumber::URI_PATH, segment.as_bytes()));
            options.push(OptionNumber::URI_QUERY, query.as_bytes());
        }
        Target::Uri(uri) => options.push(OptionNumber::PROXY_URI, format!("{uri}?{query}").as_bytes()),
    }
    let payload = if request.method.has_payload() { query.as_bytes() } else { &[] };
    Content { code: request.method.code(), options: options.finish(), payload }.into()
}
