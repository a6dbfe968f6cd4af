//! What a file says, before anybody knows what it means.

use crate::error::ConfigError;
use crate::raw::Assignment;
use crate::source::Source;

/// What a file says.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Values outside of arrays, by line.
    pub(crate) assignments: Vec<Assignment>,
    /// The tables of `[[listen]]`, `[[upstreams]]` and `[[routes]]`, by line.
    pub(crate) entries: Vec<ArrayEntry>,
    pub(crate) errors: Vec<ConfigError>,
    /// Whether parts of it could not be read.
    pub(crate) broken: bool,
}

/// One table of an array.
#[derive(Debug)]
pub(crate) struct ArrayEntry {
    pub(crate) array: Array,
    /// Where it begins.
    pub(crate) source: Source,
    pub(crate) assignments: Vec<Assignment>,
}

/// An array of tables of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Array {
    Listen,
    Upstreams,
    Routes,
}

impl Array {
    pub(crate) const ALL: [Self; 3] = [Self::Listen, Self::Upstreams, Self::Routes];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Listen => "listen",
            Self::Upstreams => "upstreams",
            Self::Routes => "routes",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|array| array.name() == name)
    }
}
