//! What an operator asks for by signals.

use std::io;
use std::task::{Context, Poll};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// SIGTERM or SIGINT: finish what is under way and end; the second time end at once.
    Stop,
    /// SIGHUP: read the settings again.
    Reload,
    /// SIGUSR1: open the files anew that are written to.
    Reopen,
}

/// The signals, from now on. Those of one kind that come before one was seen count once.
#[derive(Debug)]
pub(crate) struct Signals([(Signal, Order); 4]);

impl Signals {
    /// Errors: what the system says.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self([
            (signal(SignalKind::terminate())?, Order::Stop),
            (signal(SignalKind::interrupt())?, Order::Stop),
            (signal(SignalKind::hangup())?, Order::Reload),
            (signal(SignalKind::user_defined1())?, Order::Reopen),
        ]))
    }

    /// Waits for the next one that stops; the others are kept.
    pub(crate) fn poll_stop(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut stops = self.0.iter_mut().filter(|(_, order)| *order == Order::Stop);
        if stops.any(|(signal, _)| signal.poll_recv(cx).is_ready()) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits for the next one.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Order> {
        for (signal, order) in &mut self.0 {
            if signal.poll_recv(cx).is_ready() {
                return Poll::Ready(*order);
            }
        }
        Poll::Pending
    }
}
