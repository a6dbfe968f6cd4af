//! JSON written from left to right into memory that is there already.
//!
//! A record is a few dozen short pieces: text of a length the compiler knows, written whole, and
//! numbers, written as a few bytes of which some are overwritten by what comes next.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::digits::{four, hex, octet, pair};

/// The place where the next piece goes.
///
/// Each method is `None` where there is no room for its piece and the few bytes it writes beyond.
#[derive(Debug)]
pub(super) struct Cursor<'b> {
    rest: &'b mut [u8],
}

impl<'b> Cursor<'b> {
    pub(super) const fn new(bytes: &'b mut [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that are left.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Text of JSON, as it is.
    #[inline(always)]
    pub(super) fn constant<const N: usize>(&mut self, text: &[u8; N]) -> Option<()> {
        let (place, rest) = std::mem::take(&mut self.rest).split_first_chunk_mut()?;
        *place = *text;
        self.rest = rest;
        Some(())
    }

    /// The first `length` bytes of `text`; those behind them are overwritten.
    #[inline(always)]
    fn beginning<const N: usize>(&mut self, text: [u8; N], length: usize) -> Option<()> {
        *self.rest.first_chunk_mut()? = text;
        self.rest = std::mem::take(&mut self.rest).get_mut(length..)?;
        Some(())
    }

    /// A number.
    #[inline(always)]
    pub(super) fn number(&mut self, value: u64) -> Option<()> {
        match value {
            0..10 => self.constant(&[b'0' + value as u8]),
            10..10_000 => self.below_ten_thousand(value as u32),
            10_000..100_000_000 => {
                let value = value as u32;
                self.below_ten_thousand(value / 10_000)?;
                self.constant(&four(value % 10_000))
            }
            _ => self.large(value),
        }
    }

    #[inline(always)]
    fn below_ten_thousand(&mut self, value: u32) -> Option<()> {
        let zeros = (value < 10) as u32 + (value < 100) as u32 + (value < 1000) as u32;
        let digits = u32::from_le_bytes(four(value)) >> (8 * zeros);
        self.beginning(digits.to_le_bytes(), 4 - zeros as usize)
    }

    #[cold]
    fn large(&mut self, value: u64) -> Option<()> {
        const PART: u64 = 100_000_000;
        if value >= PART {
            self.large(value / PART)?;
            let part = (value % PART) as u32;
            self.constant(&four(part / 10_000))?;
            self.constant(&four(part % 10_000))
        } else {
            self.number(value)
        }
    }

    /// Microseconds as milliseconds with three decimals.
    #[inline(always)]
    pub(super) fn millis(&mut self, micros: u64) -> Option<()> {
        if micros == 0 {
            return self.constant(b"0.000");
        }
        self.number(micros / 1000)?;
        let [_, a, b, c] = four((micros % 1000) as u32);
        self.constant(&[b'.', a, b, c])
    }

    /// A response code as RFC 7252 §12.1 writes it.
    #[inline(always)]
    pub(super) fn code(&mut self, class: u8, detail: u8) -> Option<()> {
        let [tens, ones] = pair(detail.into());
        self.constant(&[b'0' + class, b'.', tens, ones])
    }

    /// Bytes in hexadecimal.
    #[inline(always)]
    pub(super) fn hex(&mut self, bytes: &[u8]) -> Option<()> {
        if let Ok(&[a, b, c, d, e, f, g, h]) = <&[u8; 8]>::try_from(bytes) {
            let [[a, i], [b, j], [c, k], [d, l]] = [hex(a), hex(b), hex(c), hex(d)];
            let [[e, m], [f, n], [g, o], [h, p]] = [hex(e), hex(f), hex(g), hex(h)];
            return self.constant(&[a, i, b, j, c, k, d, l, e, m, f, n, g, o, h, p]);
        }
        bytes.iter().try_for_each(|&byte| self.constant(&hex(byte)))
    }

    /// An address and its port, without quotation marks.
    #[inline(always)]
    pub(super) fn address(&mut self, address: SocketAddr) -> Option<()> {
        match address {
            SocketAddr::V4(address) => self.ipv4(*address.ip())?,
            SocketAddr::V6(address) => {
                self.constant(b"[")?;
                self.ipv6(*address.ip())?;
                if address.scope_id() != 0 {
                    self.constant(b"%")?;
                    self.number(address.scope_id().into())?;
                }
                self.constant(b"]")?;
            }
        }
        self.constant(b":")?;
        self.number(address.port().into())
    }

    #[inline(always)]
    fn ipv4(&mut self, address: Ipv4Addr) -> Option<()> {
        let [first, second, third, last] = address.octets();
        for number in [first, second, third] {
            let (text, digits) = octet(number);
            self.beginning(text, digits + 1)?;
        }
        let (text, digits) = octet(last);
        self.beginning(text, digits)
    }

    /// Source: RFC 5952 §4, §5.
    fn ipv6(&mut self, address: Ipv6Addr) -> Option<()> {
        if let Some(mapped) = address.to_ipv4_mapped() {
            self.constant(b"::ffff:")?;
            return self.ipv4(mapped);
        }
        let segments = address.segments();
        let zeros = longest_zeros(&segments);
        for (place, segment) in segments.into_iter().enumerate() {
            if zeros.contains(&place) {
                if place == zeros.start {
                    self.constant(b"::")?;
                }
                continue;
            }
            if place > 0 && place != zeros.end {
                self.constant(b":")?;
            }
            let [high, low] = segment.to_be_bytes().map(hex);
            let digits = u32::from_le_bytes([high[0], high[1], low[0], low[1]]);
            let zeros = (segment < 0x10) as u32 + (segment < 0x100) as u32 + (segment < 0x1000) as u32;
            self.beginning((digits >> (8 * zeros)).to_le_bytes(), 4 - zeros as usize)?;
        }
        Some(())
    }

    /// A string without its quotation marks. What is no UTF-8 becomes U+FFFD.
    #[inline(always)]
    pub(super) fn text(&mut self, text: &[u8]) -> Option<()> {
        if let Some(last) = text.last_chunk::<16>() {
            let (chunks, _) = text.as_chunks::<16>();
            if !chunks.iter().all(is_plain) || !is_plain(last) {
                return self.escaped(text);
            }
            let (place, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(text.len())?;
            place.copy_from_slice(text);
            self.rest = rest;
            return Some(());
        }
        self.ends::<8>(text)
            .or_else(|| self.ends::<4>(text))
            .or_else(|| self.ends::<2>(text))
            .or_else(|| self.ends::<1>(text))
            .or_else(|| self.escaped(text))
    }

    /// Text of `N` to 2 `N` bytes in which nothing is to be escaped, by its first `N` bytes and its
    /// last.
    #[inline(always)]
    fn ends<const N: usize>(&mut self, text: &[u8]) -> Option<()> {
        let (first, last) = (text.first_chunk::<N>()?, text.last_chunk::<N>()?);
        if text.len() > 2 * N || !is_plain(first) || !is_plain(last) {
            return None;
        }
        let (place, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(text.len())?;
        *place.first_chunk_mut()? = *first;
        *place.last_chunk_mut()? = *last;
        self.rest = rest;
        Some(())
    }

    fn escaped(&mut self, text: &[u8]) -> Option<()> {
        for chunk in text.utf8_chunks() {
            for &byte in chunk.valid().as_bytes() {
                match byte {
                    b'"' => self.constant(b"\\\"")?,
                    b'\\' => self.constant(b"\\\\")?,
                    ..b' ' => {
                        let [high, low] = hex(byte);
                        self.constant(&[b'\\', b'u', b'0', b'0', high, low])?;
                    }
                    _ => self.constant(&[byte])?,
                }
            }
            if !chunk.invalid().is_empty() {
                self.constant("\u{FFFD}".as_bytes().first_chunk::<3>()?)?;
            }
        }
        Some(())
    }
}

/// Whether bytes are ASCII that stands unescaped in a string.
#[inline(always)]
fn is_plain<const N: usize>(bytes: &[u8; N]) -> bool {
    // Without a branch, so that all bytes are looked at together.
    let is_special = |byte: u8| !(b' '..=b'~').contains(&byte) | (byte == b'"') | (byte == b'\\');
    !bytes.iter().fold(false, |any, &byte| any | is_special(byte))
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
