//! A client's request at the moment it comes in.

use coapway_endpoint::Peer;
use coapway_message::{Content, ExchangeId, Token};
use coapway_relay::Plan;
use coapway_time::Instant;

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
    pub(crate) content: Content<'d>,
}

impl Arrival<'_> {
    /// Says in a blank record what is known now.
    pub(crate) fn describe(&self, plan: &Plan<'_>, now: Instant, record: &mut Record) {
        // What the client asked for: by a route its own path, else the one its Proxy-Uri became.
        match plan.path {
            Some(path) => record.path.set_normal(path),
            None if plan.route.is_some() => record.path.set(&self.content.options),
            None => record.path.set(&plan.content.options),
        }
        record.upstream = plan.upstream;
        record.received = now;
        record.client = self.peer.remote;
        record.listener = self.peer.local.socket;
        record.method = self.content.code;
        record.confirmable = self.confirmable;
        record.client_token = Token::new(self.token);
        record.client_message_id = self.message_id;
        record.bytes_in = size(&self.content);
    }
}
