//! Message IDs and copies of what the proxy sends.
//!
//! No Message ID comes with other bytes within its lifetime; copies leave from one port, keep their
//! distance, stay inside their span and end with the first Acknowledgement, and records say how many
//! there were.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::Trace;
use coapway_message::{Code, Datagram, MessageType};
use coapway_proxy::Record;
use coapway_time::Instant;

use super::exchanges::Exchanges;
use super::{Rules, Spacing};
use crate::notation::describe;
use crate::sockets::LISTENER;

/// EXCHANGE_LIFETIME and NON_LIFETIME of a receiver with the protocol's own parameters.
pub(super) const EXCHANGE_LIFETIME: Duration = Duration::from_secs(247);
pub(super) const NON_LIFETIME: Duration = Duration::from_secs(145);

/// A Confirmable or Non-confirmable message and when its copies left.
#[derive(Debug)]
struct Message {
    bytes: Vec<u8>,
    copies: Vec<Instant>,
    lifetime: Duration,
    /// Whether its receiver acknowledged, rejected or answered it.
    settled: bool,
    /// Whether its last wait grew less than the others, which the last one may alone.
    is_last: bool,
}

impl Message {
    const fn new(bytes: Vec<u8>, lifetime: Duration) -> Self {
        Self { bytes, copies: Vec::new(), lifetime, settled: false, is_last: false }
    }
}

/// Source, destination, Message ID.
type Identity = (SocketAddr, SocketAddr, u16);

#[derive(Debug)]
pub(super) struct Copies {
    rules: Rules,
    messages: BTreeMap<Identity, Message>,
    /// By token and both ends, the latest request sent with it.
    tokens: BTreeMap<(SocketAddr, SocketAddr, Vec<u8>), Identity>,
    /// Requests whose record was written: no further copy may leave.
    recorded: BTreeSet<Identity>,
    /// The port each request left from, by destination and bytes.
    ports: BTreeMap<(SocketAddr, Vec<u8>), SocketAddr>,
    stalled_until: Instant,
}

impl Copies {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            messages: BTreeMap::new(),
            tokens: BTreeMap::new(),
            recorded: BTreeSet::new(),
            ports: BTreeMap::new(),
            stalled_until: Instant::ZERO,
        }
    }

    pub(super) const fn stalled(&mut self, until: Instant) {
        self.stalled_until = until;
    }

    /// What reached the proxy may settle one of its messages (RFC 7252 §4.2, §5.3.2).
    pub(super) fn received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let Ok(Datagram { message_type, message_id, token, content }) = Datagram::parse(bytes) else {
            return;
        };
        let acknowledges = matches!(message_type, MessageType::Acknowledgement | MessageType::Reset);
        let by_token = || self.tokens.get(&(to, from, token.to_vec())).copied();
        let identity = match (acknowledges, content.code) {
            (true, Code::EMPTY) => Some((to, from, message_id)),
            // In an Acknowledgement of a request the token must be right, too (R-TOK-07); one of a
            // response may carry anything.
            (true, _) if by_token() == Some((to, from, message_id)) || to == LISTENER => {
                Some((to, from, message_id))
            }
            (true, _) => None,
            (false, _) if matches!(content.code.class(), 2..=5) => by_token(),
            (false, _) => None,
        };
        let identity = identity.filter(|&(ours, theirs, _)| (ours, theirs) == (to, from));
        if let Some(message) = identity.and_then(|identity| self.messages.get_mut(&identity)) {
            message.settled = true;
        }
    }

    pub(super) fn sent(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &[u8],
        now: Instant,
    ) -> Result<(), String> {
        let datagram = Datagram::parse(bytes)
            .map_err(|_| format!("the proxy sent to {to} what is no message: {}", describe(bytes)))?;
        let lifetime = match datagram.message_type {
            MessageType::Confirmable => EXCHANGE_LIFETIME,
            MessageType::NonConfirmable => NON_LIFETIME,
            MessageType::Acknowledgement | MessageType::Reset => return Ok(()),
        };
        let identity = (from, to, datagram.message_id);
        let request = datagram.content.code.is_request();
        if request {
            self.note_request(identity, datagram.token, bytes)?;
        }
        let message = self.messages.entry(identity).or_insert_with(|| Message::new(bytes.to_vec(), lifetime));
        if message.bytes != bytes {
            let age = message.copies.first().map_or(Duration::MAX, |&first| now.since(first));
            if age < message.lifetime {
                let before = describe(&message.bytes);
                return Err(format!(
                    "{} to {to} takes the Message ID of {before} after {age:?}",
                    describe(bytes)
                ));
            }
            *message = Message::new(bytes.to_vec(), lifetime);
        }
        let spacing = match (request, datagram.content.code) {
            (false, _) => self.rules.downstream,
            (true, Code::POST | Code::PATCH) if !self.rules.deduplicating.contains(&to) => self.rules.guarded,
            (true, _) => self.rules.upstream,
        };
        let mut result = check_spacing(message, spacing, now, bytes);
        // A process that stood still lengthened a wait that the schedule knows nothing of.
        if result.is_ok() && message.copies.first().is_some_and(|&first| first >= self.stalled_until) {
            result = check_back_off(message, spacing, now, bytes);
        }
        message.copies.push(now);
        result
    }

    fn note_request(&mut self, identity: Identity, token: &[u8], bytes: &[u8]) -> Result<(), String> {
        let (from, to, message_id) = identity;
        let before = self.tokens.insert((from, to, token.to_vec()), identity);
        let port = *self.ports.entry((to, bytes.to_vec())).or_insert(from);
        if port != from {
            return Err(format!("a copy of {} left from {from}, the first from {port}", describe(bytes)));
        }
        // Under its token a Message ID may come back after its lifetime.
        if before != Some(identity) {
            self.recorded.remove(&identity);
        }
        if self.recorded.contains(&identity) {
            return Err(format!("a copy of MID={message_id} to {to} left after its answer"));
        }
        Ok(())
    }

    /// A record says what was seen.
    pub(super) fn recorded(
        &mut self,
        record: &Record,
        traces: &[Trace],
        exchanges: &Exchanges,
    ) -> Result<(), String> {
        for trace in traces {
            let seen = exchanges.of(trace);
            self.recorded.extend(seen.map(|exchange| (exchange.from, exchange.to, exchange.message_id)));
            let seen = seen.map_or(&[][..], |exchange| &exchange.copies);
            if !seen.iter().eq(trace.copies.iter().map(|copy| &copy.sent)) {
                let count = trace.copies.len();
                return Err(format!("record {} has {count} copies, the wire saw {}", record.id, seen.len()));
            }
        }
        let copies: usize = traces.iter().map(|trace| trace.copies.len()).sum();
        if record.retries() != copies.saturating_sub(1) {
            return Err(format!("record {} has {} retries and {copies} copies", record.id, record.retries()));
        }
        if record.answered < record.received {
            return Err(format!("record {} was answered before it was received", record.id));
        }
        Ok(())
    }
}

