//! Where a request goes: forward, reverse, or nowhere (RFC 7252 §5.7.2, §5.7.3).

mod table;
mod targets;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use coapway_message::options::uint;
use coapway_message::uri::{Authority, Host, HostRef, Scheme, Uri};
use coapway_message::{Content, Method, OptionNumber};

use crate::admission::{Admission, admit_address, admit_client, admit_target, is_own};
use crate::answer::{Fault, Refusal};
use crate::block::Block;
use crate::forward::{Request, Resource, URI_PATH_ABBREV};
use crate::local::{self, Links};
use crate::no_response::NoResponse;
use crate::parameters::{Parameters, UpstreamId};
pub(crate) use table::Routes;
pub(crate) use targets::Targets;

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'s> {
    /// It goes to an origin.
    Forward(Plan<'s>),
    /// It is for the proxy itself, and this is the response.
    Local(Content<'s>),
}

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
    pub route: Option<u32>,
    /// What the origin gets to see.
    pub content: Content<'s>,
    /// The path of `content` as text, where it came so and in normal form.
    pub path: Option<&'s [u8]>,
    /// What the client does not want to hear.
    pub no_response: NoResponse,
    /// Whether it may be issued anew in a new exchange.
    pub reissuable: bool,
    /// Whether it is part of a block-wise transfer, which stays on its source port.
    pub block: bool,
    /// The block of the request's body that it carries.
    pub block1: Option<Block>,
    /// Whether OSCORE protects it: then its code and options are not all that is asked.
    pub oscore: bool,
}

/// Where a request is sent to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// An address, which has been admitted.
    Address(SocketAddr),
    /// A name; what it leads to is still to be judged by [`admit_address`].
    Name {
        /// The name to look up.
        host: Arc<str>,
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

/// What requests are judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'r> {
    pub(crate) parameters: &'r Parameters,
    /// The routes in them, to be found.
    pub(crate) routes: &'r Routes,
    /// To the routes among them.
    pub(crate) links: &'r Links,
}

/// Decides about a request.
///
/// A target in Proxy-Uri or Proxy-Scheme is forwarded to, or is refused. Without one, or where it is
/// ourselves, a reverse route is looked for: no client needs leave for that. What is left is for ourselves.
/// Shape:  `came_to` is the address of ours the request was sent to, where it is known. `scratch` is cleared;
///         the decision borrows it, or `content` where nothing had to change. `targets` were admitted by
///         the same settings.
/// Source: RFC 7252 §5.7.2, §5.7.3, §5.8, §5.10.2.
pub(crate) fn decide<'s>(
    settings: Settings<'_>,
    targets: &mut Targets,
    (client, came_to): (IpAddr, Option<IpAddr>),
    content: &Content<'s>,
    scratch: &'s mut Vec<u8>,
) -> Result<Decision<'s>, Refusal> {
    let method = Method::from_code(content.code).ok_or(Refusal::METHOD)?;
    let mut request = Request::new(method, content);
    request.came_to = came_to.or_else(|| sole_listener(settings.parameters, client));
    request.check()?;
    match (request.proxy_uri, request.proxy_scheme) {
        (Some(_), Some(_)) => Err(Refusal::TWO_TARGETS),
        (Some(value), None) => by_uri(settings, targets, client, &mut request, value, scratch),
        (None, Some(scheme)) => match replace_scheme(settings.parameters, &request, scheme)? {
            Some(authority) => {
                let target = (&authority, Resource::Asked { skip: 0 });
                forward(settings, client, &request, target, scratch)
            }
            None => {
                let host = request.own_address();
                reverse(settings, &request, host, Resource::Asked { skip: 0 }, scratch)
            }
        },
        (None, None) => {
            let host = parse_host(&request)?.or_else(|| request.own_address());
            reverse(settings, &request, host, Resource::Asked { skip: 0 }, scratch)
        }
    }
}

/// For what a Proxy-Uri names.
#[inline]
fn by_uri<'s>(
    settings: Settings<'_>,
    targets: &mut Targets,
    client: IpAddr,
    request: &mut Request<'s>,
    value: &'s [u8],
    scratch: &'s mut Vec<u8>,
) -> Result<Decision<'s>, Refusal> {
    let parameters = settings.parameters;
    if let Some((target, resource)) = targets.find(value) {
        may_be_forwarded(parameters, client, request)?;
        let (authority, ground) = (&target.authority, target.ground);
        let target = (authority, Resource::Named { uri: &resource, skip: 0 });
        request.path = resource.normal_path();
        return to_origin(parameters, request, target, ground, scratch);
    }
    let uri = Uri::from_option(value).map_err(Refusal::uri)?;
    require_coap(uri.scheme())?;
    let target = (uri.authority(), Resource::Named { uri: uri.resource(), skip: 0 });
    request.path = uri.resource().normal_path();
    let decision = forward(settings, client, request, target, scratch)?;
    if let Decision::Forward(plan) = &decision
        && plan.route.is_none()
    {
        targets.keep(value, uri.authority(), (plan.upstream, plan.admission));
    }
    Ok(decision)
}

fn forward<'s>(
    settings: Settings<'_>,
    client: IpAddr,
    request: &Request<'s>,
    (authority, resource): (&Authority, Resource<'_>),
    scratch: &'s mut Vec<u8>,
) -> Result<Decision<'s>, Refusal> {
    let parameters = settings.parameters;
    if is_own(parameters, authority) {
        let host = match &authority.host {
            Host::Address(address) => HostRef::Address(*address),
            Host::Name(name) => HostRef::Name(name),
        };
        let mut request = *request;
        request.path = None;
        return reverse(settings, &request, Some(host), resource, scratch);
    }
    may_be_forwarded(parameters, client, request)?;
    let ground = admit_target(parameters, authority)?;
    to_origin(parameters, request, (authority, resource), ground, scratch)
}

