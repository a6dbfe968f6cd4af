//! A client's request: what its options say to a proxy, and what the origin gets to see of it.

use std::net::IpAddr;

use coapway_message::uri::{HostRef, PathAndQuery};
use coapway_message::{Content, Method, OptionNumber, Options, OptionsWriter};

use super::{URI_PATH_ABBREV, fault, is_dot_segment};
use crate::answer::{Fault, Refusal};
use crate::block::Block;
use crate::no_response::NoResponse;
use crate::parameters::Route;

/// What the options of a request say to a proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'d> {
    pub(crate) method: Method,
    pub(crate) content: Content<'d>,
    pub(crate) proxy_uri: Option<&'d [u8]>,
    /// The path in it, where it is in normal form.
    pub(crate) path: Option<&'d [u8]>,
    pub(crate) proxy_scheme: Option<&'d [u8]>,
    /// The address of ours it was sent to, where that is known.
    pub(crate) came_to: Option<IpAddr>,
    pub(crate) uri_host: Option<&'d [u8]>,
    pub(crate) uri_port: Option<&'d [u8]>,
    pub(crate) no_response: NoResponse,
    pub(crate) block1: Option<Block>,
    pub(crate) has_block2: bool,
    /// Whether the path may be another than the Uri-Path options say.
    pub(crate) is_abbreviated: bool,
    pub(crate) is_oscore: bool,
    /// Whether a second request like it could have another meaning or result than the first.
    is_bound_to_its_exchange: bool,
    /// What keeps it from being forwarded, and would not keep a server from serving it.
    elective_fault: Option<(OptionNumber, Fault)>,
    hop_limit: Option<u8>,
    /// Whether an option is for us, so that the origin sees another list.
    changes: bool,
    /// Whether one is not, so that the origin sees it, changed or not.
    passes: bool,
}

impl<'d> Request<'d> {
    /// A request whose options are still to be judged.
    pub(crate) const fn new(method: Method, content: &Content<'d>) -> Self {
        Self {
            method,
            content: *content,
            proxy_uri: None,
            path: None,
            proxy_scheme: None,
            came_to: None,
            uri_host: None,
            uri_port: None,
            no_response: NoResponse::NONE,
            block1: None,
            has_block2: false,
            is_abbreviated: false,
            is_oscore: false,
            is_bound_to_its_exchange: false,
            elective_fault: None,
            hop_limit: None,
            changes: false,
            passes: false,
        }
    }

    /// Judges its options.
    ///
    /// An Unsafe option outside its length range, or that is one too many, or that means nothing in
    /// this request, counts as unrecognised. Observe is dropped: what it asks for is optional.
    /// Errors: what stands against the request at a proxy as well as at a server.
    /// Source: RFC 7252 §5.4.1 to §5.4.5, §5.7.1, §5.10.1; RFC 7641 §2; RFC 7959 §2; RFC 7967 §2;
    ///         RFC 8768 §3.
    pub(crate) fn check(&mut self) -> Result<(), Refusal> {
        let mut previous = None;
        for (number, value) in self.content.options {
            let surplus = previous.replace(number) == Some(number);
            if number.is_unsafe() {
                self.note_unsafe(number, value, surplus)?;
            } else {
                self.note_safe(number, value, surplus)?;
            }
        }
        Ok(())
    }

    fn note_safe(&mut self, number: OptionNumber, value: &[u8], surplus: bool) -> Result<(), Refusal> {
        self.passes = true;
        match number {
            OptionNumber::HOP_LIMIT if !surplus => {
                self.hop_limit = Some(hop_limit(value)?);
                self.changes = true;
            }
            OptionNumber::IF_MATCH | OptionNumber::IF_NONE_MATCH | OptionNumber::ECHO => {
                self.is_bound_to_its_exchange = true;
            }
            OptionNumber::OSCORE => self.is_oscore = true,
            URI_PATH_ABBREV => self.is_abbreviated = true,
            _ => {}
        }
        Ok(())
    }

