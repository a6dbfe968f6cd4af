//! Messages in good form and bad faith, as strangers send them to a proxy's listener.

use std::net::{Ipv4Addr, SocketAddr};

use fastrand::Rng;

use crate::coap::{self, ACK, CON, EMPTY, GET, NON, PAYLOAD_MARKER, POST, PROXY_URI, RST, URI_PATH};

/// Names that do not exist (RFC 6761 §6.4), more than any table of names holds.
const NAMES: u32 = 200_000;

/// What such a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Mischief {
    /// A GET that the good origin answers: what is repeated later.
    GoodLooking,
    /// A critical option that nobody knows.
    UnknownCritical,
    /// Options of a thousand bytes, or some hundred of them.
    LongOptions,
    /// A token of 13 to 1000 bytes (RFC 8974).
    ExtendedToken,
    /// A datagram above 2048 bytes.
    Oversize,
    /// A CoAP ping.
    Ping,
    /// An Acknowledgement with a guessed Message ID.
    Acknowledgement,
    /// A Reset with a guessed Message ID.
    Reset,
    /// A response that nobody asked for.
    Response,
    /// A code of the classes 1, 6 and 7, or an unknown method.
    ReservedCode,
    /// A Confirmable POST, which must be remembered.
    Post,
    /// A Non-confirmable request.
    NonConfirmable,
    /// Forwarding to a port of this host where nobody listens.
    ClosedPort,
    /// Forwarding to a name that does not exist.
    UnknownName,
    /// A request to the hostile origin.
    HostileOrigin,
    /// The same to its slow resource; the separate response is never acknowledged.
    Slow,
}

impl Mischief {
    /// Each with its share, in parts of the sum.
    pub(super) const SHARES: [(Self, u32); 16] = [
        (Self::GoodLooking, 4),
        (Self::UnknownCritical, 6),
        (Self::LongOptions, 4),
        (Self::ExtendedToken, 6),
        (Self::Oversize, 1),
        (Self::Ping, 6),
        (Self::Acknowledgement, 6),
        (Self::Reset, 6),
        (Self::Response, 6),
        (Self::ReservedCode, 6),
        (Self::Post, 12),
        (Self::NonConfirmable, 12),
        (Self::ClosedPort, 6),
        (Self::UnknownName, 6),
        (Self::HostileOrigin, 6),
        (Self::Slow, 2),
    ];

    /// Any of them, by their shares.
    pub(super) fn any(random: &mut Rng) -> Self {
        let all: u32 = Self::SHARES.iter().map(|(_, share)| share).sum();
        let mut drawn = random.u32(..all);
        for (mischief, share) in Self::SHARES {
            match drawn.checked_sub(share) {
                Some(rest) => drawn = rest,
                None => return mischief,
            }
        }
        Self::Ping
    }
}

/// Where the requests lead.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    /// The good origin.
    pub(super) good: SocketAddr,
    /// Ports that stay free on all addresses of 127.9.0.0/16.
    pub(super) closed: Vec<u16>,
}

impl Targets {
    /// Writes such a message.
    pub(super) fn write(&self, mischief: Mischief, random: &mut Rng, out: &mut Vec<u8>) {
        out.clear();
        let mut token = [0; 4];
        random.fill(&mut token);
        let message_id = random.u16(..);
        let confirmable = if random.u8(..4) > 0 { CON } else { NON };
        let head = |out: &mut Vec<u8>, kind, code| coap::write_head(out, kind, code, message_id, &token);
        match mischief {
            Mischief::GoodLooking => {
                head(out, CON, GET);
                write_path(out, &[b"good", b"same"]);
            }
            Mischief::UnknownCritical => {
                head(out, confirmable, GET);
                coap::write_option(out, random.u16(..32_000) << 1 | 0x401, b"?");
            }
            Mischief::LongOptions => {
                head(out, confirmable, GET);
                write_path(out, &[b"good"]);
                if random.bool() {
                    coap::write_option(out, 2048 - URI_PATH as u16, &[b'x'; 1000]);
                } else {
                    (0..300).for_each(|_| coap::write_option(out, random.u16(..8) * 4, b"x"));
                }
            }
            Mischief::ExtendedToken => write_extended_token(random, confirmable, message_id, out),
            Mischief::Oversize => {
                head(out, CON, POST);
                write_path(out, &[b"good"]);
                out.push(PAYLOAD_MARKER);
                out.resize(random.usize(2049..8000), b'x');
            }
            Mischief::Ping => out.extend(coap::empty(CON, message_id)),
            Mischief::Acknowledgement => out.extend(coap::empty(ACK, message_id)),
            Mischief::Reset => out.extend(coap::empty(RST, message_id)),
            Mischief::Response => {
                head(out, random.u8(..3), random.u8(0x41..=0x45));
                out.extend([PAYLOAD_MARKER, b'?']);
            }
            Mischief::ReservedCode => {
                let code = [0x1f, 0x20, 0x3f, 0xc0, 0xdf, 0xe1, 0xff][random.usize(..7)];
                head(out, random.u8(..4), code);
            }
            Mischief::Post => {
                head(out, CON, POST);
                let first: &[u8] = [&b"good"[..], b"hostile", b"nowhere"][random.usize(..3)];
                write_path(out, &[first, b"post"]);
                out.extend([PAYLOAD_MARKER, b'!']);
            }
            Mischief::NonConfirmable => {
                head(out, NON, GET);
                let first: &[u8] = [&b"hostile"[..], b"nowhere"][random.usize(..2)];
                write_path(out, &[first, b"non"]);
            }
            Mischief::ClosedPort => {
                head(out, confirmable, GET);
                let port = self.closed.get(random.usize(..self.closed.len().max(1))).copied().unwrap_or(9);
                let host = Ipv4Addr::new(127, 9, random.u8(..), random.u8(1..255));
                coap::write_option(out, PROXY_URI as u16, format!("coap://{host}:{port}/closed").as_bytes());
            }
            Mischief::UnknownName => {
                head(out, confirmable, GET);
                let uri = format!("coap://n{}.invalid/name", random.u32(..NAMES));
                coap::write_option(out, PROXY_URI as u16, uri.as_bytes());
            }
            Mischief::HostileOrigin => {
                head(out, confirmable, GET);
                write_path(out, &[b"hostile", b"any"]);
            }
            Mischief::Slow => {
                head(out, CON, GET);
                write_path(out, &[b"hostile", b"slow"]);
            }
        }
    }

