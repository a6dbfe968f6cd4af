//! Modules that import each other, and so are one module in two files.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Mention, SourceFile, mentions, product_code};

type Module = Vec<String>;

/// Who imports whom among the children of one module, with the first place that shows it.
type Arrows = BTreeMap<(String, String), String>;

/// Circles among neighbours: modules with the same parent, with all that is below them.
///
/// A parent and its children may know each other.
pub(crate) fn check(package: &str, files: &[SourceFile]) -> Vec<String> {
    let modules: BTreeSet<Module> = files.iter().filter_map(|file| module_of(&file.path)).collect();
    let mut by_parent: BTreeMap<Module, Arrows> = BTreeMap::new();
    for file in files {
        let Some(from) = module_of(&file.path) else { continue };
        for mention in mentions(&product_code(&file.text)) {
            let Some(to) = target(&from, &mention, &modules) else { continue };
            let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            if let (Some(one), Some(other)) = (from.get(shared), to.get(shared)) {
                let arrows = by_parent.entry(from[..shared].to_vec()).or_default();
                let place = format!("{}:{}", file.path, mention.line);
                arrows.entry((one.clone(), other.clone())).or_insert(place);
            }
        }
    }
    by_parent.iter().flat_map(|(parent, arrows)| circles(package, parent, arrows)).collect()
}

/// `datagram/endpoint.rs` is `datagram::endpoint`; the crate's root is the empty path; tests are no module.
fn module_of(path: &str) -> Option<Module> {
    let mut module: Module = path.strip_suffix(".rs")?.split('/').map(String::from).collect();
    if module.iter().any(|part| part == "tests") {
        return None;
    }
    if module.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
        module.pop();
    }
    Some(module)
}

/// The module of this crate that a path leads to.
fn target(from: &Module, mention: &Mention, modules: &BTreeSet<Module>) -> Option<Module> {
    let ups = mention.path.iter().take_while(|part| *part == "super").count();
    let mut to = match mention.path.first()?.as_str() {
        "crate" => Module::new(),
        "super" => from.get(..from.len().checked_sub(ups)?)?.to_vec(),
        _ => return None,
    };
    for part in mention.path.iter().skip(ups.max(1)) {
        to.push(part.clone());
        if !modules.contains(&to) {
            to.pop();
            break;
        }
    }
    Some(to)
}

fn circles(package: &str, parent: &Module, arrows: &Arrows) -> Vec<String> {
    let names: BTreeSet<&String> = arrows.keys().flat_map(|(from, to)| [from, to]).collect();
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        names.iter().map(|name| (*name, reachable(name, arrows))).collect();
    let is_mutual = |one: &String, other: &String| {
        let reaches =
            |from, to| reached.get(from).is_some_and(|found: &BTreeSet<&String>| found.contains(to));
        reaches(one, other) && reaches(other, one)
    };
    let mut findings = Vec::new();
    let mut told: BTreeSet<&String> = BTreeSet::new();
    for name in names.iter().copied() {
        let circle: Vec<&String> = names.iter().copied().filter(|other| is_mutual(name, other)).collect();
        if circle.len() < 2 || !told.insert(name) {
            continue;
        }
        told.extend(&circle);
        let places: Vec<String> = arrows
            .iter()
            .filter(|((from, to), _)| circle.contains(&from) && circle.contains(&to))
            .map(|((from, to), place)| format!("{from} uses {to} in {place}"))
            .collect();
        let parent = parent.iter().fold(package.to_owned(), |path, part| format!("{path}::{part}"));
        findings.push(format!("circle in {parent}: {}", places.join(", ")));
    }
    findings
}

fn reachable<'a>(start: &str, arrows: &'a Arrows) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open = vec![start.to_owned()];
    while let Some(from) = open.pop() {
        for (_, to) in arrows.keys().filter(|(source, _)| *source == from) {
            if found.insert(to) {
                open.push(to.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        check("house", &files)
    }

    #[test]
    fn finds_neighbours_that_import_each_other() {
        let found = findings(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "\nfn f(_: super::a::A) {}"),
        ]);
        assert_eq!(found, ["circle in house: a uses b in a.rs:1, b uses a in b.rs:2"]);
    }

    #[test]
    fn finds_longer_circles_and_those_below() {
        let found = findings(&[
            ("p.rs", ""),
            ("p/a.rs", "use super::b::B;"),
            ("p/b.rs", "use crate::p::c::C;"),
            ("p/c.rs", "use super::{a::A, d::D};"),
            ("p/d.rs", ""),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("circle in house::p: a uses b") && !found[0].contains("uses d"),
            "{found:?}"
        );
    }

    #[test]
    fn sees_circles_between_folders() {
        let found = findings(&[
            ("a.rs", ""),
            ("a/x.rs", "use crate::b::B;"),
            ("b.rs", ""),
            ("b/y.rs", "use crate::a::A;"),
        ]);
        assert_eq!(found, ["circle in house: a uses b in a/x.rs:1, b uses a in b/y.rs:1"]);
    }

    #[test]
    fn lets_families_tests_and_one_way_streets_be() {
        let found = findings(&[
            ("lib.rs", "pub use a::A; pub use b::B;"),
            ("a.rs", "mod x; use x::X; use crate::b::B;"),
            ("a/x.rs", "use super::A; use crate::Root;"),
            ("b.rs", "#[cfg(test)] mod tests { use crate::a::A; }"),
            ("b/tests.rs", "use crate::a::A;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
