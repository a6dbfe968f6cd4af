//! Tokens towards origins never come back (R-TOK-03, R-TOK-05), except a client's own where the settings
//! preserve it: that one rests for EXCHANGE_LIFETIME after its last use towards an origin.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use coapway_message::Datagram;
use coapway_time::Instant;

use super::Rules;
use super::copies::EXCHANGE_LIFETIME;
use crate::notation::hex;
use crate::sockets::LISTENER;

/// Source, destination, Message ID.
type Identity = (SocketAddr, SocketAddr, u16);

#[derive(Debug)]
pub(super) struct Tokens {
    preserves: bool,
    /// What clients used.
    clients: BTreeSet<Vec<u8>>,
    /// The request each token of ours was sent with.
    fresh: BTreeMap<Vec<u8>, Identity>,
    /// By both ends: the request each token of a client was sent with, and when last.
    preserved: BTreeMap<(SocketAddr, SocketAddr, Vec<u8>), (Identity, Instant)>,
}

impl Tokens {
    pub(super) const fn new(rules: &Rules) -> Self {
        Self {
            preserves: rules.preserves_tokens,
            clients: BTreeSet::new(),
            fresh: BTreeMap::new(),
            preserved: BTreeMap::new(),
        }
    }

    pub(super) fn received(&mut self, to: SocketAddr, bytes: &[u8]) {
        if let Ok(datagram) = Datagram::parse(bytes)
            && to == LISTENER
            && self.preserves
        {
            self.clients.insert(datagram.token.to_vec());
        }
    }

    pub(super) fn sent(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &[u8],
        now: Instant,
    ) -> Result<(), String> {
        let Ok(datagram) = Datagram::parse(bytes) else { return Ok(()) };
        if from == LISTENER || !datagram.content.code.is_request() {
            return Ok(());
        }
        let token = datagram.token.to_vec();
        let identity = (from, to, datagram.message_id);
        if self.clients.contains(&token) {
            if !(4..=8).contains(&token.len()) {
                return Err(format!("a client's token of {} bytes is preserved", token.len()));
            }
            let before = self.preserved.insert((from, to, token), (identity, now));
            return match before {
                Some((other, last)) if other != identity && now.since(last) < EXCHANGE_LIFETIME => {
                    let rest = now.since(last);
                    Err(format!("preserved token {} is used again after {rest:?}", hex(datagram.token)))
                }
                _ => Ok(()),
            };
        }
        if token.len() != 8 {
            return Err(format!("an upstream token of {} bytes", token.len()));
        }
        match *self.fresh.entry(token).or_insert(identity) {
            owner if owner == identity => Ok(()),
            _ => Err(format!("upstream token {} is used again", hex(datagram.token))),
        }
    }
}
