//! Every exchange between the proxy and an origin, as the wire shows it. Several checks look at it;
//! it judges nothing itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use coapway_endpoint::Trace;
use coapway_message::{Code, Datagram, MessageType, OptionNumber};
use coapway_proxy::SocketRole;
use coapway_time::Instant;

use crate::origin;
use crate::sockets::{LISTENER, address};

/// How an exchange ended for the origin, as far as the proxy can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It answered.
    Response(Code),
    /// It rejected the request.
    Reset,
    /// Nobody listens there.
    Unreachable,
}

/// One request that left under one Message ID and token.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) message_id: u16,
    pub(super) token: Vec<u8>,
    pub(super) bytes: Vec<u8>,
    pub(super) method: Code,
    /// The number behind `k=`; 0 for none.
    pub(super) key: u32,
    pub(super) confirmable: bool,
    /// When its copies left.
    pub(super) copies: Vec<Instant>,
    /// Since when it was acknowledged.
    pub(super) acknowledged: Option<Instant>,
    /// How it ended, and how many copies had left by then.
    pub(super) end: Option<(End, usize)>,
}

impl Exchange {
    pub(super) fn has_option(&self, number: OptionNumber) -> bool {
        Datagram::parse(&self.bytes).is_ok_and(|datagram| datagram.content.options.first(number).is_some())
    }

    /// The origin, and whether it is asked under a name: settings of its own are found by address only.
    pub(super) fn place(&self) -> (SocketAddr, bool) {
        (self.to, self.has_option(OptionNumber::URI_HOST))
    }

    /// Its Request-Tag (RFC 9175 §3).
    pub(super) fn request_tag(&self) -> Option<&[u8]> {
        let datagram = Datagram::parse(&self.bytes).ok()?;
        datagram.content.options.first(OptionNumber::REQUEST_TAG)
    }

    /// Options and payload.
    pub(super) fn content(&self) -> &[u8] {
        self.bytes.get(4 + self.token.len()..).unwrap_or_default()
    }

    /// Whether the proxy may say that the origin did not execute it: the only copy was refused, or
    /// the origin said that it cannot serve now.
    pub(super) fn is_not_executed(&self) -> bool {
        match self.end {
            Some((End::Reset | End::Unreachable, copies)) => copies == 1 && self.acknowledged.is_none(),
            Some((End::Response(code), _)) => {
                matches!(code, Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS)
            }
            None => false,
        }
    }

    /// Whether nothing more is waited for from the message layer.
    pub(super) const fn is_settled(&self) -> bool {
        self.acknowledged.is_some() || self.end.is_some()
    }
}

/// What a datagram of the proxy to an origin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The first copy of a request.
    First(usize),
    /// A further one.
    Copy(usize),
    /// No request to an origin.
    Other,
}

/// All exchanges, by number in the order of their first copies.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    all: Vec<Exchange>,
    by_message_id: BTreeMap<(SocketAddr, SocketAddr, u16), usize>,
    by_token: BTreeMap<(SocketAddr, SocketAddr, Vec<u8>), usize>,
}

impl Exchanges {
    pub(super) fn get(&self, number: usize) -> &Exchange {
        &self.all[number]
    }

    pub(super) fn all(&self) -> &[Exchange] {
        &self.all
    }

    /// The latest one under this Message ID.
    pub(super) fn find(&self, from: SocketAddr, to: SocketAddr, message_id: u16) -> Option<&Exchange> {
        self.by_message_id.get(&(from, to, message_id)).map(|&number| self.get(number))
    }

    /// The exchange a record speaks of.
    pub(super) fn of(&self, trace: &Trace) -> Option<&Exchange> {
        self.number_of(trace).map(|number| self.get(number))
    }

    pub(super) fn number_of(&self, trace: &Trace) -> Option<usize> {
        let from = address(SocketRole::of(trace.peer.local.socket));
        self.by_token.get(&(from, trace.peer.remote, trace.token.as_bytes().to_vec())).copied()
    }

    pub(super) fn sent(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) -> Seen {
        let Ok(datagram) = Datagram::parse(bytes) else { return Seen::Other };
        if from == LISTENER || !datagram.content.code.is_request() {
            return Seen::Other;
        }
        let token = datagram.token.to_vec();
        let known = self.by_message_id.get(&(from, to, datagram.message_id)).copied();
        if let Some(number) = known.filter(|&number| self.all[number].bytes == bytes) {
            self.all[number].copies.push(now);
            return Seen::Copy(number);
        }
        let number = self.all.len();
        self.by_message_id.insert((from, to, datagram.message_id), number);
        self.by_token.insert((from, to, token.clone()), number);
        self.all.push(Exchange {
            from,
            to,
            message_id: datagram.message_id,
            token,
            bytes: bytes.to_vec(),
            method: datagram.content.code,
            key: origin::key(&datagram.content),
            confirmable: datagram.message_type == MessageType::Confirmable,
            copies: vec![now],
            acknowledged: None,
            end: None,
        });
        Seen::First(number)
    }

    /// Something came to one of the proxy's ports. Returns the exchange it belongs to.
    pub(super) fn received(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &[u8],
        now: Instant,
    ) -> Option<usize> {
        let Ok(Datagram { message_type, message_id, token, content }) = Datagram::parse(bytes) else {
            return None;
        };
        let acknowledges = matches!(message_type, MessageType::Acknowledgement | MessageType::Reset);
        let by_message_id = || self.by_message_id.get(&(to, from, message_id)).copied();
        let by_token = || self.by_token.get(&(to, from, token.to_vec())).copied();
        let number = match (acknowledges, content.code == Code::EMPTY) {
            (true, true) => by_message_id()?,
            // In an Acknowledgement both must be right (R-TOK-07).
            (true, false) => by_message_id().filter(|&number| self.all[number].token == token)?,
            (false, _) => by_token()?,
        };
        let exchange = &mut self.all[number];
        if message_type == MessageType::Acknowledgement {
            exchange.acknowledged.get_or_insert(now);
        }
        let end = match (message_type, content.code) {
            (MessageType::Reset, _) => Some(End::Reset),
            (_, code) if code.is_response() => Some(End::Response(code)),
            _ => None,
        };
        exchange.end = exchange.end.or(end.map(|end| (end, exchange.copies.len())));
        Some(number)
    }

    /// An ICMP error came for a datagram of the proxy's.
    pub(super) fn refused(&mut self, from: SocketAddr, to: SocketAddr, quoted: &[u8]) -> Option<usize> {
        let message_id = own_message_id(quoted)?;
        let number = *self.by_message_id.get(&(from, to, message_id))?;
        let exchange = &mut self.all[number];
        exchange.end = exchange.end.or(Some((End::Unreachable, exchange.copies.len())));
        Some(number)
    }
}

/// The Message ID of a CON or NON; those of Acknowledgements and Resets are the peer's.
pub(super) fn own_message_id(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [first, _, high, low, ..] if *first >> 5 == 0b010 => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}