    /// A request like the good clients' own, with the last part left to chance: a header in good form.
    pub(super) fn write_random_rest(&self, random: &mut Rng, out: &mut Vec<u8>) {
        out.clear();
        coap::write_head(out, random.u8(..4), random.u8(..), random.u16(..), &[]);
        write_random(random, 200, out);
    }

    /// A good request with some of its bits turned over.
    pub(super) fn write_turned(&self, random: &mut Rng, out: &mut Vec<u8>) {
        let uri = format!("coap://{}/bench/turned", self.good);
        coap::write_get(out, random.u16(..), *b"turn", uri.as_bytes());
        for _ in 0..random.u8(1..8) {
            let place = random.usize(..out.len());
            if let Some(byte) = out.get_mut(place) {
                *byte ^= 1 << random.u8(..8);
            }
        }
    }
}

/// Appends 0 to `most` random bytes.
pub(super) fn write_random(random: &mut Rng, most: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + random.usize(..=most), 0);
    random.fill(out.get_mut(start..).unwrap_or_default());
}

/// Appends Uri-Path options; no other option may stand before them.
pub(super) fn write_path(out: &mut Vec<u8>, segments: &[&[u8]]) {
    let mut delta = URI_PATH as u16;
    for segment in segments {
        coap::write_option(out, delta, segment);
        delta = 0;
    }
}

fn write_extended_token(random: &mut Rng, kind: u8, message_id: u16, out: &mut Vec<u8>) {
    coap::write_head(out, kind, GET, message_id, &[]);
    let length = if random.bool() { random.u16(13..269) } else { random.u16(269..1000) };
    let nibble = if length < 269 { 13 } else { 14 };
    if let Some(first) = out.first_mut() {
        *first |= nibble;
    }
    match nibble {
        13 => out.push((length - 13) as u8),
        _ => out.extend((length - 269).to_be_bytes()),
    }
    out.resize(out.len() + usize::from(length), random.u8(..));
    write_path(out, &[b"good", b"token"]);
    debug_assert_ne!(out.get(1), Some(&EMPTY));
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use coapway_message::{Code, Datagram, MessageType};

    use super::*;

    fn targets() -> Targets {
        Targets { good: ([127, 0, 0, 1], 5683).into(), closed: vec![40_000] }
    }

    #[test]
    fn every_mischief_is_a_message() {
        let mut random = Rng::with_seed(1);
        let mut out = Vec::new();
        for (mischief, _) in Mischief::SHARES {
            for _ in 0..500 {
                targets().write(mischief, &mut random, &mut out);
                assert!(Datagram::parse(&out).is_ok(), "{mischief:?}: {out:02x?}");
            }
        }
    }

    #[test]
    fn each_is_drawn() {
        let mut random = Rng::with_seed(2);
        let drawn: HashSet<Mischief> = (0..5000).map(|_| Mischief::any(&mut random)).collect();
        assert_eq!(drawn.len(), Mischief::SHARES.len());
    }

    #[test]
    fn unknown_options_are_critical_and_posts_are_to_be_remembered() {
        let mut random = Rng::with_seed(3);
        let mut out = Vec::new();
        for _ in 0..500 {
            targets().write(Mischief::UnknownCritical, &mut random, &mut out);
            let datagram = Datagram::parse(&out).unwrap();
            assert!(datagram.content.options.into_iter().any(|(number, _)| number.is_critical()));
            targets().write(Mischief::Post, &mut random, &mut out);
            let datagram = Datagram::parse(&out).unwrap();
            assert_eq!(
                (datagram.message_type, datagram.content.code),
                (MessageType::Confirmable, Code::POST)
            );
            targets().write(Mischief::ExtendedToken, &mut random, &mut out);
            assert!(Datagram::parse(&out).unwrap().token.len() > 8);
        }
    }
}
