//! The files and packages that the checks look at.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};

use crate::metadata::{Metadata, Package};
use crate::proofs::Proofs;
use crate::source::SourceFile;
use crate::{circles, layers, licences, lines, purity, requirements};

/// The workspace around the current folder.
pub(crate) struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn find() -> Result<Self> {
        Ok(Self { metadata: metadata(&["--no-deps"])? })
    }

    /// The folder with the workspace's manifest.
    pub(crate) fn root(&self) -> &Path {
        Path::new(&self.metadata.root)
    }

    /// The folder for what is built.
    pub(crate) fn target(&self) -> &Path {
        Path::new(&self.metadata.target)
    }

    /// Arrows between packages that go up or sideways, and what the core must not do.
    pub(crate) fn layer_findings(&self) -> Result<Vec<String>> {
        let mut findings = layers::check(&self.metadata.packages);
        for package in self.metadata.packages.iter().filter(|package| layers::is_core(&package.name)) {
            for file in source_files(package)? {
                let place = format!("{}/{}", package.name, file.path);
                findings.extend(purity::check(&place, &file.text));
            }
        }
        Ok(findings)
    }

    /// Packages from strange places or under licences that are not allowed.
    pub(crate) fn licence_findings(&self) -> Result<Vec<String>> {
        Ok(licences::check(&metadata(&[])?))
    }

    /// Files that have grown too long.
    pub(crate) fn line_findings(&self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        let mut paths = Vec::new();
        collect(self.root(), &["rs"], &mut paths)?;
        for path in paths {
            let shown = self.shown(&path);
            findings.extend(lines::check(&shown, &read(&path)?));
        }
        Ok(findings)
    }

    /// Requirements without a row or without a test, and names of tests that are not there.
    pub(crate) fn requirement_findings(&self) -> Result<Vec<String>> {
        let mut paths = Vec::new();
        collect(self.root(), &["rs", "scenario", "md", "toml", "py"], &mut paths)?;
        let (mut proofs, mut citations) = (Proofs::default(), Vec::new());
        for path in paths {
            let (shown, text) = (self.shown(&path), read(&path)?);
            proofs.add(&shown, &text);
            // The check's own examples are no citations.
            if !shown.starts_with("xtask/") {
                citations.extend(requirements::citations(&shown, &text));
            }
        }
        let page = |name| read(&self.root().join(name));
        let mut findings = requirements::check(&page(requirements::TABLE)?, &proofs, &citations);
        findings.extend(requirements::check_field(&page(requirements::FIELD)?, &proofs));
        Ok(findings)
    }

    /// Modules that import each other.
    pub(crate) fn circle_findings(&self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        for package in &self.metadata.packages {
            findings.extend(circles::check(&package.name, &source_files(package)?));
        }
        Ok(findings)
    }

    /// A path from the workspace's folder on.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(self.root()).unwrap_or(path).display().to_string()
    }
}

fn metadata(arguments: &[&str]) -> Result<Metadata> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(arguments)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    Metadata::parse(&String::from_utf8_lossy(&output.stdout))
}

fn source_files(package: &Package) -> Result<Vec<SourceFile>> {
    let folder = Path::new(&package.manifest).with_file_name("src");
    let mut paths = Vec::new();
    collect(&folder, &["rs"], &mut paths)?;
    paths
        .iter()
        .map(|path| {
            let shown = path.strip_prefix(&folder).unwrap_or(path).display().to_string();
            Ok(SourceFile { path: shown, text: read(path)? })
        })
        .collect()
}

/// All files below `folder` whose names end so, in order, without hidden folders and build results.
fn collect(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.') {
            collect(&path, endings, found)?;
        } else if path.extension().is_some_and(|extension| endings.iter().any(|ending| extension == *ending))
        {
            found.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
