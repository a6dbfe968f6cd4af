//! A value as it was written, before it is known what its key wants.

use toml::de::DeValue;

use crate::source::Source;

/// A value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Raw {
    /// A TOML string.
    Text(String),
    /// A word from the environment or the command line, without type.
    Word(String),
    /// Like a word, but a duration in it is in seconds and has no unit.
    Seconds(String),
    /// An integer; `None` when it does not fit.
    Integer(Option<i128>),
    /// A float, which may be NaN or infinite.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// An array.
    List(Vec<Self>),
    /// A table.
    Table,
    /// A date or a time.
    Date,
}

impl Raw {
    /// What a TOML value says.
    pub(crate) fn from_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Integer(integer) => {
                Self::Integer(i128::from_str_radix(integer.as_str(), integer.radix()).ok())
            }
            DeValue::Float(float) => Self::Float(float.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(boolean) => Self::Boolean(*boolean),
            DeValue::Datetime(_) => Self::Date,
            DeValue::Array(items) => {
                Self::List(items.iter().map(|item| Self::from_toml(item.get_ref())).collect())
            }
            DeValue::Table(_) => Self::Table,
        }
    }

    /// What a TOML value or a bare word says.
    pub(crate) fn from_word(text: &str) -> Self {
        let word = || Self::Word(text.trim().to_owned());
        match DeValue::parse(text).map(|value| Self::from_toml(value.get_ref())) {
            Ok(Self::Date | Self::Table) | Err(_) => word(),
            Ok(value) => value,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Word(text) | Self::Seconds(text) => Some(text),
            Self::Integer(_)
            | Self::Float(_)
            | Self::Boolean(_)
            | Self::List(_)
            | Self::Table
            | Self::Date => None,
        }
    }

    pub(crate) fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Integer(integer) => *integer,
            Self::Word(text) | Self::Seconds(text) => text.parse().ok(),
            Self::Text(_) | Self::Float(_) | Self::Boolean(_) | Self::List(_) | Self::Table | Self::Date => {
                None
            }
        }
    }

    pub(crate) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(integer) => integer.map(|integer| integer as f64),
            Self::Float(float) => Some(*float),
            Self::Word(text) | Self::Seconds(text) => text.parse().ok(),
            Self::Text(_) | Self::Boolean(_) | Self::List(_) | Self::Table | Self::Date => None,
        }
    }

    pub(crate) const fn as_boolean(&self) -> Option<bool> {
        match self {
            Self::Boolean(boolean) => Some(*boolean),
            Self::Text(_) | Self::Word(_) | Self::Seconds(_) | Self::Integer(_) => None,
            Self::Float(_) | Self::List(_) | Self::Table | Self::Date => None,
        }
    }

    /// The texts of an array, or of a word that is a list with commas.
    pub(crate) fn as_texts(&self) -> Option<Vec<&str>> {
        match self {
            Self::List(items) => items.iter().map(Self::as_text).collect(),
            Self::Word(text) | Self::Seconds(text) => Some(text.split(',').map(str::trim).collect()),
            Self::Text(_)
            | Self::Integer(_)
            | Self::Float(_)
            | Self::Boolean(_)
            | Self::Table
            | Self::Date => None,
        }
    }
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written {
    pub(crate) raw: Raw,
    /// The very characters, for messages.
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// A value for a dotted key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assignment {
    pub(crate) key: String,
    pub(crate) value: Written,
}
