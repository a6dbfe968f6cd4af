//! At the end nothing is left over.

use coapway_proxy::Occupancy;

use super::Left;
use crate::actor::Actor;

pub(super) fn finish(actors: &[Actor], left: &Left<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let Left { occupancy, counted, .. } = *left;
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
            Actor::Origin(origin) => origin.open(),
            Actor::Puppet(_) => 0,
        };
        if open != 0 {
            found.push(format!("{open} left over in {}", actor.name()));
        }
    }
    found
}
