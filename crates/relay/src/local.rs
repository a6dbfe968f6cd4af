//! What the proxy itself has to offer: `/.well-known/core` (RFC 6690; RFC 7252 §7.2).

mod links;

use std::borrow::Cow;

use coapway_message::uri::HostRef;
use coapway_message::{Code, Content, Method, OptionNumber, OptionsWriter};

use crate::answer::{Refusal, compose};
use crate::block::Block;
use crate::forward::{Request, Resource};
use links::Body;
pub(crate) use links::Links;

/// The Content-Format of a list of links (RFC 6690 §7.3).
const LINK_FORMAT: u32 = 40;

/// Serves a request for ourselves. `host` is what the client calls us, where it says so.
///
/// Errors: 4.00 for too many filters, 4.02 for a critical option that no resource of ours knows, 4.04 for any other path, 4.05 for
///         any other method than GET, 4.06 for any other format, 4.12 for a condition that fails.
pub(crate) fn serve<'s>(
    links: &Links,
    request: &Request<'_>,
    host: Option<HostRef<'_>>,
    resource: Resource<'_>,
    scratch: &'s mut Vec<u8>,
) -> Result<Content<'s>, Refusal> {
    request.unknown_critical().map_or(Ok(()), Err)?;
    let options = request.content.options;
    let is_core = match resource {
        Resource::Named { uri, .. } => is_well_known_core(uri.path_segments()),
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
    let mut body = links.under(host);
    match resource {
        Resource::Named { uri, .. } => uri.query_items().try_for_each(|filter| body.filter(&filter)),
        Resource::Asked { .. } => {
            options.values(OptionNumber::URI_QUERY).try_for_each(|filter| body.filter(filter))
        }
    }?;
    let etag = body.etag();
    let mut if_match = options.values(OptionNumber::IF_MATCH).peekable();
    let fails = if_match.peek().is_some() && !if_match.any(|value| value.is_empty() || value == etag);
    if fails || options.first(OptionNumber::IF_NONE_MATCH).is_some() {
        return Err(Refusal::PRECONDITION);
    }
    if options.values(OptionNumber::ETAG).any(|value| value == etag) {
        scratch.clear();
        OptionsWriter::new(scratch).push(OptionNumber::ETAG, &etag);
        return Ok(compose(Code::VALID, |_| {}, scratch));
    }
    let wants_size = options.first(OptionNumber::SIZE2).is_some();
    let asked = options.first(OptionNumber::BLOCK2).and_then(Block::parse);
    content(&body, etag, asked, wants_size, scratch)
}

/// The representation, or the block of it that was asked for.
fn content<'s>(
    body: &Body<'_>,
    etag: [u8; 8],
    asked: Option<Block>,
    wants_size: bool,
    scratch: &'s mut Vec<u8>,
) -> Result<Content<'s>, Refusal> {
    let first = Block { num: 0, more: false, szx: Block::MAX_SZX };
    let length = body.len();
    let block = asked.or_else(|| (length > first.size()).then_some(first));
    scratch.clear();
    let mut options = OptionsWriter::new(scratch);
    options.push(OptionNumber::ETAG, &etag);
    options.push_uint(OptionNumber::CONTENT_FORMAT, LINK_FORMAT);
    let Some(block) = block else {
        return Ok(compose(Code::CONTENT, |scratch| body.write(0, length, scratch), scratch));
    };
    if block.num > 0 && block.offset() >= length {
        return Err(Refusal::BLOCK_NUMBER);
    }
    let block = Block { more: block.offset() + block.size() < length, ..block };
    block.write(OptionNumber::BLOCK2, &mut options);
    if wants_size {
        options.push_uint(OptionNumber::SIZE2, u32::try_from(length).unwrap_or(u32::MAX));
    }
    Ok(compose(Code::CONTENT, |scratch| body.write(block.offset(), block.size(), scratch), scratch))
}

fn is_well_known_core<'p>(path: impl Iterator<Item = Cow<'p, [u8]>>) -> bool {
    path.eq([&b".well-known"[..], b"core"])
}

#[cfg(test)]
mod tests;
