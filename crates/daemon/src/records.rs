//! Forward records on their way out: lines in memory, then one thread that writes them.
//!
//! ```text
//! worker ── write ──▶ buffer ── try_send ──▶ channel ──▶ thread ──▶ file or standard output
//!                    64 KiB      full: kept,   16         fails: counted, the next
//!                    100 ms      then dropped             buffer is tried again
//!                                and counted
//! ```
//!
//! The worker never waits for a disk or for a reader. Memory: the worker's buffer, 16 in the channel
//! and one being written take 1.2 MiB together, and never more than 5 MiB, since a path is at most
//! what a datagram carries. docs/record.md describes the lines.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use coapway_proxy::{Record, Refusals};
use coapway_time::Instant;

/// A buffer with this many bytes is handed over.
const FULL: usize = 64 << 10;
/// What a buffer holds without growing: a full one and the line that filled it.
const CAPACITY: usize = FULL + (4 << 10);
/// Buffers on their way to the thread.
const BUFFERS: usize = 16;
/// A buffer is handed over this long after its first record, however small it is.
const FLUSH_AFTER: Duration = Duration::from_millis(100);
/// How long [`RecordWriter::close`] waits for the thread.
const LAST_WAIT: Duration = Duration::from_secs(1);
/// Dropped records are told to the log at most this often.
const TELL_AFTER: Duration = Duration::from_secs(10);

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
}

/// The wall clock as it was at [`Instant::ZERO`]. Records follow the monotonic clock from there on:
/// their times never step, and drift as far as the machine's clock is corrected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    /// When the program started.
    pub(crate) at_start: SystemTime,
}

/// Takes the records of one worker.
///
/// Dropping it is [`RecordWriter::close`].
#[derive(Debug)]
pub(crate) struct RecordWriter {
    buffer: Vec<u8>,
    /// When the buffer is handed over although it is not full.
    due: Option<Instant>,
    /// The share of records that is kept.
    sampling: f64,
    timestamps: Timestamps,
    reopen: bool,
    dropped: u64,
    told: u64,
    tell_from: Instant,
    failed: Arc<AtomicU64>,
    /// `None` once closed.
    thread: Option<Thread>,
}

/// The writing thread, seen from the worker.
#[derive(Debug)]
struct Thread {
    messages: SyncSender<Message>,
    /// For the last buffer, which finds room even while the channel is full.
    rest: SyncSender<Vec<u8>>,
    /// Disconnected when the thread ends.
    running: Receiver<Infallible>,
    handle: JoinHandle<()>,
}

#[derive(Debug)]
enum Message {
    Lines(Vec<u8>),
    Reopen,
}

impl RecordWriter {
    /// Opens `target` and starts the thread that writes to it.
    ///
    /// Shape:  `sampling` is the share of records that is kept, 0 to 1; which ones is decided by
    ///         their `id` alone.
    /// Errors: `target` cannot be opened, or there is no thread to be had.
    pub(crate) fn start(target: Target, sampling: f64, wall_clock: WallClock) -> io::Result<Self> {
        let failed = Arc::new(AtomicU64::new(0));
        let sink = Sink { file: target.open()?, target, torn: false, failed: Arc::clone(&failed) };
        let (messages, incoming) = sync_channel(BUFFERS);
        let (rest, last) = sync_channel(1);
        let (alive, running) = sync_channel(0);
        let handle = std::thread::Builder::new().name("records".into()).spawn(move || {
            let _alive: SyncSender<Infallible> = alive;
            sink.run(&incoming, &last);
        })?;
        Ok(Self {
            buffer: Vec::with_capacity(CAPACITY),
            due: None,
            sampling,
            timestamps: Timestamps::new(wall_clock),
            reopen: false,
            dropped: 0,
            told: 0,
            tell_from: Instant::ZERO,
            failed,
            thread: Some(Thread { messages, rest, running, handle }),
        })
    }

    /// Takes one record.
    ///
    /// Shape:  `listener` and `local_port` are what is behind the record's socket numbers.
    pub(crate) fn write(
        &mut self,
        record: &Record,
        listener: Option<SocketAddr>,
        local_port: Option<u16>,
        now: Instant,
    ) {
        if !is_sampled(record.id, self.sampling) {
            return;
        }
        record.write_json(&mut self.buffer, self.timestamps.at(record.received), listener, local_port);
        self.written(now);
    }

    /// Takes a sum of answers without a forward; they are not sampled.
    pub(crate) fn write_refusals(&mut self, refusals: &Refusals, now: Instant) {
        let Refusals { since, code, cause, count } = refusals;
        let (since, cause) = (self.timestamps.at(*since), cause.name());
        // A `Vec` takes every byte.
        let _ = writeln!(
            self.buffer,
            r#"{{"ts":"{since}","event":"refused","code":"{code}","cause":"{cause}","count":{count}}}"#
        );
        self.written(now);
    }

