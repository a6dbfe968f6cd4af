//! UDP sockets of one worker: bound, asked whether there is something, read and written in batches.

pub mod icmp;
pub mod options;
pub mod receive;
pub mod send;

mod outgoing;
mod readiness;
mod runs;

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::task::{Context, Poll};

use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::envelope::{Arrival, BATCH};
use crate::sockaddr::Family;
use crate::syscalls;
use icmp::{IcmpError, QUOTE_SIZE};
use options::Options;
use readiness::{Incoming, Room};
use receive::{ReceiveBatch, SLOT_SIZE};
use send::{Progress, SendBatch, SendFailure};

/// How often a call is tried in a row that fails with what may be an error about some other datagram.
const ATTEMPTS: u32 = 16;
/// How many entries of the error queue one call takes, so that a flood of ICMP leaves time for
/// datagrams.
const ERRORS_AT_ONCE: usize = 256;
/// How many ICMP errors wait for [`UdpSocket::receive_errors`]; further ones are counted and lost.
const ERRORS_KEPT: usize = 1024;
/// How often a full device or a storm of ICMP errors may hold up one datagram before that counts as its
/// failure. A datagram whose fragments need more than the socket's buffer would otherwise hold up the
/// others for ever.
const HELD_UP: u32 = 16;

/// The fewest datagrams that a receive makes room for.
const FEWEST: usize = 4;
/// For so many batches after an ICMP error each datagram goes by itself: about a run that meets a closed
/// port of this host one error comes, about its datagrams one each.
const ALONE: u16 = 1000;

/// What a socket has seen since it was bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams received, cut ones included.
    pub received: u64,
    /// Of these, the ones that were longer than [`SLOT_SIZE`].
    pub truncated: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams reported as failed.
    pub failed: u64,
    /// Times that a send found the socket's buffer full.
    pub buffer_full: u64,
    /// Times that a send found the network device's queue full.
    pub device_full: u64,
    /// ICMP errors received, the lost ones included.
    pub icmp: u64,
    /// ICMP errors lost because more than 1024 waited for [`UdpSocket::receive_errors`].
    pub icmp_lost: u64,
}

/// A UDP socket that belongs to one worker and stays on its thread.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Rc<AsyncFd<Socket>>,
    incoming: RefCell<Incoming>,
    room: RefCell<Room>,
    /// ICMP errors that a send or receive came upon.
    errors: RefCell<Vec<IcmpError>>,
    counters: Cell<Counters>,
    local_addr: SocketAddr,
    family: Family,
    granted_receive_buffer: usize,
    /// Whether the kernel takes several datagrams in one piece.
    runs: Cell<bool>,
    /// For how many batches it is not asked to.
    alone: Cell<u16>,
    /// For how many datagrams the next receive makes room.
    expected: Cell<usize>,
}

impl UdpSocket {
    /// Binds a socket to `address`.
    ///
    /// An IPv6 socket takes no IPv4, unless it is bound to `[::]` and `options` want both. On a
    /// wildcard address each datagram comes with the address it was sent to.
    /// Shape:  call it where tokio's runtime runs, with I/O and time enabled; it panics elsewhere.
    /// Errors: what the system says to the address or to an option; a smaller buffer is no error.
    pub fn bind(address: SocketAddr, options: &Options) -> io::Result<Self> {
        let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
        let socket = options.open(address)?;
        let local_addr = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::InvalidInput)?;
        let granted_receive_buffer = options::granted(&socket)?;
        // Kernels that do not know the option would take the message that names a size for nothing, and
        // send a run as one datagram.
        let runs =
            Cell::new(syscalls::set_option(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok());
        // Not for writing: a socket registered for that wakes its worker for each datagram that has
        // left the device, although there nearly always is room. See `Room`.
        let socket = Rc::new(syscalls::register(socket, Interest::READABLE | Interest::ERROR)?);
        Ok(Self {
            incoming: RefCell::new(Incoming::new(Rc::clone(&socket))),
            socket,
            room: RefCell::new(Room::Assumed),
            errors: RefCell::new(Vec::new()),
            counters: Cell::new(Counters::default()),
            local_addr,
            family,
            granted_receive_buffer,
            runs,
            alone: Cell::new(0),
            expected: Cell::new(FEWEST),
        })
    }

    /// The address it is bound to, with the port it was given.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// How many bytes of receive buffer the system granted, in the measure of [`Options`].
    pub fn granted_receive_buffer(&self) -> usize {
        self.granted_receive_buffer
    }

