//! The policies that are compared, as an operator would configure them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use coapway_config::{Config, Overrides};
use coapway_proxy::Parameters;
use coapway_relay::UpstreamId;
use coapway_sim::sockets::LISTENER;

use crate::devices::NETWORK;

/// How requests are dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// No proxy: devices ask the origin themselves, each request once.
    Bare,
    /// The proxy with the fixed timeout of RFC 7252.
    Fixed,
    /// The proxy as it is shipped: a learned timeout, a POST leaves at most twice.
    Learned,
    /// The same, but a POST leaves once.
    PostOnce,
    /// The same, told that the origin recognises repeats: a POST has as many copies as a GET.
    Deduplicates,
}

/// Where the origin is.
pub(crate) const ORIGIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1)), 5683);
/// The origin among the upstreams of the configuration; the first set is for forwarding.
pub(crate) const UPSTREAM: UpstreamId = UpstreamId(1);

impl Policy {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Bare, Self::Fixed, Self::Learned, Self::PostOnce, Self::Deduplicates];

    /// Its place in [`Policy::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// For a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bare => "no proxy, ask once",
            Self::Fixed => "fixed timeout 2 s",
            Self::Learned => "learned timeout",
            Self::PostOnce => "… POST only once",
            Self::Deduplicates => "… deduplicates",
        }
    }

    /// For a narrow one.
    pub(crate) const fn short_name(self) -> &'static str {
        match self {
            Self::Bare => "no proxy",
            Self::Fixed => "fixed 2 s",
            Self::Learned => "learned",
            Self::PostOnce => "POST once",
            Self::Deduplicates => "deduplicates",
        }
    }

    /// For a sentence.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Bare => "without a proxy",
            Self::Fixed => "with RFC 7252's fixed timeout",
            Self::Learned => "with learned timeouts, as shipped",
            Self::PostOnce => "with learned timeouts and one copy per POST",
            Self::Deduplicates => "with learned timeouts and deduplicates = true",
        }
    }

    /// What stands in the configuration for it.
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Bare | Self::Learned => "",
            Self::Fixed => "rto = { estimator = \"fixed\" }",
            Self::PostOnce => "max_retransmit_non_idempotent = 0",
            Self::Deduplicates => "deduplicates = true",
        }
    }

    /// The whole configuration.
    pub fn configuration(self) -> String {
        format!(
            "[[listen]]\nuri = \"coap://{LISTENER}\"\n\n[forward]\nenabled = false\n\n\
             [[upstreams]]\nname = \"origin\"\nuri = \"coap://{ORIGIN}\"\nmax_wait = \"6s\"\n{}\n\n\
             [[routes]]\npath = \"/\"\nupstream = \"origin\"\n",
            self.setting()
        )
    }

    /// What the proxy is told.
    pub(crate) fn parameters(self) -> Parameters {
        let text = self.configuration();
        let file = Some((Path::new("demo"), &text[..]));
        let none = std::iter::empty::<(String, String)>();
        let config = Config::load(file, none, &Overrides::default());
        let mut parameters = config.expect("a test loads each of these configurations").parameters();
        parameters.relay.trusted.push(NETWORK.parse().expect("a network"));
        parameters
    }
}

#[cfg(test)]
mod tests {
    use coapway_endpoint::Estimator;

    use super::*;

    #[test]
    fn configurations_say_what_policies_are_called() {
        for policy in Policy::ALL {
            let upstream = policy.parameters().upstreams[UPSTREAM.0 as usize];
            assert_eq!(upstream.rto.estimator == Estimator::Fixed, policy == Policy::Fixed);
            assert_eq!(upstream.deduplicates, policy == Policy::Deduplicates);
            let copies = if policy == Policy::PostOnce { 0 } else { 1 };
            assert_eq!(upstream.max_retransmit_non_idempotent, copies);
            assert_eq!(Policy::ALL[policy.index()], policy);
        }
    }
}
