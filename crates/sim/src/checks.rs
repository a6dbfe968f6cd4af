//! What must always hold, watched from outside: on the wire, in the events, in what is left over.
//!
//! Each check is a small state machine of its own that sees datagrams and events pass. None of them
//! looks into the proxy; they would find the same faults in any other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::Estimator;
use coapway_proxy::{Event, Occupancy, Parameters, UpstreamParameters};
use coapway_time::Instant;

use crate::actor::Actor;
use crate::network::Conservation;

mod acknowledgement;
mod answers;
mod copies;
mod evidence;
mod leftovers;
mod settlement;

/// A timer fires up to one tick of its wheel late.
pub const TICK: Duration = Duration::from_micros(1_100);

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

/// The limits the checks judge by, taken from the proxy's settings.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Within which a Confirmable request is acknowledged.
    pub early_ack_after: Duration,
    /// Within which a request is answered.
    pub max_wait: Duration,
    /// Copies of a separate response leave no closer than this and no later than that.
    pub downstream: Spacing,
    /// Copies of a request leave no closer than this and no later than that.
    pub upstream: Spacing,
    /// The same for a POST or PATCH to an origin that is not known to deduplicate.
    pub guarded: Spacing,
    /// Origins that are known to deduplicate.
    pub deduplicating: BTreeSet<SocketAddr>,
    /// How late a timer may be.
    pub slack: Duration,
}

/// How copies of one message may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// No closer than this to the one before.
    pub closest: Duration,
    /// No later than this after the first.
    pub span: Duration,
    /// No more than this, the first included.
    pub most: usize,
}

impl Rules {
    /// What these settings promise, by timers that fire up to `lateness` late.
    pub fn new(parameters: &Parameters, lateness: Duration) -> Self {
        let downstream = &parameters.downstream;
        let upstreams = &parameters.upstreams;
        let closest = upstreams.iter().map(closest).min().unwrap_or_default();
        let span = upstreams.iter().map(|upstream| upstream.transmission.max_transmit_span());
        // A learned timeout may be longer than the configured one; receivers rely on 45 s.
        let span = span.max().unwrap_or_default().max(Duration::from_secs(45));
        let most = |of: fn(&UpstreamParameters) -> u32| {
            upstreams.iter().map(of).max().unwrap_or_default() as usize + 1
        };
        let upstream = Spacing { closest, span, most: most(|upstream| upstream.max_retransmit(true)) };
        let guarded = Spacing {
            closest: closest.max(UpstreamParameters::NON_IDEMPOTENT_TIMEOUT),
            most: most(|upstream| upstream.max_retransmit_non_idempotent),
            span,
        };
        let named = parameters.relay.upstreams.iter().zip(upstreams);
        let deduplicating = named
            .filter(|(_, upstream)| upstream.deduplicates)
            .filter_map(|(place, _)| place.authority.as_ref()?.socket_address())
            .collect();
        Self {
            early_ack_after: downstream.early_ack_after,
            max_wait: upstreams.iter().map(|upstream| upstream.max_wait).max().unwrap_or_default(),
            downstream: Spacing {
                closest: downstream.transmission.ack_timeout,
                span: downstream.max_wait.min(Duration::from_secs(45)),
                // Repeats of the client draw further copies.
                most: usize::MAX,
            },
            upstream,
            guarded,
            deduplicating,
            slack: lateness + 2 * TICK,
        }
    }
}

/// The shortest first timeout an upstream's settings allow.
fn closest(upstream: &UpstreamParameters) -> Duration {
    match upstream.rto.estimator {
        Estimator::Fixed => upstream.transmission.ack_timeout,
        Estimator::P95 => upstream.transmission.ack_timeout.min(upstream.rto.floor),
    }
}

/// All checks.
#[derive(Debug)]
pub struct Checks {
    violations: Vec<Violation>,
    settlement: settlement::Settlement,
    acknowledgement: acknowledgement::Acknowledgement,
    copies: copies::Copies,
    answers: answers::Answers,
}

impl Checks {
    /// Nothing has happened yet.
    pub fn new(rules: Rules) -> Self {
        Self {
            violations: Vec::new(),
            settlement: settlement::Settlement::new(&rules),
            acknowledgement: acknowledgement::Acknowledgement::new(&rules),
            copies: copies::Copies::new(rules),
            answers: answers::Answers::default(),
        }
    }

    /// What was found so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Something was found elsewhere.
    pub fn violated(&mut self, what: String, at: Instant) {
        self.violations.push(Violation { at, what });
    }

    /// A datagram came to one of the proxy's sockets.
    pub fn proxy_received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) {
        self.acknowledgement.received(from, to, bytes, now);
        self.copies.received(from, to, bytes);
        self.answers.asked(from, to, bytes);
    }

    /// A datagram left one of the proxy's sockets.
    pub fn proxy_sent(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) {
        self.acknowledgement.sent(from, to, bytes);
        let found = self.copies.sent(from, to, bytes, now).err();
        self.note(found, now);
        let found = self.answers.answered(from, to, bytes).err();
        self.note(found, now);
    }

    /// A datagram of the proxy reached an actor.
    pub fn actor_received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) {
        self.answers.reached(from, to, bytes, now);
    }

    /// The proxy told something.
    pub fn told(&mut self, event: &Event, now: Instant) {
        let found = self.settlement.told(event, now).err();
        self.note(found, now);
        let found = self.copies.told(event).err();
        self.note(found, now);
    }

    /// The proxy does nothing until then; its deadlines move.
    pub fn stalled(&mut self, until: Instant) {
        self.acknowledgement.stalled(until);
        self.settlement.stalled(until);
        self.copies.stalled(until);
    }

    /// Everything that had to happen by now has happened.
    pub fn after_step(&mut self, now: Instant) {
        let found = self.acknowledgement.overdue(now).err();
        self.note(found, now);
        let found = self.settlement.overdue(now).err();
        self.note(found, now);
    }

    /// The run is over.
    pub fn finish(&mut self, actors: &[Actor], occupancy: &Occupancy, counted: &Conservation, now: Instant) {
        let mut found = self.settlement.finish();
        found.extend(self.answers.finish(actors));
        found.extend(evidence::finish(actors));
        found.extend(leftovers::finish(actors, occupancy, counted));
        found.into_iter().for_each(|what| self.violated(what, now));
    }

    fn note(&mut self, found: Option<String>, now: Instant) {
        if let Some(what) = found {
            self.violated(what, now);
        }
    }
}

/// What has a deadline, by deadline.
type Deadlines<K> = BTreeMap<(Instant, K), ()>;

#[cfg(test)]
mod tests;
