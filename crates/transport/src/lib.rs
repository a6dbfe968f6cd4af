//! Bytes in, bytes out: sockets and name look-up. Nothing here knows CoAP.
//!
//! ```text
//!                  poll_ready          receive                   Received { from, to, datagram }
//! network ──▶ UdpSocket ──────▶ worker ──────▶ ReceiveBatch ──▶ …
//!                  ▲                   receive_errors ─────────▶ IcmpError { destination, code, payload }
//!                  └── send ── SendBatch ◀── push(to, from, datagram)
//!                      poll_writable, when the kernel had no room
//!
//! worker ── look_up(id, name) ──▶ Resolver ── threads ──▶ poll_finished: Finished { id, addresses }
//! ```
//!
//! One worker is one thread with a current-thread tokio runtime (I/O and time enabled). It owns its
//! sockets, waits with the `poll_*` methods, and moves datagrams in batches, one system call for up
//! to [`BATCH`] of them, without an allocation for any of them. Start at [`UdpSocket::bind`].
//!
//! Linux only. System calls, and with them all `unsafe`, live in `syscalls.rs`.

pub mod resolver;
pub mod udp;

mod control;
mod envelope;
mod sockaddr;
mod syscalls;

pub use envelope::BATCH;
pub use resolver::{Busy, Finished, LookupError, Resolver, Source};
pub use udp::icmp::{IcmpCode, IcmpError, Unreachable};
pub use udp::options::Options;
pub use udp::receive::{ReceiveBatch, Received, SLOT_SIZE};
pub use udp::send::{Progress, SendBatch, SendFailure};
pub use udp::{Counters, UdpSocket};
