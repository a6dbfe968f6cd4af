//! A client's request at the moment it comes in.

use coapway_endpoint::Peer;
use coapway_message::{Content, ExchangeId, Token, uri};
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
}

impl Arrival<'_> {
    /// Begins its record, whatever the record said before.
    pub(crate) fn describe(
        &self,
        content: &Content<'_>,
        upstream: &str,
        plan: &Plan<'_>,
        now: Instant,
        record: &mut Record,
    ) {
        // What the client asked for: by a route its own path, else the one its Proxy-Uri became.
        let options = if plan.route.is_some() { &content.options } else { &plan.content.options };
        let (mut name, mut path) = (std::mem::take(&mut record.upstream), std::mem::take(&mut record.path));
        name.clear();
        name.push_str(upstream);
        path.clear();
        uri::write_path_bytes(options, &mut path);
        *record = Record {
            received: now,
            client: self.peer.remote,
            listener: self.peer.local.socket,
            upstream: name,
            method: content.code,
            path,
            confirmable: self.confirmable,
            client_token: Token::new(self.token),
            client_message_id: self.message_id,
            traces: std::mem::take(&mut record.traces),
            bytes_in: size(content),
            ..Record::blank()
        };
    }
}
