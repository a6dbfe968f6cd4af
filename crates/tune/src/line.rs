//! One line of a record file, checked.

mod written;

use std::borrow::Cow;

use smallvec::SmallVec;

pub(crate) use self::written::read;

/// A copy that left for the origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Copy {
    /// When, in milliseconds after the request came.
    pub(crate) at: f64,
    /// How long an Acknowledgement was waited for, in milliseconds.
    pub(crate) wait: f64,
    /// Its Message ID.
    pub(crate) message_id: u16,
    /// Whether it is the first of its exchange.
    pub(crate) begins: bool,
}

/// How the origin's response came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Piggybacked,
    Separate,
    NonConfirmable,
}

/// Where the client's answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    Origin,
    TimedOut,
    Reset,
    Unreachable,
    NotFound,
    LookUpFailed,
    Unusable,
    Overloaded,
    Other,
}

impl Cause {
    fn of(word: &str) -> Self {
        match word {
            "ok" => Self::Origin,
            "timeout" => Self::TimedOut,
            "reset" => Self::Reset,
            "unreachable" => Self::Unreachable,
            "not-found" => Self::NotFound,
            "look-up-failed" | "look-up-timeout" => Self::LookUpFailed,
            "unusable" => Self::Unusable,
            "overloaded" | "too-many-origins" => Self::Overloaded,
            _ => Self::Other,
        }
    }

    /// For people.
    pub(crate) const fn told(self) -> &'static str {
        match self {
            Self::Origin => "answered by the origin",
            Self::TimedOut => "no response in time",
            Self::Reset => "rejected by the origin",
            Self::Unreachable => "nobody listens there",
            Self::NotFound => "name unknown",
            Self::LookUpFailed => "name could not be looked up",
            Self::Unusable => "response unusable",
            Self::Overloaded => "a limit of the proxy",
            Self::Other => "others",
        }
    }
}

/// The methods that are told apart, as records write them.
pub(crate) const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH"];

/// A forward, as far as it says something about the path.
#[derive(Debug, PartialEq)]
pub(crate) struct Forward<'l> {
    /// When the request came, in µs since 1970.
    pub(crate) received: i64,
    pub(crate) id: u64,
    pub(crate) upstream: Cow<'l, str>,
    pub(crate) origin: Option<Cow<'l, str>>,
    /// Its place in [`METHODS`]; behind the last for any other.
    pub(crate) method: usize,
    /// Whether its copies are Confirmable.
    pub(crate) confirmable: bool,
    pub(crate) copies: SmallVec<[Copy; 4]>,
    /// When the first Acknowledgement came.
    pub(crate) first_ack: Option<f64>,
    /// The Message ID it carried, where the record tells.
    pub(crate) first_ack_id: Option<u16>,
    pub(crate) acks: u64,
    /// What came after the answer, where the record tells.
    pub(crate) late: Option<u64>,
    pub(crate) answer: Option<Answer>,
    pub(crate) window: u32,
    pub(crate) queued: f64,
    /// The code's byte.
    pub(crate) code: u8,
    pub(crate) cause: Cause,
    pub(crate) outcome_unknown: bool,
    pub(crate) total: f64,
}

impl Forward<'_> {
    /// Whether the origin may execute it once only.
    pub(crate) fn is_once(&self) -> bool {
        matches!(METHODS.get(self.method), Some(&("POST" | "PATCH")))
    }
}

/// What a line is.
#[derive(Debug, PartialEq)]
pub(crate) enum Line<'l> {
    Forward(Box<Forward<'l>>),
    /// So many requests that were answered without a forward.
    Refused(u64),
}

/// Why a line cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bad {
    /// Longer than any record.
    TooLong,
    /// It ends in the middle of a record.
    CutOff,
    /// No JSON.
    NotJson,
    /// JSON, but not of a kind that is known.
    OtherEvent,
    /// A field is missing, or is not of the type it should be.
    Field,
    /// A field has a value that it cannot have.
    Value,
}

impl Bad {
    /// For people.
    pub(crate) const fn told(self) -> &'static str {
        match self {
            Self::TooLong => "longer than any record",
            Self::CutOff => "cut off",
            Self::NotJson => "no JSON",
            Self::OtherEvent => "an event of another kind",
            Self::Field => "a field that is missing or of the wrong type",
            Self::Value => "a field with an impossible value",
        }
    }

    /// For programs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too-long",
            Self::CutOff => "cut-off",
            Self::NotJson => "not-json",
            Self::OtherEvent => "other-event",
            Self::Field => "field",
            Self::Value => "value",
        }
    }
}

#[cfg(test)]
mod tests;
