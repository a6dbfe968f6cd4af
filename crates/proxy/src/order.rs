//! What is to be sent to an origin, now or when its turn comes.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_message::{OwnedContent, Token};
use coapway_relay::FetchId;
use coapway_time::Instant;

use crate::transfers::Transfer;

/// A request that waits for its turn.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) fetch: FetchId,
    pub(crate) order: Order,
    pub(crate) content: OwnedContent,
    pub(crate) since: Instant,
}

/// What is to be sent, beside the content.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) client: SocketAddr,
    pub(crate) confirmable: bool,
    /// Whether all copies may leave that MAX_RETRANSMIT allows.
    pub(crate) idempotent: bool,
    pub(crate) deadline: Instant,
    /// From receipt to deadline.
    pub(crate) patience: Duration,
    /// The block-wise transfer it is part of.
    pub(crate) transfer: Option<Transfer>,
    /// The token it should have upstream.
    pub(crate) token: Option<Token>,
    /// Whether it was sent before, in another exchange.
    pub(crate) is_reissue: bool,
}
