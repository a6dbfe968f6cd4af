//! What is allowed and deserves a look.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{Carry, Estimator, RtoParameters, TransmissionParameters};
use coapway_proxy::{PostGuard, TokenPolicy, UpstreamParameters};
use coapway_relay::Forward;

use crate::schema::upstream::Upstream;
use crate::schema::window::Window;
use crate::section::{Section, Table};
use crate::sets::{UpstreamSet, downstream, upstream_sets};
use crate::settings::Settings;
use crate::units::show_duration;

/// What is allowed and deserves a look.
pub(crate) fn of(settings: &Settings, forward: &Forward) -> Vec<String> {
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
    let longest = upstream_sets(settings).map(|set| set.used().max_wait).max().unwrap_or_default();
    if let Some(within) = values.answer_within.filter(|within| *within >= longest) {
        warnings.push(format!(
            "downstream.answer_within = {} has no effect: no upstream is waited for longer than {}",
            show_duration(within),
            show_duration(longest)
        ));
    }
    exposed(settings, &mut warnings);
    let everybody = settings.forward.values.clients.iter().flat_map(|networks| &networks.0);
    if matches!(forward, Forward::Listed { .. })
        && let Some(network) = everybody.clone().find(|network| network.prefix_len() == 0)
    {
        warnings.push(format!("forward.clients has {network}: everybody may have requests forwarded"));
    }
    if let Some(network) = settings.clients.values.trusted.0.iter().find(|network| network.prefix_len() == 0)
    {
        warnings.push(format!(
            "clients.trusted has {network}: every address is believed, and a forged one can be sent more than was \
             sent in its name (RFC 7252 §11.3)"
        ));
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

/// What strangers who reach a listener may do.
fn exposed(settings: &Settings, warnings: &mut Vec<String>) {
    let addresses = settings.listen.iter().map(|(listener, _)| listener.0);
    let exposed: Vec<String> =
        addresses.filter(|address| !address.ip().is_loopback()).map(|a: SocketAddr| a.to_string()).collect();
    if exposed.is_empty() {
        return;
    }
    let listeners = exposed.join(" and ");
    if settings.clients.values.trusted.0.is_empty() {
        warnings.push(format!(
            "clients.trusted is empty and {listeners} is open to senders who forge their address: to a client \
             whose address is not believed, an answer above 136 bytes and three times the request is withheld \
             with 4.01 (RFC 7252 §11.3); list the networks into which nobody outside can send in their name"
        ));
    }
    if settings.limits.values.client_rate == 0 {
        warnings.push(format!(
            "limits.client_rate = 0: one client that reaches {listeners} may take all there is to take"
        ));
    }
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
    if !inherits(&[
        "rto.estimator",
        "rto.quantile",
        "rto.factor",
        "rto.cap",
        "rto.spurious_budget",
        "rto.margin",
        "rto.window",
    ]) {
        timeouts(set.section, &parameters.rto, warnings);
    }
    if parameters.rto.carry == Carry::Never && !inherits(&["rto.carry"]) {
        warnings.push(format!(
            "{} = \"never\": where the round-trip time is above the timeout, each request is sent again and again, for \
             ever, and nothing is learned (RFC 8961 §4)",
            set.section.qualified("rto.carry")
        ));
    }
    if parameters.token == TokenPolicy::Preserve && !inherits(&["token"]) {
        warnings.push(format!(
            "{} = \"preserve\": clients choose what keeps forged responses out, and some choose badly \
             (RFC 7252 §11.4); a token that is in use or rests is replaced by one of ours",
            set.section.qualified("token")
        ));
    }
    if parameters.post_guard == PostGuard::RequestTag && !inherits(&["post_guard"]) {
        warnings.push(format!(
            "{} = \"request-tag\" goes beyond what RFC 9175 means a Request-Tag for: it helps only with origins \
             that are known to recognise duplicates by it",
            set.section.qualified("post_guard")
        ));
    }
    if parameters.post_guard == PostGuard::None
        && parameters.post_guard_window != UpstreamParameters::default().post_guard_window
        && !inherits(&["post_guard", "post_guard_window"])
    {
        warnings.push(format!(
            "{} has no effect: {} is \"none\"",
            set.section.qualified("post_guard_window"),
            set.section.qualified("post_guard")
        ));
    }
    let (once, often) = (parameters.max_retransmit_non_idempotent, parameters.transmission.max_retransmit);
    if once > often
        && set.section.source("max_retransmit_non_idempotent").is_given()
        && !inherits(&["max_retransmit_non_idempotent", "max_retransmit"])
    {
        warnings.push(format!(
            "{} = {once} is held to {} = {often}",
            set.section.qualified("max_retransmit_non_idempotent"),
            set.section.qualified("max_retransmit")
        ));
    }
    if parameters.retry.max_attempts > 2 && !inherits(&["retry.max_attempts"]) {
        warnings.push(format!(
            "{} = {}: each further attempt is one more load on an origin in trouble and may be executed once \
             more; the budget in retry.budget is what limits it",
            set.section.qualified("retry.max_attempts"),
            parameters.retry.max_attempts
        ));
    }
    if parameters.probing_rate.is_none() && !inherits(&["probing_rate"]) {
        warnings.push(format!(
            "{} = \"off\": an origin that answers nothing gets Non-confirmable requests as fast as they come, \
             which RFC 7252 §4.7 does not allow without consent",
            set.section.qualified("probing_rate")
        ));
    }
}

/// What the estimator does not look at, and samples that are too few for it.
fn timeouts(section: &Section<Upstream>, rto: &RtoParameters, warnings: &mut Vec<String>) {
    let default = RtoParameters::default();
    for (key, estimator, is_changed) in [
        ("rto.quantile", Estimator::P95, rto.quantile != default.quantile),
        ("rto.factor", Estimator::P95, rto.factor != default.factor),
        ("rto.cap", Estimator::P95, rto.cap != default.cap),
        ("rto.spurious_budget", Estimator::Budget, rto.spurious_budget != default.spurious_budget),
        ("rto.margin", Estimator::Budget, rto.margin != default.margin),
    ] {
        // What lies above the cap is told for the other one, too.
        let is_told = key == "rto.cap" && rto.estimator == Estimator::Budget;
        if rto.estimator != estimator && is_changed && !is_told {
            warnings.push(format!(
                "{} has no effect: it is for {:?}, and {} is {:?}",
                section.qualified(key),
                estimator.name(),
                section.qualified("rto.estimator"),
                rto.estimator.name()
            ));
        }
    }
    // The slowest of w samples is exceeded once in w + 1 times.
    let least = (1.0 / rto.spurious_budget - 1e-9).ceil() - 1.0;
    if rto.estimator == Estimator::Budget && (rto.window as f64) < least {
        warnings.push(format!(
            "{} = {} is too few for {} = {:?}: a share so small wants {least} samples",
            section.qualified("rto.window"),
            rto.window,
            section.qualified("rto.spurious_budget"),
            rto.spurious_budget
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
