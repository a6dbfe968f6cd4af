//! The ordered list of options and its delta coding (RFC 7252 §3.1).

use crate::OptionNumber;

/// Why bytes are not a list of options followed by nothing or by a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Delta nibble 15 outside the payload marker, or length nibble 15.
    #[error("reserved option delta or length 15")]
    Reserved,
    /// An extended field or a value runs past the end.
    #[error("option runs past the end")]
    Truncated,
    /// The deltas add up to more than 65 535.
    #[error("option number above 65535")]
    NumberTooLarge,
    /// The payload marker is the last byte.
    #[error("payload marker without a payload")]
    EmptyPayload,
}

/// A checked list of options, still encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'d> {
    encoded: &'d [u8],
}

impl<'d> Options<'d> {
    /// The empty list.
    pub const NONE: Self = Self { encoded: &[] };

    /// Splits what follows the token into options and payload.
    ///
    /// Shape:  `bytes` is everything after the token; the payload is empty when there is no marker.
    /// Errors: what is wrong with the first option that is.
    /// Source: RFC 7252 §3, §3.1.
    #[inline]
    pub fn parse(bytes: &'d [u8]) -> Result<(Self, &'d [u8]), OptionsError> {
        let mut number: u32 = 0;
        let mut rest = bytes;
        loop {
            match rest {
                [] => return Ok((Self { encoded: bytes }, &[])),
                [0xFF] => return Err(OptionsError::EmptyPayload),
                [0xFF, payload @ ..] => {
                    let encoded = &bytes[..bytes.len() - rest.len()];
                    return Ok((Self { encoded }, payload));
                }
                _ => {
                    let (delta, _, after) = split_option(rest)?;
                    number += delta;
                    if number > u32::from(u16::MAX) {
                        return Err(OptionsError::NumberTooLarge);
                    }
                    rest = after;
                }
            }
        }
    }

    /// How many bytes the options take that are whole, in what follows a token and was cut off.
    pub(crate) fn whole(bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while rest.first().is_some_and(|&head| head != 0xFF)
            && let Ok((_, _, after)) = split_option(rest)
        {
            rest = after;
        }
        bytes.len() - rest.len()
    }

    pub(crate) const fn from_checked(encoded: &'d [u8]) -> Self {
        Self { encoded }
    }

    /// The encoded form: what stands between token and payload marker.
    pub const fn as_encoded(&self) -> &'d [u8] {
        self.encoded
    }

    /// Whether there is no option.
    pub const fn is_empty(&self) -> bool {
        self.encoded.is_empty()
    }

    /// Number and value of each option, in order.
    pub const fn iter(&self) -> Iter<'d> {
        Iter { rest: self.encoded, number: 0 }
    }

    /// The values of the options with this number, in order.
    pub fn values(&self, number: OptionNumber) -> impl Iterator<Item = &'d [u8]> + use<'d> {
        self.iter()
            .skip_while(move |&(n, _)| n < number)
            .take_while(move |&(n, _)| n == number)
            .map(|(_, v)| v)
    }

    /// The value of the first option with this number.
    pub fn first(&self, number: OptionNumber) -> Option<&'d [u8]> {
        let (found, value) = self.iter().find(|&(other, _)| other >= number)?;
        (found == number).then_some(value)
    }

    /// The first option with this number as a uint; `None` also when it is longer than 4 bytes.
    pub fn uint(&self, number: OptionNumber) -> Option<u32> {
        self.first(number).and_then(uint)
    }
}

impl<'d> IntoIterator for Options<'d> {
    type Item = (OptionNumber, &'d [u8]);
    type IntoIter = Iter<'d>;

    fn into_iter(self) -> Iter<'d> {
        self.iter()
    }
}

/// The options of an [`Options`] list.
#[derive(Clone, Debug)]
pub struct Iter<'d> {
    rest: &'d [u8],
    number: u32,
}

impl<'d> Iterator for Iter<'d> {
    type Item = (OptionNumber, &'d [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (delta, value, rest) = split_option(self.rest).ok()?;
        self.number += delta;
        self.rest = rest;
        Some((OptionNumber(u16::try_from(self.number).ok()?), value))
    }
}

/// Delta and value of the option that `bytes` starts with, and what follows it.
#[inline]
fn split_option(bytes: &[u8]) -> Result<(u32, &[u8], &[u8]), OptionsError> {
    let (&head, rest) = bytes.split_first().ok_or(OptionsError::Truncated)?;
    let (delta, length) = (head >> 4, head & 15);
    if delta <= 12 && length <= 12 {
        let (value, rest) = rest.split_at_checked(length.into()).ok_or(OptionsError::Truncated)?;
        return Ok((delta.into(), value, rest));
    }
    split_extended(delta, length, rest)
}

#[inline(never)]
fn split_extended(delta: u8, length: u8, rest: &[u8]) -> Result<(u32, &[u8], &[u8]), OptionsError> {
    let (delta, rest) = extended(delta, rest)?;
    let (length, rest) = extended(length, rest)?;
    let (value, rest) = rest.split_at_checked(length as usize).ok_or(OptionsError::Truncated)?;
    Ok((delta, value, rest))
}

