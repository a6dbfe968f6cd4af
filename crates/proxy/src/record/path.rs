//! The path of a request, as a record says it.

use std::fmt;

use coapway_message::{Options, uri};

/// A path in normal form (RFC 7252 §6.5): percent-encoded, so ASCII and without anything that a JSON
/// string escapes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Path {
    text: Vec<u8>,
}

/// A path that took more bytes gives its memory back.
const LONGEST_KEPT: usize = 256;

impl Path {
    /// The path that these options name.
    pub fn of(options: &Options<'_>) -> Self {
        let mut path = Self::default();
        path.set(options);
        path
    }

    /// Becomes the path that these options name, in the memory it has.
    pub fn set(&mut self, options: &Options<'_>) {
        self.text.clear();
        uri::write_path_bytes(options, &mut self.text);
    }

    /// Its text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// Says nothing any more, in no more memory than most paths need.
    pub(crate) fn clear(&mut self) {
        if self.text.capacity() > LONGEST_KEPT {
            self.text = Vec::new();
        }
        self.text.clear();
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.text.escape_ascii(), f)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
