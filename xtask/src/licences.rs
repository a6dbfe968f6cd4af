//! Where packages come from, and under which licence.

use crate::metadata::{Metadata, Package};
use crate::spdx;

/// Licences under which a package may become part of the product.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// crates.io, as cargo names it in Cargo.lock.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Packages that come from elsewhere, and those without an allowed licence.
pub(crate) fn check(metadata: &Metadata) -> Vec<String> {
    let complaints = |package: &Package| {
        let name = format!("{} {}", package.name, package.version);
        let both = [source(package, &metadata.root), licence(package)];
        both.into_iter().flatten().map(move |complaint| format!("{name}: {complaint}")).collect::<Vec<_>>()
    };
    metadata.packages.iter().flat_map(complaints).collect()
}

fn source(package: &Package, root: &str) -> Option<String> {
    match package.source.as_deref() {
        Some(CRATES_IO) => None,
        Some(source) => Some(format!("comes from {source}, not from crates.io")),
        None if package.manifest.strip_prefix(root).is_some_and(|rest| rest.starts_with('/')) => None,
        None => Some("comes from a folder outside of this workspace".into()),
    }
}

fn licence(package: &Package) -> Option<String> {
    let Some(expression) = &package.licence else { return Some("states no licence".into()) };
    match spdx::is_satisfied(expression, |licence| ALLOWED.contains(&licence)) {
        Ok(true) => None,
        Ok(false) => Some(format!("the licence {expression} is not on the list in xtask/src/licences.rs")),
        Err(error) => Some(format!("the licence {expression:?} cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(licence: Option<&str>, source: Option<&str>, manifest: &str) -> Vec<String> {
        let package = Package {
            name: "a".into(),
            version: "1.2.3".into(),
            licence: licence.map(String::from),
            source: source.map(String::from),
            manifest: manifest.into(),
            dependencies: Vec::new(),
        };
        check(&Metadata { root: "/w".into(), target: "/w/target".into(), packages: vec![package] })
    }

    #[test]
    fn accepts_allowed_licences_from_crates_io_and_from_here() {
        for licence in ALLOWED.into_iter().chain(["MIT OR GPL-3.0-only", "Unlicense/MIT"]) {
            assert!(
                findings(Some(licence), Some(CRATES_IO), "/elsewhere/a/Cargo.toml").is_empty(),
                "{licence}"
            );
        }
        assert!(findings(Some("MIT OR Apache-2.0"), None, "/w/crates/a/Cargo.toml").is_empty());
    }

    #[test]
    fn refuses_other_licences() {
        for licence in [None, Some("GPL-3.0-only"), Some("MIT AND MPL-2.0"), Some("MIT OR")] {
            assert_eq!(findings(licence, Some(CRATES_IO), "").len(), 1, "{licence:?}");
        }
    }

    #[test]
    fn refuses_other_sources() {
        for (source, manifest) in [
            (Some("git+https://example.org/a"), ""),
            (Some("registry+https://example.org/index"), ""),
            (None, "/elsewhere/a/Cargo.toml"),
            (None, "/walls/a/Cargo.toml"),
        ] {
            assert_eq!(findings(Some("MIT"), source, manifest).len(), 1, "{source:?} {manifest}");
        }
    }
}