/// The number that a nibble and its extension stand for, at most [`MAX_EXTENDED`].
fn extended(nibble: u8, rest: &[u8]) -> Result<(u32, &[u8]), OptionsError> {
    match (nibble, rest) {
        (0..=12, _) => Ok((u32::from(nibble), rest)),
        (13, [byte, rest @ ..]) => Ok((u32::from(*byte) + 13, rest)),
        (14, [high, low, rest @ ..]) => Ok((u32::from(u16::from_be_bytes([*high, *low])) + 269, rest)),
        (15, _) => Err(OptionsError::Reserved),
        _ => Err(OptionsError::Truncated),
    }
}

/// A uint option value; leading zeros are allowed (RFC 7252 §3.2). `None` above 4 bytes.
pub fn uint(value: &[u8]) -> Option<u32> {
    (value.len() <= 4).then(|| value.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)))
}

/// The shortest form of a uint option value, in the last bytes of `buffer`.
pub fn minimal_uint(value: u32, buffer: &mut [u8; 4]) -> &[u8] {
    *buffer = value.to_be_bytes();
    &buffer[value.leading_zeros() as usize / 8..]
}

/// The largest delta or length that can be written.
const MAX_EXTENDED: u32 = 269 + u16::MAX as u32;

/// Writes a list of options in ascending order of their numbers.
#[derive(Debug)]
pub struct OptionsWriter<'b> {
    buffer: &'b mut Vec<u8>,
    start: usize,
    last: u16,
}

impl<'b> OptionsWriter<'b> {
    /// Appends to `buffer`.
    pub const fn new(buffer: &'b mut Vec<u8>) -> Self {
        let start = buffer.len();
        Self { buffer, start, last: 0 }
    }

    /// Appends one option.
    ///
    /// Shape:  `number` is not below the one before; `value` is at most 65 804 bytes.
    pub fn push(&mut self, number: OptionNumber, value: &[u8]) {
        debug_assert!(number.0 >= self.last, "options are written in order");
        debug_assert!(value.len() <= MAX_EXTENDED as usize, "no option holds that much");
        let delta = number.0.saturating_sub(self.last);
        self.last += delta;
        let first = (delta as u8) << 4;
        match (delta, value.len()) {
            (0..=12, length @ 0..=12) => {
                self.buffer.reserve(1 + length);
                self.buffer.push(first | length as u8);
                self.buffer.extend_from_slice(value);
            }
            (0..=12, length @ 13..=268) => {
                self.buffer.reserve(2 + length);
                self.buffer.extend_from_slice(&[first | 13, (length - 13) as u8]);
                self.buffer.extend_from_slice(value);
            }
            _ => self.push_extended(delta, value),
        }
    }

    fn push_extended(&mut self, delta: u16, value: &[u8]) {
        let length = u32::try_from(value.len()).unwrap_or(MAX_EXTENDED).min(MAX_EXTENDED);
        let head = self.buffer.len();
        self.buffer.push(0);
        let high = self.extend(u32::from(delta));
        let low = self.extend(length);
        self.buffer[head] = high << 4 | low;
        self.buffer.extend_from_slice(value.get(..length as usize).unwrap_or(value));
    }

    /// Appends the parts of `text` as options of one number, not below the one before.
    ///
    /// Shape:  `heads` are the places of the bytes that the parts stand behind, in order; the first is 0.
    pub fn push_parts(&mut self, number: OptionNumber, text: &[u8], heads: &[u8]) {
        let delta = number.0.saturating_sub(self.last);
        let start = self.buffer.len();
        // The head of a short option takes as much as the byte before its part.
        self.buffer.extend_from_slice(text);
        let written = self.buffer.get_mut(start..).unwrap_or_default();
        if delta <= 12 && write_heads(written, heads).is_some() {
            if let Some(first) = written.first_mut() {
                *first |= (delta as u8) << 4;
            }
            self.last += delta;
            return;
        }
        self.buffer.truncate(start);
        let ends = heads.iter().skip(1).map(|&head| usize::from(head)).chain([text.len()]);
        for (&head, end) in heads.iter().zip(ends) {
            self.push(number, text.get(usize::from(head) + 1..end).unwrap_or_default());
        }
    }

    /// Appends one uint option in its shortest form.
    pub fn push_uint(&mut self, number: OptionNumber, value: u32) {
        self.push(number, minimal_uint(value, &mut [0; 4]));
    }

    /// What was written.
    pub fn finish(self) -> Options<'b> {
        Options { encoded: &self.buffer[self.start..] }
    }

    /// Writes the extension of a number up to [`MAX_EXTENDED`] and returns its nibble.
    fn extend(&mut self, value: u32) -> u8 {
        match value {
            0..=12 => value as u8,
            13..=268 => {
                self.buffer.push((value - 13) as u8);
                13
            }
            269.. => {
                self.buffer.extend_from_slice(&((value - 269) as u16).to_be_bytes());
                14
            }
        }
    }
}

/// Replaces the bytes before parts by the heads of options of one number; `None` where a part is too long
/// for so short a head.
fn write_heads(text: &mut [u8], heads: &[u8]) -> Option<()> {
    let mut end = text.len();
    for &head in heads.iter().rev() {
        let head = usize::from(head);
        let length = end.wrapping_sub(head + 1);
        if length > 12 {
            return None;
        }
        *text.get_mut(head)? = length as u8;
        end = head;
    }
    Some(())
}

#[cfg(test)]
mod tests;
