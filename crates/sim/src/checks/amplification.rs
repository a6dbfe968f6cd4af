//! An address that nobody verified gets at most three times the bytes of the request it is answered
//! for, or 136 (R-ATK-01; RFC 7252 §11.3, RFC 9175 §2.4).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use coapway_message::{Code, Datagram, MessageType};

use super::Rules;
use crate::sockets::LISTENER;

/// A safe answer, whatever came.
const FLOOR: usize = 136;
const FACTOR: usize = 3;

/// The bytes of one request and of all that left because of it.
#[derive(Clone, Debug, Default)]
struct Account {
    token: Vec<u8>,
    received: usize,
    sent: usize,
}

#[derive(Debug)]
pub(super) struct Amplification {
    unverified: Option<coapway_relay::Parameters>,
    /// By client and Message ID, the latest request.
    accounts: BTreeMap<(SocketAddr, u16), Account>,
    /// By client and token, the Message ID.
    requests: BTreeMap<(SocketAddr, Vec<u8>), u16>,
}

impl Amplification {
    pub(super) fn new(rules: &Rules) -> Self {
        Self { unverified: rules.unverified.clone(), accounts: BTreeMap::new(), requests: BTreeMap::new() }
    }

    fn is_verified(&self, client: SocketAddr) -> bool {
        let ip = client.ip().to_canonical();
        let Some(relay) = &self.unverified else { return true };
        ip.is_loopback() || relay.trusted.iter().any(|network| network.contains(&ip))
    }

    pub(super) fn received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let Ok(datagram) = Datagram::parse(bytes) else { return };
        let message_type = datagram.message_type;
        if to != LISTENER
            || !matches!(message_type, MessageType::Confirmable | MessageType::NonConfirmable)
            || !datagram.content.code.is_request()
        {
            return;
        }
        let (token, id) = (datagram.token.to_vec(), (from, datagram.message_id));
        let account = self.accounts.entry(id).or_default();
        if account.token != token {
            *account = Account { token: token.clone(), received: 0, sent: 0 };
        }
        account.received += bytes.len();
        self.requests.insert((from, token), datagram.message_id);
    }

    pub(super) fn sent(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Result<(), String> {
        let Ok(datagram) = Datagram::parse(bytes) else { return Ok(()) };
        if from != LISTENER || self.is_verified(to) {
            return Ok(());
        }
        let message_id = match datagram.content.code {
            Code::EMPTY => Some(datagram.message_id),
            _ => self.requests.get(&(to, datagram.token.to_vec())).copied(),
        };
        // What answers no request is a Reset of 4 bytes for at least 4.
        let account = message_id.and_then(|message_id| self.accounts.get_mut(&(to, message_id)));
        let Some(Account { received, sent, .. }) = account else { return Ok(()) };
        *sent += bytes.len();
        let allowed = FLOOR.max(FACTOR * *received);
        if *sent > allowed {
            return Err(format!("{to} got {sent} bytes for {received}; {allowed} are allowed"));
        }
        Ok(())
    }
}
