//! The system calls that the standard library, socket2 and tokio do not offer, and all `unsafe`.
//!
//! Each function takes and gives plain bytes and borrows; what they mean is read elsewhere.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_int, iovec, mmsghdr, msghdr};
use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::envelope::{Arrival, BATCH, Envelope};
use crate::sockaddr;

/// Registers `socket` with the running tokio runtime, which it leaves when it is dropped.
pub(crate) fn register(socket: Socket, interest: Interest) -> io::Result<AsyncFd<Socket>> {
    // SAFETY: a `Socket` owns its descriptor, names the same one each time, and closes it only when
    // it is dropped; that is after `AsyncFd` has deregistered it. Nobody here takes it out or
    // replaces it.
    let registered = unsafe { AsyncFd::register_with_interest(socket, interest) };
    Ok(registered?)
}

/// Sets a socket option whose value is an `int`.
pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
    value: c_int,
) -> io::Result<()> {
    // SAFETY: the pointer is to `value`, which outlives the call, and the length is its size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            ptr::from_ref(&value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How many datagrams a socket's receive queue has dropped, modulo 2³².
pub(crate) fn dropped(socket: BorrowedFd<'_>) -> io::Result<u32> {
    // SK_MEMINFO_DROPS is the last of them. A kernel that knows fewer fills in fewer.
    let mut information = [0_u32; 9];
    let mut length = size_of_val(&information) as libc::socklen_t;
    // SAFETY: the pointer is to `information`, which outlives the call, and the length is its size.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            information.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if result == 0 { Ok(information[8]) } else { Err(io::Error::last_os_error()) }
}

/// Receives up to [`BATCH`] datagrams without waiting, one into each `slot_size` bytes of `bytes`.
///
/// Errors: `WouldBlock` when nothing is there. Any error means that nothing was received.
pub(crate) fn receive_many(
    socket: BorrowedFd<'_>,
    headers: &mut Headers,
    arrivals: &mut [Arrival],
    bytes: &mut [u8],
    slot_size: usize,
) -> io::Result<usize> {
    let Headers { headers, iovecs } = headers;
    let mut count = 0;
    let slots = arrivals.iter_mut().zip(bytes.chunks_exact_mut(slot_size));
    for ((header, iovec), (arrival, slot)) in headers.iter_mut().zip(iovecs.iter_mut()).zip(slots) {
        *iovec = place(slot);
        address(&mut header.msg_hdr, arrival, iovec);
        count += 1;
    }
    // SAFETY: each of the first `count` headers points to the iovec, name, control and slot of its own,
    // exclusively borrowed by this function and as long as the header says.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT as _,
            ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for (arrival, header) in arrivals.iter_mut().zip(headers.iter()).take(received) {
        note(arrival, &header.msg_hdr, header.msg_len as usize);
    }
    Ok(received)
}

/// Takes one entry from the error queue, and the beginning of its datagram into `payload`.
///
/// Errors: `WouldBlock` when the queue is empty.
pub(crate) fn receive_error(
    socket: BorrowedFd<'_>,
    arrival: &mut Arrival,
    payload: &mut [u8],
) -> io::Result<()> {
    let mut iovec = place(payload);
    let mut header = empty_header();
    address(&mut header, arrival, &mut iovec);
    // SAFETY: the header is initialised and points to an iovec, name, control and payload that are
    // exclusively borrowed by this function and as long as the header says.
    let received =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    note(arrival, &header, received);
    Ok(())
}

/// Sends what up to [`BATCH`] envelopes hold without waiting; each takes so many of `pieces` as it says,
/// [`BATCH`] in all, which are places in `bytes`.
///
/// Returns how many of the envelopes, from the first, were sent: at least one.
/// Errors: why the first was not sent; the others were not tried.
pub(crate) fn send_many(
    socket: BorrowedFd<'_>,
    envelopes: &[Envelope],
    mut pieces: &[Range<usize>],
    bytes: &[u8],
) -> io::Result<usize> {
    let mut iovecs = [const { MaybeUninit::<iovec>::uninit() }; BATCH];
    let mut headers = [const { MaybeUninit::<mmsghdr>::uninit() }; BATCH];
    let mut count = 0;
    let mut free = iovecs.as_mut_slice();
    for (header, envelope) in headers.iter_mut().zip(envelopes) {
        let Some((ours, further)) = pieces.split_at_checked(envelope.pieces) else { break };
        let Some((iovecs, rest)) = free.split_at_mut_checked(envelope.pieces) else { break };
        (pieces, free) = (further, rest);
        for (iovec, piece) in iovecs.iter_mut().zip(ours) {
            let piece = bytes.get(piece.clone()).unwrap_or_default();
            iovec.write(iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() });
        }
        let mut message = empty_header();
        message.msg_name = envelope.name.as_ptr().cast_mut().cast();
        message.msg_namelen = envelope.name_length as libc::socklen_t;
        message.msg_iov = iovecs.as_mut_ptr().cast();
        message.msg_iovlen = iovecs.len() as _;
        if envelope.control_length > 0 {
            message.msg_control = envelope.control.as_ptr().cast_mut().cast();
            message.msg_controllen = envelope.control_length as _;
        }
        header.write(mmsghdr { msg_hdr: message, msg_len: 0 });
        count += 1;
    }
    // SAFETY: the first `count` headers are initialised, and each points to initialised iovecs, a name,
    // a control message and datagrams that outlive the call and are as long as it says; sending
    // writes to none of them, only `msg_len` of the headers, which are ours.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr().cast(), count, libc::MSG_DONTWAIT as _)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Asks the system's resolver for the addresses of `name`; it may take as long as it likes.
///
/// Errors: a code of `getaddrinfo`, and its meaning in words.
pub(crate) fn addresses_of(name: &CStr) -> Result<Vec<IpAddr>, (c_int, String)> {
    // SAFETY: all zeros is a valid `addrinfo`: integers and null pointers.
    let mut hints: libc::addrinfo = unsafe { MaybeUninit::zeroed().assume_init() };
    hints.ai_family = libc::AF_UNSPEC;
    hints.ai_socktype = libc::SOCK_DGRAM; // otherwise each address comes once for each type
    let mut list = ptr::null_mut();
    // SAFETY: `name` is a C string, `hints` is valid, the service may be null, and `list` is written
    // to only when the result is 0.
    let code = unsafe { libc::getaddrinfo(name.as_ptr(), ptr::null(), &hints, &mut list) };
    if code == libc::EAI_SYSTEM {
        return Err((code, io::Error::last_os_error().to_string()));
    }
    if code != 0 {
        // SAFETY: `gai_strerror` returns a static string for every code.
        let meaning = unsafe { CStr::from_ptr(libc::gai_strerror(code)) };
        return Err((code, meaning.to_string_lossy().into_owned()));
    }
    let mut addresses = Vec::new();
    let mut next = list;
    // SAFETY: `next` is null or an entry of the list, which is freed only below.
    while let Some(entry) = unsafe { next.as_ref() } {
        if !entry.ai_addr.is_null() {
            // SAFETY: `ai_addr` points to `ai_addrlen` bytes, which live as long as the list.
            let name = unsafe { std::slice::from_raw_parts(entry.ai_addr.cast(), entry.ai_addrlen as usize) };
            addresses.extend(sockaddr::decode(name).map(|address| address.ip()));
        }
        next = entry.ai_next;
    }
    // SAFETY: the list is one that `getaddrinfo` gave, nothing borrows from it any more.
    unsafe { libc::freeaddrinfo(list) };
    Ok(addresses)
}

/// Where bytes are written to.
fn place(payload: &mut [u8]) -> iovec {
    iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() }
}

