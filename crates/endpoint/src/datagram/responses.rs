//! Responses to requests of peers: piggybacked, separate, Non-confirmable or none (RFC 7252 §5.2).

use coapway_message::{Content, ExchangeId, Failure, MessageType, datagram};
use coapway_time::Instant;

use super::account::ALWAYS_FITS;
use super::duplicates::Reply;
use super::endpoint::Endpoint;
use super::launch::Launch;
use super::message::{Answered, Kind};
use super::peers::PeerNumber;
use super::pending::{Answerable, Deadline, Due, Pending};
use super::retransmission::Schedule;
use super::turns::{Turn, Waiting};
use crate::event::{Event, Refused};

impl Endpoint {
    /// Answers a request of a peer, in the Acknowledgement while it is open, separately after it
    /// left empty, Non-confirmable where the request was.
    ///
    /// A separate response leaves when it is its turn towards its client (NSTART). When that has not
    /// come within `max_wait`, or when too many wait already, it leaves once and Non-confirmable.
    /// Shape:  `content` is a response; the request's token is put before it here.
    /// Errors: [`Refused::Unknown`] when the request was answered before, [`Refused::MessageIds`]
    ///         when none is free towards the client: nothing was sent, the request is over.
    ///         [`Refused::Unverified`]: nothing was sent, the request is still open.
    /// Source: RFC 7252 §4.7, §5.2, §11.3.
    pub fn respond(
        &mut self,
        exchange: ExchangeId,
        content: &Content<'_>,
        now: Instant,
    ) -> Result<(), Refused> {
        let Some(&pending) = self.pending.get(exchange) else { return Err(Refused::Unknown) };
        let Pending { peer, message_id, entry, verified, answerable, timer, .. } = pending;
        if !verified {
            self.admit(&pending, content)?;
        }
        let token = self.pending.end(exchange, &pending);
        let token = token.as_bytes();
        let responded = match answerable {
            Answerable::Piggybacked => {
                self.no_early_acknowledgement(exchange, timer);
                let bytes =
                    self.outbox.encode(peer, MessageType::Acknowledgement, message_id, token, content);
                self.counters.forgotten += self.duplicates.set_datagram(&mut self.peers, entry, bytes);
                Ok(())
            }
            Answerable::Separate => {
                let answered = Answered { request: exchange, entry, verified };
                self.respond_separately(peer, answered, token, content, now)
            }
            Answerable::NonConfirmable => self.respond_unconfirmed(peer, token, content, now),
        };
        self.peers.release(peer);
        responded
    }

    fn respond_unconfirmed(
        &mut self,
        peer: PeerNumber,
        token: &[u8],
        content: &Content<'_>,
        now: Instant,
    ) -> Result<(), Refused> {
        let lifetime = self.parameters.transmission.non_lifetime();
        let taken = self.message_ids.take_for_response(&mut self.peers, peer, lifetime, now);
        let Some(message_id) = taken else {
            self.counters.unsendable += 1;
            return Err(Refused::MessageIds);
        };
        self.outbox.encode(peer, MessageType::NonConfirmable, message_id, token, content);
        Ok(())
    }

    /// Ends a request of a peer without any response: a Confirmable one is acknowledged empty if that
    /// has not happened, and its repeats are as well.
    ///
    /// Errors: [`Refused::Unknown`] when the request was answered before.
    /// Source: RFC 7967 §2.
    pub fn stay_silent(&mut self, exchange: ExchangeId, _now: Instant) -> Result<(), Refused> {
        self.acknowledge(exchange);
        let Some(&pending) = self.pending.get(exchange) else { return Err(Refused::Unknown) };
        self.pending.end(exchange, &pending);
        self.peers.release(pending.peer);
        Ok(())
    }

    /// Counts the first copy of an answer against what an unverified address may get.
    fn admit(&mut self, pending: &Pending, content: &Content<'_>) -> Result<(), Refused> {
        let bytes = encoded_length(self.pending.token_length(pending), content);
        let fits = match self.duplicates.account(pending.entry) {
            Some(account) => account.spend(bytes),
            None => bytes <= ALWAYS_FITS,
        };
        if fits { Ok(()) } else { Err(Refused::Unverified) }
    }

