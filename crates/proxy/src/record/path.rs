//! The path of a request, as a record says it.

use std::fmt;

use coapway_message::{OptionNumber, Options, uri};

use super::line::Line;

/// A path in normal form (RFC 7252 §6.5): percent-encoded, so ASCII and without anything that a JSON
/// string escapes.
#[derive(Clone, Default)]
pub struct Path {
    /// The text, and behind it what was left of longer ones.
    bytes: Vec<u8>,
    length: usize,
}

/// Room that most paths need no more than, in bytes.
const MOST: usize = 64;
/// A path that took more gives its memory back.
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
        if self.bytes.is_empty() {
            self.bytes.resize(MOST, 0);
        }
        self.length = match write_plain(options, &mut self.bytes) {
            Some(length) => length,
            None => write_any(options, &mut self.bytes),
        };
    }

    /// Becomes this text, a path in normal form.
    #[inline]
    pub(crate) fn set_normal(&mut self, text: &[u8]) {
        if self.bytes.len() < text.len() {
            self.bytes.resize(text.len().max(MOST), 0);
        }
        self.length = text.len();
        let mut line = Line::new(&mut self.bytes);
        // There is room.
        let _ = line.plain(text);
    }

    /// Its text.
    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) const fn kept(&self) -> usize {
        self.bytes.len()
    }

    /// Gives back more memory than most paths need.
    #[inline(always)]
    pub(crate) fn shrink(&mut self) {
        if self.bytes.len() > LONGEST_KEPT {
            *self = Self::default();
        }
    }
}

/// Writes a path in which nothing is to be encoded, as most are, to the beginning of `bytes` and
/// returns its length; `None` for others, and where there is no room.
#[inline(always)]
fn write_plain(options: &Options<'_>, bytes: &mut [u8]) -> Option<usize> {
    let room = bytes.len();
    let mut line = Line::new(bytes);
    for (number, segment) in options.iter() {
        if number == OptionNumber::URI_PATH {
            if !is_plain(segment) {
                return None;
            }
            line.plain(b"/")?;
            line.plain(segment)?;
        } else if number > OptionNumber::URI_PATH {
            break;
        }
    }
    if line.left() == room {
        line.plain(b"/")?;
    }
    Some(room - line.left())
}

/// Writes any path to the beginning of `bytes`, which grow when they must, and returns its length.
#[cold]
fn write_any(options: &Options<'_>, bytes: &mut Vec<u8>) -> usize {
    let mut text = std::mem::take(bytes);
    text.clear();
    let mut text = String::from_utf8(text).unwrap_or_default();
    uri::write_path(options, &mut text);
    let length = text.len();
    *bytes = text.into_bytes();
    bytes.resize(length.max(MOST), 0);
    if length > LONGEST_KEPT {
        // Room that doubled on the way would be counted by nobody.
        bytes.shrink_to_fit();
    }
    length
}

/// Letters, digits, and what else is neither reserved nor rare.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        plain[byte] = !are_other(&[byte as u8]);
        byte += 1;
    }
    plain
};

/// Whether a segment stands as it is.
#[inline(always)]
fn is_plain(segment: &[u8]) -> bool {
    let (chunks, rest) = segment.as_chunks::<16>();
    !chunks.iter().any(are_other) && rest.iter().all(|&byte| PLAIN[usize::from(byte)])
}

/// Whether one of the bytes is not in [`PLAIN`]. Without a branch, so that all are looked at together.
#[inline(always)]
const fn are_other<const N: usize>(bytes: &[u8; N]) -> bool {
    let (mut any, mut place) = (false, 0);
    while place < N {
        let byte = bytes[place];
        let is_letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        let is_digit = byte.wrapping_sub(b'0') < 10;
        let is_mark = (byte == b'-') | (byte == b'.') | (byte == b'_') | (byte == b'~');
        any |= !(is_letter | is_digit | is_mark);
        place += 1;
    }
    any
}

impl PartialEq for Path {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(self.as_bytes()).unwrap_or_default())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
