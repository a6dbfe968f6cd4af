//! A table of the file: its keys, written down once, and their values with sources.

use std::time::Duration;

use crate::error::{ConfigError, Wrong, nearest};
use crate::raw::{Raw, Written};
use crate::source::Source;
use crate::units::{parse_duration, parse_seconds, parse_size, show_duration, show_size};

/// A value that is read from one written value.
pub(crate) trait Value: Sized {
    fn read(raw: &Raw) -> Result<Self, Wrong>;
    fn show(&self) -> String;
}

/// `None` until it is set.
impl<V: Value> Value for Option<V> {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        V::read(raw).map(Some)
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "unset".to_owned(), V::show)
    }
}

impl Value for bool {
    fn read(raw: &Raw) -> Result<Self, Wrong> {
        raw.as_boolean().ok_or_else(|| Wrong::new("not a boolean"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Picks the choice with the written name.
pub(crate) fn choose<C: Copy>(raw: &Raw, choices: &[(&str, C)]) -> Result<C, Wrong> {
    let text = raw.as_text().ok_or_else(|| Wrong::new("not a string"))?;
    choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice).ok_or_else(|| {
        let wrong = Wrong::new("no such choice");
        match nearest(text, choices.iter().map(|(name, _)| *name)) {
            Some(name) => wrong.hint(format!("did you mean {name:?}?")),
            None => wrong,
        }
    })
}

/// A place for a [`Value`].
pub(crate) trait Place {
    fn put(&mut self, raw: &Raw) -> Result<(), Wrong>;
    fn show(&self) -> String;
}

impl<V: Value> Place for V {
    fn put(&mut self, raw: &Raw) -> Result<(), Wrong> {
        *self = V::read(raw)?;
        Ok(())
    }

    fn show(&self) -> String {
        Value::show(self)
    }
}

/// A place for a whole number.
pub(crate) trait Count {
    fn put(&mut self, count: u64);
    fn value(&self) -> u64;
}

impl Count for u32 {
    fn put(&mut self, count: u64) {
        *self = Self::try_from(count).unwrap_or(Self::MAX);
    }

    fn value(&self) -> u64 {
        (*self).into()
    }
}

impl Count for usize {
    fn put(&mut self, count: u64) {
        *self = Self::try_from(count).unwrap_or(Self::MAX);
    }

    fn value(&self) -> u64 {
        *self as u64
    }
}

/// What a key holds: the least and the most allowed, and where it goes.
pub(crate) enum Field<T: 'static> {
    Duration(Duration, Duration, fn(&mut T) -> &mut Duration),
    /// A duration, or `"off"` for `None`.
    DurationOrOff(Duration, Duration, fn(&mut T) -> &mut Option<Duration>),
    Number(f64, f64, fn(&mut T) -> &mut f64),
    /// A number, or `"off"` for `None`.
    NumberOrOff(f64, f64, fn(&mut T) -> &mut Option<f64>),
    Count(u64, u64, fn(&mut T) -> &mut dyn Count),
    Size(u64, u64, fn(&mut T) -> &mut dyn Count),
    /// With what is allowed in words.
    Value(&'static str, fn(&mut T) -> &mut dyn Place),
}

impl<T: 'static> Field<T> {
    fn put(&self, target: &mut T, raw: &Raw) -> Result<(), Wrong> {
        match self {
            Self::Duration(least, most, place) => *place(target) = duration(raw, *least, *most)?,
            Self::DurationOrOff(least, most, place) => {
                *place(target) = if is_off(raw) { None } else { Some(duration(raw, *least, *most)?) };
            }
            Self::Number(least, most, place) => *place(target) = number(raw, *least, *most)?,
            Self::NumberOrOff(least, most, place) => {
                *place(target) = if is_off(raw) { None } else { Some(number(raw, *least, *most)?) };
            }
            Self::Count(least, most, place) => place(target).put(count(raw, *least, *most)?),
            Self::Size(least, most, place) => {
                let wrong =
                    || Wrong::new("a size needs a unit").hint("write it like \"64KiB\" or \"256MiB\"");
                let size = parse_size(raw.as_text().ok_or_else(wrong)?)?;
                place(target).put(within(size, *least, *most)?);
            }
            Self::Value(_, place) => place(target).put(raw)?,
        }
        Ok(())
    }

    fn show(&self, target: &mut T) -> String {
        match self {
            Self::Duration(_, _, place) => show_duration(*place(target)),
            Self::DurationOrOff(_, _, place) => place(target).map_or_else(off, show_duration),
            Self::Number(_, _, place) => show_number(*place(target)),
            Self::NumberOrOff(_, _, place) => place(target).map_or_else(off, show_number),
            Self::Count(_, _, place) => place(target).value().to_string(),
            Self::Size(_, _, place) => show_size(place(target).value()),
            Self::Value(_, place) => place(target).show(),
        }
    }

    fn allowed(&self, in_seconds: bool) -> String {
        match self {
            Self::Duration(least, most, _) if in_seconds => {
                format!("{} to {} seconds", least.as_secs_f64(), most.as_secs_f64())
            }
            Self::Duration(least, most, _) => {
                format!("{} to {}", show_duration(*least), show_duration(*most))
            }
            Self::DurationOrOff(least, most, _) => {
                format!("\"off\" or {} to {}", show_duration(*least), show_duration(*most))
            }
            Self::Number(least, most, _) => format!("{} to {}", show_number(*least), show_number(*most)),
            Self::NumberOrOff(least, most, _) => {
                format!("\"off\" or {} to {}", show_number(*least), show_number(*most))
            }
            Self::Count(least, most, _) if least == most => format!("only {least}"),
            Self::Count(least, most, _) => format!("{least} to {most}"),
            Self::Size(least, most, _) => format!("{} to {}", show_size(*least), show_size(*most)),
            Self::Value(allowed, _) => (*allowed).to_owned(),
        }
    }
}

fn is_off(raw: &Raw) -> bool {
    raw.as_text() == Some("off")
}

fn off() -> String {
    "off".to_owned()
}

pub(crate) fn duration(raw: &Raw, least: Duration, most: Duration) -> Result<Duration, Wrong> {
    let duration = match raw {
        Raw::Seconds(text) => parse_seconds(text)?,
        Raw::Text(text) | Raw::Word(text) => parse_duration(text)?,
        Raw::Integer(_) | Raw::Float(_) => {
            return Err(Wrong::new("a duration needs a unit").hint("write it like \"2s\" or \"500ms\""));
        }
        Raw::Boolean(_) | Raw::List(_) | Raw::Table | Raw::Date => return Err(Wrong::new("not a duration")),
    };
    within(duration, least, most)
}

fn number(raw: &Raw, least: f64, most: f64) -> Result<f64, Wrong> {
    let number = raw.as_number().ok_or_else(|| Wrong::new("not a number"))?;
    within(number, least, most)
}

/// A number with at least one decimal, as TOML wants floats.
fn show_number(number: f64) -> String {
    format!("{number:?}")
}

/// Reads a whole number from `least` to `most`.
pub(crate) fn count(raw: &Raw, least: u64, most: u64) -> Result<u64, Wrong> {
    if matches!(raw, Raw::Integer(None)) {
        return Err(Wrong::new("too large"));
    }
    let count = raw.as_integer().ok_or_else(|| Wrong::new("not a whole number"))?;
    let count = within(count, least.into(), most.into())?;
    Ok(u64::try_from(count).unwrap_or(most))
}

/// `value`, when it is in range; NaN never is.
fn within<V: PartialOrd>(value: V, least: V, most: V) -> Result<V, Wrong> {
    if (least..=most).contains(&value) { Ok(value) } else { Err(Wrong::new("out of range")) }
}

/// One key of a table.
pub(crate) struct Key<T: 'static> {
    /// Its name in the table, dotted when it is in a table of its own.
    pub(crate) name: &'static str,
    pub(crate) field: Field<T>,
    /// What it is.
    pub(crate) doc: &'static str,
    /// Why it is limited as it is; the hint for a value outside.
    pub(crate) why: &'static str,
}

/// What a table of the file holds; its default is the configuration's.
pub(crate) trait Table: Clone + Default + 'static {
    /// What the table is for, in the reference.
    const DOC: &'static str;
    const KEYS: &'static [Key<Self>];
}

