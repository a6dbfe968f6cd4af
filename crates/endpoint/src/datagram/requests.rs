//! Our requests and their responses (RFC 7252 §5.2, §5.3).

use coapway_message::{Content, Datagram, ExchangeId, MessageType, OptionNumber, Token, datagram};
use coapway_time::Instant;

use super::endpoint::Endpoint;
use super::preserved::Preserved;
use super::retransmission::{Kind, Schedule, Transmission};
use crate::event::{Received, Refused};
use crate::peer::Peer;
use crate::trace::{AnswerKind, Trace};

impl Endpoint {
    /// Starts a request to `peer`.
    ///
    /// The caller keeps the returned name and sees it again in exactly one of
    /// [`Received::Response`] and [`crate::Event::Failed`], unless it cancels the exchange.
    /// Shape:  `content` is a request; the Message ID is chosen here, and so is the token unless one
    ///         is given that [`Endpoint::is_token_free`]. The [`Trace`] says which it is.
    /// Units:  the schedule's instants are of the same clock as `now`.
    /// Errors: [`Refused::MessageIds`]; nothing was sent.
    /// Source: RFC 7252 §4.2, §4.3, §5.3.1.
    pub fn send_request(
        &mut self,
        peer: Peer,
        confirmable: bool,
        token: Option<&[u8]>,
        content: &Content<'_>,
        schedule: Schedule,
        now: Instant,
    ) -> Result<ExchangeId, Refused> {
        let preserved = token.filter(|token| self.is_token_free(&peer, token, now));
        let message_type = if confirmable { MessageType::Confirmable } else { MessageType::NonConfirmable };
        let (exchange, message_id) =
            self.begin(peer, Kind::Request, confirmable, schedule, now).ok_or(Refused::MessageIds)?;
        let token = match preserved {
            Some(token) => Token::new(token),
            None => Token::new(&self.tokens.token(exchange)),
        };
        let buffer = &mut self.datagrams[exchange.slot as usize];
        datagram::encode(buffer, message_type, message_id, token.as_bytes(), content);
        if preserved.is_some() {
            self.counters.preserved_tokens += 1;
            self.preserved.take(peer, &token, exchange, schedule.deadline, now);
        }
        if let Some(transmission) = self.transmissions.get_mut(exchange) {
            transmission.preserved = preserved.is_some();
            transmission.trace.token = token;
        }
        self.start(exchange, now);
        Ok(exchange)
    }

    /// Starts a CoAP ping: an Empty Confirmable message, which every peer answers with a Reset.
    ///
    /// Ends in [`crate::Event::Alive`] or [`crate::Event::Failed`]. Source: RFC 7252 §4.3.
    pub fn send_ping(&mut self, peer: Peer, schedule: Schedule, now: Instant) -> Result<ExchangeId, Refused> {
        let (exchange, message_id) =
            self.begin(peer, Kind::Ping, true, schedule, now).ok_or(Refused::MessageIds)?;
        let buffer = &mut self.datagrams[exchange.slot as usize];
        buffer.extend_from_slice(&datagram::empty(MessageType::Confirmable, message_id));
        self.start(exchange, now);
        Ok(exchange)
    }

    /// Gives an exchange up: no further copy leaves and no event comes. A response that still
    /// arrives counts as late. Returns how it went so far.
    pub fn cancel(&mut self, exchange: ExchangeId) -> Option<&Trace> {
        if self.end(exchange) { self.ended(exchange) } else { None }
    }

    /// No further copy of a request leaves; a response is still waited for.
    pub fn stop_copies(&mut self, exchange: ExchangeId) {
        if let Some(transmission) = self.transmissions.get_mut(exchange) {
            transmission.schedule.max_retransmit = 0;
        }
    }

    /// Whether a request to `peer` may carry this token of the caller's: 4 to 8 bytes, neither in use
    /// nor resting after use, and none that stands or stood for an exchange of ours.
    ///
    /// Source: R-USR-07.
    pub fn is_token_free(&self, peer: &Peer, token: &[u8], now: Instant) -> bool {
        self.preserved.is_free(peer, token, now)
            && self.tokens.exchange(token).is_none_or(|exchange| {
                self.transmissions.get(exchange).is_none() && !self.transmissions.is_over(exchange)
            })
    }

