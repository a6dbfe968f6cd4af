//! What we answer ourselves: one table of refusals, one of failures.
//!
//! A text is short and fixed. It names nothing the client did not send and nothing of ours beyond our
//! identifier in a 5.08. It has no Content-Format, which makes it a diagnostic (RFC 7252 §5.5.2).

mod text;

use std::io::Write as _;
use std::time::Duration;

use coapway_message::uri::{Scheme, UriError};
use coapway_message::{Code, Content, Evidence, Failure, OptionNumber, Options, OptionsWriter};

pub use text::{Fault, Text};

/// Seconds after which a client that met a limit of ours may try again.
const RETRY_AFTER: u32 = 5;

/// What stands between options and payload (RFC 7252 §3).
const PAYLOAD_MARKER: u8 = 0xFF;

/// A request that was refused before anything left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The response code.
    pub code: Code,
    /// Max-Age in seconds.
    pub max_age: u32,
    /// Why.
    pub text: Text,
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident $code:ident $max_age:tt $text:expr;)*) => {
        impl Refusal {
            $(
                $(#[$doc])*
                pub const $name: Self =
                    Self { code: Code::$code, max_age: $max_age, text: Text::Words($text) };
            )*

            /// Those with fixed words.
            #[cfg(test)]
            const FIXED: &[Self] = &[$(Self::$name),*];
        }
    };
}

refusals! {
    /// A method we do not know.
    METHOD METHOD_NOT_ALLOWED 0 "method not supported";
    /// Nothing of ours is at that path.
    NOT_FOUND NOT_FOUND 0 "no such resource";
    /// A method that a resource of ours does not have.
    NO_SUCH_METHOD METHOD_NOT_ALLOWED 0 "only GET";
    /// A representation we do not have.
    NOT_ACCEPTABLE NOT_ACCEPTABLE 0 "only application/link-format";
    /// A condition that does not hold for a resource of ours.
    PRECONDITION PRECONDITION_FAILED 0 "precondition failed";
    /// The answer is longer than an address may get that nobody has verified (RFC 9175 §2.4).
    UNVERIFIED UNAUTHORIZED 0 "address not verified";
    /// A Hop-Limit of 0 or of a wrong form (RFC 8768 §3).
    HOP_LIMIT BAD_REQUEST 0 "Hop-Limit must be 1 to 255";
    /// A block size that does not exist here (RFC 7959 §2.2).
    BLOCK_SIZE BAD_REQUEST 0 "block size 7 is reserved";
    /// A block behind the last one of a body of ours.
    BLOCK_NUMBER BAD_REQUEST 0 "no such block";
    /// More filters for a list of links than anybody needs (RFC 6690 §4.1).
    FILTERS BAD_REQUEST 0 "too many filters";
    /// A Uri-Path of `.` or `..` (RFC 7252 §5.10.1).
    DOT_SEGMENT BAD_OPTION 0 "Uri-Path must not be . or ..";
    /// A Uri-Host that is no host (RFC 7252 §6.5).
    URI_HOST BAD_OPTION 0 "Uri-Host is not a host";
    /// Proxy-Uri with Proxy-Scheme.
    TWO_TARGETS BAD_OPTION 0 "Proxy-Uri and Proxy-Scheme exclude each other";
    /// A multicast target.
    MULTICAST NOT_IMPLEMENTED 0 "multicast is not forwarded";
    /// Forwarding is off, or not for this client.
    FORWARDING PROXYING_NOT_SUPPORTED 0 "forwarding not allowed";
    /// Forwarding to this target is not allowed.
    TARGET PROXYING_NOT_SUPPORTED 0 "target not allowed";
    /// A route whose upstream has no authority.
    NO_UPSTREAM PROXYING_NOT_SUPPORTED 0 "route leads nowhere";
    /// A Proxy-Scheme we do not know.
    UNKNOWN_SCHEME PROXYING_NOT_SUPPORTED 0 "unknown scheme";
    /// A datagram longer than we take.
    TOO_LARGE REQUEST_ENTITY_TOO_LARGE 0 "datagram too large";
    /// A limit of ours that concerns everybody.
    OVERLOADED SERVICE_UNAVAILABLE RETRY_AFTER "overloaded";
    /// We are about to stop.
    DRAINING SERVICE_UNAVAILABLE RETRY_AFTER "shutting down";
    /// This client is too fast (RFC 8516).
    TOO_FAST TOO_MANY_REQUESTS RETRY_AFTER "too many requests";
}

impl Refusal {
    /// The last hop was ours: a loop, or a client that asked for no more of them (RFC 8768 §3, §4).
    pub const HOP_LIMIT_REACHED: Self =
        Self { code: Code::HOP_LIMIT_REACHED, max_age: 0, text: Text::Identifier };

    /// [`Self::DRAINING`] for a stop that takes `left` longer: who comes back then may find whoever comes
    /// after us.
    pub fn draining(left: Duration) -> Self {
        let seconds = u32::try_from(left.as_micros().div_ceil(1_000_000)).unwrap_or(u32::MAX);
        Self { max_age: seconds.max(RETRY_AFTER), ..Self::DRAINING }
    }

