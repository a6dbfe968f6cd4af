//! Options that may pass and options to rewrite, in both directions (RFC 7252 §5.4, §5.7).
//!
//! What is safe to forward passes byte for byte, known or not; an Unsafe option passes when it is
//! listed here. Lists that need no change are handed on as they came.

use coapway_message::uri::Uri;
use coapway_message::{Code, Content, Failure, Method, OptionNumber, Options, OptionsWriter};

use crate::answer::{IDENTIFIER, Refusal};
use crate::parameters::{Parameters, Route};

/// Uri-Path-Abbrev (draft-ietf-core-uri-path-abbrev): safe to forward, and stands for a path.
const URI_PATH_ABBREV: OptionNumber = OptionNumber(13);

/// The longest diagnostic of a 5.08 after our identifier was added (RFC 8768 §4, RFC 7252 §4.6).
const MAX_HOPS_TEXT: usize = 1024;

/// What the options of a request say to a proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'d> {
    pub(crate) method: Method,
    pub(crate) content: Content<'d>,
    pub(crate) proxy_uri: Option<&'d [u8]>,
    pub(crate) proxy_scheme: Option<&'d [u8]>,
    pub(crate) uri_host: Option<&'d [u8]>,
    pub(crate) uri_port: Option<&'d [u8]>,
    /// Whether the path may be another than the Uri-Path options say.
    pub(crate) is_abbreviated: bool,
    hop_limit: Option<u8>,
    drops_observe: bool,
}

impl<'d> Request<'d> {
    /// Judges the options of a request that is to be forwarded.
    ///
    /// An Unsafe option outside its length range, or that is one too many, or that means nothing in
    /// this request, counts as unrecognised. Observe is dropped: what it asks for is optional.
    /// Source: RFC 7252 §5.4.1 to §5.4.5, §5.7.1, §5.10.1; RFC 7641 §2; RFC 8768 §3.
    pub(crate) fn check(method: Method, content: &Content<'d>) -> Result<Self, Refusal> {
        let mut request = Self {
            method,
            content: *content,
            proxy_uri: None,
            proxy_scheme: None,
            uri_host: None,
            uri_port: None,
            is_abbreviated: false,
            hop_limit: None,
            drops_observe: false,
        };
        let mut previous = None;
        for (number, value) in content.options {
            let surplus = previous.replace(number) == Some(number);
            if !number.is_unsafe() {
                match number {
                    OptionNumber::HOP_LIMIT if !surplus => request.hop_limit = Some(hop_limit(value)?),
                    URI_PATH_ABBREV => request.is_abbreviated = true,
                    _ => {}
                }
                continue;
            }
            if !is_in_form(number, value, surplus) {
                return Err(Refusal::option(number));
            }
            match number {
                OptionNumber::URI_PATH if is_dot_segment(value) => return Err(Refusal::DOT_SEGMENT),
                OptionNumber::URI_PATH
                | OptionNumber::URI_QUERY
                | OptionNumber::BLOCK1
                | OptionNumber::BLOCK2 => {}
                OptionNumber::URI_HOST => request.uri_host = Some(value),
                OptionNumber::URI_PORT => request.uri_port = Some(value),
                OptionNumber::PROXY_URI => request.proxy_uri = Some(value),
                OptionNumber::PROXY_SCHEME => request.proxy_scheme = Some(value),
                OptionNumber::OBSERVE if method.is_safe() => request.drops_observe = true,
                _ => return Err(Refusal::option(number)),
            }
        }
        Ok(request)
    }

    /// The first option that a server without any option beyond the table must reject.
    ///
    /// Source: RFC 7252 §5.4.1.
    pub(crate) fn unknown_critical(&self) -> Option<OptionNumber> {
        let mut previous = None;
        let mut numbers = self.content.options.iter().filter(move |&(number, value)| {
            let surplus = previous.replace(number) == Some(number);
            let known = number.name().is_some() && number != OptionNumber::OSCORE;
            number.is_critical() && !(known && is_in_form(number, value, surplus))
        });
        numbers.next().map(|(number, _)| number)
    }

    /// What goes to the origin: the request for `resource` at `host`, which is `None` when the origin
    /// is named by its address. Uri-Port is never needed: the request goes to that port.
    ///
    /// Source: RFC 7252 §5.7.2, §5.10.1; RFC 8768 §3.
    pub(crate) fn rewrite<'s>(
        &self,
        host: Option<&str>,
        resource: Resource<'_>,
        scratch: &'s mut Vec<u8>,
    ) -> Result<Content<'s>, Refusal>
    where
        'd: 's,
    {
        if self.hop_limit == Some(1) {
            return Err(Refusal::HOP_LIMIT_REACHED);
        }
        let Content { code, options, payload } = self.content;
        let payload = if self.method.has_payload() { payload } else { &[] };
        if host.is_none() && self.is_as_the_origin_expects(&resource) {
            return Ok(Content { code, options, payload });
        }
        let (uri, mut skip) = match resource {
            Resource::Named(uri) => (Some(uri), 0),
            Resource::Asked { skip } => (None, skip),
        };
        let mut hop_limit = self.hop_limit;
        let mut target = Target { host, path: uri, query: uri };
        scratch.clear();
        let mut writer = OptionsWriter::new(scratch);
        for (number, value) in options {
            target.write_below(number, &mut writer);
            match number {
                OptionNumber::URI_HOST
                | OptionNumber::URI_PORT
                | OptionNumber::PROXY_URI
                | OptionNumber::PROXY_SCHEME
                | OptionNumber::OBSERVE => {}
                OptionNumber::URI_PATH | OptionNumber::URI_QUERY if uri.is_some() => {}
                OptionNumber::URI_PATH if skip > 0 => skip -= 1,
                OptionNumber::HOP_LIMIT => match hop_limit.take() {
                    Some(limit) => writer.push(number, &[limit.saturating_sub(1)]),
                    None => writer.push(number, value),
                },
                _ => writer.push(number, value),
            }
        }
        target.write_below(OptionNumber(u16::MAX), &mut writer);
        Ok(Content { code, options: writer.finish(), payload })
    }

    fn is_as_the_origin_expects(&self, resource: &Resource<'_>) -> bool {
        matches!(resource, Resource::Asked { skip: 0 })
            && self.uri_host.is_none()
            && self.uri_port.is_none()
            && self.proxy_scheme.is_none()
            && self.hop_limit.is_none()
            && !self.drops_observe
    }
}

