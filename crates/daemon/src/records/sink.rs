//! The thread that writes records, and nothing else.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use super::Target;
use super::buffer::{Buffer, count};

/// What the worker asks of the thread.
#[derive(Debug)]
pub(super) enum Message {
    Lines(Buffer),
    Reopen,
}

/// What the thread owns.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) file: File,
    pub(super) target: Target,
    /// Whether the last line was cut off.
    pub(super) torn: bool,
    /// Lines that could not be written.
    pub(super) failed: Arc<AtomicU64>,
}

impl Sink {
    /// Writes what comes, and returns the buffers it came in, until the worker hangs up; then what it
    /// left.
    pub(super) fn run(
        mut self,
        incoming: &Receiver<Message>,
        emptied: &SyncSender<Buffer>,
        last: &Receiver<Buffer>,
    ) {
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
                Message::Lines(mut buffer) => {
                    write(&mut self, buffer.lines());
                    buffer.clear();
                    let _ = emptied.try_send(buffer);
                }
                Message::Reopen => self.reopen(),
            }
        }
        if let Ok(buffer) = last.try_recv() {
            write(&mut self, buffer.lines());
        }
    }

    /// Writes whole lines, behind a line break when the one before was cut off.
    ///
    /// Errors: the first one; what it kept from being written is counted and given up.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let line_break: &[u8] = if self.torn && !bytes.is_empty() { b"\n" } else { b"" };
        let mut left = bytes;
        let outcome = write_all(&mut self.file, line_break).1.and_then(|()| {
            let (written, outcome) = write_all(&mut self.file, bytes);
            left = bytes.get(written..).unwrap_or_default();
            let done = bytes.get(..written).unwrap_or_default();
            self.torn = done.last().is_some_and(|&byte| byte != b'\n');
            outcome
        });
        self.failed.fetch_add(count(left), Ordering::Relaxed);
        outcome
    }

    fn reopen(&mut self) {
        match self.target.open_anew() {
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
