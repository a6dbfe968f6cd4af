//! When a request leaves for its origin, and how its copies follow.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::Peer;
use coapway_message::{Content, ExchangeId, Failure, Token};
use coapway_relay::{FetchId, OriginId, UpstreamId};
use coapway_time::Instant;

use crate::order::{Order, Queued};
use crate::origin::ORIGIN_LIFETIME;
use crate::parameters::TokenPolicy;
use crate::permits::Hindrance;
use crate::places::UsedUp;
use crate::queue::{Found, Look};
use crate::schedule::schedule;
use crate::silence::Turn;
use crate::transfers::MOST_OF_ALL;
use crate::upstreams::{Deadline, Outstanding, Progress, Standing, Started, Upstreams};

/// Short of Message IDs, an origin's queue is tried again after this.
const MESSAGE_ID_PAUSE: Duration = Duration::from_millis(100);
/// For one that may leave, a queue is looked through no further than this …
const LOOKED_AT: usize = 64;
/// … but as a whole when that was not done for so long.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
/// One in so many that wait for an origin may begin a block-wise transfer: no turn helps where there is no port.
const BEGINNINGS: usize = 2;

/// What came of trying to send.
#[derive(Clone, Copy, Debug)]
enum Attempt {
    /// It left.
    Sent(ExchangeId),
    /// Too little time is left for an answer: what never leaves is `not-sent` and may be tried again.
    TooLate,
    /// All Message IDs towards the origin are taken.
    NoMessageId,
}

