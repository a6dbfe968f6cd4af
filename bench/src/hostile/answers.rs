//! What a hostile origin says to a request, and what others say who know where it came from.

use fastrand::Rng;

use super::malformed::Malformed;
use super::requests::{write_path, write_random};
use crate::coap::{self, ACK, CHANGED, CON, CONTENT, EMPTY, GET, Message, NON, PAYLOAD_MARKER, POST, RST};

/// The name of the slow resource.
const SLOW: &[u8] = b"slow";

/// When an answer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// At once.
    Now,
    /// After so many milliseconds.
    Late(u64),
    /// At once, so many times.
    Repeatedly(u8),
    /// At once, from a port that was not asked.
    Elsewhere,
}

/// What is known of a message of the proxy: enough to forge an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Its Message ID.
    pub(super) message_id: u16,
    /// The first eight bytes of its token; the proxy's own have eight.
    pub(super) token: [u8; 8],
    length: usize,
}

impl Seen {
    /// What `request` gives away.
    pub(super) fn of(request: &Message<'_>) -> Self {
        let mut token = [0; 8];
        let length = request.token.len().min(8);
        token.iter_mut().zip(request.token).for_each(|(place, byte)| *place = *byte);
        Self { message_id: request.message_id, token, length }
    }

    fn token(&self) -> &[u8] {
        self.token.get(..self.length).unwrap_or_default()
    }
}

/// Writes the answer to `request` into `out`; `None` when the origin keeps silent.
pub(super) fn answer(request: &Message<'_>, random: &mut Rng, out: &mut Vec<u8>) -> Option<When> {
    out.clear();
    if request.code == EMPTY {
        return None;
    }
    let seen = Seen::of(request);
    if request.last_segment == Some(SLOW) {
        coap::write_head(out, CON, CONTENT, random.u16(..), seen.token());
        out.extend(b"\xffslow");
        return Some(When::Late(random.u64(600..2000)));
    }
    let reply = |out: &mut Vec<u8>, kind, code, id| coap::write_head(out, kind, code, id, seen.token());
    let (id, other_id) = (seen.message_id, random.u16(..));
    match random.u8(..20) {
        0 => return None,
        1 => out.extend(coap::empty(RST, id)),
        // Acknowledged, and never answered.
        2 => out.extend(coap::empty(ACK, id)),
        3 => {
            coap::write_head(out, ACK, CONTENT, id, &random.u64(..).to_be_bytes());
            out.extend(b"\xfftoken");
        }
        4 => {
            reply(out, ACK, CONTENT, other_id);
            out.extend(b"\xffid");
        }
        5 => {
            Malformed::any(random).write(random, out);
            // Often it is the answer that is malformed, not any message.
            if let (Some(place), true) = (out.get_mut(2..4), random.bool()) {
                place.copy_from_slice(&id.to_be_bytes());
            }
        }
        6 => {
            // Our answer, and broken behind the token (RFC 7252 §5.7.1).
            reply(out, ACK, CONTENT, id);
            out.push(PAYLOAD_MARKER);
        }
        7 => {
            reply(out, ACK, CONTENT, id);
            out.push(PAYLOAD_MARKER);
            out.resize(random.usize(1200..9000), b'x');
        }
        8 => {
            reply(out, ACK, CONTENT, id);
            out.extend(b"\xffagain");
            return Some(When::Repeatedly(8));
        }
        9 => {
            reply(out, CON, CONTENT, other_id);
            out.extend(b"\xffseparate");
            return Some(When::Repeatedly(4));
        }
        10 => {
            reply(out, NON, CONTENT, other_id);
            out.extend(b"\xffnon");
        }
        11 => reply(out, ACK, [0x20, 0x3f, 0xc0, 0xe5, 0xff][random.usize(..5)], id),
        12 => {
            // Critical and unsafe, and nobody knows it.
            reply(out, ACK, CONTENT, id);
            coap::write_option(out, 65_003, b"?");
        }
        13 => {
            // A notification that nobody asked for, with an absurd Max-Age.
            reply(out, CON, CONTENT, other_id);
            coap::write_option(out, 6, &[random.u8(..)]);
            coap::write_option(out, 8, &[0xff; 4]);
            out.extend(b"\xffnotification");
        }
        14 => {
            reply(out, ACK, CHANGED, id);
            (0..200).for_each(|_| coap::write_option(out, 0, b""));
        }
        15 => {
            reply(out, ACK, CONTENT, id);
            out.extend(b"\xffelsewhere");
            return Some(When::Elsewhere);
        }
        16 => {
            reply(out, CON, CONTENT, other_id);
            out.extend(b"\xfflate");
            return Some(When::Late(random.u64(500..40_000)));
        }
        // A request in place of an answer.
        17 => {
            coap::write_head(out, CON, GET, other_id, seen.token());
            write_path(out, &[b"good", b"from-origin"]);
        }
        _ => {
            reply(out, ACK, CONTENT, id);
            out.extend(b"\xffright");
        }
    }
    Some(When::Now)
}

