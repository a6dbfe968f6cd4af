//! Where a request goes: forward, reverse, or nowhere (RFC 7252 §5.7.2, §5.7.3).

use std::net::{IpAddr, SocketAddr};

use coapway_message::options::uint;
use coapway_message::uri::{Authority, Host, HostRef, Scheme, Uri, UriError};
use coapway_message::{Content, Method, OptionNumber, Options};

use crate::admission::{Admission, admit_address, admit_client, admit_target, is_own, same_name};
use crate::answer::Refusal;
use crate::forward::{Request, Resource};
use crate::parameters::{Parameters, Route, UpstreamId};

/// What to do with a request that is to be forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<'s> {
    /// Its method.
    pub method: Method,
    /// Whose settings hold.
    pub upstream: UpstreamId,
    /// On what grounds the destination was admitted.
    pub admission: Admission,
    /// Where to.
    pub destination: Destination,
    /// The reverse route it took, as an index into [`Parameters::routes`].
    pub route: Option<usize>,
    /// What the origin gets to see.
    pub content: Content<'s>,
}

/// Where a request is sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// An address, which has been admitted.
    Address(SocketAddr),
    /// A name; what it leads to is still to be judged by [`admit_address`].
    Name {
        /// The name to look up.
        host: Box<str>,
        /// The port.
        port: u16,
    },
}

impl From<Authority> for Destination {
    fn from(Authority { host, port }: Authority) -> Self {
        match host {
            Host::Address(address) => Self::Address(SocketAddr::new(address, port)),
            Host::Name(host) => Self::Name { host, port },
        }
    }
}

/// Decides about a request.
///
/// A target in Proxy-Uri or Proxy-Scheme is ourselves, or is forwarded to, or is refused; without one
/// a reverse route is looked for. What is left is local, and nothing is offered locally yet.
/// Shape:  `scratch` is cleared; the plan borrows it, or `content` where nothing had to change.
/// Source: RFC 7252 §5.7.2, §5.7.3, §5.8, §5.10.2.
pub fn decide<'s>(
    parameters: &Parameters,
    client: IpAddr,
    content: &Content<'s>,
    scratch: &'s mut Vec<u8>,
) -> Result<Plan<'s>, Refusal> {
    let method = Method::from_code(content.code).ok_or(Refusal::METHOD)?;
    let request = Request::check(method, content)?;
    match (request.proxy_uri, request.proxy_scheme) {
        (Some(_), Some(_)) => Err(Refusal::TWO_TARGETS),
        (Some(value), None) => {
            let text = std::str::from_utf8(value).map_err(|_| Refusal::uri(UriError::Syntax))?;
            let uri = Uri::parse(text).map_err(Refusal::uri)?;
            require_coap(uri.scheme())?;
            let (upstream, admission) = admit(parameters, client, &request, uri.authority())?;
            let content = request.rewrite(uri_host(uri.authority()), Resource::Named(&uri), scratch)?;
            let destination = uri.into_authority().into();
            Ok(Plan { method, upstream, admission, destination, route: None, content })
        }
        (None, Some(scheme)) => {
            let authority = replace_scheme(&request, scheme)?.ok_or_else(|| local(&request))?;
            let (upstream, admission) = admit(parameters, client, &request, &authority)?;
            let content = request.rewrite(uri_host(&authority), Resource::Asked { skip: 0 }, scratch)?;
            Ok(Plan { method, upstream, admission, destination: authority.into(), route: None, content })
        }
        (None, None) => reverse(parameters, &request, scratch),
    }
}

fn admit(
    parameters: &Parameters,
    client: IpAddr,
    request: &Request<'_>,
    authority: &Authority,
) -> Result<(UpstreamId, Admission), Refusal> {
    if is_own(parameters, authority) {
        return Err(local(request));
    }
    admit_client(parameters, client)?;
    admit_target(parameters, authority)
}

fn require_coap(scheme: Scheme) -> Result<(), Refusal> {
    match scheme {
        Scheme::Coap => Ok(()),
        Scheme::Coaps
        | Scheme::CoapTcp
        | Scheme::CoapsTcp
        | Scheme::CoapWs
        | Scheme::CoapsWs
        | Scheme::Http
        | Scheme::Https => Err(Refusal::scheme(scheme)),
    }
}

