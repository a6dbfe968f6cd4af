//! What this host's interfaces are, as far as addresses mean something by it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use coapway_config::{Config, ConfigError};
use if_addrs::{IfAddr, Ifv4Addr};

/// The addresses of this host's interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interfaces {
    pub(crate) addresses: Vec<IpAddr>,
    /// Those that mean everybody in a network of one.
    pub(crate) broadcasts: Vec<Ipv4Addr>,
}

impl Interfaces {
    /// Asks the host.
    ///
    /// Errors: it does not tell.
    pub(crate) fn ask() -> io::Result<Self> {
        let told = if_addrs::get_if_addrs()?;
        Ok(Self::of(told.iter().map(|interface| &interface.addr)))
    }

    fn of<'a>(told: impl Iterator<Item = &'a IfAddr>) -> Self {
        let mut interfaces = Self::default();
        for address in told {
            interfaces.addresses.push(address.ip());
            if let IfAddr::V4(address) = address {
                interfaces.broadcasts.extend(broadcasts(address));
            }
        }
        interfaces
    }

    fn has_broadcast(&self, address: SocketAddr) -> bool {
        matches!(address.ip().to_canonical(), IpAddr::V4(address) if self.broadcasts.contains(&address))
    }

    /// An error about each listener and each upstream that is everybody in a network.
    pub(crate) fn objections(&self, config: &Config) -> Vec<ConfigError> {
        const REASON: &str = "a broadcast address: everybody in a network of this host";
        let listeners = config.listen().iter().filter(|listener| self.has_broadcast(**listener));
        let listeners = listeners.map(|listener| ConfigError {
            hint: Some(format!("coap://0.0.0.0:{} listens on all of its own", listener.port()).into()),
            ..config.object_to_listener(*listener, REASON)
        });
        let upstreams = config.parameters().relay.upstreams;
        let of_everybody = |address: SocketAddr| self.has_broadcast(address);
        let upstreams = upstreams.iter().filter(|upstream| {
            upstream.authority.as_ref().and_then(|uri| uri.socket_address()).is_some_and(of_everybody)
        });
        let upstreams = upstreams.map(|upstream| ConfigError {
            allowed: Some("the address of one host".into()),
            ..config.object(&format!("upstreams.{}.uri", upstream.name), REASON)
        });
        listeners.chain(upstreams).collect()
    }
}

/// The one of its network, and another one if it was given one. A network of two has none (RFC 3021).
fn broadcasts(address: &Ifv4Addr) -> impl Iterator<Item = Ipv4Addr> {
    let last = address.ip | !address.netmask;
    let of_network = (address.netmask.to_bits().count_zeros() > 1).then_some(last);
    let given = address.broadcast.filter(|given| *given != address.ip && Some(*given) != of_network);
    of_network.into_iter().chain(given)
}

#[cfg(test)]
mod tests {
    use coapway_config::Overrides;

    use super::*;

    fn interface(ip: [u8; 4], prefixlen: u8, broadcast: Option<[u8; 4]>) -> IfAddr {
        let netmask = Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(prefixlen)).unwrap_or(0));
        IfAddr::V4(Ifv4Addr { ip: ip.into(), netmask, prefixlen, broadcast: broadcast.map(Into::into) })
    }

    fn host() -> Interfaces {
        let told = [
            interface([127, 0, 0, 1], 8, None),
            interface([10, 0, 0, 7], 24, Some([10, 0, 0, 255])),
            interface([10, 1, 0, 1], 16, Some([10, 1, 7, 255])),
            interface([192, 0, 2, 0], 31, None),
            interface([198, 51, 100, 1], 32, Some([198, 51, 100, 1])),
        ];
        Interfaces::of(told.iter())
    }

    #[test]
    fn each_network_has_an_address_for_everybody() {
        let broadcasts: Vec<_> = host().broadcasts.iter().map(ToString::to_string).collect();
        assert_eq!(broadcasts, ["127.255.255.255", "10.0.0.255", "10.1.255.255", "10.1.7.255"]);
        assert_eq!(host().addresses.len(), 5);
    }

    #[test]
    fn nobody_listens_at_and_asks_everybody() {
        let told = |overrides: Overrides| {
            let none = std::iter::empty::<(String, String)>();
            let config = Config::load(None, none, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
            host().objections(&config).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let listen = ["coap://10.0.0.255:5683", "coap://[::ffff:10.1.7.255]:5684", "coap://10.0.0.7"];
        let listen = listen.map(str::to_owned).to_vec();
        let errors = told(Overrides { listen, ..Overrides::default() });
        assert_eq!(
            errors[0],
            "command line: --listen coap://10.0.0.255:5683\n    \
             a broadcast address: everybody in a network of this host\n    \
             hint: coap://0.0.0.0:5683 listens on all of its own"
        );
        assert_eq!(errors.len(), 2);
        let reverse = |uri: &str| told(Overrides { reverse: Some(uri.to_owned()), ..Overrides::default() });
        assert_eq!(
            reverse("coap://10.0.0.255"),
            ["command line: --reverse coap://10.0.0.255:5683\n    \
              a broadcast address: everybody in a network of this host; allowed: the address of one host"]
        );
        assert_eq!(reverse("coap://10.0.0.254"), [""; 0]);
    }
}
