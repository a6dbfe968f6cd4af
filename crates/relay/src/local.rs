//! What the proxy itself has to offer: `/.well-known/core` (RFC 6690; RFC 7252 §7.2).

use std::borrow::Cow;

use ahash::RandomState;
use coapway_message::uri::{self, HostRef};
use coapway_message::{Code, Content, Method, OptionNumber, OptionsWriter};

use crate::admission::is_for_host;
use crate::answer::{Refusal, compose};
use crate::block::Block;
use crate::forward::{Request, Resource};
use crate::parameters::{Parameters, Route};

/// The Content-Format of a list of links (RFC 6690 §7.3).
const LINK_FORMAT: u32 = 40;

/// Serves a request for ourselves. `host` is what the client calls us, where it says so.
///
/// Errors: 4.02 for a critical option that no resource of ours knows, 4.04 for any other path, 4.05 for
///         any other method than GET, 4.06 for any other format, 4.12 for a condition that fails.
pub(crate) fn serve<'s>(
    parameters: &Parameters,
    request: &Request<'_>,
    host: Option<HostRef<'_>>,
    resource: Resource<'_>,
    scratch: &'s mut Vec<u8>,
) -> Result<Content<'s>, Refusal> {
    request.unknown_critical().map_or(Ok(()), Err)?;
    let options = request.content.options;
    let is_core = match resource {
        Resource::Named(uri) => is_well_known_core(uri.path_segments()),
        Resource::Asked { .. } => is_well_known_core(options.values(OptionNumber::URI_PATH).map(Cow::from)),
    };
    if !is_core {
        return Err(Refusal::NOT_FOUND);
    }
    if request.method != Method::Get {
        return Err(Refusal::NO_SUCH_METHOD);
    }
    if options.uint(OptionNumber::ACCEPT).is_some_and(|format| format != LINK_FORMAT) {
        return Err(Refusal::NOT_ACCEPTABLE);
    }
    let filters: Vec<_> = match resource {
        Resource::Named(uri) => uri.query_items().collect(),
        Resource::Asked { .. } => options.values(OptionNumber::URI_QUERY).map(Cow::from).collect(),
    };
    let links = links(parameters, host, &filters);
    // Fixed seeds: what did not change has the same ETag in all workers.
    let etag = RandomState::with_seeds(6, 6, 9, 0).hash_one(&links).to_be_bytes();
    let mut if_match = options.values(OptionNumber::IF_MATCH).peekable();
    let fails = if_match.peek().is_some() && !if_match.any(|value| value.is_empty() || value == etag);
    if fails || options.first(OptionNumber::IF_NONE_MATCH).is_some() {
        return Err(Refusal::PRECONDITION);
    }
    if options.values(OptionNumber::ETAG).any(|value| value == etag) {
        scratch.clear();
        OptionsWriter::new(scratch).push(OptionNumber::ETAG, &etag);
        return Ok(compose(Code::VALID, &[], scratch));
    }
    let wants_size = options.first(OptionNumber::SIZE2).is_some();
    let asked = options.first(OptionNumber::BLOCK2).and_then(Block::parse);
    content(&links, etag, asked, wants_size, scratch)
}

/// The representation, or the block of it that was asked for.
fn content<'s>(
    links: &str,
    etag: [u8; 8],
    asked: Option<Block>,
    wants_size: bool,
    scratch: &'s mut Vec<u8>,
) -> Result<Content<'s>, Refusal> {
    let first = Block { num: 0, more: false, szx: Block::MAX_SZX };
    let block = asked.or_else(|| (links.len() > first.size()).then_some(first));
    scratch.clear();
    let mut options = OptionsWriter::new(scratch);
    options.push(OptionNumber::ETAG, &etag);
    options.push_uint(OptionNumber::CONTENT_FORMAT, LINK_FORMAT);
    let Some(block) = block else { return Ok(compose(Code::CONTENT, links.as_bytes(), scratch)) };
    let rest = links.as_bytes().get(block.offset()..).unwrap_or_default();
    if rest.is_empty() && block.num > 0 {
        return Err(Refusal::BLOCK_NUMBER);
    }
    let payload = rest.get(..block.size()).unwrap_or(rest);
    let block = Block { more: payload.len() < rest.len(), ..block };
    block.write(OptionNumber::BLOCK2, &mut options);
    if wants_size {
        options.push_uint(OptionNumber::SIZE2, u32::try_from(links.len()).unwrap_or(u32::MAX));
    }
    Ok(compose(Code::CONTENT, payload, scratch))
}

fn is_well_known_core<'p>(path: impl Iterator<Item = Cow<'p, [u8]>>) -> bool {
    path.eq([&b".well-known"[..], b"core"])
}

/// A link to each part of our namespace under this host, once and in order.
fn links(parameters: &Parameters, host: Option<HostRef<'_>>, filters: &[Cow<'_, [u8]>]) -> String {
    let routes = parameters.routes.iter().filter(|route| is_for_host(route, host));
    let mut paths: Vec<_> =
        routes.filter(|route| filters.iter().all(|filter| passes(route, filter))).map(path).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut links = String::new();
    for path in paths {
        let separator = if links.is_empty() { "" } else { "," };
        links.extend([separator, "<", &path, ">"]);
    }
    links
}

/// The path of a route as a reference relative to the host.
fn path(route: &Route) -> String {
    let mut path = String::new();
    if let [first, _, ..] = &*route.path
        && first.is_empty()
    {
        // Two slashes would begin an authority (RFC 3986 §4.2).
        path.push_str("/.");
    }
    uri::write_segments(route.path.iter().map(|segment| &**segment), &mut path);
    path
}

/// Whether the link to a route passes a filter. Our links have no attribute but where they lead, and
/// what is no filter lets all pass.
///
/// Source: RFC 6690 §4.1.
fn passes(route: &Route, filter: &[u8]) -> bool {
    let mut parts = filter.splitn(2, |&byte| byte == b'=');
    let (Some(name), Some(pattern)) = (parts.next(), parts.next()) else { return true };
    let mut target = Vec::new();
    for segment in &route.path {
        target.push(b'/');
        target.extend_from_slice(segment);
    }
    if target.is_empty() {
        target.push(b'/');
    }
    name == b"href"
        && match pattern.strip_suffix(b"*") {
            Some(start) => target.starts_with(start),
            None => target == pattern,
        }
}

#[cfg(test)]
mod tests;