/// Where path and query come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resource<'u> {
    /// From the Proxy-Uri, which wins over Uri-* options (RFC 7252 §5.10.2).
    Named(&'u Uri<'u>),
    /// From the request's own options, without the first `skip` segments.
    Asked { skip: usize },
}

impl Resource<'_> {
    /// The resource behind `route`. A slash that alone is left names the root, which has no segment.
    pub(crate) fn behind(route: &Route, options: &Options<'_>) -> Self {
        if !route.strip || route.path.is_empty() {
            return Self::Asked { skip: 0 };
        }
        let skip = route.path.len();
        let mut rest = options.values(OptionNumber::URI_PATH).skip(skip);
        let only_a_slash = rest.next().is_some_and(<[u8]>::is_empty) && rest.next().is_none();
        Self::Asked { skip: skip + usize::from(only_a_slash) }
    }
}

/// The options that name the target and are not written yet.
struct Target<'u> {
    host: Option<&'u str>,
    path: Option<&'u Uri<'u>>,
    query: Option<&'u Uri<'u>>,
}

impl Target<'_> {
    fn write_below(&mut self, number: OptionNumber, writer: &mut OptionsWriter<'_>) {
        if number > OptionNumber::URI_HOST
            && let Some(host) = self.host.take()
        {
            writer.push(OptionNumber::URI_HOST, host.as_bytes());
        }
        if number > OptionNumber::URI_PATH
            && let Some(uri) = self.path.take()
        {
            uri.path_segments().for_each(|segment| writer.push(OptionNumber::URI_PATH, &segment));
        }
        if number > OptionNumber::URI_QUERY
            && let Some(uri) = self.query.take()
        {
            uri.query_items().for_each(|item| writer.push(OptionNumber::URI_QUERY, &item));
        }
    }
}

/// What goes to the client for a response that came in.
///
/// `route` is the reverse route the request took. The result borrows `content` where nothing had to
/// change and `scratch`, which is cleared, where something had.
/// Errors: [`Failure::Unusable`] for an Unsafe option we do not know or that belongs into requests, a
///         code that is none of a response, and a Location-Path of `.` or `..`.
/// Source: RFC 7252 §5.5, §5.7.1, §5.10.7; RFC 8768 §4.
pub fn relay_response<'s>(
    parameters: &Parameters,
    route: Option<usize>,
    content: &Content<'s>,
    scratch: &'s mut Vec<u8>,
) -> Result<Content<'s>, Failure> {
    let Content { code, options, payload } = *content;
    if !code.is_response() {
        return Err(Failure::Unusable);
    }
    let checked = check_response(&options)?;
    let payload = if matches!(code, Code::VALID | Code::CONTINUE) { &[] } else { payload };
    let prefix = match route.and_then(|index| parameters.routes.get(index)) {
        Some(route) if route.strip && code == Code::CREATED && checked.has_location_path => &*route.path,
        Some(_) | None => &[],
    };
    let adds_identifier = code == Code::HOP_LIMIT_REACHED
        && !checked.is_structured
        && payload.len() + IDENTIFIER.len() < MAX_HOPS_TEXT;
    if !checked.drops_observe && prefix.is_empty() && !adds_identifier {
        return Ok(Content { code, options, payload });
    }
    if !adds_identifier {
        return Ok(Content { code, options: rewrite_response(&options, prefix, scratch), payload });
    }
    rewrite_response(&options, prefix, scratch);
    scratch.push(0xFF);
    scratch.extend_from_slice(IDENTIFIER.as_bytes());
    if !payload.is_empty() {
        scratch.push(b' ');
        scratch.extend_from_slice(payload);
    }
    let (options, payload) = Options::parse(scratch).map_err(|_| Failure::Unusable)?;
    Ok(Content { code, options, payload })
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
        if number.is_unsafe() && !is_in_form(number, value, surplus) {
            return Err(Failure::Unusable);
        }
        match number {
            OptionNumber::OBSERVE => checked.drops_observe = true,
            OptionNumber::MAX_AGE => {}
            OptionNumber::BLOCK1 | OptionNumber::BLOCK2 | OptionNumber::CONTENT_FORMAT => {
                checked.is_structured = true;
            }
            OptionNumber::LOCATION_PATH if is_dot_segment(value) => return Err(Failure::Unusable),
            OptionNumber::LOCATION_PATH => checked.has_location_path = true,
            _ if number.is_unsafe() => return Err(Failure::Unusable),
            _ => {}
        }
    }
    Ok(checked)
}

/// Whether an option keeps to its definition; one that does not counts as unrecognised.
fn is_in_form(number: OptionNumber, value: &[u8], surplus: bool) -> bool {
    number.allows_length(value.len()) && (!surplus || number.is_repeatable())
}

fn is_dot_segment(value: &[u8]) -> bool {
    matches!(value, b"." | b"..")
}

fn hop_limit(value: &[u8]) -> Result<u8, Refusal> {
    match value {
        &[limit] if limit > 0 => Ok(limit),
        _ => Err(Refusal::HOP_LIMIT),
    }
}

#[cfg(test)]
mod tests;
