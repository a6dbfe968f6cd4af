//! The load generator: a closed loop of clients, each with one request under way.

mod client;
mod ports;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::statistics::Latencies;
use crate::{clock, sys};
use client::{Client, Received};
use ports::Ports;

/// How often the clients look for requests to repeat.
const SCAN: Duration = Duration::from_millis(25);
/// How long the last answers may take after the measured window.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that start before the answers of earlier ones are looked at.
const STARTS_AT_ONCE: usize = 8;

/// What to send where, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The proxy under test.
    pub(crate) proxy: SocketAddr,
    /// The origin that the requests name.
    pub(crate) origin: SocketAddr,
    /// Clients, each with a socket of its own.
    pub(crate) clients: u16,
    /// Time before the measured window.
    pub(crate) warm_up: Duration,
    /// The longest that the measured window lasts.
    pub(crate) window: Duration,
    /// The most requests that are sent, warm-up included.
    pub(crate) requests: u64,
}

/// What came of it. Faults count in the warm-up too, the rest in the measured window only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Length of the measured window.
    pub(crate) seconds: f64,
    /// Right answers.
    pub(crate) answered: u64,
    /// Half of the answers came within so many µs.
    pub(crate) p50: f64,
    /// 99 % of the answers came within so many µs.
    pub(crate) p99: f64,
    /// Requests that a client repeated.
    pub(crate) retransmissions: u64,
    /// Answers that belong to another request, have another code, or are no CoAP.
    pub(crate) wrong: u64,
    /// Requests without an answer.
    pub(crate) unanswered: u64,
    /// The first fault in words.
    pub(crate) complaint: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Window,
    Draining,
}

struct Run<'a> {
    load: &'a Load,
    clients: Vec<Client>,
    ports: Ports,
    poller: sys::Poller,
    phase: Phase,
    issued: u64,
    latencies: Latencies,
    outcome: Outcome,
}

impl Load {
    /// Runs the load, with a snapshot at both ends of the measured window.
    pub(crate) fn run<T>(&self, mut snapshot: impl FnMut() -> Result<T>) -> Result<(Outcome, [T; 2])> {
        let mut run = Run::new(self)?;
        let mut until = clock::now() + self.warm_up;
        let mut next_scan = clock::now();
        let mut opened: Option<(Instant, T)> = None;
        let mut closed: Option<T> = None;
        let mut started = 0;
        loop {
            let now = clock::now();
            let all_sent = run.issued >= self.requests && run.under_way() == 0;
            match run.phase {
                Phase::WarmUp if now >= until => {
                    run.phase = Phase::Window;
                    opened = Some((now, snapshot()?));
                    until = now + self.window;
                }
                Phase::WarmUp => ensure!(!all_sent, "all requests were used up by the warm-up"),
                Phase::Window if now >= until || all_sent => {
                    run.phase = Phase::Draining;
                    closed = Some(snapshot()?);
                    run.outcome.seconds =
                        opened.as_ref().map_or(0.0, |(since, _)| (now - *since).as_secs_f64());
                    until = now + PATIENCE;
                }
                Phase::Window => {}
                Phase::Draining if now >= until || run.under_way() == 0 => break,
                Phase::Draining => {}
            }
            let first = started;
            while started < run.clients.len() && started < first + STARTS_AT_ONCE {
                run.issue(started)?;
                started += 1;
            }
            let pause = if started < run.clients.len() { Duration::ZERO } else { SCAN.min(until - now) };
            run.receive(pause)?;
            if now >= next_scan {
                next_scan = now + SCAN;
                run.repeat();
            }
        }
        match (opened, closed) {
            (Some((_, before)), Some(after)) => Ok((run.finish(), [before, after])),
            _ => bail!("the measured window was never reached"),
        }
    }
}

impl<'a> Run<'a> {
    fn new(load: &'a Load) -> Result<Self> {
        sys::raise_open_files()?;
        let mut ports = Ports::new(load.proxy);
        let poller = sys::Poller::new(256)?;
        let mut clients = Vec::new();
        for index in 0..load.clients {
            let socket = ports.open().context("cannot open a client socket")?;
            poller.add(&socket, u64::from(index))?;
            clients.push(Client::new(index, load.origin, socket));
        }
        Ok(Self {
            load,
            clients,
            ports,
            poller,
            phase: Phase::WarmUp,
            issued: 0,
            latencies: Latencies::default(),
            outcome: Outcome::default(),
        })
    }

    fn under_way(&self) -> usize {
        self.clients.iter().filter(|client| client.is_waiting()).count()
    }

    fn issue(&mut self, index: usize) -> Result<()> {
        let Some(client) = self.clients.get_mut(index) else { return Ok(()) };
        if self.phase == Phase::Draining || self.issued >= self.load.requests {
            return Ok(());
        }
        if client.needs_port() {
            let socket = self.ports.open().context("cannot open a client socket")?;
            self.poller.add(&socket, index as u64)?;
            client.move_to(socket);
        }
        client.issue(clock::now());
        self.issued += 1;
        Ok(())
    }

    fn receive(&mut self, pause: Duration) -> Result<()> {
        let mut buffer = [0; 2048];
        self.poller.wait(pause)?;
        let ready: Vec<u64> = self.poller.ready().collect();
        for index in ready {
            let Some(client) = self.clients.get_mut(index as usize) else { continue };
            match client.receive(&mut buffer) {
                Ok(Received::Answer(latency)) => {
                    if self.phase == Phase::Window {
                        self.latencies.push(latency);
                    }
                    self.issue(index as usize)?;
                }
                Ok(Received::WrongAnswer(complaint)) => {
                    self.complain(complaint);
                    self.issue(index as usize)?;
                }
                Ok(Received::Stray(complaint)) => self.complain(complaint),
                Ok(Received::Nothing) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => self.complain(format!("cannot receive: {error}")),
            }
        }
        Ok(())
    }

    fn repeat(&mut self) {
        let now = clock::now();
        for client in &mut self.clients {
            self.outcome.retransmissions += u64::from(client.repeat(now));
        }
    }

    fn complain(&mut self, complaint: String) {
        self.outcome.wrong += 1;
        self.outcome.complaint.get_or_insert(complaint);
    }

    fn finish(mut self) -> Outcome {
        let unanswered = self.under_way() as u64;
        let mut outcome = self.outcome;
        outcome.answered = self.latencies.len() as u64;
        outcome.p50 = self.latencies.quantile(0.50);
        outcome.p99 = self.latencies.quantile(0.99);
        outcome.unanswered = unanswered;
        if unanswered > 0 {
            outcome.complaint.get_or_insert_with(|| format!("{unanswered} requests without an answer"));
        }
        outcome
    }
}

impl Outcome {
    /// Whether every request got its right answer.
    pub(crate) fn is_sound(&self) -> bool {
        self.wrong == 0 && self.unanswered == 0 && self.answered > 0
    }
}
