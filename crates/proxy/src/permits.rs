//! What may stand against sending a request to an origin, beside its window.

use std::time::Duration;

use ahash::RandomState;
use coapway_time::Instant;

use crate::address::Holder;
use crate::order::Order;
use crate::parameters::UpstreamParameters;
use crate::probing::Probing;
use crate::transfers::{IDLE, Ports, Taken, Transfers};

/// Why a request has to wait although the window is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// Its client holds all places but the last: that is for others.
    Places,
    /// Not before this time.
    Until(Instant),
}

/// The places in a window that are taken, and by whom, as far as that matters.
///
/// State: how many, and the sum of the numbers of their clients. Those are keyed hashes: the sum
///        is so many times the number of one client only if that one holds all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    taken: u32,
    sum: u32,
}

impl Places {
    /// A client takes one.
    pub(crate) const fn take(&mut self, client: Holder) {
        (self.taken, self.sum) = (self.taken + 1, self.sum.wrapping_add(client.number()));
    }

    /// It gives one back.
    pub(crate) const fn give(&mut self, client: Holder) {
        (self.taken, self.sum) = (self.taken.saturating_sub(1), self.sum.wrapping_sub(client.number()));
    }

    /// Whether this client holds so many at least, and others none.
    const fn are_all_of(self, client: Holder, least: u32) -> bool {
        self.taken >= least && self.sum == client.number().wrapping_mul(self.taken)
    }
}

/// The rules of one origin that look at the request.
#[derive(Debug)]
pub(crate) struct Permits {
    pub(crate) places: Places,
    pub(crate) probing: Probing,
    pub(crate) transfers: Transfers,
}

impl Permits {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self { places: Places::default(), probing: Probing::default(), transfers: Transfers::new(hasher) }
    }

    /// What stands against a request now that the window is open; `window` is the number of its places,
    /// `last` the newest round-trip time, and `has_room` says whether there may be one more transfer.
    pub(crate) fn hindrance(
        &mut self,
        order: &Order,
        parameters: &UpstreamParameters,
        window: u32,
        last: Option<Duration>,
        has_room: bool,
        now: Instant,
    ) -> Option<Hindrance> {
        let most = window.saturating_sub(1).max(1);
        // Others then hold none: there is but one place left.
        if self.places.are_all_of(order.holder(), most) {
            return Some(Hindrance::Places);
        }
        if !order.confirmable {
            let grace =
                last.map_or(parameters.transmission.ack_timeout, |last| (last * 3).max(parameters.rto.floor));
            if let Err(until) = self.probing.check(parameters.probing_rate, grace, now) {
                return Some(Hindrance::Until(until));
            }
        }
        let transfer = order.transfer.as_ref()?;
        match self.transfers.ports(transfer, now) {
            Ports::Bound(_) => None,
            Ports::None(until) => Some(Hindrance::Until(until)),
            Ports::Any if !has_room => Some(Hindrance::Until(now + IDLE)),
            Ports::Any => self
                .transfers
                .are_short(transfer, parameters.source_ports.max(1))
                .then(|| Hindrance::Until(self.transfers.next_expiry().unwrap_or(now + IDLE))),
        }
    }

    /// Which ports a request may leave from: one only, or all but some.
    pub(crate) fn ports(&mut self, order: &Order, now: Instant) -> (Option<u32>, Taken) {
        let Some(transfer) = &order.transfer else { return (None, Taken::default()) };
        match self.transfers.ports(transfer, now) {
            Ports::Bound(port) => (Some(port), Taken::default()),
            Ports::Any | Ports::None(_) => (None, self.transfers.taken(transfer.resource)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_whether_all_places_are_of_one_client() {
        let hasher = RandomState::with_seeds(1, 2, 3, 4);
        let clients: Vec<Holder> = (0..4).map(|number| Holder::of(hasher.hash_one(number))).collect();
        let mut random = fastrand::Rng::with_seed(1);
        let (mut places, mut held) = (Places::default(), Vec::new());
        for _ in 0..10_000 {
            if held.len() < 5 && random.bool() {
                held.push(clients[random.usize(..4) / random.usize(1..4)]);
                places.take(held[held.len() - 1]);
            } else if !held.is_empty() {
                places.give(held.swap_remove(random.usize(..held.len())));
            }
            for &client in &clients {
                for least in 1..6 {
                    let holds_all = held.len() >= least && held.iter().all(|&other| other == client);
                    assert_eq!(places.are_all_of(client, least as u32), holds_all, "{held:?}");
                }
            }
        }
    }
}