impl Upstreams {
    /// Sends a request to an origin, now or when its turn comes.
    ///
    /// With too little time left for an answer it counts as queued and never leaves. Where the queue
    /// is full and another client uses more of it, that one's newest request fails instead.
    /// Errors: `Overloaded` when there is no room, or no hope to be served in time; nothing was sent.
    pub(crate) fn start(
        &mut self,
        fetch: FetchId,
        (address, upstream): (SocketAddr, UpstreamId),
        order: &Order,
        token: Option<&Token>,
        content: &Content<'_>,
        now: Instant,
    ) -> Result<Started, Failure> {
        let parameters = self.parameters.get(upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let index = self.origins.find_or_add(address, upstream, Some(order.site()), parameters, now)?;
        let most = parameters.queue;
        let Some(origin) = self.origins.get_mut(index) else { return Err(Failure::Overloaded) };
        origin.permits.is_shared |= origin.brought_by != Some(order.site());
        let window = origin.window.size();
        let is_first = origin.queue.is_empty();
        let rounds = if is_first { 0 } else { origin.queue.len() as u32 / window };
        let answered_after = origin.responses.fastest().map(|fastest| fastest * (rounds + 1));
        let started = |standing| Ok(Started { origin: OriginId(index), standing, answered_after });
        let mut has_its_turn = false;
        if origin.has_room() && origin.starved.is_none() {
            let last = origin.round_trip.last();
            let has_room = self.transfers < MOST_OF_ALL;
            match origin.permits.hindrance(order, parameters, window, last, has_room, now) {
                None if is_first => match self.send(index, fetch, order, token, content, now) {
                    Attempt::Sent(exchange) => return started(Standing::Sent(exchange)),
                    Attempt::TooLate => return started(Standing::Queued),
                    Attempt::NoMessageId => {}
                },
                // Those before it wait for what does not concern it, or for the pump.
                None => has_its_turn = true,
                Some(Hindrance::Until(until)) => self.retry_at(index, until),
                Some(Hindrance::Places(_)) => {}
            }
        }
        let Some(origin) = self.origins.get_mut(index) else { return Err(Failure::Overloaded) };
        if origin.starved.is_some_and(|free| free >= order.deadline) {
            return Err(Failure::Overloaded);
        }
        let begins = order.transfer.is_some_and(|transfer| !origin.permits.transfers.is_known(&transfer));
        if begins && origin.queue.patience_is_used_up(order.client, (most / BEGINNINGS).max(1)) {
            return Err(Failure::Overloaded);
        }
        if origin.queue.len() < most && origin.queue.is_used_up(order.client, most) {
            return Err(Failure::Overloaded);
        }
        if origin.queue.len() >= most {
            let shed = origin.queue.shed_for(order.client).ok_or(Failure::Overloaded)?;
            let failure = Failure::Overloaded;
            self.progress.push_back(Progress::Failed { fetch: shed.fetch, failure, trace: None });
        }
        let before = origin.queue.before(order.client);
        let times = (order.deadline.since(now), order.patience());
        let is_heard = origin.is_heard(now);
        if order.confirmable && !has_its_turn && origin.backlog.refuses(before, times, is_heard, now) {
            return Err(Failure::Overloaded);
        }
        let (order, token, content) = (*order, token.cloned(), (*content).into());
        origin.queue.push(order.client, Queued { fetch, order, token, content, since: now, begins });
        if has_its_turn {
            self.pump(index, now);
        }
        started(Standing::Queued)
    }

    /// Has the queue of an origin looked at again, then.
    fn retry_at(&mut self, index: u32, at: Instant) {
        let Some(origin) = self.origins.get_mut(index) else { return };
        if origin.retry_at.is_none_or(|planned| at < planned) {
            origin.retry_at = Some(at);
            self.timers.insert(at, Deadline::Retry(index));
        }
    }

    /// The queue of an origin may move on.
    pub(crate) fn retry(&mut self, index: u32, now: Instant) {
        let Some(origin) = self.origins.get_mut(index) else { return };
        if origin.retry_at.is_some_and(|at| at <= now) {
            origin.retry_at = None;
        }
        origin.starved = None;
        origin.permits.transfers.expire(now);
        self.count_transfers(index);
        self.may_move.push(index);
    }

    /// Takes note of how many transfers there are with an origin, and of when one is over.
    pub(crate) fn count_transfers(&mut self, index: u32) {
        let Some(origin) = self.origins.get_mut(index) else { return };
        let count = origin.permits.transfers.len();
        self.transfers = self.transfers + count - std::mem::replace(&mut origin.transfers, count);
        if let Some(expiry) = origin.permits.transfers.next_expiry() {
            self.retry_at(index, expiry);
        }
    }

    /// Lets waiting requests leave while the window is open.
    pub(crate) fn pump(&mut self, index: u32, now: Instant) {
        loop {
            let Some(origin) = self.origins.get_mut(index) else { return };
            if origin.queue.is_empty() || !origin.has_room() || origin.starved.is_some() {
                return;
            }
            let probe = match origin.turn(now) {
                Turn::Any => None,
                Turn::Probe(fetch) => Some(fetch),
                Turn::None(Some(until)) => return self.retry_at(index, until),
                Turn::None(None) => return,
            };
            let parameters = self.parameters.get(origin.upstream.0 as usize).unwrap_or(&self.parameters[0]);
            let (window, last) = (origin.window.size(), origin.round_trip.last());
            let has_room = self.transfers < MOST_OF_ALL;
            let mut until: Option<Instant> = None;
            let whole_at = origin.looked_through + LOOK_PAUSE;
            let is_whole = probe.is_some() || now >= whole_at;
            let most = if is_whole { usize::MAX } else { LOOKED_AT };
            let (mut looked, permits) = (0, &mut origin.permits);
            let next = origin.queue.pop_among(most, |queued| {
                looked += 1;
                if probe.is_some_and(|probe| probe != queued.fetch) {
                    return Look::Stays;
                }
                match permits.hindrance(&queued.order, parameters, window, last, has_room, now) {
                    None => Look::Leaves,
                    Some(Hindrance::Places(UsedUp::Client)) => Look::Stays,
                    Some(Hindrance::Places(UsedUp::Site)) => Look::SiteStays,
                    Some(Hindrance::Until(at)) => {
                        until = Some(until.map_or(at, |earlier| earlier.min(at)));
                        Look::Stays
                    }
                }
            });
            if looked > LOOKED_AT {
                origin.looked_through = now;
            }
            let (client, queued) = match next {
                Found::One(client, queued) => (client, queued),
                Found::NotYet => {
                    return self.retry_at(index, until.map_or(whole_at, |until| until.min(whole_at)));
                }
                Found::None => {
                    if let Some(until) = until {
                        self.retry_at(index, until);
                    }
                    return;
                }
            };
            let waited = now.since(queued.since);
            let Queued { fetch, ref order, ref token, ref content, .. } = queued;
            match self.send(index, fetch, order, token.as_ref(), &content.as_content(), now) {
                Attempt::Sent(exchange) => {
                    if let Some(origin) = self.origins.get_mut(index).filter(|_| queued.order.confirmable) {
                        let is_empty = origin.queue.is_empty();
                        origin.backlog.left(is_empty, queued.order.patience(), now);
                    }
                    let origin = OriginId(index);
                    self.progress.push_back(Progress::Sent { fetch, exchange, origin, waited });
                }
                Attempt::NoMessageId => {
                    if let Some(origin) = self.origins.get_mut(index) {
                        origin.queue.put_back(client, queued);
                    }
                    self.give_up_starved(index);
                    return;
                }
                // Its own deadline answers it, at the time that was promised.
                Attempt::TooLate => {}
            }
        }
    }

    /// Sends one request now, if that makes sense and is possible. For want of a Message ID the queue
    /// is tried again soon.
    fn send(
        &mut self,
        index: u32,
        fetch: FetchId,
        order: &Order,
        token: Option<&Token>,
        content: &Content<'_>,
        now: Instant,
    ) -> Attempt {
        let Some(origin) = self.origins.get_mut(index) else { return Attempt::TooLate };
        let parameters = self.parameters.get(origin.upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let (left, patience) = (order.deadline.since(now), order.patience());
        let last = origin.round_trip.last();
        // A request that waited until too little is left for an answer is not sent, also with nothing
        // learned: what is `not-sent` may be tried again. One that did not wait has all there can be.
        let needed = last.unwrap_or_else(|| parameters.transmission.ack_timeout.min(patience / 4));
        if left <= needed && left < patience {
            return Attempt::TooLate;
        }
        let timing = origin.round_trip.timeout(left, origin.window.outstanding(), now);
        let derived = self.derived.get(origin.upstream.0 as usize).unwrap_or(&self.derived[0]);
        let schedule = schedule(parameters, derived, order, timing, last, now);
        let endpoint = &mut self.endpoint;
        let mut send = |peer: Peer| {
            let token = match parameters.token {
                TokenPolicy::Fresh => None,
                TokenPolicy::Preserve => {
                    token.map(Token::as_bytes).filter(|token| endpoint.is_token_free(&peer, token, now))
                }
            };
            endpoint.send_request(&peer, order.confirmable, token, content, &schedule, now).ok()
        };
        let Some((port, exchange)) = origin.over_a_port(parameters.source_ports, order, now, &mut send)
        else {
            return self.starve(index, now);
        };
        origin.silence.sent(order.client, now);
        origin.window.start();
        origin.permits.places.take(order.site(), order.holder());
        origin.exchanges += 1;
        origin.was_asked = true;
        origin.idle_from = now + ORIGIN_LIFETIME;
        if order.is_reissue {
            origin.budget.charge();
            self.budget.charge();
        } else {
            origin.budget.deposit(&parameters.retry);
            self.budget.deposit(&self.parameters[0].retry);
        }
        if let Some(transfer) = order.transfer {
            origin.permits.transfers.touch(transfer, port, now);
        }
        if !order.confirmable {
            let bytes = self.endpoint.trace(exchange).map_or(0, |course| course.bytes());
            origin.permits.probing.sent(parameters.probing_rate, bytes, now);
            self.timers.insert(now + timing.timeout, Deadline::Release(exchange));
        }
        let pinged = origin.pings.are_wanted().then(|| origin.peer(port));
        let slot = exchange.slot as usize;
        if self.outstanding.len() <= slot {
            self.outstanding.resize(slot + 1, None);
        }
        let (generation, place) = (exchange.generation, Some(order.holder()));
        self.outstanding[slot] =
            Some(Outstanding { generation, fetch, origin: index, site: order.site(), place });
        if let Some(peer) = pinged {
            self.ping(index, peer, now);
        }
        Attempt::Sent(exchange)
    }

    fn starve(&mut self, index: u32, now: Instant) -> Attempt {
        if let Some(origin) = self.origins.get_mut(index) {
            let upstream = origin.upstream.0 as usize;
            let parameters = self.parameters.get(upstream).unwrap_or(&self.parameters[0]);
            let ports = 0..parameters.source_ports.max(1);
            origin.starved =
                ports.map(|port| self.endpoint.message_id_is_free_at(&origin.peer(port), now)).min();
        }
        self.retry_at(index, now + MESSAGE_ID_PAUSE);
        Attempt::NoMessageId
    }

    /// Those for which no Message ID will be free in time fail at once.
    fn give_up_starved(&mut self, index: u32) {
        let Some(origin) = self.origins.get_mut(index) else { return };
        let Some(free) = origin.starved else { return };
        while let Some((_, queued)) = origin.queue.pop(|queued| free >= queued.order.deadline) {
            let (fetch, failure) = (queued.fetch, Failure::Overloaded);
            self.progress.push_back(Progress::Failed { fetch, failure, trace: None });
        }
    }
}
