//! The twin of the daemon's worker: the same proxy, driven by the same three calls, behind a virtual
//! clock.
//!
//! One queue holds what is under way (datagrams and look-ups) by time and order of entry; timers are
//! asked for theirs. Of equal times what is under way comes first, as the worker drains its sockets
//! before it lets timers fire. After each step the proxy's own invariants and the [`Checks`] run, unless
//! the world goes on for ever and is not watched.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::Seed;
use coapway_message::Failure;
use coapway_proxy::{Event, Input, Listening, Occupancy, Output, Parameters, Proxy, Sampling, SocketRole};
use coapway_time::Instant;

use crate::actor::Actor;
use crate::checks::{Again, Checks, Left, Rules, Violation};
use crate::journal::{DatagramId, Journal, Sent};
use crate::network::{HostId, Link, Network, stream};

use crate::sockets::{GROUP, LISTENER, address, local, upstream_address};

/// So many wakes at one instant are a timer that never stops firing.
const MOST_WAKES: u32 = 10_000;
/// The journal takes everything down.
const LISTENING: Listening = Listening { events: true, records: Some(Sampling::ALL), late: false };

/// What a world is made of, beside its actors.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The proxy's settings.
    pub parameters: Parameters,
    /// Names that can be looked up, and what is found, in order of time. Others are unknown.
    pub names: BTreeMap<String, Vec<Found>>,
    /// Each link in each direction, unless said otherwise.
    pub link: Link,
    /// The proxy wakes up to this much late.
    pub lateness: Duration,
    /// All chance comes from here.
    pub seed: u64,
}

/// What a look-up finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// From when on.
    pub since: Instant,
    /// None, when it fails or the name is unknown.
    pub addresses: Vec<IpAddr>,
    /// How long it takes.
    pub delay: Duration,
}

/// The virtual world.
#[derive(Debug)]
pub struct World {
    now: Instant,
    seed: u64,
    queue: BTreeMap<(Instant, u64), Happening>,
    entered: u64,
    network: Network,
    hosts: BTreeMap<IpAddr, HostId>,
    proxy: Worker,
    actors: Vec<Actor>,
    names: BTreeMap<String, Vec<Found>>,
    journal: Journal,
    /// Nothing, when nobody watches.
    checks: Option<Checks>,
    wakes: u32,
}

#[derive(Debug)]
enum Happening {
    Arrival(DatagramId),
    Resolved { lookup: u64, addresses: Vec<IpAddr> },
}

/// The proxy and what a worker keeps beside it.
#[derive(Debug)]
struct Worker {
    proxy: Proxy,
    host: HostId,
    wake: Option<Instant>,
    busy_until: Instant,
    lateness: Duration,
    random: fastrand::Rng,
}

impl World {
    /// A world that may go on for ever: nobody watches it, since what watches remembers everything.
    /// Whoever runs it calls [`World::forget`] now and then.
    pub fn unwatched(plan: Plan) -> Self {
        Self { checks: None, ..Self::new(plan) }
    }

    /// A world with a proxy and nobody else.
    pub fn new(plan: Plan) -> Self {
        let Plan { parameters, names, link, lateness, seed } = plan;
        let mut network = Network::new(link, stream(seed, &["network"]));
        let host = network.add_host("proxy");
        let checks = Some(Checks::new(Rules::new(&parameters, lateness)));
        let mut journal = Journal::default();
        journal.set_listener(LISTENER);
        let most = parameters.upstreams.iter().map(|upstream| upstream.source_ports).max().unwrap_or(1);
        for number in 0..most {
            for ipv6 in [false, true] {
                journal.name(upstream_address(ipv6, number), &format!("proxy.{number}"));
            }
        }
        let proxy_seed = Seed::from_number(stream(seed, &["proxy"]));
        let proxy = Worker {
            proxy: Proxy::new(parameters, LISTENING, proxy_seed),
            host,
            wake: None,
            busy_until: Instant::ZERO,
            lateness,
            random: fastrand::Rng::with_seed(stream(seed, &["lateness"])),
        };
        let hosts =
            [LISTENER.ip(), GROUP.ip(), upstream_address(false, 0).ip(), upstream_address(true, 0).ip()]
                .map(|address| (address, host));
        Self {
            now: Instant::ZERO,
            seed,
            queue: BTreeMap::new(),
            entered: 0,
            network,
            hosts: hosts.into(),
            proxy,
            actors: Vec::new(),
            names,
            journal,
            checks,
            wakes: 0,
        }
    }

