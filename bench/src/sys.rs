//! System calls that the standard library lacks: the only unsafe code of the bench.

mod batch;
mod poller;
mod process;

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

pub(crate) use batch::Batch;
pub(crate) use poller::Poller;
pub(crate) use process::{Pidfd, cpu_time, spawn};

/// Keeps the calling process on one core.
pub(crate) fn pin(core: usize) -> io::Result<()> {
    let set = core_set(core);
    // SAFETY: `set` is a whole cpu_set_t that lives through the call; 0 is the calling thread.
    result(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) }).map(drop)
}

/// Gives a socket room for the bursts of a thousand clients, as far as the system allows.
pub(crate) fn enlarge_buffers(socket: &UdpSocket) {
    let options = [[libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF]];
    for [forced, plain] in options {
        let _granted = set_option(socket, forced, 8 << 20) || set_option(socket, plain, 8 << 20);
    }
}

/// Takes a socket the room for what nobody is going to read.
pub(crate) fn shrink_receive_buffer(socket: &UdpSocket) {
    let _granted = set_option(socket, libc::SO_RCVBUF, 1);
}

/// Lets the other threads of this core go first.
pub(crate) fn give_way() -> io::Result<()> {
    // SAFETY: no pointers; 0 is the calling thread.
    result(unsafe { libc::setpriority(libc::PRIO_PROCESS as _, 0, 10) }).map(drop)
}

fn set_option(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> bool {
    // SAFETY: the value is a c_int that lives through the call, and its size is passed.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    outcome == 0
}

/// Raises the limit of open files to what the system allows this process.
pub(crate) fn raise_open_files() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a whole rlimit that lives through both calls.
    unsafe {
        result(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit))?;
        limit.rlim_cur = limit.rlim_max;
        result(libc::setrlimit(libc::RLIMIT_NOFILE, &limit)).map(drop)
    }
}

fn core_set(core: usize) -> libc::cpu_set_t {
    // SAFETY: all zeros is the empty set, and CPU_SET checks its index against the set's size.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        if core < libc::CPU_SETSIZE as usize {
            libc::CPU_SET(core, &mut set);
        }
        set
    }
}

fn result(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}
