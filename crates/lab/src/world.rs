//! One run: the shipped proxy between clients and an origin, in virtual time.
//!
//! What is under way comes before timers of the same moment, as the daemon drains its sockets before it lets
//! timers fire.

use std::time::Duration;

use coapway_endpoint::{Local, Seed};
use coapway_message::{Code, Datagram};
use coapway_proxy::{Input, Listening, Output, Proxy, SocketRole};
use coapway_time::Instant;

use crate::clients::{Clients, address, client_at, exchange_by_token, exchange_of};
use crate::dice::{Dice, Use, mix};
use crate::exchange::Exchange;
use crate::figures::{Figures, Sample, Seen, Timeline};
use crate::origin::Origin;
use crate::path::{Direction, Label, duration};
use crate::policy::{LISTENER, ORIGIN, Policy};
use crate::post::{Post, SEPARATE, is_exchange, upstream_socket};
use crate::queue::{Carried, Event, NONE};
use crate::scenario::{Scenario, USUAL_REQUESTS};

/// So many wakes at one moment are a timer that never stops firing.
const MOST_WAKES: u32 = 100_000;
/// How often what is learned is noted in a run.
const SAMPLES: u32 = 240;
/// How long the last answers may take after the last client has given up.
const SETTLING: Duration = Duration::from_secs(60);

/// One run.
pub(crate) struct World<'s> {
    scenario: &'s Scenario,
    policy: &'s Policy,
    now: Instant,
    proxy: Proxy,
    wake: Option<Instant>,
    wakes: u32,
    /// Nobody asks after so many requests.
    most: u32,
    post: Post<'s>,
    origin: Origin<'s>,
    clients: Clients<'s>,
    pub(crate) exchanges: Vec<Exchange>,
    peak: Peak,
    timeline: Option<Timeline>,
}

/// The most copies towards the origin in one second.
#[derive(Debug, Default)]
struct Peak {
    second: u64,
    copies: u32,
    most: u32,
}

impl Peak {
    fn count(&mut self, now: Instant) {
        let second = now.as_micros() / 1_000_000;
        if second != self.second {
            (self.second, self.copies) = (second, 0);
        }
        self.copies += 1;
        self.most = self.most.max(self.copies);
    }
}

impl<'s> World<'s> {
    /// A world with everybody in it; `noted` asks for its [`Timeline`].
    pub(crate) fn new(scenario: &'s Scenario, policy: &'s Policy, seed: u64, noted: bool) -> Self {
        let most = scenario.requests.unwrap_or(USUAL_REQUESTS);
        Self::with_most(scenario, policy, seed, noted, most)
    }

    fn with_most(scenario: &'s Scenario, policy: &'s Policy, seed: u64, noted: bool, most: u32) -> Self {
        let carried = scenario.path.rtt.carried();
        let proxy_seed = Seed::from_number(Dice::new(seed, Use::Proxy, 0, 0).bits());
        let mut post = Post::new(scenario, seed);
        let mut clients = Clients::new(&scenario.clients, carried, scenario.duration, most, seed);
        clients.begin(&mut post);
        if noted {
            post.queue.push(Instant::ZERO, Event::Sample);
        }
        Self {
            scenario,
            policy,
            now: Instant::ZERO,
            proxy: Proxy::new(policy.parameters.clone(), Listening::default(), proxy_seed),
            wake: None,
            wakes: 0,
            most,
            post,
            origin: Origin::new(&scenario.origin, seed),
            clients,
            exchanges: Vec::new(),
            peak: Peak::default(),
            timeline: noted.then(Timeline::default),
        }
    }

    /// Lets everything happen.
    pub(crate) fn run(&mut self) {
        let asked = Instant::ZERO + self.scenario.duration;
        let limit = asked + self.scenario.clients.patience + SETTLING;
        while self.step(limit) && !self.is_over(asked) {}
    }

    /// Whether nobody asks or waits any more and nothing is on its way.
    fn is_over(&self, asked: Instant) -> bool {
        (self.now >= asked || self.has_all())
            && self.clients.open == 0
            && self.post.path.counted().iter().all(|counted| counted.under_way() == 0)
    }

