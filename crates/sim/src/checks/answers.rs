//! The client's side: its own token comes back, no two different answers, and one unless every copy
//! was lost.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use coapway_message::{Datagram, MessageType};
use coapway_time::Instant;

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
    answer: Option<Vec<u8>>,
    reached: Option<Instant>,
}

/// By client and token.
#[derive(Debug, Default)]
pub(super) struct Answers {
    exchanges: BTreeMap<(SocketAddr, Vec<u8>), Exchange>,
}

impl Answers {
    pub(super) fn asked(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let Ok(datagram) = Datagram::parse(bytes) else { return };
        if to != LISTENER || !datagram.content.code.is_request() {
            return;
        }
        let message_id = datagram.message_id;
        let confirmable = datagram.message_type == MessageType::Confirmable;
        let new =
            || Exchange { request: bytes.to_vec(), message_id, confirmable, answer: None, reached: None };
        let exchange = self.exchanges.entry((from, datagram.token.to_vec())).or_insert_with(new);
        // A scripted client may use a token again, or a Message ID, with other bytes.
        if exchange.request != bytes {
            *exchange = new();
        }
    }

    pub(super) fn answered(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Result<(), String> {
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
            MessageType::NonConfirmable if exchange.confirmable => {
                return Err(format!("{} answers a Confirmable request", what()));
            }
            MessageType::Acknowledgement
            | MessageType::Confirmable
            | MessageType::NonConfirmable
            | MessageType::Reset => {}
        }
        match &exchange.answer {
            Some(answer) if answer != bytes => {
                Err(format!("{} after another answer, {}", what(), describe(answer)))
            }
            Some(_) => Ok(()),
            None => {
                exchange.answer = Some(bytes.to_vec());
                Ok(())
            }
        }
    }

    pub(super) fn reached(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) {
        let Some(datagram) = response(from, bytes) else { return };
        if let Some(exchange) = self.exchanges.get_mut(&(to, datagram.token.to_vec())) {
            exchange.reached.get_or_insert(now);
        }
    }

    pub(super) fn finish(&self, actors: &[Actor]) -> Vec<String> {
        let clients = actors.iter().filter_map(|actor| match actor {
            Actor::Client(client) => Some(client),
            Actor::Origin(_) | Actor::Puppet(_) => None,
        });
        let asked = clients.flat_map(|client| client.asked().iter().map(move |asked| (client, asked)));
        asked.filter_map(|(client, asked)| self.judge(client, asked)).collect()
    }

    fn judge(&self, client: &Client, asked: &Asked) -> Option<String> {
        let exchange = self.exchanges.get(&(client.address(), asked.token.as_bytes().to_vec()));
        let (answer, reached) = match exchange {
            Some(exchange) => (exchange.answer.as_deref(), exchange.reached),
            None => (None, None),
        };
        let what = format!(
            "{}'s request {} (token {})",
            client.name(),
            asked.request.key,
            hex(asked.token.as_bytes())
        );
        match &asked.outcome {
            Outcome::Waiting => Some(format!("{what} never ended")),
            Outcome::Failed { at, .. } => match (exchange, reached) {
                (Some(_), _) if answer.is_none() => {
                    Some(format!("{what} reached the proxy and got no answer"))
                }
                (_, Some(reached)) if reached < *at => {
                    Some(format!("{what} failed although its answer came at {reached}"))
                }
                _ => None,
            },
            Outcome::Answered { at, code, payload } => {
                if reached != Some(*at) {
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
