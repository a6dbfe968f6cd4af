//! Parameters of an upstream: those in force and those that could be.
//!
//! A policy is what it is in a configuration file, and goes through the same checks. What this version's
//! configuration does not know is no candidate.

use std::path::{Path, PathBuf};
use std::time::Duration;

use coapway_config::{Config, ConfigErrors, Overrides};
use coapway_endpoint::{Estimator, Nstart};
use coapway_proxy::UpstreamParameters;

use crate::fit::Fit;
use crate::observed::Observed;

/// One key of `[[upstreams]]` and its value, as in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `rto.quantile`.
    pub key: &'static str,
    /// A TOML value.
    pub value: String,
}

/// Parameters, and where they differ from those in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// What differs.
    pub settings: Vec<Setting>,
    /// All of it.
    pub parameters: UpstreamParameters,
}

/// A setting.
pub(crate) fn set(key: &'static str, value: impl ToString) -> Setting {
    Setting { key, value: value.to_string() }
}

/// A duration as files write it.
pub(crate) fn written(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis.is_multiple_of(1000) { format!("\"{}s\"", millis / 1000) } else { format!("\"{millis}ms\"") }
}

/// The configuration that records were made with.
#[derive(Clone, Debug)]
pub(crate) struct InForce {
    path: PathBuf,
    text: String,
    /// The key of its table: `upstream`, or `upstreams.NAME`.
    table: String,
    place: usize,
    /// What records say beside it.
    read: Vec<Setting>,
    pub(crate) policy: Policy,
    /// Where the origin is, as a file says it.
    pub(crate) uri: String,
    pub(crate) is_given: bool,
}

impl InForce {
    /// The parameters of an upstream in a file; without one the defaults, and what records say.
    ///
    /// Errors: what is wrong with the file.
    pub(crate) fn new(
        file: Option<(&Path, &str)>,
        name: &str,
        observed: &Observed,
        fit: Option<&Fit>,
    ) -> Result<Self, ConfigErrors> {
        let (path, text) = file.unwrap_or((Path::new("coapway.toml"), ""));
        let config = Config::load(file, NO_ENVIRONMENT, &Overrides::default())?;
        let known = config.parameters().relay.upstreams;
        let found = known.iter().position(|upstream| &*upstream.name == name);
        // What `serve --reverse` makes has no table in a file: the keys for all origins are its own.
        let is_general = name == "default" || name == "reverse" && found.is_none();
        let most = observed.origins.iter().max_by_key(|(_, count)| **count);
        let mut uri = format!("coap://{}", most.map_or("127.0.0.1:5683", |(origin, _)| &**origin));
        let mut in_force = Self {
            path: path.to_owned(),
            text: text.to_owned(),
            table: if is_general { "upstream".to_owned() } else { format!("upstreams.{name}") },
            place: if is_general { 0 } else { found.unwrap_or(known.len()) },
            read: Vec::new(),
            policy: Policy { settings: Vec::new(), parameters: UpstreamParameters::default() },
            uri: String::new(),
            is_given: is_general && file.is_some() || found.is_some(),
        };
        if let Some(authority) = found.and_then(|place| known[place].authority.as_ref()) {
            uri = format!("coap://{authority}");
        } else if !is_general {
            in_force.text += &format!("\n[[upstreams]]\nname = \"{name}\"\nuri = \"{uri}\"\n");
        }
        in_force.uri = uri;
        in_force.policy.parameters = in_force.load(&[])?;
        if !in_force.is_given {
            in_force.read = read(observed, fit, &in_force.policy.parameters);
            in_force.policy.parameters = in_force.load(&[])?;
        }
        Ok(in_force)
    }

    /// The policy with these settings; `None` when the configuration does not take them.
    pub(crate) fn with(&self, settings: &[Setting]) -> Option<Policy> {
        let parameters = self.load(settings).ok()?;
        Some(Policy { settings: settings.to_vec(), parameters })
    }

    /// What records say about the parameters in force.
    pub(crate) fn read(&self) -> &[Setting] {
        &self.read
    }

    /// Whether it is the table for all origins without one of their own.
    pub(crate) fn is_general(&self) -> bool {
        self.place == 0
    }

    fn load(&self, settings: &[Setting]) -> Result<UpstreamParameters, ConfigErrors> {
        let assign = |setting: &Setting| format!("{}.{}={}", self.table, setting.key, setting.value);
        let set = self.read.iter().chain(settings).map(assign).collect();
        let overrides = Overrides { set, ..Overrides::default() };
        let config = Config::load(Some((&self.path, &self.text)), NO_ENVIRONMENT, &overrides)?;
        Ok(config.parameters().upstreams.get(self.place).copied().unwrap_or_default())
    }
}

