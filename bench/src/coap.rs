//! As much CoAP as a load generator and an echo origin need (RFC 7252 §3).

/// Type 0, Confirmable.
pub(crate) const CON: u8 = 0;
/// Type 1, Non-confirmable.
pub(crate) const NON: u8 = 1;
/// Type 2, Acknowledgement.
pub(crate) const ACK: u8 = 2;
/// Type 3, Reset.
pub(crate) const RST: u8 = 3;
/// Code 0.00, the Empty message.
pub(crate) const EMPTY: u8 = 0x00;
/// Code 0.01.
pub(crate) const GET: u8 = 0x01;
/// Code 0.02.
pub(crate) const POST: u8 = 0x02;
/// Code 2.04.
pub(crate) const CHANGED: u8 = 0x44;
/// Code 2.05.
pub(crate) const CONTENT: u8 = 0x45;
/// Code 4.04.
pub(crate) const NOT_FOUND: u8 = 0x84;

/// The option Uri-Path.
pub(crate) const URI_PATH: u32 = 11;
/// The option Proxy-Uri.
pub(crate) const PROXY_URI: u32 = 35;
/// What stands between options and payload.
pub(crate) const PAYLOAD_MARKER: u8 = 0xff;

/// A received message, borrowed from its datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// CON, NON, ACK or RST.
    pub(crate) kind: u8,
    /// Method or response code.
    pub(crate) code: u8,
    /// The Message ID.
    pub(crate) message_id: u16,
    /// 0 to 8 bytes.
    pub(crate) token: &'a [u8],
    /// The last segment of the path, be it named by Uri-Path or by Proxy-Uri.
    pub(crate) last_segment: Option<&'a [u8]>,
    /// What follows the payload marker.
    pub(crate) payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Takes a datagram apart; `None` if it is not a CoAP message.
    pub(crate) fn parse(datagram: &'a [u8]) -> Option<Self> {
        let (&[first, code, high, low], rest) = datagram.split_first_chunk()?;
        let length = usize::from(first & 0x0f);
        if first >> 6 != 1 || length > 8 || rest.len() < length {
            return None;
        }
        let (token, mut rest) = rest.split_at(length);
        let mut last_segment = None;
        let mut payload: &[u8] = &[];
        let mut number = 0;
        while let Some((&head, tail)) = rest.split_first() {
            if head == PAYLOAD_MARKER {
                payload = tail;
                break;
            }
            let (delta, tail) = extended(head >> 4, tail)?;
            let (length, tail) = extended(head & 0x0f, tail)?;
            let (value, tail) = tail.split_at_checked(length as usize)?;
            number += delta;
            match number {
                URI_PATH => last_segment = Some(value),
                PROXY_URI => last_segment = value.rsplit(|byte| *byte == b'/').next(),
                _ => {}
            }
            rest = tail;
        }
        let message_id = u16::from_be_bytes([high, low]);
        Some(Self { kind: first >> 4 & 0x03, code, message_id, token, last_segment, payload })
    }
}

/// Writes a Confirmable GET with the option Proxy-Uri into `out`.
pub(crate) fn write_get(out: &mut Vec<u8>, message_id: u16, token: [u8; 4], proxy_uri: &[u8]) {
    out.clear();
    write_head(out, CON, GET, message_id, &token);
    write_option(out, PROXY_URI as u16, proxy_uri);
}

/// Appends an option, `delta` after the one before; a value longer than 65 804 bytes is cut there.
pub(crate) fn write_option(out: &mut Vec<u8>, delta: u16, value: &[u8]) {
    let value = value.get(..65_804).unwrap_or(value);
    let (delta_nibble, delta_bytes) = nibble(u32::from(delta));
    let (length_nibble, length_bytes) = nibble(value.len() as u32);
    out.push(delta_nibble << 4 | length_nibble);
    for (nibble, [high, low]) in [(delta_nibble, delta_bytes), (length_nibble, length_bytes)] {
        match nibble {
            13 => out.push(low),
            14 => out.extend([high, low]),
            _ => {}
        }
    }
    out.extend(value);
}

