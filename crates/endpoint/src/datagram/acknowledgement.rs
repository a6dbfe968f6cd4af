//! Requests of peers: piggybacked or separate response, Acknowledgement in time, one answer for all
//! copies (RFC 7252 §4.5, §5.2).

use coapway_message::{Code, Content, Datagram, ExchangeId, MessageType, OptionNumber, Token, datagram};
use coapway_time::Instant;

use super::duplicates::{Class, EntryId, Known, Reply};
use super::endpoint::Endpoint;
use super::pending::{Answerable, Deadline, Pending};
use super::retransmission::{Kind, Schedule};
use crate::event::{Event, Gate, Received, Refused};
use crate::peer::Peer;
use crate::trace::Copy;

impl Endpoint {
    pub(super) fn handle_request<'d>(
        &mut self,
        peer: Peer,
        bytes: &[u8],
        datagram: &Datagram<'d>,
        now: Instant,
        gate: impl FnOnce() -> Gate,
    ) -> Received<'d> {
        let &Datagram { message_type, message_id, token, content } = datagram;
        let confirmable = message_type == MessageType::Confirmable;
        let class = class(confirmable, &content);
        let digest = self.duplicates.digest(bytes);
        let known = self.duplicates.find(&peer, message_id, digest);
        if let Known::Repeated(entry) = known {
            self.repeat(peer, message_id, entry, now);
            return Received::Nothing;
        }
        if gate() == Gate::Drop {
            self.counters.dropped += 1;
            return Received::Nothing;
        }
        let entry = match known {
            Known::Repeated(entry) => entry,
            Known::Reused(entry) => {
                self.counters.reused_message_ids += 1;
                self.duplicates.replace(entry, digest, class, now)
            }
            Known::New => {
                let (entry, forgotten) = self.duplicates.remember(peer, message_id, digest, class, now);
                self.counters.forgotten += forgotten;
                match entry {
                    Some(entry) => entry,
                    None => {
                        self.refuse(peer, datagram);
                        return Received::Nothing;
                    }
                }
            }
        };
        let answerable = if confirmable {
            let deadline = now + self.parameters.early_ack_after;
            Answerable::Piggybacked(
                self.timers.insert(deadline, Deadline::Acknowledge(self.pending.next_id())),
            )
        } else {
            Answerable::NonConfirmable
        };
        let exchange =
            self.pending.insert(Pending { peer, message_id, token: Token::new(token), entry, answerable });
        if confirmable {
            self.duplicates.set_reply(entry, Reply::Open(exchange));
        }
        Received::Request { exchange, confirmable, message_id, token, content }
    }

    /// The memory is full of requests that must not be done twice: one more of them cannot be taken.
    fn refuse(&mut self, peer: Peer, datagram: &Datagram<'_>) {
        self.counters.refused += 1;
        if datagram.message_type == MessageType::Confirmable {
            let mut options = Vec::new();
            let mut writer = coapway_message::OptionsWriter::new(&mut options);
            writer.push_uint(OptionNumber::MAX_AGE, 30);
            let content = Content {
                code: Code::SERVICE_UNAVAILABLE,
                options: writer.finish(),
                payload: b"not-sent: too many requests to remember",
            };
            let acknowledgement = MessageType::Acknowledgement;
            self.outbox.encode(peer, acknowledgement, datagram.message_id, datagram.token, &content);
        }
    }

    fn repeat(&mut self, peer: Peer, message_id: u16, entry: EntryId, now: Instant) {
        self.counters.duplicates += 1;
        let open = match self.duplicates.reply(entry) {
            Some(Reply::Datagram(bytes)) => {
                self.outbox.push(peer, bytes);
                None
            }
            Some(&Reply::EmptyAcknowledgement(response)) => {
                self.outbox.empty(peer, MessageType::Acknowledgement, message_id);
                if let Some(response) = response {
                    self.draw_anew(response, now);
                }
                None
            }
            Some(&Reply::Open(exchange)) => Some(exchange),
            Some(Reply::Silence) | None => None,
        };
        self.events.push_back(Event::Repeated { exchange: open });
        if let Some(exchange) = open {
            // The client's own timer fired: it has waited long enough for an Acknowledgement.
            self.acknowledge_early(exchange);
        }
    }

    /// A repeated request shows that its separate response did not arrive: one more copy now, no
    /// sooner than ACK_TIMEOUT after the last, and the timer's next one keeps its distance to it.
    fn draw_anew(&mut self, response: ExchangeId, now: Instant) {
        let Some(transmission) = self.transmissions.get_mut(response) else { return };
        let Some(&Copy { sent, timeout }) = transmission.trace.copies.last() else { return };
        let schedule = &transmission.schedule;
        if now.since(sent) < schedule.timeout || now >= schedule.deadline {
            return;
        }
        transmission.trace.copies.push(Copy { sent: now, timeout });
        if let Some(timer) = transmission.timer.take() {
            self.timers.cancel(timer);
        }
        let wake = transmission.schedule.deadline.min(now + timeout);
        transmission.timer = Some(self.timers.insert(wake, Deadline::Transmission(response)));
        self.counters.retransmissions += 1;
        if let Some(bytes) = self.datagrams.get(response.slot as usize) {
            self.outbox.push(transmission.trace.peer, bytes);
        }
    }

    /// Sends the empty Acknowledgement of a request that is not answered yet, if it has not left.
    pub fn acknowledge_early(&mut self, exchange: ExchangeId) {
        let Some(pending) = self.pending.get_mut(exchange) else { return };
        let Answerable::Piggybacked(timer) = pending.answerable else { return };
        self.timers.cancel(timer);
        pending.answerable = Answerable::Separate;
        let (peer, message_id, entry) = (pending.peer, pending.message_id, pending.entry);
        self.duplicates.set_reply(entry, Reply::EmptyAcknowledgement(None));
        self.outbox.empty(peer, MessageType::Acknowledgement, message_id);
        self.events.push_back(Event::EmptyAckSent { exchange });
    }

    /// Answers a request of a peer, in the Acknowledgement while it is open, separately after it
    /// left empty, Non-confirmable where the request was.
    ///
    /// Shape:  `content` is a response; the request's token is put before it here.
    /// Errors: [`Refused::Unknown`] when the request was answered before, [`Refused::MessageIds`]
    ///         when none is free towards the client: nothing was sent, the request is over.
    /// Source: RFC 7252 §5.2.
    pub fn respond(
        &mut self,
        exchange: ExchangeId,
        content: &Content<'_>,
        now: Instant,
    ) -> Result<(), Refused> {
        let Pending { peer, message_id, token, entry, answerable } =
            self.pending.remove(exchange).ok_or(Refused::Unknown)?;
        match answerable {
            Answerable::Piggybacked(timer) => {
                self.timers.cancel(timer);
                let acknowledgement = MessageType::Acknowledgement;
                let bytes = self.outbox.encode(peer, acknowledgement, message_id, token.as_bytes(), content);
                self.duplicates.set_reply(entry, Reply::Datagram(bytes.into()));
                Ok(())
            }
            Answerable::Separate => self.respond_separately(exchange, peer, &token, entry, content, now),
            Answerable::NonConfirmable => {
                let lifetime = self.parameters.transmission.non_lifetime();
                let Some(message_id) = self.message_ids.take(peer, lifetime, now) else {
                    self.counters.unsendable += 1;
                    return Err(Refused::MessageIds);
                };
                let non_confirmable = MessageType::NonConfirmable;
                self.outbox.encode(peer, non_confirmable, message_id, token.as_bytes(), content);
                Ok(())
            }
        }
    }

    /// Ends a request of a peer without any response: a Confirmable one is acknowledged empty if that
    /// has not happened.
    ///
    /// Errors: [`Refused::Unknown`] when the request was answered before.
    /// Source: RFC 7967 §2.
    pub fn stay_silent(&mut self, exchange: ExchangeId, _now: Instant) -> Result<(), Refused> {
        self.acknowledge_early(exchange);
        self.pending.remove(exchange).map(drop).ok_or(Refused::Unknown)
    }

    fn respond_separately(
        &mut self,
        request: ExchangeId,
        peer: Peer,
        token: &Token,
        entry: EntryId,
        content: &Content<'_>,
        now: Instant,
    ) -> Result<(), Refused> {
        let max_wait = self.parameters.max_wait;
        let schedule = Schedule {
            stretch: max_wait.mul_f64(0.8),
            deadline: now + max_wait,
            last_copy_before: now + max_wait,
            lifetime: self.parameters.transmission.exchange_lifetime() + max_wait,
            ..Schedule::new(&self.parameters.transmission, now)
        };
        let Some((response, message_id, _)) = self.begin(peer, Kind::Response(request), true, schedule, now)
        else {
            self.counters.unsendable += 1;
            return Err(Refused::MessageIds);
        };
        let buffer = &mut self.datagrams[response.slot as usize];
        datagram::encode(buffer, MessageType::Confirmable, message_id, token.as_bytes(), content);
        self.duplicates.set_reply(entry, Reply::EmptyAcknowledgement(Some(response)));
        self.start(response, now);
        Ok(())
    }

    /// From whom an unanswered request came.
    pub fn requester(&self, exchange: ExchangeId) -> Option<Peer> {
        self.pending.get(exchange).map(|pending| pending.peer)
    }
}

/// Requests that must not be done twice are remembered more firmly.
fn class(confirmable: bool, content: &Content<'_>) -> Class {
    let once = matches!(content.code, Code::POST | Code::PATCH)
        || content.options.first(OptionNumber::OSCORE).is_some();
    match (confirmable, once) {
        (true, true) => Class::Kept,
        (true, false) => Class::Confirmable,
        (false, _) => Class::NonConfirmable,
    }
}