/// The authority that Uri-Host and Uri-Port name under a Proxy-Scheme; `None` without a Uri-Host,
/// which means the address the request came to, ours.
///
/// A missing Uri-Port means the scheme's port, not the one the request came to: it says nothing about
/// another host.
fn replace_scheme(request: &Request<'_>, scheme: &[u8]) -> Result<Option<Authority>, Refusal> {
    let scheme = std::str::from_utf8(scheme).ok().and_then(Scheme::from_name);
    let scheme = scheme.ok_or(Refusal::UNKNOWN_SCHEME)?;
    require_coap(scheme)?;
    let Some(host) = parse_host(request)? else { return Ok(None) };
    let port = match request.uri_port {
        Some(value) => uint(value)
            .and_then(|port| u16::try_from(port).ok())
            .ok_or(Refusal::option(OptionNumber::URI_PORT))?,
        None => scheme.default_port(),
    };
    Ok(Some(Authority { host: host.into(), port }))
}

fn parse_host<'d>(request: &Request<'d>) -> Result<Option<HostRef<'d>>, Refusal> {
    request.uri_host.map(HostRef::parse).transpose().map_err(|_| Refusal::URI_HOST)
}

/// The Uri-Host the origin is to see: none where it is the literal destination (RFC 7252 §6.4).
fn uri_host(authority: &Authority) -> Option<&str> {
    match &authority.host {
        Host::Address(_) => None,
        Host::Name(name) => Some(name),
    }
}

fn reverse<'s>(
    parameters: &Parameters,
    request: &Request<'s>,
    scratch: &'s mut Vec<u8>,
) -> Result<Plan<'s>, Refusal> {
    let host = parse_host(request)?;
    if request.is_abbreviated && parameters.routes.iter().any(|route| !route.path.is_empty()) {
        return Err(Refusal::option(OptionNumber(13)));
    }
    let options = &request.content.options;
    let (index, route) = best_route(&parameters.routes, host, options).ok_or_else(|| local(request))?;
    let authority = usize::try_from(route.upstream.0)
        .ok()
        .and_then(|index| parameters.upstreams.get(index))
        .and_then(|upstream| upstream.authority.as_ref())
        .ok_or(Refusal::NO_UPSTREAM)?;
    if let Some(address) = authority.socket_address() {
        admit_address(parameters, Admission::Upstream, address)?;
    }
    let content = request.rewrite(uri_host(authority), Resource::behind(route, options), scratch)?;
    Ok(Plan {
        method: request.method,
        upstream: route.upstream,
        admission: Admission::Upstream,
        destination: authority.clone().into(),
        route: Some(index),
        content,
    })
}

/// The route a request takes: one for its host before one for any, then the longest path.
fn best_route<'p>(
    routes: &'p [Route],
    host: Option<HostRef<'_>>,
    options: &Options<'_>,
) -> Option<(usize, &'p Route)> {
    let rank = |route: &Route| (route.host.is_some(), route.path.len());
    let mut best: Option<(usize, &Route)> = None;
    for (index, route) in routes.iter().enumerate() {
        let is_better = best.is_none_or(|(_, other)| rank(route) > rank(other));
        if is_better && is_for_host(route, host) && is_for_path(route, options) {
            best = Some((index, route));
        }
    }
    best
}

fn is_for_host(route: &Route, host: Option<HostRef<'_>>) -> bool {
    match (&route.host, host) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wanted), Some(HostRef::Name(name))) => same_name(wanted, name),
        (Some(wanted), Some(HostRef::Address(address))) => wanted.parse() == Ok(address),
    }
}

fn is_for_path(route: &Route, options: &Options<'_>) -> bool {
    let mut segments = options.values(OptionNumber::URI_PATH);
    route.path.iter().all(|wanted| segments.next() == Some(wanted))
}

/// Why a request for ourselves is not served.
fn local(request: &Request<'_>) -> Refusal {
    request.unknown_critical().map_or(Refusal::NOT_FOUND, Refusal::option)
}

#[cfg(test)]
mod tests;
