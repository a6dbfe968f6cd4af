//! What an endpoint tells whoever is above it.

use std::time::Duration;

use coapway_message::{Content, ExchangeId, Failure};

use crate::peer::Peer;
use crate::trace::{AnswerKind, Trace};

/// What is done with a request that was not seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Taken; its sender's address is believed.
    Take,
    /// Taken; an answer must stay within what an unverified address may get (RFC 7252 §11.3,
    /// RFC 9175 §2.4).
    TakeUnverified,
    /// Not taken: nothing is remembered or answered.
    Drop,
}

/// What one datagram brought for the floor above.
#[derive(Debug)]
pub enum Received<'d> {
    /// Nothing: the message layer dealt with it.
    Nothing,
    /// A request that was not seen before.
    Request {
        /// Names it until it is answered.
        exchange: ExchangeId,
        /// Whether it is Confirmable.
        confirmable: bool,
        /// Its Message ID, for records.
        message_id: u16,
        /// Its token, for records.
        token: &'d [u8],
        /// What it says.
        content: Content<'d>,
    },
    /// The response to a request of ours; the exchange is over, and
    /// [`Endpoint::ended`](crate::Endpoint::ended) says how it went.
    Response {
        /// The exchange.
        exchange: ExchangeId,
        /// How it came.
        kind: AnswerKind,
        /// What it says.
        content: Content<'d>,
    },
}

/// What happened without a message for the floor above.
#[derive(Debug)]
pub enum Event {
    /// An empty Acknowledgement left for a request: its response will be separate, or there is none.
    EmptyAckSent {
        /// The request.
        exchange: ExchangeId,
    },
    /// A repeated request was dealt with.
    Repeated {
        /// The request, while it is not answered yet.
        exchange: Option<ExchangeId>,
    },
    /// A separate response reached the client, or was rejected or given up. Comes once for each.
    Delivered {
        /// The request.
        exchange: ExchangeId,
        /// Whether and why not. One that left Non-confirmable, and so may have arrived, is `TimedOut`
        /// when its turn did not come in time and `Overloaded` when too many waited.
        outcome: Result<(), Failure>,
        /// Copies that left.
        copies: u32,
    },
    /// The peer acknowledged our request without a response.
    Acknowledged {
        /// The exchange.
        exchange: ExchangeId,
        /// The round-trip time, when it is certain which copy was acknowledged.
        round_trip: Option<Duration>,
    },
    /// An Acknowledgement came for a message that was acknowledged before, or that is over, or that never
    /// was: a receiver acknowledges every copy.
    AcknowledgedAgain {
        /// From whom.
        peer: Peer,
        /// Its Message ID.
        message_id: u16,
    },
    /// The wait for an Acknowledgement ran out; another copy left if `copies` grew.
    Retransmitted {
        /// The exchange.
        exchange: ExchangeId,
        /// Copies that left so far.
        copies: u32,
        /// The timeout that ran out.
        timeout: Duration,
    },
    /// The wait after the last copy that may leave ran out without an Acknowledgement. A response is
    /// still listened for until the deadline.
    Exhausted {
        /// The exchange.
        exchange: ExchangeId,
        /// Copies that left.
        copies: u32,
    },
    /// A request of ours ended without a response.
    Failed {
        /// The exchange.
        exchange: ExchangeId,
        /// Why.
        failure: Failure,
        /// How it went.
        trace: Box<Trace>,
    },
    /// A ping was answered: the peer is alive.
    Alive {
        /// The ping.
        exchange: ExchangeId,
        /// The round-trip time, when exactly one copy had left.
        round_trip: Option<Duration>,
    },
}

/// A limit of ours stopped a message; nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// All Message IDs towards the peer are taken for the moment.
    #[error("no Message ID is free towards this peer")]
    MessageIds,
    /// The exchange is unknown or already answered.
    #[error("no such exchange")]
    Unknown,
    /// The answer is larger than an unverified address may get. The request stays open: an answer of
    /// at most 60 bytes, token included, always fits.
    #[error("too large for an address that is not verified")]
    Unverified,
}

/// What an endpoint counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams shorter than a header or of another version.
    pub ignored: u64,
    /// Datagrams that were sent to a multicast or broadcast address.
    pub group: u64,
    /// New requests that were not taken.
    pub dropped: u64,
    /// Requests whose token is longer than what is dealt with.
    pub long_tokens: u64,
    /// Messages with a format error or a reserved code.
    pub malformed: u64,
    /// Repeated messages.
    pub duplicates: u64,
    /// Message IDs that came with another datagram within their lifetime.
    pub reused_message_ids: u64,
    /// Requests forgotten before their time for want of memory.
    pub forgotten: u64,
    /// Requests refused because the memory for recent messages is full.
    pub refused: u64,
    /// Responses to exchanges that are over.
    pub late: u64,
    /// Responses that match nothing.
    pub unmatched: u64,
    /// Acknowledgements and Resets that match nothing.
    pub unexpected: u64,
    /// Copies of our messages after the first.
    pub retransmissions: u64,
    /// Responses that could not be sent for want of a Message ID.
    pub unsendable: u64,
    /// Datagrams that did not leave because an unverified address had got enough.
    pub withheld: u64,
    /// Separate responses that waited for their turn.
    pub waited: u64,
    /// Separate responses that left once, Non-confirmable, because their turn did not come.
    pub unconfirmed: u64,
    /// Requests of ours that went out under a token of the caller's.
    pub preserved_tokens: u64,
}