    /// Whether nobody may ask any more.
    const fn has_all(&self) -> bool {
        self.exchanges.len() as u64 >= self.most as u64
    }

    /// What is to be told of the run.
    pub(crate) fn figures(self) -> Figures {
        let max_wait = self.policy.parameters.upstreams[self.policy.upstream.0 as usize].max_wait;
        let seen = Seen {
            scenario: self.scenario,
            exchanges: &self.exchanges,
            path: self.post.path.counted().map(|counted| *counted),
            peak: self.peak.most,
            max_wait,
            cut_short: self.scenario.requests.is_none() && self.has_all(),
        };
        Figures::new(&seen, self.timeline)
    }

    /// Lets the next thing happen, unless nothing is left or it lies after `limit`.
    pub(crate) fn step(&mut self, limit: Instant) -> bool {
        if let Some(event) = self.post.queue.pop_at_once() {
            self.happen(event);
            return true;
        }
        let (event, wake) = (self.post.queue.next(), self.wake);
        let Some(next) = self.next() else { return false };
        if next > limit {
            return false;
        }
        if next > self.now {
            (self.now, self.wakes) = (next, 0);
        }
        if event == Some(next) {
            if let Some((_, event)) = self.post.queue.pop() {
                self.happen(event);
            }
        } else if wake == Some(next) {
            self.wakes += 1;
            assert!(self.wakes < MOST_WAKES, "a timer of the proxy fires without end at {}", self.now);
            self.wake();
        } else {
            self.clients.lose_patience(&mut self.exchanges, &mut self.post, self.now);
        }
        true
    }

    /// When the next thing happens.
    fn next(&self) -> Option<Instant> {
        [self.post.queue.next(), self.wake, self.clients.next_patience()].into_iter().flatten().min()
    }

    fn wake(&mut self) {
        self.proxy.handle_input(Input::Wake, self.now);
        self.drain();
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        let (exchanges, post) = (&mut self.exchanges, &mut self.post);
        match event {
            Event::Ask { client } => self.clients.ask(client, exchanges, post, now),
            Event::ClientTimeout { exchange, copies } => {
                self.clients.handle_timeout(exchange, copies, exchanges, post, now);
            }
            Event::FromClient { client, buffer } => {
                post.access.arrived(Direction::Up, true);
                let bytes = post.buffers.take(buffer);
                let local = Local { socket: SocketRole::Listener(0).socket(), address: Some(LISTENER.ip()) };
                let remote = address(client);
                let input = Input::Datagram { local, remote, bytes: &bytes, truncated: false };
                self.proxy.handle_input(input, now);
                post.buffers.put_back(buffer, bytes);
                self.drain();
            }
            Event::ToClient { client, buffer } => {
                post.access.arrived(Direction::Down, true);
                let bytes = post.buffers.take(buffer);
                self.clients.handle_datagram(client, &bytes, exchanges, post, now);
                post.buffers.put_back(buffer, bytes);
            }
            Event::ToOrigin(carried) => self.origin_gets(carried),
            Event::FromOrigin(carried) => self.proxy_gets(carried),
            Event::Origin { slot, generation, what } => match self.origin.stalled_until(now) {
                Some(until) => post.queue.push(until, event),
                None => self.origin.handle_due(slot, generation, what, exchanges, post, now),
            },
            Event::Sample => self.sample(),
        }
    }

    fn origin_gets(&mut self, carried: Carried) {
        if let Some(until) = self.origin.stalled_until(self.now) {
            self.post.queue.push(until, Event::ToOrigin(carried));
            return;
        }
        self.post.path.arrived(Direction::Up, true);
        let bytes = self.post.buffers.take(carried.buffer);
        self.origin.handle_datagram(carried, &bytes, &mut self.exchanges, &mut self.post, self.now);
        self.post.buffers.put_back(carried.buffer, bytes);
    }

