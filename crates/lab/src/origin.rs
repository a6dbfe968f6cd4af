//! Who answers: it remembers Message IDs, takes its time, has room for so many, and counts what it executes.

mod work;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use coapway_endpoint::TransmissionParameters;
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, Options, OptionsWriter, datagram};
use coapway_time::Instant;

use crate::dice::{Dice, Use, mix};
use crate::exchange::Exchange;
use crate::path::{Label, duration, seconds};
use crate::post::{Post, SEPARATE, is_exchange};
use crate::queue::{BufferId, Carried, Due, Event, Hop, NONE};
use crate::scenario::{OriginLaw, WhenFull};

use work::{State, Work, empty_ack};

/// The origin of a world.
#[derive(Debug)]
pub(crate) struct Origin<'s> {
    law: &'s OriginLaw,
    seed: u64,
    lifetime: Duration,
    works: Vec<Work>,
    free: Vec<u32>,
    /// Requests that are remembered, by where they came from and their Message ID.
    remembered: HashMap<u64, u32, ahash::RandomState>,
    /// In order of time.
    forgotten_at: VecDeque<(Instant, u64, u32)>,
    /// Separate responses that nobody acknowledged, by Message ID.
    separate: HashMap<u16, u32, ahash::RandomState>,
    message_id: u16,
    /// When those that are being served are done, in order.
    served: VecDeque<Instant>,
    answer: Vec<u8>,
    hint: Vec<u8>,
    /// Message IDs that led to an execution.
    pub(crate) accepted: u64,
}

impl<'s> Origin<'s> {
    pub(crate) fn new(law: &'s OriginLaw, seed: u64) -> Self {
        let hasher = || ahash::RandomState::with_seeds(seed, 1, 2, 3);
        let mut hint = Vec::new();
        let mut options = OptionsWriter::new(&mut hint);
        options.push_uint(OptionNumber::MAX_AGE, law.max_age);
        options.finish();
        Self {
            law,
            seed,
            lifetime: TransmissionParameters::default().exchange_lifetime(),
            works: Vec::new(),
            free: Vec::new(),
            remembered: HashMap::with_hasher(hasher()),
            forgotten_at: VecDeque::new(),
            separate: HashMap::with_hasher(hasher()),
            message_id: 0,
            served: VecDeque::new(),
            answer: vec![b'a'; law.payload],
            hint,
            accepted: 0,
        }
    }

    /// When it does something again, if it does nothing now.
    pub(crate) fn stalled_until(&self, now: Instant) -> Option<Instant> {
        let at = seconds(now);
        let until = self.law.stalls.iter().filter_map(|stall| stall.around(at)).map(|(_, until)| until);
        until
            .reduce(f64::max)
            .map(|until| (Instant::ZERO + duration(until)).max(now + Duration::from_micros(1)))
    }

    /// A datagram comes.
    pub(crate) fn handle_datagram(
        &mut self,
        carried: Carried,
        bytes: &[u8],
        exchanges: &mut [Exchange],
        post: &mut Post<'_>,
        now: Instant,
    ) {
        self.forget(now);
        let Ok(message) = Datagram::parse(bytes) else { return };
        match message.message_type {
            MessageType::Acknowledgement | MessageType::Reset => {
                self.separate.remove(&message.message_id);
            }
            MessageType::Confirmable if message.content.code == Code::EMPTY => {
                let reset = datagram::empty(MessageType::Reset, message.message_id);
                let buffer = post.buffers.fill(|buffer| buffer.extend_from_slice(&reset));
                let label = post.errand();
                post.down(carried.hop, label, (NONE, 0), buffer, now);
            }
            MessageType::Confirmable | MessageType::NonConfirmable => {
                if is_exchange(carried.exchange) && message.content.code.is_request() {
                    self.handle_request(carried, &message, exchanges, post, now);
                }
            }
        }
    }

    /// The exchange and the copy of the separate response with this Message ID, while it is unacknowledged.
    pub(crate) fn separate_of(&self, message_id: u16) -> Option<(u32, u8)> {
        let slot = *self.separate.get(&message_id)?;
        let work = self.works.get(slot as usize)?;
        Some((work.exchange, work.separate_copies))
    }

