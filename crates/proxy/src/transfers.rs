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
use hashbrown::hash_map::Entry;

use crate::address::Site;

/// A transfer is over when nothing of it came for this long.
pub(crate) const IDLE: Duration = Duration::from_secs(10);
/// Beyond this many transfers with one origin, new ones wait.
const MOST: usize = 4096;
/// And beyond this many of one site.
const MOST_OF_SITE: u32 = 1024;
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
    /// When it stands in the order.
    queued: Instant,
}

/// The transfers with one origin.
#[derive(Debug)]
pub(crate) struct Transfers {
    leases: HashMap<Transfer, Lease, RandomState>,
    /// Transfers in the order in which they may be over, if nothing more came. Of each the entry counts that its
    /// lease names.
    order: VecDeque<(Instant, Transfer)>,
    /// The ports that transfers of a resource leave from, each from another.
    taken: HashMap<NonZeroU64, Taken, RandomState>,
    /// How many are one site's, in all and of a resource.
    sites: HashMap<(Site, Option<NonZeroU64>), u32, RandomState>,
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

    fn remove(&mut self, port: u32) {
        if let Some(word) = self.0.get_mut(port as usize / 64) {
            *word &= !(1 << (port % 64));
        }
    }

    pub(crate) fn contains(&self, port: u32) -> bool {
        self.0.get(port as usize / 64).is_some_and(|word| word >> (port % 64) & 1 == 1)
    }

