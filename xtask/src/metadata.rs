//! What `cargo metadata` says of the packages.

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The packages of a workspace, and, if asked for, all that they need.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// The folder with the workspace's manifest.
    pub(crate) root: String,
    /// The folder for what is built.
    pub(crate) target: String,
    /// In cargo's order.
    pub(crate) packages: Vec<Package>,
}

/// One package.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// The SPDX expression, if it states one.
    pub(crate) licence: Option<String>,
    /// Where it comes from; `None` is a folder.
    pub(crate) source: Option<String>,
    /// The path of its Cargo.toml.
    pub(crate) manifest: String,
    /// Names of what it needs to be built; not what only its tests need.
    pub(crate) dependencies: Vec<String>,
}

impl Metadata {
    /// Reads the output of `cargo metadata --format-version 1`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).context("cargo metadata wrote no JSON")?;
        let packages = value["packages"].as_array().context("cargo metadata names no packages")?;
        Ok(Self {
            root: string(&value["workspace_root"])?,
            target: string(&value["target_directory"])?,
            packages: packages.iter().map(Package::of).collect::<Result<_>>()?,
        })
    }
}

impl Package {
    fn of(value: &Value) -> Result<Self> {
        let dependencies = value["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(Self {
            name: string(&value["name"])?,
            version: string(&value["version"])?,
            licence: value["license"].as_str().map(String::from),
            source: value["source"].as_str().map(String::from),
            manifest: string(&value["manifest_path"])?,
            dependencies: dependencies
                .iter()
                .filter(|dependency| dependency["kind"] != "dev")
                .map(|dependency| string(&dependency["name"]))
                .collect::<Result<_>>()?,
        })
    }
}

fn string(value: &Value) -> Result<String> {
    value.as_str().map(String::from).context("cargo metadata lacks a text where there should be one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_packages_without_what_only_tests_need() {
        let text = r#"{ "workspace_root": "/w", "target_directory": "/w/target", "packages": [{
            "name": "a", "version": "1.0.0", "license": "MIT", "source": null, "manifest_path": "/w/a/Cargo.toml",
            "dependencies": [
                { "name": "b", "kind": null }, { "name": "c", "kind": "dev" }, { "name": "d", "kind": "build" }
            ] }] }"#;
        let metadata = Metadata::parse(text).expect("metadata");
        assert_eq!(metadata.root, "/w");
        assert_eq!(metadata.packages[0].dependencies, ["b", "d"]);
        assert_eq!(metadata.packages[0].licence.as_deref(), Some("MIT"));
    }

    #[test]
    fn refuses_other_texts() {
        assert!(Metadata::parse("{}").is_err());
        assert!(Metadata::parse("no JSON").is_err());
    }
}
