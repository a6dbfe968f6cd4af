//! What the proxy itself has to offer: `/.well-known/core` (RFC 6690; RFC 7252 §7.2).

use coapway_message::Content;
use coapway_message::uri::HostRef;

use crate::answer::Refusal;
use crate::forward::{Request, Resource};
use crate::parameters::Parameters;

/// Serves a request for ourselves. `host` is what the client calls us, if it says so.
pub(crate) fn serve<'s>(
    parameters: &Parameters,
    request: &Request<'_>,
    host: Option<HostRef<'_>>,
    resource: Resource<'_>,
    scratch: &'s mut Vec<u8>,
) -> Result<Content<'s>, Refusal> {
    let _ = (parameters, host, resource, scratch);
    Err(request.unknown_critical().unwrap_or(Refusal::NOT_FOUND))
}
