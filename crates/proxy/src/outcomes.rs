//! What becomes of exchanges, and what is learned of their origins by it.

use coapway_endpoint::datagram::congestion::Loss;
use coapway_endpoint::{Estimator, Event, Nstart};
use coapway_message::{ExchangeId, Failure};
use coapway_relay::OriginId;
use coapway_time::Instant;

use crate::alert::Alert;
use crate::origin::ORIGIN_LIFETIME;
use crate::parameters::CopySchedule;
use crate::shift::Change;
use crate::upstreams::{Arrival, Outstanding, Progress, Upstreams};

/// After so many copies in vain an exchange makes way for others.
const MANY_COPIES: u32 = 3;

impl Upstreams {
    /// Something became of an exchange.
    pub(crate) fn handle_event(&mut self, event: Event, now: Instant) {
        match event {
            Event::Acknowledged { exchange, round_trip } => {
                let Some(outstanding) = self.known(exchange) else { return };
                if let Some(course) = self.endpoint.trace(exchange) {
                    let arrival = Arrival::of(&course, round_trip, now);
                    self.arrived(outstanding, arrival, now);
                }
                self.release(exchange);
                self.progress.push_back(Progress::Acknowledged { fetch: outstanding.fetch });
            }
            Event::Retransmitted { exchange, copies, timeout } => {
                let Some(outstanding) = self.known(exchange) else { return };
                // The second has just left, or none may.
                let is_first = copies == 1
                    || copies == 2
                        && self.endpoint.trace(exchange).is_some_and(|course| {
                            course.further().first().is_some_and(|second| second.sent == now)
                        });
                if let Some(origin) = self.origins.get_mut(outstanding.origin) {
                    let loss = Loss {
                        sent: now - timeout,
                        timeout,
                        is_first,
                        exact_samples: origin.round_trip.exact_samples(),
                    };
                    let is_silent = origin.window.last_arrival().is_none_or(|arrival| arrival < loss.sent);
                    origin.round_trip.timed_out(timeout, is_silent);
                    origin.window.timed_out(&loss, now);
                    if copies > 2 {
                        origin.budget.charge();
                        self.budget.charge();
                    }
                }
                if copies >= MANY_COPIES {
                    self.make_way(exchange, outstanding.origin);
                }
                self.progress.push_back(Progress::Retransmitted { fetch: outstanding.fetch, copies });
            }
            Event::Exhausted { exchange, .. } => {
                let Some(outstanding) = self.known(exchange) else { return };
                self.saw(outstanding.origin, true, now);
                let began = self.endpoint.trace(exchange).map(|course| course.first().sent);
                if let (Some(origin), Some(began)) = (self.origins.get_mut(outstanding.origin), began) {
                    origin.round_trip.failed(began, now);
                }
                // No Acknowledgement is expected any more: its place is for others (RFC 7252 §4.7).
                self.release(exchange);
                let Outstanding { fetch, origin, .. } = outstanding;
                self.progress.push_back(Progress::Exhausted { fetch, exchange, origin: OriginId(origin) });
            }
            Event::Failed { exchange, failure, trace } => {
                if self.pinged(exchange, None, now) {
                    return;
                }
                let Some(outstanding) = self.end(exchange, now) else { return };
                if let Some(origin) = self.origins.get_mut(outstanding.origin)
                    && matches!(failure, Failure::Reset | Failure::Unusable)
                {
                    origin.window.arrived(now);
                    origin.permits.probing.heard();
                    self.heard(outstanding.origin);
                }
                if let Some(origin) = self.origins.get_mut(outstanding.origin)
                    && failure == Failure::Unreachable
                {
                    origin.permits.probing.refused();
                }
                if matches!(failure, Failure::Unreachable | Failure::TimedOut) {
                    let missed = (outstanding.origin, outstanding.site);
                    if let Some(down) = self.missed(missed, &trace, failure, now) {
                        self.progress.push_back(Progress::Down(outstanding.fetch, down));
                    }
                }
                let trace = Some(trace);
                self.progress.push_back(Progress::Failed { fetch: outstanding.fetch, failure, trace });
                self.may_move.push(outstanding.origin);
            }
            Event::AcknowledgedAgain { peer, message_id } => {
                self.acknowledged_again(peer, message_id, now);
                self.progress.push_back(Progress::AcknowledgedAgain { peer, message_id });
            }
            Event::Alive { exchange, round_trip } => {
                self.pinged(exchange, Some(round_trip), now);
            }
            Event::EmptyAckSent { .. } | Event::Repeated { .. } | Event::Delivered { .. } => {}
        }
    }

