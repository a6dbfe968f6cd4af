//! One end of a hop with all its peers.

use std::collections::VecDeque;

use coapway_message::{Code, Datagram, ExchangeId, Failure, Malformed, MessageType, datagram};
use coapway_time::{Instant, Timers};
use hashbrown::HashMap;

use super::duplicates::Duplicates;
use super::message_id::MessageIds;
use super::outbox::{Outbox, Transmit};
use super::pending::{Deadline, Pending};
use super::retransmission::{Kind, Transmission};
use super::slots::Slots;
use crate::event::{Counters, Event, Gate, Received};
use crate::matching::Tokens;
use crate::parameters::EndpointParameters;
use crate::peer::Peer;
use crate::trace::Copy;

/// Where an endpoint's chance comes from: fixed in a simulation, from the operating system in
/// production.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub [u8; 32]);

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed")
    }
}

impl Seed {
    /// A seed for simulations, spread out of one number.
    pub fn from_number(number: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(number);
        let mut bytes = [0; 32];
        random.fill(&mut bytes);
        Self(bytes)
    }

    /// A seed of its own for part `number` of whatever this seeds.
    pub fn part(&self, number: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(self.word(0) ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut bytes = self.0;
        bytes.iter_mut().for_each(|byte| *byte ^= random.u8(..));
        Self(bytes)
    }

    /// Eight of its bytes as a number, for a generator or a hasher.
    pub fn word(&self, index: usize) -> u64 {
        self.0
            .chunks_exact(8)
            .nth(index % 4)
            .map_or(0, |bytes| bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    }

    /// A keyed hasher.
    pub fn hasher(&self) -> ahash::RandomState {
        ahash::RandomState::with_seeds(self.word(0), self.word(1), self.word(2), self.word(3))
    }
}

/// One end of a hop: requests of peers in, requests of ours out, over datagrams.
///
/// Each method returns at once. After any of them, drain [`Endpoint::poll_event`] and
/// [`Endpoint::poll_transmit`], and wake it at [`Endpoint::poll_timeout`].
#[derive(Debug)]
pub struct Endpoint {
    pub(super) parameters: EndpointParameters,
    pub(super) tokens: Tokens,
    pub(super) message_ids: MessageIds,
    pub(super) duplicates: Duplicates,
    /// Requests of peers that are not answered yet.
    pub(super) pending: Slots<Pending>,
    /// Messages of ours under way.
    pub(super) transmissions: Slots<Transmission>,
    pub(super) by_message_id: HashMap<(Peer, u16), ExchangeId, ahash::RandomState>,
    /// The datagram of each transmission, by slot; the buffers stay with the slot.
    pub(super) datagrams: Vec<Vec<u8>>,
    pub(super) timers: Timers<Deadline>,
    pub(super) outbox: Outbox,
    pub(super) events: VecDeque<Event>,
    pub(super) random: fastrand::Rng,
    pub(super) counters: Counters,
}

impl Endpoint {
    /// An endpoint without peers.
    pub fn new(parameters: EndpointParameters, seed: Seed) -> Self {
        let peer = parameters.peer;
        let mut key = [0; 16];
        key.copy_from_slice(&seed.0[..16]);
        Self {
            parameters,
            tokens: Tokens::new(key),
            message_ids: MessageIds::new(fastrand::Rng::with_seed(seed.word(2)), seed.part(1).hasher()),
            duplicates: Duplicates::new(
                parameters.duplicates.memory,
                peer.exchange_lifetime(),
                peer.non_lifetime(),
                seed.part(2).hasher(),
            ),
            pending: Slots::new(),
            transmissions: Slots::new(),
            by_message_id: HashMap::with_hasher(seed.part(3).hasher()),
            datagrams: Vec::new(),
            timers: Timers::new(),
            outbox: Outbox::default(),
            events: VecDeque::new(),
            random: fastrand::Rng::with_seed(seed.word(3)),
            counters: Counters::default(),
        }
    }

    /// Takes over changed parameters; what is under way keeps its own.
    pub const fn set_parameters(&mut self, parameters: EndpointParameters) {
        self.parameters = parameters;
    }

    /// What was counted since the start.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Requests of peers that are not answered yet.
    pub fn pending_requests(&self) -> usize {
        self.pending.len()
    }

    /// Messages of ours under way.
    pub fn outstanding(&self) -> usize {
        self.transmissions.len()
    }

    /// Messages of peers that are remembered.
    pub fn remembered(&self) -> usize {
        self.duplicates.len()
    }

    /// Peers for which Message IDs are kept.
    pub fn peers(&self) -> usize {
        self.message_ids.len()
    }

    /// A datagram came from `peer`.
    ///
    /// `gate` is asked only about a request that would be new, before anything is remembered. Repeats
    /// are answered from memory.
    /// Shape:  what is returned borrows from `bytes`; everything else is told by events.
    /// Source: RFC 7252 §4.2, §4.3, §5.2, §5.3.2.
    pub fn handle_datagram<'d>(
        &mut self,
        peer: Peer,
        bytes: &'d [u8],
        now: Instant,
        gate: impl FnOnce() -> Gate,
    ) -> Received<'d> {
        let datagram = match Datagram::parse(bytes) {
            Ok(datagram) => datagram,
            Err(malformed) => {
                self.handle_malformed(peer, &malformed, now);
                return Received::Nothing;
            }
        };
        let Datagram { message_type, message_id, content, .. } = datagram;
        match (message_type, content.code.class()) {
            (MessageType::Acknowledgement, 0) => self.handle_acknowledgement(peer, message_id, now),
            (MessageType::Reset, _) if content.code == Code::EMPTY => {
                self.handle_reset(peer, message_id, now);
            }
            (MessageType::Confirmable, _) if content.code == Code::EMPTY => {
                self.outbox.empty(peer, MessageType::Reset, message_id);
            }
            (MessageType::Confirmable | MessageType::NonConfirmable, 0) if content.code.is_request() => {
                return self.handle_request(peer, bytes, &datagram, now, gate);
            }
            (
                MessageType::Confirmable | MessageType::NonConfirmable | MessageType::Acknowledgement,
                2..=5,
            ) => {
                return self.handle_response(peer, &datagram, now);
            }
            (MessageType::Confirmable, _) => {
                self.counters.malformed += 1;
                self.outbox.empty(peer, MessageType::Reset, message_id);
            }
            (MessageType::NonConfirmable | MessageType::Acknowledgement | MessageType::Reset, _) => {
                self.counters.malformed += 1;
            }
        }
        Received::Nothing
    }

