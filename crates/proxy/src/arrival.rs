//! A client's request at the moment it comes in.

use std::time::Duration;

use coapway_endpoint::Peer;
use coapway_message::{Code, Content, ExchangeId, Token, uri};
use coapway_relay::Plan;
use coapway_time::Instant;

use crate::cause::Cause;
use crate::journal::size;
use crate::record::Record;

/// A request as it came in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'d> {
    pub(crate) request: ExchangeId,
    pub(crate) peer: Peer,
    pub(crate) confirmable: bool,
    pub(crate) message_id: u16,
    pub(crate) token: &'d [u8],
}

impl Arrival<'_> {
    /// The beginning of its record.
    pub(crate) fn record(
        &self,
        content: &Content<'_>,
        upstream: &str,
        plan: &Plan<'_>,
        now: Instant,
    ) -> Record {
        let mut path = String::new();
        // What the client asked for: by a route its own path, else the one its Proxy-Uri became.
        let options = if plan.route.is_some() { &content.options } else { &plan.content.options };
        uri::write_path(options, &mut path);
        Record {
            id: 0,
            received: now,
            answered: now,
            client: self.peer.remote,
            listener: self.peer.local.socket.0,
            upstream: upstream.into(),
            origin: None,
            local_port: None,
            method: content.code,
            path: path.into(),
            confirmable: self.confirmable,
            client_token: Token::new(self.token),
            client_message_id: self.message_id,
            traces: Vec::new(),
            early_ack: None,
            queued: Duration::ZERO,
            window: 0,
            code: Code::EMPTY,
            cause: Cause::Origin,
            evidence: None,
            bytes_in: size(content),
            bytes_out: 0,
        }
    }
}
