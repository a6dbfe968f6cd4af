//! What no key can be judged by alone: values that contradict each other, and values to warn of.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{Estimator, TransmissionParameters};
use coapway_relay::Forward;

use crate::error::ConfigError;
use crate::schema::window::Window;
use crate::section::{Section, Table};
use crate::sets::{UpstreamSet, downstream, upstream_sets};
use crate::settings::{NamedUpstream, Settings};
use crate::source::Source;
use crate::units::show_duration;

/// Finds contradictions, and decides who may have requests forwarded.
pub(crate) fn check(settings: &Settings, errors: &mut Vec<ConfigError>) -> Forward {
    let values = &settings.downstream.values;
    if values.early_ack_after * 2 > values.client_ack_timeout {
        errors.push(
            contradiction(&settings.downstream, ["early_ack_after", "client_ack_timeout"])
                .value(show_duration(values.early_ack_after))
                .allowed(format!("at most {}", show_duration(values.client_ack_timeout / 2)))
                .hint("half of client_ack_timeout: later, clients repeat themselves before they hear of us"),
        );
    }
    for set in upstream_sets(settings) {
        let rto = set.set().rto;
        if rto.floor > rto.cap {
            errors.push(
                contradiction(set.section, ["rto.floor", "rto.cap"])
                    .value(show_duration(rto.floor))
                    .allowed(format!("at most {}", show_duration(rto.cap))),
            );
        }
    }
    for named in &settings.upstreams {
        if let Some(listener) = own_listener(settings, named) {
            let reason = format!("our own listener {listener}: requests would go round in a circle");
            errors.push(ConfigError::new(named.origin.qualified("uri"), &named.origin.source("uri"), reason));
        }
    }
    forward(settings, errors)
}

/// The first of two keys is too large for the other; it is told where the stronger of both was
/// written.
fn contradiction<T: Table>(section: &Section<T>, [key, other]: [&str; 2]) -> ConfigError {
    let source = section.source(key).max(section.source(other));
    let reason = format!("too large for {}", section.qualified(other));
    ConfigError::new(section.qualified(key), &source, reason)
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

/// What is allowed and deserves a look.
pub(crate) fn warnings(settings: &Settings, forward: &Forward) -> Vec<String> {
    let mut warnings = Vec::new();
    let values = &settings.downstream.values;
    let section = &settings.downstream;
    schedule(section, &values.transmission, &mut warnings);
    let used = downstream(settings).transmission;
    held(section, &values.transmission, used.max_retransmit, &mut warnings);
    let needed = used.max_transmit_wait();
    if values.max_wait < needed {
        warnings.push(format!(
            "downstream.max_wait = {} ends before MAX_TRANSMIT_WAIT ({}): the last copies of a separate response \
             do not leave or are not waited for",
            show_duration(values.max_wait),
            show_duration(needed)
        ));
    }
    for set in upstream_sets(settings) {
        upstream(settings, set, &mut warnings);
    }
    let everybody = settings.forward.values.clients.iter().flat_map(|networks| &networks.0);
    if matches!(forward, Forward::Listed { .. })
        && let Some(network) = everybody.clone().find(|network| network.prefix_len() == 0)
    {
        warnings.push(format!("forward.clients has {network}: everybody may have requests forwarded"));
    }
    if *forward == Forward::Off && settings.routes.is_empty() {
        warnings.push(
            "nothing is served: forwarding is off and there are no routes; give [forward] clients and allow, \
             [[routes]], or --reverse URI"
                .to_owned(),
        );
    }
    warnings
}

fn upstream(settings: &Settings, set: UpstreamSet<'_>, warnings: &mut Vec<String>) {
    let parameters = set.set();
    let inherits = |keys: &[&str]| {
        set.named.is_some() && keys.iter().all(|key| set.section.source(key) == settings.upstream.source(key))
    };
    let schedule_keys = ["ack_timeout", "ack_random_factor", "max_retransmit"];
    if !inherits(&schedule_keys) {
        schedule(set.section, &parameters.transmission, warnings);
        held(set.section, &parameters.transmission, set.used().transmission.max_retransmit, warnings);
    }
    if let Window::Fixed(window @ 2..) = set.section.values.window.window
        && parameters.rto.estimator == Estimator::Fixed
        && !inherits(&["nstart", "rto.estimator"])
    {
        warnings.push(format!(
            "{} = {window} without a learned timeout: more than one exchange at a time wants the round-trip \
             time to be measured (RFC 7252 §4.7)",
            set.section.qualified("nstart")
        ));
    }
}

fn schedule<T: Table>(
    section: &Section<T>,
    transmission: &TransmissionParameters,
    warnings: &mut Vec<String>,
) {
    if transmission.ack_timeout < Duration::from_secs(1) {
        warnings.push(format!(
            "{} = {} is under 1s, the least RFC 8085 §3.1.1 wants where the round-trip time is not known",
            section.qualified("ack_timeout"),
            show_duration(transmission.ack_timeout)
        ));
    }
    if transmission.ack_random_factor < 1.1 {
        warnings.push(format!(
            "{} = {:?} is under 1.1: peers that lost a message together repeat it together, and retry_jitter is \
             held to the factor less 1",
            section.qualified("ack_random_factor"),
            transmission.ack_random_factor
        ));
    }
}

fn held<T: Table>(
    section: &Section<T>,
    transmission: &TransmissionParameters,
    used: u32,
    warnings: &mut Vec<String>,
) {
    if used < transmission.max_retransmit {
        let cure = match section.name.as_str() {
            "downstream" => "downstream.client_ack_timeout says that clients use longer ones",
            _ => "an upstream with parameters of its own in [[upstreams]] is not held",
        };
        warnings.push(format!(
            "{} = {} is held to {used}: later copies leave after MAX_TRANSMIT_SPAN of peers with default \
             parameters, which may take them for new messages (RFC 7252 §4.8.1); {cure}",
            section.qualified("max_retransmit"),
            transmission.max_retransmit,
        ));
    }
}
