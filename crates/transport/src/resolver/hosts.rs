//! A file in the format of `/etc/hosts`.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::LookupError;

/// A file that looks unfinished is taken for what it is once nobody has written to it for this long.
const SETTLED: Duration = Duration::from_secs(1);

/// A longer file is not read, in bytes.
const LONGEST: u64 = 16 << 20;

/// The file, and its content as of the last look at it.
///
/// Whoever writes it anew may be met halfway: what looks unfinished does not replace what is known, and
/// nor does a file that is gone or cannot be read.
#[derive(Debug)]
pub(super) struct HostsFile {
    path: PathBuf,
    content: Mutex<Option<Content>>,
}

#[derive(Debug)]
struct Content {
    /// `None` when it looked unfinished: it is read again next time.
    version: Option<Version>,
    addresses: HashMap<String, Vec<IpAddr>>,
}

/// What tells one content from the next without reading it.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    modified: SystemTime,
    length: u64,
    inode: u64,
}

impl Version {
    fn of(metadata: &Metadata) -> io::Result<Self> {
        Ok(Self { modified: metadata.modified()?, length: metadata.len(), inode: metadata.ino() })
    }

    fn has_settled(&self) -> bool {
        // A time to come is as good as long ago: waiting for it would be no help.
        self.modified.elapsed().map_or(true, |age| age >= SETTLED)
    }
}

impl HostsFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, content: Mutex::new(None) }
    }

    /// The addresses of `name`, in the order of the file.
    pub(super) fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, LookupError> {
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let failed =
            |text: &dyn std::fmt::Display| LookupError::Failed(format!("{}: {text}", self.path.display()));
        let refreshed = self.refresh(&mut content);
        let known = content.as_ref().and_then(|content| content.addresses.get(&key(name)));
        match (known, refreshed) {
            (Some(addresses), _) => Ok(addresses.clone()),
            (None, Ok(true)) => Err(LookupError::NotFound),
            // The name may be in what is still to come.
            (None, Ok(false)) => Err(failed(&"it looks unfinished")),
            (None, Err(error)) => Err(failed(&error)),
        }
    }

    /// Reads the file if it has changed; says whether what is known now is all of it.
    fn refresh(&self, content: &mut Option<Content>) -> io::Result<bool> {
        let known = content.as_ref().and_then(|content| content.version.as_ref());
        if let Some(known) = known
            && Version::of(&fs::metadata(&self.path)?)? == *known
        {
            return Ok(true);
        }
        let file = open_regular(&self.path)?;
        let before = Version::of(&file.metadata()?)?;
        let mut bytes = Vec::new();
        (&file).take(LONGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "longer than 16 MiB"));
        }
        let after = Version::of(&file.metadata()?)?;
        let text = String::from_utf8_lossy(&bytes);
        let whole = before == after && (text.ends_with('\n') || after.has_settled());
        if whole || content.as_ref().is_none_or(|content| content.version.is_none()) {
            *content = Some(Content { version: whole.then_some(after), addresses: parse_hosts(&text) });
        }
        Ok(whole)
    }
}

/// Opens what is a file and ends: a FIFO would wait for its writer, a device may have no end.
fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// Reads the text of a hosts file: an address and its names on each line, a comment after `#`.
///
/// Shape:  addresses by name in lower case and without the root's dot, in the order of the file.
/// A line that does not begin with an address is left out, as the system does; so is one with a zone
/// id, which no address of ours can hold.
pub fn parse_hosts(text: &str) -> HashMap<String, Vec<IpAddr>> {
    let mut addresses: HashMap<String, Vec<IpAddr>> = HashMap::new();
    for line in text.lines() {
        let content = line.split('#').next().unwrap_or_default();
        let mut words = content.split_whitespace();
        let Some(Ok(address)) = words.next().map(str::parse) else { continue };
        for name in words {
            addresses.entry(key(name)).or_default().push(address);
        }
    }
    addresses
}

/// A name as it is compared: without regard to case and to the root's dot.
fn key(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}
