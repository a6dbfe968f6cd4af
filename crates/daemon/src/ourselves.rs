//! Upstreams that are this very proxy, as far as this host's addresses and files tell.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use coapway_config::{Config, ConfigError, Resolver};
use coapway_message::uri::{Authority, Host};
use coapway_relay::admission::is_own;
use coapway_transport::resolver::parse_hosts;

use crate::interfaces::Interfaces;

/// Where the system's resolver looks first.
const HOSTS: &str = "/etc/hosts";
/// No more is read of it, in bytes.
const LONGEST_HOSTS: u64 = 16 << 20;
/// Where a name that no file has may lead (RFC 6761 §6.3).
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// An error about each upstream at which one of our listeners takes the requests.
pub(crate) fn objections(config: &Config, interfaces: &Interfaces) -> Vec<ConfigError> {
    let mut parameters = config.parameters().relay;
    parameters.own_addresses.clone_from(&interfaces.addresses);
    // A name is told by what it leads to.
    parameters.own_names.clear();
    let upstreams = parameters
        .upstreams
        .iter()
        .filter_map(|upstream| Some((&upstream.name, upstream.authority.as_ref()?)));
    let may_be_own = |port| config.listen().iter().any(|listener| listener.port() == port);
    let mut hosts = None;
    let mut errors = Vec::new();
    for (upstream, Authority { host, port }) in upstreams.filter(|(_, authority)| may_be_own(authority.port))
    {
        let is_ours =
            |address: &IpAddr| is_own(&parameters, &Authority { host: Host::Address(*address), port: *port });
        let (found, leads) = match host {
            Host::Address(address) => (is_ours(address).then_some(*address), false),
            Host::Name(name) => {
                let hosts = hosts.get_or_insert_with(|| hosts_of(config));
                (addresses(name, hosts).iter().copied().find(is_ours), true)
            }
        };
        if let Some(address) = found {
            let key = format!("upstreams.{upstream}.uri");
            errors.push(objection(config, &key, SocketAddr::new(address, *port), leads));
        }
    }
    errors
}

fn objection(config: &Config, key: &str, address: SocketAddr, leads: bool) -> ConfigError {
    let takes = |listener: &&SocketAddr| {
        listener.port() == address.port()
            && (listener.ip().is_unspecified() || listener.ip().to_canonical() == address.ip())
    };
    let listener = config.listen().iter().find(takes).copied().unwrap_or(address);
    let leads = if leads { format!("leads to {}, ", address.ip()) } else { String::new() };
    let reason = format!(
        "{leads}where our own listener {listener} takes what is sent: requests would go round in a circle"
    );
    ConfigError { allowed: Some("the origin's own address and port".into()), ..config.object(key, reason) }
}

/// What a file says of names, where one is asked.
fn hosts_of(config: &Config) -> HashMap<String, Vec<IpAddr>> {
    let text = match config.resolver() {
        Resolver::System => read(Path::new(HOSTS)),
        Resolver::Hosts(path) => read(path),
        Resolver::Server(_) => String::new(),
    };
    parse_hosts(&text)
}

fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    // What cannot be read says nothing of names, and a FIFO would wait for its writer.
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return String::new();
    }
    let _ = File::open(path).and_then(|file| file.take(LONGEST_HOSTS).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn addresses<'h>(name: &str, hosts: &'h HashMap<String, Vec<IpAddr>>) -> &'h [IpAddr] {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    match hosts.get(&name) {
        Some(addresses) => addresses,
        None if name == "localhost" || name.ends_with(".localhost") => &LOOPBACK,
        None => &[],
    }
}

#[cfg(test)]
mod tests {
    use coapway_config::Overrides;

    use super::*;

    fn told(listen: &str, uri: &str, hosts: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hosts");
        fs::write(&path, hosts).expect("written");
        let overrides = Overrides {
            listen: vec![listen.to_owned()],
            reverse: Some(uri.to_owned()),
            set: vec![format!("resolver=hosts:{}", path.display())],
            ..Overrides::default()
        };
        let none = std::iter::empty::<(String, String)>();
        let config = Config::load(None, none, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
        let addresses =
            ["127.0.0.1", "10.0.0.7", "::1", "fd00::7"].map(|text| text.parse().expect("an address"));
        let interfaces = Interfaces { addresses: addresses.to_vec(), broadcasts: Vec::new() };
        objections(&config, &interfaces).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_sent_to_a_listener_of_ours_would_go_round() {
        assert_eq!(
            told("coap://0.0.0.0", "coap://10.0.0.7", ""),
            ["command line: --reverse coap://10.0.0.7:5683\n    \
              where our own listener 0.0.0.0:5683 takes what is sent: requests would go round in a circle; allowed: \
              the origin's own address and port"]
        );
        for (listen, uri, is_ours) in [
            ("coap://[::]", "coap://10.0.0.7", true),
            ("coap://[::]", "coap://[fd00::7]", true),
            ("coap://[::]", "coap://[::ffff:10.0.0.7]", true),
            ("coap://[::]:7", "coap://10.0.0.7:7", true),
            ("coap://0.0.0.0", "coap://10.0.0.7:7", false),
            ("coap://0.0.0.0", "coap://10.0.0.8", false),
            ("coap://127.0.0.1", "coap://10.0.0.7", false),
            ("coap://10.0.0.7", "coap://[fd00::7]", false),
        ] {
            assert_eq!(told(listen, uri, "").len(), usize::from(is_ours), "{listen} {uri}");
        }
    }

    #[test]
    fn names_are_ours_by_what_they_lead_to() {
        let hosts = "127.0.0.1 localhost here\n10.0.0.7 gate gate.example\n10.0.0.8 boiler\n::1 localhost\n";
        let [error] = &told("coap://0.0.0.0", "coap://Gate", hosts)[..] else { panic!("one error") };
        assert!(error.contains("leads to 10.0.0.7, where our own listener 0.0.0.0:5683 takes"), "{error}");
        for (listen, uri, is_ours) in [
            ("coap://127.0.0.1", "coap://localhost", true),
            ("coap://[::1]", "coap://localhost", true),
            ("coap://127.0.0.1", "coap://here.", true),
            ("coap://127.0.0.1", "coap://localhost:5684", false),
            ("coap://10.0.0.7", "coap://localhost", false),
            ("coap://0.0.0.0", "coap://boiler", false),
            ("coap://0.0.0.0", "coap://unknown", false),
        ] {
            assert_eq!(told(listen, uri, hosts).len(), usize::from(is_ours), "{listen} {uri}");
        }
        // No file has it, and it is this host all the same.
        assert_eq!(told("coap://127.0.0.1", "coap://localhost", "").len(), 1);
        assert_eq!(told("coap://127.0.0.1", "coap://x.localhost", "").len(), 1);
        assert_eq!(told("coap://127.0.0.1", "coap://localhost", "10.9.9.9 localhost\n").len(), 0);
    }
}
