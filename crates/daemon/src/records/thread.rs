//! The writing thread, seen from the worker, which never waits for it.

use std::convert::Infallible;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::buffer::Buffer;
use super::sink::{Message, Sink};

/// Buffers on their way to the thread.
pub(super) const BUFFERS: usize = 16;
/// How long [`Thread::finish`] waits for it.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The writing thread.
#[derive(Debug)]
pub(super) struct Thread {
    messages: SyncSender<Message>,
    /// Buffers that were written, to be filled again.
    emptied: Receiver<Buffer>,
    /// For the last buffer, which finds room even while the channel is full.
    rest: SyncSender<Buffer>,
    /// Disconnected when the thread ends.
    running: Receiver<Infallible>,
    handle: JoinHandle<()>,
}

impl Thread {
    /// Errors: there is no thread to be had.
    pub(super) fn start(sink: Sink) -> io::Result<Self> {
        let (messages, incoming) = sync_channel(BUFFERS);
        let (empty, emptied) = sync_channel(BUFFERS);
        let (rest, last) = sync_channel(1);
        let (alive, running) = sync_channel(0);
        let handle = std::thread::Builder::new().name("records".into()).spawn(move || {
            let _alive: SyncSender<Infallible> = alive;
            sink.run(&incoming, &empty, &last);
        })?;
        Ok(Self { messages, emptied, rest, running, handle })
    }

    /// Takes what `buffer` holds and leaves an empty one; says whether there was room.
    pub(super) fn take(&self, buffer: &mut Buffer) -> bool {
        match self.messages.try_send(Message::Lines(std::mem::take(buffer))) {
            Ok(()) => {
                *buffer = self.emptied.try_recv().unwrap_or_else(|_| Buffer::new());
                true
            }
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                if let Message::Lines(kept) = message {
                    *buffer = kept;
                }
                false
            }
        }
    }

    /// Has the target opened anew, behind all that was taken; says whether there was room.
    pub(super) fn reopen(&self) -> bool {
        self.messages.try_send(Message::Reopen).is_ok()
    }

    /// Has the rest written and ends the thread, within a second; one that is held up longer is left
    /// behind with what it holds.
    pub(super) fn finish(self, rest: Buffer) {
        let _ = self.rest.try_send(rest);
        drop(self.messages);
        match self.running.recv_timeout(LAST_WAIT) {
            Err(RecvTimeoutError::Disconnected) => {
                let _ = self.handle.join();
            }
            Err(RecvTimeoutError::Timeout) => tracing::warn!("the last forward records could not be written"),
            Ok(never) => match never {},
        }
    }
}
