//! What may stand against sending a request to an origin, beside its window.

use std::net::SocketAddr;
use std::time::Duration;

use ahash::RandomState;
use coapway_time::Instant;
use hashbrown::HashMap;

use crate::address::AddressKey;
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

/// Room from the start: clients come and go, and a table that is full of their traces is tidied often.
const PLACES: usize = 56;

/// The rules of one origin that look at the request.
#[derive(Debug)]
pub(crate) struct Permits {
    /// Places in the window, by client.
    places: HashMap<AddressKey, u32, RandomState>,
    pub(crate) probing: Probing,
    pub(crate) transfers: Transfers,
}

impl Permits {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            places: HashMap::with_capacity_and_hasher(PLACES, hasher.clone()),
            probing: Probing::default(),
            transfers: Transfers::new(hasher),
        }
    }

    /// What stands against a request now; `window` is the number of places and `outstanding` how many are
    /// taken, `last` the newest round-trip time, and `has_room` says whether there may be one more
    /// transfer.
    pub(crate) fn hindrance(
        &mut self,
        order: &Order,
        parameters: &UpstreamParameters,
        (window, outstanding): (u32, u32),
        last: Option<Duration>,
        has_room: bool,
        now: Instant,
    ) -> Option<Hindrance> {
        let most = window.saturating_sub(1).max(1);
        if outstanding >= most
            && self.places.get(&AddressKey(order.client, 0)).is_some_and(|&held| held >= most)
        {
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
            Ports::Any => {
                let taken = self.transfers.taken(transfer.resource);
                let is_free = (0..parameters.source_ports.max(1)).any(|port| !taken.contains(port));
                (!is_free).then(|| Hindrance::Until(self.transfers.next_end().unwrap_or(now)))
            }
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

    /// A client takes a place in the window.
    pub(crate) fn take_place(&mut self, client: SocketAddr) {
        *self.places.entry(AddressKey(client, 0)).or_insert(0) += 1;
    }

    /// It gives one back.
    pub(crate) fn give_place(&mut self, client: &SocketAddr) {
        if let Some(held) = self.places.get_mut(&AddressKey(*client, 0)) {
            *held -= 1;
            if *held == 0 {
                self.places.remove(&AddressKey(*client, 0));
            }
        }
    }

    /// Places taken by all clients together.
    pub(crate) fn places(&self) -> u32 {
        self.places.values().sum()
    }
}
