//! Our requests and their responses (RFC 7252 §5.2, §5.3).

use coapway_message::{Content, Datagram, ExchangeId, MessageType, OptionNumber, datagram};
use coapway_time::Instant;

use super::course::Course;
use super::endpoint::Endpoint;
use super::launch::Launch;
use super::message::{Bond, Kind};
use super::peers::{PeerNumber, Sender};
use super::pending::ShortToken;
use super::preserved::Preserved;
use super::retransmission::Schedule;
use crate::event::{Received, Refused};
use crate::peer::Peer;
use crate::trace::AnswerKind;

impl Endpoint {
    /// Starts a request to `peer`.
    ///
    /// The caller keeps the returned name and sees it again in exactly one of
    /// [`Received::Response`] and [`crate::Event::Failed`], unless it cancels the exchange.
    /// Shape:  `content` is a request; the Message ID is chosen here, and so is the token unless one
    ///         is given that [`Endpoint::is_token_free`]. The [`Course`] says which it is.
    /// Units:  the schedule's instants are of the same clock as `now`.
    /// Errors: [`Refused::MessageIds`]; nothing was sent.
    /// Source: RFC 7252 §4.2, §4.3, §5.3.1.
    pub fn send_request(
        &mut self,
        peer: &Peer,
        confirmable: bool,
        token: Option<&[u8]>,
        content: &Content<'_>,
        schedule: &Schedule,
        now: Instant,
    ) -> Result<ExchangeId, Refused> {
        let (kind, message_type) = if confirmable {
            (Kind::Request, MessageType::Confirmable)
        } else {
            (Kind::NonConfirmable, MessageType::NonConfirmable)
        };
        let token = token.filter(|token| self.is_token_free(peer, token, now)).and_then(ShortToken::new);
        let peer = self.known(peer);
        let launch = Launch { peer, kind, schedule, answered: None, token };
        let launched = self.launch(&launch, now, |buffer, message_id, token| {
            datagram::encode(buffer, message_type, message_id, token, content);
        });
        let exchange = launched.ok_or(Refused::MessageIds)?;
        if let Some(token) = &token {
            self.preserve(peer, token, exchange, schedule.deadline, now);
        }
        Ok(exchange)
    }

    #[inline]
    fn known(&mut self, peer: &Peer) -> PeerNumber {
        let sender = self.peers.sender(peer);
        self.peers.add(&sender)
    }

    /// The token of an exchange is one of the caller's.
    fn preserve(
        &mut self,
        peer: PeerNumber,
        token: &ShortToken,
        exchange: ExchangeId,
        deadline: Instant,
        now: Instant,
    ) {
        self.counters.preserved_tokens += 1;
        self.preserved.take(&mut self.peers, peer, token.as_bytes(), exchange, deadline, now);
        if let Some(message) = self.messages.get_mut(exchange) {
            message.bond = Bond::Preserved;
        }
    }

    /// Starts a CoAP ping: an Empty Confirmable message, which every peer answers with a Reset.
    ///
    /// Ends in [`crate::Event::Alive`] or [`crate::Event::Failed`]. Source: RFC 7252 §4.3.
    pub fn send_ping(
        &mut self,
        peer: &Peer,
        schedule: &Schedule,
        now: Instant,
    ) -> Result<ExchangeId, Refused> {
        let peer = self.known(peer);
        let token = Some(ShortToken::default());
        let launch = Launch { peer, kind: Kind::Ping, schedule, answered: None, token };
        let launched = self.launch(&launch, now, |buffer, message_id, _| {
            buffer.extend_from_slice(&datagram::empty(MessageType::Confirmable, message_id));
        });
        launched.ok_or(Refused::MessageIds)
    }

