//! The tables of requirements and of problems in the field name tests that are there, and leave nothing out.

mod field;
mod row;

use std::collections::BTreeMap;

use crate::proofs::Proofs;
pub(crate) use field::check as check_field;
use row::{Row, Status};

/// Where the table is.
pub(crate) const TABLE: &str = "docs/requirements.md";
/// Where the table of problems in the field is.
pub(crate) const FIELD: &str = "docs/field.md";

/// The areas that the table holds in full, and how many requirements each has, numbered without gaps.
const AREAS: [(&str, u8); 20] = [
    ("FMT", 12),
    ("MSG", 11),
    ("DED", 9),
    ("PAR", 6),
    ("CCN", 6),
    ("RSP", 6),
    ("TOK", 9),
    ("OPT", 10),
    ("PRX", 11),
    ("FWD", 9),
    ("REV", 5),
    ("URI", 6),
    ("MET", 4),
    ("HOP", 5),
    ("NOR", 3),
    ("OVL", 2),
    ("OSC", 8),
    ("ATK", 7),
    ("GRP", 6),
    ("USR", 24),
];

/// A requirement named in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Citation {
    /// Its number, like the ones in the table.
    pub(crate) id: String,
    /// File and line.
    pub(crate) place: String,
}

/// What is wrong with the table.
///
/// It holds every requirement of its areas once, and of other areas those that are cited; what holds names a
/// test, every test named is there and run, and nothing is cited that the table does not have.
pub(crate) fn check(table: &str, proofs: &Proofs, citations: &[Citation]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (line, text) in (1..).zip(table.lines()).filter(|(_, text)| text.starts_with("| R-")) {
        let place = format!("{TABLE}:{line}");
        let row = match Row::parse(text) {
            Ok(row) => row,
            Err(what) => {
                findings.push(format!("{place}: {what}"));
                continue;
            }
        };
        if let Some(before) = rows.insert(row.id, line) {
            findings.push(format!("{place}: {} is in line {before} already", row.id));
        }
        if row.status == Status::Holds && row.tests.is_empty() {
            findings.push(format!("{place}: {} holds, and no test shows it", row.id));
        }
        findings.extend(row.tests.iter().filter_map(|test| missing(&place, test, proofs)));
    }
    for (area, count) in AREAS {
        let ids = (1..=count).map(|number| format!("R-{area}-{number:02}"));
        findings.extend(
            ids.filter(|id| !rows.contains_key(&id[..])).map(|id| format!("{TABLE}: {id} is missing")),
        );
        let beyond = rows.iter().filter(|(id, _)| number_in(area, id).is_some_and(|n| n == 0 || n > count));
        findings.extend(beyond.map(|(id, line)| format!("{TABLE}:{line}: {id}: {area} ends at {count}")));
    }
    let strays = citations.iter().filter(|citation| !rows.contains_key(&citation.id[..]));
    findings.extend(strays.map(|Citation { id, place }| format!("{place}: {id} is not in {TABLE}")));
    findings
}

/// The requirements that a text names.
pub(crate) fn citations(place: &str, text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let ids = text.match_indices("R-").filter_map(|(at, _)| id_at(text, at));
        found.extend(ids.map(|id| Citation { id: id.to_owned(), place: format!("{place}:{line}") }));
    }
    found
}

fn id_at(text: &str, at: usize) -> Option<&str> {
    let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
    let stands_alone = before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
    text.get(at..at + 8).filter(|id| stands_alone && is_id(id))
}

/// `R-FMT-01` and the like.
fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 8
        && text.starts_with("R-")
        && bytes[2..5].iter().all(u8::is_ascii_uppercase)
        && bytes[5] == b'-'
        && bytes[6..].iter().all(u8::is_ascii_digit)
}

fn number_in(area: &str, id: &str) -> Option<u8> {
    id.strip_prefix("R-")?.strip_prefix(area)?.strip_prefix('-')?.parse().ok()
}

fn missing(place: &str, test: &str, proofs: &Proofs) -> Option<String> {
    if proofs.contains(test) {
        return None;
    }
    if proofs.is_ignored(test) {
        return Some(format!("{place}: {test} is ignored, and shows nothing"));
    }
    let hint = proofs.similar(test).map(|name| format!("; is it {name}?")).unwrap_or_default();
    Some(format!("{place}: there is no test {test}{hint}"))
}

#[cfg(test)]
mod tests;