/// Writes a datagram to a source port of the proxy where `seen` was sent from, maybe long ago.
pub(super) fn forge(seen: Option<&Seen>, random: &mut Rng, out: &mut Vec<u8>) {
    out.clear();
    let guess = match seen {
        Some(seen) => seen.message_id.wrapping_add(random.u16(..64)),
        None => random.u16(..),
    };
    let token = match seen {
        Some(seen) if random.bool() => seen.token,
        Some(_) | None => random.u64(..).to_be_bytes(),
    };
    match random.u8(..9) {
        0 => Malformed::any(random).write(random, out),
        1 => write_random(random, 600, out),
        2 => out.extend(coap::empty(ACK, guess)),
        3 => out.extend(coap::empty(RST, guess)),
        4 => out.extend(coap::empty(CON, guess)),
        5 => {
            coap::write_head(out, CON, POST, guess, &token);
            write_path(out, &[b"good", b"forged"]);
        }
        6 => {
            coap::write_head(out, CON, CONTENT, guess, &token);
            out.extend(b"\xffforged");
        }
        7 => {
            coap::write_head(out, NON, CONTENT, guess, &token);
            out.extend(b"\xffforged");
        }
        _ => {
            coap::write_head(out, ACK, CONTENT, guess, &token);
            out.extend(b"\xffforged");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(segment: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        coap::write_head(&mut out, CON, GET, 0x1234, b"8 bytes!");
        write_path(&mut out, &[segment]);
        out
    }

    #[test]
    fn answers_in_every_way_and_sometimes_rightly() {
        let (mut random, mut out, datagram) = (Rng::with_seed(1), Vec::new(), request(b"any"));
        let request = Message::parse(&datagram).expect("a message");
        let (mut silent, mut right, mut broken) = (0, 0, 0);
        for _ in 0..2000 {
            match answer(&request, &mut random, &mut out) {
                None => silent += 1,
                Some(_) if out.ends_with(b"\xffright") => right += 1,
                Some(_) => broken += u32::from(coapway_message::Datagram::parse(&out).is_err()),
            }
        }
        assert!(silent > 50 && right > 100 && broken > 100, "{silent} {right} {broken}");
    }

    #[test]
    fn the_slow_resource_outlasts_the_early_acknowledgement() {
        let (mut random, mut out, datagram) = (Rng::with_seed(1), Vec::new(), request(SLOW));
        let request = Message::parse(&datagram).expect("a message");
        for _ in 0..100 {
            let when = answer(&request, &mut random, &mut out);
            assert!(matches!(when, Some(When::Late(600..))), "{when:?}");
            assert!(Message::parse(&out).is_some_and(|answer| answer.token == b"8 bytes!"));
        }
    }

    #[test]
    fn forgeries_know_tokens_only_from_what_was_seen() {
        let (mut random, mut out) = (Rng::with_seed(1), Vec::new());
        let datagram = request(b"any");
        let seen = Seen::of(&Message::parse(&datagram).expect("a message"));
        let mut stolen = 0;
        for _ in 0..1000 {
            forge(Some(&seen), &mut random, &mut out);
            stolen += u32::from(out.windows(8).any(|bytes| bytes == b"8 bytes!"));
        }
        assert!(stolen > 100, "{stolen}");
        forge(None, &mut random, &mut out);
    }
}