/// One key, its value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) source: Source,
}

/// One key in the reference.
pub(crate) struct Description {
    pub(crate) name: &'static str,
    pub(crate) default: String,
    pub(crate) allowed: String,
    pub(crate) doc: &'static str,
    pub(crate) why: &'static str,
}

/// A table with its name, its values and their sources.
#[derive(Clone, Debug)]
pub(crate) struct Section<T> {
    /// What keys begin with; empty for the top level.
    pub(crate) name: String,
    pub(crate) values: T,
    /// One for each key.
    sources: Vec<Source>,
}

impl<T: Table> Section<T> {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), values: T::default(), sources: vec![Source::Default; T::KEYS.len()] }
    }

    /// The same values and sources under another name.
    pub(crate) fn renamed(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Where the value of `key`, a name in the table, comes from.
    pub(crate) fn source(&self, key: &str) -> Source {
        let index = T::KEYS.iter().position(|known| known.name == key);
        debug_assert!(index.is_some(), "{key} is in the table");
        index.map_or(Source::Default, |index| self.sources[index].clone())
    }

    /// The dotted key.
    pub(crate) fn qualified(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

/// A [`Section`] whatever it holds.
pub(crate) trait AnySection {
    fn name(&self) -> &str;
    fn has(&self, key: &str) -> bool;
    /// Whether some key is in a table of its own with this name.
    fn has_table(&self, name: &str) -> bool;
    fn set(&mut self, key: &str, written: &Written) -> Result<(), ConfigError>;
    fn key_names(&self) -> Vec<&'static str>;
    fn entries(&self) -> Vec<Entry>;
    fn descriptions(&self) -> Vec<Description>;
    fn doc(&self) -> &'static str;
}

impl<T: Table> AnySection for Section<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn has(&self, key: &str) -> bool {
        T::KEYS.iter().any(|known| known.name == key)
    }

    fn has_table(&self, name: &str) -> bool {
        T::KEYS.iter().any(|known| known.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    }

    fn set(&mut self, key: &str, written: &Written) -> Result<(), ConfigError> {
        let Some(index) = T::KEYS.iter().position(|known| known.name == key) else {
            return Err(ConfigError::unknown(self.qualified(key), written));
        };
        let known = &T::KEYS[index];
        if written.raw == Raw::Table {
            let error = ConfigError::new(self.qualified(key), &written.source, "a value, not a table");
            return Err(error.allowed(known.field.allowed(false)));
        }
        known.field.put(&mut self.values, &written.raw).map_err(|wrong| {
            let why = (!known.why.is_empty()).then(|| known.why.to_owned());
            ConfigError::new(self.qualified(key), &written.source, wrong.reason)
                .value(&*written.text)
                .allowed(known.field.allowed(matches!(written.raw, Raw::Seconds(_))))
                .maybe_hint(wrong.hint.or(why))
        })?;
        self.sources[index] = written.source.clone();
        Ok(())
    }

    fn key_names(&self) -> Vec<&'static str> {
        T::KEYS.iter().map(|key| key.name).collect()
    }

    fn entries(&self) -> Vec<Entry> {
        let mut values = self.values.clone();
        let entry = |(key, source): (&Key<T>, &Source)| Entry {
            key: self.qualified(key.name),
            value: key.field.show(&mut values),
            source: source.clone(),
        };
        T::KEYS.iter().zip(&self.sources).map(entry).collect()
    }

    fn descriptions(&self) -> Vec<Description> {
        let mut defaults = T::default();
        let describe = |key: &Key<T>| Description {
            name: key.name,
            default: key.field.show(&mut defaults),
            allowed: key.field.allowed(false),
            doc: key.doc,
            why: key.why,
        };
        T::KEYS.iter().map(describe).collect()
    }

    fn doc(&self) -> &'static str {
        T::DOC
    }
}