    /// The origin acknowledged or answered.
    pub(crate) fn arrived(&mut self, outstanding: Outstanding, arrival: Arrival, now: Instant) {
        self.heard(outstanding.origin);
        let Some(origin) = self.origins.get_mut(outstanding.origin) else { return };
        origin.window.arrived(now);
        origin.permits.probing.heard();
        let Arrival { copies, confirmable, sample, several } = arrival;
        if let Some(sample) = sample {
            origin.round_trip.sample(sample, now);
            origin.window.saw(sample, now);
        }
        if let Some(several) = &several {
            self.acknowledged_after_several(outstanding.origin, several, now);
        }
        let Some(origin) = self.origins.get_mut(outstanding.origin) else { return };
        if outstanding.place.is_none() {
            return;
        }
        let waiting = !origin.queue.is_empty();
        origin.window.acknowledged(copies, origin.round_trip.exact_samples(), waiting);
        if confirmable {
            self.saw(outstanding.origin, copies > 1, now);
            self.check_cap(outstanding.origin);
        }
    }

    /// A Confirmable request was acknowledged, or its copies were in vain.
    fn saw(&mut self, index: u32, needed_help: bool, now: Instant) {
        let Some(origin) = self.origins.get_mut(index) else { return };
        let Some(change) = origin.shift.saw(needed_help, now) else { return };
        let (upstream, origin) = (origin.upstream, origin.address);
        let alert = match change {
            Change::Raised { usual, recent } => Alert::RetriesRose { upstream, origin, usual, recent },
            Change::Calmed => Alert::RetriesCalmed { upstream, origin },
        };
        self.progress.push_back(Progress::Alert(alert));
    }

    /// Tells once when the learned timeout would be over its cap (R-USR-18).
    fn check_cap(&mut self, index: u32) {
        let Some(origin) = self.origins.get_mut(index) else { return };
        let is_over = origin.round_trip.cap_is_exceeded();
        if is_over && !origin.is_over_cap {
            let (upstream, address) = (origin.upstream, origin.address);
            let quantile = origin.round_trip.quantile().unwrap_or_default();
            let alert = Alert::TimeoutOverCap { upstream, origin: address, quantile };
            self.progress.push_back(Progress::Alert(alert));
        }
        origin.is_over_cap = is_over;
    }

    /// Several copies in a row were in vain, and the next leaves after a long wait: meanwhile its place in a
    /// window that is learned is for others, who ask the origin sooner whether it is there.
    fn make_way(&mut self, exchange: ExchangeId, index: u32) {
        let Some(origin) = self.origins.get(index) else { return };
        let parameters = self.parameters.get(origin.upstream.0 as usize).unwrap_or(&self.parameters[0]);
        let is_stretched = parameters.retransmit.schedule == CopySchedule::Stretched
            && parameters.rto.estimator != Estimator::Fixed
            && origin.round_trip.last().is_some();
        if is_stretched && matches!(parameters.nstart, Nstart::Auto { .. }) {
            self.release(exchange);
        }
    }

    /// The exchange no longer counts against the window.
    pub(crate) fn release(&mut self, exchange: ExchangeId) {
        let Some(Some(outstanding)) = self.outstanding.get_mut(exchange.slot as usize) else { return };
        let is_it = outstanding.generation == exchange.generation;
        if !is_it {
            return;
        }
        let Some(holder) = outstanding.place.take() else { return };
        let (index, site) = (outstanding.origin, outstanding.site);
        if let Some(origin) = self.origins.get_mut(index) {
            origin.window.end();
            origin.permits.places.give(site, holder);
        }
        self.may_move.push(index);
    }

    /// The exchange is over.
    pub(crate) fn end(&mut self, exchange: ExchangeId, now: Instant) -> Option<Outstanding> {
        let outstanding = self.known(exchange)?;
        self.outstanding[exchange.slot as usize] = None;
        if let Some(origin) = self.origins.get_mut(outstanding.origin) {
            if let Some(holder) = outstanding.place {
                origin.window.end();
                origin.permits.places.give(outstanding.site, holder);
            }
            origin.exchanges -= 1;
            origin.idle_from = now + ORIGIN_LIFETIME;
        }
        Some(outstanding)
    }
}
