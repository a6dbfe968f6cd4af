//! Which source port a block-wise transfer leaves from (RFC 7959 §2.5).
//!
//! An origin keys a transfer on the endpoint pair and the resource: two uploads of different clients
//! to one resource from one port of ours would be taken for one. Each transfer therefore has its
//! port, and no other transfer to the same resource uses it.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

use ahash::RandomState;
use coapway_relay::Fetch;
use coapway_time::Instant;
use hashbrown::HashMap;

/// A transfer is over when nothing of it came for this long.
pub(crate) const IDLE: Duration = Duration::from_secs(10);
/// Beyond this many transfers with one origin, new ones wait.
const MOST: usize = 4096;
/// Beyond this many with all origins, too.
pub(crate) const MOST_OF_ALL: usize = 1 << 16;

/// Names a transfer: whose, and of which resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transfer {
    /// The number of the client.
    pub(crate) client: u64,
    /// A keyed hash.
    pub(crate) resource: NonZeroU64,
}

impl Transfer {
    /// The one that a fetch is part of.
    #[inline]
    pub(crate) fn of(fetch: &Fetch) -> Option<Self> {
        fetch.transfer().map(|resource| Self { client: fetch.client, resource })
    }
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    port: u32,
    until: Instant,
}

/// The transfers with one origin.
#[derive(Debug)]
pub(crate) struct Transfers {
    leases: HashMap<Transfer, Lease, RandomState>,
    /// Transfers in the order in which they may be over, if nothing more came.
    order: VecDeque<(Instant, Transfer)>,
}

/// A set of source ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken([u64; 4]);

impl Taken {
    fn insert(&mut self, port: u32) {
        if let Some(word) = self.0.get_mut(port as usize / 64) {
            *word |= 1 << (port % 64);
        }
    }

    pub(crate) fn contains(&self, port: u32) -> bool {
        self.0.get(port as usize / 64).is_some_and(|word| word >> (port % 64) & 1 == 1)
    }
}

/// Where a transfer may leave from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// From this port: it is under way.
    Bound(u32),
    /// From any port that is not [`Transfers::taken`].
    Any,
    /// From none before this time.
    None(Instant),
}

impl Transfers {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self { leases: HashMap::with_hasher(hasher), order: VecDeque::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.leases.len()
    }

    /// Where `transfer` may leave from.
    pub(crate) fn ports(&mut self, transfer: &Transfer, now: Instant) -> Ports {
        self.expire(now);
        match self.leases.get(transfer) {
            Some(lease) => Ports::Bound(lease.port),
            None if self.leases.len() >= MOST => Ports::None(self.next_end().unwrap_or(now + IDLE)),
            None => Ports::Any,
        }
    }

    /// The ports that transfers of this resource leave from.
    pub(crate) fn taken(&self, resource: NonZeroU64) -> Taken {
        let mut taken = Taken::default();
        for (transfer, lease) in &self.leases {
            if transfer.resource == resource {
                taken.insert(lease.port);
            }
        }
        taken
    }

    /// When the next transfer is over, if nothing more comes.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.leases.values().map(|lease| lease.until).min()
    }

    /// A block left from `port`, or came back.
    pub(crate) fn touch(&mut self, transfer: Transfer, port: u32, now: Instant) {
        let until = now + IDLE;
        if self.leases.insert(transfer, Lease { port, until }).is_none() {
            self.order.push_back((until, transfer));
        }
    }

    /// A transfer is over.
    pub(crate) fn end(&mut self, transfer: &Transfer) {
        self.leases.remove(transfer);
    }

    /// When to call [`Transfers::expire`] next.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.order.front().map(|&(when, _)| when)
    }

    /// Forgets transfers that are over.
    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some(&(when, transfer)) = self.order.front() {
            if when > now {
                return;
            }
            self.order.pop_front();
            match self.leases.get(&transfer).map(|lease| lease.until) {
                Some(until) if until > now => self.order.push_back((until, transfer)),
                Some(_) => drop(self.leases.remove(&transfer)),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers() -> Transfers {
        Transfers::new(RandomState::with_seeds(1, 2, 3, 4))
    }

    fn transfer(client: u64, number: u64) -> Transfer {
        Transfer { client, resource: resource(number) }
    }

    fn resource(number: u64) -> NonZeroU64 {
        NonZeroU64::new(number).expect("counted from 1")
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_transfer_stays_on_its_port_and_keeps_others_off_it() {
        let mut transfers = transfers();
        assert_eq!(transfers.ports(&transfer(1, 7), at(0)), Ports::Any);
        transfers.touch(transfer(1, 7), 3, at(0));
        assert_eq!(transfers.ports(&transfer(1, 7), at(9)), Ports::Bound(3));
        assert_eq!(transfers.ports(&transfer(2, 7), at(9)), Ports::Any);
        let taken = |transfers: &Transfers, number, port| transfers.taken(resource(number)).contains(port);
        assert!(taken(&transfers, 7, 3) && !taken(&transfers, 8, 3) && !taken(&transfers, 7, 4));
        transfers.end(&transfer(1, 7));
        assert!(!taken(&transfers, 7, 3));
    }

    #[test]
    fn ten_idle_seconds_end_it() {
        let mut transfers = transfers();
        transfers.touch(transfer(1, 7), 3, at(0));
        transfers.touch(transfer(1, 7), 3, at(8));
        assert_eq!(transfers.ports(&transfer(1, 7), at(17)), Ports::Bound(3));
        assert_eq!(transfers.next_end(), Some(at(18)));
        assert_eq!(transfers.ports(&transfer(1, 7), at(18)), Ports::Any);
        assert_eq!((transfers.len(), transfers.order.len()), (0, 0));
    }

    #[test]
    fn a_full_table_makes_new_ones_wait() {
        let mut transfers = transfers();
        (1..=MOST as u64).for_each(|number| transfers.touch(transfer(1, number), 0, at(1)));
        assert_eq!(transfers.ports(&transfer(2, 1), at(2)), Ports::None(at(11)));
    }
}