    /// An option that is not recognised, or not like this (RFC 7252 §5.4.1, §5.7.1).
    pub const fn option(number: OptionNumber, fault: Fault) -> Self {
        Self { code: Code::BAD_OPTION, max_age: 0, text: Text::Option(number, fault) }
    }

    /// A scheme we know and do not speak.
    pub const fn scheme(scheme: Scheme) -> Self {
        Self { code: Code::PROXYING_NOT_SUPPORTED, max_age: 0, text: Text::Scheme(scheme) }
    }

    /// A Proxy-Uri that cannot be used.
    pub const fn uri(error: UriError) -> Self {
        match error {
            UriError::UnknownScheme => Self::UNKNOWN_SCHEME,
            UriError::NotAbsolute
            | UriError::Fragment
            | UriError::UserInfo
            | UriError::EmptyHost
            | UriError::ZoneId
            | UriError::PercentEncoding
            | UriError::Port
            | UriError::SegmentTooLong
            | UriError::Syntax => Self { code: Code::BAD_OPTION, max_age: 0, text: Text::Uri(error) },
        }
    }

    /// Whether the request may have come round in a loop, which is worth an alert (RFC 8768 §3) where there
    /// is more to show for it: any client may send a Hop-Limit of 1.
    pub fn may_be_loop(&self) -> bool {
        *self == Self::HOP_LIMIT_REACHED
    }
}

/// A response of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The response code.
    pub code: Code,
    /// Max-Age in seconds; always explicit, since a 5.xx without it is fresh for 60 s.
    pub max_age: u32,
    /// What is known of the request's execution, where the text says so.
    pub evidence: Option<Evidence>,
    /// Why.
    pub text: Text,
}

impl Answer {
    /// The answer to a request whose exchange with the origin ended without a response.
    pub const fn for_failure(failure: Failure, evidence: Evidence) -> Self {
        let (code, max_age, words) = match failure {
            Failure::TimedOut => (Code::GATEWAY_TIMEOUT, 0, "no answer in time"),
            Failure::Reset => (Code::BAD_GATEWAY, 0, "rejected with a reset"),
            Failure::Unreachable => (Code::BAD_GATEWAY, 0, "origin unreachable"),
            Failure::NotFound => (Code::BAD_GATEWAY, 0, "name not found"),
            Failure::LookUpFailed => (Code::BAD_GATEWAY, 0, "name look-up failed"),
            Failure::LookUpTimedOut => (Code::GATEWAY_TIMEOUT, 0, "name look-up timed out"),
            Failure::Unusable => (Code::BAD_GATEWAY, 0, "unusable answer"),
            Failure::Overloaded => (Code::SERVICE_UNAVAILABLE, RETRY_AFTER, "overloaded"),
            Failure::TooManyOrigins => (Code::SERVICE_UNAVAILABLE, RETRY_AFTER, "too many origins asked"),
            Failure::TooLarge => (Code::REQUEST_ENTITY_TOO_LARGE, 0, "request too large"),
        };
        Self { code, max_age, evidence: Some(evidence), text: Text::Words(words) }
    }

    /// Writes it to `scratch`, which is cleared. `identifier` is ours, for a 5.08.
    pub fn write<'s>(&self, identifier: &str, scratch: &'s mut Vec<u8>) -> Content<'s> {
        scratch.clear();
        let mut options = OptionsWriter::new(scratch);
        options.push_uint(OptionNumber::MAX_AGE, self.max_age);
        let evidence = self.evidence.map_or("", Evidence::name);
        let separator = if evidence.is_empty() { "" } else { ": " };
        let options = scratch.len();
        scratch.push(PAYLOAD_MARKER);
        let written = match self.text {
            Text::Identifier => scratch.write_all(identifier.as_bytes()),
            text @ (Text::Words(_) | Text::Option(..) | Text::Scheme(_) | Text::Uri(_)) => {
                write!(scratch, "{evidence}{separator}{text}")
            }
        };
        written.expect("a Vec takes every byte");
        finish(self.code, options, scratch)
    }
}

/// The message with the options that are in `scratch` and the payload that `write` adds there.
pub(crate) fn compose<'s>(
    code: Code,
    write: impl FnOnce(&mut Vec<u8>),
    scratch: &'s mut Vec<u8>,
) -> Content<'s> {
    let options = scratch.len();
    scratch.push(PAYLOAD_MARKER);
    write(scratch);
    finish(code, options, scratch)
}

/// A message whose options end at `options`, where a marker stands; without a payload it goes.
fn finish(code: Code, options: usize, scratch: &mut Vec<u8>) -> Content<'_> {
    if scratch.len() == options + 1 {
        scratch.truncate(options);
    }
    let (options, payload) = Options::parse(scratch).unwrap_or((Options::NONE, &[]));
    Content { code, options, payload }
}

impl From<Refusal> for Answer {
    /// A 5.xx says that nothing left; a 5.08 has room for identifiers only (RFC 8768 §4).
    fn from(Refusal { code, max_age, text }: Refusal) -> Self {
        let says_evidence = code.class() == 5 && code != Code::HOP_LIMIT_REACHED;
        Self { code, max_age, evidence: says_evidence.then_some(Evidence::NotSent), text }
    }
}

#[cfg(test)]
mod tests;
