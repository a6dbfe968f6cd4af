//! A table of a TOML file, asked key by key; what is wrong with a value is noted with its place.

use std::cell::RefCell;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use coapway_config::{ConfigError, Source};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::units;

/// The file and what was found wrong in it.
pub(super) struct File<'t> {
    pub(super) path: Arc<PathBuf>,
    pub(super) text: &'t str,
    pub(super) errors: RefCell<Vec<ConfigError>>,
}

impl File<'_> {
    pub(super) fn source(&self, span: &Range<usize>) -> Source {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let from_one = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
        Source::File { path: Arc::clone(&self.path), line: from_one(line), column: from_one(column) }
    }

    pub(super) fn wrong(&self, error: Wrong<'_>) {
        let Wrong { key, span, shown, reason, allowed, hint } = error;
        self.errors.borrow_mut().push(ConfigError {
            source: self.source(span),
            key,
            value: shown.then(|| self.shown(span)).flatten(),
            reason: reason.into(),
            allowed: allowed.map(Into::into),
            hint: hint.map(Into::into),
        });
    }

    /// The first line of what stands there.
    fn shown(&self, span: &Range<usize>) -> Option<Box<str>> {
        let line = self.text.get(span.clone())?.lines().next()?;
        Some(line.chars().take(80).collect::<String>().into())
    }
}

/// What is wrong with a key.
pub(super) struct Wrong<'w> {
    pub(super) key: String,
    pub(super) span: &'w Range<usize>,
    /// Whether what stands there helps.
    pub(super) shown: bool,
    pub(super) reason: &'w str,
    pub(super) allowed: Option<String>,
    pub(super) hint: Option<String>,
}

/// One table.
pub(super) struct Table<'t> {
    file: &'t File<'t>,
    /// What its keys begin with in messages.
    name: String,
    table: &'t DeTable<'t>,
    span: Range<usize>,
    asked: RefCell<Vec<&'static str>>,
}

impl<'t> Table<'t> {
    pub(super) fn new(file: &'t File<'t>, name: String, table: &'t DeTable<'t>, span: Range<usize>) -> Self {
        Self { file, name, table, span, asked: RefCell::default() }
    }

    fn qualified(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    pub(super) fn get(&self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.asked.borrow_mut().push(key);
        self.table.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(super) fn wrong(&self, key: &str, value: &Spanned<DeValue<'_>>, reason: &str, allowed: String) {
        self.file.wrong(Wrong {
            key: self.qualified(key),
            span: &value.span(),
            shown: true,
            reason,
            allowed: Some(allowed),
            hint: None,
        });
    }

    /// Something is wrong with the table itself.
    pub(super) fn missing(&self, key: &str, hint: &str) {
        self.file.wrong(Wrong {
            key: self.qualified(key),
            span: &self.span,
            shown: false,
            reason: "missing",
            allowed: None,
            hint: Some(hint.to_owned()),
        });
    }

    /// A time in seconds, written with a unit.
    pub(super) fn seconds(&self, key: &'static str, least: f64, most: f64) -> Option<f64> {
        self.scaled(key, least, most, units::seconds, units::show)
    }

    /// A time that another one bounds from below.
    pub(super) fn at_least(&self, key: &'static str, found: f64, least: f64, most: f64, reason: &str) {
        if found < least
            && let Some(value) = self.table.get(key)
        {
            self.wrong(
                key,
                value,
                reason,
                format!("\"{}\" to \"{}\"", units::show(least), units::show(most)),
            );
        }
    }

    pub(super) fn rate(&self, key: &'static str) -> Option<f64> {
        self.scaled(key, 1.0, 1e9, units::rate, |rate| format!("{rate}bit/s"))
    }

    pub(super) fn size(&self, key: &'static str) -> Option<u64> {
        Some(self.scaled(key, 1.0, 1e9, units::size, |size| format!("{size}B"))? as u64)
    }

    fn scaled(
        &self,
        key: &'static str,
        least: f64,
        most: f64,
        read: fn(&str) -> Option<f64>,
        show: fn(f64) -> String,
    ) -> Option<f64> {
        let value = self.get(key)?;
        let allowed = format!("\"{}\" to \"{}\"", show(least), show(most));
        match value.get_ref().as_str().and_then(read) {
            Some(number) if (least..=most).contains(&number) => Some(number),
            Some(_) => {
                self.wrong(key, value, "out of range", allowed);
                None
            }
            None => {
                self.wrong(key, value, "not a number with its unit, in quotes", allowed);
                None
            }
        }
    }

    pub(super) fn number(&self, key: &'static str, least: f64, most: f64) -> Option<f64> {
        let value = self.get(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(integer) => integer.as_str().parse().ok(),
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => None,
        };
        let reason = if number.is_some() { "out of range" } else { "not a number" };
        let number: Option<f64> = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.wrong(key, value, reason, format!("{least} to {most}"));
        }
        number
    }

    pub(super) fn share(&self, key: &'static str) -> Option<f64> {
        self.number(key, 0.0, 1.0)
    }

    pub(super) fn count(&self, key: &'static str, least: u32, most: u32) -> Option<u32> {
        let number = self.number(key, least.into(), most.into())?;
        if number.fract() != 0.0 {
            let value = self.table.get(key)?;
            self.wrong(key, value, "not a whole number", format!("{least} to {most}"));
            return None;
        }
        Some(number as u32)
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<bool> {
        let value = self.get(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong(key, value, "neither true nor false", "true or false".to_owned());
        }
        flag
    }

    pub(super) fn text(&self, key: &'static str) -> Option<&'t str> {
        let value = self.get(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong(key, value, "not a text", "a text in quotes".to_owned());
        }
        text
    }

    /// One of these words.
    pub(super) fn word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let value = self.get(key)?;
        let text = value.get_ref().as_str();
        let found = words.iter().find(|(word, _)| Some(*word) == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
            self.wrong(key, value, "unknown", known.join(", "));
        }
        found
    }

    pub(super) fn table(&self, key: &'static str) -> Option<Self> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(self.below(key, table, value.span())),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => {
                self.wrong(key, value, "not a table", format!("[{}]", self.qualified(key)));
                None
            }
        }
    }

    /// The tables of an array.
    pub(super) fn tables(&self, key: &'static str) -> Vec<Self> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let allowed = || format!("[[{}]]", self.qualified(key));
        let Some(array) = value.get_ref().as_array() else {
            self.wrong(key, value, "not an array of tables", allowed());
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in array.iter() {
            match item.get_ref().as_table() {
                Some(table) => tables.push(self.below(key, table, item.span())),
                None => self.wrong(key, item, "not a table", allowed()),
            }
        }
        tables
    }

    fn below(&self, key: &str, table: &'t DeTable<'t>, span: Range<usize>) -> Self {
        Self::new(self.file, self.qualified(key), table, span)
    }

    /// Notes keys that nobody asked for.
    pub(super) fn finish(self) {
        let asked = self.asked.borrow();
        for key in self.table.keys().filter(|key| !asked.contains(&&**key.get_ref())) {
            let mut known = asked.clone();
            known.sort_unstable();
            known.dedup();
            self.file.wrong(Wrong {
                key: self.qualified(key.get_ref()),
                span: &key.span(),
                shown: false,
                reason: "unknown key",
                allowed: None,
                hint: Some(format!("known here: {}", known.join(", "))),
            });
        }
    }
}
