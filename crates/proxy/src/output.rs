//! All that can go out.

use coapway_endpoint::Transmit;
use coapway_time::Instant;

use crate::event::Event;
use crate::records::Records;

/// What is to be done outside.
#[derive(Debug)]
pub enum Output<'o> {
    /// Send a datagram.
    Transmit(Transmit<'o>),
    /// Look a name up and come back with [`crate::Input::Resolved`] or [`crate::Input::LookUpFailed`].
    LookUp {
        /// The number to come back with.
        lookup: u64,
        /// The name.
        name: Box<str>,
    },
    /// Tell whoever listens.
    Event(Event),
    /// Tell of forwards that have their final answer; only when records are asked for.
    Records(Records<'o>),
    /// Nothing is left to do until then, or until something comes in.
    Wait {
        /// When to come back; never, when there is nothing to wait for.
        until: Option<Instant>,
    },
}
