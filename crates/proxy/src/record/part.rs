//! A part of a line, written from left to right into memory that is there already.
//!
//! A record is a few dozen short pieces: text of a length the compiler knows, and numbers. What is
//! asked for each of them, such as whether there is room, would be most of what a record costs. So
//! it is asked once for a part, which is short enough by what it is made of.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::digits::{four, hex, hex_of_four, octets, pair};
use super::exchanges::Few;

/// No part is longer, in bytes; a power of two.
const LONGEST: usize = 1024;
/// No piece is longer.
const LONGEST_PIECE: usize = 64;
/// The room a part needs.
pub(super) const ROOM: usize = LONGEST + LONGEST_PIECE;

/// Pieces that take [`LONGEST`] bytes together at the most.
#[derive(Debug)]
pub(super) struct Part<'b> {
    bytes: &'b mut [u8; ROOM],
    length: usize,
}

impl<'b> Part<'b> {
    #[inline(always)]
    pub(super) const fn new(bytes: &'b mut [u8; ROOM]) -> Self {
        Self { bytes, length: 0 }
    }

    /// How long it is.
    #[inline(always)]
    pub(super) const fn length(&self) -> usize {
        self.length
    }

    /// Text of JSON, as it is.
    #[inline(always)]
    pub(super) fn constant<const N: usize>(&mut self, text: &[u8; N]) {
        put(self.bytes, self.length, text);
        self.length += N;
    }

    /// A number.
    #[inline(always)]
    pub(super) fn number(&mut self, value: u64) {
        match value {
            0..10 => self.constant(&[b'0' + value as u8]),
            10..100 => self.constant(&pair(value as u32)),
            _ => self.length = digits(self.bytes, self.length, value),
        }
    }

    /// A port or a Message ID: mostly five digits.
    #[inline(always)]
    pub(super) fn short(&mut self, value: u16) {
        match value {
            10_000.. => self.constant(&five(value.into())),
            _ => self.number(value.into()),
        }
    }

    /// Microseconds as milliseconds with three decimals.
    #[inline(always)]
    pub(super) fn millis(&mut self, micros: u64) {
        match micros {
            0 => self.constant(b"0.000"),
            _ => self.length = decimals(self.bytes, self.length, micros),
        }
    }

    /// A response code as RFC 7252 §12.1 writes it.
    #[inline(always)]
    pub(super) fn code(&mut self, class: u8, detail: u8) {
        let [tens, ones] = pair(detail.into());
        self.constant(&[b'0' + class, b'.', tens, ones]);
    }

    /// Up to eight bytes in hexadecimal.
    #[inline(always)]
    pub(super) fn hex(&mut self, Few { bytes, length }: Few) {
        put(self.bytes, self.length, &hex_of_four(bytes as u32));
        if length > 4 {
            put(self.bytes, self.length + 8, &hex_of_four((bytes >> 32) as u32));
        }
        self.length += 2 * length;
    }

    /// The text since `start`, when it has not more than 32 bytes.
    #[inline(always)]
    pub(super) fn since(&self, start: usize) -> ([u8; 32], usize) {
        let mut text = [0; 32];
        let start = start % LONGEST;
        text.copy_from_slice(&self.bytes[start..start + 32]);
        (text, self.length - start)
    }

    /// The first `length` bytes of `text`; those behind them are overwritten.
    #[inline(always)]
    pub(super) fn beginning<const N: usize>(&mut self, text: &[u8; N], length: usize) {
        put(self.bytes, self.length, text);
        self.length += length;
    }

    /// The same of a longer text, in pieces of 64 bytes.
    #[inline(always)]
    pub(super) fn long_beginning(&mut self, text: &[u8], length: usize) {
        let mut at = self.length;
        for piece in text.as_chunks::<64>().0 {
            if at >= self.length + length {
                break;
            }
            put(self.bytes, at, piece);
            at += 64;
        }
        self.length += length;
    }

    /// An address and its port, without quotation marks.
    #[inline(always)]
    pub(super) fn address(&mut self, address: &SocketAddr) {
        self.length = write_address(self.bytes, self.length, address);
    }

    /// Text of up to [`LONGEST_PIECE`] bytes in which nothing is to be escaped.
    pub(super) fn word(&mut self, word: &str) {
        for &byte in word.as_bytes().iter().take(LONGEST_PIECE) {
            self.constant(&[byte]);
        }
    }
}

/// Writes a piece at `at`, where the pieces before it end.
#[inline(always)]
fn put<const N: usize>(bytes: &mut [u8; ROOM], at: usize, piece: &[u8; N]) {
    const { assert!(N <= LONGEST_PIECE) }
    debug_assert!(at < LONGEST, "a part is short enough by what it is made of");
    // What could not happen would stay within the part; the compiler need not ask.
    let at = at % LONGEST;
    bytes[at..at + N].copy_from_slice(piece);
}