    fn forget(&mut self, now: Instant) {
        while let Some(&(at, key, slot)) = self.forgotten_at.front().filter(|(at, _, _)| *at <= now) {
            debug_assert!(at <= now, "in order");
            self.forgotten_at.pop_front();
            if self.remembered.get(&key) == Some(&slot) {
                self.remembered.remove(&key);
            }
            let work = &mut self.works[slot as usize];
            work.generation += 1;
            if let State::Separate(message_id) = work.state
                && self.separate.get(&message_id) == Some(&slot)
            {
                self.separate.remove(&message_id);
            }
            self.free.push(slot);
        }
    }

    fn handle_request(
        &mut self,
        carried: Carried,
        message: &Datagram<'_>,
        exchanges: &mut [Exchange],
        post: &mut Post<'_>,
        now: Instant,
    ) {
        let Hop { socket, binding } = carried.hop;
        let key = u64::from(binding) << 32 | u64::from(socket) << 16 | u64::from(message.message_id);
        if let Some(&slot) = self.remembered.get(&key).filter(|_| self.law.deduplicates) {
            self.repeat(slot, carried, exchanges, post, now);
            return;
        }
        let exchange = &mut exchanges[carried.exchange as usize];
        let slot = self.take(carried, message);
        self.forgotten_at.push_back((now + self.lifetime, key, slot));
        let begins = self.served.back().map_or(now, |&over| over.max(now));
        if self.law.service.is_some() && self.is_full(now) {
            self.refuse(slot, exchange, post, now);
            return;
        }
        self.remembered.insert(key, slot);
        self.accepted += 1;
        exchange.executions += 1;
        let mut dice = Dice::new(self.seed, Use::Origin, exchange.errand, 0);
        let at = seconds(now);
        let mut over = begins;
        if let Some(service) = &self.law.service {
            over = begins + duration(service.draw(&mut dice, exchange.level, at));
            self.served.push_back(over);
        } else {
            over = over.max(now);
        }
        over += duration(self.law.think.draw(&mut dice, exchange.level, at));
        let generation = self.works[slot as usize].generation;
        let due = |what| Event::Origin { slot, generation, what };
        if over <= now {
            self.respond(slot, exchanges, post, now);
            return;
        }
        if let Some(after) =
            self.law.empty_ack_after.filter(|_| message.message_type == MessageType::Confirmable)
            && now + after < over
        {
            post.queue.push(now + after, due(Due::EmptyAck));
        }
        post.queue.push(over, due(Due::Response));
    }

    /// Whether those that are served and wait leave no room.
    fn is_full(&mut self, now: Instant) -> bool {
        while self.served.front().is_some_and(|&over| over <= now) {
            self.served.pop_front();
        }
        self.served.len() > self.law.queue as usize
    }

    fn take(&mut self, carried: Carried, message: &Datagram<'_>) -> u32 {
        let slot = self.free.pop().unwrap_or(self.works.len() as u32);
        let generation = self.works.get(slot as usize).map_or(0, |work| work.generation);
        let work = Work::new(generation, carried, message);
        match self.works.get_mut(slot as usize) {
            Some(place) => *place = work,
            None => self.works.push(work),
        }
        slot
    }

    /// A request that was seen before gets what the first one got, if that got anything.
    fn repeat(
        &mut self,
        slot: u32,
        carried: Carried,
        exchanges: &[Exchange],
        post: &mut Post<'_>,
        now: Instant,
    ) {
        let work = self.works[slot as usize].clone();
        if !work.confirmable {
            return;
        }
        let buffer = match work.state {
            State::Open => return,
            State::Acknowledged | State::Separate(_) => empty_ack(&work, post),
            State::Piggybacked => self.piggybacked(&work, post),
        };
        let exchange = &exchanges[carried.exchange as usize];
        let twice = if carried.again { 1 << 15 } else { 0 };
        let label =
            Label { errand: exchange.errand, copy: u32::from(carried.copy) | twice, level: exchange.level };
        post.down(carried.hop, label, (carried.exchange, carried.copy), buffer, now);
    }

