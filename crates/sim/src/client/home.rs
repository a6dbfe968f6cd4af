//! Where a client is: behind a NAT its address changes, between its exchanges or in their midst.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_time::Instant;

/// From `at` on, what a client sends comes from another address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When.
    pub at: Instant,
    /// The new address.
    pub to: SocketAddr,
    /// For how long datagrams to the old one still reach the client.
    pub grace: Duration,
}

/// All addresses of one client.
#[derive(Debug)]
pub(super) struct Home {
    address: SocketAddr,
    /// Earlier ones and until when they reach it.
    former: Vec<(SocketAddr, Instant)>,
    moves: VecDeque<Move>,
}

impl Home {
    pub(super) fn new(address: SocketAddr, moves: Vec<Move>) -> Self {
        debug_assert!(moves.is_sorted_by_key(|one| one.at));
        Self { address, former: Vec::new(), moves: moves.into() }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a datagram to `address` reaches the client.
    pub(super) fn is_at(&self, address: SocketAddr, now: Instant) -> bool {
        self.address == address || self.former.iter().any(|&(former, until)| former == address && now < until)
    }

    /// Each address it has, had or will have.
    pub(super) fn all(&self) -> impl Iterator<Item = SocketAddr> {
        let former = self.former.iter().map(|&(address, _)| address);
        former.chain([self.address]).chain(self.moves.iter().map(|one| one.to))
    }

    pub(super) fn next_move(&self) -> Option<Instant> {
        self.moves.front().map(|one| one.at)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(Move { to, grace, .. }) = self.moves.pop_front_if(|one| one.at <= now) {
            self.former.push((std::mem::replace(&mut self.address, to), now + grace));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_address_reaches_a_client_for_a_while() {
        let at = Instant::from_micros;
        let address = |port: u16| SocketAddr::from(([10, 1, 0, 1], port));
        let moves = vec![Move { at: at(10), to: address(2), grace: Duration::from_micros(5) }];
        let mut home = Home::new(address(1), moves);
        home.handle_timeout(at(9));
        assert_eq!((home.address(), home.next_move()), (address(1), Some(at(10))));
        home.handle_timeout(at(10));
        assert_eq!((home.address(), home.next_move()), (address(2), None));
        assert!(home.is_at(address(2), at(20)));
        assert_eq!([14, 15].map(|now| home.is_at(address(1), at(now))), [true, false]);
        assert!(home.all().eq([address(1), address(2)]));
    }
}
