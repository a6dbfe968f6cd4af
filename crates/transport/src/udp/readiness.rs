//! Waiting for a socket: for something to arrive, and for room to send.

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Sleep, sleep};

use crate::syscalls;

/// How long a full device is left alone: tokio's shortest wait, in which 1 Gbit/s takes some 800
/// small datagrams off its queue.
const DEVICE_PAUSE: Duration = Duration::from_millis(1);

/// Waits for a datagram or an entry in the error queue.
///
/// tokio's poll methods know reading and writing only and are not woken by the error queue; `ready`
/// is, but it is a future that borrows what it waits for. So one such future is made for the life of
/// the socket, and starts over each time it is done.
pub(super) struct Incoming {
    waiting: Pin<Box<dyn Future<Output = Infallible>>>,
    outcome: Rc<Cell<Option<io::Result<()>>>>,
}

impl Incoming {
    pub(super) fn new(socket: Rc<AsyncFd<Socket>>) -> Self {
        let outcome = Rc::new(Cell::new(None));
        let told = Rc::clone(&outcome);
        let waiting = Box::pin(async move {
            loop {
                let guard = socket.ready(Interest::READABLE | Interest::ERROR).await;
                told.set(Some(guard.map(drop)));
                let mut polled_again = false;
                poll_fn(|_| match std::mem::replace(&mut polled_again, true) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                })
                .await;
            }
        });
        Self { waiting, outcome }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.waiting.as_mut().poll(cx) {
            Poll::Ready(never) => match never {},
            Poll::Pending => self.outcome.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").finish_non_exhaustive()
    }
}

/// Whether the kernel has room for a datagram, as far as we know.
#[derive(Debug)]
pub(super) enum Room {
    /// It has, until a send says otherwise.
    Assumed,
    /// When the socket's buffer has: this second registration is told.
    ///
    /// It is made for the one wait, since mio takes an error next to writability for the end of a
    /// pipe: after the first ICMP error tokio would hold the socket writable for good, and a blocked
    /// worker would spin.
    InBuffer(AsyncFd<Socket>),
    /// When the device's queue has. The socket is writable all the while, so only time can tell.
    InDevice(Pin<Box<Sleep>>),
}

impl Room {
    pub(super) fn in_buffer(socket: &Socket) -> Self {
        let registered = socket.try_clone().and_then(|socket| syscalls::register(socket, Interest::WRITABLE));
        // Out of descriptors: then time must do.
        registered.map_or_else(|_| Self::in_device(), Self::InBuffer)
    }

    pub(super) fn in_device() -> Self {
        Self::InDevice(Box::pin(sleep(DEVICE_PAUSE)))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = match self {
            Self::Assumed => return Poll::Ready(Ok(())),
            Self::InBuffer(socket) => ready!(socket.poll_write_ready(cx)).map(drop),
            Self::InDevice(pause) => {
                ready!(pause.as_mut().poll(cx));
                Ok(())
            }
        };
        *self = Self::Assumed;
        Poll::Ready(outcome)
    }
}
