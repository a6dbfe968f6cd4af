//! What an operator should know of, told once each time it changes.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use coapway_relay::UpstreamId;

/// Something an operator should know of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alert {
    /// More requests towards an origin need a second copy, or fail, than used to (R-USR-22).
    RetriesRose {
        /// Whose settings hold.
        upstream: UpstreamId,
        /// The origin.
        origin: SocketAddr,
        /// The share it was, 0 to 1.
        usual: f64,
        /// The share it is.
        recent: f64,
    },
    /// The share is as it was.
    RetriesCalmed {
        /// Whose settings hold.
        upstream: UpstreamId,
        /// The origin.
        origin: SocketAddr,
    },
    /// The round-trip times of an origin are longer than the largest timeout that is configured, which
    /// therefore does not hold (R-USR-18).
    TimeoutOverCap {
        /// Whose settings hold.
        upstream: UpstreamId,
        /// The origin.
        origin: SocketAddr,
        /// The quantile of the round-trip times.
        quantile: Duration,
    },
    /// An origin is down: two exchanges with it have failed, over `max_wait` and more, and nothing was heard.
    /// Requests to it are answered 5.03 at once, and one at a time is the probe: those of one site, as long as
    /// only its own have failed, since what it asks for may be what is silent.
    OriginDown {
        /// Whose settings hold.
        upstream: UpstreamId,
        /// The origin.
        origin: SocketAddr,
        /// Whose requests are kept away.
        whose: Whose,
        /// How long ago the first copy left of all that are unanswered.
        silent_for: Duration,
        /// How soon the next probe may leave.
        probe_in: Duration,
    },
    /// It was heard again.
    OriginBack {
        /// Whose settings hold.
        upstream: UpstreamId,
        /// The origin.
        origin: SocketAddr,
    },
    /// A request went round: its Hop-Limit was used up, and either our identifier is among those it passed
    /// (RFC 8768 §4), or it came here from the host that an equal one was sent to in vain.
    Loop {
        /// From where the request came to us.
        client: SocketAddr,
    },
}

/// For whom an origin is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Everybody.
    Everybody,
    /// The site of this client alone: an IPv4 address or an IPv6 /64, on this host one port.
    Site(SocketAddr),
    /// One site, none of whose clients is there any more.
    OneSite,
}

/// `everybody`, or the site: `10.0.0.1`, `fd00::/64`, `127.0.0.1:40000`.
impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everybody => f.write_str("everybody"),
            Self::OneSite => f.write_str("one client"),
            Self::Site(client) => match client.ip().to_canonical() {
                ip if ip.is_loopback() => SocketAddr::new(ip, client.port()).fmt(f),
                IpAddr::V4(ip) => ip.fmt(f),
                IpAddr::V6(ip) => write!(f, "{}/64", Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
            },
        }
    }
}

impl Alert {
    /// The word for logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RetriesRose { .. } => "retries rose",
            Self::RetriesCalmed { .. } => "retries calmed",
            Self::TimeoutOverCap { .. } => "timeout over its cap",
            Self::OriginDown { .. } => "origin down",
            Self::OriginBack { .. } => "origin back",
            Self::Loop { .. } => "loop",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_told_as_what_counts_as_one_client() {
        for (client, told) in [
            ("10.0.0.1:4000", "10.0.0.1"),
            ("[::ffff:10.0.0.1]:4000", "10.0.0.1"),
            ("[fd00:0:0:1:2::3]:4000", "fd00:0:0:1::/64"),
            ("127.0.0.1:4000", "127.0.0.1:4000"),
            ("[::1]:4000", "[::1]:4000"),
        ] {
            assert_eq!(Whose::Site(client.parse().expect("an address")).to_string(), told);
        }
        assert_eq!(Whose::Everybody.to_string(), "everybody");
    }
}
