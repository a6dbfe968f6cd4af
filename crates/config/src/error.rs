//! What is wrong with a configuration, for its operator.

use std::fmt;

use crate::escaping::escaped;
use crate::raw::{Raw, Written};
use crate::source::Source;

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where it is.
    pub source: Source,
    /// The dotted key; empty where the text is not even TOML.
    pub key: String,
    /// The value as it was written, when the value is what is wrong.
    pub value: Option<Box<str>>,
    /// What is wrong.
    pub reason: String,
    /// What is allowed instead.
    pub allowed: Option<Box<str>>,
    /// What to do.
    pub hint: Option<Box<str>>,
}

impl ConfigError {
    /// A key that nobody reads; whoever knows all keys adds a hint.
    pub(crate) fn unknown(key: String, written: &Written) -> Self {
        let source = &written.source;
        let reason = match source {
            Source::Environment(_) => "unknown variable",
            Source::Default | Source::Profile(_) | Source::File { .. } | Source::CommandLine(_) => {
                "unknown key"
            }
        };
        let error = Self::new(key, source, reason);
        if written.raw == Raw::Table { error } else { error.value(&*written.text) }
    }

    /// Something wrong at a key, whatever its value.
    pub(crate) fn new(key: String, source: &Source, reason: impl Into<String>) -> Self {
        let (value, allowed, hint) = (None, None, None);
        Self { source: source.clone(), key, value, reason: reason.into(), allowed, hint }
    }

    pub(crate) fn value(self, value: impl Into<Box<str>>) -> Self {
        Self { value: Some(value.into()), ..self }
    }

    pub(crate) fn maybe_value(self, value: Option<String>) -> Self {
        match value {
            Some(value) => self.value(value),
            None => self,
        }
    }

    pub(crate) fn allowed(self, allowed: impl Into<Box<str>>) -> Self {
        Self { allowed: Some(allowed.into()), ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<Box<str>>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn maybe_hint(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, value) = (escaped(&self.key), self.value.as_deref().map(escaped));
        match &self.source {
            Source::Default => f.write_str("configuration")?,
            Source::Profile(name) => write!(f, "profile {name}")?,
            Source::File { path, line, column } => write!(f, "{}:{line}:{column}", escaped(path.display()))?,
            Source::Environment(name) => write!(f, "environment: {}", escaped(name))?,
            Source::CommandLine(option) => write!(f, "command line: {option}")?,
        }
        // A variable and an option say what is meant themselves.
        match (&self.source, value) {
            (Source::Default | Source::Profile(_) | Source::File { .. }, Some(line))
                if self.key.is_empty() =>
            {
                write!(f, ": {line}")?
            }
            (Source::Default | Source::Profile(_) | Source::File { .. }, None) if self.key.is_empty() => {}
            (Source::Default | Source::Profile(_) | Source::File { .. }, Some(value)) => {
                write!(f, ": {key} = {value}")?
            }
            (Source::Default | Source::Profile(_) | Source::File { .. }, None) => write!(f, ": {key}")?,
            (Source::Environment(_), Some(value)) => write!(f, "={value}")?,
            (Source::Environment(_), None) => {}
            (Source::CommandLine("--set"), Some(value)) if !self.key.is_empty() => {
                write!(f, " {key}={value}")?
            }
            (Source::CommandLine(_), Some(value)) => write!(f, " {value}")?,
            (Source::CommandLine(_), None) => write!(f, " {key}")?,
        }
        write!(f, "\n    {}", escaped(&self.reason))?;
        if let Some(allowed) = &self.allowed {
            write!(f, "; allowed: {}", escaped(allowed))?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n    hint: {}", escaped(hint)),
            None => Ok(()),
        }
    }
}

/// All that is wrong with a configuration: the file first, by line, then the environment, then the
/// command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// Puts errors into their order.
    ///
    /// Shape: `errors` is not empty.
    pub fn new(mut errors: Vec<ConfigError>) -> Self {
        debug_assert!(!errors.is_empty(), "a configuration without errors is loaded");
        errors.sort_by(|a, b| a.source.cmp(&b.source));
        Self(errors)
    }

    /// So many are told of; whoever has more to mend begins with these.
    pub const MOST_TOLD: usize = 50;

    /// The first of them, as many as are told of.
    pub fn first(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter().take(Self::MOST_TOLD)
    }

    /// Each of them; at least one.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => f.write_str("1 error in the configuration")?,
            count => write!(f, "{count} errors in the configuration")?,
        }
        self.first().try_for_each(|error| write!(f, "\n\n{error}"))?;
        match self.0.len().checked_sub(Self::MOST_TOLD) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "\n\nand {more} more"),
        }
    }
}

impl std::error::Error for ConfigErrors {}

/// Why one value cannot be read, before it is known where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) reason: String,
    pub(crate) hint: Option<String>,
}

impl Wrong {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// The candidate that `text` is most likely a typo of.
pub(crate) fn nearest<'c>(text: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let within = (text.len() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(text, candidate), candidate))
        .filter(|(distance, _)| *distance <= within)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The edit distance of Levenshtein.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(nearest("ack_timout", ["ack_timeout", "max_wait"]), Some("ack_timeout"));
        assert_eq!(nearest("colour", ["ack_timeout", "max_wait"]), None);
    }
}
