//! The files that a configuration names: whether each can be used, that none is written which is another, and
//! that nothing is added to what somebody else keeps there.

mod content;

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use coapway_config::{Config, ConfigError, LogDestination, RecordDestination, Resolver};

use crate::state;
use content::Lines;

/// So many symbolic links may follow each other.
const LINKS: usize = 40;

/// What a file is to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The configuration itself.
    Configuration,
    /// Read again and again.
    Read,
    /// Run.
    Run,
    /// Lines are added to its end.
    Appended(Lines),
    /// Another file is put in its place.
    Replaced,
    /// That other file, before it is.
    Beside,
}

impl Role {
    const fn is_written(self) -> bool {
        matches!(self, Self::Appended(_) | Self::Replaced | Self::Beside)
    }
}

/// A file that is named.
#[derive(Debug)]
struct Named {
    /// The key that names it; empty for the configuration itself.
    key: &'static str,
    path: PathBuf,
    role: Role,
}

/// Which file a path leads to.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// One that is there, by device and number.
    Is { device: u64, number: u64 },
    /// One that is to be made there.
    WillBe(PathBuf),
}

/// Tries the files that are named, without making any.
pub(crate) fn objections(config: &Config) -> Vec<ConfigError> {
    let named = named(config);
    let mut errors = twice(config, &named);
    for file in &named {
        // What is wrong with a file that is another one only follows from that.
        if let Err(reason) = file.tried()
            && !errors.iter().any(|error| error.key == file.key)
        {
            errors.push(config.object(file.key, reason));
        }
    }
    errors
}

fn named(config: &Config) -> Vec<Named> {
    let named = |key, path: &Path, role| Named { key, path: path.to_owned(), role };
    let mut all = Vec::new();
    all.extend(config.file().map(|path| named("", path, Role::Configuration)));
    if let Resolver::Hosts(path) = config.resolver() {
        all.push(named("resolver", path, Role::Read));
    }
    all.extend(config.on_alert().first().map(|program| named("on_alert", Path::new(program), Role::Run)));
    if let Some(path) = config.state() {
        all.push(named("state", path, Role::Replaced));
        all.push(named("state", &state::beside(path), Role::Beside));
    }
    if let RecordDestination::File(path) = &config.record().destination {
        all.push(named("record.file", path, Role::Appended(Lines::Records)));
    }
    if let LogDestination::File(path) = &config.log().destination {
        all.push(named("log.file", path, Role::Appended(Lines::Log)));
    }
    all
}

/// An error about each file that is written and is another one, too; told of two that are written is the one
/// that was given last.
fn twice(config: &Config, named: &[Named]) -> Vec<ConfigError> {
    let mut errors: Vec<ConfigError> = Vec::new();
    let known: Vec<_> = named.iter().map(|file| (file, file.identity())).collect();
    for (index, (file, identity)) in known.iter().enumerate() {
        for (other, _) in known[..index].iter().filter(|(_, known)| known.is_some() && known == identity) {
            if file.key == other.key || !file.role.is_written() && !other.role.is_written() {
                continue;
            }
            let source = |file: &Named| config.object(file.key, "").source;
            let is_later = !other.role.is_written() || source(file) >= source(other);
            let (told, other) =
                if file.role.is_written() && is_later { (file, other) } else { (other, file) };
            let object = || {
                let reason = format!("the same file as {}", other.shown(&source(other)));
                let hint = format!("it {}, so it has to be a file of its own", told.role);
                ConfigError { hint: Some(hint.into()), ..config.object(told.key, reason) }
            };
            if !errors.iter().any(|error| error.key == told.key) {
                errors.push(object());
            }
        }
    }
    errors
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configuration | Self::Read => "is read",
            Self::Run => "is run",
            Self::Appended(_) => "is written",
            Self::Replaced | Self::Beside => "is replaced",
        })
    }
}

impl Named {
    fn shown(&self, source: &coapway_config::Source) -> String {
        match self.role {
            Role::Configuration => "this configuration".to_owned(),
            Role::Read | Role::Run | Role::Appended(_) | Role::Replaced => format!("{} ({source})", self.key),
            Role::Beside => {
                format!("{}, which {} ({source}) becomes", self.path.display(), self.key)
            }
        }
    }

    /// Errors: why it cannot be used.
    fn tried(&self) -> Result<(), String> {
        match self.role {
            // It was read.
            Role::Configuration => Ok(()),
            Role::Read => readable(&self.path),
            Role::Run => executable(&self.path),
            Role::Appended(lines) => appendable(&self.path).and_then(|()| lines.follow(&self.path)),
            Role::Replaced => replaceable(&self.path),
            // In the same directory.
            Role::Beside => Ok(()),
        }
    }

    /// `None` for what keeps nothing, like a terminal and `/dev/null`: it may be used for several things.
    fn identity(&self) -> Option<Identity> {
        match fs::metadata(&self.path) {
            Ok(found) if found.file_type().is_char_device() => None,
            Ok(found) => Some(Identity::Is { device: found.dev(), number: found.ino() }),
            Err(_) => {
                let end = end(&self.path);
                let made = fs::canonicalize(directory(&end)).ok().zip(end.file_name());
                let made = made.map(|(directory, name)| directory.join(name));
                Some(Identity::WillBe(made.or_else(|| std::path::absolute(&end).ok())?))
            }
        }
    }
}

/// Whether the file can be read again and again. Others are not opened: a FIFO would wait for whoever writes
/// to it, and a device may do something.
fn readable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err("a directory, not a file".to_owned()),
        Ok(metadata) if !metadata.is_file() => Err("not a file".to_owned()),
        Ok(_) => fs::File::open(path).map(drop).map_err(|error| format!("cannot be read: {error}")),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// Whether the file can be run.
fn executable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err("no file, so it cannot be run".to_owned()),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Err("cannot be run".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("cannot be run: {error}")),
    }
}

/// Whether the file can be appended to, or made.
fn appendable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err("a directory, not a file".to_owned()),
        // To open a FIFO would wait for its reader.
        Ok(metadata) if metadata.file_type().is_fifo() => Ok(()),
        // Lines have no place in a disk, and a socket is not opened.
        Ok(metadata) if !metadata.is_file() && !metadata.file_type().is_char_device() => {
            Err("not a file".to_owned())
        }
        Ok(_) => {
            let opened = OpenOptions::new().append(true).open(path);
            opened.map(drop).map_err(|error| format!("cannot be written: {error}"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => can_be_made(&end(path)),
        Err(error) => Err(format!("cannot be written: {error}")),
    }
}

/// Whether another file can be put in the place of this one, which need not be there.
fn replaceable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err("a directory, not a file".to_owned()),
        Ok(metadata) if !metadata.is_file() => Err("not a file".to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(format!("cannot be written: {error}")),
        Ok(_) | Err(_) => can_be_made(path),
    }
}

/// Where a path leads to that ends at a link to what is not there.
fn end(path: &Path) -> PathBuf {
    let mut end = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&end) {
            Ok(next) => end = directory(&end).join(next),
            Err(_) => break,
        }
    }
    end
}

/// The directory a file is in.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

/// Whether a file can be made there; the one that is made for this has no name.
fn can_be_made(path: &Path) -> Result<(), String> {
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.file_name().is_none() {
        return Err("a directory, not a file".to_owned());
    }
    let directory = directory(path);
    match fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(format!("{} is not a directory", directory.display())),
        Err(error) => return Err(format!("no directory {}: {error}", directory.display())),
    }
    match OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(directory) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Err(format!("cannot be made in {}: {error}", directory.display()))
        }
        // Not every file system has files without a name.
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
