//! Messages of ours under way: copies, Acknowledgements, Resets, ICMP errors, the end
//! (RFC 7252 §4.2, §4.3).

use std::time::Duration;

use coapway_message::{Datagram, ExchangeId, Failure, Malformed, MessageType, datagram};
use coapway_time::Instant;

use super::endpoint::Endpoint;
use super::message::{Active, Answered, Bond, Kind, Message};
use super::peers::Sender;
use super::pending::{Deadline, Due};
use crate::event::Event;
use crate::peer::Peer;
use crate::trace::Copy;

impl Endpoint {
    /// A message and its active part.
    pub(super) fn active_message(&mut self, exchange: ExchangeId) -> Option<(&mut Message, &mut Active)> {
        let message = self.messages.get_mut(exchange)?;
        let active = self.active.get_mut(message.active?)?;
        Some((message, active))
    }

    /// The wait after a copy is over: another copy, or none any more, or the end.
    pub(super) fn wait_is_over(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(message) = self.messages.get_mut(exchange) else { return };
        message.timer = None;
        if now >= message.deadline {
            self.fail(exchange, Failure::TimedOut, now);
            return;
        }
        let mut wake = message.deadline;
        if !message.is_acknowledged()
            && message.is_confirmable()
            && let Some(next) = self.copy_is_lost(exchange, now)
        {
            wake = wake.min(next);
        }
        self.wake_at(exchange, wake);
    }

    /// No Acknowledgement came for the last copy in time. Says until when one for the next is waited for,
    /// if another left.
    fn copy_is_lost(&mut self, exchange: ExchangeId, now: Instant) -> Option<Instant> {
        let (message, active) = self.active_message(exchange)?;
        let (kind, peer) = (message.kind, message.peer);
        let first = Copy::new(message.sent, active.first_wait, message.message_id);
        let ran_out = active.further.last().copied().unwrap_or(first);
        let copies = 1 + active.further.len() as u32;
        let may_leave = copies <= active.schedule.max_retransmit && active.may_leave_at(message, now);
        let leaves = may_leave && self.is_admitted(exchange);
        let timeout = leaves.then(|| self.copy(exchange, now, None)).flatten();
        let copies = copies + u32::from(leaves);
        match kind {
            Kind::Request => {
                let timeout = ran_out.timeout();
                self.events.push_back(Event::Retransmitted { exchange, copies, timeout });
                if !leaves {
                    self.events.push_back(Event::Exhausted { exchange, copies });
                }
            }
            Kind::Response => {
                self.turns.timed_out(peer, ran_out, ran_out == first, now);
                if !leaves && self.leave_turn(exchange) {
                    self.end_turn(peer, now);
                }
            }
            Kind::Ping | Kind::NonConfirmable => {}
        }
        timeout.map(|timeout| now + timeout)
    }

    /// The timer of a message runs until then.
    pub(super) fn wake_at(&mut self, exchange: ExchangeId, wake: Instant) {
        let Some(message) = self.messages.get_mut(exchange) else { return };
        if let Some(timer) = message.timer.take() {
            self.timers.cancel(timer);
        }
        message.timer = Some(self.timers.insert(wake, Deadline::new(Due::Message(exchange.slot))));
    }

    /// A response is over, or no further copy of it leaves, and it blocks nobody (R-ATK-06). Returns
    /// whether it did.
    fn leave_turn(&mut self, exchange: ExchangeId) -> bool {
        let message = self.messages.get_mut(exchange).filter(|message| message.bond == Bond::InTurn);
        message.map(|message| message.bond = Bond::None).is_some()
    }

    /// Another copy leaves. Returns how long its Acknowledgement is waited for: so long, or as the schedule
    /// says.
    ///
    /// Where its schedule gives it a Message ID of its own and none is free, it leaves under the last one.
    pub(super) fn copy(
        &mut self,
        exchange: ExchangeId,
        now: Instant,
        timeout: Option<Duration>,
    ) -> Option<Duration> {
        let message = self.messages.get_mut(exchange)?;
        let active = self.active.get_mut(message.active?)?;
        let copies = 1 + active.further.len() as u32;
        let timeout = timeout.unwrap_or_else(|| {
            let Active { schedule, first_wait, .. } = active;
            let wait = schedule.wait(*first_wait, copies + 1, &mut self.random);
            // Jitter would have the last copy leave too late.
            let rest = schedule.rest(message.sent, *first_wait, copies + 1, now);
            rest.map_or(wait, |rest| wait.min(rest))
        });
        let mut message_id = active.last_id(message);
        if active.schedule.fresh_ids
            && let Some(fresh) =
                self.message_ids.take(&mut self.peers, message.peer, active.schedule.lifetime, now)
        {
            message_id = fresh;
            message.rename(fresh);
            self.by_message_id.insert_own(message.peer, fresh, exchange.slot);
        }
        active.further.push(Copy::new(now, timeout, message_id));
        self.counters.retransmissions += 1;
        self.outbox.push(message.peer, message.datagram());
        Some(timeout)
    }

