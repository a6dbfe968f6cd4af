//! What is in a folder, and what has become of it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Everything below a folder, by path from there on, and what can be told of it from outside.
pub(crate) type Files = BTreeMap<PathBuf, String>;

/// Lists a folder.
pub(crate) fn list(root: &Path) -> Result<Files> {
    let mut files = Files::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let metadata = path.symlink_metadata()?;
            let mut looks =
                format!("{:o} {}:{}", metadata.permissions().mode(), metadata.uid(), metadata.gid());
            if metadata.is_dir() {
                folders.push(path.clone());
            } else if metadata.is_symlink() {
                looks.push_str(&format!(" -> {}", fs::read_link(&path)?.display()));
            } else {
                looks.push_str(&format!(
                    " {} bytes of {}.{}",
                    metadata.len(),
                    metadata.mtime(),
                    metadata.mtime_nsec()
                ));
            }
            files.insert(path.strip_prefix(root)?.to_owned(), looks);
        }
    }
    Ok(files)
}

/// What has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) added: Vec<PathBuf>,
    pub(crate) changed: Vec<PathBuf>,
    pub(crate) gone: Vec<PathBuf>,
}

/// What has changed between two lists.
pub(crate) fn difference(before: &Files, after: &Files) -> Difference {
    let missing_in = |one: &Files, other: &Files| {
        one.keys().filter(|path| !other.contains_key(*path)).cloned().collect::<Vec<_>>()
    };
    let changed = before.iter().filter(|(path, looks)| after.get(*path).is_some_and(|now| now != *looks));
    Difference {
        added: missing_in(after, before),
        changed: changed.map(|(path, _)| path.clone()).collect(),
        gone: missing_in(before, after),
    }
}

impl Difference {
    /// The rest, without what lies in one of these folders.
    pub(crate) fn without(self, folders: &[&str]) -> Self {
        self.only(|path| !folders.iter().any(|folder| path.starts_with(folder)))
    }

    /// The rest, without these additions; what became of other files still counts.
    pub(crate) fn without_files(mut self, files: &[&str]) -> Self {
        self.added.retain(|path| !files.iter().any(|file| path == Path::new(file)));
        self
    }

    fn only(mut self, wanted: impl Fn(&Path) -> bool) -> Self {
        for paths in [&mut self.added, &mut self.changed, &mut self.gone] {
            paths.retain(|path| wanted(path));
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, paths) in [("added", &self.added), ("changed", &self.changed), ("gone", &self.gone)] {
            for path in paths {
                writeln!(f, "  {what}: /{}", path.display())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_is_new_changed_and_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("etc/a")).unwrap();
        fs::write(path("etc/a/kept"), "1").unwrap();
        fs::write(path("etc/a/gone"), "1").unwrap();
        let before = list(folder.path()).unwrap();
        assert!(difference(&before, &list(folder.path()).unwrap()).is_empty());

        fs::remove_file(path("etc/a/gone")).unwrap();
        fs::write(path("etc/a/kept"), "22").unwrap();
        std::os::unix::fs::symlink("a", path("etc/new")).unwrap();
        let difference = difference(&before, &list(folder.path()).unwrap());
        let text = difference.to_string();
        assert_eq!(text, "  added: /etc/new\n  changed: /etc/a/kept\n  gone: /etc/a/gone\n");
        let rest = difference.without_files(&["etc/new"]).without(&["etc/a"]);
        assert!(rest.is_empty(), "{rest}");
    }
}
