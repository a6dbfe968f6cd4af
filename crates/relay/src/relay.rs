//! Requests and outcomes in, decisions out.

use std::net::{IpAddr, SocketAddr};

use coapway_message::{Content, Evidence, Failure};
use coapway_time::Instant;

use crate::admission;
use crate::answer::{Answer, Refusal};
use crate::fetch::{Fetch, FetchId, Fetches, Phase};
use crate::forward::{self, Relayed};
use crate::local::Links;
use crate::parameters::{Parameters, Route};
use crate::route::{self, Decision, Routes, Settings, Targets};

/// What a proxy does with requests: which go where, how long each may take, what the client hears.
///
/// It keeps one [`Fetch`] for each request on its way to an origin. Whoever moves messages tells it
/// where a fetch stands; a fetch ends once, by [`Relay::finish`].
#[derive(Debug)]
pub struct Relay {
    parameters: Parameters,
    links: Links,
    routes: Routes,
    targets: Targets,
    fetches: Fetches,
    most: usize,
    /// Routes of earlier settings that fetches under way have taken; their numbers follow those of
    /// the routes there are.
    left: Vec<Route>,
}

impl Relay {
    /// A relay with at most `most` fetches at a time.
    pub fn new(parameters: Parameters, most: usize) -> Self {
        let (links, routes) = (Links::new(&parameters.routes), Routes::new(&parameters.routes));
        let (targets, fetches) = (Targets::default(), Fetches::default());
        Self { parameters, links, routes, targets, fetches, most, left: Vec::new() }
    }

    /// Its settings.
    pub const fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Takes over changed settings, with at most `most` fetches at a time. Those on their way stay, be
    /// they more, and so do the routes they have taken.
    pub fn reconfigure(&mut self, parameters: Parameters, most: usize) {
        let earlier = std::mem::replace(&mut self.parameters, parameters);
        self.targets.forget();
        self.links = Links::new(&self.parameters.routes);
        self.routes = Routes::new(&self.parameters.routes);
        let mut earlier: Vec<_> =
            earlier.routes.into_iter().chain(std::mem::take(&mut self.left)).map(Earlier::Unused).collect();
        let routes = &self.parameters.routes;
        for fetch in self.fetches.iter_mut() {
            let Some(place) = fetch.route.and_then(|index| earlier.get_mut(index as usize)) else { continue };
            let index = match place {
                Earlier::At(index) => *index,
                Earlier::Unused(route) => {
                    routes.iter().position(|other| other == route).unwrap_or_else(|| {
                        self.left.push(route.clone());
                        routes.len() + self.left.len() - 1
                    })
                }
            };
            *place = Earlier::At(index);
            fetch.route = u32::try_from(index).ok();
        }
        self.most = most;
    }

    /// The route a fetch took.
    fn route(&self, fetch: &Fetch) -> Option<&Route> {
        let (index, routes) = (fetch.route? as usize, &self.parameters.routes);
        routes.get(index).or_else(|| self.left.get(index - routes.len()))
    }

    /// The fetches on their way, in the order of their requests' slots.
    pub fn fetches(&self) -> impl Iterator<Item = (FetchId, &Fetch)> {
        self.fetches.iter()
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
    ///
    /// `came_to` is the address of ours it was sent to, where the socket can tell: the Uri-Host of a request
    /// that has none (RFC 7252 §5.10.1).
    pub fn decide<'s>(
        &mut self,
        client: IpAddr,
        came_to: Option<IpAddr>,
        content: &Content<'s>,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Decision<'s>, Refusal> {
        let settings = Settings { parameters: &self.parameters, routes: &self.routes, links: &self.links };
        route::decide(settings, &mut self.targets, (client, came_to), content, scratch)
    }

    /// Starts a fetch; says no when there are too many.
    #[inline]
    pub fn begin(&mut self, id: FetchId, fetch: Fetch) -> bool {
        let has_room = self.fetches.len() < self.most;
        if has_room {
            self.fetches.insert(id, fetch);
        }
        has_room
    }

    /// Whether an address that a name was resolved to may be reached by the fetch's client.
    pub fn admit(&self, fetch: &Fetch, address: SocketAddr) -> Result<(), Refusal> {
        admission::admit_address(&self.parameters, fetch.admission, address)
    }

    /// A fetch, while it is under way.
    #[inline]
    pub fn fetch(&self, id: FetchId) -> Option<&Fetch> {
        self.fetches.get(id)
    }

    /// The same, to be changed.
    #[inline]
    pub fn fetch_mut(&mut self, id: FetchId) -> Option<&mut Fetch> {
        self.fetches.get_mut(id)
    }

    /// A fetch moved on.
    #[inline]
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
    #[inline]
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
        forward::relay_response(&self.parameters, self.route(fetch), content, scratch)
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

/// A route of the settings before, while they are taken over.
enum Earlier {
    /// No fetch was found yet that took it.
    Unused(Route),
    /// Its number now.
    At(usize),
}

#[cfg(test)]
mod tests;