const NO_ENVIRONMENT: [(&str, &str); 0] = [];

/// The parameters in force, as far as the waits and ends of exchanges show them beyond doubt.
fn read(observed: &Observed, fit: Option<&Fit>, usual: &UpstreamParameters) -> Vec<Setting> {
    const ENOUGH: u64 = 5;
    let mut read = Vec::new();
    let transmission = &usual.transmission;
    let (shortest, median) = (observed.shortest_wait, observed.waits.quantile(0.5).unwrap_or(0.0));
    if let (Some(fit), true) = (fit, observed.waits.count() >= 200) {
        // What is learned lies near this, and is asked for as often as not.
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        let learned = (usual.rto.factor * fit.quantile(usual.rto.quantile)).min(millis(usual.rto.cap));
        if shortest > 1.3 * learned.max(millis(usual.rto.floor)) || median < 0.7 * learned {
            read.push(set("rto.estimator", "\"fixed\""));
            let start = Duration::from_millis((shortest / 10.0).round() as u64 * 10);
            if start != transmission.ack_timeout {
                read.push(set("ack_timeout", written(start)));
            }
        }
    }
    if observed.given_up.count() >= ENOUGH
        && let Some(after) = observed.given_up.quantile(0.5)
    {
        // To a tenth of a second; histograms are exact to 2 %.
        let is_usual = (after / usual.max_wait.as_secs_f64() / 1000.0 - 1.0).abs() < 0.03;
        if !is_usual {
            read.push(set("max_wait", written(Duration::from_millis((after / 100.0).round() as u64 * 100))));
        }
        let [idempotent, once] = observed.most_in_vain;
        // One more copy would have had the time to leave.
        let next = 1.2 * median * f64::from((1_u32 << (idempotent + 1).min(20)) - 1);
        let is_less = idempotent > 0 && idempotent < transmission.max_retransmit && next < 0.8 * after;
        if is_less || idempotent > transmission.max_retransmit {
            read.push(set("max_retransmit", idempotent));
        }
        if once > usual.max_retransmit_non_idempotent {
            read.push(set("max_retransmit_non_idempotent", once));
        }
    }
    read
}

/// How the first wait could be learned.
pub(crate) fn estimators() -> Vec<Vec<Setting>> {
    let mut all = Vec::new();
    for quantile in ["0.9", "0.95", "0.98"] {
        for factor in ["1.0", "1.25", "1.5", "2.0", "2.5"] {
            let estimator = set("rto.estimator", "\"p95\"");
            all.push(vec![estimator, set("rto.quantile", quantile), set("rto.factor", factor)]);
        }
    }
    for budget in ["0.02", "0.05", "0.1"] {
        all.push(vec![set("rto.estimator", "\"budget\""), set("rto.spurious_budget", budget)]);
    }
    let others = ["fixed", "rfc6298", "pto", "linux", "cocoa_strong"];
    all.extend(others.map(|name| vec![set("rto.estimator", format!("\"{name}\""))]));
    all
}

/// What else could be, after the estimator: one list after the other, of which the best is kept.
pub(crate) fn refinements(fit: &Fit, in_force: &UpstreamParameters) -> Vec<Vec<Setting>> {
    let fast = fit.quantile(0.5) < 100.0;
    let floors =
        if fast { vec![set("rto.floor", "\"50ms\""), set("rto.floor", "\"100ms\"")] } else { Vec::new() };
    let most = in_force.transmission.max_retransmit;
    let copies = (most.saturating_sub(1)..=most + 2).filter(|&copies| copies != most && copies <= 10);
    let max_wait = in_force.max_wait;
    let longer = [max_wait * 2].into_iter().filter(|&wait| wait <= Duration::from_secs(120));
    // A number that was chosen for another path holds requests up, or fills its buffers.
    let learned = matches!(in_force.nstart, Nstart::Fixed(_)).then(|| set("nstart", "\"auto\""));
    vec![
        learned.into_iter().collect(),
        vec![set("ack_timeout", written(start(fit)))],
        floors,
        copies.map(|copies| set("max_retransmit", copies)).collect(),
        longer.map(|wait| set("max_wait", written(wait))).collect(),
    ]
}

/// A first ACK_TIMEOUT for a path like this: above nearly all round trips, and not under the second that
/// RFC 8085 asks for while nothing is known.
fn start(fit: &Fit) -> Duration {
    let seconds = (1.5 * fit.quantile(0.99) / 1000.0).clamp(1.0, 60.0);
    Duration::from_millis((seconds * 2.0).ceil() as u64 * 500)
}

/// Whether a policy learns.
pub(crate) fn learns(policy: &Policy) -> bool {
    policy.parameters.rto.estimator != Estimator::Fixed
}
