//! One request of a client and all that becomes of it.

use coapway_time::Instant;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Confirmable GET.
    Get,
    /// Confirmable POST.
    Post,
    /// Non-confirmable GET.
    Non,
}

/// How it ended for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has not.
    Open,
    /// With a 2.xx.
    Answered,
    /// With anything else.
    Refused,
    /// With an answer that says nobody knows what happened.
    Unknown,
    /// With nothing.
    Silence,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) client: u32,
    /// Which of the client's.
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    /// Its chance hangs on it.
    pub(crate) errand: u64,
    pub(crate) level: f64,
    pub(crate) asked: Instant,
    pub(crate) settled: Instant,
    pub(crate) outcome: Outcome,
    /// Copies that the client sent, and whether one was acknowledged.
    pub(crate) client_copies: u8,
    pub(crate) acknowledged: bool,
    /// Seconds.
    pub(crate) client_timeout: f64,
    /// Messages to the client.
    pub(crate) to_client: u16,
    /// Copies that left for the origin.
    pub(crate) copies: u16,
    /// When the first did.
    pub(crate) sent: Instant,
    /// The first copy to which something came back.
    pub(crate) first_heard: u16,
    /// How often it was executed.
    pub(crate) executions: u16,
}

impl Exchange {
    /// Copies that left although an earlier one was heard, or will be.
    pub(crate) const fn spurious(&self) -> u16 {
        match self.first_heard {
            u16::MAX => 0,
            first => self.copies.saturating_sub(first + 1),
        }
    }
}
