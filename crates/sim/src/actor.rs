//! Who can be in a world beside the proxy.

use std::collections::VecDeque;
use std::net::SocketAddr;

use coapway_time::Instant;

use crate::client::Client;
use crate::origin::Origin;

/// A host of a world.
#[derive(Debug)]
pub enum Actor {
    /// Asks.
    Client(Client),
    /// Answers.
    Origin(Origin),
    /// Does nothing by itself.
    Puppet(Puppet),
}

/// A host that keeps what it gets for whoever moves it.
#[derive(Debug)]
pub struct Puppet {
    name: Box<str>,
    address: SocketAddr,
    received: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
}

impl Puppet {
    /// A puppet at `address`.
    pub fn new(name: &str, address: SocketAddr) -> Self {
        Self { name: name.into(), address, received: VecDeque::new() }
    }

    /// From now on it is at `address`.
    pub const fn move_to(&mut self, address: SocketAddr) {
        self.address = address;
    }

    /// What came first and was not taken yet: when, from whom, and its bytes.
    pub fn take(&mut self) -> Option<(Instant, SocketAddr, Vec<u8>)> {
        self.received.pop_front()
    }
}

impl Actor {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Client(client) => client.name(),
            Self::Origin(origin) => origin.name(),
            Self::Puppet(puppet) => &puppet.name,
        }
    }

    /// Its address.
    pub const fn address(&self) -> SocketAddr {
        match self {
            Self::Client(client) => client.address(),
            Self::Origin(origin) => origin.address(),
            Self::Puppet(puppet) => puppet.address,
        }
    }

    /// Whether a datagram to `address` reaches it.
    pub fn is_at(&self, address: SocketAddr, now: Instant) -> bool {
        match self {
            Self::Client(client) => client.is_at(address, now),
            Self::Origin(origin) => origin.address() == address,
            Self::Puppet(puppet) => puppet.address == address,
        }
    }

    /// Each address it has, had or will have.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::Client(client) => client.addresses().collect(),
            Self::Origin(origin) => vec![origin.address()],
            Self::Puppet(puppet) => vec![puppet.address],
        }
    }

    pub(crate) fn handle_datagram(&mut self, from: SocketAddr, bytes: &[u8], now: Instant) {
        match self {
            Self::Client(client) => client.handle_datagram(from, bytes, now),
            Self::Origin(origin) => origin.handle_datagram(from, bytes, now),
            Self::Puppet(puppet) => puppet.received.push_back((now, from, bytes.to_vec())),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Client(client) => client.handle_timeout(now),
            Self::Origin(origin) => origin.handle_timeout(now),
            Self::Puppet(_) => {}
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Client(client) => client.poll_timeout(),
            Self::Origin(origin) => origin.poll_timeout(),
            Self::Puppet(_) => None,
        }
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        match self {
            Self::Client(client) => client.poll_transmit(),
            Self::Origin(origin) => origin.poll_transmit(),
            Self::Puppet(_) => None,
        }
    }
}
