//! The pings to one origin: at most one under way.

use coapway_message::ExchangeId;
use coapway_time::Instant;

/// The pings to one origin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pings {
    /// Whether the last exchange of several copies told nothing.
    pub(crate) wanted: bool,
    pub(crate) under_way: Option<ExchangeId>,
    pub(crate) missed: u32,
    /// Whether one was ever answered.
    pub(crate) are_known: bool,
    pub(crate) not_before: Instant,
}

impl Pings {
    /// Whether one is to go with the next request.
    #[inline]
    pub(crate) const fn are_wanted(&self) -> bool {
        self.wanted
    }

    /// Pings under way: none or one.
    pub(crate) fn outstanding(&self) -> u32 {
        u32::from(self.under_way.is_some())
    }
}