    /// Whether the address a copy goes to may get it.
    pub(super) fn is_admitted(&mut self, exchange: ExchangeId) -> bool {
        let Some((message, active)) = self.active_message(exchange) else { return false };
        match active.answered {
            Some(Answered { entry, verified: false, .. }) => {
                let bytes = message.datagram().len();
                self.spend(entry, bytes)
            }
            Some(Answered { verified: true, .. }) | None => true,
        }
    }

    /// The message under way to the sender with this Message ID.
    #[inline]
    pub(super) fn under_way(&self, sender: &Sender<'_>, message_id: u16) -> Option<ExchangeId> {
        self.by_message_id.get(&self.messages, sender.number?, message_id)
    }

    pub(super) fn handle_acknowledgement(&mut self, sender: &Sender<'_>, message_id: u16, now: Instant) {
        match self.under_way(sender, message_id) {
            Some(exchange) => self.acknowledged(exchange, message_id, now),
            None => self.acknowledged_nothing(sender, message_id),
        }
    }

    /// Which copy of a message under way was the first under this Message ID, from 0 on.
    #[inline]
    pub(super) fn copy_under(&self, exchange: ExchangeId, message_id: u16) -> u8 {
        let Some(message) = self.messages.get(exchange) else { return 0 };
        if message.message_id == message_id {
            return 0;
        }
        let active = message.active.and_then(|number| self.active.get(number));
        active.map_or(0, |active| active.copy_under(message_id))
    }

    /// An Acknowledgement of nothing under way.
    pub(super) fn acknowledged_nothing(&mut self, sender: &Sender<'_>, message_id: u16) {
        self.counters.unexpected += 1;
        self.events.push_back(Event::AcknowledgedAgain { peer: *sender.peer, message_id });
    }

    /// An Acknowledgement with this Message ID that carries no response of interest.
    pub(super) fn acknowledged(&mut self, exchange: ExchangeId, message_id: u16, now: Instant) {
        let copy = self.copy_under(exchange, message_id);
        let Some(message) = self.messages.get_mut(exchange) else { return };
        match message.kind {
            Kind::NonConfirmable => message.acks = message.acks.saturating_add(1),
            Kind::Request => {
                let is_first = !message.is_acknowledged();
                message.acknowledged(copy, now);
                if is_first {
                    self.needs_no_copy(exchange, now);
                } else {
                    let peer = self.peers.get(message.peer);
                    self.events.push_back(Event::AcknowledgedAgain { peer, message_id });
                }
            }
            Kind::Response => {
                message.acknowledged(copy, now);
                let peer = message.peer;
                let Some(course) = self.trace(exchange) else { return };
                let (copies, round_trip) = (course.copies(), course.exact_round_trip());
                self.turns.acknowledged(peer, copies, round_trip, now);
                self.delivered(exchange, Ok(()), now);
            }
            Kind::Ping => self.pong(exchange, now),
        }
    }

    /// A request is acknowledged: what it needed for further copies it needs no more, but those that left
    /// are remembered.
    fn needs_no_copy(&mut self, exchange: ExchangeId, now: Instant) {
        let Some((message, active)) = self.active_message(exchange) else { return };
        let deadline = message.deadline;
        let round_trip = if active.further.is_empty() {
            let round_trip = now.since(message.sent);
            if let Some(number) = message.active.take() {
                self.active.end(number);
            }
            Some(round_trip)
        } else {
            self.trace(exchange).and_then(|course| course.exact_round_trip())
        };
        self.wake_at(exchange, deadline);
        self.events.push_back(Event::Acknowledged { exchange, round_trip });
    }

    pub(super) fn handle_reset(&mut self, sender: &Sender<'_>, message_id: u16, now: Instant) {
        let Some(exchange) = self.under_way(sender, message_id) else {
            self.counters.unexpected += 1;
            return;
        };
        let Some(&Message { kind, peer, .. }) = self.messages.get(exchange) else { return };
        match kind {
            Kind::Ping => self.pong(exchange, now),
            Kind::Request if !self.ends_with(exchange, message_id) => {}
            Kind::Request | Kind::NonConfirmable => self.fail(exchange, Failure::Reset, now),
            Kind::Response => {
                self.turns.arrived(peer, now);
                self.fail(exchange, Failure::Reset, now);
            }
        }
    }

