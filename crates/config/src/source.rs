//! Where a value was written.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::escaping::escaped;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Nowhere.
    Default,
    /// In the profile of this name, which was asked for.
    Profile(&'static str),
    /// In the file, from 1 on; columns count characters.
    File {
        /// The file as it was named to us.
        path: Arc<PathBuf>,
        /// The line.
        line: u32,
        /// The column.
        column: u32,
    },
    /// In the environment variable of this name.
    Environment(String),
    /// On the command line, behind this option.
    CommandLine(&'static str),
}

/// The keys whose variables have names of their own and hold plain seconds or numbers.
const SHORT: [(&str, &str); 8] = [
    ("upstream.ack_timeout", "COAP_UPSTREAM_ACK_TIMEOUT"),
    ("upstream.ack_random_factor", "COAP_UPSTREAM_ACK_RANDOM_FACTOR"),
    ("upstream.max_retransmit", "COAP_UPSTREAM_MAX_RETRANSMIT"),
    ("upstream.max_wait", "COAP_UPSTREAM_MAX_WAIT"),
    ("downstream.ack_timeout", "COAP_DOWNSTREAM_ACK_TIMEOUT"),
    ("downstream.ack_random_factor", "COAP_DOWNSTREAM_ACK_RANDOM_FACTOR"),
    ("downstream.max_retransmit", "COAP_DOWNSTREAM_MAX_RETRANSMIT"),
    ("downstream.max_wait", "COAP_DOWNSTREAM_MAX_WAIT"),
];

/// The prefix of all other variables.
pub(crate) const PREFIX: &str = "COAPWAY__";

/// The variables with names of their own, and their keys.
pub(crate) fn short_variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    SHORT.into_iter().map(|(key, variable)| (variable, key))
}

/// The variable that sets `key`.
pub(crate) fn variable(key: &str) -> String {
    match SHORT.iter().find(|(short, _)| *short == key) {
        Some((_, variable)) => (*variable).to_owned(),
        None => format!("{PREFIX}{}", key.replace('.', "__").replace('-', "_").to_uppercase()),
    }
}

impl Source {
    /// Whether somebody wrote it for the very key.
    pub(crate) const fn is_given(&self) -> bool {
        match self {
            Self::Default | Self::Profile(_) => false,
            Self::File { .. } | Self::Environment(_) | Self::CommandLine(_) => true,
        }
    }

    /// How `key` is spelled where this source is.
    pub(crate) fn spell(&self, key: &str) -> String {
        match self {
            Self::Environment(_) => variable(key),
            Self::Default | Self::Profile(_) | Self::File { .. } | Self::CommandLine(_) => key.to_owned(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::File { path, line, .. } => write!(f, "{}:{line}", escaped(path.display())),
            Self::Environment(name) => write!(f, "env {}", escaped(name)),
            Self::CommandLine(option) => f.write_str(option),
        }
    }
}
