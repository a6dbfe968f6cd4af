//! Child processes: pinned from birth, gone with their parent, timed to the nanosecond.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::ptr;
use std::time::Duration;

use super::{core_set, result};

/// Starts `command` on one core, or anywhere; it gets SIGTERM when the calling thread ends.
pub(crate) fn spawn(command: &mut Command, core: Option<usize>) -> io::Result<Child> {
    let set = core.map(core_set);
    // SAFETY: between fork and exec the closure makes two plain system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            if let Some(set) = &set {
                result(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set))?;
            }
            result(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM)).map(drop)
        });
    }
    command.spawn()
}

/// CPU time of a process so far: user and system, all threads, ended ones too.
pub(crate) fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both outputs are whole values that live through the calls.
    unsafe {
        let error = libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock);
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        result(libc::clock_gettime(clock, &mut time))?;
    }
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// A handle on one process that can never name another one.
pub(crate) struct Pidfd(OwnedFd);

impl Pidfd {
    /// The handle of a child that has not been waited for.
    pub(crate) fn of(child: &Child) -> io::Result<Self> {
        // SAFETY: no pointers; the new descriptor is owned by nobody else.
        let returned = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id() as libc::pid_t, 0) };
        let descriptor = result(returned as libc::c_int)?;
        // SAFETY: as above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Asks the process to end.
    pub(crate) fn terminate(&self) -> io::Result<()> {
        self.signal(libc::SIGTERM)
    }

    /// Asks the process to read its settings again.
    pub(crate) fn reload(&self) -> io::Result<()> {
        self.signal(libc::SIGHUP)
    }

    fn signal(&self, signal: libc::c_int) -> io::Result<()> {
        // SAFETY: a null siginfo stands for the default one.
        let returned = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                signal,
                ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        result(returned as libc::c_int).map(drop)
    }

    /// Waits for the end of the process; false when it still runs after `timeout`.
    pub(crate) fn ends_within(&self, timeout: Duration) -> io::Result<bool> {
        let mut entry = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout = timeout.as_millis().min(60_000) as libc::c_int;
        // SAFETY: one entry, which lives through the call.
        Ok(result(unsafe { libc::poll(&mut entry, 1, timeout) })? > 0)
    }
}