    fn refuse(&mut self, slot: u32, exchange: &Exchange, post: &mut Post<'_>, now: Instant) {
        let code = match self.law.when_full {
            WhenFull::Silent => return,
            WhenFull::Unavailable => Code::SERVICE_UNAVAILABLE,
            WhenFull::TooManyRequests => Code::TOO_MANY_REQUESTS,
        };
        let work = &self.works[slot as usize];
        let Ok((options, _)) = Options::parse(&self.hint) else { return };
        let content = Content { code, options, payload: &[] };
        let (message_type, message_id) = match work.confirmable {
            true => (MessageType::Acknowledgement, work.message_id),
            false => (MessageType::NonConfirmable, self.message_id),
        };
        self.message_id = self.message_id.wrapping_add(u16::from(!work.confirmable));
        let buffer = post.buffers.fill(|buffer| {
            datagram::encode(buffer, message_type, message_id, work.token(), &content);
        });
        let label = work.label(exchange);
        post.down(work.hop, label, (work.exchange, work.copy), buffer, now);
    }

    /// Something is due.
    pub(crate) fn handle_due(
        &mut self,
        slot: u32,
        generation: u32,
        what: Due,
        exchanges: &[Exchange],
        post: &mut Post<'_>,
        now: Instant,
    ) {
        let Some(work) = self.works.get_mut(slot as usize).filter(|work| work.generation == generation)
        else {
            return;
        };
        match what {
            Due::EmptyAck => {
                if work.state == State::Open {
                    work.state = State::Acknowledged;
                    let work = work.clone();
                    let buffer = empty_ack(&work, post);
                    let exchange = &exchanges[work.exchange as usize];
                    let label = work.label(exchange);
                    post.down(work.hop, label, (work.exchange, work.copy), buffer, now);
                }
            }
            Due::Response => self.respond(slot, exchanges, post, now),
            Due::Repeat(copies) => {
                if let State::Separate(message_id) = work.state
                    && self.separate.get(&message_id) == Some(&slot)
                {
                    self.send_separate(slot, message_id, copies, exchanges, post, now);
                }
            }
        }
    }

    fn respond(&mut self, slot: u32, exchanges: &[Exchange], post: &mut Post<'_>, now: Instant) {
        let work = &mut self.works[slot as usize];
        if work.state == State::Acknowledged {
            self.message_id = self.message_id.wrapping_add(1);
            let message_id = self.message_id;
            work.state = State::Separate(message_id);
            self.separate.insert(message_id, slot);
            self.send_separate(slot, message_id, 0, exchanges, post, now);
            return;
        }
        work.state = State::Piggybacked;
        let work = work.clone();
        let exchange = &exchanges[work.exchange as usize];
        let buffer = self.piggybacked(&work, post);
        let label = work.label(exchange);
        post.down(work.hop, label, (work.exchange, work.copy), buffer, now);
    }

    /// The response in an Acknowledgement, or Non-confirmable to a Non-confirmable request.
    fn piggybacked(&mut self, work: &Work, post: &mut Post<'_>) -> BufferId {
        let (message_type, message_id) = match work.confirmable {
            true => (MessageType::Acknowledgement, work.message_id),
            false => {
                self.message_id = self.message_id.wrapping_add(1);
                (MessageType::NonConfirmable, self.message_id)
            }
        };
        let content = Content { code: work.code, options: Options::NONE, payload: &self.answer };
        post.buffers.fill(|buffer| datagram::encode(buffer, message_type, message_id, work.token(), &content))
    }

    fn send_separate(
        &mut self,
        slot: u32,
        message_id: u16,
        copies: u8,
        exchanges: &[Exchange],
        post: &mut Post<'_>,
        now: Instant,
    ) {
        let work = &mut self.works[slot as usize];
        work.separate_copies = copies;
        let exchange = &exchanges[work.exchange as usize];
        if u32::from(copies) > TransmissionParameters::default().max_retransmit {
            self.separate.remove(&message_id);
            return;
        }
        let content = Content { code: work.code, options: Options::NONE, payload: &self.answer };
        let buffer = post.buffers.fill(|buffer| {
            datagram::encode(buffer, MessageType::Confirmable, message_id, work.token(), &content);
        });
        let errand = mix(exchange.errand, SEPARATE);
        let label = Label { errand, copy: copies.into(), level: exchange.level };
        post.down(work.hop, label, (work.exchange, work.copy), buffer, now);
        let timeout = Dice::new(self.seed, Use::OriginTimeout, exchange.errand, 0).between(2.0, 3.0);
        let timeout = duration(timeout * f64::from(1_u32 << copies));
        let what = Due::Repeat(copies + 1);
        post.queue.push(now + timeout, Event::Origin { slot, generation: work.generation, what });
    }
}
