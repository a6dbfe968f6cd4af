//! Requests of peers: Acknowledgement in time, one answer for all copies (RFC 7252 §4.5, §5.2).

use coapway_message::{
    Code, Content, Datagram, ExchangeId, MessageType, OptionNumber, OptionsWriter, datagram,
};
use coapway_time::{Instant, TimerId};

use super::account::Account;
use super::duplicates::{Class, EntryId, Known, Message, Reply};
use super::endpoint::Endpoint;
use super::message::Kind;
use super::peers::{PeerNumber, Sender};
use super::pending::{Answerable, Deadline, Due, Pending};
use crate::event::{Event, Gate, Received};
use crate::peer::Peer;
use crate::trace::Copy;

/// Longer tokens are understood and echoed and otherwise not dealt with (RFC 8974 §2.1).
const MAX_TOKEN_LENGTH: usize = 1024;

impl Endpoint {
    /// Inlined, as all that each datagram goes through once: its arguments and results are large.
    #[inline(always)]
    pub(super) fn handle_request<'d>(
        &mut self,
        sender: &Sender<'_>,
        bytes: &[u8],
        datagram: &Datagram<'d>,
        now: Instant,
        gate: impl FnOnce() -> Gate,
    ) -> Received<'d> {
        let &Datagram { message_type, message_id, token, content } = datagram;
        let confirmable = message_type == MessageType::Confirmable;
        let class = class(confirmable, &content);
        let digest = self.duplicates.digest(bytes);
        let mut known = Known::New(0);
        if let Some(peer) = sender.number {
            known = self.duplicates.find(peer, message_id, digest, now);
            if let Known::Repeated(entry) = known {
                self.repeat(peer, message_id, entry, bytes.len(), now);
                return Received::Nothing;
            }
        }
        let account = match gate() {
            Gate::Take => Account::VERIFIED,
            Gate::TakeUnverified => Account::unverified(bytes.len()),
            Gate::Drop => {
                self.counters.dropped += 1;
                return Received::Nothing;
            }
        };
        let verified = account == Account::VERIFIED;
        let exchange = self.pending.next_id();
        let reply = if confirmable { Reply::Open(exchange) } else { Reply::Silence };
        let peer = self.peers.add(sender);
        let message = Message { peer, message_id, digest, class, account, reply };
        let entry = match known {
            Known::Repeated(entry) => entry,
            Known::Expired(entry) => self.duplicates.replace(&mut self.peers, entry, &message, now),
            Known::Reused(entry) => {
                self.counters.reused_message_ids += 1;
                self.duplicates.replace(&mut self.peers, entry, &message, now)
            }
            Known::New(hash) => {
                let is_stranger = sender.number.is_none();
                let hash = if is_stranger { self.duplicates.hash(peer, message_id) } else { hash };
                let (entry, forgotten) = self.duplicates.remember(&mut self.peers, hash, &message, now);
                self.counters.forgotten += forgotten;
                match entry {
                    Some(entry) => entry,
                    None => {
                        self.refuse(sender, datagram, verified);
                        return Received::Nothing;
                    }
                }
            }
        };
        let mut pending = Pending::new(peer, message_id, entry, verified);
        if confirmable {
            let deadline = now + self.parameters.early_ack_after;
            if self.acknowledgements.push(deadline, exchange).is_err() {
                let due = Deadline::new(Due::Acknowledge(exchange.slot));
                pending.timer = Some(self.timers.insert(deadline, due));
            }
        } else {
            pending.answerable = Answerable::NonConfirmable;
        }
        self.pending.add(pending, token);
        self.peers.hold(peer);
        if token.len() > MAX_TOKEN_LENGTH {
            self.counters.long_tokens += 1;
            let mut options = Vec::new();
            let mut writer = OptionsWriter::new(&mut options);
            writer.push_uint(OptionNumber::MAX_AGE, 0);
            let options = writer.finish();
            // Less than three times the request, so that it fits whoever sent that; a NON may go without.
            let content = Content { code: Code::BAD_REQUEST, options, payload: b"token too long" };
            let _ = self.respond(exchange, &content, now);
            return Received::Nothing;
        }
        Received::Request { exchange, confirmable, message_id, token, content }
    }

    /// The memory is full of requests that must not be done twice: one more of them cannot be taken.
    /// It is not remembered either, so that an unverified sender gets no text: each copy stands alone.
    fn refuse(&mut self, sender: &Sender<'_>, request: &Datagram<'_>, verified: bool) {
        self.counters.refused += 1;
        if request.message_type == MessageType::Confirmable {
            let mut options = Vec::new();
            let mut writer = OptionsWriter::new(&mut options);
            writer.push_uint(OptionNumber::MAX_AGE, 30);
            let content = Content {
                code: Code::SERVICE_UNAVAILABLE,
                options: writer.finish(),
                payload: if verified { b"not-sent: too many requests to remember" } else { &[] },
            };
            let (acknowledgement, mut bytes) = (MessageType::Acknowledgement, Vec::new());
            datagram::encode(&mut bytes, acknowledgement, request.message_id, request.token, &content);
            self.outbox.reply(sender, &bytes);
        }
    }

    fn repeat(&mut self, peer: PeerNumber, message_id: u16, entry: EntryId, bytes: usize, now: Instant) {
        self.counters.duplicates += 1;
        if let Some(account) = self.duplicates.account(entry) {
            account.receive(bytes);
        }
        let (reply, open, response) = match self.duplicates.reply(entry) {
            Some(Reply::Datagram(extent)) => (Some(extent.len()), None, None),
            Some(Reply::EmptyAcknowledgement) => (Some(EMPTY), None, None),
            Some(Reply::Separate(response)) => (Some(EMPTY), None, Some(response)),
            Some(Reply::Open(exchange)) => (None, Some(exchange), None),
            Some(Reply::Silence) | None => (None, None, None),
        };
        if reply.is_some_and(|bytes| self.spend(entry, bytes)) {
            match self.duplicates.datagram(entry) {
                Some(datagram) => self.outbox.push(peer, datagram),
                None => self.outbox.empty(peer, MessageType::Acknowledgement, message_id),
            }
        }
        if let Some(response) = response {
            self.draw_anew(response, now);
        }
        self.events.push_back(Event::Repeated { exchange: open });
        if let Some(exchange) = open {
            // The client's own timer fired: it has waited long enough for an Acknowledgement.
            self.acknowledge_early(exchange);
        }
    }

    /// A repeated request shows that its separate response did not arrive: one more copy now, if one
    /// may leave, and the timer's next one keeps its distance to it.
    fn draw_anew(&mut self, response: ExchangeId, now: Instant) {
        let Some(message) = self.messages.get(response) else { return };
        let Some(active) = message.active.and_then(|number| self.active.get(number)) else { return };
        debug_assert_eq!(message.kind, Kind::Response);
        let deadline = message.deadline;
        let timeout = active.further.last().map_or(active.first_wait, Copy::timeout);
        if active.may_leave_at(message, now) && self.is_admitted(response) {
            self.copy(response, now, Some(timeout));
            self.wake_at(response, deadline.min(now + timeout));
        }
    }

    /// Sends the empty Acknowledgement of a request that is not answered yet, if it has not left.
    ///
    /// Source: RFC 7252 §5.2.2.
    pub fn acknowledge_early(&mut self, exchange: ExchangeId) {
        if self.acknowledge(exchange) {
            self.events.push_back(Event::EmptyAckSent { exchange });
        }
    }

    /// The same without a word; says whether it left now.
    pub(super) fn acknowledge(&mut self, exchange: ExchangeId) -> bool {
        let Some(pending) = self.pending.get_mut(exchange) else { return false };
        if !pending.is_acknowledged_later() {
            return false;
        }
        pending.answerable = Answerable::Separate;
        let timer = pending.timer.take();
        let (peer, message_id, entry) = (pending.peer, pending.message_id, pending.entry);
        match timer {
            Some(timer) => drop(self.timers.cancel(timer)),
            // Its own may have been taken out before.
            None => {
                let is_over = |&id: &_| !self.pending.get(id).is_some_and(Pending::is_acknowledged_later);
                self.acknowledgements.forget_while(is_over);
            }
        }
        self.duplicates.set_reply(entry, Reply::EmptyAcknowledgement);
        if let Some(account) = self.duplicates.account(entry) {
            let fits = account.spend(EMPTY);
            debug_assert!(fits, "as many came as leave");
        }
        self.outbox.empty(peer, MessageType::Acknowledgement, message_id);
        true
    }

    /// The early Acknowledgement of a request that is answered is not waited for any more.
    #[inline]
    pub(super) fn no_early_acknowledgement(&mut self, exchange: ExchangeId, timer: Option<TimerId>) {
        match timer {
            Some(timer) => drop(self.timers.cancel(timer)),
            None => {
                let is_over = |&id: &_| !self.pending.get(id).is_some_and(Pending::is_acknowledged_later);
                self.acknowledgements.forget(&exchange, is_over);
            }
        }
    }

    /// Whether so many further bytes may leave because of a request; what does not is counted.
    pub(super) fn spend(&mut self, entry: EntryId, bytes: usize) -> bool {
        let fits = self.duplicates.account(entry).is_some_and(|account| account.spend(bytes));
        if !fits {
            self.counters.withheld += 1;
        }
        fits
    }

    /// From whom an unanswered request came.
    pub fn requester(&self, exchange: ExchangeId) -> Option<Peer> {
        self.pending.get(exchange).map(|pending| self.peers.get(pending.peer))
    }
}

/// Bytes of an Empty message.
const EMPTY: usize = 4;

/// Requests that must not be done twice are remembered more firmly.
fn class(confirmable: bool, content: &Content<'_>) -> Class {
    let once = matches!(content.code, Code::POST | Code::PATCH)
        || content.options.first(OptionNumber::OSCORE).is_some();
    match (confirmable, once) {
        (true, true) => Class::Kept,
        (true, false) => Class::Confirmable,
        (false, true) => Class::KeptNonConfirmable,
        (false, false) => Class::NonConfirmable,
    }
}
