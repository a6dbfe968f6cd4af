//! An origin's response, as the client gets to see it.

use coapway_message::{Code, Content, Failure, OptionNumber, Options, OptionsWriter};

use super::{fault, is_dot_segment};
use crate::block::Block;
use crate::parameters::{Parameters, Route};

/// The longest diagnostic of a 5.08 after our identifier was added (RFC 8768 §4, RFC 7252 §4.6).
const MAX_HOPS_TEXT: usize = 1024;

/// What goes to the client for a response that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relayed<'s> {
    /// The response.
    pub content: Content<'s>,
    /// Whether it is a 5.08 that names us already: the request went round in a loop (RFC 8768 §4).
    pub is_loop: bool,
}

/// What goes to the client for a response that came in.
///
/// `route` is the reverse route the request took. The result borrows `content` where nothing had to
/// change and `scratch`, which is cleared, where something had.
/// Errors: [`Failure::Unusable`] for an Unsafe option we do not know or that belongs into requests, a
///         code that is none of a response, a reserved block size, and a Location-Path of `.` or `..`.
/// Source: RFC 7252 §5.5, §5.7.1, §5.10.7; RFC 7959 §2.2; RFC 8768 §4.
pub fn relay_response<'s>(
    parameters: &Parameters,
    route: Option<&Route>,
    content: &Content<'s>,
    scratch: &'s mut Vec<u8>,
) -> Result<Relayed<'s>, Failure> {
    let Content { code, options, payload } = *content;
    if !code.is_response() {
        return Err(Failure::Unusable);
    }
    let checked = check_response(&options)?;
    let payload = if matches!(code, Code::VALID | Code::CONTINUE) { &[] } else { payload };
    let prefix = match route {
        Some(route) if route.strip && code == Code::CREATED && checked.has_location_path => &*route.path,
        Some(_) | None => &[],
    };
    let identifier = parameters.identifier.as_bytes();
    let lists_hops = code == Code::HOP_LIMIT_REACHED && !checked.is_structured && !identifier.is_empty();
    let is_loop = lists_hops && payload.split(|&byte| byte == b' ').any(|hop| hop == identifier);
    let adds_identifier = lists_hops && payload.len() + identifier.len() < MAX_HOPS_TEXT;
    if !checked.drops_observe && prefix.is_empty() && !adds_identifier {
        return Ok(Relayed { content: Content { code, options, payload }, is_loop });
    }
    if !adds_identifier {
        let options = rewrite_response(&options, prefix, scratch);
        return Ok(Relayed { content: Content { code, options, payload }, is_loop });
    }
    rewrite_response(&options, prefix, scratch);
    scratch.push(0xFF);
    scratch.extend_from_slice(identifier);
    if !payload.is_empty() {
        scratch.push(b' ');
        scratch.extend_from_slice(payload);
    }
    let (options, payload) = Options::parse(scratch).map_err(|_| Failure::Unusable)?;
    Ok(Relayed { content: Content { code, options, payload }, is_loop })
}

fn rewrite_response<'s>(
    options: &Options<'_>,
    prefix: &[Box<[u8]>],
    scratch: &'s mut Vec<u8>,
) -> Options<'s> {
    scratch.clear();
    let mut writer = OptionsWriter::new(scratch);
    let mut prefix = prefix.iter();
    for (number, value) in *options {
        if number == OptionNumber::LOCATION_PATH {
            prefix.by_ref().for_each(|segment| writer.push(number, segment));
        }
        if number != OptionNumber::OBSERVE {
            writer.push(number, value);
        }
    }
    writer.finish()
}

struct CheckedResponse {
    drops_observe: bool,
    has_location_path: bool,
    /// Whether the payload is more than a diagnostic text.
    is_structured: bool,
}

fn check_response(options: &Options<'_>) -> Result<CheckedResponse, Failure> {
    let mut checked =
        CheckedResponse { drops_observe: false, has_location_path: false, is_structured: false };
    let mut previous = None;
    for (number, value) in *options {
        let surplus = previous.replace(number) == Some(number);
        if number.is_unsafe() && fault(number, value, surplus).is_some() {
            return Err(Failure::Unusable);
        }
        match number {
            OptionNumber::OBSERVE => checked.drops_observe = true,
            OptionNumber::MAX_AGE => {}
            OptionNumber::BLOCK1 | OptionNumber::BLOCK2 => {
                Block::parse(value).ok_or(Failure::Unusable)?;
                checked.is_structured = true;
            }
            OptionNumber::CONTENT_FORMAT | OptionNumber::OSCORE => checked.is_structured = true,
            OptionNumber::LOCATION_PATH if is_dot_segment(value) => return Err(Failure::Unusable),
            OptionNumber::LOCATION_PATH => checked.has_location_path = true,
            _ if number.is_unsafe() => return Err(Failure::Unusable),
            _ => {}
        }
    }
    Ok(checked)
}