fn check_spacing(message: &Message, spacing: Spacing, now: Instant, bytes: &[u8]) -> Result<(), String> {
    let (Some(&first), Some(&last)) = (message.copies.first(), message.copies.last()) else { return Ok(()) };
    let what = || format!("copy {} of {}", message.copies.len() + 1, describe(bytes));
    if message.settled {
        return Err(format!("{} although it was acknowledged, rejected or answered", what()));
    }
    if Datagram::parse(bytes).is_ok_and(|datagram| datagram.message_type == MessageType::NonConfirmable) {
        return Err(format!("{} although it is Non-confirmable", what()));
    }
    if now.since(last) < spacing.closest {
        return Err(format!("{} only {:?} after the one before", what(), now.since(last)));
    }
    if now.since(first) > spacing.span {
        return Err(format!("{} {:?} after the first", what(), now.since(first)));
    }
    if message.copies.len() >= spacing.most {
        return Err(format!("{} where {} are allowed", what(), spacing.most));
    }
    Ok(())
}

/// Each wait is at least so many times the one before, jitter and lateness of that aside.
fn check_back_off(message: &mut Message, spacing: Spacing, now: Instant, bytes: &[u8]) -> Result<(), String> {
    // What repeats of a client draw has no schedule.
    let [.., before, last] = message.copies[..] else { return Ok(()) };
    let (wait, earlier) = (now.since(last), last.since(before));
    let grown = |growth| wait.mul_f64(1.15) + Duration::from_millis(110) >= earlier.mul_f64(growth);
    if spacing.most == usize::MAX {
        return Ok(());
    }
    if message.is_last {
        return Err(format!("a copy of {} after the last one", describe(bytes)));
    }
    if !grown(spacing.growth) {
        message.is_last = spacing.stretched && grown(1.0);
    }
    if !grown(spacing.growth) && !message.is_last {
        let copy = message.copies.len() + 1;
        return Err(format!(
            "copy {copy} of {} after {wait:?}, the wait before was {earlier:?}",
            describe(bytes)
        ));
    }
    Ok(())
}
