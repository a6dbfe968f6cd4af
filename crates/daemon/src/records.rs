//! Forward records on their way out: lines in memory, then one thread that writes them.
//!
//! ```text
//! worker ── write ──▶ buffer ── try_send ──▶ channel ──▶ thread ──▶ file or standard output
//!                    64 KiB      full: kept,   16         fails: counted, the next
//!                    100 ms      then dropped             buffer is tried again
//!                       ▲        and counted                │
//!                       └──────────── emptied ──────────────┘
//! ```
//!
//! The worker never waits for a disk or for a reader. Memory: the worker's buffer, 16 in the channel
//! and one being written take 1.2 MiB together, and never more than 5 MiB, since a path is at most
//! what a datagram carries. docs/record.md describes the lines.

mod buffer;
mod sink;
mod thread;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use coapway_endpoint::SocketId;
use coapway_proxy::{Lines, Record, Refusals};
use coapway_time::Instant;

use self::buffer::{Buffer, count};
use self::sink::Sink;
use self::thread::Thread;

/// A buffer is handed over this long after its first record, however small it is.
const FLUSH_AFTER: Duration = Duration::from_millis(100);
/// Dropped records are told to the log at most this often.
const TELL_AFTER: Duration = Duration::from_secs(10);
/// Room that is enough for most lines, in bytes.
const MOST_LINES: usize = 4 << 10;
/// No line of a sum is longer, in bytes.
const LONGEST_SUM: usize = 256;

/// Where records go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard output.
    StandardOutput,
    /// A file, created when it is not there, appended to when it is.
    File(PathBuf),
}

impl Target {
    /// Opening a FIFO waits for its reader, as a shell's redirection does.
    fn open(&self) -> io::Result<File> {
        match self {
            // Past the standard library's own buffer, which would keep what it could not write.
            Self::StandardOutput => io::stdout().as_fd().try_clone_to_owned().map(File::from),
            Self::File(path) => OpenOptions::new().create(true).append(true).open(path),
        }
    }

    /// The same for one that was open before. Nobody waits for the reader of a FIFO then: records would be
    /// lost until it comes.
    ///
    /// Errors: as above, and there is a FIFO in its place.
    fn open_anew(&self) -> io::Result<File> {
        match self {
            Self::File(path) if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) => {
                Err(io::Error::other("there is a FIFO in its place"))
            }
            Self::File(_) | Self::StandardOutput => self.open(),
        }
    }
}

/// The wall clock as it was at [`Instant::ZERO`]. Records follow the monotonic clock from there on:
/// their times never step, and drift as far as the machine's clock is corrected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    /// When the program started.
    pub(crate) at_start: SystemTime,
}

impl WallClock {
    fn lines(self) -> Lines {
        let start = self.at_start.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Lines::new(u64::try_from(start.as_micros()).unwrap_or(u64::MAX))
    }
}

/// Takes the records of one worker.
///
/// Dropping it is [`RecordWriter::close`].
#[derive(Debug)]
pub(crate) struct RecordWriter {
    buffer: Buffer,
    /// When the buffer is handed over although it is not full.
    due: Option<Instant>,
    lines: Lines,
    reopen: bool,
    dropped: u64,
    told: u64,
    tell_from: Instant,
    failed: Arc<AtomicU64>,
    /// `None` once closed.
    thread: Option<Thread>,
}

impl RecordWriter {
    /// Opens `target` and starts the thread that writes to it.
    ///
    /// Errors: `target` cannot be opened, or there is no thread to be had.
    pub(crate) fn start(target: Target, wall_clock: WallClock) -> io::Result<Self> {
        let failed = Arc::new(AtomicU64::new(0));
        let sink = Sink { file: target.open()?, target, torn: false, failed: Arc::clone(&failed) };
        Ok(Self {
            buffer: Buffer::new(),
            due: None,
            lines: wall_clock.lines(),
            reopen: false,
            dropped: 0,
            told: 0,
            tell_from: Instant::ZERO,
            failed,
            thread: Some(Thread::start(sink)?),
        })
    }

    /// Takes one record.
    ///
    /// Shape:  `upstream` is the name of its upstream; `addresses` knows the addresses of sockets.
    pub(crate) fn write(
        &mut self,
        record: &Record,
        upstream: &str,
        addresses: &dyn Fn(SocketId) -> Option<SocketAddr>,
        now: Instant,
    ) {
        let mut length = self.lines.write(record, upstream, addresses, self.buffer.room(MOST_LINES));
        if length.is_none() {
            let room = self.buffer.room(Lines::room(record, upstream));
            length = self.lines.write(record, upstream, addresses, room);
        }
        self.written(length.unwrap_or(0), now);
    }

    /// Takes a sum of answers without a forward.
    pub(crate) fn write_refusals(&mut self, refusals: &Refusals, now: Instant) {
        let Refusals { since, code, cause, count } = refusals;
        let (since, cause) = (self.lines.timestamp(*since).escape_ascii(), cause.name());
        let mut room = self.buffer.room(LONGEST_SUM);
        let before = room.len();
        // There is room.
        let _ = writeln!(
            room,
            r#"{{"ts":"{since}","event":"refused","code":"{code}","cause":"{cause}","count":{count}}}"#
        );
        let length = before - room.len();
        self.written(length, now);
    }

    /// A line of this length is in the buffer's room.
    fn written(&mut self, length: usize, now: Instant) {
        self.buffer.add(length);
        if self.due.is_none() {
            self.due = Some(now + FLUSH_AFTER);
        }
        if self.buffer.is_full() {
            self.hand_over(now);
        }
        if self.buffer.is_full() {
            self.dropped += count(self.buffer.lines());
            self.buffer.clear();
        }
    }

    /// Hands over what is due at `now`. Returns when to call it again; `None` while there is nothing
    /// to hand over.
    pub(crate) fn flush_due(&mut self, now: Instant) -> Option<Instant> {
        if self.due.is_some_and(|due| due <= now) {
            self.hand_over(now);
        }
        if self.told < self.dropped && self.tell_from <= now {
            self.told = self.dropped;
            self.tell_from = now + TELL_AFTER;
            tracing::warn!(dropped = self.dropped, "forward records come faster than they can be written");
        }
        self.due
    }

    /// Opens the target anew behind everything written so far, for whoever has moved the file away.
    /// When it cannot be opened, the old one stays.
    pub(crate) fn reopen(&mut self, now: Instant) {
        self.reopen = true;
        self.hand_over(now);
    }

    /// Records that were dropped because the thread did not keep up.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Records that could not be written, the one that was cut off included.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Writes what is left and ends the thread, within a second; a thread that is held up longer is
    /// left behind with what it holds.
    pub(crate) fn close(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        thread.finish(std::mem::take(&mut self.buffer));
        let (dropped, failed) = (self.dropped(), self.failed());
        if dropped + failed > 0 {
            tracing::warn!(dropped, failed, "forward records were lost");
        }
    }

    /// Passes on the buffer and the wish to reopen. Never waits: what finds no room stays, to be
    /// tried again later.
    fn hand_over(&mut self, now: Instant) {
        self.due = Some(now + FLUSH_AFTER);
        let Some(thread) = &self.thread else { return };
        if !self.buffer.is_empty() && !thread.take(&mut self.buffer) {
            return;
        }
        self.reopen = self.reopen && !thread.reopen();
        if !self.reopen {
            self.due = None;
        }
    }
}

impl Drop for RecordWriter {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
