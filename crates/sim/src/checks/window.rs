//! NSTART: never more outstanding interactions with one peer than allowed (RFC 7252 §4.7; R-CCN-01,
//! R-CCN-05).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use coapway_message::{Datagram, ExchangeId, Failure, MessageType};
use coapway_proxy::Event;

use super::Rules;
use super::exchanges::{Exchanges, own_message_id};
use crate::sockets::LISTENER;

/// Confirmable requests that origins have neither acknowledged nor answered, over all ports.
#[derive(Debug)]
pub(super) struct UpstreamWindow {
    nstart: usize,
    open: BTreeMap<SocketAddr, BTreeSet<usize>>,
}

impl UpstreamWindow {
    pub(super) const fn new(rules: &Rules) -> Self {
        Self { nstart: rules.upstream_nstart, open: BTreeMap::new() }
    }

    /// The first copy of a request left.
    pub(super) fn sent(&mut self, number: usize, exchanges: &Exchanges, accepted: usize) {
        let exchange = exchanges.get(number);
        if !exchange.confirmable {
            return;
        }
        let open = self.open.entry(exchange.to).or_default();
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
            && let Some(open) = self.open.get_mut(&exchange.to)
        {
            open.remove(&number);
        }
    }

    /// The request has its answer; nothing is waited for any more.
    pub(super) fn told(&mut self, event: &Event, exchanges: &Exchanges) {
        let Event::Forwarded(record) = event else { return };
        for number in record.traces.iter().filter_map(|trace| exchanges.number_of(trace)) {
            if let Some(open) = self.open.get_mut(&exchanges.get(number).to) {
                open.remove(&number);
            }
        }
    }

    /// All that was to leave in this step has left, and all events were told.
    pub(super) fn exceeded(&self) -> Result<(), String> {
        match self.open.iter().find(|(_, open)| open.len() > self.nstart) {
            Some((origin, open)) => {
                Err(format!("{} exchanges with {origin} where {} are allowed", open.len(), self.nstart))
            }
            None => Ok(()),
        }
    }
}

/// Separate responses that clients have not acknowledged.
#[derive(Debug)]
pub(super) struct DownstreamWindow {
    nstart: Option<usize>,
    clients: BTreeMap<SocketAddr, Offered>,
    /// Who asked.
    asked: BTreeMap<ExchangeId, SocketAddr>,
}

/// What one client is offered.
#[derive(Debug, Default)]
struct Offered {
    /// Tokens of its Confirmable requests.
    confirmable: BTreeSet<Vec<u8>>,
    /// Message IDs of what it has not acknowledged, oldest first.
    open: Vec<u16>,
    /// Answers that left Non-confirmable instead and that nothing was told of.
    unconfirmed: usize,
}

impl DownstreamWindow {
    pub(super) const fn new(rules: &Rules) -> Self {
        Self { nstart: rules.downstream_nstart, clients: BTreeMap::new(), asked: BTreeMap::new() }
    }

    pub(super) fn sent(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let Ok(datagram) = Datagram::parse(bytes) else { return };
        if from != LISTENER || !datagram.content.code.is_response() {
            return;
        }
        let offered = self.clients.entry(to).or_default();
        match datagram.message_type {
            MessageType::Confirmable if !offered.open.contains(&datagram.message_id) => {
                offered.open.push(datagram.message_id);
            }
            MessageType::NonConfirmable if offered.confirmable.contains(datagram.token) => {
                offered.unconfirmed += 1;
            }
            MessageType::Confirmable
            | MessageType::NonConfirmable
            | MessageType::Acknowledgement
            | MessageType::Reset => {}
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
            offered.open.retain(|&other| other != message_id);
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
            | Event::Refused(_)
            | Event::Forwarded(_) => {}
        }
    }

    /// All that was to leave in this step has left, and all events were told.
    pub(super) fn exceeded(&self) -> Result<(), String> {
        let Some(nstart) = self.nstart else { return Ok(()) };
        match self.clients.iter().find(|(_, offered)| offered.open.len() > nstart) {
            Some((client, Offered { open, .. })) => {
                Err(format!("{} separate responses to {client}, {nstart} are allowed", open.len()))
            }
            None => Ok(()),
        }
    }
}