    fn handle_malformed(&mut self, peer: Peer, malformed: &Malformed<'_>, now: Instant) {
        let &Malformed::Format { message_type, message_id, code, token, .. } = malformed else {
            self.counters.ignored += 1;
            return;
        };
        self.counters.malformed += 1;
        if message_type == MessageType::Confirmable {
            self.outbox.empty(peer, MessageType::Reset, message_id);
        }
        // A response whose header and token are ours but whose rest is broken ends the exchange
        // (RFC 7252 §5.7.1): more of the kind would follow.
        if matches!(code.class(), 2..=5)
            && let Some(exchange) = token.and_then(|token| self.live_request(peer, token))
            && self.transmissions.get(exchange).is_some_and(|transmission| {
                message_type != MessageType::Acknowledgement || transmission.trace.message_id == message_id
            })
        {
            self.fail(exchange, Failure::Unusable, now);
        }
    }

    /// An ICMP error came back for a datagram to `peer`; `quoted` is the start of that datagram.
    ///
    /// Only a quotation with the Message ID and, for a request, the token of a message under way
    /// counts: ICMP is not authenticated (RFC 7252 §4.2, RFC 8085 §5.2).
    pub fn handle_unreachable(&mut self, peer: Peer, quoted: &[u8], failure: Failure, now: Instant) {
        let (message_id, token) = match Datagram::parse(quoted) {
            Ok(datagram) => (datagram.message_id, Some(datagram.token)),
            Err(Malformed::Format { message_id, token, .. }) => (message_id, token),
            Err(Malformed::Ignored) => return,
        };
        let Some(&exchange) = self.by_message_id.get(&(peer, message_id)) else { return };
        let Some(transmission) = self.transmissions.get(exchange) else { return };
        let ours = match transmission.kind {
            Kind::Request => token == Some(transmission.trace.token.as_bytes()),
            Kind::Response(_) => true,
            Kind::Ping => quoted == datagram::empty(MessageType::Confirmable, message_id),
        };
        if ours {
            self.fail(exchange, failure, now);
        }
    }

