//! The forward record: everything about one forward, for people and for `tune`.

mod digits;
mod exchanges;
mod json;
mod legs;
mod line;
mod lines;
mod part;
mod path;
mod timestamps;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::SocketId;
use coapway_message::{Code, Evidence, Token};
use coapway_relay::UpstreamId;
use coapway_time::Instant;

use crate::cause::Cause;

pub use exchanges::{Exchanges, Plain};
pub use lines::Lines;
pub use path::Path;
pub use timestamps::Timestamp;

/// One forward from receipt to final answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Counts records of this proxy.
    pub id: u64,
    /// When the request came in.
    pub received: Instant,
    /// When it was answered.
    pub answered: Instant,
    /// Who asked.
    pub client: SocketAddr,
    /// The listening socket.
    pub listener: SocketId,
    /// The upstream, whose settings hold.
    pub upstream: UpstreamId,
    /// The method.
    pub method: Code,
    /// The path of the request as the client sees it.
    pub path: Path,
    /// Whether the client's request is Confirmable.
    pub confirmable: bool,
    /// The client's token.
    pub client_token: Token,
    /// The client's Message ID.
    pub client_message_id: u16,
    /// The exchanges with origins.
    pub exchanges: Exchanges,
    /// Acknowledgements that came after the answer; `None` where they were not waited for.
    pub late: Option<u32>,
    /// When the client got an empty Acknowledgement.
    pub early_ack: Option<Instant>,
    /// How long the request waited for its turn.
    pub queued: Duration,
    /// The window towards the origin when the first copy left.
    pub window: u32,
    /// The answer's code.
    pub code: Code,
    /// Where the answer comes from.
    pub cause: Cause,
    /// What is known about execution, when the forward failed.
    pub evidence: Option<Evidence>,
    /// Bytes of the client's request without header.
    pub bytes_in: u32,
    /// Bytes of the answer without header.
    pub bytes_out: u32,
}

impl Record {
    /// A record that says nothing yet.
    pub fn blank() -> Self {
        Self {
            id: 0,
            received: Instant::ZERO,
            answered: Instant::ZERO,
            client: (Ipv4Addr::UNSPECIFIED, 0).into(),
            listener: SocketId(0),
            upstream: UpstreamId::DEFAULT,
            method: Code::EMPTY,
            path: Path::default(),
            confirmable: false,
            client_token: Token::default(),
            client_message_id: 0,
            exchanges: Exchanges::None,
            late: None,
            early_ack: None,
            queued: Duration::ZERO,
            window: 0,
            code: Code::EMPTY,
            cause: Cause::Origin,
            evidence: None,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    /// Becomes blank but for what each request and each answer sets anew.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.path.shrink();
        (self.exchanges, self.late, self.early_ack) = (Exchanges::None, None, None);
        (self.queued, self.window) = (Duration::ZERO, 0);
    }

    /// The origin, once something left for it.
    pub fn origin(&self) -> Option<SocketAddr> {
        self.exchanges.last().map(|(origin, _)| *origin)
    }

    /// Further copies that left.
    pub fn retries(&self) -> usize {
        self.exchanges.copies().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests;
