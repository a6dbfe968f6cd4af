//! Names for exchanges, and how one can end without a response.

use std::fmt;

/// One request and its responses on one hop: a slot and how often the slot was used before.
/// Never given out twice by the endpoint that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExchangeId {
    /// The place in the endpoint's table.
    pub slot: u32,
    /// How many exchanges used the place before.
    pub generation: u32,
}

impl fmt::Display for ExchangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// Why an exchange with an origin server ended without a usable response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No response came in time.
    TimedOut,
    /// The peer answered with a Reset.
    Reset,
    /// The network or the host said that nobody listens there.
    Unreachable,
    /// There is no such name, or it has no addresses.
    NotFound,
    /// The name could not be looked up, which says nothing of it: later may do.
    LookUpFailed,
    /// The same since nobody said anything about the name in time.
    LookUpTimedOut,
    /// A response came that cannot be used: format error, unknown Unsafe option, unusable code.
    Unusable,
    /// A limit of ours: the queue towards the origin is full or Message IDs are short.
    Overloaded,
    /// A limit of ours: this client has asked so many origins that others would find no room.
    TooManyOrigins,
    /// The request is larger than a datagram may be.
    TooLarge,
}

impl Failure {
    /// The word for records and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::Reset => "reset",
            Self::Unreachable => "unreachable",
            Self::NotFound => "not-found",
            Self::LookUpFailed => "look-up-failed",
            Self::LookUpTimedOut => "look-up-timeout",
            Self::Unusable => "unusable",
            Self::Overloaded => "overloaded",
            Self::TooManyOrigins => "too-many-origins",
            Self::TooLarge => "too-large",
        }
    }
}

/// What is known about the execution of a request that failed. It only ever grows weaker: see
/// [`Evidence::after`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Evidence {
    /// No copy left; trying again is harmless.
    NotSent,
    /// Exactly one copy left, and it was refused.
    NotExecuted,
    /// A copy may have been executed.
    OutcomeUnknown,
}

impl Evidence {
    /// What can be said when an exchange of which `copies` left ended with `failure`.
    ///
    /// A Reset or an ICMP error after the second copy says nothing about the first, so `NotExecuted`
    /// needs exactly one copy, and one that was not acknowledged: then the origin had taken it.
    pub const fn after(failure: Failure, copies: u32, acknowledged: bool) -> Self {
        match (failure, copies, acknowledged) {
            (_, 0, _) => Self::NotSent,
            // For want of a socket or of room the only copy did not even leave.
            (Failure::Reset | Failure::Unreachable | Failure::Overloaded | Failure::TooLarge, 1, false) => {
                Self::NotExecuted
            }
            _ => Self::OutcomeUnknown,
        }
    }

    /// The word a failure's diagnostic payload begins with.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSent => "not-sent",
            Self::NotExecuted => "not-executed",
            Self::OutcomeUnknown => "outcome-unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_second_copy_says_nothing_of_the_first() {
        assert_eq!(Evidence::after(Failure::Reset, 0, false), Evidence::NotSent);
        assert_eq!(Evidence::after(Failure::Reset, 1, false), Evidence::NotExecuted);
        assert_eq!(Evidence::after(Failure::Reset, 2, false), Evidence::OutcomeUnknown);
        assert_eq!(Evidence::after(Failure::Reset, 1, true), Evidence::OutcomeUnknown);
        assert_eq!(Evidence::after(Failure::Overloaded, 1, false), Evidence::NotExecuted);
        assert_eq!(Evidence::after(Failure::TooLarge, 2, false), Evidence::OutcomeUnknown);
        assert_eq!(Evidence::after(Failure::TimedOut, 1, false), Evidence::OutcomeUnknown);
        assert_eq!(Evidence::after(Failure::Unusable, 1, false), Evidence::OutcomeUnknown);
    }

    #[test]
    fn operators_and_clients_read_these_words() {
        let failures = [
            (Failure::TimedOut, "timeout"),
            (Failure::Reset, "reset"),
            (Failure::Unreachable, "unreachable"),
            (Failure::NotFound, "not-found"),
            (Failure::LookUpFailed, "look-up-failed"),
            (Failure::LookUpTimedOut, "look-up-timeout"),
            (Failure::Unusable, "unusable"),
            (Failure::Overloaded, "overloaded"),
            (Failure::TooManyOrigins, "too-many-origins"),
            (Failure::TooLarge, "too-large"),
        ];
        assert!(failures.iter().all(|(failure, word)| failure.name() == *word));
        let evidence = [
            (Evidence::NotSent, "not-sent"),
            (Evidence::NotExecuted, "not-executed"),
            (Evidence::OutcomeUnknown, "outcome-unknown"),
        ];
        assert!(evidence.iter().all(|(evidence, word)| evidence.name() == *word));
        assert_eq!(ExchangeId { slot: 7, generation: 3 }.to_string(), "7.3");
    }
}
