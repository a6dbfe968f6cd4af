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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OptionNumber, OptionsWriter};

    #[test]
    fn what_is_kept_reads_as_what_came_and_counts_its_bytes() {
        let mut buffer = Vec::new();
        let mut writer = OptionsWriter::new(&mut buffer);
        writer.push(OptionNumber::ETAG, b"tag");
        let content = Content { code: Code::CONTENT, options: writer.finish(), payload: b"22.5" };
        let kept = OwnedContent::from(content);
        assert_eq!(kept.as_content(), content);
        assert_eq!((kept.len(), kept.is_empty()), (4 + 4, false));
        let code = OwnedContent::from(Content::bare(Code::CONTENT));
        assert_eq!((code.len(), code.is_empty()), (0, true));
        let payload = OwnedContent::from(Content { payload: b"x", ..Content::bare(Code::CONTENT) });
        assert_eq!((payload.len(), payload.is_empty()), (1, false));
    }
}
