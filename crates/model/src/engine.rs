//! Clients on a path, in the order in which things happen.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use coapway_time::Instant;

use crate::client::{Acknowledged, Client, Next};
use crate::policy::Ping;
use crate::tally::Tally;

/// What a datagram belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) client: usize,
    pub(crate) exchange: u64,
    /// 0 for the first copy; pings come behind all copies.
    pub(crate) copy: usize,
}

/// What becomes of a datagram that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It gets lost.
    RequestLost,
    /// It arrives and its answer gets lost.
    AnswerLost,
    /// Its answer arrives then.
    Answered(Instant),
}

/// Where datagrams go.
pub(crate) trait Path {
    fn carry(&mut self, name: Name, now: Instant) -> Fate;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Acknowledgement { client: usize, exchange: u64, copy: usize },
    Pong { client: usize, sent: Instant },
    Timer { client: usize, exchange: u64, copies: u32 },
    Begin { client: usize },
}

/// The name of a ping among the copies of its exchange.
const PING: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Engine<P> {
    clients: Vec<Client>,
    path: P,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    number: u64,
    /// Whether a copy arrived at the origin, and whether an answer comes back, of what is under way.
    way: HashMap<(usize, u64), (bool, bool)>,
    pub(crate) tally: Tally,
}

impl<P: Path> Engine<P> {
    /// Clients begin evenly spread over `spread`.
    pub(crate) fn new(clients: Vec<Client>, spread: Duration, path: P) -> Self {
        let mut engine = Self {
            clients,
            path,
            events: BinaryHeap::new(),
            number: 0,
            way: HashMap::new(),
            tally: Tally::default(),
        };
        let count = engine.clients.len();
        for client in 0..count {
            let at = Instant::ZERO + spread.mul_f64(client as f64 / count as f64);
            engine.push(at, Event::Begin { client });
        }
        engine
    }

    /// Lets things happen until `end`, or until `enough` exchanges are over.
    pub(crate) fn run(&mut self, end: Instant, enough: u64) {
        while self.tally.completed + self.tally.failed < enough
            && let Some(&Reverse((at, _, event))) = self.events.peek()
            && at <= end
        {
            self.events.pop();
            self.happen(event, at);
        }
    }

    /// What is still open is counted; nothing may follow.
    pub(crate) fn end(mut self) -> Tally {
        self.tally.under_way = self.clients.iter().filter(|client| client.is_busy()).count() as u64;
        for Reverse((_, _, event)) in self.events {
            match event {
                Event::Begin { .. } => {}
                Event::Timer { .. } => self.tally.timers.pending += 1,
                Event::Acknowledgement { .. } | Event::Pong { .. } => self.tally.in_flight += 1,
            }
        }
        self.tally
    }

    fn push(&mut self, at: Instant, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, event)));
    }

    fn begin(&mut self, client: usize, now: Instant) {
        let (exchange, wait) = self.clients[client].begin(now);
        self.tally.begun += 1;
        self.way.insert((client, exchange), (false, false));
        self.copy(Name { client, exchange, copy: 0 }, now);
        self.tally.timers.set += 1;
        self.push(now + wait, Event::Timer { client, exchange, copies: 1 });
    }

    fn copy(&mut self, name: Name, now: Instant) {
        let Name { client, exchange, copy } = name;
        self.tally.copies += 1;
        let fate = self.carry(name, now);
        let Some((executed, answered)) = self.way.get_mut(&(client, exchange)) else { return };
        self.tally.spurious += u64::from(*answered);
        *executed |= fate != Fate::RequestLost;
        if let Fate::Answered(at) = fate {
            *answered = true;
            self.push(at, Event::Acknowledgement { client, exchange, copy });
        }
    }

    fn carry(&mut self, name: Name, now: Instant) -> Fate {
        let fate = self.path.carry(name, now);
        match fate {
            Fate::RequestLost => self.tally.requests_lost += 1,
            Fate::AnswerLost => {
                self.tally.executed_copies += 1;
                self.tally.answers_lost += 1;
            }
            Fate::Answered(_) => self.tally.executed_copies += 1,
        }
        fate
    }

    fn happen(&mut self, event: Event, now: Instant) {
        match event {
            Event::Begin { client } => self.begin(client, now),
            Event::Timer { client, exchange, copies } => {
                self.tally.note(1 << 60 | (client as u64) << 32 | u64::from(copies), now.as_micros());
                match self.clients[client].wait_is_over(exchange, copies, now) {
                    None => self.tally.timers.cancelled += 1,
                    Some(Next::Copy(wait)) => {
                        self.tally.timers.fired += 1;
                        self.copy(Name { client, exchange, copy: copies as usize }, now);
                        self.tally.timers.set += 1;
                        self.push(now + wait, Event::Timer { client, exchange, copies: copies + 1 });
                    }
                    Some(Next::Failed) => {
                        self.tally.timers.fired += 1;
                        self.tally.failed += 1;
                        let executed = self.over(client, exchange);
                        self.tally.executed_and_failed += u64::from(executed);
                        self.begin(client, now);
                    }
                }
            }
            Event::Acknowledgement { client, exchange, copy } => {
                self.tally.note(2 << 60 | (client as u64) << 32 | copy as u64, now.as_micros());
                self.tally.answers += 1;
                let acknowledged = self.clients[client].acknowledged(exchange, copy, now);
                let Acknowledged::First { began, copies, ping } = acknowledged else { return };
                self.tally.completed += 1;
                self.tally.latencies.push(now.since(began).as_micros() as u64);
                let retransmissions = copies as usize - 1;
                if self.tally.by_retransmissions.len() <= retransmissions {
                    self.tally.by_retransmissions.resize(retransmissions + 1, 0);
                }
                self.tally.by_retransmissions[retransmissions] += 1;
                self.over(client, exchange);
                let mut begins_at = None;
                if ping != Ping::Never {
                    self.tally.pings += 1;
                    if let Fate::Answered(at) = self.carry(Name { client, exchange, copy: PING }, now) {
                        self.push(at, Event::Pong { client, sent: now });
                        begins_at = Some(at).filter(|_| ping == Ping::Before);
                    }
                }
                match begins_at {
                    Some(at) => self.push(at, Event::Begin { client }),
                    None => self.begin(client, now),
                }
            }
            Event::Pong { client, sent } => {
                self.tally.note(3 << 60 | (client as u64) << 32, now.as_micros());
                self.tally.answers += 1;
                self.clients[client].alive(sent, now);
            }
        }
    }

    /// Says whether a copy of it arrived.
    fn over(&mut self, client: usize, exchange: u64) -> bool {
        let (executed, _) = self.way.remove(&(client, exchange)).unwrap_or_default();
        self.tally.executed += u64::from(executed);
        executed
    }
}
