//! NSTART: never more outstanding interactions with one peer than allowed (RFC 7252 §4.7; R-CCN-01,
//! R-CCN-05).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use coapway_message::{Datagram, MessageType};
use coapway_proxy::Event;
use coapway_time::Instant;

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
    max_wait: Duration,
    /// By client, when each was first offered.
    open: BTreeMap<SocketAddr, BTreeMap<u16, Instant>>,
}

impl DownstreamWindow {
    pub(super) const fn new(rules: &Rules) -> Self {
        Self { nstart: rules.downstream_nstart, max_wait: rules.downstream_max_wait, open: BTreeMap::new() }
    }

    pub(super) fn sent(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &[u8],
        now: Instant,
    ) -> Result<(), String> {
        let Ok(datagram) = Datagram::parse(bytes) else { return Ok(()) };
        if from != LISTENER || datagram.message_type != MessageType::Confirmable {
            return Ok(());
        }
        let open = self.open.entry(to).or_default();
        open.retain(|_, since| now.since(*since) < self.max_wait);
        open.entry(datagram.message_id).or_insert(now);
        match self.nstart.filter(|&nstart| open.len() > nstart) {
            Some(nstart) => Err(format!("{} separate responses to {to}, {nstart} are allowed", open.len())),
            None => Ok(()),
        }
    }

    pub(super) fn received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        if let (LISTENER, [first, _, high, low, ..]) = (to, bytes)
            && first >> 5 == 0b011
        {
            self.ended(from, u16::from_be_bytes([*high, *low]));
        }
    }

    pub(super) fn refused(&mut self, from: SocketAddr, to: SocketAddr, quoted: &[u8]) {
        if let Some(message_id) = own_message_id(quoted).filter(|_| from == LISTENER) {
            self.ended(to, message_id);
        }
    }

    fn ended(&mut self, client: SocketAddr, message_id: u16) {
        if let Some(open) = self.open.get_mut(&client) {
            open.remove(&message_id);
        }
    }
}