#[inline(always)]
fn five(value: u32) -> [u8; 5] {
    let [a, b, c, d] = four(value % 10_000);
    [b'0' + (value / 10_000) as u8, a, b, c, d]
}

#[inline(always)]
fn three(value: u32) -> [u8; 3] {
    let [_, a, b, c] = four(value);
    [a, b, c]
}

/// Writes a number at `at`; returns where it ends.
#[inline(never)]
fn digits(bytes: &mut [u8; ROOM], at: usize, value: u64) -> usize {
    let mut part = Part { bytes, length: at };
    match value {
        0..1000 => part.constant(&three(value as u32)),
        1000..10_000 => part.constant(&four(value as u32)),
        10_000..100_000 => part.constant(&five(value as u32)),
        _ => {
            part.number(value / 10_000);
            part.constant(&four((value % 10_000) as u32));
        }
    }
    part.length
}

/// Writes microseconds as milliseconds at `at`; returns where they end.
#[inline(never)]
fn decimals(bytes: &mut [u8; ROOM], at: usize, micros: u64) -> usize {
    let (whole, rest) = (micros / 1000, (micros % 1000) as u32);
    // A dot and three digits.
    let rest = u32::from_le_bytes(four(rest)) & !0xFF | u32::from(b'.');
    let mut part = Part { bytes, length: at };
    match whole {
        0..10 => {
            let text = u64::from(b'0') | whole | u64::from(rest) << 8;
            part.beginning(&text.to_le_bytes(), 5);
        }
        10..1000 => {
            // Three digits, or two where the first would be a zero.
            let zeros = (whole < 100) as usize;
            let digits = u64::from(u32::from_le_bytes(four(whole as u32)) >> (8 + 8 * zeros));
            let text = digits | u64::from(rest) << (24 - 8 * zeros);
            part.beginning(&text.to_le_bytes(), 7 - zeros);
        }
        _ => return long_decimals(part, whole, rest),
    }
    part.length
}

#[inline(never)]
fn long_decimals(mut part: Part<'_>, whole: u64, rest: u32) -> usize {
    part.number(whole);
    part.constant(&rest.to_le_bytes());
    part.length
}

/// Writes an address at `at`; returns where it ends.
#[inline(never)]
fn write_address(bytes: &mut [u8; ROOM], at: usize, address: &SocketAddr) -> usize {
    let SocketAddr::V4(address) = address else { return write_address_v6(bytes, at, address) };
    let mut part = Part { bytes, length: at };
    part.ipv4(*address.ip());
    part.constant(b":");
    part.short(address.port());
    part.length
}

#[inline(never)]
fn write_address_v6(bytes: &mut [u8; ROOM], at: usize, address: &SocketAddr) -> usize {
    let SocketAddr::V6(address) = address else { return at };
    let mut part = Part { bytes, length: at };
    part.constant(b"[");
    part.ipv6(*address.ip());
    if address.scope_id() != 0 {
        part.constant(b"%");
        part.number(address.scope_id().into());
    }
    part.constant(b"]:");
    part.short(address.port());
    part.length
}

impl Part<'_> {
    #[inline(always)]
    fn ipv4(&mut self, address: Ipv4Addr) {
        let [a, b, c, d] = address.octets();
        let ((first, dotted), (second, more)) = (octets(a, b), octets(c, d));
        put(self.bytes, self.length, &first);
        self.length += dotted;
        put(self.bytes, self.length, &second);
        // Without the last dot.
        self.length += more - 1;
    }

    /// Source: RFC 5952 §4, §5.
    fn ipv6(&mut self, address: Ipv6Addr) {
        if let Some(mapped) = address.to_ipv4_mapped() {
            self.constant(b"::ffff:");
            return self.ipv4(mapped);
        }
        let segments = address.segments();
        let zeros = longest_zeros(&segments);
        for (place, segment) in segments.into_iter().enumerate() {
            if zeros.contains(&place) {
                if place == zeros.start {
                    self.constant(b"::");
                }
                continue;
            }
            if place > 0 && place != zeros.end {
                self.constant(b":");
            }
            let [[a, b], [c, d]] = segment.to_be_bytes().map(hex);
            match segment {
                0..0x10 => self.constant(&[d]),
                0x10..0x100 => self.constant(&[c, d]),
                0x100..0x1000 => self.constant(&[b, c, d]),
                _ => self.constant(&[a, b, c, d]),
            }
        }
    }
}

/// The longest run of at least two zeros, the first of equal ones.
fn longest_zeros(segments: &[u16; 8]) -> std::ops::Range<usize> {
    let (mut longest, mut current) = (0..0, 0..0);
    for (place, &segment) in segments.iter().enumerate() {
        current = if segment == 0 { current.start..place + 1 } else { place + 1..place + 1 };
        if current.len() > longest.len() {
            longest = current.clone();
        }
    }
    if longest.len() > 1 { longest } else { 0..0 }
}
