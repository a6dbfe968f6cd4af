//! The client's side: its own token comes back, no two different answers, and one unless every copy
//! was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use coapway_message::{Datagram, MessageType};
use coapway_time::Instant;

use super::Left;
use crate::actor::Actor;
use crate::client::{Asked, Client, Outcome};
use crate::notation::{describe, hex};
use crate::origin::answer_to;
use crate::sockets::LISTENER;

/// A request that reached the proxy, and the answer that left for it.
#[derive(Debug)]
struct Exchange {
    request: Vec<u8>,
    message_id: u16,
    confirmable: bool,
    /// How often the proxy could not take it for a repeat.
    accepted: usize,
    answers: Vec<Vec<u8>>,
    reached: Option<Instant>,
}

/// By client and token.
#[derive(Debug, Default)]
pub(super) struct Answers {
    exchanges: BTreeMap<(SocketAddr, Vec<u8>), Exchange>,
    /// Clients and Message IDs that were acknowledged without an answer.
    acknowledged: BTreeSet<(SocketAddr, u16)>,
    /// Answers to Confirmable requests that left Non-confirmable.
    unconfirmed: u64,
}

impl Answers {
    /// A datagram came; `new` says whether it is one the proxy could not take for a repeat.
    pub(super) fn asked(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], new: bool) {
        let Ok(datagram) = Datagram::parse(bytes) else { return };
        if to != LISTENER || !datagram.content.code.is_request() {
            return;
        }
        let message_id = datagram.message_id;
        let confirmable = datagram.message_type == MessageType::Confirmable;
        let first = || Exchange {
            request: bytes.to_vec(),
            message_id,
            confirmable,
            accepted: 0,
            answers: Vec::new(),
            reached: None,
        };
        let exchange = self.exchanges.entry((from, datagram.token.to_vec())).or_insert_with(first);
        // A scripted client may use a token again, or a Message ID, with other bytes.
        if exchange.request != bytes {
            *exchange = first();
        }
        exchange.accepted += usize::from(new);
    }

    pub(super) fn answered(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Result<(), String> {
        if let (LISTENER, &[0x60, 0, high, low]) = (from, bytes) {
            self.acknowledged.insert((to, u16::from_be_bytes([high, low])));
        }
        let Some(datagram) = response(from, bytes) else { return Ok(()) };
        let what = || format!("{} to {to}", describe(bytes));
        let Some(exchange) = self.exchanges.get_mut(&(to, datagram.token.to_vec())) else {
            return Err(format!("{} carries a token the client did not use", what()));
        };
        match datagram.message_type {
            MessageType::Acknowledgement if datagram.message_id != exchange.message_id => {
                return Err(format!("{} acknowledges another message", what()));
            }
            MessageType::Acknowledgement | MessageType::Confirmable if !exchange.confirmable => {
                return Err(format!("{} answers a Non-confirmable request", what()));
            }
            // Where its turn to be acknowledged did not come, or its address is not believed.
            MessageType::NonConfirmable if exchange.confirmable => {
                if !self.acknowledged.contains(&(to, exchange.message_id)) {
                    return Err(format!("{} answers a Confirmable request", what()));
                }
                self.unconfirmed += 1;
            }
            MessageType::Acknowledgement
            | MessageType::Confirmable
            | MessageType::NonConfirmable
            | MessageType::Reset => {}
        }
        if exchange.answers.iter().any(|answer| answer == bytes) {
            return Ok(());
        }
        exchange.answers.push(bytes.to_vec());
        match &exchange.answers[..] {
            [.., before, _] if exchange.answers.len() > exchange.accepted => {
                Err(format!("{} after another answer, {}", what(), describe(before)))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn reached(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) {
        let Some(datagram) = response(from, bytes) else { return };
        if let Some(exchange) = self.exchanges.get_mut(&(to, datagram.token.to_vec())) {
            exchange.reached.get_or_insert(now);
        }
    }

    pub(super) fn finish(&self, actors: &[Actor], left: &Left<'_>) -> Vec<String> {
        let clients = actors.iter().filter_map(|actor| match actor {
            Actor::Client(client) => Some(client),
            Actor::Origin(_) | Actor::Puppet(_) => None,
        });
        let homes = clients.clone().flat_map(Client::addresses).collect();
        let asked = clients.flat_map(|client| client.asked().iter().map(move |asked| (client, asked)));
        let mut found: Vec<_> = asked.filter_map(|(client, asked)| self.judge(client, asked)).collect();
        let unanswered: Vec<_> = self.unanswered(&homes).collect();
        // The proxy counts each request it drops.
        found.extend(unanswered.into_iter().skip(usize::try_from(left.dropped).unwrap_or(usize::MAX)));
        if self.unconfirmed > left.unconfirmed {
            let (seen, counted) = (self.unconfirmed, left.unconfirmed);
            found.push(format!("{seen} answers left Non-confirmable, {counted} are counted"));
        }
        found
    }

    fn unanswered(&self, homes: &BTreeSet<SocketAddr>) -> impl Iterator<Item = String> {
        let of_clients = self.exchanges.iter().filter(|((client, _), _)| homes.contains(client));
        let unanswered = of_clients.filter(|(_, exchange)| exchange.answers.is_empty());
        unanswered.map(|((client, _), exchange)| {
            format!("{} of {client} reached the proxy and got no answer", describe(&exchange.request))
        })
    }

    fn judge(&self, client: &Client, asked: &Asked) -> Option<String> {
        let token = asked.token.as_bytes().to_vec();
        let exchanges = client.addresses().filter_map(|home| self.exchanges.get(&(home, token.clone())));
        let reached = exchanges.filter_map(|exchange| exchange.reached).min();
        let what = format!(
            "{}'s request {} (token {})",
            client.name(),
            asked.request.key,
            hex(asked.token.as_bytes())
        );
        match &asked.outcome {
            Outcome::Waiting => Some(format!("{what} never ended")),
            Outcome::Failed { at, .. } => reached
                .filter(|reached| reached < at && !client.is_careless())
                .map(|reached| format!("{what} failed although its answer came at {reached}")),
            Outcome::Answered { at, code, payload } => {
                if reached != Some(*at) && !client.is_careless() {
                    return Some(format!("{what} was answered at {at}, its answer came at {reached:?}"));
                }
                if code.is_success() && *payload != answer_to(asked.request.key).as_bytes() {
                    let payload = String::from_utf8_lossy(payload);
                    return Some(format!("{what} got the answer to another: {payload}"));
                }
                None
            }
        }
    }
}

/// A response from the proxy's listener.
fn response(from: SocketAddr, bytes: &[u8]) -> Option<Datagram<'_>> {
    let datagram = Datagram::parse(bytes).ok()?;
    (from == LISTENER && datagram.content.code.is_response()).then_some(datagram)
}
