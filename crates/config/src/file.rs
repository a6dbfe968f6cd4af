//! The file: TOML into assignments, each with its line.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::document::{Array, ArrayEntry, Document};
use crate::error::{ConfigError, ConfigErrors};
use crate::raw::{Assignment, Raw, Written};
use crate::settings::{Settings, WITHOUT_LISTENERS};
use crate::source::Source;
use crate::syntax;

/// Characters of a line that are shown.
const LONGEST_LINE: usize = 80;

/// Takes the bytes of a file for text.
///
/// Errors: they are no UTF-8; with line and column of the first that are none.
pub fn text<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str, ConfigErrors> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        let source = Reader::new(path, valid).source(valid.len()..valid.len());
        let wrong = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        let reason = format!("not UTF-8: byte 0x{wrong:02X}");
        let error = ConfigError::new(String::new(), &source, reason);
        ConfigErrors::new(vec![error.hint("TOML is UTF-8; save the file in that encoding")])
    })
}

/// Reads a file; `known` says which tables there are.
pub(crate) fn read(path: &Path, text: &str, known: &Settings) -> Document {
    let reader = Reader::new(path, text);
    let (table, syntax) = DeTable::parse_recoverable(text);
    let mut document = Document { broken: !syntax.is_empty(), ..Document::default() };
    for (key, value) in table.get_ref() {
        let name = plain(key.get_ref());
        match (Array::from_name(&name), value.get_ref()) {
            (Some(Array::Listen), DeValue::Array(tables)) if tables.is_empty() => {
                let source = reader.source(value.span());
                let error = ConfigError::new(name, &source, "an empty list").value("[]");
                document.errors.push(error.hint(WITHOUT_LISTENERS));
            }
            (Some(array), DeValue::Array(tables)) => {
                for table in tables.iter() {
                    let source = reader.source(table.span());
                    match table.get_ref() {
                        DeValue::Table(table) => {
                            let mut assignments = Vec::new();
                            reader.flatten(
                                "",
                                table,
                                &|name| known.knows_table_in(array, name),
                                &mut assignments,
                            );
                            document.entries.push(ArrayEntry { array, source, assignments });
                        }
                        DeValue::String(_)
                        | DeValue::Integer(_)
                        | DeValue::Float(_)
                        | DeValue::Boolean(_)
                        | DeValue::Datetime(_)
                        | DeValue::Array(_) => document.errors.push(reader.not_an_array(array, source)),
                    }
                }
            }
            (Some(array), _) => document.errors.push(reader.not_an_array(array, reader.source(value.span()))),
            (None, _) => {
                reader.leaf(&name, key, value, &|name| known.knows_table(name), &mut document.assignments)
            }
        }
    }
    let (syntax, end) = reader.syntax_errors(&syntax);
    if let Some(end) = end {
        document.assignments.retain(|assignment| assignment.value.source < end);
        document.entries.retain(|entry| entry.source < end);
        document.errors.retain(|error| error.source < end);
    }
    document.errors.extend(syntax);
    document.assignments.sort_by(|a, b| a.value.source.cmp(&b.value.source));
    document.entries.sort_by(|a, b| a.source.cmp(&b.source));
    document
}

/// A key as a part of a dotted one: its own dots are no separators.
fn plain(name: &str) -> String {
    if name.contains('.') { format!("{name:?}") } else { name.to_owned() }
}

/// As much of a value as a reader wants to see.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let start: String = line.chars().take(LONGEST_LINE).collect();
    if start.len() < text.len() { format!("{start} …") } else { start }
}

/// The place before the first column of a line.
fn beginning(source: Source) -> Source {
    match source {
        Source::File { path, line, .. } => Source::File { path, line, column: 0 },
        Source::Default | Source::Profile(_) | Source::Environment(_) | Source::CommandLine(_) => source,
    }
}

struct Reader<'t> {
    path: Arc<PathBuf>,
    text: &'t str,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl<'t> Reader<'t> {
    fn new(path: &Path, text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        Self { path: Arc::new(path.to_owned()), text, lines: std::iter::once(0).chain(ends).collect() }
    }
}

impl Reader<'_> {
    fn source(&self, span: Range<usize>) -> Source {
        let from_one = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
        let start = span.start.min(self.text.len());
        let line = self.lines.partition_point(|&begins| begins <= start).saturating_sub(1);
        let begins = self.lines.get(line).copied().unwrap_or_default();
        let column = from_one(self.text.get(begins..start).unwrap_or_default().chars().count());
        Source::File { path: Arc::clone(&self.path), line: from_one(line), column }
    }

    /// The line of a source, as far as a reader wants to see it; `None` when it is empty.
    fn line(&self, source: &Source) -> Option<String> {
        let Source::File { line, .. } = source else { return None };
        let begins = *self.lines.get((*line as usize).checked_sub(1)?)?;
        let text = self.text.get(begins..)?.lines().next()?.trim();
        (!text.is_empty()).then(|| shown(text))
    }

    /// What is not TOML up to the first error that others follow from, and the beginning of the line it is in:
    /// from there on nothing means what it seems to.
    fn syntax_errors(&self, syntax: &[toml::de::Error]) -> (Vec<ConfigError>, Option<Source>) {
        let mut errors = Vec::new();
        let mut syntax: Vec<_> = syntax
            .iter()
            .map(|error| (self.source(error.span().unwrap_or_default()), error.message()))
            .collect();
        syntax.sort();
        for (source, message) in syntax {
            let is_last = message != "duplicate key";
            let line = self.line(&source);
            let hint = line.as_deref().filter(|_| is_last).and_then(syntax::hint);
            // What the grammar would have taken there is none of what a reader wants to know.
            let message = message.split(", expected").next().unwrap_or(message);
            let error = ConfigError::new(String::new(), &source, format!("not TOML: {message}"));
            errors.push(error.maybe_value(line).maybe_hint(hint));
            if is_last {
                return (errors, Some(beginning(source)));
            }
        }
        (errors, None)
    }

    fn not_an_array(&self, array: Array, source: Source) -> ConfigError {
        let name = array.name();
        ConfigError::new(name.to_owned(), &source, "not an array of tables").hint(format!("write [[{name}]]"))
    }

    fn flatten(
        &self,
        prefix: &str,
        table: &DeTable<'_>,
        knows_table: &dyn Fn(&str) -> bool,
        assignments: &mut Vec<Assignment>,
    ) {
        for (key, value) in table {
            let name = plain(key.get_ref());
            let dotted = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            self.leaf(&dotted, key, value, knows_table, assignments);
        }
    }

    /// Adds a value. A table is added too, so that an unknown or an empty one is seen, and then
    /// entered if it is known.
    fn leaf<K>(
        &self,
        dotted: &str,
        key: &Spanned<K>,
        value: &Spanned<DeValue<'_>>,
        knows_table: &dyn Fn(&str) -> bool,
        assignments: &mut Vec<Assignment>,
    ) {
        let raw = Raw::from_toml(value.get_ref());
        let span = if raw == Raw::Table { key.span() } else { value.span() };
        let text = shown(self.text.get(span.clone()).unwrap_or_default());
        let written = Written { raw, text, source: self.source(span) };
        assignments.push(Assignment { key: dotted.to_owned(), value: written });
        if let DeValue::Table(table) = value.get_ref()
            && knows_table(dotted)
        {
            self.flatten(dotted, table, knows_table, assignments);
        }
    }
}