    /// How many datagrams came when its receive buffer was full, modulo 2³²; it makes a system call.
    ///
    /// Where the kernel does not count them it is 0.
    pub fn lost(&self) -> u32 {
        syscalls::dropped(self.socket.as_fd()).unwrap_or(0)
    }

    /// What it has seen since it was bound.
    pub fn counters(&self) -> Counters {
        self.counters.get()
    }

    /// Waits for a datagram or an ICMP error.
    ///
    /// Ready means that [`receive`](Self::receive) and [`receive_errors`](Self::receive_errors) are
    /// worth a call, both; they may come back empty. It stays ready until both have found nothing
    /// more. One task waits at a time: the last to poll is woken.
    /// Errors: the runtime is shutting down.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_errors() {
            return Poll::Ready(Ok(()));
        }
        self.incoming.borrow_mut().poll(cx)
    }

    /// Fills `batch` with what is there and returns how many datagrams that were, at most [`BATCH`].
    ///
    /// It makes room for about twice as many as came the last time, since room that stays empty costs
    /// time too: ask [`ReceiveBatch::is_full`] whether there may be more.
    /// It never waits and, until the runtime has seen something arrive, makes no system call.
    /// Errors: what the system says; `batch` is then empty. An ICMP error is none, it is kept for
    /// [`receive_errors`](Self::receive_errors).
    pub fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.length = 0;
        batch.room = self.expected.get();
        let mut attempt = 1;
        loop {
            // A batch that did not fill up means that the queue was found empty, and `WouldBlock`
            // tells tokio so without one more call to hear the same. Nothing is missed by it:
            // readiness is edge-triggered, and what arrives after the kernel's look is a new edge,
            // seen at the runtime's next turn. A batch is also short when an ICMP error arrives
            // amidst it and ends it early, with datagrams still queued (`udp_recvmsg` looks for
            // errors first). But that error is an edge too, after which the runtime asks for the
            // socket's whole state and learns of the datagrams again.
            let result = self.socket.try_io(Interest::READABLE, |socket| {
                let arrivals = batch.arrivals.get_mut(..batch.room).unwrap_or_default();
                let (headers, bytes) = (&mut batch.headers, &mut batch.bytes);
                batch.length = syscalls::receive_many(socket.as_fd(), headers, arrivals, bytes, SLOT_SIZE)?;
                self.expected.set(if batch.is_full() {
                    BATCH
                } else {
                    FEWEST.max(2 * batch.length).min(BATCH)
                });
                if batch.is_full() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            });
            match result {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if !raised_by_icmp(&error) => return Err(error),
                // A storm of them: the datagrams are still there, and it is still ready.
                Err(_) if attempt == ATTEMPTS => break,
                Err(_) => {
                    self.take_errors();
                    attempt += 1;
                }
            }
        }
        self.count(|counters| {
            counters.received += batch.length as u64;
            counters.truncated += batch.truncated() as u64;
        });
        Ok(batch.length)
    }

    /// Sends all of `batch`, or as much as the kernel takes.
    ///
    /// A datagram that cannot be sent goes to `failures` and holds up no other. An ICMP error about
    /// an earlier datagram, which the kernel reports by failing the next send to any peer, costs
    /// none: it is kept for [`receive_errors`](Self::receive_errors), and that send is done again.
    pub fn send(&self, batch: &mut SendBatch, failures: &mut Vec<SendFailure>) -> Progress {
        let wildcard = self.local_addr.ip().is_unspecified();
        let alone = self.alone.get();
        self.alone.set(alone.saturating_sub(1));
        let mut attempt = 1;
        while !batch.is_empty() {
            let (envelopes, pieces, bytes) =
                batch.prepare(self.family, wildcard, self.runs.get() && alone == 0);
            match syscalls::send_many(self.socket.as_fd(), envelopes, pieces, bytes) {
                Ok(sent) => {
                    // Fewer than all: the kernel has kept quiet about why the next one failed. It
                    // tells when that one is first.
                    let sent = batch.advance(sent);
                    attempt = 1;
                    self.count(|counters| counters.sent += sent as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.count(|counters| counters.buffer_full += 1);
                    *self.room.borrow_mut() = Room::in_buffer(self.socket.get_ref());
                    return Progress::Blocked;
                }
                // Told only to sockets with IP_RECVERR: the device dropped it.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) && batch.held_up < HELD_UP => {
                    batch.held_up += 1;
                    self.count(|counters| counters.device_full += 1);
                    *self.room.borrow_mut() = Room::in_device();
                    return Progress::Blocked;
                }
                Err(error) => {
                    let before = self.counters().icmp;
                    self.take_errors();
                    let about_another = self.counters().icmp > before || only_by_icmp(&error);
                    if attempt == 1 || about_another && attempt < ATTEMPTS {
                        // The kernel's own verdict on a datagram is the same the second time.
                        attempt += 1;
                    } else if about_another && batch.held_up < HELD_UP {
                        // A new error met each try. They are about others: to fail this one for them
                        // would charge the wrong exchange.
                        batch.held_up += 1;
                        *self.room.borrow_mut() = Room::in_device();
                        return Progress::Blocked;
                    } else if batch.split() {
                        attempt = 1;
                        if error.raw_os_error() == Some(libc::EIO) {
                            // There are no runs on the way out: a device without checksums, or IPsec.
                            self.runs.set(false);
                        }
                    } else {
                        attempt = 1;
                        self.count(|counters| counters.failed += 1);
                        failures.extend(batch.fail(error));
                    }
                }
            }
        }
        batch.clear();
        Progress::Done
    }

    /// Waits until a send that was [`Progress::Blocked`] is worth another try; otherwise ready.
    ///
    /// Errors: the runtime is shutting down.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.room.borrow_mut().poll(cx)
    }

    /// Moves the ICMP errors that are there to `errors`.
    ///
    /// It never waits and, until the runtime has seen an error arrive, makes no system call.
    pub fn receive_errors(&self, errors: &mut Vec<IcmpError>) {
        // Whatever a send takes off the queue leaves tokio's flag as it is, so the flag is cleared
        // here, where it is asked for: by `WouldBlock`, once the queue is empty. That is all the
        // result says.
        let _: io::Result<()> = self.socket.try_io(Interest::ERROR, |_| {
            if self.take_errors() < ERRORS_AT_ONCE { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        errors.append(&mut self.errors.borrow_mut());
    }

    /// Whether a send or receive came upon ICMP errors that [`receive_errors`](Self::receive_errors) has yet
    /// to hand over.
    pub fn has_errors(&self) -> bool {
        !self.errors.borrow().is_empty()
    }

    /// Takes entries from the error queue and keeps the ICMP errors among them; returns how many
    /// entries there were, [`ERRORS_AT_ONCE`] when there may be more.
    fn take_errors(&self) -> usize {
        let mut arrival = Arrival::EMPTY;
        let mut payload = [0; QUOTE_SIZE];
        let mut kept = self.errors.borrow_mut();
        for taken in 0..ERRORS_AT_ONCE {
            // The queue knows no error but being empty.
            if syscalls::receive_error(self.socket.as_fd(), &mut arrival, &mut payload).is_err() {
                return taken;
            }
            let payload = payload.get(..arrival.length).unwrap_or_default();
            let Some(error) = IcmpError::decode(&arrival, payload) else { continue };
            self.count(|counters| counters.icmp += 1);
            self.alone.set(ALONE);
            if kept.len() < ERRORS_KEPT {
                kept.push(error);
            } else {
                self.count(|counters| counters.icmp_lost += 1);
            }
        }
        ERRORS_AT_ONCE
    }

    fn count(&self, change: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }
}

/// Whether a failure to receive may be an ICMP error about a datagram that was sent earlier.
///
/// Source: Linux, `icmp_err_convert` and `icmpv6_err_convert`.
fn raised_by_icmp(error: &io::Error) -> bool {
    const RAISED: [i32; 11] = [
        libc::ECONNREFUSED,
        libc::EHOSTUNREACH,
        libc::ENETUNREACH,
        libc::EHOSTDOWN,
        libc::ENONET,
        libc::ENOPROTOOPT,
        libc::EOPNOTSUPP,
        libc::EACCES,
        libc::EMSGSIZE,
        libc::EPROTO,
        // Not by ICMP, but to be tried again just so.
        libc::EINTR,
    ];
    error.raw_os_error().is_some_and(|code| RAISED.contains(&code))
}

/// Whether a failure to send without being connected can only be about an earlier datagram. The entry
/// of the error queue that tells which is missing when there was no room for it.
fn only_by_icmp(error: &io::Error) -> bool {
    const RAISED: [i32; 4] = [libc::ECONNREFUSED, libc::EPROTO, libc::EHOSTDOWN, libc::ENONET];
    error.raw_os_error().is_some_and(|code| RAISED.contains(&code))
}

#[cfg(test)]
mod tests;
