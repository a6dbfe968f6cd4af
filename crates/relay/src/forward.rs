//! Options that may pass and options to rewrite, in both directions (RFC 7252 §5.4, §5.7).
//!
//! What is safe to forward passes byte for byte, known or not; an Unsafe option passes when it is
//! listed here. Lists that need no change are handed on as they came.

mod hop_limit;
mod insertion;
mod request;
mod request_tag;
mod response;

use coapway_message::OptionNumber;

pub use hop_limit::{with_hop_limit, without_hop_limit};
pub(crate) use request::{Request, Resource};
pub use request_tag::with_request_tag;
pub use response::{Relayed, relay_response};

use crate::answer::Fault;

/// Uri-Path-Abbrev (draft-ietf-core-uri-path-abbrev): safe to forward, and stands for a path.
pub(crate) const URI_PATH_ABBREV: OptionNumber = OptionNumber(13);

/// What is wrong with an option that does not keep to its definition; it counts as unrecognised.
///
/// Source: RFC 7252 §5.4.3, §5.4.5.
pub(crate) fn fault(number: OptionNumber, value: &[u8], surplus: bool) -> Option<Fault> {
    if !number.allows_length(value.len()) {
        return Some(if value.is_empty() { Fault::Empty } else { Fault::TooLong });
    }
    (surplus && !number.is_repeatable()).then_some(Fault::Repeated)
}

fn is_dot_segment(value: &[u8]) -> bool {
    matches!(value, b"." | b"..")
}

#[cfg(test)]
mod tests;
