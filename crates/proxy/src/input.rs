//! All that can come in.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{Local, SocketId};
use coapway_message::Failure;
use coapway_time::Instant;

use crate::journal::Listening;
use crate::parameters::Parameters;

/// What happened outside.
#[derive(Clone, Copy, Debug)]
pub enum Input<'i> {
    /// A datagram came.
    Datagram {
        /// To which socket and address of ours.
        local: Local,
        /// From whom.
        remote: SocketAddr,
        /// Its bytes.
        bytes: &'i [u8],
        /// Whether there were more, which are lost.
        truncated: bool,
    },
    /// A datagram of ours did not arrive or could not be sent.
    Undeliverable {
        /// From which socket.
        local: Local,
        /// To whom.
        remote: SocketAddr,
        /// How it began; at least header and token count as proof.
        quoted: &'i [u8],
        /// `Unreachable`, `TooLarge`, or `Overloaded` when the system had nothing left to send it with.
        failure: Failure,
    },
    /// A look-up ended.
    Resolved {
        /// Its number.
        lookup: u64,
        /// The addresses; none when there is no such name.
        addresses: &'i [IpAddr],
        /// How long they may be used, where that is known; never more than 30 s.
        ttl: Option<Duration>,
    },
    /// A look-up could not be made, which says nothing of the name.
    LookUpFailed {
        /// Its number.
        lookup: u64,
        /// What ends those who wait for it, unless addresses are known from before: `LookUpFailed`,
        /// `LookUpTimedOut` or, when too many are under way, `Overloaded`.
        failure: Failure,
    },
    /// The settings changed. Requests under way are answered by the time that was promised them, and
    /// exchanges keep their schedules; what was learned or is remembered stays.
    ///
    /// An upstream is known by its authority, and where that is new by its name. One that is gone serves
    /// the requests that are on their way to it.
    Reconfigure {
        /// All settings, those that stay the same included; the first upstream is the default one.
        parameters: &'i Parameters,
        /// What is listened to from now on.
        listening: Listening,
        /// The listeners that are to be closed: new requests there get 5.03. All others take them.
        closing: &'i [SocketId],
    },
    /// The process is asked to stop: new requests get 5.03, running ones go on until then and are
    /// answered at the latest.
    Drain {
        /// See [`crate::Proxy::drained_at`] for when to end.
        until: Instant,
    },
    /// Time passed: the instant asked for by [`crate::Output::Wait`] has come, perhaps long ago.
    Wake,
}

/// What a socket is for, as its number says. Listeners are numbered by the owner of the sockets;
/// upstream sockets are opened by it when a datagram first leaves from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketRole {
    /// The n-th listening socket.
    Listener(u32),
    /// The n-th socket towards origins of one address family.
    Upstream {
        /// Whether it is for IPv6.
        ipv6: bool,
        /// Its place in the order of use.
        number: u32,
    },
}

const UPSTREAM: u32 = 1 << 16;
const IPV6: u32 = 1 << 17;

impl SocketRole {
    /// What this socket is for.
    pub const fn of(socket: SocketId) -> Self {
        match socket.0 & UPSTREAM {
            0 => Self::Listener(socket.0),
            _ => Self::Upstream { ipv6: socket.0 & IPV6 != 0, number: socket.0 & (UPSTREAM - 1) },
        }
    }

    /// The number of the socket with this role.
    pub const fn socket(self) -> SocketId {
        match self {
            Self::Listener(number) => SocketId(number),
            Self::Upstream { ipv6: true, number } => SocketId(UPSTREAM | IPV6 | number),
            Self::Upstream { ipv6: false, number } => SocketId(UPSTREAM | number),
        }
    }
}
