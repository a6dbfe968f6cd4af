//! The words of an answer.

use std::fmt;

use coapway_message::OptionNumber;
use coapway_message::uri::{Scheme, UriError};

/// The text of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// Fixed words.
    Words(&'static str),
    /// Our identifier.
    Identifier,
    /// An option is at fault.
    Option(OptionNumber, Fault),
    /// A scheme is at fault.
    Scheme(Scheme),
    /// The Proxy-Uri is at fault.
    Uri(UriError),
}

/// Why an option counts as unrecognised (RFC 7252 §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is unknown.
    Unknown,
    /// Its value is empty and must not be.
    Empty,
    /// Its value is longer than it may be.
    TooLong,
    /// It must occur only once.
    Repeated,
    /// It has no meaning in this request.
    Misplaced,
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(words),
            Self::Identifier => Ok(()),
            Self::Option(number, Fault::Unknown) => write!(f, "option {} not supported here", number.0),
            Self::Option(number, Fault::Empty) => write!(f, "{number} is empty"),
            Self::Option(number, Fault::TooLong) => match number.longest() {
                Some(0) | None => write!(f, "{number} has a value"),
                Some(1) => write!(f, "{number} is longer than 1 byte"),
                Some(longest) => write!(f, "{number} is longer than {longest} bytes"),
            },
            Self::Option(number, Fault::Repeated) => write!(f, "{number} occurs twice"),
            Self::Option(number, Fault::Misplaced) => write!(f, "{number} has no meaning in this request"),
            Self::Scheme(scheme) => write!(f, "scheme {scheme} not supported"),
            Self::Uri(error) => write!(f, "Proxy-Uri: {error}"),
        }
    }
}