    /// Gives an exchange up: no further copy leaves and no event comes. A response that still
    /// arrives counts as late. Returns how it went so far.
    pub fn cancel(&mut self, exchange: ExchangeId) -> Option<Course<'_>> {
        if self.end(exchange) { self.ended(exchange) } else { None }
    }

    /// No further copy of a request leaves; a response is still waited for.
    pub fn stop_copies(&mut self, exchange: ExchangeId) {
        if let Some((_, active)) = self.active_message(exchange) {
            active.schedule.max_retransmit = 0;
        }
    }

    /// Whether a request to `peer` may carry this token of the caller's: 4 to 8 bytes, neither in use
    /// nor resting after use, and none that stands or stood for an exchange of ours.
    ///
    /// Source: R-USR-07.
    pub fn is_token_free(&self, peer: &Peer, token: &[u8], now: Instant) -> bool {
        self.preserved.is_free(self.peers.number(peer), token, now)
            && self.tokens.exchange(token).is_none_or(|exchange| {
                self.messages.get(exchange).is_none() && !self.messages.is_over(exchange)
            })
    }

    /// When there is a Message ID for a request to `peer`: `now`, or when one may be used again (RFC 7252 §4.4).
    pub fn message_id_is_free_at(&self, peer: &Peer, now: Instant) -> Instant {
        self.peers.number(peer).map_or(now, |peer| self.message_ids.next_free(&self.peers, peer, now))
    }

    /// The request under way to the sender that this token belongs to.
    pub(super) fn live_request(&self, sender: &Sender<'_>, token: &[u8]) -> Option<ExchangeId> {
        let peer = sender.number?;
        match self.preserved.find(peer, token) {
            Some(Preserved::Live(exchange)) => return Some(exchange),
            Some(Preserved::Resting) => return None,
            None => {}
        }
        let exchange = self.tokens.exchange(token)?;
        let message = self.messages.get(exchange)?;
        let ours = message.is_request() && message.peer == peer && message.bond != Bond::Preserved;
        ours.then_some(exchange)
    }

    /// The Confirmable request under way to the sender with this Message ID and token.
    #[inline]
    fn asked(&self, sender: &Sender<'_>, message_id: u16, token: &[u8]) -> Option<ExchangeId> {
        let exchange = self.under_way(sender, message_id)?;
        let message = self.messages.at(exchange.slot);
        (message.kind == Kind::Request && message.token.is(token)).then_some(exchange)
    }

    #[inline(always)]
    pub(super) fn handle_response<'d>(
        &mut self,
        sender: &Sender<'_>,
        datagram: &Datagram<'d>,
        now: Instant,
    ) -> Received<'d> {
        let &Datagram { message_type, message_id, token, content } = datagram;
        let piggybacked = message_type == MessageType::Acknowledgement;
        let exchange = if piggybacked {
            self.asked(sender, message_id, token)
        } else {
            self.live_request(sender, token)
        };
        let Some(exchange) = exchange else {
            self.handle_stray_response(sender, datagram, now);
            return Received::Nothing;
        };
        if message_type == MessageType::Confirmable {
            self.outbox.empty_to(sender, MessageType::Acknowledgement, message_id);
        }
        let kind = match message_type {
            MessageType::Acknowledgement => AnswerKind::Piggybacked,
            MessageType::Confirmable => AnswerKind::Separate,
            MessageType::NonConfirmable | MessageType::Reset => AnswerKind::NonConfirmable,
        };
        let copy = if piggybacked { self.copy_under(exchange, message_id) } else { 0 };
        if let Some(message) = self.messages.get_mut(exchange) {
            message.answer = Some(kind);
            if piggybacked {
                message.acknowledged(copy, now);
            }
        }
        self.end(exchange);
        Received::Response { exchange, kind, content }
    }

    /// A response that belongs to nothing under way. One to an exchange that is over is late or a
    /// repeat: acknowledged and dropped, so that its sender stops. A notification for an observation
    /// that is over, and anything unknown, is rejected.
    fn handle_stray_response(&mut self, sender: &Sender<'_>, datagram: &Datagram<'_>, now: Instant) {
        let &Datagram { message_type, message_id, token, content } = datagram;
        if message_type == MessageType::Acknowledgement {
            // RFC 7252 §5.2.2: any Acknowledgement ends a separate response, whatever it carries.
            match self.under_way(sender, message_id) {
                Some(exchange) if self.is_response(exchange) => self.acknowledged(exchange, message_id, now),
                _ => self.acknowledged_nothing(sender, message_id),
            }
            return;
        }
        let over = sender.number.is_some_and(|peer| self.preserved.find(peer, token).is_some())
            || self.tokens.exchange(token).is_some_and(|exchange| self.messages.is_over(exchange));
        let notification = content.options.first(OptionNumber::OBSERVE).is_some();
        if over {
            self.counters.late += 1;
        } else {
            self.counters.unmatched += 1;
        }
        if message_type == MessageType::Confirmable {
            let reply = if over && !notification { MessageType::Acknowledgement } else { MessageType::Reset };
            self.outbox.empty_to(sender, reply, message_id);
        }
    }

    fn is_response(&self, exchange: ExchangeId) -> bool {
        self.messages.get(exchange).is_some_and(|message| message.kind == Kind::Response)
    }
}
