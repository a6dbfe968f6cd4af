//! The bad network, as a state machine of its own: which copies of a datagram arrive, and when.
//!
//! A link is described per direction. Each direction draws from its own stream of chance, seeded by
//! the names of its ends, so that adding a host does not shift what happens to the others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use coapway_time::Instant;

mod chance;

use chance::Chance;

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The shortest way.
    pub delay: Duration,
    /// What chance adds to it.
    pub jitter: Duration,
    /// The share of datagrams that is lost.
    pub loss: f64,
    /// The share that arrives twice.
    pub duplication: f64,
    /// The share that is held up and may be overtaken; the rest arrives in order.
    pub reordering: f64,
}

impl Link {
    /// Neither time nor loss.
    pub const PERFECT: Self =
        Self { delay: Duration::ZERO, jitter: Duration::ZERO, loss: 0.0, duplication: 0.0, reordering: 0.0 };

    /// The longest that a datagram is under way.
    pub fn longest(&self) -> Duration {
        self.delay + self.jitter + self.hold_up()
    }

    /// The longest that a datagram is held up.
    fn hold_up(&self) -> Duration {
        if self.reordering > 0.0 { 2 * (self.delay + self.jitter) } else { Duration::ZERO }
    }
}

/// Names one host of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(usize);

/// What was counted: `sent + duplicated = delivered + refused + lost` and what is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conservation {
    /// Datagrams that hosts sent, ICMP errors included.
    pub sent: u64,
    /// Second copies the network made.
    pub duplicated: u64,
    /// Copies that reached a host.
    pub delivered: u64,
    /// Copies that reached a closed port.
    pub refused: u64,
    /// Copies that reached nobody.
    pub lost: u64,
}

impl Conservation {
    /// Copies that must be in flight.
    pub const fn in_flight(&self) -> u64 {
        self.sent + self.duplicated - self.delivered - self.refused - self.lost
    }
}

/// When the copies of one datagram arrive: none, one or two instants.
pub type Arrivals = Vec<Instant>;

#[derive(Clone, Copy, Debug)]
struct Outage {
    host: HostId,
    from: Instant,
    until: Instant,
}

#[derive(Debug)]
struct Direction {
    chance: Chance,
    /// What is not held up does not arrive before this.
    last: Instant,
}

/// Hosts, the links between them, and their chance.
#[derive(Debug)]
pub struct Network {
    seed: u64,
    usual: Link,
    links: BTreeMap<(HostId, HostId), Link>,
    directions: BTreeMap<(HostId, HostId), Direction>,
    hosts: Vec<Box<str>>,
    outages: Vec<Outage>,
    closed: BTreeSet<SocketAddr>,
    closed_while: Vec<(SocketAddr, Instant, Instant)>,
    counted: Conservation,
}

impl Network {
    /// A network whose links are `usual` in both directions unless said otherwise.
    pub fn new(usual: Link, seed: u64) -> Self {
        Self {
            seed,
            usual,
            links: BTreeMap::new(),
            directions: BTreeMap::new(),
            hosts: Vec::new(),
            outages: Vec::new(),
            closed: BTreeSet::new(),
            closed_while: Vec::new(),
            counted: Conservation::default(),
        }
    }

    /// A further host. Its name decides its chance.
    pub fn add_host(&mut self, name: &str) -> HostId {
        self.hosts.push(name.into());
        HostId(self.hosts.len() - 1)
    }

    /// Describes one direction.
    pub fn set_link(&mut self, from: HostId, to: HostId, link: Link) {
        self.links.insert((from, to), link);
    }

    /// From now on what becomes of a datagram in this direction follows from `seed` and the moment it
    /// leaves: worlds with one seed have the same weather, whatever else is sent in them.
    pub fn share_weather(&mut self, from: HostId, to: HostId, seed: u64) {
        let direction = Direction { chance: Chance::OfTheMoment(seed), last: Instant::ZERO };
        self.directions.insert((from, to), direction);
    }

    /// Loses everything from and to `host` that is sent from `from` until `until`.
    pub fn set_outage(&mut self, host: HostId, from: Instant, until: Instant) {
        self.outages.push(Outage { host, from, until });
    }

    /// From now on nobody listens at `address`: datagrams to it bring ICMP errors.
    pub fn close(&mut self, address: SocketAddr) {
        self.closed.insert(address);
    }

    /// Nobody listens at `address` from `from` until `until`.
    pub fn close_while(&mut self, address: SocketAddr, from: Instant, until: Instant) {
        self.closed_while.push((address, from, until));
    }

    /// Somebody listens at `address` again.
    pub fn open(&mut self, address: SocketAddr) {
        self.closed.remove(&address);
    }

    /// What was counted so far.
    pub const fn counted(&self) -> &Conservation {
        &self.counted
    }

    /// A datagram leaves `from`; `to` is `None` when nobody has its destination. Returns when its
    /// copies arrive.
    pub fn send(&mut self, from: HostId, to: Option<HostId>, now: Instant) -> Arrivals {
        self.counted.sent += 1;
        let Some(to) = to else {
            self.counted.lost += 1;
            return Arrivals::new();
        };
        let link = self.links.get(&(from, to)).copied().unwrap_or(self.usual);
        let seed = stream(self.seed, &[&self.hosts[from.0], ">", &self.hosts[to.0]]);
        let direction = self
            .directions
            .entry((from, to))
            .or_insert_with(|| Direction { chance: Chance::in_turn(seed), last: Instant::ZERO });
        // Every datagram takes the same number of draws, whatever becomes of it.
        let [lost, held_up, hold_up, jitter, duplicated, second] = direction.chance.draw(now);
        let out = self.outages.iter().any(|outage| {
            (outage.host == from || outage.host == to) && outage.from <= now && now < outage.until
        });
        if out || lost < link.loss {
            self.counted.lost += 1;
            return Arrivals::new();
        }
        let mut arrival = now + link.delay + link.jitter.mul_f64(jitter);
        if held_up < link.reordering {
            arrival += link.hold_up().mul_f64(hold_up);
        } else {
            arrival = arrival.max(direction.last);
            direction.last = arrival;
        }
        let mut arrivals = vec![arrival];
        if duplicated < link.duplication {
            self.counted.duplicated += 1;
            arrivals.push(arrival + (link.delay + link.jitter).mul_f64(second));
        }
        arrivals
    }

