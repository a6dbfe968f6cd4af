//! At the end nothing is left over, and nothing was done twice that must be done once.

use coapway_proxy::Occupancy;

use crate::actor::Actor;
use crate::network::Conservation;
use crate::origin::{Executed, Memory, Origin};

pub(super) fn finish(actors: &[Actor], occupancy: &Occupancy, counted: &Conservation) -> Vec<String> {
    let mut found = Vec::new();
    let nothing = Occupancy { remembered: occupancy.remembered, ..Occupancy::default() };
    if *occupancy != nothing {
        found.push(format!("left over in the proxy: {occupancy:?}"));
    }
    if counted.in_flight() != 0 {
        found.push(format!("left over in the network: {counted:?}"));
    }
    for actor in actors {
        let open = match actor {
            Actor::Client(client) => client.open(),
            Actor::Origin(origin) => {
                found.extend(executed_twice(origin));
                origin.open()
            }
            Actor::Puppet(_) => 0,
        };
        if open != 0 {
            found.push(format!("{open} left over in {}", actor.name()));
        }
    }
    found
}

/// An origin that deduplicates executes each request at most once. That is a must for POST and PATCH
/// (R-USR-10); the others would only be executed again by a re-issue, which is not there yet.
fn executed_twice(origin: &Origin) -> Vec<String> {
    if origin.memory() == Memory::None {
        return Vec::new();
    }
    let twice = origin.executed().iter().filter(|(_, executed)| executed.times > 1);
    let describe = |(key, &Executed { method, times }): (&u32, &Executed)| {
        format!("{} executed {} {key} {times} times", origin.name(), method.name())
    };
    twice.map(describe).collect()
}
