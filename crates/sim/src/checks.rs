//! What must always hold, watched from outside: on the wire, in the events, in what is left over.
//!
//! Each check is a small state machine of its own that sees datagrams and events pass. None of them
//! looks into the proxy; they would find the same faults in any other.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use coapway_proxy::{Event, Occupancy, Record};
use coapway_time::Instant;

use crate::actor::Actor;
use crate::network::Conservation;

mod acknowledgement;
mod amplification;
mod answers;
mod copies;
mod evidence;
mod exchanges;
mod executions;
mod leftovers;
mod probing;
mod reissue;
mod renamed;
mod rules;
mod settlement;
mod tokens;
mod window;

pub use executions::Again;
pub use rules::{Rules, Spacing, TICK};

use exchanges::{Exchanges, Seen};

/// Something that must not happen, did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it was noticed.
    pub at: Instant,
    /// What.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

/// All checks.
#[derive(Debug)]
pub struct Checks {
    violations: Vec<Violation>,
    renamed: renamed::Renamed,
    exchanges: Exchanges,
    settlement: settlement::Settlement,
    acknowledgement: acknowledgement::Acknowledgement,
    copies: copies::Copies,
    tokens: tokens::Tokens,
    answers: answers::Answers,
    executions: executions::Executions,
    reissue: reissue::Reissue,
    upstream_window: window::UpstreamWindow,
    downstream_window: window::DownstreamWindow,
    probing: probing::Probing,
    amplification: amplification::Amplification,
}

impl Checks {
    /// Nothing has happened yet.
    pub fn new(rules: Rules) -> Self {
        Self {
            violations: Vec::new(),
            renamed: renamed::Renamed::new(&rules),
            exchanges: Exchanges::default(),
            settlement: settlement::Settlement::new(&rules),
            acknowledgement: acknowledgement::Acknowledgement::new(&rules),
            tokens: tokens::Tokens::new(&rules),
            answers: answers::Answers::default(),
            executions: executions::Executions::default(),
            reissue: reissue::Reissue::new(&rules),
            upstream_window: window::UpstreamWindow::new(&rules),
            downstream_window: window::DownstreamWindow::new(&rules),
            probing: probing::Probing::new(&rules),
            amplification: amplification::Amplification::new(&rules),
            copies: copies::Copies::new(rules),
        }
    }

    /// What was found so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Executions beyond the first that nobody could have prevented; known at the end.
    pub const fn again(&self) -> Again {
        self.executions.again()
    }

    /// Something was found elsewhere.
    pub fn violated(&mut self, what: String, at: Instant) {
        self.violations.push(Violation { at, what });
    }

    /// A datagram came to one of the proxy's sockets.
    pub fn proxy_received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) {
        let bytes = &self.renamed.received(from, to, bytes).unwrap_or_default();
        self.acknowledgement.received(from, to, bytes, now);
        self.copies.received(from, to, bytes);
        self.tokens.received(to, bytes);
        let new = self.executions.received(from, to, bytes, now);
        self.answers.asked(from, to, bytes, new);
        self.downstream_window.received(from, to, bytes);
        self.amplification.received(from, to, bytes, new);
        self.probing.heard(from);
        if let Some(number) = self.exchanges.received(from, to, bytes, now) {
            self.upstream_window.moved(number, &self.exchanges);
        }
    }

    /// An ICMP error came to one of the proxy's sockets, about a datagram from there.
    pub fn proxy_refused(&mut self, from: SocketAddr, to: SocketAddr, quoted: &[u8], _now: Instant) {
        self.downstream_window.refused(from, to, quoted);
        let quoted = &self.renamed.quoted(from, to, quoted);
        if let Some(number) = self.exchanges.refused(from, to, quoted) {
            self.upstream_window.moved(number, &self.exchanges);
            self.probing.refused(to);
        }
    }

    /// A datagram left one of the proxy's sockets.
    pub fn proxy_sent(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) {
        self.acknowledgement.sent(from, to, bytes);
        self.downstream_window.sent(from, to, bytes, now);
        let (bytes, renamed) = self.renamed.sent(from, to, bytes, now);
        let bytes = &bytes;
        let mut found = vec![
            renamed,
            self.copies.sent(from, to, bytes, now),
            self.tokens.sent(from, to, bytes, now),
            self.answers.answered(from, to, bytes),
            self.amplification.sent(from, to, bytes),
        ];
        let seen = self.exchanges.sent(from, to, bytes, now);
        if let Seen::First(number) | Seen::Copy(number) = seen {
            let accepted = self.executions.accepted(self.exchanges.get(number).key);
            self.upstream_window.sent(number, &self.exchanges, accepted);
        }
        if let Seen::First(number) = seen {
            found.push(self.executions.sent(number, &self.exchanges));
            found.push(self.probing.sent(number, &self.exchanges, now));
        }
        found.into_iter().for_each(|found| self.note(found, now));
    }

    /// A datagram of the proxy reached an actor.
    pub fn actor_received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) {
        self.answers.reached(from, to, bytes, now);
    }

    /// The proxy told something.
    pub fn told(&mut self, event: &Event, now: Instant) {
        self.downstream_window.told(event);
        let found = self.settlement.told(event, now);
        self.note(found, now);
    }

    /// The proxy told of a forward.
    pub fn recorded(&mut self, record: &Record, now: Instant) {
        let traces = record.exchanges.traces();
        self.upstream_window.recorded(&traces, &self.exchanges);
        let found = [
            self.copies.recorded(record, &traces, &self.exchanges),
            self.reissue.recorded(record, &traces, &self.exchanges),
        ];
        found.into_iter().for_each(|found| self.note(found, now));
    }

    /// The proxy does nothing until then; its deadlines move.
    pub fn stalled(&mut self, until: Instant) {
        self.acknowledgement.stalled(until);
        self.settlement.stalled(until);
        self.copies.stalled(until);
        self.upstream_window.stalled(until);
    }

    /// Everything that had to happen by now has happened.
    pub fn after_step(&mut self, now: Instant) {
        let found = [
            self.acknowledgement.overdue(now),
            self.settlement.overdue(now),
            self.upstream_window.exceeded(&self.exchanges, now),
            self.downstream_window.exceeded(now),
        ];
        found.into_iter().for_each(|found| self.note(found, now));
    }

    /// The run is over.
    pub fn finish(&mut self, actors: &[Actor], left: &Left<'_>, now: Instant) {
        let mut found = self.settlement.finish();
        found.extend(self.acknowledgement.finish(left.dropped));
        found.extend(self.answers.finish(actors, left));
        found.extend(evidence::finish(actors, &self.exchanges));
        found.extend(self.executions.finish(actors, &self.exchanges));
        found.extend(leftovers::finish(actors, left));
        found.into_iter().for_each(|what| self.violated(what, now));
    }

    fn note(&mut self, found: Result<(), String>, now: Instant) {
        if let Err(what) = found {
            self.violated(what, now);
        }
    }
}

/// What there is at the end of a run.
#[derive(Clone, Copy, Debug)]
pub struct Left<'w> {
    /// In the proxy.
    pub occupancy: &'w Occupancy,
    /// In the network.
    pub counted: &'w Conservation,
    /// Requests the proxy dropped because their client was too fast.
    pub dropped: u64,
    /// Answers to Confirmable requests that left Non-confirmable.
    pub unconfirmed: u64,
}

/// What has a deadline, by deadline.
type Deadlines<K> = BTreeMap<(Instant, K), ()>;

#[cfg(test)]
mod tests;
