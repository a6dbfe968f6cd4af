//! The table of problems in the field: each kind has the cases people reported and variations of our own.

use super::row::{cells, names};
use super::{FIELD, missing};
use crate::proofs::Proofs;

/// The kinds of problems the page holds.
const KINDS: usize = 19;
/// Cases of our own that each kind has at least.
const VARIATIONS: usize = 2;

/// What is wrong with the page.
///
/// A kind is a heading with rows `| case | source | shown by |` below it. The source is a public report or
/// `variation`; what shows it are names of tests, or `later: …`.
pub(crate) fn check(page: &str, proofs: &Proofs) -> Vec<String> {
    let mut findings = Vec::new();
    let mut kinds: Vec<(usize, &str, Count)> = Vec::new();
    for (line, text) in (1..).zip(page.lines()) {
        if let Some(kind) = text.strip_prefix("## ") {
            kinds.push((line, kind, Count::default()));
        }
        let Some((.., count)) = kinds.last_mut().filter(|_| is_row(text)) else { continue };
        let place = format!("{FIELD}:{line}");
        let cells = cells(text);
        let [_, source, shown] = cells[..] else {
            findings.push(format!("{place}: a row has 3 cells, this one {}", cells.len()));
            continue;
        };
        if shown.strip_prefix("later: ").is_some_and(|reason| !reason.is_empty()) {
            count.reports += usize::from(source != "variation");
            continue;
        }
        match names(shown) {
            Ok(tests) if tests.is_empty() => findings.push(format!("{place}: nothing shows it")),
            Ok(tests) => {
                findings.extend(tests.iter().filter_map(|test| missing(&place, test, proofs)));
                *(if source == "variation" { &mut count.variations } else { &mut count.reports }) += 1;
            }
            Err(what) => findings.push(format!("{place}: {what}")),
        }
    }
    for (line, kind, count) in &kinds {
        if count.reports == 0 || count.variations < VARIATIONS {
            let Count { reports, variations } = count;
            findings.push(format!(
                "{FIELD}:{line}: {kind} has {reports} cases and {variations} variations; at least 1 and {VARIATIONS}"
            ));
        }
    }
    if kinds.len() != KINDS {
        findings.push(format!("{FIELD} has {} kinds, not {KINDS}", kinds.len()));
    }
    findings
}

#[derive(Clone, Copy, Default)]
struct Count {
    reports: usize,
    variations: usize,
}

/// A row that is neither head nor rule.
fn is_row(text: &str) -> bool {
    text.starts_with('|') && !text.starts_with("|--") && !text.starts_with("| case |")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &str) -> String {
        let kind =
            |number| format!("## kind {number}\n\n| case | source | shown by |\n|---|---|---|\n{rows}\n");
        (0..KINDS).map(kind).collect()
    }

    fn findings(rows: &str) -> Vec<String> {
        let mut proofs = Proofs::default();
        proofs.add("crates/sim/scenarios/ping.scenario", "");
        check(&page(rows), &proofs)
    }

    const RIGHT: &str = "| a | libcoap#1 | `scenarios/ping` |\n| b | variation | `scenarios/ping` |\n\
                         | c | variation | `scenarios/ping` |\n";

    #[test]
    fn each_kind_has_a_case_and_two_variations() {
        assert_eq!(findings(RIGHT), Vec::<String>::new());
        let one_short = RIGHT.replacen("variation", "libcoap#2", 1);
        assert_eq!(findings(&one_short).len(), KINDS);
        let postponed = RIGHT.replacen("`scenarios/ping`", "later: with the cache", 1);
        assert_eq!(findings(&postponed), Vec::<String>::new());
    }

    #[test]
    fn names_what_is_not_there() {
        let findings =
            findings(&RIGHT.replace("| libcoap#1 | `scenarios/ping`", "| libcoap#1 | `scenarios/pong`"));
        assert_eq!(findings.len(), KINDS);
        assert!(findings[0].ends_with("there is no test scenarios/pong"), "{findings:?}");
    }

    #[test]
    fn an_empty_page_and_broken_rows_are_found() {
        assert_eq!(check("", &Proofs::default()).len(), 1);
        assert_eq!(findings(&format!("{RIGHT}| d | variation |\n")).len(), KINDS);
        assert_eq!(findings(&format!("{RIGHT}| d | variation | |\n")).len(), KINDS);
        assert_eq!(findings(&format!("{RIGHT}| d | variation | ping |\n")).len(), KINDS);
    }
}
