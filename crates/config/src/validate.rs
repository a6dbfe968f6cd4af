//! What no key can be judged by alone: values that contradict each other.

mod pairs;

use std::net::SocketAddr;

use coapway_relay::Forward;

use crate::error::ConfigError;
use crate::schema::places::NamedOrigin;
use crate::section::{Section, Value};
use crate::settings::{NamedUpstream, Settings};
use crate::source::Source;

/// Finds contradictions, and decides who may have requests forwarded.
///
/// Shape: `is_broken` says that parts of the file could not be read: what is missing may stand there.
pub(crate) fn check(settings: &Settings, is_broken: bool, errors: &mut Vec<ConfigError>) -> Forward {
    if is_broken {
        return Forward::Off;
    }
    let unread = Unread(errors.iter().map(|error| error.key.clone()).collect());
    pairs::check(settings, &unread, errors);
    for (index, (listener, source)) in settings.listen.iter().enumerate() {
        if let Some((other, _)) =
            settings.listen[..index].iter().find(|(other, _)| overlap(other.0, listener.0))
        {
            let reason = format!("already listened on by {}", other.show());
            errors.push(ConfigError::new("listen".to_owned(), source, reason).value(listener.show()));
        }
    }
    for (index, named) in settings.upstreams.iter().enumerate() {
        let uri = &named.origin.values.uri;
        let same = |other: &&NamedUpstream| uri.is_some() && other.origin.values.uri == *uri;
        if let Some(other) = settings.upstreams[..index].iter().find(same) {
            errors.push(same_origin(&other.origin, &named.origin));
        }
        if let Some(listener) = own_listener(settings, named).filter(|_| !unread.has_listeners()) {
            let reason = format!("our own listener {listener}: requests would go round in a circle");
            let error = ConfigError::new(named.origin.qualified("uri"), &named.origin.source("uri"), reason);
            errors.push(error.maybe_value(uri.as_ref().map(|origin| origin.show())));
        }
    }
    // Of what could not be read nobody knows whether it is missing.
    if unread.has_forward() { Forward::Off } else { forward(settings, errors) }
}

/// The keys that something is wrong with already: what only follows from that is not told.
struct Unread(Vec<String>);

impl Unread {
    /// Whether one of these, names in whatever table, is among them.
    fn has(&self, keys: &[&str]) -> bool {
        let is_one = |told: &String, key: &str| {
            told.strip_suffix(key).is_some_and(|table| table.is_empty() || table.ends_with('.'))
        };
        self.0.iter().any(|told| keys.iter().any(|key| is_one(told, key)))
    }

    fn has_listeners(&self) -> bool {
        self.0.iter().any(|told| told == "listen" || told == "listen.uri")
    }

    fn has_forward(&self) -> bool {
        self.0.iter().any(|told| told == "forward" || told.starts_with("forward.")) || self.has_listeners()
    }
}

/// Two upstreams are one origin: which of them forwarding means would be open, and NSTART would count twice.
fn same_origin(one: &Section<NamedOrigin>, other: &Section<NamedOrigin>) -> ConfigError {
    let is_later = other.source("uri") >= one.source("uri");
    let (told, first) = if is_later { (other, one) } else { (one, other) };
    let reason = format!("the same origin as {} ({})", first.qualified("uri"), first.source("uri"));
    ConfigError::new(told.qualified("uri"), &told.source("uri"), reason)
        .maybe_value(told.values.uri.as_ref().map(Value::show))
        .hint("several routes may lead to one upstream; what is learned of an origin, and NSTART, is kept for each upstream")
}

/// Whether two listeners want the same datagrams; `[::]` takes IPv4 too.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = |wide: SocketAddr, narrow: SocketAddr| {
        wide.ip().is_unspecified() && (wide.is_ipv6() || narrow.is_ipv4())
    };
    one.port() == other.port() && (one.ip() == other.ip() || covers(one, other) || covers(other, one))
}

/// The listener that an upstream's URI leads back to, as far as addresses tell.
fn own_listener(settings: &Settings, named: &NamedUpstream) -> Option<SocketAddr> {
    let origin = named.origin.values.uri.as_ref()?.0.socket_address()?;
    let own = |listener: &SocketAddr| {
        *listener == origin
            || listener.ip().is_unspecified() && origin.ip().is_loopback() && listener.port() == origin.port()
    };
    settings.listen.iter().map(|(listener, _)| listener.0).find(own)
}

/// Decides who may have requests forwarded (R-ATK-02; "open proxy, never").
fn forward(settings: &Settings, errors: &mut Vec<ConfigError>) -> Forward {
    let section = &settings.forward;
    let values = &section.values;
    if values.enabled == Some(false) {
        return Forward::Off;
    }
    let exposed = settings.listen.iter().find(|(listener, _)| !listener.0.ip().is_loopback());
    match (&values.clients, &values.allow) {
        (Some(clients), Some(allow)) => Forward::Listed {
            clients: clients.0.clone(),
            allow: allow.0.iter().map(|(_, pattern)| pattern.clone()).collect(),
        },
        (None, None) => match (&settings.forward_wanted, exposed) {
            (None, Some(_)) => Forward::Off,
            (None, None) if !settings.routes.is_empty() => Forward::Off,
            (_, None) => Forward::Open,
            (Some(wanted), Some((listener, _))) => {
                errors.push(both_lists_needed("forward", wanted, &format!("the listener on {}", listener.0)));
                Forward::Off
            }
        },
        (Some(_), None) => {
            errors.push(both_lists_needed("forward.allow", &section.source("clients"), "forward.clients"));
            Forward::Off
        }
        (None, Some(_)) => {
            errors.push(both_lists_needed("forward.clients", &section.source("allow"), "forward.allow"));
            Forward::Off
        }
    }
}

fn both_lists_needed(key: &str, source: &Source, cause: &str) -> ConfigError {
    let reason = match key {
        "forward" => format!("{cause} needs forward.clients and forward.allow: an open proxy is never run"),
        _ => format!("missing beside {cause}"),
    };
    let hint = "say who may be forwarded (clients) and where to (allow), or forward.enabled = false";
    ConfigError::new(key.to_owned(), source, reason).hint(hint)
}
