//! NSTART: never more outstanding interactions with one peer than allowed (RFC 7252 §4.7; R-CCN-01,
//! R-CCN-05).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::Trace;
use coapway_message::{Datagram, ExchangeId, Failure, MessageType};
use coapway_proxy::Event;
use coapway_time::Instant;

use super::Rules;
use super::exchanges::{Exchange, Exchanges, own_message_id};
use crate::sockets::LISTENER;

/// Confirmable requests that origins have neither acknowledged nor answered, over all ports.
///
/// Once the wait after its last copy is over, an Acknowledgement is no longer expected and a request no
/// longer counts. Which copy is the last shows only when none follows: a request stops counting when its
/// wait can be over, and counts again when a copy leaves after all.
#[derive(Debug)]
pub(super) struct UpstreamWindow {
    nstart: usize,
    closest: Duration,
    growth: f64,
    one_window: bool,
    stalled_until: Instant,
    open: BTreeMap<(SocketAddr, bool), BTreeSet<usize>>,
}

impl UpstreamWindow {
    pub(super) const fn new(rules: &Rules) -> Self {
        Self {
            nstart: rules.upstream_nstart,
            closest: rules.upstream.closest,
            growth: if rules.upstream.stretched { 1.0 } else { rules.upstream.growth },
            one_window: rules.one_window,
            stalled_until: Instant::ZERO,
            open: BTreeMap::new(),
        }
    }

    pub(super) const fn stalled(&mut self, until: Instant) {
        self.stalled_until = until;
    }

    fn place(&self, exchange: &Exchange) -> (SocketAddr, bool) {
        let (origin, by_name) = exchange.place();
        (origin, by_name && !self.one_window)
    }

    /// A copy of a request left.
    pub(super) fn sent(&mut self, number: usize, exchanges: &Exchanges, accepted: usize) {
        let exchange = exchanges.get(number);
        if !exchange.confirmable {
            return;
        }
        let open = self.open.entry(self.place(exchange)).or_default();
        // What is issued anew ended before, and only the proxy knows when.
        let is_same = |other: &usize| exchanges.get(*other).content() == exchange.content();
        let same = open.iter().copied().filter(is_same).count();
        for _ in accepted.max(1)..=same {
            let oldest = open.iter().copied().find(is_same);
            open.retain(|&other| Some(other) != oldest);
        }
        open.insert(number);
    }

    /// Something came for an exchange.
    pub(super) fn moved(&mut self, number: usize, exchanges: &Exchanges) {
        let exchange = exchanges.get(number);
        if exchange.is_settled()
            && let Some(open) = self.open.get_mut(&self.place(exchange))
        {
            open.remove(&number);
        }
    }

    /// The request has its answer; nothing is waited for any more.
    pub(super) fn recorded(&mut self, traces: &[Trace], exchanges: &Exchanges) {
        for number in traces.iter().filter_map(|trace| exchanges.number_of(trace)) {
            if let Some(open) = self.open.get_mut(&self.place(exchanges.get(number))) {
                open.remove(&number);
            }
        }
    }

    /// All that was to leave in this step has left, and all events were told.
    pub(super) fn exceeded(&mut self, exchanges: &Exchanges, now: Instant) -> Result<(), String> {
        let (nstart, closest, growth) = (self.nstart, self.closest, self.growth);
        let stalled = self.stalled_until;
        for ((origin, _), open) in self.open.iter_mut().filter(|(_, open)| open.len() > nstart) {
            open.retain(|&number| {
                now < wait_is_over(&exchanges.get(number).copies, closest, growth, stalled)
            });
            if open.len() > nstart {
                return Err(format!("{} exchanges with {origin} where {nstart} are allowed", open.len()));
            }
        }
        Ok(())
    }
}

/// The soonest that the wait after the last copy can be over: a wait is so many times the one before, jitter
/// aside, unless the process stood still and lengthened that.
fn wait_is_over(copies: &[Instant], closest: Duration, growth: f64, stalled: Instant) -> Instant {
    match copies {
        [.., before, last] if *before > stalled => *last + last.since(*before).mul_f64(growth / 1.15),
        [.., last] => *last + closest,
        [] => Instant::ZERO,
    }
}

/// Separate responses that clients have not acknowledged.
#[derive(Debug)]
pub(super) struct DownstreamWindow {
    nstart: Option<usize>,
    closest: Duration,
    clients: BTreeMap<SocketAddr, Offered>,
    /// Who asked.
    asked: BTreeMap<ExchangeId, SocketAddr>,
}

