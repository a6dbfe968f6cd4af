//! What is to be sent to an origin, now or when its turn comes.

use std::time::Duration;

use coapway_message::{OwnedContent, Token};
use coapway_relay::{Fetch, FetchId};
use coapway_time::Instant;

use crate::address::{Holder, Site};
use crate::queue::Waiting;
use crate::transfers::Transfer;

/// A request that waits for its turn.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) fetch: FetchId,
    pub(crate) order: Order,
    /// The token it should have upstream.
    pub(crate) token: Option<Token>,
    pub(crate) content: OwnedContent,
    pub(crate) since: Instant,
    /// Whether it begins a block-wise transfer, for which there may be no source port before another is over.
    pub(crate) begins: bool,
}

impl Waiting for Queued {
    fn is_patient(&self) -> bool {
        self.begins
    }
}

/// What is to be sent, beside token and content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// The number of the client.
    pub(crate) client: u64,
    pub(crate) received: Instant,
    pub(crate) deadline: Instant,
    /// The block-wise transfer it is part of.
    pub(crate) transfer: Option<Transfer>,
    pub(crate) confirmable: bool,
    /// Whether all copies may leave that MAX_RETRANSMIT allows.
    pub(crate) idempotent: bool,
    /// Whether it changes nothing at the origin.
    pub(crate) safe: bool,
    /// Whether it may be issued anew.
    pub(crate) reissuable: bool,
    /// Whether it was sent before, in another exchange.
    pub(crate) is_reissue: bool,
}

impl Order {
    #[inline]
    pub(crate) fn of(fetch: &Fetch) -> Self {
        Self {
            client: fetch.client,
            received: fetch.received,
            deadline: fetch.deadline,
            transfer: Transfer::of(fetch),
            confirmable: fetch.confirmable,
            idempotent: fetch.method.is_idempotent(),
            safe: fetch.method.is_safe(),
            reissuable: fetch.reissuable,
            is_reissue: !fetch.earlier().is_empty(),
        }
    }

    /// Who is counted where places are shared.
    pub(crate) const fn holder(&self) -> Holder {
        Holder::of(self.client)
    }

    /// Who is counted where one sender must not do what takes several.
    pub(crate) const fn site(&self) -> Site {
        Site::of(self.client)
    }

    /// From receipt to deadline.
    pub(crate) const fn patience(&self) -> Duration {
        self.deadline.since(self.received)
    }
}
