//! What a client is asked for and what it gets.

use std::net::SocketAddr;
use std::time::Duration;

/// The seven methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// 0.01
    Get,
    /// 0.02
    Post,
    /// 0.03
    Put,
    /// 0.04
    Delete,
    /// 0.05
    Fetch,
    /// 0.06
    Patch,
    /// 0.07
    Ipatch,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Get, Self::Post, Self::Put, Self::Delete, Self::Fetch, Self::Patch, Self::Ipatch];

    /// The name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Fetch => "fetch",
            Self::Patch => "patch",
            Self::Ipatch => "ipatch",
        }
    }

    /// Whether requests with it have a payload.
    pub fn has_payload(self) -> bool {
        !matches!(self, Self::Get | Self::Delete)
    }
}

/// How the request reaches its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Without a proxy.
    Direct,
    /// Through the forward proxy here, with Proxy-Uri.
    ProxyUri(SocketAddr),
    /// Through the forward proxy here, with Proxy-Scheme and Uri-Host.
    ProxyScheme(SocketAddr),
    /// Sent to the reverse proxy here as if it were the origin.
    Reverse(SocketAddr),
}

/// What a client is asked to send.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// CON or NON.
    pub confirmable: bool,
    /// Where the origin is.
    pub origin: SocketAddr,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// How to get there.
    pub via: Via,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Its Content-Format.
    pub content_format: Option<u16>,
    /// Further options.
    pub options: Vec<(u16, Vec<u8>)>,
    /// How long the client waits.
    pub patience: Duration,
}

impl Request {
    /// A confirmable request without a payload.
    pub fn new(method: Method, origin: SocketAddr, path: impl Into<String>, via: Via) -> Self {
        Self {
            method,
            confirmable: true,
            origin,
            path: path.into(),
            via,
            payload: Vec::new(),
            content_format: None,
            options: Vec::new(),
            patience: Duration::from_secs(10),
        }
    }

    /// The URI that the client is given.
    pub fn uri(&self) -> String {
        let authority = if let Via::Reverse(proxy) = self.via { proxy } else { self.origin };
        format!("coap://{authority}{}", self.path)
    }
}

/// What a client received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The code, written `2.05`.
    pub code: String,
    /// CON, NON or ACK.
    pub kind: String,
    /// The payload.
    pub payload: Vec<u8>,
    /// The Content-Format.
    pub content_format: Option<u16>,
    /// The ETag.
    pub etag: Option<Vec<u8>>,
}