/// Writes the reply to `request` into `out`: an Acknowledgement with `payload`.
pub(crate) fn write_reply(out: &mut Vec<u8>, request: &Message<'_>, code: u8, payload: &[u8]) {
    out.clear();
    write_head(out, ACK, code, request.message_id, request.token);
    if !payload.is_empty() {
        out.push(PAYLOAD_MARKER);
        out.extend(payload);
    }
}

/// An Empty message of the given type.
pub(crate) fn empty(kind: u8, message_id: u16) -> [u8; 4] {
    let [high, low] = message_id.to_be_bytes();
    [0x40 | kind << 4, EMPTY, high, low]
}

/// A code as the RFC prints it: 2.05.
pub(crate) fn printed(code: u8) -> String {
    format!("{}.{:02}", code >> 5, code & 0x1f)
}

/// Appends header and token, the latter of 0 to 8 bytes.
pub(crate) fn write_head(out: &mut Vec<u8>, kind: u8, code: u8, message_id: u16, token: &[u8]) {
    out.extend([0x40 | kind << 4 | token.len() as u8, code]);
    out.extend(message_id.to_be_bytes());
    out.extend(token);
}

/// An option's delta or length as its nibble and the bytes that extend it.
fn nibble(value: u32) -> (u8, [u8; 2]) {
    match value {
        0..=12 => (value as u8, [0; 2]),
        13..=268 => (13, [0, (value - 13) as u8]),
        269.. => (14, ((value - 269) as u16).to_be_bytes()),
    }
}

fn extended(nibble: u8, rest: &[u8]) -> Option<(u32, &[u8])> {
    match nibble {
        0..=12 => Some((u32::from(nibble), rest)),
        13 => rest.split_first().map(|(byte, rest)| (u32::from(*byte) + 13, rest)),
        14 => {
            let (bytes, rest) = rest.split_first_chunk()?;
            Some((u32::from(u16::from_be_bytes(*bytes)) + 269, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(uri: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_get(&mut out, 0x1234, *b"abcd", uri);
        out
    }

    #[test]
    fn writes_what_it_parses() {
        let short = b"coap://h/x".to_vec();
        let long = format!("coap://host/{}/x", "y".repeat(300)).into_bytes();
        for uri in [short, b"coap://127.0.0.1:5683/bench/x".to_vec(), long] {
            let datagram = get(&uri);
            let message = Message::parse(&datagram).expect("a message");
            assert_eq!((message.kind, message.code, message.message_id), (CON, GET, 0x1234));
            assert_eq!((message.token, message.last_segment), (&b"abcd"[..], Some(&b"x"[..])));
        }
    }

    #[test]
    fn finds_the_last_segment_of_a_plain_path() {
        let datagram = [0x40, GET, 0, 7, 0xb1, b'a', 0x02, b'b', b'c', 0xff, b'!'];
        let message = Message::parse(&datagram).expect("a message");
        assert_eq!((message.last_segment, message.payload), (Some(&b"bc"[..]), &b"!"[..]));
    }

    #[test]
    fn replies_with_the_token_and_message_id_of_the_request() {
        let request = get(b"coap://h/name");
        let request = Message::parse(&request).expect("a message");
        let mut out = Vec::new();
        write_reply(&mut out, &request, CONTENT, b"name");
        let reply = Message::parse(&out).expect("a message");
        assert_eq!((reply.kind, reply.code, reply.message_id), (ACK, CONTENT, 0x1234));
        assert_eq!((reply.token, reply.payload), (&b"abcd"[..], &b"name"[..]));
    }

    #[test]
    fn refuses_what_is_no_message() {
        let cut_short = get(b"coap://h/name");
        let cut_short = &cut_short[..cut_short.len() - 1];
        for datagram in [
            &b""[..],
            b"\x40\x01\x00",
            b"\x80\x01\x00\x01",
            b"\x49\x01\x00\x01",
            b"\x40\x01\x00\x01\xf0",
            cut_short,
        ] {
            assert_eq!(Message::parse(datagram), None, "{datagram:02x?}");
        }
    }

    #[test]
    fn prints_codes_like_the_rfc() {
        assert_eq!([printed(CONTENT), printed(NOT_FOUND)], ["2.05", "4.04"]);
    }
}
