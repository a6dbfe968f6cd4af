use super::*;

/// A table in which everything holds by one scenario.
fn table() -> String {
    AREAS
        .into_iter()
        .flat_map(|(area, count)| (1..=count).map(move |number| format!("R-{area}-{number:02}")))
        .map(|id| format!("| {id} | C | Something is so (RFC 7252 §1). | holds | `scenarios/ping` |\n"))
        .collect()
}

fn findings(table: &str, citations: &[Citation]) -> Vec<String> {
    let mut proofs = Proofs::default();
    proofs.add("crates/sim/scenarios/ping.scenario", "");
    proofs.add("crates/relay/src/route/tests.rs", "#[test] fn chooses() {} #[test] #[ignore] fn waits() {}");
    check(table, &proofs, citations)
}

fn with(row: &str) -> String {
    table() + "| R-OBS-13 | C | It is so. | " + row + " |\n"
}

#[test]
fn a_whole_table_is_fine() {
    assert_eq!(findings(&table(), &[]), Vec::<String>::new());
    assert_eq!(findings(&with("holds | `scenarios/ping`, `relay::route::tests::chooses`"), &[]), [""; 0]);
}

#[test]
fn every_number_of_an_area_must_be_there_once() {
    let table = table();
    let without: String =
        table.lines().filter(|row| !row.contains("R-TOK-04")).collect::<Vec<_>>().join("\n");
    assert_eq!(findings(&without, &[]), [format!("{TABLE}: R-TOK-04 is missing")]);
    let first = table.lines().next().unwrap_or_default();
    assert_eq!(findings(&format!("{table}{first}\n"), &[]).len(), 1);
    assert_eq!(findings(&(table.clone() + &first.replace("-01", "-13")), &[]).len(), 1);
}

#[test]
fn what_holds_names_a_test() {
    for row in ["holds |", "holds as decided: not so |"] {
        assert_eq!(findings(&with(row), &[]).len(), 1, "{row}");
    }
    for row in ["later: comes with the cache |", "left out: nobody needs it | `scenarios/ping`"] {
        assert_eq!(findings(&with(row), &[]), [""; 0], "{row}");
    }
}

#[test]
fn every_test_named_must_be_there() {
    let findings = findings(&with("holds | `relay::chooses`"), &[]);
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0].ends_with("no test relay::chooses; is it relay::route::tests::chooses?"),
        "{findings:?}"
    );
}

#[test]
fn an_ignored_test_shows_nothing() {
    let findings = findings(&with("holds | `relay::route::tests::waits`"), &[]);
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0].ends_with("relay::route::tests::waits is ignored, and shows nothing"),
        "{findings:?}"
    );
}

#[test]
fn a_status_says_why() {
    for status in ["later", "left out:", "holds as decided", "holds: mostly", "perhaps"] {
        assert_eq!(findings(&with(&format!("{status} | `scenarios/ping`")), &[]).len(), 1, "{status}");
    }
}

#[test]
fn broken_rows_are_found() {
    for row in ["holds", "holds | ping", "holds | `scenarios/ping` | more"] {
        assert_eq!(findings(&with(row), &[]).len(), 1, "{row}");
    }
    for row in
        ["| R-OBS-1 | C | x | holds | |", "| R-OBS-01 | X | x | holds | |", "| R-OBS-01 | F: | x | holds | |"]
    {
        assert_eq!(findings(&format!("{}{row}\n", table()), &[]).len(), 1, "{row}");
    }
}

#[test]
fn what_is_cited_must_be_in_the_table() {
    let citations = citations("a.rs", "// (R-FMT-01 to R-FMT-03)\n// OR-FMT-99, R-FMT-1\n// R-OBS-13: x");
    let ids: Vec<_> = citations.iter().map(|citation| &citation.id[..]).collect();
    assert_eq!(ids, ["R-FMT-01", "R-FMT-03", "R-OBS-13"]);
    assert_eq!(findings(&table(), &citations), [format!("a.rs:3: R-OBS-13 is not in {TABLE}")]);
    assert_eq!(findings(&with("later: comes with Observe |"), &citations), [""; 0]);
}
