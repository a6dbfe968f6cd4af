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
}

impl Cause {
    /// The word for records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Origin => "ok",
            Self::Refused => "refused",
            Self::Failed(failure) => failure.name(),
        }
    }
}
