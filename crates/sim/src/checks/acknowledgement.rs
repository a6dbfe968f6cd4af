//! Each copy of a Confirmable message that reached the proxy gets an Acknowledgement or a Reset with
//! its Message ID within `early_ack_after` (R-MSG-01, R-USR-23), unless it was dropped, and counted,
//! because its client is too fast.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_time::Instant;

use super::Rules;
use crate::sockets::{GROUP, LISTENER};

/// Version 1, type CON, at least a header.
fn confirmable_id(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [first, _, high, low, ..] if *first >> 4 == 0b0100 => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

/// Version 1, type ACK or RST.
fn acknowledged_id(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [first, _, high, low, ..] if *first >> 5 == 0b011 => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

#[derive(Debug)]
pub(super) struct Acknowledgement {
    within: Duration,
    slack: Duration,
    stalled_until: Instant,
    /// By peer, our socket and Message ID: when the first copy that is still waiting came.
    waiting: BTreeMap<(SocketAddr, SocketAddr, u16), Instant>,
    /// Whether a request may have been dropped because its client is too fast.
    limits_clients: bool,
    perhaps_dropped: Vec<String>,
}

impl Acknowledgement {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            within: rules.early_ack_after,
            slack: rules.slack,
            stalled_until: Instant::ZERO,
            waiting: BTreeMap::new(),
            limits_clients: rules.limits_clients,
            perhaps_dropped: Vec::new(),
        }
    }

    pub(super) fn stalled(&mut self, until: Instant) {
        self.stalled_until = until;
    }

    pub(super) fn received(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], now: Instant) {
        // Nothing that was sent to a group is acknowledged (RFC 7252 §8.1).
        if let Some(id) = confirmable_id(bytes).filter(|_| to != GROUP) {
            self.waiting.entry((from, to, id)).or_insert(now);
        }
    }

    pub(super) fn sent(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        if let Some(id) = acknowledged_id(bytes) {
            self.waiting.remove(&(to, from, id));
        }
    }

    pub(super) fn overdue(&mut self, now: Instant) -> Result<(), String> {
        let overdue = self
            .waiting
            .iter()
            .find(|&(_, &since)| now > (since + self.within).max(self.stalled_until) + self.slack);
        let Some((&(from, to, id), &since)) = overdue else { return Ok(()) };
        self.waiting.remove(&(from, to, id));
        let what = format!("CON MID={id} from {from} came at {since} and was not acknowledged in time");
        if self.limits_clients && to == LISTENER {
            self.perhaps_dropped.push(what);
            return Ok(());
        }
        Err(what)
    }

    /// The proxy counts each copy it drops.
    pub(super) fn finish(&self, dropped: u64) -> Vec<String> {
        let most = usize::try_from(dropped).unwrap_or(usize::MAX);
        self.perhaps_dropped.iter().skip(most).cloned().collect()
    }
}