    fn respond_separately(
        &mut self,
        peer: PeerNumber,
        answered: Answered,
        token: &[u8],
        content: &Content<'_>,
        now: Instant,
    ) -> Result<(), Refused> {
        let encode = |buffer: &mut Vec<u8>, message_id| {
            datagram::encode(buffer, MessageType::Confirmable, message_id, token, content);
        };
        let turn = self.turns.take(&mut self.peers, peer, self.parameters.nstart);
        if turn == Turn::Now {
            let started = self.start_response(peer, answered, encode, now);
            if started.is_err() {
                self.end_turn(peer, now);
            }
            return started;
        }
        let mut datagram = Vec::new();
        encode(&mut datagram, 0);
        if turn == Turn::Never {
            self.leave_unconfirmed(peer, answered.request, &mut datagram, Failure::Overloaded, now);
            return Ok(());
        }
        let patience = now + self.parameters.max_wait;
        let timer = self.timers.insert(patience, Deadline::new(Due::Turn(self.turns.next_place())));
        self.counters.waited += 1;
        self.turns.wait(Waiting { peer, answered, datagram, timer });
        Ok(())
    }

    /// The first copy of a separate response leaves.
    fn start_response(
        &mut self,
        peer: PeerNumber,
        answered: Answered,
        encode: impl FnOnce(&mut Vec<u8>, u16),
        now: Instant,
    ) -> Result<(), Refused> {
        let schedule = Schedule::of_response(&self.parameters.transmission, self.parameters.max_wait, now);
        let launch =
            Launch { peer, kind: Kind::Response, schedule: &schedule, answered: Some(answered), token: None };
        let Some(response) = self.launch(&launch, now, |buffer, message_id, _| encode(buffer, message_id))
        else {
            self.counters.unsendable += 1;
            return Err(Refused::MessageIds);
        };
        self.duplicates.set_reply(answered.entry, Reply::Separate(response));
        Ok(())
    }

    /// A response to `peer` no longer counts as under way: those behind it may leave.
    pub(super) fn end_turn(&mut self, peer: PeerNumber, now: Instant) {
        self.turns.end(peer);
        while let Some(Waiting { answered, datagram, timer, .. }) = self.turns.next(&mut self.peers, peer) {
            self.timers.cancel(timer);
            let encode = |buffer: &mut Vec<u8>, message_id| {
                let start = buffer.len();
                buffer.extend_from_slice(&datagram);
                write_message_id(buffer.get_mut(start..).unwrap_or_default(), message_id);
            };
            if self.start_response(peer, answered, encode, now).is_err() {
                self.turns.end(peer);
                let (exchange, outcome) = (answered.request, Err(Failure::Overloaded));
                self.events.push_back(Event::Delivered { exchange, outcome, copies: 0 });
            }
        }
    }

    /// A response has waited for its turn long enough.
    pub(super) fn turn_did_not_come(&mut self, place: u32, now: Instant) {
        let Some(Waiting { peer, answered, mut datagram, .. }) = self.turns.give_up(place) else { return };
        self.leave_unconfirmed(peer, answered.request, &mut datagram, Failure::TimedOut, now);
    }

    /// A separate response leaves once, Non-confirmable (RFC 7252 §5.2.3).
    fn leave_unconfirmed(
        &mut self,
        peer: PeerNumber,
        request: ExchangeId,
        datagram: &mut [u8],
        failure: Failure,
        now: Instant,
    ) {
        let lifetime = self.parameters.transmission.non_lifetime();
        let message_id = self.message_ids.take_for_response(&mut self.peers, peer, lifetime, now);
        if let (Some(message_id), Some(first)) = (message_id, datagram.first_mut()) {
            *first |= (MessageType::NonConfirmable as u8) << 4;
            write_message_id(datagram, message_id);
            self.outbox.push(peer, datagram);
            self.counters.unconfirmed += 1;
        } else {
            self.counters.unsendable += 1;
        }
        let (outcome, copies) = (Err(failure), u32::from(message_id.is_some()));
        self.events.push_back(Event::Delivered { exchange: request, outcome, copies });
    }
}

fn write_message_id(datagram: &mut [u8], message_id: u16) {
    if let Some(place) = datagram.get_mut(2..4) {
        place.copy_from_slice(&message_id.to_be_bytes());
    }
}

/// How many bytes a message with this token and content takes (RFC 7252 §3; RFC 8974 §2.1).
fn encoded_length(token: usize, content: &Content<'_>) -> usize {
    let extension = match token {
        0..=12 => 0,
        13..=268 => 1,
        _ => 2,
    };
    let payload = content.payload.len();
    4 + extension + token + content.options.as_encoded().len() + usize::from(payload > 0) + payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_known_before_encoding() {
        for token in [0, 1, 8, 12, 13, 268, 269, 1024] {
            for payload in [0, 1, 100] {
                let token = vec![1; token];
                let payload = vec![2; payload];
                let content = Content { payload: &payload, ..Content::bare(coapway_message::Code::CONTENT) };
                let mut bytes = Vec::new();
                datagram::encode(&mut bytes, MessageType::Confirmable, 1, &token, &content);
                assert_eq!(encoded_length(token.len(), &content), bytes.len());
            }
        }
    }
}
