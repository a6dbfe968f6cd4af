//! Name look-up on threads of its own, since a name server may take seconds.

mod hosts;
mod server;

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::syscalls;
use hosts::HostsFile;
pub use hosts::parse_hosts;
use server::NameServer;

/// How many addresses of one name are kept: enough to try, and no more than a stranger's answer may
/// cost.
const MOST_ADDRESSES: usize = 32;

/// Where names are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The system's resolver (`getaddrinfo`), with all that the host has configured for it.
    System,
    /// A file in the format of `/etc/hosts` and nothing else; read again when it has changed.
    Hosts(PathBuf),
    /// A recursive name server, asked over UDP and, where that is too small, over TCP.
    Server(SocketAddr),
}

/// Looks up names without making its worker wait.
///
/// Dropping it ends its threads without waiting for them: one that the system's resolver holds up
/// ends when that is done.
#[derive(Debug)]
pub struct Resolver {
    jobs: SyncSender<Job>,
    finished: mpsc::Receiver<Finished>,
}

#[derive(Debug)]
struct Job {
    id: u64,
    name: String,
}

/// A look-up that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The number it was given.
    pub id: u64,
    /// The addresses, IPv4 and IPv6, the best first: 1 to 32, each once; or why there are none.
    pub addresses: Result<Vec<IpAddr>, LookupError>,
    /// How long the addresses may be used, where the source says so.
    pub ttl: Option<Duration>,
}

/// What a source knows of a name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    addresses: Vec<IpAddr>,
    ttl: Option<Duration>,
}

impl From<Vec<IpAddr>> for Found {
    fn from(addresses: Vec<IpAddr>) -> Self {
        Self { addresses, ttl: None }
    }
}

/// Why a name has no addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// There is no such name, or it has no addresses.
    #[error("no such name")]
    NotFound,
    /// It could not be found out, which says nothing of the name; asking later may help.
    #[error("name look-up failed: {0}")]
    Failed(String),
    /// The same since a name server said nothing in time. The system's resolver does not tell that from other
    /// failures that are temporary.
    #[error("name look-up timed out: {0}")]
    TimedOut(String),
}

/// As many look-ups are under way as are allowed; this one was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many name look-ups under way")]
pub struct Busy;

impl Resolver {
    /// Starts `threads` threads, at least one, with room for `queue` look-ups that wait for one.
    ///
    /// Errors: the system does not give a thread; none is left behind.
    pub fn new(source: Source, threads: usize, queue: usize) -> io::Result<Self> {
        let threads = threads.max(1);
        let database = Arc::new(match source {
            Source::System => Database::System,
            Source::Hosts(path) => Database::Hosts(HostsFile::new(path)),
            Source::Server(address) => Database::Server(NameServer::new(address)),
        });
        let (jobs, waiting) = sync_channel(queue);
        let waiting = Arc::new(Mutex::new(waiting));
        // Bounded as well: who does not take results gets `Busy` in the end, not a growing list.
        let (results, finished) = mpsc::channel(queue.saturating_add(threads));
        for number in 0..threads {
            let (database, waiting, results) = (Arc::clone(&database), Arc::clone(&waiting), results.clone());
            thread::Builder::new()
                .name(format!("resolver-{number}"))
                .spawn(move || work(&database, &waiting, &results))?;
        }
        Ok(Self { jobs, finished })
    }

    /// Begins to look up `name`.
    ///
    /// The caller sees `id` again in exactly one [`Finished`]; what it means is the caller's.
    /// Shape:  an IP address is a name too, and its own address.
    /// Errors: [`Busy`] when all threads are at work and the queue is full.
    pub fn look_up(&self, id: u64, name: &str) -> Result<(), Busy> {
        self.jobs.try_send(Job { id, name: name.to_owned() }).map_err(|_| Busy)
    }

    /// Waits for a look-up to be done; they end in any order.
    pub fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<Finished> {
        match self.finished.poll_recv(cx) {
            Poll::Ready(Some(finished)) => Poll::Ready(finished),
            // Closed: no thread is left, which takes a panic in each. No result will come.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// What a thread does until the resolver is gone.
fn work(database: &Database, waiting: &Mutex<Receiver<Job>>, results: &mpsc::Sender<Finished>) {
    loop {
        // The idle threads queue up for the lock, one of them for the job.
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { id, name }) = job else { return };
        let found = database.look_up(&name).and_then(|mut found| {
            let mut seen = Vec::new();
            found.addresses.retain(|address| {
                let new = seen.len() < MOST_ADDRESSES && !seen.contains(address);
                seen.extend(new.then_some(*address));
                new
            });
            if found.addresses.is_empty() { Err(LookupError::NotFound) } else { Ok(found) }
        });
        let (addresses, ttl) = match found {
            Ok(Found { addresses, ttl }) => (Ok(addresses), ttl),
            Err(error) => (Err(error), None),
        };
        if results.blocking_send(Finished { id, addresses, ttl }).is_err() {
            return;
        }
    }
}

#[derive(Debug)]
enum Database {
    System,
    Hosts(HostsFile),
    Server(NameServer),
}

impl Database {
    fn look_up(&self, name: &str) -> Result<Found, LookupError> {
        if let Ok(address) = name.parse() {
            return Ok(vec![address].into());
        }
        match self {
            Self::System => look_up_in_system(name).map(Found::from),
            Self::Hosts(file) => file.look_up(name).map(Found::from),
            Self::Server(server) => server.look_up(name),
        }
    }
}

fn look_up_in_system(name: &str) -> Result<Vec<IpAddr>, LookupError> {
    // `getaddrinfo` takes no name at all for this host; a NUL would end the name early.
    let name = match CString::new(name) {
        Ok(text) if !name.is_empty() => text,
        Ok(_) | Err(_) => return Err(LookupError::NotFound),
    };
    /// The name exists but has no address: glibc's, not in the `libc` crate for all systems.
    const EAI_NODATA: i32 = -5;
    syscalls::addresses_of(&name).map_err(|(code, meaning)| match (code, descriptors_left()) {
        (libc::EAI_NONAME | EAI_NODATA, Ok(())) => LookupError::NotFound,
        // It says "no such name" as well when it could open neither its files nor a socket.
        (libc::EAI_NONAME | EAI_NODATA, Err(error)) => LookupError::Failed(error.to_string()),
        _ => LookupError::Failed(meaning),
    })
}

/// Whether as many descriptors can be had as a look-up takes at a time.
fn descriptors_left() -> io::Result<()> {
    let open = || File::open("/");
    let _three = [open()?, open()?, open()?];
    Ok(())
}

#[cfg(test)]
mod tests;