    fn note_unsafe(&mut self, number: OptionNumber, value: &'d [u8], surplus: bool) -> Result<(), Refusal> {
        if let Some(fault) = fault(number, value, surplus) {
            return self.reject(number, fault);
        }
        match number {
            OptionNumber::URI_PATH if is_dot_segment(value) => return Err(Refusal::DOT_SEGMENT),
            OptionNumber::URI_PATH | OptionNumber::URI_QUERY => self.passes = true,
            OptionNumber::URI_HOST => {
                self.uri_host = Some(value);
                self.changes = true;
            }
            OptionNumber::URI_PORT => {
                self.uri_port = Some(value);
                self.changes = true;
            }
            OptionNumber::PROXY_URI => self.proxy_uri = Some(value),
            OptionNumber::PROXY_SCHEME => {
                self.proxy_scheme = Some(value);
                self.changes = true;
            }
            OptionNumber::BLOCK2 => {
                Block::parse(value).ok_or(Refusal::BLOCK_SIZE)?;
                (self.has_block2, self.passes) = (true, true);
            }
            OptionNumber::BLOCK1 if self.method.has_payload() => {
                self.block1 = Some(Block::parse(value).ok_or(Refusal::BLOCK_SIZE)?);
                self.passes = true;
            }
            OptionNumber::NO_RESPONSE => {
                self.no_response = NoResponse::read(value);
                self.changes = true;
            }
            OptionNumber::OBSERVE if self.method.is_safe() => {
                self.is_bound_to_its_exchange = true;
                self.changes = true;
            }
            _ if number.name().is_some() => return self.reject(number, Fault::Misplaced),
            _ => return self.reject(number, Fault::Unknown),
        }
        Ok(())
    }

    #[cold]
    fn reject(&mut self, number: OptionNumber, fault: Fault) -> Result<(), Refusal> {
        if number.is_critical() {
            return Err(Refusal::option(number, fault));
        }
        self.elective_fault.get_or_insert((number, fault));
        Ok(())
    }

    /// What we are called where the client does not say it: the default of Uri-Host.
    ///
    /// Source: RFC 7252 §5.10.1.
    pub(crate) fn own_address(&self) -> Option<HostRef<'d>> {
        self.came_to.map(|address| HostRef::Address(address.to_canonical()))
    }

    /// Whether it may be forwarded: unrecognised elective options keep it from that when they are
    /// Unsafe, but not from being served here (RFC 7252 §5.4.1, §5.7.1).
    pub(crate) fn may_be_forwarded(&self) -> Result<(), Refusal> {
        self.elective_fault.map_or(Ok(()), |(number, fault)| Err(Refusal::option(number, fault)))
    }

    /// Whether it may be issued anew, in a new exchange, when the first ended without a response.
    ///
    /// Source: RFC 7252 §5.8; RFC 8132 §4; RFC 8613 §7.4; RFC 9175 §2.3.
    pub(crate) const fn is_reissuable(&self) -> bool {
        self.method.is_idempotent()
            && !self.is_bound_to_its_exchange
            && !self.is_oscore
            && self.block1.is_none()
    }

    /// Why a server with no option beyond the table must reject it.
    ///
    /// Source: RFC 7252 §5.4.1.
    pub(crate) fn unknown_critical(&self) -> Option<Refusal> {
        let mut previous = None;
        self.content.options.iter().filter(|(number, _)| number.is_critical()).find_map(|(number, value)| {
            let surplus = previous.replace(number) == Some(number);
            let known = number.name().is_some() && number != OptionNumber::OSCORE;
            let fault = if known { fault(number, value, surplus) } else { Some(Fault::Unknown) };
            fault.map(|fault| Refusal::option(number, fault))
        })
    }

    /// What goes to the origin: the request for `resource` at `host`, which is `None` when the origin
    /// is named by its address. Uri-Port is never needed: the request goes to that port.
    ///
    /// `insert_hop_limit` is the Hop-Limit of a request that has none.
    /// Source: RFC 7252 §5.7.2, §5.10.1; RFC 8768 §3.
    pub(crate) fn rewrite<'s>(
        &self,
        host: Option<&str>,
        resource: Resource<'_>,
        insert_hop_limit: Option<u8>,
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
        let inserted = insert_hop_limit.filter(|&limit| limit > 0 && self.hop_limit.is_none());
        let is_all = matches!(resource, Resource::Asked { skip: 0 });
        if is_all && !self.changes && host.is_none() && inserted.is_none() {
            return Ok(Content { code, options, payload });
        }
        let (uri, skip) = match resource {
            Resource::Named { uri, skip } => (Some(uri), skip),
            Resource::Asked { skip } => (None, skip),
        };
        let path = uri.map(|uri| (uri, skip));
        let mut added = Added { host, path, query: uri, hop_limit: inserted };
        scratch.clear();
        let mut writer = OptionsWriter::new(scratch);
        if self.passes {
            self.copy(skip, &mut added, &mut writer);
        }
        added.write_below(OptionNumber(u16::MAX), &mut writer);
        Ok(Content { code, options: writer.finish(), payload })
    }

    /// Copies the options that pass, but for the first `skip` segments, with those that are added.
    fn copy(&self, mut skip: usize, added: &mut Added<'_>, writer: &mut OptionsWriter<'_>) {
        let is_named = added.path.is_some();
        let mut hop_limit = self.hop_limit;
        for (number, value) in self.content.options {
            added.write_below(number, writer);
            match number {
                OptionNumber::URI_HOST
                | OptionNumber::URI_PORT
                | OptionNumber::PROXY_URI
                | OptionNumber::PROXY_SCHEME
                | OptionNumber::OBSERVE
                | OptionNumber::NO_RESPONSE => {}
                OptionNumber::URI_PATH | OptionNumber::URI_QUERY if is_named => {}
                OptionNumber::URI_PATH if skip > 0 => skip -= 1,
                OptionNumber::HOP_LIMIT => match hop_limit.take() {
                    Some(limit) => writer.push(number, &[limit.saturating_sub(1)]),
                    None => writer.push(number, value),
                },
                _ => writer.push(number, value),
            }
        }
    }
}

