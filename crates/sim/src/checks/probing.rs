//! PROBING_RATE: Non-confirmable requests to an origin that says nothing leave no faster than so many
//! bytes a second (RFC 7252 §4.7; R-CCN-03).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use coapway_time::Instant;

use super::Rules;
use super::exchanges::Exchanges;

/// Since when an origin says nothing to what was sent, and how much that is.
#[derive(Clone, Copy, Debug)]
struct Silence {
    since: Instant,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Probing {
    rate: Option<f64>,
    slack: f64,
    silent: BTreeMap<SocketAddr, Silence>,
}

impl Probing {
    pub(super) fn new(rules: &Rules) -> Self {
        Self { rate: rules.probing_rate, slack: rules.slack.as_secs_f64(), silent: BTreeMap::new() }
    }

    /// The first copy of a request left.
    pub(super) fn sent(&mut self, number: usize, exchanges: &Exchanges, now: Instant) -> Result<(), String> {
        let exchange = exchanges.get(number);
        let Some(rate) = self.rate.filter(|_| !exchange.confirmable) else { return Ok(()) };
        let Some(silence) = self.silent.get_mut(&exchange.to) else {
            self.silent.insert(exchange.to, Silence { since: now, bytes: exchange.bytes.len() });
            return Ok(());
        };
        let Silence { since, bytes } = *silence;
        silence.bytes += exchange.bytes.len();
        // What left before must have been paid for by now.
        let seconds = now.since(since).as_secs_f64() + self.slack;
        if bytes as f64 > rate * seconds {
            let origin = exchange.to;
            return Err(format!("{origin} got a NON {seconds:.1} s after {bytes} bytes it did not react to"));
        }
        Ok(())
    }

    /// An origin acknowledged, rejected or answered something.
    pub(super) fn alive(&mut self, origin: SocketAddr) {
        self.silent.remove(&origin);
    }
}
