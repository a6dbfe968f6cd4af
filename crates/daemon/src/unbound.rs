//! What the host has against a listener, for the operator.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};

use coapway_config::{Config, ConfigError};

use crate::sockets::Unbound;

/// The lowest port that needs no right, unless the host says otherwise.
const UNPRIVILEGED: u16 = 1024;

/// An error about each address that cannot be listened on.
pub(crate) fn objections(config: &Config, unbound: &[Unbound]) -> Vec<ConfigError> {
    unbound.iter().map(|(address, error)| objection(config, *address, error)).collect()
}

fn objection(config: &Config, address: SocketAddr, error: &io::Error) -> ConfigError {
    let object = |reason: String| config.object_to_listener(address, reason);
    let everywhere = if address.is_ipv4() { "0.0.0.0" } else { "[::]" };
    match error.raw_os_error() {
        Some(libc::EADDRINUSE) => ConfigError {
            hint: Some(format!("ss -ulpn 'sport = :{}' tells which one", address.port()).into()),
            ..object("the port is in use by another program".to_owned())
        },
        Some(libc::EADDRNOTAVAIL) => ConfigError {
            allowed: Some(own_addresses(address.is_ipv4()).into()),
            hint: Some(
                format!("coap://{everywhere}:{} listens on all, later ones too", address.port()).into(),
            ),
            ..object("not an address of this host".to_owned())
        },
        Some(libc::EACCES) if address.port() < unprivileged() => ConfigError {
            allowed: Some(
                format!("ports from {} on; others need CAP_NET_BIND_SERVICE", unprivileged()).into(),
            ),
            hint: Some("whoever runs serve needs it, and for that check as well".into()),
            ..object("no permission for this port".to_owned())
        },
        Some(libc::EAFNOSUPPORT) => object("this host has no IPv6".to_owned()),
        Some(libc::EINVAL) if is_link_local(address) => ConfigError {
            allowed: Some(own_addresses(false).into()),
            hint: Some(
                format!("coap://{everywhere}:{} takes what comes to link-local ones", address.port()).into(),
            ),
            ..object("a link-local address, which belongs to an interface".to_owned())
        },
        _ => object(format!("cannot listen there: {error}")),
    }
}

/// Why a listener cannot be added while we listen on `own`, which has the port.
pub(crate) fn in_our_way(config: &Config, address: SocketAddr, own: SocketAddr) -> ConfigError {
    config.object_to_listener(
        address,
        format!(
            "cannot listen there while we listen on coap://{own}: leave both out, reload, and once the log \
             says that it is closed add this one"
        ),
    )
}

/// What is worth knowing of a listener whose port is in use while `check` runs: beside the service that has
/// it, nothing is wrong.
pub(crate) fn in_use(config: &Config, address: SocketAddr) -> String {
    let ConfigError { source, .. } = config.object_to_listener(address, "");
    format!(
        "coap://{address} ({source}) is in use: right beside the service that listens there, but no second \
         one can"
    )
}

/// The addresses of this host that can be listened on, for people.
fn own_addresses(ipv4: bool) -> String {
    let mut all = vec![if ipv4 { "0.0.0.0" } else { "[::]" }.to_owned()];
    for interface in if_addrs::get_if_addrs().unwrap_or_default() {
        let shown = match interface.ip() {
            IpAddr::V4(address) if ipv4 => address.to_string(),
            IpAddr::V6(address) if !ipv4 && !address.is_unicast_link_local() => format!("[{address}]"),
            IpAddr::V4(_) | IpAddr::V6(_) => continue,
        };
        if !all.contains(&shown) {
            all.push(shown);
        }
    }
    all.join(", ")
}

fn is_link_local(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(address) if address.is_unicast_link_local())
}

fn unprivileged() -> u16 {
    let told = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    told.ok().and_then(|told| told.trim().parse().ok()).filter(|&port| port > 0).unwrap_or(UNPRIVILEGED)
}

#[cfg(test)]
mod tests {
    use coapway_config::Overrides;

    use super::*;

    fn told(listener: &str, code: i32) -> String {
        let set = vec![format!("listen=coap://{listener}"), "forward.enabled=false".to_owned()];
        let overrides = Overrides { set, ..Overrides::default() };
        let none = std::iter::empty::<(String, String)>();
        let config = Config::load(None, none, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
        let address = listener.parse().expect("an address");
        let [error] = &objections(&config, &[(address, io::Error::from_raw_os_error(code))])[..] else {
            panic!("one error")
        };
        error.to_string()
    }

    #[test]
    fn each_refusal_says_what_would_be_taken() {
        for (listener, code, parts) in [
            (
                "127.0.0.1:5683",
                libc::EADDRINUSE,
                ["in use by another program", "hint: ss -ulpn 'sport = :5683'"],
            ),
            (
                "192.0.2.1:5683",
                libc::EADDRNOTAVAIL,
                ["not an address of this host; allowed: 0.0.0.0", "127.0.0.1"],
            ),
            (
                "[2001:db8::1]:5683",
                libc::EADDRNOTAVAIL,
                ["not an address of this host; allowed: [::]", "hint: coap://[::]:5683"],
            ),
            (
                "127.0.0.1:1",
                libc::EACCES,
                ["no permission for this port; allowed: ports from 1024 on", "CAP_NET_BIND_SERVICE"],
            ),
            ("[::1]:5683", libc::EAFNOSUPPORT, ["this host has no IPv6", ""]),
            ("[fe80::1]:5683", libc::EINVAL, ["a link-local address", "hint: coap://[::]:5683"]),
            ("127.0.0.1:5683", libc::EMFILE, ["cannot listen there: Too many open files", ""]),
            ("127.0.0.1:5683", libc::EACCES, ["cannot listen there: Permission denied", ""]),
        ] {
            let text = told(listener, code);
            assert!(text.starts_with(&format!("command line: --set listen=coap://{listener}\n")), "{text}");
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
    }
}
