//! The token, 0 to 8 bytes that tie a response to its request, or longer with RFC 8974.

use std::fmt;

use smallvec::SmallVec;

/// The longest token RFC 8974 §2.1 can write.
pub const MAX_EXTENDED_LENGTH: usize = 65_804;

/// An owned token. The empty token is a token like any other (RFC 7252 §5.3.1).
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(SmallVec<[u8; 8]>);

impl Token {
    /// A token of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        // Those of our own have eight bytes, and most have four or eight.
        match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
            (Some(&eight), _) if bytes.len() == 8 => Self(SmallVec::from_buf(eight)),
            (None, Some(&[a, b, c, d])) if bytes.len() == 4 => {
                Self(SmallVec::from_buf_and_len([a, b, c, d, 0, 0, 0, 0], 4))
            }
            _ => Self(SmallVec::from_slice(bytes)),
        }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_as_hexadecimal() {
        let token = Token::new(&[0x0A, 0xFF, 0]);
        assert_eq!((token.to_string(), format!("{token:?}")), ("0aff00".into(), "0aff00".into()));
        assert_eq!((token.as_bytes(), Token::default().as_bytes()), (&[0x0A, 0xFF, 0][..], &[][..]));
        assert_eq!(Token::default().to_string(), "");
    }
}
