//! The policies that are compared: configurations, as an operator would write them.
//!
//! A policy is what `--set` would say of `[upstream]`, or what a file says. Which names there are is asked
//! of the configuration itself, so that each estimator and profile it learns is a policy at once.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use coapway_config::{Config, ConfigError, ConfigErrors, Overrides};
use coapway_proxy::Parameters;
use coapway_relay::UpstreamId;

/// Where the proxy listens.
pub(crate) const LISTENER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 5683);
/// Where the origin is.
pub(crate) const ORIGIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1)), 5683);

/// What is shipped.
pub const DEFAULT: &str = "default";

/// RFC 7252 to the letter, for configurations without a profile of that name.
const RFC7252: (&str, &[&str]) = (
    "rfc7252",
    &[
        "rto.estimator=fixed",
        "retry_jitter=0",
        "max_retransmit_non_idempotent=4",
        "nstart=1",
        "retry.max_attempts=1",
    ],
);

/// One policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What it is called.
    pub name: String,
    /// What it sets, each as `key=value`.
    pub settings: Vec<String>,
    /// What the proxy is told.
    pub(crate) parameters: Parameters,
    /// Whose settings hold for the origin.
    pub(crate) upstream: UpstreamId,
}

/// Why there is no such policy.
#[derive(Clone, Debug)]
pub enum NoPolicy {
    /// There is no such name.
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Its file cannot be read.
    Unreadable(String),
    /// Its settings are wrong.
    Wrong {
        /// What was asked for.
        name: String,
        /// What is wrong.
        errors: ConfigErrors,
    },
}

impl fmt::Display for NoPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } => {
                write!(
                    f,
                    "no policy {name:?}\n  hint: there are {}, and files with [upstream]",
                    known.join(", ")
                )
            }
            Self::Unreadable(what) => f.write_str(what),
            Self::Wrong { name, errors } => write!(f, "policy {name}: {errors}"),
        }
    }
}

