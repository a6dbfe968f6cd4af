//! PROBING_RATE: Non-confirmable requests to an origin that says nothing leave no faster than so many
//! bytes a second (RFC 7252 §4.7; R-CCN-03).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use coapway_time::Instant;

use super::Rules;
use super::exchanges::Exchanges;

/// An origin that was heard before may take this long to be heard again before it counts as silent: its
/// timeout, which is learned and cannot be seen.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(60);

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
    one_window: bool,
    silent: BTreeMap<(SocketAddr, bool), Silence>,
    heard: BTreeSet<SocketAddr>,
}

impl Probing {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            rate: rules.probing_rate,
            slack: rules.slack.as_secs_f64(),
            one_window: rules.one_window,
            silent: BTreeMap::new(),
            heard: BTreeSet::new(),
        }
    }

    /// The first copy of a request left.
    pub(super) fn sent(&mut self, number: usize, exchanges: &Exchanges, now: Instant) -> Result<(), String> {
        let exchange = exchanges.get(number);
        let Some(rate) = self.rate.filter(|_| !exchange.confirmable) else { return Ok(()) };
        let (origin, by_name) = exchange.place();
        let place = (origin, by_name && !self.one_window);
        let Some(silence) = self.silent.get_mut(&place) else {
            self.silent.insert(place, Silence { since: now, bytes: exchange.bytes.len() });
            return Ok(());
        };
        let Silence { since, bytes } = *silence;
        silence.bytes += exchange.bytes.len();
        if self.heard.contains(&exchange.to) && now < since + LONGEST_TIMEOUT {
            return Ok(());
        }
        // What left before must have been paid for by now.
        let seconds = now.since(since).as_secs_f64() + self.slack;
        if bytes as f64 > rate * seconds {
            return Err(format!("{origin} got a NON {seconds:.1} s after {bytes} bytes it did not react to"));
        }
        Ok(())
    }

    /// Nobody listens there: what was refused on its way weighs on nobody, and proves nothing of the origin.
    pub(super) fn refused(&mut self, origin: SocketAddr) {
        self.silent.remove(&(origin, false));
        self.silent.remove(&(origin, true));
    }

    /// Something came from there, whatever it is.
    pub(super) fn heard(&mut self, peer: SocketAddr) {
        self.refused(peer);
        self.heard.insert(peer);
    }
}
