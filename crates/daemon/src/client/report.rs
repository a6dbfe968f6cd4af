//! What the person at the terminal gets to see.

use std::io;
use std::time::Duration;

use coapway_message::{Code, Content, Evidence, Failure, Method, OptionNumber};

use super::outcome::{Answer, Ended, What, Why};
use super::request::Role;
use super::value::{printable, show as show_value};
use super::{Console, Exit, Trouble};

/// Block2's bit for "more blocks follow" (RFC 7959 §2.2).
const MORE: u32 = 8;

/// Shows an answer.
///
/// Errors: a response that has to be rejected, or standard output cannot be written.
pub(super) fn show(answer: &Answer, console: &mut Console<'_>) -> Result<Exit, Trouble> {
    match answer {
        Answer::Response(content) => show_response(&content.as_content(), console),
        Answer::Alive { peer, round_trip } => {
            let line = match round_trip {
                Some(time) => format!("{peer} is alive, round trip {:.3} ms\n", time.as_secs_f64() * 1e3),
                // Which copy was answered cannot be told.
                None => format!("{peer} is alive, round trip unknown: several copies left\n"),
            };
            write(line.as_bytes(), console)?;
            Ok(Exit::Success)
        }
    }
}

/// The first option that must be understood and is not.
pub(super) fn unknown_critical(content: &Content<'_>) -> Option<OptionNumber> {
    //= https://www.rfc-editor.org/rfc/rfc7252#section-5.4.1
    //# Unrecognized options of class "critical" that occur in a
    //# Confirmable response, or piggybacked in an Acknowledgement,
    //# MUST cause the response to be rejected.
    let mut numbers = content.options.iter().map(|(number, _)| number);
    numbers.find(|number| number.is_critical() && number.name().is_none())
}

/// Shows a response or a notification.
///
/// Errors: as [`show`].
pub(super) fn show_response(content: &Content<'_>, console: &mut Console<'_>) -> Result<Exit, Trouble> {
    let &Content { code, options, payload } = content;
    if let Some(number) = unknown_critical(content) {
        let what = format!("the response {code} carries the critical option {number}, which is unknown here");
        return Err(Trouble::failed(what, "what it means cannot be guessed, so the response is not shown"));
    }
    let is_diagnostic = !code.is_success() && options.first(OptionNumber::CONTENT_FORMAT).is_none();
    if !code.is_success() || console.verbose {
        let name = name(code);
        let separator = if name.is_empty() { "" } else { " " };
        if is_diagnostic && !payload.is_empty() {
            console.note(format_args!("{code}{separator}{name}: {}", printable(payload)));
        } else {
            console.note(format_args!("{code}{separator}{name}"));
        }
        for (number, value) in options {
            console.note(format_args!("  {number}: {}", show_value(number, value)));
        }
    }
    if !is_diagnostic {
        write(payload, console)?;
        if console.ends_lines && payload.last().is_some_and(|&byte| byte != b'\n') {
            write(b"\n", console)?;
        }
    }
    if options.uint(OptionNumber::BLOCK2).is_some_and(|block| block & MORE != 0) {
        console.note("coapway: only one block was fetched, and there are more");
        console.note("  hint: block-wise transfer is not there yet");
    }
    Ok(if code.is_success() { Exit::Success } else { Exit::Failed })
}

fn write(bytes: &[u8], console: &mut Console<'_>) -> Result<(), Trouble> {
    match console.output.write_all(bytes).and_then(|()| console.output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            console.reader_left = true;
            Ok(())
        }
        written => {
            written.map_err(|error| Trouble::failed(format!("cannot write to standard output: {error}"), ""))
        }
    }
}

