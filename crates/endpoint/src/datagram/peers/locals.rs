//! Our sides of hops by number: there are few, as many as sockets and addresses.

use hashbrown::HashMap;

use crate::peer::{Local, SocketId};

/// Where a network routes whole prefixes here, others choose which of our addresses they speak to.
const MOST: usize = 4096;

#[derive(Debug)]
pub(super) struct Locals {
    numbers: HashMap<Local, u16, ahash::RandomState>,
    all: Vec<Local>,
    /// The one that was asked for last.
    last: (Local, u16),
}

impl Locals {
    pub(super) fn new(hasher: ahash::RandomState) -> Self {
        let mut numbers = HashMap::with_hasher(hasher);
        let first = Local::default();
        numbers.insert(first, 0);
        Self { numbers, all: vec![first], last: (first, 0) }
    }

    /// Its number, a new one if need be; `None` when there are too many.
    #[inline]
    pub(super) fn number(&mut self, local: &Local) -> Option<u16> {
        if self.last.0 == *local { Some(self.last.1) } else { self.other(local) }
    }

    fn other(&mut self, local: &Local) -> Option<u16> {
        let number = self.known(local).or_else(|| {
            let number = (self.all.len() < MOST).then_some(self.all.len() as u16)?;
            self.all.push(*local);
            self.numbers.insert(*local, number);
            Some(number)
        })?;
        self.last = (*local, number);
        Some(number)
    }

    /// Its number, if it has one.
    pub(super) fn known(&self, local: &Local) -> Option<u16> {
        self.numbers.get(local).copied()
    }

    #[inline]
    pub(super) fn get(&self, number: u16) -> Local {
        self.all.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// The numbers of those at a socket.
    pub(super) fn at(&self, socket: SocketId) -> impl Iterator<Item = u16> {
        (0..).zip(&self.all).filter(move |(_, local)| local.socket == socket).map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use super::*;

    #[test]
    fn each_has_its_number_until_there_are_too_many() {
        let mut locals = Locals::new(ahash::RandomState::with_seeds(1, 2, 3, 4));
        let local = |number: u16| Local {
            socket: SocketId(u32::from(number) % 3),
            address: Some(IpAddr::V6(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, number))),
        };
        for _ in 0..2 {
            assert_eq!(locals.number(&Local::default()), Some(0));
            for number in 1..MOST as u16 {
                assert_eq!(locals.number(&local(number)), Some(number));
                assert_eq!((locals.get(number), locals.known(&local(number))), (local(number), Some(number)));
            }
            assert_eq!((locals.number(&local(5000)), locals.known(&local(5000))), (None, None));
        }
        assert!(locals.at(SocketId(1)).eq((1..MOST as u16).step_by(3)));
    }
}
