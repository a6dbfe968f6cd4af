//! What a storm is made of, out of its seed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_message::Code;
use coapway_proxy::Parameters;
use coapway_time::Instant;

use crate::actor::{Actor, Puppet};
use crate::client::Client;
use crate::network::{Link, stream};
use crate::origin::{Memory, Mood, Origin};
use crate::sockets::LISTENER;
use crate::world::{Found, Plan, World};

mod asking;
mod settings;

/// Deduplicates, and the settings say so.
const STEADY: &str = "10.2.0.1:5683";
/// Deduplicates; the settings do not know.
const DISCREET: &str = "10.2.0.2:5683";
/// Executes each copy.
const FORGETFUL: &str = "10.2.0.3:5683";
/// A host without a server.
const CLOSED: &str = "10.2.0.4:5683";
/// Those that may restart.
pub(super) const ORIGINS: [&str; 3] = [STEADY, DISCREET, FORGETFUL];
/// Sends noise and forgeries.
pub(super) const STRANGER: &str = "10.3.0.1:5683";
/// Nobody has this address.
const NOWHERE: &str = "10.2.0.99:5683";

/// The world of this seed, before anything happened.
pub fn world(seed: u64) -> World {
    let mut random = fastrand::Rng::with_seed(stream(seed, &["storm"]));
    let plan = plan(seed, &mut random);
    let mut world = World::new(plan);
    for (number, habits) in (1..).zip(asking::clients(&mut random)) {
        world.add(Actor::Client(Client::new(&format!("client{number}"), LISTENER, habits, seed)));
    }
    world.add(Actor::Puppet(Puppet::new("stranger", parsed(STRANGER))));
    let moods = moods(&mut random);
    let mut origin = |name, address, memory| {
        world.add(Actor::Origin(Origin::new(name, parsed(address), memory, &moods, seed)));
    };
    origin("steady", STEADY, Memory::Deduplicates);
    origin("discreet", DISCREET, Memory::Deduplicates);
    origin("forgetful", FORGETFUL, Memory::None);
    origin("closed", CLOSED, Memory::None);
    world.network_mut().close(parsed(CLOSED));
    if random.u8(0..3) == 0 {
        let host = world.proxy_host();
        let from = Instant::ZERO + Duration::from_secs(random.u64(0..60));
        world.network_mut().set_outage(host, from, from + Duration::from_secs(random.u64(1..20)));
    }
    world
}

/// One of these for each key.
fn moods(random: &mut fastrand::Rng) -> Vec<Mood> {
    let answers = [0, 0, 50, 300, 300, 1500, 3000].map(|millis| Mood::Answers(Duration::from_millis(millis)));
    let busy = Duration::from_secs(random.u64(1..20));
    let others = [
        Mood::Answers(Duration::from_secs(random.u64(2..40))),
        Mood::Refuses(Code::NOT_FOUND),
        Mood::Busy(Code::SERVICE_UNAVAILABLE, busy),
        Mood::Busy(Code::TOO_MANY_REQUESTS, busy),
        Mood::Forgets,
        Mood::Ignores,
        Mood::Resets,
        Mood::Babbles,
        Mood::Reboots,
    ];
    answers.into_iter().chain(others).collect()
}

/// The settings of this seed with upstreams in another order, one more or one renamed, and other limits
/// that promise the same.
pub(super) fn reordered(seed: u64, random: &mut fastrand::Rng) -> Parameters {
    let mut parameters = plan(seed, &mut fastrand::Rng::with_seed(stream(seed, &["storm"]))).parameters;
    settings::reorder(&mut parameters, random);
    parameters
}

fn plan(seed: u64, random: &mut fastrand::Rng) -> Plan {
    let link = Link {
        delay: Duration::from_millis(random.u64(0..200)),
        jitter: Duration::from_millis(random.u64(0..400)),
        loss: 0.25,
        duplication: 0.25,
        reordering: 0.25,
    };
    let names = [
        ("steady.example", vec![parsed(STEADY).ip()], 50),
        ("slow.example", vec![parsed(CLOSED).ip(), parsed(DISCREET).ip()], random.u64(100..20_000)),
    ];
    let names: BTreeMap<_, _> = names
        .map(|(name, addresses, millis)| {
            let delay = Duration::from_millis(millis);
            (name.to_owned(), vec![Found { since: Instant::ZERO, addresses, delay }])
        })
        .into();
    let lateness = Duration::from_millis(if random.u8(0..4) == 0 { 50 } else { 0 });
    Plan { parameters: settings::parameters(random), names, link, lateness, seed }
}

pub(super) fn parsed(address: &str) -> SocketAddr {
    address.parse().expect("the addresses of this file are addresses")
}
