//! What is sent and what can come of it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_message::{Content, Evidence, Failure, OwnedContent};

/// What to send.
#[derive(Clone, Copy, Debug)]
pub(super) enum What<'r> {
    Request {
        confirmable: bool,
        /// The token to ask with; one is made where there is none.
        token: Option<&'r [u8]>,
        content: Content<'r>,
    },
    Ping,
}

/// What came back.
#[derive(Debug)]
pub(super) enum Answer {
    Response(OwnedContent),
    /// To a ping; the round-trip time is known when one copy was enough.
    Alive {
        peer: SocketAddr,
        round_trip: Option<Duration>,
    },
}

/// An exchange that ended without an answer.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) peer: SocketAddr,
    pub(super) why: Why,
    pub(super) copies: u32,
    pub(super) acknowledged: bool,
}

#[derive(Debug)]
pub(super) enum Why {
    /// The message layer gave it up.
    Failure(Failure),
    /// The system cannot send, or knows that nobody listens.
    Socket(io::Error),
}

impl Ended {
    pub(super) const fn evidence(&self) -> Evidence {
        match self.why {
            Why::Failure(failure) => Evidence::after(failure, self.copies, self.acknowledged),
            Why::Socket(_) => Evidence::after(Failure::Unreachable, self.copies, self.acknowledged),
        }
    }

    /// Whether another address may be asked: this one refused at once. Silence proves nothing.
    pub(super) const fn allows_another_address(&self) -> bool {
        matches!(self.why, Why::Socket(_)) && !matches!(self.evidence(), Evidence::OutcomeUnknown)
    }
}