fn may_be_forwarded(parameters: &Parameters, client: IpAddr, request: &Request<'_>) -> Result<(), Refusal> {
    request.may_be_forwarded()?;
    admit_client(parameters, client)
}

/// To a target that was admitted.
#[inline]
fn to_origin<'s>(
    parameters: &Parameters,
    request: &Request<'s>,
    (authority, resource): (&Authority, Resource<'_>),
    ground: (UpstreamId, Admission),
    scratch: &'s mut Vec<u8>,
) -> Result<Decision<'s>, Refusal> {
    let content = request.rewrite(uri_host(authority), resource, parameters.insert_hop_limit, scratch)?;
    Ok(plan(request, ground, authority.clone().into(), None, content))
}

fn local<'s>(
    settings: Settings<'_>,
    request: &Request<'_>,
    host: Option<HostRef<'_>>,
    resource: Resource<'_>,
    scratch: &'s mut Vec<u8>,
) -> Result<Decision<'s>, Refusal> {
    local::serve(settings.links, request, host, resource, scratch).map(Decision::Local)
}

#[inline]
fn plan<'s>(
    request: &Request<'s>,
    (upstream, admission): (UpstreamId, Admission),
    destination: Destination,
    route: Option<u32>,
    content: Content<'s>,
) -> Decision<'s> {
    Decision::Forward(Plan {
        method: request.method,
        upstream,
        admission,
        destination,
        route,
        content,
        path: request.path,
        no_response: request.no_response,
        reissuable: request.is_reissuable(),
        block: request.block1.is_some() || request.has_block2,
        block1: request.block1,
        oscore: request.is_oscore,
    })
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

/// The authority that Uri-Host and Uri-Port name under a Proxy-Scheme; `None` for ourselves, which is what
/// the address the request came to means where there is no Uri-Host (RFC 7252 §5.10.1).
///
/// A missing Uri-Port means the scheme's port, not the one the request came to: it says nothing about
/// another host. One that no listener of ours has, without a Uri-Host, means another server on this host:
/// which of its addresses is not known here, and nothing of ours is given out in its name.
fn replace_scheme(
    parameters: &Parameters,
    request: &Request<'_>,
    scheme: &[u8],
) -> Result<Option<Authority>, Refusal> {
    let scheme = std::str::from_utf8(scheme).ok().and_then(Scheme::from_name);
    let scheme = scheme.ok_or(Refusal::UNKNOWN_SCHEME)?;
    require_coap(scheme)?;
    let read = |value| uint(value).and_then(|port| u16::try_from(port).ok());
    let too_long = Refusal::option(OptionNumber::URI_PORT, Fault::TooLong);
    let port = request.uri_port.map(|value| read(value).ok_or(too_long)).transpose()?;
    let Some(host) = parse_host(request)? else {
        let is_ours = port.is_none_or(|port| parameters.own.iter().any(|own| own.port() == port));
        return if is_ours { Ok(None) } else { Err(Refusal::TARGET) };
    };
    Ok(Some(Authority { host: host.into(), port: port.unwrap_or(scheme.default_port()) }))
}

/// What a request came to, where the datagram does not tell: a listener at one address, and only one can be
/// meant. Nobody but this host reaches its loopback addresses, and it does so from one of them.
fn sole_listener(parameters: &Parameters, client: IpAddr) -> Option<IpAddr> {
    let client = client.to_canonical();
    let reaches =
        |own: &IpAddr| own.is_ipv4() == client.is_ipv4() && own.is_loopback() == client.is_loopback();
    let is_meant = |own: &IpAddr| !own.is_unspecified() && reaches(own);
    let mut listeners = parameters.own.iter().map(|own| own.ip().to_canonical()).filter(is_meant);
    let first = listeners.next()?;
    listeners.all(|other| other == first).then_some(first)
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

/// To the origin that serves this part of our namespace, or here.
fn reverse<'s>(
    settings: Settings<'_>,
    request: &Request<'s>,
    host: Option<HostRef<'_>>,
    resource: Resource<'_>,
    scratch: &'s mut Vec<u8>,
) -> Result<Decision<'s>, Refusal> {
    let parameters = settings.parameters;
    if request.is_abbreviated && settings.routes.have_paths {
        return Err(Refusal::option(URI_PATH_ABBREV, Fault::Unknown));
    }
    let options = &request.content.options;
    let found = match resource {
        Resource::Named { uri, .. } => settings.routes.find(host, || uri.path_segments()),
        Resource::Asked { .. } => settings.routes.find(host, || options.values(OptionNumber::URI_PATH)),
    };
    let Some((index, route)) = found.and_then(|index| Some((index, parameters.routes.get(index)?))) else {
        return local(settings, request, host, resource, scratch);
    };
    request.may_be_forwarded()?;
    let authority = usize::try_from(route.upstream.0)
        .ok()
        .and_then(|index| parameters.upstreams.get(index))
        .and_then(|upstream| upstream.authority.as_ref())
        .ok_or(Refusal::NO_UPSTREAM)?;
    if let Some(address) = authority.socket_address() {
        admit_address(parameters, Admission::Upstream, address)?;
    }
    let resource = resource.behind(route, options);
    let content = request.rewrite(uri_host(authority), resource, parameters.insert_hop_limit, scratch)?;
    let ground = (route.upstream, Admission::Upstream);
    Ok(plan(request, ground, authority.clone().into(), u32::try_from(index).ok(), content))
}

#[cfg(test)]
pub(crate) mod tests;
