//! Messages of ours under way: copies, Acknowledgements, Resets, ICMP errors, the end
//! (RFC 7252 §4.2, §4.3).

use coapway_message::{Datagram, ExchangeId, Failure, Malformed, MessageType, Token, datagram};
use coapway_time::Instant;
use smallvec::SmallVec;

use super::endpoint::Endpoint;
use super::pending::Deadline;
use super::retransmission::{Answered, Kind, Schedule, Transmission};
use crate::event::Event;
use crate::peer::Peer;
use crate::trace::{Copy, Trace};

/// A slot keeps this much of its buffer for the next message.
const KEPT_BUFFER: usize = 256;

impl Endpoint {
    /// Takes a Message ID and a slot for a message of ours; its buffer is empty.
    pub(super) fn begin(
        &mut self,
        peer: Peer,
        kind: Kind,
        confirmable: bool,
        schedule: Schedule,
        now: Instant,
    ) -> Option<(ExchangeId, u16)> {
        let message_id = match kind {
            Kind::Response(_) => self.message_ids.take_for_response(peer, schedule.lifetime, now)?,
            Kind::Request | Kind::Ping => self.message_ids.take(peer, schedule.lifetime, now)?,
        };
        let trace = Trace {
            peer,
            message_id,
            token: Token::default(),
            confirmable,
            copies: SmallVec::new(),
            first_ack: None,
            acks: 0,
            answer: None,
            bytes: 0,
        };
        let transmission = Transmission {
            kind,
            schedule,
            first_wait: schedule.timeout,
            timer: None,
            acknowledged: false,
            in_turn: matches!(kind, Kind::Response(_)),
            preserved: false,
            trace,
        };
        let exchange = self.transmissions.insert(transmission);
        if self.datagrams.len() <= exchange.slot as usize {
            self.datagrams.resize_with(exchange.slot as usize + 1, Vec::new);
        }
        self.datagrams[exchange.slot as usize].clear();
        Some((exchange, message_id))
    }

    /// The first wait is drawn, the first copy leaves, the message is known by its Message ID.
    pub(super) fn start(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(transmission) = self.transmissions.get_mut(exchange) else { return };
        let peer = transmission.trace.peer;
        let schedule = transmission.schedule;
        let confirmable = transmission.trace.confirmable;
        let timeout =
            if confirmable { transmission.schedule.first_wait(&mut self.random) } else { schedule.timeout };
        transmission.first_wait = timeout;
        transmission.trace.copies.push(Copy { sent: now, timeout });
        let wake = if confirmable { schedule.deadline.min(now + timeout) } else { schedule.deadline };
        transmission.timer = Some(self.timers.insert(wake, Deadline::Transmission(exchange)));
        let message_id = transmission.trace.message_id;
        self.by_message_id.insert(peer, message_id, exchange);
        if let Some(bytes) = self.datagrams.get(exchange.slot as usize) {
            transmission.trace.bytes = bytes.len() as u32;
            self.outbox.push(peer, bytes);
        }
    }

    /// The wait after a copy is over: another copy, or none any more, or the end.
    pub(super) fn wait_is_over(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(transmission) = self.transmissions.get_mut(exchange) else { return };
        transmission.timer = None;
        let Transmission { kind, schedule, acknowledged, first_wait, .. } = *transmission;
        if now >= schedule.deadline {
            self.fail(exchange, Failure::TimedOut, now);
            return;
        }
        let mut wake = schedule.deadline;
        if !acknowledged && transmission.trace.confirmable {
            let peer = transmission.trace.peer;
            let copies = transmission.trace.copies.len() as u32;
            let ran_out = transmission.trace.copies.last().copied();
            let ran_out = ran_out.unwrap_or(Copy { sent: now, timeout: schedule.timeout });
            let first_sent = transmission.trace.copies.first().map(|first| first.sent);
            let may_leave = copies <= schedule.max_retransmit && transmission.may_leave_at(now);
            let leaves = may_leave && self.is_admitted(exchange);
            if leaves {
                let mut timeout = schedule.wait(first_wait, copies + 1, &mut self.random);
                if let Some(rest) =
                    first_sent.and_then(|began| schedule.rest(began, first_wait, copies + 1, now))
                {
                    // Jitter would have the last copy leave too late.
                    timeout = timeout.min(rest);
                }
                self.copy(exchange, Copy { sent: now, timeout });
                wake = wake.min(now + timeout);
            }
            let copies = copies + u32::from(leaves);
            match kind {
                Kind::Request => {
                    let timeout = ran_out.timeout;
                    self.events.push_back(Event::Retransmitted { exchange, copies, timeout });
                    if !leaves {
                        self.events.push_back(Event::Exhausted { exchange, copies });
                    }
                }
                Kind::Response(_) => {
                    self.turns.timed_out(peer, ran_out.sent, ran_out.timeout, now);
                    if !leaves && self.leave_turn(exchange) {
                        self.end_turn(peer, now);
                    }
                }
                Kind::Ping => {}
            }
        }
        if let Some(transmission) = self.transmissions.get_mut(exchange) {
            transmission.timer = Some(self.timers.insert(wake, Deadline::Transmission(exchange)));
        }
    }

