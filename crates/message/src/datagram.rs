//! One datagram: type, Message ID, token and content (RFC 7252 §3; RFC 8974 §2.1).

use crate::options::OptionsError;
use crate::token::MAX_EXTENDED_LENGTH;
use crate::{Code, Content, Options};

/// Confirmable, Non-confirmable, Acknowledgement or Reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// Wants an Acknowledgement or a Reset.
    Confirmable,
    /// Wants neither.
    NonConfirmable,
    /// Acknowledges a Confirmable message.
    Acknowledgement,
    /// Says that a message could not be processed.
    Reset,
}

impl MessageType {
    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Confirmable,
            1 => Self::NonConfirmable,
            2 => Self::Acknowledgement,
            _ => Self::Reset,
        }
    }
}

/// A message as it came in, borrowed from its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'d> {
    /// Its type.
    pub message_type: MessageType,
    /// Its Message ID.
    pub message_id: u16,
    /// Its token.
    pub token: &'d [u8],
    /// Code, options and payload.
    pub content: Content<'d>,
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed<'d> {
    /// Shorter than a header, or of another version: dropped in silence whatever the type bits say.
    Ignored,
    /// A format error behind a header that could be read.
    Format {
        /// The type in the header.
        message_type: MessageType,
        /// The Message ID in the header.
        message_id: u16,
        /// The code in the header.
        code: Code,
        /// The token, when it could be read.
        token: Option<&'d [u8]>,
        /// What is wrong.
        error: FormatError,
    },
}

/// What is wrong with a message (RFC 7252 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Token length 15, or a token that runs past the end.
    #[error("reserved or truncated token")]
    Token,
    /// Code 0.00 with anything after the Message ID (RFC 7252 §4.1).
    #[error("Empty message with token, options or payload")]
    NotEmpty,
    /// The options or the payload marker.
    #[error(transparent)]
    Options(#[from] OptionsError),
}

impl<'d> Datagram<'d> {
    /// Reads a message.
    ///
    /// Errors: [`Malformed`] says what to do with it; nothing is copied and nothing panics.
    /// Source: RFC 7252 §3; RFC 8974 §2.1.
    #[inline(always)]
    pub fn parse(bytes: &'d [u8]) -> Result<Self, Malformed<'d>> {
        let &[first, code, high, low, ref rest @ ..] = bytes else { return Err(Malformed::Ignored) };
        if first >> 6 != 1 {
            return Err(Malformed::Ignored);
        }
        let message_type = MessageType::from_bits(first >> 4);
        let (message_id, code) = (u16::from_be_bytes([high, low]), Code(code));
        let malformed = |token, error| Malformed::Format { message_type, message_id, code, token, error };
        if code == Code::EMPTY && (first & 15 != 0 || !rest.is_empty()) {
            return Err(malformed(None, FormatError::NotEmpty));
        }
        let (token, rest) = split_token(first & 15, rest).ok_or(malformed(None, FormatError::Token))?;
        let (options, payload) =
            Options::parse(rest).map_err(|error| malformed(Some(token), FormatError::Options(error)))?;
        Ok(Self { message_type, message_id, token, content: Content { code, options, payload } })
    }
}

/// The longest beginning of a message that was cut off which is a message itself: header, token, and the options
/// that are whole.
///
/// Shape:  all of `bytes` where nothing tells that it was cut, or where it is no message even so.
pub fn whole_part(bytes: &[u8]) -> &[u8] {
    let token = bytes.split_first_chunk::<4>().and_then(|(header, rest)| split_token(header[0] & 15, rest));
    let Some((_, options)) = token else { return bytes };
    match Options::parse(options) {
        Err(OptionsError::Truncated | OptionsError::EmptyPayload) => {
            let whole = bytes.len() - options.len() + Options::whole(options);
            bytes.get(..whole).unwrap_or(bytes)
        }
        Ok(_) | Err(OptionsError::Reserved | OptionsError::NumberTooLarge) => bytes,
    }
}

fn split_token(length: u8, rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match (length, rest) {
        (0..=12, _) => (usize::from(length), rest),
        (13, [byte, rest @ ..]) => (usize::from(*byte) + 13, rest),
        (14, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])) + 269, rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// Appends a message to `buffer`.
///
/// Shape:  `token` is at most [`MAX_EXTENDED_LENGTH`] bytes; more than 8 only towards a
///         peer that sent so long a token itself.
/// Source: RFC 7252 §3; RFC 8974 §2.1.
pub fn encode(
    buffer: &mut Vec<u8>,
    message_type: MessageType,
    message_id: u16,
    token: &[u8],
    content: &Content<'_>,
) {
    debug_assert!(token.len() <= MAX_EXTENDED_LENGTH, "no message holds so long a token");
    let first = 0x40 | (message_type as u8) << 4;
    let [high, low] = message_id.to_be_bytes();
    let header = |length: u8| [first | length, content.code.0, high, low];
    match token.len() {
        length @ 0..=12 => buffer.extend_from_slice(&header(length as u8)),
        length @ 13..=268 => {
            buffer.extend_from_slice(&header(13));
            buffer.push((length - 13) as u8);
        }
        length => {
            buffer.extend_from_slice(&header(14));
            buffer.extend_from_slice(&((length - 269) as u16).to_be_bytes());
        }
    }
    // All at once, so that the buffer is not twice as large as what it holds.
    buffer.reserve(token.len() + content.options.as_encoded().len() + 1 + content.payload.len());
    buffer.extend_from_slice(token);
    buffer.extend_from_slice(content.options.as_encoded());
    if !content.payload.is_empty() {
        buffer.push(0xFF);
        buffer.extend_from_slice(content.payload);
    }
}

/// An Empty message: an Acknowledgement or a Reset for `message_id`, or, Confirmable, a ping.
pub const fn empty(message_type: MessageType, message_id: u16) -> [u8; 4] {
    let [high, low] = message_id.to_be_bytes();
    [0x40 | (message_type as u8) << 4, 0, high, low]
}

#[cfg(test)]
mod tests;
