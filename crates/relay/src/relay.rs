//! Requests and outcomes in, decisions out.

use std::net::{IpAddr, SocketAddr};

use coapway_message::{Content, Evidence, Failure};
use coapway_time::Instant;

use crate::admission;
use crate::answer::{Answer, Refusal};
use crate::fetch::{Fetch, FetchId, Fetches, Phase};
use crate::forward::{self, Relayed};
use crate::parameters::Parameters;
use crate::route::{self, Decision};

/// What a proxy does with requests: which go where, how long each may take, what the client hears.
///
/// It keeps one [`Fetch`] for each request on its way to an origin. Whoever moves messages tells it
/// where a fetch stands; a fetch ends once, by [`Relay::finish`].
#[derive(Debug)]
pub struct Relay {
    parameters: Parameters,
    fetches: Fetches,
    most: usize,
}

impl Relay {
    /// A relay with at most `most` fetches at a time.
    pub fn new(parameters: Parameters, most: usize) -> Self {
        Self { parameters, fetches: Fetches::default(), most }
    }

    /// Its settings.
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Fetches on their way.
    pub fn len(&self) -> usize {
        self.fetches.len()
    }

    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a client's address is believed, so that it may be sent more than it sent (RFC 9175 §2.4).
    pub fn is_verified(&self, client: IpAddr) -> bool {
        admission::is_verified(&self.parameters, client)
    }

    /// An answer of ours, in `scratch`, which is cleared.
    pub fn answer<'s>(&self, answer: impl Into<Answer>, scratch: &'s mut Vec<u8>) -> Content<'s> {
        answer.into().write(&self.parameters.identifier, scratch)
    }

    /// Decides where a request goes and what it looks like there, or why it goes nowhere.
    pub fn decide<'s>(
        &self,
        client: IpAddr,
        content: &Content<'s>,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Decision<'s>, Refusal> {
        route::decide(&self.parameters, client, content, scratch)
    }

    /// Starts a fetch; `None` when there are too many.
    pub fn begin(&mut self, fetch: Fetch) -> Option<FetchId> {
        (self.fetches.len() < self.most).then(|| self.fetches.insert(fetch))
    }

    /// Whether an address that a name was resolved to may be reached by the fetch's client.
    pub fn admit(&self, fetch: &Fetch, address: SocketAddr) -> Result<(), Refusal> {
        admission::admit_address(&self.parameters, fetch.admission, address)
    }

    /// A fetch, while it is under way.
    pub fn fetch(&self, id: FetchId) -> Option<&Fetch> {
        self.fetches.get(id)
    }

    /// The same, to be changed.
    pub fn fetch_mut(&mut self, id: FetchId) -> Option<&mut Fetch> {
        self.fetches.get_mut(id)
    }

    /// A fetch moved on.
    pub fn set_phase(&mut self, id: FetchId, phase: Phase) {
        if let Some(fetch) = self.fetches.get_mut(id) {
            fetch.phase = phase;
        }
    }

    /// An exchange of a fetch ended, and the fetch goes on with another.
    pub fn start_over(&mut self, id: FetchId, evidence: Evidence) {
        if let Some(fetch) = self.fetches.get_mut(id) {
            fetch.evidence = fetch.evidence.max(evidence);
            fetch.phase = Phase::LookingUp;
        }
    }

    /// Ends a fetch; `None` when it ended before.
    pub fn finish(&mut self, id: FetchId) -> Option<Fetch> {
        self.fetches.remove(id)
    }

    /// What the client hears of an origin's response.
    ///
    /// Errors: the response cannot be relayed (RFC 7252 §5.7.1).
    pub fn relay_response<'s>(
        &self,
        fetch: &Fetch,
        content: &Content<'s>,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Relayed<'s>, Failure> {
        forward::relay_response(&self.parameters, fetch.route, content, scratch)
    }

    /// When to call [`Relay::poll_expired`] next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.fetches.next_deadline()
    }

    /// The next fetch whose `max_wait` is over. The caller finishes it.
    pub fn poll_expired(&mut self, now: Instant) -> Option<FetchId> {
        self.fetches.expire(now)
    }
}

#[cfg(test)]
mod tests;