    fn written(&mut self, now: Instant) {
        if self.due.is_none() {
            self.due = Some(now + FLUSH_AFTER);
        }
        if self.buffer.len() >= FULL {
            self.hand_over(now);
        }
        if self.buffer.len() >= FULL {
            self.dropped += lines(&self.buffer);
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
        let Some(Thread { messages, rest, running, handle }) = self.thread.take() else { return };
        let _ = rest.try_send(std::mem::take(&mut self.buffer));
        drop(messages);
        match running.recv_timeout(LAST_WAIT) {
            Err(RecvTimeoutError::Disconnected) => {
                let _ = handle.join();
            }
            Err(RecvTimeoutError::Timeout) => tracing::warn!("the last forward records could not be written"),
            Ok(never) => match never {},
        }
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
        if !self.buffer.is_empty() {
            match thread.messages.try_send(Message::Lines(std::mem::take(&mut self.buffer))) {
                Ok(()) => self.buffer = Vec::with_capacity(CAPACITY),
                Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                    if let Message::Lines(buffer) = message {
                        self.buffer = buffer;
                    }
                    return;
                }
            }
        }
        self.reopen = self.reopen && thread.messages.try_send(Message::Reopen).is_err();
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

/// Whether the record with this id is kept: the same ones in each run, spread evenly.
fn is_sampled(id: u64, sampling: f64) -> bool {
    // The finalizer of SplitMix64.
    let mut bits = id.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    // The upper 53 bits make a number from 0 to just below 1.
    let place = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    place < sampling
}

fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// What the thread owns.
#[derive(Debug)]
struct Sink {
    file: File,
    target: Target,
    /// Whether the last line was cut off.
    torn: bool,
    failed: Arc<AtomicU64>,
}

impl Sink {
    fn run(mut self, incoming: &Receiver<Message>, last: &Receiver<Vec<u8>>) {
        let mut failing = false;
        let mut write = |sink: &mut Self, lines: &[u8]| match sink.write(lines) {
            Ok(()) if std::mem::take(&mut failing) => tracing::info!("forward records are written again"),
            Ok(()) => {}
            Err(error) if !std::mem::replace(&mut failing, true) => {
                tracing::warn!(%error, "cannot write forward records");
            }
            Err(_) => {}
        };
        for message in incoming {
            match message {
                Message::Lines(lines) => write(&mut self, &lines),
                Message::Reopen => self.reopen(),
            }
        }
        if let Ok(lines) = last.try_recv() {
            write(&mut self, &lines);
        }
    }

    /// Writes whole lines, behind a line break when the one before was cut off.
    ///
    /// Errors: the first one; what it kept from being written is counted and given up.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let line_break: &[u8] = if self.torn && !bytes.is_empty() { b"\n" } else { b"" };
        let mut left = bytes;
        let outcome = write_all(&mut self.file, line_break).1.and_then(|()| {
            let (written, outcome) = write_all(&mut self.file, bytes);
            left = bytes.get(written..).unwrap_or_default();
            let done = bytes.get(..written).unwrap_or_default();
            self.torn = done.last().is_some_and(|&byte| byte != b'\n');
            outcome
        });
        self.failed.fetch_add(lines(left), Ordering::Relaxed);
        outcome
    }

    fn reopen(&mut self) {
        match self.target.open() {
            Ok(file) => (self.file, self.torn) = (file, false),
            Err(error) => tracing::warn!(%error, "cannot reopen the record file; the old one stays in use"),
        }
    }
}

/// Like [`io::Write::write_all`], and says how far it came.
fn write_all(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match file.write(rest) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// Writes instants as RFC 3339 in UTC with microseconds. Records of one second share all but those.
#[derive(Debug)]
struct Timestamps {
    /// µs from 1970 to the start.
    start: u64,
    /// The second that `text` begins with.
    second: Option<u64>,
    text: String,
}

impl Timestamps {
    /// As long as `2026-11-30T06:23:17.`
    const SECOND_LENGTH: usize = 20;

    fn new(wall_clock: WallClock) -> Self {
        let start = wall_clock.at_start.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start = u64::try_from(start.as_micros()).unwrap_or(u64::MAX);
        Self { start, second: None, text: String::new() }
    }

    fn at(&mut self, instant: Instant) -> &str {
        let micros = self.start.saturating_add(instant.as_micros());
        let (second, micros) = (micros / 1_000_000, micros % 1_000_000);
        if self.second == Some(second) {
            self.text.truncate(Self::SECOND_LENGTH);
        } else {
            self.second = Some(second);
            self.text.clear();
            let (year, month, day) = civil(second / 86_400);
            let (hour, minute, second) = (second / 3600 % 24, second / 60 % 60, second % 60);
            let _ = write!(self.text, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.");
        }
        let _ = write!(self.text, "{micros:06}Z");
        &self.text
    }
}

/// Year, month and day of a day since 1970-01-01.
///
/// Years begin in March here, so that a leap day is the last of its year; an era is 400 years.
/// Source: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms, `civil_from_days`.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + (month <= 2) as u64;
    (year, month, day)
}

#[cfg(test)]
mod tests;
