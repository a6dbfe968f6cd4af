//! An address that nobody verified gets at most three times the bytes of the request it is answered
//! for, or 136 (R-ATK-01; RFC 7252 §11.3, RFC 9175 §2.4).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use coapway_message::{Code, Datagram};

use super::Rules;
use crate::sockets::LISTENER;

/// A safe answer, whatever came.
const FLOOR: usize = 136;
const FACTOR: usize = 3;

/// The bytes of one request and of all that left because of it.
#[derive(Clone, Debug, Default)]
struct Account {
    /// How often the proxy could not take it for a repeat; each has an account of its own there.
    accepted: usize,
    received: usize,
    sent: usize,
}

impl Account {
    fn allowed(&self) -> usize {
        match self.accepted {
            0 | 1 => FLOOR.max(FACTOR * self.received),
            several => FLOOR * several + FACTOR * self.received,
        }
    }
}

#[derive(Debug)]
pub(super) struct Amplification {
    unverified: Option<coapway_relay::Parameters>,
    /// By client and token.
    accounts: BTreeMap<(SocketAddr, Vec<u8>), Account>,
    /// By client and Message ID, the token; none, where there were several: what an Empty message is for
    /// cannot be told there.
    tokens: BTreeMap<(SocketAddr, u16), Option<Vec<u8>>>,
}

impl Amplification {
    pub(super) fn new(rules: &Rules) -> Self {
        Self { unverified: rules.unverified.clone(), accounts: BTreeMap::new(), tokens: BTreeMap::new() }
    }

    fn is_verified(&self, client: SocketAddr) -> bool {
        let ip = client.ip().to_canonical();
        let Some(relay) = &self.unverified else { return true };
        ip.is_loopback() || relay.trusted.iter().any(|network| network.contains(&ip))
    }

    /// A datagram came; `new` says whether it is a request the proxy could not take for a repeat.
    pub(super) fn received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], new: bool) {
        let Ok(datagram) = Datagram::parse(bytes) else { return };
        if to != LISTENER || !datagram.content.code.is_request() {
            return;
        }
        let token = datagram.token.to_vec();
        let known = self.tokens.entry((from, datagram.message_id)).or_insert_with(|| Some(token.clone()));
        if known.as_ref() != Some(&token) {
            *known = None;
        }
        let account = self.accounts.entry((from, token)).or_default();
        account.accepted += usize::from(new);
        account.received += bytes.len();
    }

    pub(super) fn sent(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Result<(), String> {
        let Ok(datagram) = Datagram::parse(bytes) else { return Ok(()) };
        if from != LISTENER || self.is_verified(to) {
            return Ok(());
        }
        let token = match datagram.content.code {
            Code::EMPTY => self.tokens.get(&(to, datagram.message_id)).cloned().flatten(),
            _ => Some(datagram.token.to_vec()),
        };
        // What answers no request is a Reset of 4 bytes for at least 4.
        let account = token.and_then(|token| self.accounts.get_mut(&(to, token)));
        let Some(account) = account else { return Ok(()) };
        account.sent += bytes.len();
        let (Account { received, sent, .. }, allowed) = (account.clone(), account.allowed());
        if sent > allowed {
            return Err(format!("{to} got {sent} bytes for {received}; {allowed} are allowed"));
        }
        Ok(())
    }
}