/// Says why there is no answer.
pub(super) fn explain(ended: &Ended, role: Role, what: What<'_>, timeout: Duration) -> Trouble {
    let Ended { peer, why, copies, acknowledged } = ended;
    let role = role.name();
    let longer = "--timeout waits longer";
    let (mut text, hint) = match why {
        Why::Socket(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            (format!("nobody listens at {peer}: connection refused"), format!("is the {role} running?"))
        }
        Why::Socket(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => (
            "the request does not fit into a datagram".to_owned(),
            "block-wise transfer is not there yet; make the payload smaller".to_owned(),
        ),
        Why::Socket(error) => {
            (format!("cannot reach {peer}: {error}"), format!("is there a way to the {role} from here?"))
        }
        Why::Failure(Failure::TimedOut) if *acknowledged => {
            (format!("{peer} acknowledged the request and did not answer within {timeout:?}"), longer.into())
        }
        Why::Failure(Failure::TimedOut) => (
            format!("no answer from {peer} within {timeout:?}, copies sent: {copies}"),
            format!("is the {role} running there, and does a firewall let it through? {longer}"),
        ),
        Why::Failure(Failure::Reset) => (
            format!("{peer} rejected the request with a Reset"),
            format!("is it the {role}, and did it just restart?"),
        ),
        Why::Failure(Failure::Unusable) => {
            (format!("{peer} answered with a message that cannot be read"), String::new())
        }
        Why::Failure(
            failure @ (Failure::Unreachable
            | Failure::NotFound
            | Failure::LookUpFailed
            | Failure::LookUpTimedOut
            | Failure::Overloaded
            | Failure::TooManyOrigins
            | Failure::TooLarge),
        ) => (format!("no answer from {peer}: {}", failure.name()), String::new()),
    };
    let may_have_acted = match what {
        What::Request { content, .. } => Method::from_code(content.code).is_none_or(|m| !m.is_safe()),
        What::Ping => false,
    };
    if may_have_acted && ended.evidence() == Evidence::OutcomeUnknown {
        text.push_str("; the request may have been carried out");
    }
    Trouble::failed(text, hint)
}

/// What the registry calls a response code; nothing for one it does not know.
const fn name(code: Code) -> &'static str {
    match code {
        Code::CREATED => "Created",
        Code::DELETED => "Deleted",
        Code::VALID => "Valid",
        Code::CHANGED => "Changed",
        Code::CONTENT => "Content",
        Code::CONTINUE => "Continue",
        Code::BAD_REQUEST => "Bad Request",
        Code::UNAUTHORIZED => "Unauthorized",
        Code::BAD_OPTION => "Bad Option",
        Code::FORBIDDEN => "Forbidden",
        Code::NOT_FOUND => "Not Found",
        Code::METHOD_NOT_ALLOWED => "Method Not Allowed",
        NOT_ACCEPTABLE => "Not Acceptable",
        Code::REQUEST_ENTITY_INCOMPLETE => "Request Entity Incomplete",
        Code::CONFLICT => "Conflict",
        Code::PRECONDITION_FAILED => "Precondition Failed",
        Code::REQUEST_ENTITY_TOO_LARGE => "Request Entity Too Large",
        UNSUPPORTED_CONTENT_FORMAT => "Unsupported Content-Format",
        Code::UNPROCESSABLE_ENTITY => "Unprocessable Entity",
        Code::TOO_MANY_REQUESTS => "Too Many Requests",
        Code::INTERNAL_SERVER_ERROR => "Internal Server Error",
        Code::NOT_IMPLEMENTED => "Not Implemented",
        Code::BAD_GATEWAY => "Bad Gateway",
        Code::SERVICE_UNAVAILABLE => "Service Unavailable",
        Code::GATEWAY_TIMEOUT => "Gateway Timeout",
        Code::PROXYING_NOT_SUPPORTED => "Proxying Not Supported",
        Code::HOP_LIMIT_REACHED => "Hop Limit Reached",
        _ => "",
    }
}

const NOT_ACCEPTABLE: Code = Code::new(4, 6);
const UNSUPPORTED_CONTENT_FORMAT: Code = Code::new(4, 15);
