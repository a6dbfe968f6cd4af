//! One request at the origin.

use coapway_message::{Code, Datagram, MessageType, datagram};

use crate::exchange::Exchange;
use crate::path::Label;
use crate::post::Post;
use crate::queue::{BufferId, Carried, Hop};

/// A request and what became of it.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) generation: u32,
    pub(super) hop: Hop,
    pub(super) message_id: u16,
    pub(super) token: [u8; 8],
    pub(super) token_length: u8,
    pub(super) exchange: u32,
    pub(super) copy: u16,
    pub(super) confirmable: bool,
    pub(super) code: Code,
    pub(super) state: State,
    /// Copies of a separate response that left.
    pub(super) separate_copies: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing has left.
    Open,
    /// An Acknowledgement has left.
    Acknowledged,
    /// The response has left with it.
    Piggybacked,
    /// The response has left on its own.
    Separate(u16),
}

impl Work {
    pub(super) fn new(generation: u32, carried: Carried, message: &Datagram<'_>) -> Self {
        let Carried { hop, exchange, copy, .. } = carried;
        let mut token = [0; 8];
        let length = message.token.len().min(8);
        token[..length].copy_from_slice(&message.token[..length]);
        Self {
            generation,
            hop,
            message_id: message.message_id,
            token,
            token_length: length as u8,
            exchange,
            copy,
            confirmable: message.message_type == MessageType::Confirmable,
            code: if message.content.code == Code::GET { Code::CONTENT } else { Code::CHANGED },
            state: State::Open,
            separate_copies: 0,
        }
    }

    pub(super) fn token(&self) -> &[u8] {
        &self.token[..usize::from(self.token_length)]
    }

    /// What the answer to its copy is drawn by.
    pub(super) fn label(&self, exchange: &Exchange) -> Label {
        Label { errand: exchange.errand, copy: self.copy.into(), level: exchange.level }
    }
}

/// An Acknowledgement without a response.
pub(super) fn empty_ack(work: &Work, post: &mut Post<'_>) -> BufferId {
    let empty = datagram::empty(MessageType::Acknowledgement, work.message_id);
    post.buffers.fill(|buffer| buffer.extend_from_slice(&empty))
}