    /// A response is over, or no further copy of it leaves, and it blocks nobody (R-ATK-06). Returns
    /// whether it did.
    fn leave_turn(&mut self, exchange: ExchangeId) -> bool {
        let transmission = self.transmissions.get_mut(exchange);
        transmission.is_some_and(|transmission| std::mem::take(&mut transmission.in_turn))
    }

    /// Another copy leaves.
    pub(super) fn copy(&mut self, exchange: ExchangeId, copy: Copy) {
        let Some(transmission) = self.transmissions.get_mut(exchange) else { return };
        transmission.trace.copies.push(copy);
        self.counters.retransmissions += 1;
        if let Some(bytes) = self.datagrams.get(exchange.slot as usize) {
            self.outbox.push(transmission.trace.peer, bytes);
        }
    }

    /// Whether the address a copy goes to may get it.
    pub(super) fn is_admitted(&mut self, exchange: ExchangeId) -> bool {
        let Some(transmission) = self.transmissions.get(exchange) else { return false };
        match transmission.kind {
            Kind::Response(Answered { entry, verified: false, .. }) => {
                let bytes = transmission.trace.bytes as usize;
                self.spend(entry, bytes)
            }
            Kind::Response(_) | Kind::Request | Kind::Ping => true,
        }
    }

    pub(super) fn handle_acknowledgement(&mut self, peer: Peer, message_id: u16, now: Instant) {
        match self.by_message_id.get(peer, message_id) {
            Some(exchange) => self.acknowledged(exchange, now),
            None => self.acknowledged_nothing(peer, message_id),
        }
    }

    /// An Acknowledgement of nothing under way.
    pub(super) fn acknowledged_nothing(&mut self, peer: Peer, message_id: u16) {
        self.counters.unexpected += 1;
        self.events.push_back(Event::AcknowledgedAgain { peer, message_id });
    }

    /// An Acknowledgement that carries no response of interest.
    pub(super) fn acknowledged(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(transmission) = self.transmissions.get_mut(exchange) else { return };
        match transmission.kind {
            Kind::Request => {
                transmission.trace.acks += 1;
                if transmission.acknowledged || !transmission.trace.confirmable {
                    let Trace { peer, message_id, .. } = transmission.trace;
                    self.events.push_back(Event::AcknowledgedAgain { peer, message_id });
                    return;
                }
                transmission.acknowledged = true;
                transmission.trace.first_ack = Some(now);
                let round_trip = transmission.trace.exact_round_trip();
                if let Some(timer) = transmission.timer.take() {
                    self.timers.cancel(timer);
                }
                let deadline = transmission.schedule.deadline;
                transmission.timer = Some(self.timers.insert(deadline, Deadline::Transmission(exchange)));
                self.events.push_back(Event::Acknowledged { exchange, round_trip });
            }
            Kind::Response(answered) => {
                transmission.trace.first_ack = Some(now);
                let (peer, copies) = (transmission.trace.peer, transmission.trace.copies.len() as u32);
                let round_trip = transmission.trace.exact_round_trip();
                self.turns.acknowledged(peer, copies, round_trip, now);
                self.delivered(exchange, answered.request, Ok(()), now);
            }
            Kind::Ping => self.pong(exchange, now),
        }
    }

    pub(super) fn handle_reset(&mut self, peer: Peer, message_id: u16, now: Instant) {
        let Some(exchange) = self.by_message_id.get(peer, message_id) else {
            self.counters.unexpected += 1;
            return;
        };
        match self.transmissions.get(exchange).map(|transmission| transmission.kind) {
            Some(Kind::Ping) => self.pong(exchange, now),
            Some(Kind::Request) => self.fail(exchange, Failure::Reset, now),
            Some(Kind::Response(_)) => {
                self.turns.arrived(peer, now);
                self.fail(exchange, Failure::Reset, now);
            }
            None => {}
        }
    }