    /// The content of a request of ours that is under way or has just ended.
    pub fn sent_content(&self, exchange: ExchangeId) -> Option<Content<'_>> {
        let transmission =
            self.transmissions.get(exchange).or_else(|| self.transmissions.removed(exchange))?;
        let bytes = self.datagrams.get(exchange.slot as usize)?;
        (transmission.kind == Kind::Request)
            .then(|| Datagram::parse(bytes).ok())?
            .map(|datagram| datagram.content)
    }

    /// How an exchange went so far.
    pub fn trace(&self, exchange: ExchangeId) -> Option<&Trace> {
        self.transmissions.get(exchange).map(|transmission| &transmission.trace)
    }

    /// The request under way to `peer` that this token belongs to.
    pub(super) fn live_request(&self, peer: Peer, token: &[u8]) -> Option<ExchangeId> {
        match self.preserved.find(&peer, token) {
            Some(Preserved::Live(exchange)) => return Some(exchange),
            Some(Preserved::Resting) => return None,
            None => {}
        }
        let exchange = self.tokens.exchange(token)?;
        let transmission = self.transmissions.get(exchange)?;
        let ours =
            transmission.kind == Kind::Request && transmission.trace.peer == peer && !transmission.preserved;
        ours.then_some(exchange)
    }

    /// Takes the Confirmable request under way to `peer` with this Message ID and token out of the table
    /// of Message IDs.
    fn take_asked(&mut self, peer: Peer, message_id: u16, token: &[u8]) -> Option<ExchangeId> {
        let exchange = self.by_message_id.remove(peer, message_id)?;
        let is_asked =
            self.transmissions.get(exchange).is_some_and(|Transmission { kind, trace, .. }| {
                *kind == Kind::Request && trace.confirmable && trace.token.as_bytes() == token
            });
        if !is_asked {
            self.by_message_id.insert(peer, message_id, exchange);
        }
        is_asked.then_some(exchange)
    }

    pub(super) fn handle_response<'d>(
        &mut self,
        peer: Peer,
        datagram: &Datagram<'d>,
        now: Instant,
    ) -> Received<'d> {
        let &Datagram { message_type, message_id, token, content } = datagram;
        let piggybacked = message_type == MessageType::Acknowledgement;
        let exchange = if piggybacked {
            self.take_asked(peer, message_id, token)
        } else {
            self.live_request(peer, token)
        };
        let Some(exchange) = exchange else {
            self.handle_stray_response(peer, datagram, now);
            return Received::Nothing;
        };
        if message_type == MessageType::Confirmable {
            self.outbox.empty(peer, MessageType::Acknowledgement, message_id);
        }
        let kind = match message_type {
            MessageType::Acknowledgement => AnswerKind::Piggybacked,
            MessageType::Confirmable => AnswerKind::Separate,
            MessageType::NonConfirmable | MessageType::Reset => AnswerKind::NonConfirmable,
        };
        if let Some(transmission) = self.transmissions.get_mut(exchange) {
            let trace = &mut transmission.trace;
            trace.answer = Some(kind);
            if piggybacked {
                trace.acks += 1;
                trace.first_ack.get_or_insert(now);
            }
        }
        let is_over = if piggybacked { self.end_nameless(exchange) } else { self.end(exchange) };
        if is_over { Received::Response { exchange, kind, content } } else { Received::Nothing }
    }

    /// A response that belongs to nothing under way. One to an exchange that is over is late or a
    /// repeat: acknowledged and dropped, so that its sender stops. A notification for an observation
    /// that is over, and anything unknown, is rejected.
    fn handle_stray_response(&mut self, peer: Peer, datagram: &Datagram<'_>, now: Instant) {
        let &Datagram { message_type, message_id, token, content } = datagram;
        if message_type == MessageType::Acknowledgement {
            // RFC 7252 §5.2.2: any Acknowledgement ends a separate response, whatever it carries.
            match self.by_message_id.get(peer, message_id) {
                Some(exchange) if self.is_response(exchange) => self.acknowledged(exchange, now),
                _ => self.acknowledged_nothing(peer, message_id),
            }
            return;
        }
        let over = self.preserved.find(&peer, token).is_some()
            || self.tokens.exchange(token).is_some_and(|exchange| self.transmissions.is_over(exchange));
        let notification = content.options.first(OptionNumber::OBSERVE).is_some();
        if over {
            self.counters.late += 1;
        } else {
            self.counters.unmatched += 1;
        }
        if message_type == MessageType::Confirmable {
            let reply = if over && !notification { MessageType::Acknowledgement } else { MessageType::Reset };
            self.outbox.empty(peer, reply, message_id);
        }
    }

    fn is_response(&self, exchange: ExchangeId) -> bool {
        self.transmissions
            .get(exchange)
            .is_some_and(|transmission| matches!(transmission.kind, Kind::Response(_)))
    }
}
