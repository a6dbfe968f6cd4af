//! What the floors above the message layer see of a message.

use crate::{Code, Options};

/// Code, options and payload, borrowed: a message without type, Message ID and token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'d> {
    /// Method or response code.
    pub code: Code,
    /// The options, checked and still encoded.
    pub options: Options<'d>,
    /// The payload; empty when there is none.
    pub payload: &'d [u8],
}

impl<'d> Content<'d> {
    /// A message that is only its code.
    pub const fn bare(code: Code) -> Self {
        Self { code, options: Options::NONE, payload: &[] }
    }
}

/// A [`Content`] that owns its bytes, for as long as it cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedContent {
    code: Code,
    options: Box<[u8]>,
    payload: Box<[u8]>,
}

impl OwnedContent {
    /// Borrows it.
    pub fn as_content(&self) -> Content<'_> {
        Content { code: self.code, options: Options::from_checked(&self.options), payload: &self.payload }
    }

    /// How many bytes it holds.
    pub fn len(&self) -> usize {
        self.options.len() + self.payload.len()
    }

    /// Whether it is only a code.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Content<'_>> for OwnedContent {
    fn from(content: Content<'_>) -> Self {
        Self {
            code: content.code,
            options: content.options.as_encoded().into(),
            payload: content.payload.into(),
        }
    }
}