    /// An ICMP error came back for a datagram to `peer`; `quoted` is the start of that datagram.
    ///
    /// Where our socket listens on more than one address, `peer.local.address` may be left out.
    /// Only a quotation with the Message ID and, for a request, the token of a message under way
    /// counts, and of any other message all that is quoted: ICMP is not authenticated
    /// (RFC 7252 §4.2, RFC 8085 §5.2).
    pub fn handle_unreachable(&mut self, peer: Peer, quoted: &[u8], failure: Failure, now: Instant) {
        let (message_id, token) = match Datagram::parse(quoted) {
            Ok(datagram) => (datagram.message_id, Some(datagram.token)),
            Err(Malformed::Format { message_id, token, .. }) => (message_id, token),
            Err(Malformed::Ignored) => return,
        };
        let Some(exchange) = self.by_message_id.quoted(peer, message_id) else { return };
        let Some(transmission) = self.transmissions.get(exchange) else { return };
        let ours = match transmission.kind {
            Kind::Request => token == Some(transmission.trace.token.as_bytes()),
            Kind::Response(_) => {
                let sent = self.datagrams.get(exchange.slot as usize).map_or(&[][..], Vec::as_slice);
                sent.starts_with(quoted)
            }
            Kind::Ping => quoted == datagram::empty(MessageType::Confirmable, message_id),
        };
        if ours {
            self.fail(exchange, failure, now);
        }
    }

    fn pong(&mut self, exchange: ExchangeId, now: Instant) {
        if let Some(transmission) = self.transmissions.get_mut(exchange) {
            transmission.trace.first_ack = Some(now);
        }
        self.end(exchange);
        let Some(trace) = self.ended(exchange) else { return };
        let round_trip = trace.exact_round_trip();
        self.events.push_back(Event::Alive { exchange, round_trip });
    }

    pub(super) fn fail(&mut self, exchange: ExchangeId, failure: Failure, now: Instant) {
        let Some(transmission) = self.transmissions.get(exchange) else { return };
        match transmission.kind {
            Kind::Request | Kind::Ping => {
                self.end(exchange);
                let Some(trace) = self.ended(exchange).cloned().map(Box::new) else { return };
                self.events.push_back(Event::Failed { exchange, failure, trace });
            }
            Kind::Response(answered) => self.delivered(exchange, answered.request, Err(failure), now),
        }
    }

    fn delivered(
        &mut self,
        exchange: ExchangeId,
        request: ExchangeId,
        outcome: Result<(), Failure>,
        now: Instant,
    ) {
        let in_turn = self.leave_turn(exchange);
        self.end(exchange);
        let Some(trace) = self.ended(exchange) else { return };
        let (peer, copies) = (trace.peer, trace.copies.len() as u32);
        self.events.push_back(Event::Delivered { exchange: request, outcome, copies });
        if in_turn {
            self.end_turn(peer, now);
        }
    }

    /// Ends a message of ours: its timer stops, its Message ID leads nowhere, its slot is free. Says
    /// whether it was under way.
    pub(super) fn end(&mut self, exchange: ExchangeId) -> bool {
        if let Some(Transmission { trace, .. }) = self.transmissions.get(exchange) {
            self.by_message_id.remove(trace.peer, trace.message_id);
        }
        self.end_nameless(exchange)
    }

    /// The same for one that was taken out of the table of Message IDs.
    pub(super) fn end_nameless(&mut self, exchange: ExchangeId) -> bool {
        let Some(transmission) = self.transmissions.remove(exchange) else { return false };
        if let Some(timer) = transmission.timer.take() {
            self.timers.cancel(timer);
        }
        if transmission.preserved {
            self.preserved.end(transmission.trace.peer, &transmission.trace.token);
        }
        if let Some(buffer) = self.datagrams.get_mut(exchange.slot as usize)
            && buffer.capacity() > KEPT_BUFFER
        {
            buffer.shrink_to(KEPT_BUFFER);
        }
        true
    }

    /// How an exchange went that has just ended; until another begins.
    pub fn ended(&self, exchange: ExchangeId) -> Option<&Trace> {
        self.transmissions.removed(exchange).map(|transmission| &transmission.trace)
    }
}
