//! How exchanges of ours go and went, and what was sent in them.

use coapway_message::{Content, Datagram, ExchangeId};

use super::endpoint::Endpoint;
use super::message::Message;
use crate::trace::Course;

impl Endpoint {
    /// How an exchange went so far.
    #[inline]
    pub fn trace(&self, exchange: ExchangeId) -> Option<Course<'_>> {
        self.messages.get(exchange).map(|message| self.course(message))
    }

    /// How an exchange went that has just ended; until another begins or a datagram comes.
    #[inline]
    pub fn ended(&self, exchange: ExchangeId) -> Option<Course<'_>> {
        self.messages.removed(exchange).map(|message| self.course(message))
    }

    /// The content of a request of ours that is under way or has just ended.
    pub fn sent_content(&self, exchange: ExchangeId) -> Option<Content<'_>> {
        let message = self.messages.get(exchange).or_else(|| self.messages.removed(exchange))?;
        message
            .is_request()
            .then(|| Datagram::parse(message.datagram()).ok())?
            .map(|datagram| datagram.content)
    }

    #[inline]
    fn course<'e>(&'e self, message: &'e Message) -> Course<'e> {
        let active = message.active.and_then(|number| self.active.get(number));
        Course {
            peer: self.peers.get(message.peer),
            message_id: message.message_id,
            token: message.token.as_bytes(),
            confirmable: message.is_confirmable(),
            first: message.first_copy(),
            further: active.map_or(&[], |active| &active.further),
            first_ack: message.first_ack(),
            acks: message.acks.into(),
            answer: message.answer,
            bytes: message.datagram().len() as u32,
        }
    }
}
