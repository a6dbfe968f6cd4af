//! One row of a table: what is required, how it stands, and what shows it.

use super::is_id;

/// `| ID | tag | what | status | tests |`
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row<'t> {
    pub(super) id: &'t str,
    pub(super) status: Status,
    pub(super) tests: Vec<&'t str>,
}

/// How a requirement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It is met, as it is written or as it was decided.
    Holds,
    /// It is not, and the row says why.
    Open,
}

impl<'t> Row<'t> {
    /// Errors: what is wrong with the row.
    pub(super) fn parse(text: &'t str) -> Result<Self, String> {
        let cells = cells(text);
        let [id, tag, what, status, tests] = cells[..] else {
            return Err(format!("a row has 5 cells, this one {}", cells.len()));
        };
        if !is_id(id) {
            return Err(format!("{id} is no number of a requirement"));
        }
        if !is_tag(tag) {
            return Err(format!("{id}: a tag is C, P, U or F with a feature, not {tag:?}"));
        }
        if what.is_empty() {
            return Err(format!("{id} requires nothing"));
        }
        Ok(Self {
            id,
            status: Status::parse(status).map_err(|what| format!("{id}: {what}"))?,
            tests: names(tests).map_err(|what| format!("{id}: {what}"))?,
        })
    }
}

impl Status {
    fn parse(text: &str) -> Result<Self, String> {
        let (word, reason) = text.split_once(':').map_or((text, ""), |(word, reason)| (word, reason.trim()));
        match (word, reason) {
            ("holds", "") => Ok(Self::Holds),
            ("holds as decided", decision) if !decision.is_empty() => Ok(Self::Holds),
            ("later" | "left out", reason) if !reason.is_empty() => Ok(Self::Open),
            _ => Err(format!(
                "it `holds`, `holds as decided: …`, is `later: …` or `left out: …`, not {text:?}"
            )),
        }
    }
}

/// The cells of a row of a Markdown table.
pub(super) fn cells(text: &str) -> Vec<&str> {
    let inner = text.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(str::trim).collect()
}

/// The names in a cell, each between backticks, with commas between them.
///
/// Errors: something else is in the cell.
pub(super) fn names(cell: &str) -> Result<Vec<&str>, String> {
    let parts = cell.split(',').map(str::trim).filter(|part| !part.is_empty());
    let name = |part: &str| part.len() > 2 && part.starts_with('`') && part.ends_with('`');
    parts
        .map(|part| match name(part) {
            true => Ok(part.trim_matches('`')),
            false => {
                Err(format!("names of tests stand in backticks, with commas between them, not {part:?}"))
            }
        })
        .collect()
}

fn is_tag(tag: &str) -> bool {
    let feature = tag.strip_prefix("F: ").is_some_and(|feature| !feature.is_empty());
    feature || ["C", "P", "U"].contains(&tag)
}
