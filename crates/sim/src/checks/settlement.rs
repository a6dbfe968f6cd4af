//! Each accepted request is settled exactly once, at the latest at `max_wait` or `answer_within`; each separate answer
//! is told to have arrived or not, once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use coapway_message::ExchangeId;
use coapway_proxy::{Cause, Event};
use coapway_time::Instant;

use super::{Deadlines, Rules};

#[derive(Debug)]
struct Accepted {
    until: Instant,
    answered: bool,
    separate: bool,
    delivered: bool,
    /// Whether its client had given up, and may have got no answer.
    gone: bool,
}

#[derive(Debug)]
pub(super) struct Settlement {
    within: Duration,
    stalled_until: Instant,
    slack: Duration,
    requests: BTreeMap<ExchangeId, Accepted>,
    open: Deadlines<ExchangeId>,
    ever: BTreeSet<ExchangeId>,
}

impl Settlement {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            within: rules.within + rules.slack,
            stalled_until: Instant::ZERO,
            slack: rules.slack,
            requests: BTreeMap::new(),
            open: Deadlines::new(),
            ever: BTreeSet::new(),
        }
    }

    pub(super) fn stalled(&mut self, until: Instant) {
        self.stalled_until = until;
    }

    pub(super) fn told(&mut self, event: &Event, now: Instant) -> Result<(), String> {
        match *event {
            Event::Received { request, .. } => {
                let until = now + self.within;
                let accepted =
                    Accepted { until, answered: false, separate: false, delivered: false, gone: false };
                self.requests.insert(request, accepted);
                self.open.insert((until, request), ());
                if !self.ever.insert(request) {
                    return Err(format!("request {request} was received under a name used before"));
                }
            }
            Event::EmptyAckSent { request } => {
                let accepted = self.known(request, "acknowledged early")?;
                if std::mem::replace(&mut accepted.separate, true) || accepted.answered {
                    return Err(format!("request {request} acknowledged early twice or after its answer"));
                }
            }
            Event::Answered { request, cause, .. } => {
                let accepted = self.known(request, "answered")?;
                accepted.gone = cause == Cause::ClientGone;
                if std::mem::replace(&mut accepted.answered, true) {
                    return Err(format!("request {request} answered twice"));
                }
                let until = accepted.until;
                self.open.remove(&(until, request));
            }
            Event::Delivered { request, .. } => {
                let accepted = self.known(request, "delivered")?;
                if std::mem::replace(&mut accepted.delivered, true)
                    || !accepted.separate
                    || !accepted.answered
                {
                    return Err(format!("request {request} delivered twice or without a separate answer"));
                }
            }
            Event::Sent { request, .. }
            | Event::Retransmitted { request, .. }
            | Event::Acknowledged { request } => {
                if self.known(request, "moved on")?.answered {
                    return Err(format!("request {request} moved on after its answer: {event}"));
                }
            }
            Event::Repeated { request: Some(request) } => {
                self.known(request, "repeated")?;
            }
            Event::Repeated { request: None } | Event::Alert(_) | Event::Refused(_) => {}
        }
        Ok(())
    }

    fn known(&mut self, request: ExchangeId, what: &str) -> Result<&mut Accepted, String> {
        self.requests.get_mut(&request).ok_or_else(|| format!("request {request} {what} but never received"))
    }

    pub(super) fn overdue(&mut self, now: Instant) -> Result<(), String> {
        let Some((&(until, request), ())) = self.open.first_key_value() else { return Ok(()) };
        if now <= until || now <= self.stalled_until + self.slack {
            return Ok(());
        }
        self.open.pop_first();
        Err(format!("request {request} is not answered, {:?} after its deadline", now.since(until)))
    }

    pub(super) fn finish(&self) -> Vec<String> {
        let unanswered = self.requests.iter().filter(|(_, accepted)| !accepted.answered);
        let is_due = |accepted: &Accepted| accepted.separate && accepted.answered && !accepted.gone;
        let undelivered =
            self.requests.iter().filter(|(_, accepted)| is_due(accepted) && !accepted.delivered);
        unanswered
            .map(|(request, _)| format!("request {request} was never answered"))
            .chain(
                undelivered
                    .map(|(request, _)| format!("nothing was told of the delivery of {request}'s answer")),
            )
            .collect()
    }
}