    fn proxy_gets(&mut self, carried: Carried) {
        let now = self.now;
        let taken = self.post.nat.lets_in(carried.hop.socket.into(), carried.hop.binding, now);
        self.post.path.arrived(Direction::Down, taken);
        if !taken {
            self.post.buffers.drop(carried.buffer);
            return;
        }
        if is_exchange(carried.exchange) {
            let exchange = &mut self.exchanges[carried.exchange as usize];
            exchange.first_heard = exchange.first_heard.min(carried.copy);
            if let Some(timeline) = self.timeline.as_mut().filter(|_| carried.copy == 0) {
                timeline.heard(exchange, now);
            }
        }
        let bytes = self.post.buffers.take(carried.buffer);
        let local = Local { socket: upstream_socket(carried.hop.socket), address: None };
        let input = Input::Datagram { local, remote: ORIGIN, bytes: &bytes, truncated: false };
        self.proxy.handle_input(input, now);
        self.post.buffers.put_back(carried.buffer, bytes);
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    let (socket, remote) = (transmit.peer.local.socket, transmit.peer.remote);
                    let buffer = self.post.buffers.fill(|buffer| buffer.extend_from_slice(transmit.datagram));
                    match SocketRole::of(socket) {
                        SocketRole::Listener(_) => self.client_gets(client_at(&remote), buffer),
                        SocketRole::Upstream { number, .. } => self.upstream(number, buffer),
                    }
                }
                // The origin has an address, and nobody listens.
                Output::LookUp { .. } | Output::Event(_) | Output::Records(_) => {}
                Output::Wait { until } => {
                    self.wake = until.map(|until| until.max(self.now));
                    return;
                }
            }
        }
    }

    fn client_gets(&mut self, client: u32, buffer: u32) {
        let bytes = self.post.buffers.take(buffer);
        let token =
            Datagram::parse(&bytes).ok().map(|message| message.token).filter(|token| token.len() == 4);
        let exchange = token.and_then(|token| exchange_by_token(token, &mut self.exchanges));
        let of = exchange.map(|exchange| {
            exchange.to_client += 1;
            (&*exchange, exchange.to_client)
        });
        self.post.buffers.restore(buffer, bytes);
        self.post.client_gets(client, of, buffer, self.now);
    }

    /// A datagram leaves the proxy for the origin.
    fn upstream(&mut self, socket: u32, buffer: u32) {
        let now = self.now;
        let bytes = self.post.buffers.take(buffer);
        let message = Datagram::parse(&bytes).ok();
        let request = message.filter(|message| message.content.code != Code::EMPTY);
        let id = request.and_then(|message| exchange_of(&message.content));
        let separate = message.and_then(|message| self.origin.separate_of(message.message_id));
        self.post.buffers.restore(buffer, bytes);
        let (label, of) = match id.and_then(|id| Some((id, self.exchanges.get_mut(id as usize)?))) {
            Some((id, exchange)) => {
                let copy = exchange.copies;
                if copy == 0 {
                    exchange.sent = now;
                }
                exchange.copies += 1;
                self.peak.count(now);
                (Label { errand: exchange.errand, copy: copy.into(), level: exchange.level }, (id, copy))
            }
            None => {
                let mut label = self.post.errand();
                // The acknowledgement of a separate response belongs to its exchange.
                if let Some((exchange, copy)) = separate
                    && let Some(exchange) = self.exchanges.get(exchange as usize)
                {
                    let errand = mix(exchange.errand, SEPARATE);
                    label = Label { errand, copy: copy.into(), level: exchange.level };
                }
                (label, (NONE, 0))
            }
        };
        self.post.up(socket, label, of, buffer, now);
    }

    fn sample(&mut self) {
        let every = self.scenario.duration / SAMPLES;
        if let (Some(timeline), Some(learned)) =
            (&mut self.timeline, self.proxy.learned(ORIGIN, self.policy.upstream))
        {
            timeline.samples.push(Sample {
                at: crate::path::seconds(self.now),
                timeout: learned.timeout.as_secs_f64(),
                window: learned.window,
                queued: learned.queued as u32,
            });
        }
        let next = self.now + every.max(duration(0.001));
        if next <= Instant::ZERO + self.scenario.duration {
            self.post.queue.push(next, Event::Sample);
        }
    }

    /// What was counted between proxy and origin, up and down.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> [crate::path::Conservation; 2] {
        self.post.path.counted().map(|counted| *counted)
    }
}

#[cfg(test)]
mod tests;