    /// The seed all chance comes from.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Puts somebody into the world, with a host of their own. Those with one IP address share the
    /// links of the first.
    pub fn add(&mut self, actor: Actor) -> HostId {
        let host = self.network.add_host(actor.name());
        for (place, address) in actor.addresses().into_iter().enumerate() {
            self.hosts.entry(address.ip()).or_insert(host);
            let name = actor.name();
            self.journal.name(address, &if place == 0 { name.to_owned() } else { format!("{name}+{place}") });
        }
        self.actors.push(actor);
        host
    }

    /// Gives a puppet another address.
    pub fn move_puppet(&mut self, index: usize, address: SocketAddr) {
        let before = self.actors[index].address();
        if let Actor::Puppet(puppet) = &mut self.actors[index] {
            puppet.move_to(address);
            let host = self.hosts[&before.ip()];
            self.hosts.insert(address.ip(), host);
            self.journal.name(address, &format!("{}+", self.actors[index].name()));
            self.journal.noted(format!("{} moves to {address}", self.actors[index].name()), self.now);
        }
    }

    /// The hosts and links.
    pub const fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }

    /// The proxy's host.
    pub const fn proxy_host(&self) -> HostId {
        self.proxy.host
    }

    /// Who is there beside the proxy.
    pub fn actors(&self) -> &[Actor] {
        &self.actors
    }

    /// One of them.
    pub fn actor_mut(&mut self, index: usize) -> &mut Actor {
        &mut self.actors[index]
    }

    /// What the proxy told, and when.
    pub fn events(&self) -> &[(Instant, Event)] {
        self.journal.events()
    }

    /// All that happened.
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Forgets what happened so far, but for what is under way.
    pub fn forget(&mut self) {
        let under_way = self.queue.values().filter_map(|happening| match happening {
            Happening::Arrival(id) => Some(*id),
            Happening::Resolved { .. } => None,
        });
        self.journal.forget(under_way.min());
    }

    /// All that happened, when nothing more is to.
    pub fn into_journal(self) -> Journal {
        self.journal
    }

    /// What must always hold and did not, so far.
    pub fn violations(&self) -> &[Violation] {
        self.checks.as_ref().map_or(&[], Checks::violations)
    }

    /// Executions beyond the first that nobody could have prevented; known when it has run out.
    pub fn again(&self) -> Again {
        self.checks.as_ref().map(Checks::again).unwrap_or_default()
    }

    /// The proxy, to look at.
    pub const fn proxy(&self) -> &Proxy {
        &self.proxy.proxy
    }

    /// How much there is of everything in the proxy.
    pub fn occupancy(&self) -> Occupancy {
        self.proxy.proxy.occupancy()
    }

    /// What the proxy counted on both legs, towards clients first.
    pub const fn counters(&self) -> (&coapway_endpoint::Counters, &coapway_endpoint::Counters) {
        self.proxy.proxy.counters()
    }

    /// Sends bytes from an actor's address, as they are.
    pub fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.transmit(from, to, bytes, false);
        self.after_step();
    }

    /// The origin at `address` loses its state and hears nothing until `back`.
    pub fn restart(&mut self, address: SocketAddr, back: Instant) {
        let origins = self.actors.iter_mut().filter_map(|actor| match actor {
            Actor::Origin(origin) => Some(origin),
            Actor::Client(_) | Actor::Puppet(_) => None,
        });
        origins.filter(|origin| origin.address() == address).for_each(|origin| origin.restart(back));
        self.journal.noted(format!("{} restarts, back at {back}", self.journal.name_of(address)), self.now);
    }

    /// Nobody listens at `address` in the meantime: datagrams to it bring ICMP errors.
    pub fn close(&mut self, address: SocketAddr, from: Instant, until: Instant) {
        self.network.close_while(address, from, until);
    }

    /// The proxy's process stands still for so long: what arrives waits in its sockets.
    pub fn stall(&mut self, duration: Duration) {
        self.proxy.busy_until = self.now + duration;
        if let Some(checks) = &mut self.checks {
            checks.stalled(self.proxy.busy_until);
        }
        self.journal.noted(format!("the proxy stalls for {duration:?}"), self.now);
    }

    /// The proxy takes over other settings; the checks judge it by the same rules as before.
    pub fn reload(&mut self, parameters: &Parameters) {
        let input = Input::Reconfigure { parameters, listening: LISTENING, closing: &[] };
        self.proxy.proxy.handle_input(input, self.now);
        self.journal.noted("the proxy takes over other settings".to_owned(), self.now);
        self.drain_proxy();
        self.after_step();
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Instant> {
        let timer = self.next_timer().map(|(at, _)| at);
        [self.queue.keys().next().map(|&(at, _)| at), timer].into_iter().flatten().min()
    }

    /// Lets the next thing happen, unless it lies after `until`.
    pub fn step(&mut self, until: Instant) -> bool {
        let arrival = self.queue.first_key_value().map(|(&(at, _), _)| at);
        let timer = self.next_timer();
        match (arrival, timer) {
            (Some(at), _) if at <= until && timer.is_none_or(|(timer, _)| at <= timer) => {
                let Some((_, happening)) = self.queue.pop_first() else { return false };
                self.advance(at);
                self.happen(happening);
            }
            (_, Some((at, whose))) if at <= until => {
                self.advance(at);
                self.wake(whose);
            }
            _ => return false,
        }
        self.after_step();
        true
    }

    /// Lets everything happen up to `until`.
    pub fn run_until(&mut self, until: Instant) {
        while self.violations().is_empty() && self.step(until) {}
        self.advance(self.now.max(until));
    }

    /// Lets everything happen until nothing is left to do or `limit` has come, and then checks what
    /// must hold at the end.
    pub fn run_out(&mut self, limit: Instant) {
        while self.violations().is_empty() && self.step(limit) {}
        if !self.violations().is_empty() {
            return;
        }
        if let Some(next) = self.next() {
            self.violated(format!("something is still due at {next} when the run ends at {limit}"), limit);
        }
        let occupancy = self.occupancy();
        let (downstream, _) = self.proxy.proxy.counters();
        let left = Left {
            occupancy: &occupancy,
            counted: self.network.counted(),
            dropped: downstream.dropped,
            unconfirmed: downstream.unconfirmed,
        };
        if let Some(checks) = &mut self.checks {
            checks.finish(&self.actors, &left, self.now);
        }
    }

    fn advance(&mut self, at: Instant) {
        debug_assert!(at >= self.now, "time does not run backwards");
        if at > self.now {
            self.wakes = 0;
        }
        self.now = at;
    }

    fn next_timer(&self) -> Option<(Instant, Option<usize>)> {
        let proxy = self.proxy.wake.map(|wake| (wake.max(self.proxy.busy_until), None));
        let actors = self.actors.iter().enumerate();
        let actors = actors.filter_map(|(index, actor)| Some((actor.poll_timeout()?, Some(index))));
        let timer = proxy.into_iter().chain(actors).min();
        timer.map(|(at, whose)| (at.max(self.now), whose))
    }

    fn wake(&mut self, whose: Option<usize>) {
        self.wakes += 1;
        if self.wakes > MOST_WAKES {
            self.violated(format!("a timer of {whose:?} fires without end"), self.now);
        }
        match whose {
            None => {
                self.proxy.proxy.handle_input(Input::Wake, self.now);
                self.drain_proxy();
            }
            Some(index) => {
                self.actors[index].handle_timeout(self.now);
                self.drain_actor(index);
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Resolved { lookup, addresses } => {
                let resolved = Input::Resolved { lookup, addresses: &addresses, ttl: None };
                self.proxy.proxy.handle_input(resolved, self.now);
                self.drain_proxy();
            }
            Happening::Arrival(id) => self.arrive(id),
        }
    }

    fn arrive(&mut self, id: DatagramId) {
        let Sent { from, to, ref bytes, is_error, .. } = *self.journal.datagram(id);
        let local = local(to);
        if local.is_some() && self.now < self.proxy.busy_until {
            self.enter(self.proxy.busy_until, Happening::Arrival(id));
            return;
        }
        if !self.network.arrive(to, self.now) {
            self.journal.refused(id, self.now);
            if !is_error {
                let quoted = self.journal.datagram(id).bytes.clone();
                self.transmit(to, from, quoted, true);
            }
            return;
        }
        if let Some(local) = local {
            let input = if is_error {
                let failure = Failure::Unreachable;
                if let Some(checks) = &mut self.checks {
                    checks.proxy_refused(to, from, bytes, self.now);
                }
                Input::Undeliverable { local, remote: from, quoted: bytes, failure }
            } else {
                if let Some(checks) = &mut self.checks {
                    checks.proxy_received(from, to, bytes, self.now);
                }
                Input::Datagram { local, remote: from, bytes, truncated: false }
            };
            self.proxy.proxy.handle_input(input, self.now);
            self.journal.arrived(id, self.now);
            self.drain_proxy();
        } else if let Some(index) = self.actors.iter().position(|actor| actor.is_at(to, self.now)) {
            if !is_error {
                if let Some(checks) = &mut self.checks {
                    checks.actor_received(from, to, bytes, self.now);
                }
                self.actors[index].handle_datagram(from, bytes, self.now);
            }
            self.journal.arrived(id, self.now);
            self.drain_actor(index);
        } else {
            self.journal.arrived(id, self.now);
        }
    }

    fn drain_actor(&mut self, index: usize) {
        let from = self.actors[index].address();
        while let Some((to, bytes)) = self.actors[index].poll_transmit() {
            self.transmit(from, to, bytes, false);
        }
    }

    fn drain_proxy(&mut self) {
        loop {
            match self.proxy.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    let from = address(SocketRole::of(transmit.peer.local.socket));
                    let (to, bytes) = (transmit.peer.remote, transmit.datagram.to_vec());
                    if let Some(checks) = &mut self.checks {
                        checks.proxy_sent(from, to, &bytes, self.now);
                    }
                    self.transmit(from, to, bytes, false);
                }
                Output::LookUp { lookup, name } => {
                    let mut found = self.names.get(&*name).into_iter().flatten();
                    let found = found.rfind(|found| found.since <= self.now).cloned();
                    let Found { addresses, delay, .. } = found.unwrap_or_default();
                    self.journal.noted(format!("look-up {lookup} of {name}"), self.now);
                    self.enter(self.now + delay, Happening::Resolved { lookup, addresses });
                }
                Output::Event(event) => {
                    if let Some(checks) = &mut self.checks {
                        checks.told(&event, self.now);
                    }
                    self.journal.told(event, self.now);
                }
                Output::Records(records) => {
                    for (record, upstream) in records.iter() {
                        if let Some(checks) = &mut self.checks {
                            checks.recorded(record, self.now);
                        }
                        self.journal.recorded(record, upstream, self.now);
                    }
                }
                Output::Wait { until } => {
                    let Worker { random, lateness, wake, .. } = &mut self.proxy;
                    let late = lateness.mul_f64(random.f64());
                    *wake = until.map(|until| until + late);
                    return;
                }
            }
        }
    }

    fn transmit(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>, is_error: bool) {
        let Some(&host) = self.hosts.get(&from.ip()) else { return };
        let destination = self.hosts.get(&to.ip()).copied();
        let arrivals = self.network.send(host, destination, self.now);
        let sent = Sent { at: self.now, from, to, bytes, is_error, arrivals: arrivals.clone() };
        let id = self.journal.sent(sent);
        for arrival in arrivals {
            self.enter(arrival, Happening::Arrival(id));
        }
    }

    fn enter(&mut self, at: Instant, happening: Happening) {
        self.queue.insert((at, self.entered), happening);
        self.entered += 1;
    }

    fn violated(&mut self, what: String, at: Instant) {
        if let Some(checks) = &mut self.checks {
            checks.violated(what, at);
        }
    }

    fn after_step(&mut self) {
        let Some(checks) = &mut self.checks else { return };
        self.proxy.proxy.check_invariants();
        checks.after_step(self.now);
        let in_flight = self.queue.values().filter(|happening| matches!(happening, Happening::Arrival(_)));
        let (in_flight, counted) = (in_flight.count() as u64, self.network.counted().in_flight());
        if in_flight != counted {
            let what = format!("{in_flight} copies in flight, the network counts {counted}");
            self.violated(what, self.now);
        }
    }
}
