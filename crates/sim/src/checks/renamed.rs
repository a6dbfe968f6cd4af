//! Copies with Message IDs of their own, told to all other checks as copies under the first one's.
//!
//! To an origin each is a message of its own, to the proxy they are one request. What is judged here is that
//! only such requests get them as may be executed again, and that no Message ID comes back within its
//! lifetime.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use coapway_message::{Code, Datagram, MessageType, Method, OptionNumber};
use coapway_proxy::CopyIds;
use coapway_time::Instant;

use super::Rules;
use super::copies::{EXCHANGE_LIFETIME, NON_LIFETIME};
use super::exchanges::own_message_id;
use super::executions::repeatable;
use crate::notation::describe;
use crate::sockets::LISTENER;

/// From, to, token.
type Key = (SocketAddr, SocketAddr, Vec<u8>);
/// From, to, Message ID.
type Identity = (SocketAddr, SocketAddr, u16);

/// The first copy of a request, and which of all copies counts.
#[derive(Debug)]
struct First {
    bytes: Vec<u8>,
    message_id: u16,
    at: Instant,
    last: u16,
    acknowledged: Option<u16>,
}

#[derive(Debug)]
pub(super) struct Renamed {
    allowed: CopyIds,
    firsts: BTreeMap<Key, First>,
    /// What was sent under each Message ID, and when first.
    taken: BTreeMap<Identity, (Vec<u8>, Instant)>,
}

impl Renamed {
    pub(super) const fn new(rules: &Rules) -> Self {
        Self { allowed: rules.copy_ids, firsts: BTreeMap::new(), taken: BTreeMap::new() }
    }

    /// What the proxy sent, as the others are to see it. Errors: it must not leave like that.
    pub(super) fn sent<'b>(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &'b [u8],
        now: Instant,
    ) -> (Cow<'b, [u8]>, Result<(), String>) {
        let unchanged = (Cow::Borrowed(bytes), Ok(()));
        let Ok(datagram) = Datagram::parse(bytes) else { return unchanged };
        let is_request = from != LISTENER && datagram.content.code.is_request();
        if self.allowed == CopyIds::Same || !is_request {
            return unchanged;
        }
        let is_confirmable = datagram.message_type == MessageType::Confirmable;
        let lifetime = if is_confirmable { EXCHANGE_LIFETIME } else { NON_LIFETIME };
        let (message_id, key) = (datagram.message_id, (from, to, datagram.token.to_vec()));
        let mut found = Ok(());
        match self.taken.get(&(from, to, message_id)) {
            Some((before, _)) if before == bytes => {}
            Some((before, at)) if now.since(*at) < lifetime => {
                found = Err(format!("{} takes the Message ID of {}", describe(bytes), describe(before)));
            }
            Some(_) | None => drop(self.taken.insert((from, to, message_id), (bytes.to_vec(), now))),
        }
        if let Some(first) = self.firsts.get_mut(&key)
            && is_confirmable
            && now.since(first.at) < EXCHANGE_LIFETIME
            && renamed(bytes, first.message_id) == first.bytes
        {
            first.last = message_id;
            if message_id != first.message_id && !may_be_fresh(self.allowed, &datagram) {
                found = Err(format!("{} with a Message ID of its own", describe(bytes)));
            }
            return (first.bytes.clone().into(), found);
        }
        let first =
            First { bytes: bytes.to_vec(), message_id, at: now, last: message_id, acknowledged: None };
        self.firsts.insert(key, first);
        (Cow::Borrowed(bytes), found)
    }

    /// What came to the proxy, as the others are to see it; `None` for what means nothing: a Reset of a copy
    /// while another one counts.
    pub(super) fn received<'b>(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &'b [u8],
    ) -> Option<Cow<'b, [u8]>> {
        let unchanged = Some(Cow::Borrowed(bytes));
        let Ok(Datagram { message_type, message_id, token, content }) = Datagram::parse(bytes) else {
            return unchanged;
        };
        let Some(first) = self.first(to, from, message_id) else { return unchanged };
        let is_empty = content.code == Code::EMPTY;
        match message_type {
            MessageType::Acknowledgement
                if is_empty || first.bytes.get(4..4 + token.len()) == Some(token) =>
            {
                first.acknowledged.get_or_insert(message_id);
            }
            MessageType::Reset if message_id != first.acknowledged.unwrap_or(first.last) => return None,
            MessageType::Reset | MessageType::Acknowledgement => {}
            MessageType::Confirmable | MessageType::NonConfirmable => return unchanged,
        }
        Some(renamed(bytes, first.message_id).into())
    }

    /// The datagram of the proxy's that an ICMP error quotes.
    pub(super) fn quoted<'b>(&mut self, from: SocketAddr, to: SocketAddr, quoted: &'b [u8]) -> Cow<'b, [u8]> {
        let first = own_message_id(quoted).and_then(|message_id| self.first(from, to, message_id));
        first.map_or(quoted.into(), |first| renamed(quoted, first.message_id).into())
    }

    /// The first copy of what the proxy sent under this Message ID.
    fn first(&mut self, from: SocketAddr, to: SocketAddr, message_id: u16) -> Option<&mut First> {
        let (bytes, _) = self.taken.get(&(from, to, message_id))?;
        let token = Datagram::parse(bytes).ok()?.token.to_vec();
        self.firsts.get_mut(&(from, to, token))
    }
}

fn renamed(bytes: &[u8], message_id: u16) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(place) = bytes.get_mut(2..4) {
        place.copy_from_slice(&message_id.to_be_bytes());
    }
    bytes
}

/// Whether a request may be taken for several by its origin.
fn may_be_fresh(allowed: CopyIds, datagram: &Datagram<'_>) -> bool {
    let method = Method::from_code(datagram.content.code);
    let has_option = |number: OptionNumber| datagram.content.options.first(number).is_some();
    let is_method = match allowed {
        CopyIds::Same => false,
        CopyIds::FreshSafe => method.is_some_and(Method::is_safe),
        CopyIds::FreshIdempotent => method.is_some_and(Method::is_idempotent),
    };
    is_method && repeatable(datagram.content.code, has_option)
}