    /// Whether none of the first `ports` is free.
    pub(crate) fn are_all(&self, ports: u32) -> bool {
        let free = |(word, first): (&u64, u32)| word.trailing_ones() < ports.saturating_sub(first).min(64);
        !self.0.iter().zip((0..).step_by(64)).any(free)
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
        Self {
            leases: HashMap::with_hasher(hasher.clone()),
            order: VecDeque::new(),
            taken: HashMap::with_hasher(hasher.clone()),
            sites: HashMap::with_hasher(hasher),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.leases.len()
    }

    /// Where `transfer` may leave from.
    pub(crate) fn ports(&mut self, transfer: &Transfer, now: Instant) -> Ports {
        self.expire(now);
        if let Some(lease) = self.leases.get(transfer) {
            return Ports::Bound(lease.port);
        }
        let of_site = self.count(&(Site::of(transfer.client), None));
        match self.leases.len() >= MOST || of_site >= MOST_OF_SITE {
            true => Ports::None(self.next_expiry().unwrap_or(now + IDLE)),
            false => Ports::Any,
        }
    }

    /// Whether a transfer is under way.
    pub(crate) fn is_known(&self, transfer: &Transfer) -> bool {
        self.leases.contains_key(transfer)
    }

    /// The ports that transfers of this resource leave from.
    pub(crate) fn taken(&self, resource: NonZeroU64) -> Taken {
        self.taken.get(&resource).copied().unwrap_or_default()
    }

    /// Whether none of so many ports is there for `transfer`, which is new: each is another transfer's of the
    /// resource, or all but a quarter are of its own site.
    pub(crate) fn are_short(&self, transfer: &Transfer, ports: u32) -> bool {
        let own = self.count(&(Site::of(transfer.client), Some(transfer.resource)));
        own >= ports - ports / 4 || self.taken(transfer.resource).are_all(ports)
    }

    fn count(&self, key: &(Site, Option<NonZeroU64>)) -> u32 {
        self.sites.get(key).copied().unwrap_or(0)
    }

    /// A block left from `port`, or came back.
    pub(crate) fn touch(&mut self, transfer: Transfer, port: u32, now: Instant) {
        let until = now + IDLE;
        match self.leases.entry(transfer) {
            Entry::Occupied(mut known) => {
                let lease = known.get_mut();
                lease.until = until;
                if lease.port != port {
                    let taken = self.taken.entry(transfer.resource).or_default();
                    taken.remove(lease.port);
                    taken.insert(port);
                    lease.port = port;
                }
                return;
            }
            Entry::Vacant(new) => drop(new.insert(Lease { port, until, queued: until })),
        }
        self.taken.entry(transfer.resource).or_default().insert(port);
        for resource in [None, Some(transfer.resource)] {
            *self.sites.entry((Site::of(transfer.client), resource)).or_default() += 1;
        }
        if self.order.len() > 2 * self.leases.len() + 16 {
            let leases = &self.leases;
            self.order.retain(|(when, other)| leases.get(other).is_some_and(|lease| lease.queued == *when));
        }
        self.order.push_back((until, transfer));
    }

    /// A transfer is over.
    pub(crate) fn end(&mut self, transfer: &Transfer) {
        let Some(lease) = self.leases.remove(transfer) else { return };
        if let Entry::Occupied(mut taken) = self.taken.entry(transfer.resource) {
            taken.get_mut().remove(lease.port);
            if *taken.get() == Taken::default() {
                taken.remove();
            }
        }
        for resource in [None, Some(transfer.resource)] {
            if let Entry::Occupied(mut count) = self.sites.entry((Site::of(transfer.client), resource)) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }

    /// When to call [`Transfers::expire`] next: no transfer is over sooner unless it ends.
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
            let Some(lease) = self.leases.get_mut(&transfer).filter(|lease| lease.queued == when) else {
                continue;
            };
            if lease.until > now {
                lease.queued = lease.until;
                self.order.push_back((lease.until, transfer));
            } else {
                self.end(&transfer);
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
        assert_eq!(transfers.next_expiry(), Some(at(18)));
        assert_eq!(transfers.ports(&transfer(1, 7), at(18)), Ports::Any);
        assert_empty(&transfers);
    }

    #[test]
    fn ports_are_all_taken_when_the_last_is() {
        for ports in [1, 63, 64, 65, 200, 256] {
            let mut taken = Taken::default();
            for port in (0..ports).rev() {
                assert!(!taken.are_all(ports), "{port} of {ports} is free");
                taken.insert(port);
            }
            assert!(taken.are_all(ports));
            assert_eq!(taken.are_all(ports + 1), ports == 256, "there are no more than 256");
        }
    }

    fn assert_empty(transfers: &Transfers) {
        let Transfers { leases, order, taken, sites } = transfers;
        assert!(
            leases.is_empty() && order.is_empty() && taken.is_empty() && sites.is_empty(),
            "{transfers:?}"
        );
    }

    #[test]
    fn transfers_that_begin_and_end_leave_nothing_that_grows() {
        let mut transfers = transfers();
        for number in 1..=10_000 {
            transfers.touch(transfer(1, number % 7 + 1), 3, at(0));
            transfers.touch(transfer(1, number % 7 + 1), 4, at(0));
            assert_eq!(transfers.taken(resource(number % 7 + 1)).0, [1 << 4, 0, 0, 0]);
            transfers.end(&transfer(1, number % 7 + 1));
            assert!(transfers.order.len() <= 20, "{}", transfers.order.len());
        }
        transfers.touch(transfer(1, 1), 3, at(5));
        transfers.expire(at(14));
        assert_eq!(transfers.len(), 1, "what ended before is no entry of the new one");
        transfers.expire(at(15));
        assert_empty(&transfers);
    }

    #[test]
    fn one_site_leaves_room_for_others() {
        let mut transfers = transfers();
        let client = |endpoint: u32, site: u32| u64::from(endpoint) << 32 | u64::from(site);
        for number in 1..=MOST_OF_SITE {
            transfers.touch(transfer(client(number, 1), 1), number % 256, at(1));
        }
        assert_eq!(transfers.ports(&transfer(client(0, 1), 2), at(2)), Ports::None(at(11)));
        assert_eq!(transfers.ports(&transfer(client(0, 2), 2), at(2)), Ports::Any);
        assert_eq!(transfers.ports(&transfer(client(0, 1), 2), at(11)), Ports::Any);
    }

    #[test]
    fn one_site_leaves_ports_of_a_resource_for_others() {
        for (ports, own) in [(1, 1), (2, 2), (3, 3), (4, 3), (64, 48), (256, 192)] {
            let mut transfers = transfers();
            let of_site = |site: u64, number: u32| transfer(u64::from(number) << 32 | site, 7);
            for port in 0..own {
                assert!(!transfers.are_short(&of_site(1, port), ports), "{port} of {ports}");
                transfers.touch(of_site(1, port), port, at(0));
            }
            assert!(transfers.are_short(&of_site(1, own), ports), "{ports}");
            assert!(!transfers.are_short(&transfer(of_site(1, own).client, 8), ports), "another resource");
            assert_eq!(transfers.are_short(&of_site(2, 0), ports), own == ports, "{ports}");
        }
    }

    #[test]
    fn a_full_table_makes_new_ones_wait() {
        let mut transfers = transfers();
        (1..=MOST as u64).for_each(|number| transfers.touch(transfer(number, number), 0, at(1)));
        assert_eq!(transfers.ports(&transfer(2, 1), at(2)), Ports::None(at(11)));
    }
}
