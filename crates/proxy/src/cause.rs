//! Where an answer comes from.

use coapway_message::Failure;

/// Where a final answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The origin's response.
    Origin,
    /// We refused the request.
    Refused,
    /// The forward failed.
    Failed(Failure),
    /// A resource of our own.
    Local,
    /// What the origin said before: not to come back yet (RFC 8516 §4, RFC 7252 §5.9.3.4).
    Held,
    /// The origin is down, and another request is the probe.
    Dormant,
    /// The client had given up, or so it seemed.
    ClientGone,
    /// The answer to an equal request of the same client.
    Joined,
    /// The origin's response is more than an unverified address may get (RFC 7252 §11.3).
    Withheld,
}

impl Cause {
    /// The word for records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Origin => "ok",
            Self::Refused => "refused",
            Self::Failed(failure) => failure.name(),
            Self::Local => "local",
            Self::Held => "held",
            Self::Dormant => "dormant",
            Self::ClientGone => "client-gone",
            Self::Joined => "joined",
            Self::Withheld => "withheld",
        }
    }
}