impl Policy {
    /// Reads what stands behind `--policy`: `NAME`, `NAME,key=value,…` or the path of a file, which may be
    /// followed by settings too. `common` is set for all policies, dotted as for `--set`.
    ///
    /// Errors: the name is unknown, the file cannot be read, or the settings are wrong.
    pub fn parse(text: &str, common: &[String]) -> Result<Self, NoPolicy> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default().trim();
        let own: Vec<String> = parts.map(|part| part.trim().to_owned()).collect();
        let is_file = name.ends_with(".toml") || name.contains('/');
        let file = if is_file { Some(read(name)?) } else { None };
        let mut settings = if is_file { Vec::new() } else { named(name)? };
        settings.extend(own);
        let shown = if is_file { text.rsplit('/').next().unwrap_or(text) } else { text };
        let file = file.as_ref().map(|text| (Path::new(name), text.as_str()));
        let (parameters, upstream) = load(file, &settings, common)
            .map_err(|errors| NoPolicy::Wrong { name: text.to_owned(), errors })?;
        Ok(Self { name: shown.to_owned(), settings, parameters, upstream })
    }

    /// All names there are, the default first.
    pub fn names() -> Vec<String> {
        let mut names = vec![DEFAULT.to_owned()];
        for name in
            choices("rto.estimator").into_iter().chain(choices("profile")).chain([RFC7252.0.to_owned()])
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

fn read(path: &str) -> Result<String, NoPolicy> {
    std::fs::read_to_string(path)
        .map_err(|error| NoPolicy::Unreadable(format!("policy {path}: cannot be read: {error}")))
}

/// What a name stands for.
fn named(name: &str) -> Result<Vec<String>, NoPolicy> {
    if name == DEFAULT {
        return Ok(Vec::new());
    }
    for key in ["rto.estimator", "profile"] {
        if choices(key).iter().any(|choice| choice == name) {
            return Ok(vec![format!("{key}={name}")]);
        }
    }
    if name == RFC7252.0 {
        return Ok(RFC7252.1.iter().map(|setting| (*setting).to_owned()).collect());
    }
    Err(NoPolicy::Unknown { name: name.to_owned(), known: Policy::names() })
}

/// The values that a key of `[upstream]` may have, as the configuration tells whoever gives it another;
/// none, when there is no such key.
fn choices(key: &str) -> Vec<String> {
    let Err(errors) = load(None, &[format!("{key}=?")], &[]) else { return Vec::new() };
    let allowed = |error: &ConfigError| error.allowed.clone();
    let allowed = errors.iter().find_map(allowed).unwrap_or_default();
    allowed.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn load(
    file: Option<(&Path, &str)>,
    settings: &[String],
    common: &[String],
) -> Result<(Parameters, UpstreamId), ConfigErrors> {
    let own = settings.iter().map(|setting| format!("upstream.{setting}"));
    let set = common.iter().cloned().chain(own).chain(["limits.client_rate=0".to_owned()]);
    let overrides = Overrides {
        listen: vec![format!("coap://{LISTENER}")],
        reverse: Some(format!("coap://{ORIGIN}")),
        record: Some("off".to_owned()),
        set: set.collect(),
        ..Overrides::default()
    };
    let config = Config::load(file, std::iter::empty::<(String, String)>(), &overrides)?;
    let mut parameters = config.parameters();
    if let Ok(network) = "10.1.0.0/16".parse() {
        parameters.relay.trusted.push(network);
    }
    let upstreams = &parameters.relay.upstreams;
    let place = upstreams.iter().rposition(|upstream| &*upstream.name == "reverse").unwrap_or_default();
    Ok((parameters, UpstreamId(u32::try_from(place).unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use coapway_endpoint::Estimator;

    use super::*;

    fn policy(text: &str) -> Policy {
        Policy::parse(text, &[]).unwrap_or_else(|problem| panic!("{problem}"))
    }

    #[test]
    fn names_are_what_the_configuration_knows() {
        let names = Policy::names();
        assert_eq!(names[0], DEFAULT);
        for name in ["fixed", "p95", "rfc7252"] {
            assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
        }
        names.iter().for_each(|name| assert_eq!(policy(name).name, *name));
    }

    #[test]
    fn a_name_sets_what_it_says_and_settings_are_added() {
        let of = |text| policy(text).parameters.upstreams[policy(text).upstream.0 as usize];
        assert_eq!(of("fixed").rto.estimator, Estimator::Fixed);
        assert_eq!(of("fixed,max_wait=20s").max_wait.as_secs(), 20);
        let common = Policy::parse("default", &["upstream.max_wait=12s".to_owned()]).expect("a policy");
        assert_eq!(common.parameters.upstreams[common.upstream.0 as usize].max_wait.as_secs(), 12);
    }

    #[test]
    fn a_file_is_a_policy_too() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("mine.toml");
        std::fs::write(&file, "[upstream]\nmax_wait = \"7s\"\n").expect("written");
        let mine = policy(&file.display().to_string());
        assert_eq!(
            (&*mine.name, mine.parameters.upstreams[mine.upstream.0 as usize].max_wait.as_secs()),
            ("mine.toml", 7)
        );
        std::fs::write(&file, "[upstream]\nmax_wait = \"0s\"\n").expect("written");
        let problem = Policy::parse(&file.display().to_string(), &[]).expect_err("out of range").to_string();
        assert!(problem.contains("mine.toml:2:12") && problem.contains("100ms"), "{problem}");
    }

    #[test]
    fn an_unknown_name_is_answered_with_what_there_is() {
        let problem = Policy::parse("fixd", &[]).expect_err("unknown").to_string();
        assert!(
            problem.contains("\"fixd\"") && problem.contains("fixed") && problem.contains("rfc7252"),
            "{problem}"
        );
        assert!(Policy::parse("fixed,nstart=0", &[]).is_err());
    }
}
