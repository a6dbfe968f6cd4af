//! The virtual world as a stage.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_time::Instant;

use crate::actor::{Actor, Puppet};
use crate::checks::{TICK, Violation};
use crate::journal::Journal;
use crate::play::{Arrival, Impossible, Stage};
use crate::script::{Role, Script};
use crate::sockets::{GROUP, LISTENER};
use crate::world::{Plan, World};

/// Where clients are; their addresses are believed unless a scenario says otherwise.
pub(super) const CLIENTS: &str = "10.1.0.0/16";
/// Everything a scenario can leave behind is over after this.
const AFTERMATH: Duration = Duration::from_secs(1000);

/// A world in which all peers are puppets.
#[derive(Debug)]
pub struct Rehearsal {
    world: World,
    addresses: Vec<SocketAddr>,
}

impl Rehearsal {
    /// An empty world with a puppet for each peer of the script.
    pub fn new(plan: Plan, script: &Script) -> Self {
        let mut world = World::new(plan);
        let addresses: Vec<_> = (0..script.peers.len()).map(|place| address(script, place)).collect();
        for (peer, &address) in script.peers.iter().zip(&addresses) {
            world.add(Actor::Puppet(Puppet::new(&peer.name, address)));
        }
        Self { world, addresses }
    }

    /// Lets the world run out and says what was violated.
    pub fn finish(&mut self) -> Vec<String> {
        let limit = self.world.now() + AFTERMATH;
        self.world.run_out(limit);
        self.violations()
    }

    /// What was violated so far.
    pub fn violations(&self) -> Vec<String> {
        self.world.violations().iter().map(Violation::to_string).collect()
    }

    /// The world.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// What happened.
    pub fn into_journal(self) -> Journal {
        self.world.into_journal()
    }
}

impl Stage for Rehearsal {
    fn elapsed(&self) -> Duration {
        self.world.now().since(Instant::ZERO)
    }

    fn tolerance(&self) -> Duration {
        2 * TICK
    }

    fn listener(&self) -> SocketAddr {
        LISTENER
    }

    fn address(&self, peer: usize) -> SocketAddr {
        self.addresses[peer]
    }

    fn send(&mut self, peer: usize, to: SocketAddr, bytes: &[u8]) {
        self.world.send(self.addresses[peer], to, bytes.to_vec());
    }

    fn receive(&mut self, until: Duration) -> Option<Arrival> {
        let until = Instant::ZERO + until;
        loop {
            for peer in 0..self.addresses.len() {
                if let Actor::Puppet(puppet) = self.world.actor_mut(peer)
                    && let Some((at, from, bytes)) = puppet.take()
                {
                    return Some(Arrival { peer, at: at.since(Instant::ZERO), from, bytes });
                }
            }
            if !self.world.step(until) {
                self.world.run_until(until);
                return None;
            }
        }
    }

    fn listen(&mut self, peer: usize, listens: bool) -> Result<(), Impossible> {
        let address = self.addresses[peer];
        let network = self.world.network_mut();
        if listens {
            network.open(address)
        } else {
            network.close(address)
        }
        Ok(())
    }

    fn group(&self) -> Option<SocketAddr> {
        Some(GROUP)
    }

    fn move_peer(&mut self, peer: usize) -> Result<(), Impossible> {
        let address = &mut self.addresses[peer];
        address.set_port(address.port() + 1);
        self.world.move_puppet(peer, *address);
        Ok(())
    }

    fn stall(&mut self, duration: Duration) -> Result<(), Impossible> {
        self.world.stall(duration);
        Ok(())
    }
}

/// The address of a peer in the virtual world; names that end in `_ipv6` have IPv6 addresses, and those that end
/// in a port, as in `_5700`, have that port.
pub(super) fn address(script: &Script, place: usize) -> SocketAddr {
    let peer = &script.peers[place];
    let host = place as u8 + 1;
    let port = peer.name.rsplit_once('_').and_then(|(_, port)| port.parse().ok()).unwrap_or(5683);
    match peer.role {
        Role::Client => SocketAddr::new([10, 1, 0, host].into(), 40_000),
        Role::Origin if peer.name.ends_with("_ipv6") => {
            SocketAddr::new([0xFD00, 0, 0, 0, 0, 0, 2, u16::from(host)].into(), port)
        }
        Role::Origin => SocketAddr::new([10, 2, 0, host].into(), port),
    }
}
