//! What we answer ourselves: one table of refusals, one of failures.
//!
//! A text is short and fixed. It names nothing the client did not send and nothing of ours beyond
//! [`IDENTIFIER`]. It has no Content-Format, which makes it a diagnostic (RFC 7252 §5.5.2).

use std::fmt;
use std::io::Write as _;

use coapway_message::uri::{Scheme, UriError};
use coapway_message::{Code, Content, Evidence, Failure, OptionNumber, Options, OptionsWriter};

/// Who we are in a 5.08 (RFC 8768 §4); it must not contain a space.
pub const IDENTIFIER: &str = "coapway";

/// Seconds after which a client that met a limit of ours may try again.
const RETRY_AFTER: u32 = 5;

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
        }
    };
}

refusals! {
    /// A method we do not know.
    METHOD METHOD_NOT_ALLOWED 0 "method not supported";
    /// Nothing of ours is at that path.
    NOT_FOUND NOT_FOUND 0 "no such resource";
    /// A Hop-Limit of 0 or of a wrong form (RFC 8768 §3).
    HOP_LIMIT BAD_REQUEST 0 "Hop-Limit must be 1 to 255";
    /// The last hop was ours (RFC 8768 §3, §4).
    HOP_LIMIT_REACHED HOP_LIMIT_REACHED 0 IDENTIFIER;
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
    /// An option that must not be forwarded, or not like this (RFC 7252 §5.7.1).
    pub const fn option(number: OptionNumber) -> Self {
        Self { code: Code::BAD_OPTION, max_age: 0, text: Text::Option(number) }
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

    /// The answer, in `scratch`.
    pub fn write<'s>(&self, scratch: &'s mut Vec<u8>) -> Content<'s> {
        Answer::from(*self).write(scratch)
    }
}

/// The text of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// Fixed words.
    Words(&'static str),
    /// An option is at fault.
    Option(OptionNumber),
    /// A scheme is at fault.
    Scheme(Scheme),
    /// The Proxy-Uri is at fault.
    Uri(UriError),
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(words),
            Self::Option(number) => write!(f, "option {} not supported here", number.0),
            Self::Scheme(scheme) => write!(f, "scheme {scheme} not supported"),
            Self::Uri(error) => write!(f, "Proxy-Uri: {error}"),
        }
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
            Failure::Unusable => (Code::BAD_GATEWAY, 0, "unusable answer"),
            Failure::Overloaded => (Code::SERVICE_UNAVAILABLE, RETRY_AFTER, "overloaded"),
            Failure::TooLarge => (Code::REQUEST_ENTITY_TOO_LARGE, 0, "request too large"),
        };
        Self { code, max_age, evidence: Some(evidence), text: Text::Words(words) }
    }

    /// Writes it to `scratch`, which is cleared.
    pub fn write<'s>(&self, scratch: &'s mut Vec<u8>) -> Content<'s> {
        scratch.clear();
        let mut options = OptionsWriter::new(scratch);
        options.push_uint(OptionNumber::MAX_AGE, self.max_age);
        scratch.push(0xFF);
        let evidence = self.evidence.map_or("", Evidence::name);
        let separator = if evidence.is_empty() { "" } else { ": " };
        write!(scratch, "{evidence}{separator}{}", self.text).expect("a Vec takes every byte");
        let (options, payload) = Options::parse(scratch).unwrap_or((Options::NONE, &[]));
        Content { code: self.code, options, payload }
    }
}

impl From<Refusal> for Answer {
    /// A 5.xx says that nothing left; a 5.08 has room for identifiers only (RFC 8768 §4).
    fn from(Refusal { code, max_age, text }: Refusal) -> Self {
        let says_evidence = code.class() == 5 && code != Code::HOP_LIMIT_REACHED;
        Self { code, max_age, evidence: says_evidence.then_some(Evidence::NotSent), text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &Content<'_>) -> String {
        String::from_utf8(content.payload.to_vec()).expect("texts are ASCII")
    }

    #[test]
    fn a_failure_has_its_code_and_begins_with_the_evidence() {
        let mut scratch = Vec::new();
        for (failure, code) in [
            (Failure::TimedOut, Code::GATEWAY_TIMEOUT),
            (Failure::Reset, Code::BAD_GATEWAY),
            (Failure::Unreachable, Code::BAD_GATEWAY),
            (Failure::NotFound, Code::BAD_GATEWAY),
            (Failure::Unusable, Code::BAD_GATEWAY),
            (Failure::Overloaded, Code::SERVICE_UNAVAILABLE),
            (Failure::TooLarge, Code::REQUEST_ENTITY_TOO_LARGE),
        ] {
            for evidence in [Evidence::NotSent, Evidence::NotExecuted, Evidence::OutcomeUnknown] {
                let content = Answer::for_failure(failure, evidence).write(&mut scratch);
                assert_eq!(content.code, code, "{failure:?}");
                let text = text(&content);
                assert!(text.starts_with(&format!("{}: ", evidence.name())), "{text}");
                assert!(text.is_ascii() && text.len() < 60, "{text}");
            }
        }
    }

    #[test]
    fn max_age_is_explicit_and_zero_where_no_limit_of_ours_was_met() {
        let mut scratch = Vec::new();
        let content = Answer::for_failure(Failure::TimedOut, Evidence::NotSent).write(&mut scratch);
        assert_eq!(content.options.as_encoded(), [0xD0, 0x01]);
        for refusal in [Refusal::OVERLOADED, Refusal::DRAINING, Refusal::TOO_FAST] {
            let content = refusal.write(&mut scratch);
            assert_eq!(content.options.uint(OptionNumber::MAX_AGE), Some(RETRY_AFTER));
            assert_eq!(content.options.iter().count(), 1);
        }
    }

    #[test]
    fn only_server_errors_say_that_nothing_left() {
        let mut scratch = Vec::new();
        assert_eq!(text(&Refusal::TARGET.write(&mut scratch)), "not-sent: target not allowed");
        assert_eq!(
            text(&Refusal::scheme(Scheme::Coaps).write(&mut scratch)),
            "not-sent: scheme coaps not supported"
        );
        assert_eq!(text(&Refusal::MULTICAST.write(&mut scratch)), "not-sent: multicast is not forwarded");
        assert_eq!(text(&Refusal::METHOD.write(&mut scratch)), "method not supported");
        assert_eq!(
            text(&Refusal::option(OptionNumber(65003)).write(&mut scratch)),
            "option 65003 not supported here"
        );
        assert_eq!(text(&Refusal::uri(UriError::Fragment).write(&mut scratch)), "Proxy-Uri: fragment");
    }

    #[test]
    fn a_reached_hop_limit_carries_our_identifier_alone() {
        let mut scratch = Vec::new();
        let content = Refusal::HOP_LIMIT_REACHED.write(&mut scratch);
        assert_eq!((content.code, text(&content)), (Code::HOP_LIMIT_REACHED, IDENTIFIER.to_owned()));
    }
}
