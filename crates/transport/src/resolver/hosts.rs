//! A file in the format of `/etc/hosts`.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::LookupError;

/// The file, and its content as of the last look at it.
#[derive(Debug)]
pub(super) struct HostsFile {
    path: PathBuf,
    content: Mutex<Option<Content>>,
}

#[derive(Debug)]
struct Content {
    version: Version,
    addresses: HashMap<String, Vec<IpAddr>>,
}

/// What tells one content from the next without reading it.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    modified: SystemTime,
    length: u64,
}

impl HostsFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, content: Mutex::new(None) }
    }

    /// The addresses of `name`, in the order of the file.
    pub(super) fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, LookupError> {
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let content = self
            .fresh(&mut content)
            .map_err(|error| LookupError::Failed(format!("{}: {error}", self.path.display())))?;
        content.addresses.get(&key(name)).cloned().ok_or(LookupError::NotFound)
    }

    fn fresh<'c>(&self, content: &'c mut Option<Content>) -> io::Result<&'c Content> {
        // Asked before it is read: a change in between is seen next time.
        let metadata = fs::metadata(&self.path)?;
        let version = Version { modified: metadata.modified()?, length: metadata.len() };
        let content = match content.take() {
            Some(known) if known.version == version => content.insert(known),
            Some(_) | None => {
                content.insert(Content { version, addresses: parse_hosts(&fs::read_to_string(&self.path)?) })
            }
        };
        Ok(content)
    }
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