    /// A copy comes to `destination`. Says whether somebody takes it.
    pub fn arrive(&mut self, destination: SocketAddr, now: Instant) -> bool {
        let closed_now = |&(address, from, until): &(SocketAddr, Instant, Instant)| {
            address == destination && from <= now && now < until
        };
        let taken = !self.closed.contains(&destination) && !self.closed_while.iter().any(closed_now);
        if taken {
            self.counted.delivered += 1;
        } else {
            self.counted.refused += 1;
        }
        taken
    }
}

/// The seed of a named stream of chance.
pub fn stream(seed: u64, name: &[&str]) -> u64 {
    // FNV-1a, and one round of splitmix so that near seeds give far streams.
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    let named = name.iter().flat_map(|part| part.bytes()).fold(0xCBF2_9CE4_8422_2325, fnv);
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ named;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: Link = Link {
        delay: Duration::from_millis(50),
        jitter: Duration::from_millis(20),
        loss: 0.25,
        duplication: 0.25,
        reordering: 0.25,
    };

    fn at(millis: u64) -> Instant {
        Instant::from_micros(millis * 1000)
    }

    fn fates(network: &mut Network, from: HostId, to: HostId) -> Vec<Arrivals> {
        (0..2000).map(|step| network.send(from, Some(to), at(step * 10))).collect()
    }

    #[test]
    fn chance_belongs_to_names_and_not_to_the_order_of_hosts() {
        let mut one = Network::new(BAD, 7);
        let (a, b) = (one.add_host("a"), one.add_host("b"));
        let mut other = Network::new(BAD, 7);
        let (c, b2, a2) = (other.add_host("c"), other.add_host("b"), other.add_host("a"));
        other.send(c, Some(b2), Instant::ZERO);
        assert_eq!(fates(&mut one, a, b), fates(&mut other, a2, b2));
        assert_ne!(fates(&mut one, b, a), fates(&mut one, a, b), "each direction has its own");
    }

    #[test]
    fn shares_are_as_asked_for() {
        let mut network = Network::new(BAD, 1);
        let (a, b) = (network.add_host("a"), network.add_host("b"));
        let fates = fates(&mut network, a, b);
        let lost = fates.iter().filter(|arrivals| arrivals.is_empty()).count();
        let twice = fates.iter().filter(|arrivals| arrivals.len() == 2).count();
        assert!((440..560).contains(&lost), "{lost}");
        assert!((310..440).contains(&twice), "{twice} of those that were not lost");
        let firsts: Vec<_> = fates.iter().filter_map(|arrivals| arrivals.first()).collect();
        assert!(!firsts.is_sorted(), "some are overtaken");
        for (step, arrivals) in (0..).zip(&fates) {
            assert!(arrivals.iter().all(|&arrival| {
                let way = arrival.since(at(step * 10));
                way >= BAD.delay && way <= BAD.longest() + BAD.delay + BAD.jitter
            }));
        }
    }

    #[test]
    fn worlds_that_share_their_weather_lose_the_same_moments() {
        let link = Link { loss: 0.25, ..Link::PERFECT };
        let lost = |every: u64| -> Vec<u64> {
            let mut network = Network::new(link, 7);
            let (a, b) = (network.add_host("a"), network.add_host(&format!("b{every}")));
            network.share_weather(a, b, 1);
            let moments = (0..2000).step_by(every as usize);
            moments.filter(|&now| network.send(a, Some(b), at(now)).is_empty()).collect()
        };
        let (all, few) = (lost(1), lost(7));
        assert!((440..560).contains(&all.len()), "{}", all.len());
        assert!(few.iter().eq(all.iter().filter(|&moment| moment % 7 == 0)));
    }

    #[test]
    fn nothing_passes_an_outage() {
        let mut network = Network::new(Link::PERFECT, 1);
        let (a, b) = (network.add_host("a"), network.add_host("b"));
        network.set_outage(b, at(10), at(20));
        let arrives = |network: &mut Network, now| !network.send(a, Some(b), at(now)).is_empty();
        assert_eq!([9, 10, 19, 20].map(|now| arrives(&mut network, now)), [true, false, false, true]);
    }

    #[test]
    fn no_copy_is_forgotten() {
        let mut network = Network::new(BAD, 3);
        let (a, b) = (network.add_host("a"), network.add_host("b"));
        let mut in_flight: u64 = 0;
        let here: SocketAddr = ([10, 0, 0, 1], 1).into();
        for step in 0..500 {
            in_flight += network.send(a, Some(b), at(step)).len() as u64;
            network.send(a, None, at(step));
            if step % 100 == 50 {
                network.close(here);
            } else if step % 100 == 0 {
                network.open(here);
            }
            if step % 2 == 0 && in_flight > 0 {
                network.arrive(here, at(step));
                in_flight -= 1;
            }
            assert_eq!(network.counted().in_flight(), in_flight);
        }
        assert!(network.counted().refused > 0 && network.counted().lost > 500);
    }
}
