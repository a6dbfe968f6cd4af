//! Level-triggered epoll.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::Duration;

use super::result;

/// Waits for many sockets at once and tells which of them can be read.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
}

impl Poller {
    /// Reports at most `capacity` sockets a wait.
    pub(crate) fn new(capacity: usize) -> io::Result<Self> {
        // SAFETY: no pointers; the new descriptor is owned by nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(result(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Self { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; capacity], ready: 0 })
    }

    /// Watches `socket` under the name `key`, until the socket is closed.
    pub(crate) fn add(&self, socket: &impl AsFd, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: key };
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open, `event` lives through the call.
        let outcome =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, socket, &mut event) };
        result(outcome).map(drop)
    }

    /// Waits at most `timeout`, counted in whole milliseconds.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout = timeout.as_millis().min(60_000) as libc::c_int;
        let capacity = self.events.len() as libc::c_int;
        self.ready = 0;
        // SAFETY: the buffer holds `capacity` events and lives through the call.
        let outcome =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), capacity, timeout) };
        match result(outcome) {
            Ok(ready) => self.ready = ready as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Waits at most `timeout`, counted in nanoseconds.
    pub(crate) fn wait_exactly(&mut self, timeout: Duration) -> io::Result<()> {
        let mut entry = libc::pollfd { fd: self.epoll.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().min(60) as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: one entry and one time, which live through the call; no signal mask.
        match result(unsafe { libc::ppoll(&mut entry, 1, &timeout, std::ptr::null()) }) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            Ok(_) | Err(_) => self.wait(Duration::ZERO),
        }
    }

    /// The keys of the sockets that the last [`Self::wait`] found readable.
    pub(crate) fn ready(&self) -> impl Iterator<Item = u64> {
        self.events.iter().take(self.ready).map(|event| event.u64)
    }
}