    /// Whether a Reset with this Message ID ends a request. Copies with Message IDs of their own are messages
    /// of their own: one that was rejected says nothing of another that was acknowledged, or that left later
    /// and can still be answered.
    fn ends_with(&self, exchange: ExchangeId, message_id: u16) -> bool {
        let Some(message) = self.messages.get(exchange) else { return true };
        let active = message.active.and_then(|number| self.active.get(number));
        let Some(active) = active.filter(|active| active.schedule.fresh_ids) else { return true };
        let that_counts = message.first_ack_id(&active.further).unwrap_or(active.last_id(message));
        message_id == that_counts
    }

    /// An ICMP error came back for a datagram to `peer`; `quoted` is the start of that datagram.
    ///
    /// Where our socket listens on more than one address, `peer.local.address` may be left out.
    /// Only a quotation with the Message ID and, for a request, the token of a message under way
    /// counts, and of any other message all that is quoted: ICMP is not authenticated
    /// (RFC 7252 §4.2, RFC 8085 §5.2).
    pub fn handle_unreachable(&mut self, peer: &Peer, quoted: &[u8], failure: Failure, now: Instant) {
        let (message_id, token) = match Datagram::parse(quoted) {
            Ok(datagram) => (datagram.message_id, Some(datagram.token)),
            Err(Malformed::Format { message_id, token, .. }) => (message_id, token),
            Err(Malformed::Ignored) => return,
        };
        let found = self.by_message_id.quoted(&self.messages, &self.peers, peer, message_id);
        let Some(exchange) = found else { return };
        let Some(message) = self.messages.get(exchange) else { return };
        let ours = match message.kind {
            Kind::Request | Kind::NonConfirmable => token == Some(message.token.as_bytes()),
            Kind::Response => message.datagram().starts_with(quoted),
            Kind::Ping => quoted == datagram::empty(MessageType::Confirmable, message_id),
        };
        if ours {
            self.fail(exchange, failure, now);
        }
    }

    fn pong(&mut self, exchange: ExchangeId, now: Instant) {
        if let Some(message) = self.messages.get_mut(exchange) {
            message.acknowledged(0, now);
        }
        self.end(exchange);
        let Some(round_trip) = self.ended(exchange).map(|course| course.exact_round_trip()) else { return };
        self.events.push_back(Event::Alive { exchange, round_trip });
    }

    pub(super) fn fail(&mut self, exchange: ExchangeId, failure: Failure, now: Instant) {
        let Some(message) = self.messages.get(exchange) else { return };
        match message.kind {
            Kind::Request | Kind::NonConfirmable | Kind::Ping => {
                self.end(exchange);
                let Some(trace) = self.ended(exchange).map(|course| Box::new(course.trace())) else { return };
                self.events.push_back(Event::Failed { exchange, failure, trace });
            }
            Kind::Response => self.delivered(exchange, Err(failure), now),
        }
    }

    /// A separate response is over.
    fn delivered(&mut self, exchange: ExchangeId, outcome: Result<(), Failure>, now: Instant) {
        let Some((message, active)) = self.active_message(exchange) else { return };
        let (peer, copies, answered) = (message.peer, 1 + active.further.len() as u32, active.answered);
        let in_turn = self.leave_turn(exchange);
        self.end(exchange);
        if let Some(Answered { request, .. }) = answered {
            self.events.push_back(Event::Delivered { exchange: request, outcome, copies });
        }
        if in_turn {
            self.end_turn(peer, now);
        }
    }

    /// Ends a message of ours: its timer stops, its Message ID leads nowhere, its place is free. Says
    /// whether it was under way.
    #[inline]
    pub(super) fn end(&mut self, exchange: ExchangeId) -> bool {
        let Some(message) = self.messages.get_mut(exchange) else { return false };
        if let Some(timer) = message.timer.take() {
            self.timers.cancel(timer);
        }
        // What is in its parts may still be read.
        if let Some(number) = message.active {
            if self.by_message_id.has_own()
                && let Some(active) = self.active.get(number)
            {
                self.by_message_id.remove_own(message.peer, active.own_ids(message), exchange.slot);
            }
            self.active.end(number);
        }
        if message.bond == Bond::Preserved {
            self.preserved.end(message.peer, message.token.as_bytes());
        }
        self.peers.release(message.peer);
        self.by_message_id.remove(&self.messages, exchange.slot);
        self.messages.end(exchange.slot);
        true
    }
}
