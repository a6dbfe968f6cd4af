//! What may stand against sending a request to an origin, beside its window.

use std::time::Duration;

use ahash::RandomState;
use coapway_time::Instant;

use crate::order::Order;
use crate::parameters::UpstreamParameters;
use crate::places::{Places, UsedUp};
use crate::probing::Probing;
use crate::transfers::{IDLE, Ports, Taken, Transfers};

/// Why a request has to wait although the window is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// The places left are for others.
    Places(UsedUp),
    /// Not before this time.
    Until(Instant),
}

/// The rules of one origin that look at the request.
#[derive(Debug)]
pub(crate) struct Permits {
    pub(crate) places: Places,
    /// Whether others asked than the site that was the first.
    pub(crate) is_shared: bool,
    pub(crate) probing: Probing,
    pub(crate) transfers: Transfers,
}

impl Permits {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            places: Places::new(hasher.clone()),
            is_shared: false,
            probing: Probing::default(),
            transfers: Transfers::new(hasher),
        }
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
        let is_used_up = self.places.is_used_up((order.site(), order.holder()), window, self.is_shared);
        if let Some(whose) = is_used_up {
            return Some(Hindrance::Places(whose));
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