    /// Lets everything happen whose time has come at `now`.
    ///
    /// After a late wake that may be a copy of every message under way. They leave in portions, so
    /// that they never stand in memory all at once: [`Endpoint::poll_timeout`] is over until all left.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.outbox.len() + self.events.len() < AT_ONCE
            && let Some(deadline) = self.timers.expire(now)
        {
            match deadline {
                Deadline::Acknowledge(exchange) => self.acknowledge_early(exchange),
                Deadline::Transmission(exchange) => self.wait_is_over(exchange, now),
            }
        }
    }

    /// When to call [`Endpoint::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next_deadline()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether a datagram is to be sent.
    pub const fn has_transmit(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        self.outbox.poll()
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
        self.by_message_id.insert((peer, message_id), exchange);
        if let Some(bytes) = self.datagrams.get(exchange.slot as usize) {
            transmission.trace.bytes = bytes.len() as u32;
            self.outbox.push(peer, bytes);
        }
    }

    /// The wait after a copy is over: another copy, or the end.
    fn wait_is_over(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(transmission) = self.transmissions.get_mut(exchange) else { return };
        transmission.timer = None;
        let schedule = transmission.schedule;
        if now >= schedule.deadline {
            self.fail(exchange, Failure::TimedOut, now);
            return;
        }
        let mut wake = schedule.deadline;
        if !transmission.acknowledged && transmission.trace.confirmable {
            let copies = transmission.trace.copies.len() as u32;
            let ran_out = transmission.trace.copies.last().map_or(schedule.timeout, |copy| copy.timeout);
            let first_sent = transmission.trace.copies.first().map_or(now, |copy| copy.sent);
            let may_leave = copies <= schedule.max_retransmit
                && now <= first_sent + schedule.latest_offset()
                && now <= schedule.last_copy_before;
            if may_leave {
                let timeout = schedule.wait(transmission.first_wait, copies + 1, &mut self.random);
                transmission.trace.copies.push(Copy { sent: now, timeout });
                wake = wake.min(now + timeout);
                self.counters.retransmissions += 1;
                if let Some(bytes) = self.datagrams.get(exchange.slot as usize) {
                    self.outbox.push(transmission.trace.peer, bytes);
                }
            }
            if transmission.kind == Kind::Request {
                let copies = transmission.trace.copies.len() as u32;
                self.events.push_back(Event::Retransmitted { exchange, copies, timeout: ran_out });
            }
        }
        transmission.timer = Some(self.timers.insert(wake, Deadline::Transmission(exchange)));
    }

    fn handle_acknowledgement(&mut self, peer: Peer, message_id: u16, now: Instant) {
        let Some(&exchange) = self.by_message_id.get(&(peer, message_id)) else {
            self.counters.unexpected += 1;
            return;
        };
        self.acknowledged(exchange, now);
    }

    /// An Acknowledgement that carries no response of interest.
    pub(super) fn acknowledged(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(transmission) = self.transmissions.get_mut(exchange) else { return };
        match transmission.kind {
            Kind::Request => {
                transmission.trace.acks += 1;
                if transmission.acknowledged || !transmission.trace.confirmable {
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
            Kind::Response(request) => self.delivered(exchange, request, Ok(())),
            Kind::Ping => self.pong(exchange, now),
        }
    }

    fn handle_reset(&mut self, peer: Peer, message_id: u16, now: Instant) {
        let Some(&exchange) = self.by_message_id.get(&(peer, message_id)) else {
            self.counters.unexpected += 1;
            return;
        };
        match self.transmissions.get(exchange).map(|transmission| transmission.kind) {
            Some(Kind::Ping) => self.pong(exchange, now),
            Some(Kind::Request | Kind::Response(_)) => self.fail(exchange, Failure::Reset, now),
            None => {}
        }
    }

    fn pong(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(mut transmission) = self.take_transmission(exchange) else { return };
        transmission.trace.first_ack = Some(now);
        let round_trip = transmission.trace.exact_round_trip();
        self.events.push_back(Event::Alive { exchange, round_trip });
    }

    pub(super) fn fail(&mut self, exchange: ExchangeId, failure: Failure, _now: Instant) {
        let Some(transmission) = self.transmissions.get(exchange) else { return };
        match transmission.kind {
            Kind::Request | Kind::Ping => {
                let Some(Transmission { trace, .. }) = self.take_transmission(exchange) else { return };
                self.events.push_back(Event::Failed { exchange, failure, trace });
            }
            Kind::Response(request) => self.delivered(exchange, request, Err(failure)),
        }
    }

    fn delivered(&mut self, exchange: ExchangeId, request: ExchangeId, outcome: Result<(), Failure>) {
        let Some(transmission) = self.take_transmission(exchange) else { return };
        let copies = transmission.trace.copies.len() as u32;
        self.events.push_back(Event::Delivered { exchange: request, outcome, copies });
    }

    /// Ends a message of ours: its timer stops, its Message ID leads nowhere, its slot is free.
    pub(super) fn take_transmission(&mut self, exchange: ExchangeId) -> Option<Transmission> {
        let mut transmission = self.transmissions.remove(exchange)?;
        if let Some(timer) = transmission.timer.take() {
            self.timers.cancel(timer);
        }
        self.by_message_id.remove(&(transmission.trace.peer, transmission.trace.message_id));
        if let Some(buffer) = self.datagrams.get_mut(exchange.slot as usize) {
            buffer.clear();
            buffer.shrink_to(KEPT_BUFFER);
        }
        Some(transmission)
    }

    /// Panics when the tables contradict each other. For simulations, after each step.
    pub fn check_invariants(&self) {
        assert_eq!(self.by_message_id.len(), self.transmissions.len(), "each message under way has its ID");
        assert!(
            self.timers.len() <= self.transmissions.len() + self.pending.len(),
            "no timer without a message"
        );
    }
}

/// So many datagrams and events one wake brings.
const AT_ONCE: usize = 256;

/// A slot keeps this much of its buffer for the next message.
const KEPT_BUFFER: usize = 256;
