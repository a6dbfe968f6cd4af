//! Datagrams that are no CoAP messages, one kind for each format error of RFC 7252 §3 and §4.1.

use fastrand::Rng;

use crate::coap::{self, PAYLOAD_MARKER};

/// What is wrong with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// Fewer than four bytes, or none.
    Short,
    /// Version 0, 2 or 3.
    Version,
    /// The reserved token length 15.
    ReservedTokenLength,
    /// A token that runs past the end.
    CutToken,
    /// Code 0.00 with something after the Message ID.
    NotEmpty,
    /// The delta 15 in a byte that is no payload marker.
    ReservedDelta,
    /// The option length 15.
    ReservedLength,
    /// An extended delta without its bytes.
    CutDelta,
    /// An extended length without its bytes.
    CutLength,
    /// An option value that runs past the end.
    CutValue,
    /// An option number above 65535.
    HugeNumber,
    /// A payload marker without payload.
    BareMarker,
}

impl Malformed {
    /// Every kind.
    pub(super) const ALL: [Self; 12] = [
        Self::Short,
        Self::Version,
        Self::ReservedTokenLength,
        Self::CutToken,
        Self::NotEmpty,
        Self::ReservedDelta,
        Self::ReservedLength,
        Self::CutDelta,
        Self::CutLength,
        Self::CutValue,
        Self::HugeNumber,
        Self::BareMarker,
    ];

    /// Any of them.
    pub(super) fn any(random: &mut Rng) -> Self {
        Self::ALL.get(random.usize(..Self::ALL.len())).copied().unwrap_or(Self::Short)
    }

    /// Writes such a datagram: any type, method or response code, Message ID and token where the kind
    /// leaves the choice.
    pub(super) fn write(self, random: &mut Rng, out: &mut Vec<u8>) {
        out.clear();
        let mut token = [0; 8];
        random.fill(&mut token);
        let code = if random.bool() { random.u8(0x01..=0x07) } else { random.u8(0x40..=0xa5) };
        let token = token.get(..random.usize(..=8)).unwrap_or_default();
        coap::write_head(out, random.u8(..4), code, random.u16(..), token);
        match self {
            Self::Short => out.truncate(random.usize(..4)),
            Self::Version => {
                let version = [0x00, 0x80, 0xc0][random.usize(..3)];
                change_first(out, |first| first & 0x3f | version);
            }
            Self::ReservedTokenLength => change_first(out, |first| first | 0x0f),
            Self::CutToken => {
                let length = random.u8(1..=8);
                change_first(out, |first| first & 0xf0 | length);
                out.truncate(4 + random.usize(..usize::from(length)));
            }
            Self::NotEmpty => {
                if let Some(code) = out.get_mut(1) {
                    *code = coap::EMPTY;
                }
                out.push(random.u8(..));
            }
            Self::ReservedDelta => out.extend([0xf0 | random.u8(..15), random.u8(..)]),
            Self::ReservedLength => out.extend([random.u8(..15) << 4 | 0x0f, random.u8(..)]),
            Self::CutDelta => {
                let (nibble, bytes) = if random.bool() { (0xd0, 0) } else { (0xe0, random.usize(..2)) };
                out.push(nibble);
                out.extend(std::iter::repeat_n(7, bytes));
            }
            Self::CutLength => {
                let (nibble, bytes) = if random.bool() { (0x0d, 0) } else { (0x0e, random.usize(..2)) };
                out.push(0x10 | nibble);
                out.extend(std::iter::repeat_n(7, bytes));
            }
            Self::CutValue => {
                let length = random.u8(1..=12);
                out.push(0xb0 | length);
                out.extend(std::iter::repeat_n(b'x', random.usize(..usize::from(length))));
            }
            Self::HugeNumber => {
                coap::write_option(out, u16::MAX, b"");
                coap::write_option(out, random.u16(1..), b"");
            }
            Self::BareMarker => out.push(PAYLOAD_MARKER),
        }
    }
}

fn change_first(out: &mut [u8], change: impl FnOnce(u8) -> u8) {
    if let Some(first) = out.first_mut() {
        *first = change(*first);
    }
}

#[cfg(test)]
mod tests {
    use coapway_message::Datagram;

    use super::*;

    #[test]
    fn every_kind_is_refused_by_the_codec() {
        let mut random = Rng::with_seed(1);
        let mut out = Vec::new();
        for kind in Malformed::ALL {
            for _ in 0..2000 {
                kind.write(&mut random, &mut out);
                assert!(Datagram::parse(&out).is_err(), "{kind:?}: {out:02x?}");
            }
        }
    }

    #[test]
    fn any_means_each_of_them() {
        let mut random = Rng::with_seed(2);
        let drawn: Vec<Malformed> = (0..1000).map(|_| Malformed::any(&mut random)).collect();
        assert!(Malformed::ALL.iter().all(|kind| drawn.contains(kind)));
    }
}