/// What one client is offered.
#[derive(Debug, Default)]
struct Offered {
    /// Tokens of its Confirmable requests.
    confirmable: BTreeSet<Vec<u8>>,
    /// Message IDs of what it has not acknowledged, oldest first, and when a copy left last.
    open: Vec<(u16, Instant)>,
    /// All Message IDs it was offered something under.
    known: BTreeSet<u16>,
    /// Answers that left Non-confirmable instead and that nothing was told of.
    unconfirmed: usize,
}

impl DownstreamWindow {
    pub(super) const fn new(rules: &Rules) -> Self {
        let (nstart, closest) = (rules.downstream_nstart, rules.downstream.closest);
        Self { nstart, closest, clients: BTreeMap::new(), asked: BTreeMap::new() }
    }

    pub(super) fn sent(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) {
        let Ok(datagram) = Datagram::parse(bytes) else { return };
        if from != LISTENER || !datagram.content.code.is_response() {
            return;
        }
        let offered = self.clients.entry(to).or_default();
        match datagram.message_type {
            MessageType::Confirmable => {
                let mut open = offered.open.iter_mut();
                match open.find(|(message_id, _)| *message_id == datagram.message_id) {
                    Some((_, last)) => *last = now,
                    None if offered.known.insert(datagram.message_id) => {
                        offered.open.push((datagram.message_id, now));
                    }
                    // Its turn was over; a repeat of the client drew it anew.
                    None => {}
                }
            }
            MessageType::NonConfirmable if offered.confirmable.contains(datagram.token) => {
                offered.unconfirmed += 1;
            }
            MessageType::NonConfirmable | MessageType::Acknowledgement | MessageType::Reset => {}
        }
    }

    pub(super) fn received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let Some(datagram) = Datagram::parse(bytes).ok().filter(|_| to == LISTENER) else { return };
        match datagram.message_type {
            MessageType::Confirmable => {
                let offered = self.clients.entry(from).or_default();
                offered.confirmable.insert(datagram.token.to_vec());
            }
            MessageType::Acknowledgement | MessageType::Reset => self.ended(from, datagram.message_id),
            MessageType::NonConfirmable => {}
        }
    }

    pub(super) fn refused(&mut self, from: SocketAddr, to: SocketAddr, quoted: &[u8]) {
        if let Some(message_id) = own_message_id(quoted).filter(|_| from == LISTENER) {
            self.ended(to, message_id);
        }
    }

    fn ended(&mut self, client: SocketAddr, message_id: u16) {
        if let Some(offered) = self.clients.get_mut(&client) {
            offered.open.retain(|&(other, _)| other != message_id);
        }
    }

    /// One that is given up is the oldest: all are offered for equally long.
    pub(super) fn told(&mut self, event: &Event) {
        match *event {
            Event::Received { request, client, .. } => drop(self.asked.insert(request, client)),
            Event::Delivered { request, outcome: Err(Failure::TimedOut | Failure::Overloaded) } => {
                let client = self.asked.get(&request);
                let Some(offered) = client.and_then(|client| self.clients.get_mut(client)) else { return };
                match offered.unconfirmed.checked_sub(1) {
                    Some(fewer) => offered.unconfirmed = fewer,
                    None => drop(offered.open.drain(..1.min(offered.open.len()))),
                }
            }
            Event::Delivered { .. }
            | Event::Repeated { .. }
            | Event::Sent { .. }
            | Event::Retransmitted { .. }
            | Event::Acknowledged { .. }
            | Event::EmptyAckSent { .. }
            | Event::Answered { .. }
            | Event::Alert(_)
            | Event::Refused(_) => {}
        }
    }

    /// All that was to leave in this step has left, and all events were told. What has waited for its last
    /// copy blocks nobody (R-ATK-06).
    pub(super) fn exceeded(&mut self, now: Instant) -> Result<(), String> {
        let (Some(nstart), closest) = (self.nstart, self.closest) else { return Ok(()) };
        for (client, Offered { open, .. }) in
            self.clients.iter_mut().filter(|(_, offered)| offered.open.len() > nstart)
        {
            open.retain(|&(_, last)| now < last + closest);
            if open.len() > nstart {
                return Err(format!("{} separate responses to {client}, {nstart} are allowed", open.len()));
            }
        }
        Ok(())
    }
}
