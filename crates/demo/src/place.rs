//! One world: the same devices and the same origin under the same weather, and one [`Policy`] between them.

use std::collections::BTreeMap;
use std::time::Duration;

use coapway_endpoint::TransmissionParameters;
use coapway_proxy::{Event, Learned, Parameters};
use coapway_sim::actor::Actor;
use coapway_sim::client::{Client, Habits, Outcome, Request};
use coapway_sim::network::{HostId, Link, stream};
use coapway_sim::origin::{Memory, Mood, Origin};
use coapway_sim::sockets::LISTENER;
use coapway_sim::world::{Plan, World};
use coapway_time::Instant;

use crate::devices::{DEVICES, address};
use crate::figures::{Fate, Figures, Settled, Summary};
use crate::forwards::Forwards;
use crate::history::History;
use crate::policy::{ORIGIN, Policy, UPSTREAM};
use crate::weather::Sky;

/// The place of the origin among the actors: devices come first.
const ORIGIN_INDEX: usize = DEVICES.len();
/// How long the origin takes when it is slow: it acknowledges at once or soon, and answers later.
pub(crate) const SLOWNESS: Duration = Duration::from_millis(2_500);

/// What happened in a world that is worth a word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// The proxy told something.
    Event(Event),
    /// A request of a device ended.
    Settled(Settled),
}

/// One world.
#[derive(Debug)]
pub(crate) struct Place {
    policy: Policy,
    world: World,
    /// The weak link or links, in both directions.
    weak: Vec<[HostId; 2]>,
    figures: Figures,
    forwards: Forwards,
    history: History,
}

impl Place {
    pub(crate) fn new(policy: Policy, seed: u64, sky: &Sky) -> Self {
        let parameters: Parameters = policy.parameters();
        let plan =
            Plan { parameters, names: BTreeMap::new(), link: Link::PERFECT, lateness: Duration::ZERO, seed };
        let mut world = World::unwatched(plan);
        let asked = if policy == Policy::Bare { ORIGIN } else { LISTENER };
        let once = TransmissionParameters { max_retransmit: 0, ..TransmissionParameters::default() };
        let devices: Vec<_> = (0..DEVICES.len())
            .map(|device| {
                let habits = Habits {
                    address: address(device),
                    moves: Vec::new(),
                    mask: u16::MAX,
                    transmission: if policy == Policy::Bare {
                        once
                    } else {
                        TransmissionParameters::default()
                    },
                    planned: Vec::new(),
                };
                world.add(Actor::Client(Client::new(DEVICES[device].name, asked, habits, seed)))
            })
            .collect();
        let moods = [Mood::Answers(Duration::ZERO)];
        let origin = Origin::new("origin", ORIGIN, Memory::Deduplicates, &moods, seed);
        let origin = world.add(Actor::Origin(origin));
        let weak: Vec<_> = match policy {
            Policy::Bare => devices.into_iter().map(|device| [device, origin]).collect(),
            Policy::Fixed | Policy::Learned | Policy::PostOnce | Policy::Deduplicates => {
                vec![[world.proxy_host(), origin]]
            }
        };
        let mut place = Self {
            policy,
            world,
            weak,
            figures: Figures::default(),
            forwards: Forwards::default(),
            history: History::default(),
        };
        for [near, far] in place.weak.clone() {
            let network = place.world.network_mut();
            network.share_weather(near, far, stream(seed, &["there"]));
            network.share_weather(far, near, stream(seed, &["back"]));
        }
        place.set_sky(sky);
        place
    }

    pub(crate) fn set_sky(&mut self, sky: &Sky) {
        for &[near, far] in &self.weak {
            self.world.network_mut().set_link(near, far, sky.link());
            self.world.network_mut().set_link(far, near, sky.link());
        }
    }

    pub(crate) fn set_origin(&mut self, slow: bool, forgetful: bool) {
        let Actor::Origin(origin) = self.world.actor_mut(ORIGIN_INDEX) else { return };
        origin.set_slowness(if slow { SLOWNESS } else { Duration::ZERO });
        origin.set_memory(if forgetful { Memory::None } else { Memory::Deduplicates });
    }

    pub(crate) fn ask(&mut self, device: usize, request: Request) {
        if let Actor::Client(client) = self.world.actor_mut(device) {
            client.plan(request);
        }
    }

    /// Lets everything happen up to `until` and says what is worth a word, in order.
    pub(crate) fn run_until(&mut self, until: Instant) -> Vec<(Instant, Told)> {
        self.world.run_until(until);
        let mut told = Vec::new();
        for (at, event) in self.world.events() {
            self.forwards.told(*at, event);
            told.push((*at, Told::Event(event.clone())));
        }
        for (at, record) in self.world.journal().records() {
            self.figures.recorded(at, record);
            self.history.recorded(at, record);
        }
        self.world.forget();
        let mut settled = Vec::new();
        for device in 0..DEVICES.len() {
            let Actor::Client(client) = self.world.actor_mut(device) else { continue };
            for asked in client.take_ended() {
                let (at, fate) = match asked.outcome {
                    Outcome::Answered { at, code, .. } if code.is_success() => (at, Fate::Answered),
                    Outcome::Answered { at, .. } => (at, Fate::Told),
                    Outcome::Failed { at, .. } => (at, Fate::Silent),
                    Outcome::Waiting => continue,
                };
                let Request { key, method, at: since, .. } = asked.request;
                settled.push(Settled { at, key, device, method, fate, took: at.since(since) });
            }
        }
        settled.sort_by_key(|settled| (settled.at, settled.key));
        self.figures.settled(&settled, until);
        told.extend(settled.into_iter().map(|settled| (settled.at, Told::Settled(settled))));
        if let (Some(oldest), Actor::Origin(origin)) =
            (self.figures.oldest_key(), self.world.actor_mut(ORIGIN_INDEX))
        {
            origin.forget_before(oldest);
        }
        told
    }

    /// Notes what is learned at the moment.
    pub(crate) fn sample(&mut self, now: Instant) {
        self.history.sample(self.learned(), now);
    }

    pub(crate) fn reset(&mut self) {
        self.figures = Figures::default();
    }

    /// What the proxy has learned of the origin.
    pub(crate) fn learned(&self) -> Option<Learned> {
        self.world.proxy().learned(ORIGIN, UPSTREAM)
    }

    /// What the policy costs and brings.
    pub(crate) fn summary(&self) -> Summary {
        let Actor::Origin(origin) = &self.world.actors()[ORIGIN_INDEX] else { return Summary::default() };
        self.figures.summary(|key| origin.executed().get(&key).map_or(0, |executed| executed.runs.len()))
    }

    /// What is remembered in the world, for tests of its bounds.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        let Actor::Origin(origin) = &self.world.actors()[ORIGIN_INDEX] else { return 0 };
        self.world.journal().datagrams().len() + origin.executed().len()
    }

    pub(crate) const fn policy(&self) -> Policy {
        self.policy
    }

    pub(crate) const fn forwards(&self) -> &Forwards {
        &self.forwards
    }

    pub(crate) const fn history(&self) -> &History {
        &self.history
    }
}
