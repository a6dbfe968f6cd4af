//! What a page may name to show that something holds: tests, scenarios, fuzz targets and long runs.

use std::collections::BTreeSet;

use crate::source::test_functions;

/// The names of all there are.
///
/// `relay::route::tests::NAME` is a test as the test runner prints it, behind its package; `scenarios/NAME` a
/// message diagram of the simulator; `interop/FILE::NAME` a test against other stacks; `fuzz/NAME` a fuzz
/// target; `soak` the simulator's long runs.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    names: BTreeSet<String>,
    /// Tests that the test runner passes over.
    ignored: BTreeSet<String>,
}

impl Proofs {
    /// Takes what a file holds; `path` is from the workspace's folder on, with `/`.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        let parts: Vec<&str> = path.split('/').collect();
        match parts[..] {
            ["crates", "sim", "scenarios", file] => {
                self.names.extend(file.strip_suffix(".scenario").map(|name| format!("scenarios/{name}")));
            }
            ["fuzz", "targets", file] => {
                self.names.extend(file.strip_suffix(".rs").map(|name| format!("fuzz/{name}")));
            }
            ["xtask", "src", "soak.rs"] => {
                self.names.insert("soak".to_owned());
            }
            ["interop", "tests", ref modules @ ..] => self.add_tests("interop/", modules, text),
            ["crates", package, "src" | "tests", ref modules @ ..]
            | [package @ ("bench" | "interop"), "src" | "tests", ref modules @ ..] => {
                self.add_tests(&format!("{package}::"), modules, text);
            }
            _ => {}
        }
    }

    /// Whether there is one of this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether there is a test of this name that shows nothing, since nobody runs it.
    pub(crate) fn is_ignored(&self, name: &str) -> bool {
        self.ignored.contains(name)
    }

    /// The one that a wrong name most likely means: the same last part elsewhere.
    pub(crate) fn similar(&self, name: &str) -> Option<&str> {
        let last = |name: &str| name.rsplit([':', '/']).next().map(str::to_owned);
        self.names.iter().find(|other| last(other) == last(name)).map(String::as_str)
    }

    fn add_tests(&mut self, package: &str, modules: &[&str], text: &str) {
        let Some((file, folders)) = modules.split_last() else { return };
        let Some(file) = file.strip_suffix(".rs") else { return };
        let file = (!["lib", "main", "mod"].contains(&file)).then_some(file);
        let modules: String = folders.iter().copied().chain(file).map(|name| format!("{name}::")).collect();
        for test in test_functions(text) {
            let names = if test.is_ignored { &mut self.ignored } else { &mut self.names };
            names.insert(format!("{package}{modules}{}", test.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_where_the_tests_are() {
        let mut proofs = Proofs::default();
        for path in [
            "crates/relay/src/lib.rs",
            "crates/relay/src/route/tests.rs",
            "crates/endpoint/tests/hop/main.rs",
            "crates/endpoint/tests/hop/turns.rs",
            "interop/tests/failures.rs",
            "bench/src/coap.rs",
            "crates/sim/scenarios/ping.scenario",
            "fuzz/targets/uri.rs",
            "xtask/src/soak.rs",
            "docs/record.md",
        ] {
            proofs.add(path, "#[test] fn t() {} mod tests { #[test] fn u() {} }");
        }
        for name in [
            "relay::t",
            "relay::tests::u",
            "relay::route::tests::t",
            "endpoint::hop::t",
            "endpoint::hop::turns::t",
            "interop/failures::t",
            "bench::coap::tests::u",
            "scenarios/ping",
            "fuzz/uri",
            "soak",
        ] {
            assert!(proofs.contains(name), "{name} of {proofs:?}");
        }
        assert!(!proofs.contains("scenarios/pong"));
        proofs.add("crates/relay/src/hints.rs", "#[test] #[ignore] fn t() {}");
        assert!(!proofs.contains("relay::hints::t") && proofs.is_ignored("relay::hints::t"));
        assert_eq!(proofs.similar("relay::ping"), Some("scenarios/ping"));
    }
}
