//! The command line: options into assignments.

use crate::error::ConfigError;
use crate::raw::{Assignment, Raw, Written};
use crate::source::Source;

/// The options of the command line that say what the configuration says too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--listen URI`, instead of all other listeners.
    pub listen: Vec<String>,
    /// `--reverse URI`: an upstream named `reverse` behind the route `/`.
    pub reverse: Option<String>,
    /// `--admin off`.
    pub admin: Option<String>,
    /// `--record FILE|-|off`.
    pub record: Option<String>,
    /// `--log FILE|-`.
    pub log: Option<String>,
    /// `--log-format text|json`.
    pub log_format: Option<String>,
    /// `--set dotted.key=value`, the last one of a key wins, but not over the options above.
    pub set: Vec<String>,
}

impl Overrides {
    /// An error about each key that is set a second time: people who do that forgot the first.
    pub fn repeated(&self) -> Vec<ConfigError> {
        let pairs = || {
            self.set
                .iter()
                .filter_map(|set| set.split_once('='))
                .map(|(key, value)| (key.trim(), value.trim()))
        };
        let error = |(index, (key, value)): (usize, (&str, &str))| {
            let (_, first) = pairs().take(index).find(|(other, _)| *other == key)?;
            let error =
                ConfigError::new(key.to_owned(), &Source::CommandLine("--set"), "given twice").value(value);
            Some(error.hint(format!("the first one is --set {key}={first}; leave one of them out")))
        };
        pairs().enumerate().filter_map(error).collect()
    }
}

pub(crate) const REVERSE: &str = "--reverse";

/// What all options but `--reverse` and `--listen` say.
pub(crate) fn read(overrides: &Overrides, errors: &mut Vec<ConfigError>) -> Vec<Assignment> {
    let mut assignments = Vec::new();
    for set in &overrides.set {
        let source = Source::CommandLine("--set");
        match set.split_once('=') {
            Some((key, value)) => {
                let (key, text) = (key.trim(), value.trim().to_owned());
                let value = Written { raw: Raw::from_word(&text), text, source };
                assignments.push(Assignment { key: key.to_owned(), value });
            }
            None => {
                let error = ConfigError::new(String::new(), &source, "no value");
                let hint = "write --set dotted.key=value, like --set upstream.max_wait=20s";
                errors.push(error.value(&**set).hint(hint));
            }
        }
    }
    let options = [
        ("--admin", "admin.listen", &overrides.admin),
        ("--record", "record.file", &overrides.record),
        ("--log", "log.file", &overrides.log),
        ("--log-format", "log.format", &overrides.log_format),
    ];
    assignments.extend(options.into_iter().filter_map(|(option, key, value)| {
        Some(Assignment { key: key.to_owned(), value: word(option, value.as_deref()?) })
    }));
    assignments
}

/// A value behind an option.
pub(crate) fn word(option: &'static str, text: &str) -> Written {
    Written { raw: Raw::Word(text.to_owned()), text: text.to_owned(), source: Source::CommandLine(option) }
}
