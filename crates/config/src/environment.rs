//! The environment: variables into assignments.

use std::ffi::OsString;

use crate::error::{ConfigError, nearest};
use crate::raw::{Assignment, Raw, Written};
use crate::source::{PREFIX, Source, short_variables, variable};

/// Reads the variables that are ours, by name.
pub(crate) fn read(
    variables: impl Iterator<Item = (OsString, OsString)>,
    errors: &mut Vec<ConfigError>,
) -> Vec<Assignment> {
    let mut ours: Vec<(String, OsString)> = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| is_ours(name))
        .collect();
    ours.sort();
    ours.into_iter()
        .filter_map(|(name, value)| assignment(name, value).map_err(|e| errors.push(e)).ok())
        .collect()
}

/// Whether a variable is meant for us, mistyped ones included.
fn is_ours(name: &str) -> bool {
    let prefixed =
        ["COAP_UPSTREAM_", "COAP_DOWNSTREAM_", PREFIX].iter().any(|prefix| name.starts_with(prefix));
    let halved = name.starts_with("COAPWAY_") && name.contains("__");
    let parameters = ["_ACK_TIMEOUT", "_ACK_RANDOM_FACTOR", "_MAX_RETRANSMIT", "_MAX_WAIT"];
    let mistyped = name.starts_with("COAP_") && parameters.iter().any(|end| name.ends_with(end));
    prefixed || halved || mistyped
}

fn assignment(name: String, value: OsString) -> Result<Assignment, ConfigError> {
    let source = Source::Environment(name.clone());
    let text = value.into_string().map_err(|value| {
        ConfigError::new(name.clone(), &source, "not UTF-8").value(value.to_string_lossy())
    })?;
    let written = |raw| Written { raw, text: text.clone(), source: source.clone() };
    match name.strip_prefix(PREFIX) {
        Some(rest) => {
            let key = rest.to_lowercase().replace("__", ".");
            if let Some((variable, _)) = short_variables().find(|(_, short)| *short == key) {
                let error = ConfigError::new(key, &source, "this key has a variable of its own");
                return Err(error
                    .value(text)
                    .hint(format!("set {variable}; durations in it are in seconds")));
            }
            if rest.contains(|c: char| c.is_lowercase()) {
                let hint = format!("write {}", variable(&key));
                return Err(ConfigError::unknown(key, &written(Raw::from_word(&text))).hint(hint));
            }
            Ok(Assignment { key, value: written(Raw::from_word(&text)) })
        }
        None => match short_variables().find(|(variable, _)| *variable == name) {
            Some((_, key)) => {
                let raw = Raw::Seconds(text.trim().to_owned());
                Ok(Assignment { key: key.to_owned(), value: written(raw) })
            }
            None => {
                let names = short_variables().map(|(variable, _)| variable);
                let hint = match nearest(&name, names) {
                    Some(variable) => format!("did you mean {variable}?"),
                    None => OTHERS.to_owned(),
                };
                Err(ConfigError::unknown(name, &written(Raw::Word(text.clone()))).hint(hint))
            }
        },
    }
}

const OTHERS: &str = "ACK_TIMEOUT, ACK_RANDOM_FACTOR, MAX_RETRANSMIT and MAX_WAIT have such variables; all other \
                      keys have COAPWAY__SECTION__KEY";
