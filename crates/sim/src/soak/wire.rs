//! Messages of peers that keep no state worth the name: read and written by position.
//!
//! They read what the proxy itself encoded; [`crate::checks`] and the scenarios judge its encoding.

use coapway_message::{Code, Content, MessageType, datagram};

/// Header and token of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head<'d> {
    pub(super) message_type: MessageType,
    pub(super) code: Code,
    pub(super) message_id: u16,
    pub(super) token: &'d [u8],
}

/// Reads header and token; tokens are no longer than 8 bytes here.
pub(super) fn head(bytes: &[u8]) -> Option<Head<'_>> {
    let &[first, code, high, low, ref rest @ ..] = bytes else { return None };
    let message_type = match first >> 4 & 3 {
        0 => MessageType::Confirmable,
        1 => MessageType::NonConfirmable,
        2 => MessageType::Acknowledgement,
        _ => MessageType::Reset,
    };
    let token = rest.get(..usize::from(first & 15))?;
    Some(Head { message_type, code: Code(code), message_id: u16::from_be_bytes([high, low]), token })
}

/// A message without options.
pub(super) fn message(
    message_type: MessageType,
    code: Code,
    message_id: u16,
    token: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(5 + token.len() + payload.len());
    let content = Content { payload, ..Content::bare(code) };
    datagram::encode(&mut bytes, message_type, message_id, token, &content);
    bytes
}

/// The number that a client's token of four bytes is.
pub(super) fn number(token: &[u8]) -> Option<u32> {
    token.try_into().ok().map(u32::from_be_bytes)
}
