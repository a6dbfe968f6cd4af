//! A POST or PATCH is executed once, as far as a proxy can promise it (design promise 3; R-USR-10).
//!
//! The proxy's part is judged on the wire: each request that it could tell from a repeat (another
//! client address, or a Message ID used again) may lead to one exchange with an origin, and to another
//! only when the first was certainly not executed. What an origin then executed more than once is
//! traced to its cause and counted, or it is a violation.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use coapway_message::{Code, Datagram, MessageType, Method, OptionNumber};
use coapway_time::Instant;

use super::exchanges::{Exchange, Exchanges};
use crate::actor::Actor;
use crate::origin::{self, Executed, Memory, Origin, Run};
use crate::sockets::LISTENER;

/// Executions of POST and PATCH beyond the first, by what nobody but the cause could have prevented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// The client's address changed, and its repeat was another request to everybody.
    pub rebound: usize,
    /// The client used a Message ID for something else and then came back to the first.
    pub reused: usize,
    /// The origin lost its memory between two copies.
    pub restarted: usize,
    /// The origin has no memory.
    pub undeduplicated: usize,
    /// The settings say that the origin knows Request-Tags, and it does not.
    pub tagged: usize,
}

impl std::ops::AddAssign for Again {
    fn add_assign(&mut self, other: Self) {
        self.rebound += other.rebound;
        self.reused += other.reused;
        self.restarted += other.restarted;
        self.undeduplicated += other.undeduplicated;
        self.tagged += other.tagged;
    }
}

/// Requests under one key that the proxy could not take for repeats.
#[derive(Debug, Default)]
struct Accepted {
    clients: BTreeSet<SocketAddr>,
    rebound: usize,
    reused: usize,
}

impl Accepted {
    fn count(&self) -> usize {
        1 + self.rebound + self.reused
    }
}

#[derive(Debug, Default)]
pub(super) struct Executions {
    /// By client and Message ID: the bytes last seen, since when, and for how long they are known.
    latest: BTreeMap<(SocketAddr, u16), (Vec<u8>, Instant, Duration)>,
    accepted: BTreeMap<u32, Accepted>,
    again: Again,
}

const fn must_be_done_once(method: Code) -> bool {
    matches!(method, Code::POST | Code::PATCH)
}

impl Executions {
    /// What was counted at the end.
    pub(super) const fn again(&self) -> Again {
        self.again
    }

    /// How many requests of this key the proxy could tell from repeats.
    pub(super) fn accepted(&self, key: u32) -> usize {
        self.accepted.get(&key).map_or(0, Accepted::count)
    }

    /// A datagram came. Says whether it is a request that the proxy could not take for a repeat.
    pub(super) fn received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) -> bool {
        let Ok(datagram) = Datagram::parse(bytes) else { return false };
        if to != LISTENER || !datagram.content.code.is_request() {
            return false;
        }
        let lifetime = match datagram.message_type {
            MessageType::Confirmable => super::copies::EXCHANGE_LIFETIME,
            MessageType::NonConfirmable => super::copies::NON_LIFETIME,
            MessageType::Acknowledgement | MessageType::Reset => return false,
        };
        let latest = self.latest.entry((from, datagram.message_id)).or_default();
        if latest.0 == bytes && now.since(latest.1) <= latest.2 {
            return false;
        }
        *latest = (bytes.to_vec(), now, lifetime);
        let accepted = self.accepted.entry(origin::key(&datagram.content)).or_default();
        let (known, first) = (accepted.clients.contains(&from), accepted.clients.is_empty());
        accepted.clients.insert(from);
        accepted.reused += usize::from(known);
        accepted.rebound += usize::from(!known && !first);
        true
    }

    /// The first copy of a request left for an origin.
    pub(super) fn sent(&self, number: usize, exchanges: &Exchanges) -> Result<(), String> {
        let exchange = exchanges.get(number);
        let key = exchange.key;
        if !must_be_done_once(exchange.method) || key == 0 {
            return Ok(());
        }
        let of_key = exchanges.all().iter().filter(|other| other.key == key);
        let may_be_executed = of_key.filter(|other| !other.is_not_executed());
        // Those with one Request-Tag are one to an origin that knows it.
        let tags: BTreeSet<_> = may_be_executed.clone().filter_map(Exchange::request_tag).collect();
        let untagged = may_be_executed.filter(|other| other.request_tag().is_none()).count();
        let may_be_executed = untagged + tags.len();
        let accepted = self.accepted(key);
        if may_be_executed > accepted {
            let what = crate::notation::describe(&exchange.bytes);
            return Err(format!("{what} is exchange {may_be_executed} of {accepted} that may be executed"));
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, actors: &[Actor], exchanges: &Exchanges) -> Vec<String> {
        let origins = actors.iter().filter_map(|actor| match actor {
            Actor::Origin(origin) => Some(origin),
            Actor::Client(_) | Actor::Puppet(_) => None,
        });
        let mut found = Vec::new();
        for origin in origins {
            for (&key, executed) in origin.executed() {
                if must_be_done_once(executed.method.code())
                    && let Err(why) = self.trace(key, executed, origin, exchanges)
                {
                    let (name, method) = (origin.name(), executed.method.name());
                    let times = executed.runs.len();
                    found.push(format!("{name} executed {method} {key} {times} times, {why}"));
                }
            }
        }
        found
    }

    /// Errors: what cannot be explained.
    fn trace(
        &mut self,
        key: u32,
        executed: &Executed,
        origin: &Origin,
        seen: &Exchanges,
    ) -> Result<(), String> {
        let memory = origin.memory();
        let mut exchanges: BTreeMap<(SocketAddr, u16), Vec<&Run>> = BTreeMap::new();
        for run in &executed.runs {
            exchanges.entry((run.from, run.message_id)).or_default().push(run);
        }
        for runs in exchanges.values() {
            let lives: BTreeSet<_> = runs.iter().map(|run| run.restarts).collect();
            let further = runs.len() - 1;
            match memory {
                Memory::None => self.again.undeduplicated += further,
                Memory::Deduplicates if lives.len() == runs.len() => self.again.restarted += further,
                Memory::Deduplicates => return Err("though it knows duplicates".to_owned()),
            }
        }
        let Some(accepted) = self.accepted.get(&key) else { return Err("though nobody asked".to_owned()) };
        let of = |&(from, id): &(SocketAddr, u16)| seen.find(from, origin.address(), id);
        let tags: Vec<_> = exchanges.keys().filter_map(|id| of(id)?.request_tag()).collect();
        let tagged = tags.len() - tags.iter().collect::<BTreeSet<_>>().len();
        self.again.tagged += tagged;
        let further = exchanges.len() - 1 - tagged;
        let rebound = further.min(accepted.rebound);
        if further > rebound + accepted.reused {
            return Err(format!("in {} exchanges of {} requests", exchanges.len(), accepted.count()));
        }
        self.again.rebound += rebound;
        self.again.reused += further - rebound;
        Ok(())
    }
}

/// Whether a request may be issued anew without a promise being broken (R-USR-09).
pub(super) fn is_repeatable(exchange: &Exchange) -> bool {
    repeatable(exchange.method, |number| exchange.has_option(number))
}

/// The same of any request.
pub(super) fn repeatable(method: Code, has_option: impl FnMut(OptionNumber) -> bool) -> bool {
    use coapway_message::OptionNumber as O;
    let forbidden = [O::IF_MATCH, O::IF_NONE_MATCH, O::OBSERVE, O::OSCORE, O::BLOCK1];
    Method::from_code(method).is_some_and(Method::is_idempotent) && !forbidden.into_iter().any(has_option)
}