/// Has what comes told in `arrival`, and its bytes written where `iovec` says.
fn address(header: &mut msghdr, arrival: &mut Arrival, iovec: &mut iovec) {
    header.msg_name = arrival.name.as_mut_ptr().cast();
    header.msg_namelen = arrival.name.len() as libc::socklen_t;
    header.msg_iov = iovec;
    header.msg_iovlen = 1;
    header.msg_control = arrival.control.as_mut_ptr().cast();
    header.msg_controllen = arrival.control.len() as _;
}

/// Room for the headers of [`BATCH`] datagrams, used again and again. What they point to is said anew for
/// each call: between calls the pointers mean nothing.
pub(crate) struct Headers {
    headers: Box<[mmsghdr]>,
    iovecs: Box<[iovec]>,
}

impl Headers {
    pub(crate) fn new() -> Self {
        let iovec = iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        Self {
            headers: (0..BATCH).map(|_| mmsghdr { msg_hdr: empty_header(), msg_len: 0 }).collect(),
            iovecs: vec![iovec; BATCH].into(),
        }
    }
}

fn empty_header() -> msghdr {
    // SAFETY: all zeros is a valid `msghdr`: integers and null pointers. Written so because some C
    // libraries have private padding in it.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

#[allow(clippy::unnecessary_cast, reason = "the types of the lengths differ between C libraries")]
fn note(arrival: &mut Arrival, header: &msghdr, length: usize) {
    arrival.name_length = header.msg_namelen as usize;
    arrival.control_length = header.msg_controllen as usize;
    arrival.length = length;
    arrival.flags = header.msg_flags;
}