/// Where path and query come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resource<'u> {
    /// From the Proxy-Uri, which wins over Uri-* options (RFC 7252 §5.10.2), without the first `skip` segments.
    Named { uri: &'u PathAndQuery<'u>, skip: usize },
    /// From the request's own options, without the first `skip` segments.
    Asked { skip: usize },
}

impl Resource<'_> {
    /// The resource behind `route`. A slash that alone is left names the root, which has no segment.
    pub(crate) fn behind(self, route: &Route, options: &Options<'_>) -> Self {
        if !route.strip || route.path.is_empty() {
            return self;
        }
        let begins = route.path.len();
        match self {
            Self::Named { uri, .. } => Self::Named { uri, skip: stripped(begins, uri.path_segments()) },
            Self::Asked { .. } => {
                Self::Asked { skip: stripped(begins, options.values(OptionNumber::URI_PATH)) }
            }
        }
    }
}

/// How many segments go with the first `begins`.
fn stripped(begins: usize, path: impl Iterator<Item = impl AsRef<[u8]>>) -> usize {
    let mut rest = path.skip(begins);
    let only_a_slash =
        rest.next().is_some_and(|segment| segment.as_ref().is_empty()) && rest.next().is_none();
    begins + usize::from(only_a_slash)
}

/// The options that come from elsewhere than the client's list and are not written yet.
struct Added<'u> {
    host: Option<&'u str>,
    /// And the segments of it that are left out.
    path: Option<(&'u PathAndQuery<'u>, usize)>,
    query: Option<&'u PathAndQuery<'u>>,
    hop_limit: Option<u8>,
}

impl Added<'_> {
    fn write_below(&mut self, number: OptionNumber, writer: &mut OptionsWriter<'_>) {
        if number > OptionNumber::URI_HOST
            && let Some(host) = self.host.take()
        {
            writer.push(OptionNumber::URI_HOST, host.as_bytes());
        }
        if number > OptionNumber::URI_PATH
            && let Some((uri, skip)) = self.path.take()
        {
            match skip {
                0 => uri.write_path(writer),
                _ => uri
                    .path_segments()
                    .skip(skip)
                    .for_each(|segment| writer.push(OptionNumber::URI_PATH, &segment)),
            }
        }
        if number > OptionNumber::URI_QUERY
            && let Some(uri) = self.query.take()
        {
            uri.write_query(writer);
        }
        if number > OptionNumber::HOP_LIMIT
            && let Some(limit) = self.hop_limit.take()
        {
            writer.push(OptionNumber::HOP_LIMIT, &[limit]);
        }
    }
}

fn hop_limit(value: &[u8]) -> Result<u8, Refusal> {
    match value {
        &[limit] if limit > 0 => Ok(limit),
        _ => Err(Refusal::HOP_LIMIT),
    }
}
