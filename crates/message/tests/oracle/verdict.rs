//! Which bytes are a message, once by us and once by `coap-lite`. The fuzz targets use it too.

use coap_lite::Packet;
use coapway_message::{Datagram, Malformed};

/// What RFC 7252 §3 makes of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Message,
    FormatError,
    Ignored,
}

/// What we make of bytes.
pub(crate) fn verdict(bytes: &[u8]) -> Verdict {
    match Datagram::parse(bytes) {
        Ok(_) => Verdict::Message,
        Err(Malformed::Format { .. }) => Verdict::FormatError,
        Err(Malformed::Ignored) => Verdict::Ignored,
    }
}

/// What `coap-lite` makes of bytes, with its errors put right.
pub(crate) fn expected(bytes: &[u8]) -> Verdict {
    let &[first, code, high, low, ref rest @ ..] = bytes else { return Verdict::Ignored };
    if first >> 6 != 1 {
        return Verdict::Ignored;
    }
    if code == 0 {
        return if first & 15 == 0 && rest.is_empty() { Verdict::Message } else { Verdict::FormatError };
    }
    let (extension, token) = match (first & 15, rest) {
        (length @ 0..=12, _) => (0, usize::from(length)),
        (13, [byte, ..]) => (1, 13 + usize::from(*byte)),
        (14, [high, low, ..]) => (2, 269 + 256 * usize::from(*high) + usize::from(*low)),
        _ => return Verdict::FormatError,
    };
    let Some(rest) = rest.get(extension + token..) else { return Verdict::FormatError };
    let without_token = [&[first & 0xF0, code, high, low], rest].concat();
    match Packet::from_bytes(&without_token) {
        // A marker without payload is lost when it is encoded again; all else has one encoding.
        Ok(packet) if packet.to_bytes_unlimited().ok().as_deref() == Some(&without_token) => Verdict::Message,
        Ok(_) | Err(_) => Verdict::FormatError,
    }
}
