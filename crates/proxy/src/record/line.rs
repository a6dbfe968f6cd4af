//! A line: parts, and texts between them whose length is anybody's.

use super::digits::hex;
use super::part::{Part, ROOM};

/// The place where the next part goes. Each method is `None` where there is no room.
#[derive(Debug)]
pub(super) struct Line<'b> {
    rest: &'b mut [u8],
}

impl<'b> Line<'b> {
    pub(super) const fn new(bytes: &'b mut [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that are left.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// A part, for which there must be [`ROOM`] bytes whatever its length.
    #[inline(always)]
    pub(super) fn part(&mut self) -> Option<Part<'_>> {
        self.rest.first_chunk_mut::<ROOM>().map(Part::new)
    }

    /// The part that was begun last has this length.
    #[inline(always)]
    pub(super) fn advance(&mut self, length: usize) -> Option<()> {
        self.rest = std::mem::take(&mut self.rest).get_mut(length..)?;
        Some(())
    }

    /// Text of JSON, as it is.
    #[inline(always)]
    pub(super) fn plain(&mut self, text: &[u8]) -> Option<()> {
        let (place, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(text.len())?;
        copy(text, place);
        self.rest = rest;
        Some(())
    }

    /// Text inside quotation marks.
    pub(super) fn text(&mut self, text: &str) -> Option<()> {
        let is_special = |&byte: &u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
        if !text.as_bytes().iter().any(is_special) {
            return self.plain(text.as_bytes());
        }
        for &byte in text.as_bytes() {
            match byte {
                b'"' => self.plain(b"\\\"")?,
                b'\\' => self.plain(b"\\\\")?,
                ..b' ' => {
                    self.plain(b"\\u00")?;
                    self.plain(&hex(byte))?;
                }
                _ => self.plain(&[byte])?,
            }
        }
        Some(())
    }

    /// Bytes in hexadecimal.
    pub(super) fn hex(&mut self, bytes: &[u8]) -> Option<()> {
        bytes.iter().try_for_each(|&byte| self.plain(&hex(byte)))
    }
}

/// Copies bytes to as many others; where they are few, without a call.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8]) {
    if !copy_ends::<16>(from, to) && !copy_ends::<8>(from, to) && !copy_ends::<4>(from, to) {
        to.copy_from_slice(from);
    }
}

/// Copies `N` to 2 `N` bytes: the first `N`, then the last.
#[inline(always)]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else { return false };
    if from.len() > 2 * N {
        return false;
    }
    if let Some(place) = to.first_chunk_mut() {
        *place = *first;
    }
    if let Some(place) = to.last_chunk_mut() {
        *place = *last;
    }
    true
}
