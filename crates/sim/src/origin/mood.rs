//! What an origin does with requests.

use std::time::Duration;

use coapway_message::Code;

/// What an origin does with the requests of one key. All copies meet the same mood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Answers after this long: in the Acknowledgement, or separately when that has left.
    Answers(Duration),
    /// Answers with this code.
    Refuses(Code),
    /// Answers with this code and the seconds that are left as Max-Age, and executes nothing, until so
    /// long after the first request of the key; then it answers at once.
    Busy(Code, Duration),
    /// Acknowledges and never answers.
    Forgets,
    /// Says nothing at all.
    Ignores,
    /// Rejects with a Reset; ignores what is Non-confirmable.
    Resets,
    /// Answers with the right token and broken options.
    Babbles,
    /// Executes the first copy, loses its answer and its memory, and rejects what comes when it is up
    /// again.
    Reboots,
}

/// Whether an origin recognises duplicates (RFC 7252 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It does, as an `Endpoint` does, until it restarts.
    Deduplicates,
    /// Each copy is a request to it, and it answers in the Acknowledgement.
    None,
}
