//! One line of a record file, checked.

mod written;

use std::borrow::Cow;

use smallvec::SmallVec;

pub(crate) use self::written::read;

/// A copy that left for the origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copy {
    /// When, in milliseconds after the request came.
    pub at: f64,
    /// How long an Acknowledgement was waited for, in milliseconds.
    pub wait: f64,
    /// Its Message ID.
    pub message_id: u16,
    /// Whether it is the first of its exchange.
    pub begins: bool,
}

/// How the origin's response came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// In the Acknowledgement.
    Piggybacked,
    /// In a Confirmable message of its own.
    Separate,
    /// In a Non-confirmable one.
    NonConfirmable,
}

/// Where the client's answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The origin.
    Origin,
    /// No response came in time.
    TimedOut,
    /// The origin rejected the request.
    Reset,
    /// Nobody listens there, as ICMP says.
    Unreachable,
    /// The origin's name is unknown.
    NotFound,
    /// Its name could not be looked up.
    LookUpFailed,
    /// Its response could not be used.
    Unusable,
    /// A limit of the proxy.
    Overloaded,
    /// Any other.
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
    pub const fn told(self) -> &'static str {
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
pub const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH"];

/// A forward, as far as it says something about the path. Times are in milliseconds after the request came,
/// unless said otherwise.
#[derive(Debug, PartialEq)]
pub struct Forward<'l> {
    /// When the request came, in µs since 1970.
    pub received: i64,
    /// Counts the forwards of a process.
    pub id: u64,
    /// Who asked; empty where the record does not tell.
    pub client: Cow<'l, str>,
    /// Letters, digits, `-` and `_`.
    pub upstream: Cow<'l, str>,
    /// Where it went, an address and a port; nothing where no copy left.
    pub origin: Option<Cow<'l, str>>,
    /// Its place in [`METHODS`]; behind the last for any other.
    pub method: usize,
    /// Whether its copies are Confirmable.
    pub confirmable: bool,
    /// What left for the origin, first to last.
    pub copies: SmallVec<[Copy; 4]>,
    /// When the first Acknowledgement came.
    pub first_ack: Option<f64>,
    /// The Message ID it carried, where the record tells.
    pub first_ack_id: Option<u16>,
    /// Acknowledgements that came before the answer.
    pub acks: u64,
    /// What came after the answer, where the record tells.
    pub late: Option<u64>,
    /// How the response came; nothing without one.
    pub answer: Option<Answer>,
    /// How many exchanges were allowed at a time.
    pub window: u32,
    /// How long it waited for room there.
    pub queued: f64,
    /// The code's byte.
    pub code: u8,
    /// Where the client's answer came from.
    pub cause: Cause,
    /// Whether the origin may have carried it out although it failed.
    pub outcome_unknown: bool,
    /// Until the client had its answer.
    pub total: f64,
    /// Options and payload of the client's request, in bytes.
    pub bytes: u32,
}

impl Forward<'_> {
    /// Whether the origin may execute it once only.
    pub fn is_once(&self) -> bool {
        matches!(METHODS.get(self.method), Some(&("POST" | "PATCH")))
    }

    /// Whether its copies were refused, by ICMP or by a Reset: they were not lost, and nothing acknowledged them.
    pub fn is_rejected(&self) -> bool {
        matches!(self.cause, Cause::Unreachable | Cause::Reset) && self.first_ack.is_none()
    }
}

/// What a line is.
#[derive(Debug, PartialEq)]
pub enum Line<'l> {
    /// A request that was forwarded.
    Forward(Box<Forward<'l>>),
    /// So many requests that were answered without a forward.
    Refused(u64),
}

/// Why a line cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bad {
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
    pub const fn told(self) -> &'static str {
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
    pub const fn name(self) -> &'static str {
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

/// A line that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRecord {
    /// What is wrong.
    pub bad: Bad,
    /// The same in the words of whoever found it; what the line says may be in it.
    pub why: String,
}

impl NoRecord {
    pub(crate) fn too_long(most: usize) -> Self {
        Self { bad: Bad::TooLong, why: format!("more than {most} bytes") }
    }
}

#[cfg(test)]
mod tests;
