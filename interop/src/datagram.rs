//! A datagram codec that shares no code with the product, and whose fields can be nonsense.

use std::fmt;

/// The type field of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CON.
    Confirmable,
    /// NON.
    NonConfirmable,
    /// ACK.
    Acknowledgement,
    /// RST.
    Reset,
}

/// A code byte, written `2.05`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u8);

/// 0.00, the code of an Empty message.
pub const EMPTY: Code = Code(0);
/// 0.01.
pub const GET: Code = Code(1);
/// 0.02.
pub const POST: Code = Code(2);
/// 0.03.
pub const PUT: Code = Code(3);
/// 2.05.
pub const CONTENT: Code = Code(0x45);
/// 5.02.
pub const BAD_GATEWAY: Code = Code(0xa2);
/// 5.04.
pub const GATEWAY_TIMEOUT: Code = Code(0xa4);

/// Option numbers that the tests name.
pub mod option {
    /// Uri-Host.
    pub const URI_HOST: u16 = 3;
    /// ETag.
    pub const ETAG: u16 = 4;
    /// Uri-Port.
    pub const URI_PORT: u16 = 7;
    /// Uri-Path.
    pub const URI_PATH: u16 = 11;
    /// Max-Age.
    pub const MAX_AGE: u16 = 14;
    /// Uri-Query.
    pub const URI_QUERY: u16 = 15;
    /// Hop-Limit.
    pub const HOP_LIMIT: u16 = 16;
    /// Proxy-Uri.
    pub const PROXY_URI: u16 = 35;
    /// Proxy-Scheme.
    pub const PROXY_SCHEME: u16 = 39;
}

/// One CoAP message over UDP.
#[derive(Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Its type.
    pub kind: Kind,
    /// Its method or response code.
    pub code: Code,
    /// Its Message ID.
    pub message_id: u16,
    /// Its token, 0 to 8 bytes.
    pub token: Vec<u8>,
    /// Its options in ascending order of their numbers.
    pub options: Vec<(u16, Vec<u8>)>,
    /// Its payload; an empty one has no marker.
    pub payload: Vec<u8>,
}

impl Datagram {
    /// A message without options or payload.
    pub fn new(kind: Kind, code: Code, message_id: u16, token: &[u8]) -> Self {
        Self { kind, code, message_id, token: token.to_vec(), options: Vec::new(), payload: Vec::new() }
    }

    /// An Empty message.
    pub fn empty(kind: Kind, message_id: u16) -> Self {
        Self::new(kind, EMPTY, message_id, &[])
    }

    /// The response that rides in the Acknowledgement of this request.
    pub fn piggybacked(&self, code: Code) -> Self {
        Self::new(Kind::Acknowledgement, code, self.message_id, &self.token)
    }

    /// Adds an option, keeping the numbers in order.
    pub fn option(mut self, number: u16, value: impl AsRef<[u8]>) -> Self {
        let place = self.options.partition_point(|(other, _)| *other <= number);
        self.options.insert(place, (number, value.as_ref().to_vec()));
        self
    }

    /// Sets the payload.
    pub fn payload(mut self, payload: impl AsRef<[u8]>) -> Self {
        self.payload = payload.as_ref().to_vec();
        self
    }

    /// The values of all options with this number.
    pub fn values(&self, number: u16) -> Vec<&[u8]> {
        self.options.iter().filter(|(other, _)| *other == number).map(|(_, value)| value.as_slice()).collect()
    }

    /// The bytes on the wire.
    pub fn encode(&self) -> Vec<u8> {
        let token_length = u8::try_from(self.token.len()).expect("tokens in tests are short");
        let mut bytes = vec![0x40 | (self.kind as u8) << 4 | token_length, self.code.0];
        bytes.extend(self.message_id.to_be_bytes());
        bytes.extend(&self.token);
        let mut previous = 0;
        for (number, value) in &self.options {
            let (delta, delta_bytes) = nibble(usize::from(number - previous));
            let (length, length_bytes) = nibble(value.len());
            bytes.push(delta << 4 | length);
            bytes.extend(delta_bytes);
            bytes.extend(length_bytes);
            bytes.extend(value);
            previous = *number;
        }
        if !self.payload.is_empty() {
            bytes.push(0xff);
            bytes.extend(&self.payload);
        }
        bytes
    }

    /// Reads a datagram; `None` when it is not well formed.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[first, code, high, low], rest) = bytes.split_first_chunk::<4>()?;
        let kind = match (first >> 6, first >> 4 & 3) {
            (1, 0) => Kind::Confirmable,
            (1, 1) => Kind::NonConfirmable,
            (1, 2) => Kind::Acknowledgement,
            (1, 3) => Kind::Reset,
            _ => return None,
        };
        let (token, mut rest) =
            rest.split_at_checked(usize::from(first & 15)).filter(|(t, _)| t.len() <= 8)?;
        let mut message = Self::new(kind, Code(code), u16::from_be_bytes([high, low]), token);
        let mut number = 0_u16;
        while let Some((&head, tail)) = rest.split_first() {
            if head == 0xff {
                message.payload = Some(tail).filter(|payload| !payload.is_empty())?.to_vec();
                break;
            }
            let (delta, tail) = extended(head >> 4, tail)?;
            let (length, tail) = extended(head & 15, tail)?;
            let (value, tail) = tail.split_at_checked(length)?;
            number = number.checked_add(u16::try_from(delta).ok()?)?;
            message.options.push((number, value.to_vec()));
            rest = tail;
        }
        Some(message)
    }
}

fn nibble(value: usize) -> (u8, Vec<u8>) {
    match value {
        0..13 => (value as u8, Vec::new()),
        13..269 => (13, vec![(value - 13) as u8]),
        _ => (14, ((value - 269) as u16).to_be_bytes().to_vec()),
    }
}

fn extended(nibble: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    match nibble {
        13 => rest.split_first().map(|(byte, rest)| (usize::from(*byte) + 13, rest)),
        14 => rest
            .split_first_chunk::<2>()
            .map(|(two, rest)| (usize::from(u16::from_be_bytes(*two)) + 269, rest)),
        15 => None,
        _ => Some((usize::from(nibble), rest)),
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:02}", self.0 >> 5, self.0 & 31)
    }
}

impl fmt::Debug for Datagram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, code, message_id, token, options, payload } = self;
        write!(formatter, "{kind:?} {code:?} {message_id:04x} token {token:02x?} options {options:02x?} ")?;
        write!(formatter, "payload {:?}", String::from_utf8_lossy(payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_it_reads() {
        let message = Datagram::new(Kind::NonConfirmable, GET, 0x1234, b"token")
            .option(option::PROXY_URI, [b'x'; 300])
            .option(option::URI_PATH, [b'y'; 13])
            .option(65_000, [])
            .payload("text");
        assert_eq!(Datagram::decode(&message.encode()), Some(message));
    }

    #[test]
    fn writes_the_bytes_of_the_specification() {
        let message = Datagram::new(Kind::Confirmable, GET, 0x1234, &[0xaa, 0xbb]).option(11, "temp");
        assert_eq!(message.encode(), [0x42, 1, 0x12, 0x34, 0xaa, 0xbb, 0xb4, b't', b'e', b'm', b'p']);
    }

    #[test]
    fn refuses_what_is_cut_short() {
        for bytes in
            [&[0x40, 1, 0][..], &[0x44, 1, 0, 1, 0xaa], &[0x40, 1, 0, 1, 0xff], &[0x40, 1, 0, 1, 0xb9, 1]]
        {
            assert_eq!(Datagram::decode(bytes), None);
        }
    }
}
