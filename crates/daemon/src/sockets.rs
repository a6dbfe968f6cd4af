//! The sockets of one worker, by the numbers the proxy knows them under.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use coapway_endpoint::{Local, SocketId, Transmit};
use coapway_message::Failure;
use coapway_proxy::SocketRole;
use coapway_transport::{Options, Progress, SendBatch, SendFailure, UdpSocket};
use slab::Slab;

use crate::bells::Bells;
use crate::log::ONCE_A_MINUTE;

mod listeners;
mod places;

pub(crate) use listeners::{Bound, Unbound};
use places::Places;

/// Datagrams that blocked sockets may hold back together; what comes beyond is dropped and counted.
const HELD_BACK: usize = 4096;
const BATCH: usize = 64;

/// One socket and what is to leave from it.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) id: SocketId,
    pub(crate) udp: UdpSocket,
    outgoing: SendBatch,
    blocked: bool,
    /// Whether origins are at its other end.
    is_upstream: bool,
}

/// All sockets of one worker.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// By place, which is a socket's as long as it is open.
    open: Slab<Socket>,
    places: Places,
    /// One for each socket, numbered by place.
    bells: Bells,
    /// Places of sockets that are to be polled: their bells have rung, or they were just read.
    listed: Vec<usize>,
    /// Places of sockets that may have something for us.
    ready: Vec<usize>,
    /// Sockets with datagrams to send, by place.
    dirty: Vec<usize>,
    failures: Vec<SendFailure>,
    /// Datagrams that were dropped since too many were held back.
    dropped: u64,
    /// The number of each address that was ever listened on: a Message ID belongs to both.
    numbers: BTreeMap<SocketAddr, u32>,
    /// What sockets have counted that are closed.
    closed: SocketCounters,
}

/// What the sockets of a worker have counted together; see [`coapway_transport::Counters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketCounters {
    pub(crate) received: u64,
    /// Datagrams that found a receive buffer full.
    pub(crate) lost: u64,
    pub(crate) truncated: u64,
    pub(crate) sent: u64,
    pub(crate) failed: u64,
    pub(crate) buffer_full: u64,
    pub(crate) device_full: u64,
    pub(crate) icmp: u64,
    pub(crate) icmp_lost: u64,
    /// Datagrams that were dropped since too many were held back.
    pub(crate) dropped: u64,
}

impl SocketCounters {
    fn add(&mut self, socket: &UdpSocket) {
        let counters = socket.counters();
        self.lost += u64::from(socket.lost());
        self.received += counters.received;
        self.truncated += counters.truncated;
        self.sent += counters.sent;
        self.failed += counters.failed;
        self.buffer_full += counters.buffer_full;
        self.device_full += counters.device_full;
        self.icmp += counters.icmp;
        self.icmp_lost += counters.icmp_lost;
    }
}

/// A datagram that could not be sent.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) local: Local,
    pub(crate) remote: SocketAddr,
    pub(crate) quoted: Box<[u8]>,
    pub(crate) failure: Failure,
}

impl Sockets {
    /// Listens on what is bound, numbered as it comes.
    pub(crate) fn new(bound: Bound) -> Self {
        let mut sockets = Self {
            open: Slab::new(),
            places: Places::default(),
            bells: Bells::default(),
            listed: Vec::new(),
            ready: Vec::new(),
            dirty: Vec::new(),
            failures: Vec::new(),
            dropped: 0,
            numbers: BTreeMap::new(),
            closed: SocketCounters::default(),
        };
        sockets.listen_on(bound);
        // Opened before they are needed: to run out of descriptors later then costs further source
        // ports, and never all of them.
        for ipv6 in [false, true] {
            if let Err(error) = sockets.place(SocketRole::Upstream { ipv6, number: 0 }.socket()) {
                let family = if ipv6 { "IPv6" } else { "IPv4" };
                tracing::info!(%error, "{family} origins cannot be reached from this host");
            }
        }
        sockets
    }

    /// The same on addresses.
    ///
    /// Errors: each that cannot be bound.
    #[cfg(test)]
    pub(crate) fn bind(addresses: &[SocketAddr]) -> Result<Self, Vec<Unbound>> {
        Bound::to(addresses).map(Self::new)
    }

    /// What all sockets have counted.
    pub(crate) fn counters(&self) -> SocketCounters {
        let mut sum = SocketCounters { dropped: self.dropped, ..self.closed };
        self.open.iter().for_each(|(_, socket)| sum.add(&socket.udp));
        sum
    }

    /// Where the listeners are bound, ports given by the system included.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = SocketAddr> {
        self.open
            .iter()
            .filter(|(_, socket)| matches!(SocketRole::of(socket.id), SocketRole::Listener(_)))
            .map(|(_, socket)| socket.udp.local_addr())
    }

    pub(crate) fn local_addr(&self, id: SocketId) -> Option<SocketAddr> {
        self.places.get(id).map(|place| self.open[place].udp.local_addr())
    }

    /// The socket at a place, unless it was closed.
    pub(crate) fn at(&self, place: usize) -> Option<&Socket> {
        self.open.get(place)
    }

    /// The places of all sockets.
    pub(crate) fn all(&self) -> Vec<usize> {
        self.open.iter().map(|(place, _)| place).collect()
    }

    fn add(&mut self, id: SocketId, udp: UdpSocket) -> usize {
        let is_upstream = matches!(SocketRole::of(id), SocketRole::Upstream { .. });
        let outgoing = SendBatch::new(BATCH);
        let place = self.open.insert(Socket { id, udp, outgoing, blocked: false, is_upstream });
        self.bells.add(place);
        self.places.set(id, Some(place));
        place
    }

    /// The place of a socket; an upstream socket is opened when it is first needed.
    fn place(&mut self, id: SocketId) -> io::Result<usize> {
        if let Some(place) = self.places.get(id) {
            return Ok(place);
        }
        let address: IpAddr = match SocketRole::of(id) {
            SocketRole::Upstream { ipv6: true, .. } => Ipv6Addr::UNSPECIFIED.into(),
            SocketRole::Upstream { ipv6: false, .. } => Ipv4Addr::UNSPECIFIED.into(),
            SocketRole::Listener(_) => return Err(io::ErrorKind::NotFound.into()),
        };
        let udp = UdpSocket::bind(
            SocketAddr::new(address, 0),
            &Options { destinations: false, ..Options::default() },
        )?;
        Ok(self.add(id, udp))
    }

    /// Takes a datagram to be sent with the next [`Sockets::flush`], at once when a batch is full.
    #[inline]
    pub(crate) fn push(&mut self, transmit: &Transmit<'_>, unsent: &mut Vec<Unsent>) {
        let Transmit { peer, datagram } = transmit;
        let known = self.places.get(peer.local.socket);
        let Some(place) = known.or_else(|| self.open_for(transmit, unsent)) else { return };
        let Some(socket) = self.open.get(place) else { return };
        if socket.blocked && self.waiting() >= HELD_BACK {
            self.dropped += 1;
            return;
        }
        let Some(socket) = self.open.get_mut(place) else { return };
        if socket.outgoing.is_empty() {
            self.dirty.push(place);
        }
        if socket.is_upstream && may_overtake(datagram) {
            socket.outgoing.push_unordered(peer.remote, peer.local.address, datagram);
        } else {
            socket.outgoing.push(peer.remote, peer.local.address, datagram);
        }
        if socket.outgoing.is_full() && !socket.blocked {
            self.send(place, unsent);
        }
    }

    /// Opens the socket that a datagram is to leave from.
    #[cold]
    fn open_for(&mut self, transmit: &Transmit<'_>, unsent: &mut Vec<Unsent>) -> Option<usize> {
        let &Transmit { peer, datagram } = transmit;
        match self.place(peer.local.socket) {
            Ok(place) => Some(place),
            Err(error) => {
                tracing::warn!(target: ONCE_A_MINUTE, %error, "cannot open a further socket towards origins");
                let (local, remote) = (peer.local, peer.remote);
                let failure = failure(&error);
                unsent.push(Unsent { local, remote, quoted: datagram.into(), failure });
                None
            }
        }
    }

    /// Datagrams that wait, on all sockets.
    pub(crate) fn waiting(&self) -> usize {
        self.dirty.iter().map(|&place| self.open[place].outgoing.len()).sum()
    }

    /// Sends what was pushed, as far as the system takes it.
    pub(crate) fn flush(&mut self, unsent: &mut Vec<Unsent>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for &place in &dirty {
            if !self.open[place].blocked {
                self.send(place, unsent);
            }
        }
        dirty.retain(|&place| !self.open[place].outgoing.is_empty());
        self.dirty = dirty;
    }

    fn send(&mut self, place: usize, unsent: &mut Vec<Unsent>) {
        let socket = &mut self.open[place];
        if socket.outgoing.is_empty() {
            return;
        }
        let held_back = socket.outgoing.len() > BATCH;
        socket.blocked = socket.udp.send(&mut socket.outgoing, &mut self.failures) == Progress::Blocked;
        if socket.blocked || socket.udp.has_errors() {
            self.bells.ring(place);
        }
        if held_back && socket.outgoing.is_empty() {
            // What it took to hold so many back is given back.
            socket.outgoing = SendBatch::new(BATCH);
        }
        for SendFailure { to, from, error, quote, .. } in self.failures.drain(..) {
            tracing::debug!(%error, "a datagram was not sent");
            if error.raw_os_error() == Some(libc::ENOBUFS) {
                // Lost on a device that has been full for a while, as on any link behind it: what is
                // to arrive is sent again when its time comes.
                continue;
            }
            let local = Local { socket: socket.id, address: from };
            unsent.push(Unsent { local, remote: to, quoted: quote, failure: failure(&error) });
        }
    }

    /// Ready when a socket has something for us, or room for what it held back.
    pub(crate) fn poll_ready(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.bells.attend(cx);
        self.bells.rung(&mut self.listed);
        let mut has_room = false;
        for place in self.listed.drain(..) {
            let Some(socket) = self.open.get_mut(place) else { continue };
            let mut bell = self.bells.context(place);
            if socket.udp.poll_ready(&mut bell).is_ready() {
                self.ready.push(place);
            }
            if socket.blocked && socket.udp.poll_writable(&mut bell).is_ready() {
                socket.blocked = false;
                has_room = true;
            }
        }
        if has_room || !self.ready.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Moves the places of the sockets to `places` that may have something for us.
    pub(crate) fn take_ready(&mut self, places: &mut Vec<usize>) {
        // Who has rung since the last poll is as good as ready.
        self.bells.rung(&mut self.ready);
        self.ready.sort_unstable();
        self.ready.dedup();
        // All of them are polled again: one that was read to its end rings for the next datagram only then.
        self.listed.extend_from_slice(&self.ready);
        places.append(&mut self.ready);
    }
}

/// Whether a message towards an origin may leave before others that came before it: they are of many
/// clients. Only Non-confirmable ones follow each other without waiting for a reply, so that their order may
/// mean something.
fn may_overtake(datagram: &[u8]) -> bool {
    const NON: u8 = 1;
    datagram.first().is_some_and(|first| first >> 4 & 3 != NON)
}

/// What an error of the system means for the exchange a datagram belongs to.
fn failure(error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::EMSGSIZE) => Failure::TooLarge,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS) => Failure::Overloaded,
        // No route, no such device, forbidden by a filter: all that is wrong with the way there.
        _ => Failure::Unreachable,
    }
}

/// A warning when the system grants listeners much less room for bursts than they ask for.
pub(crate) fn warning() -> Option<String> {
    let options = Options::default();
    // Where no socket can be opened, others will say so.
    room_for_bursts(options.granted_receive_buffer().ok()?, options.receive_buffer)
}

/// Half of what was asked for is enough.
fn room_for_bursts(granted: usize, asked: usize) -> Option<String> {
    (granted < asked / 2).then(|| {
        format!(
            "the system grants {} KiB of receive buffer instead of {} KiB: bursts will lose datagrams; \
             sysctl -w net.core.rmem_max={asked} allows it",
            granted >> 10,
            asked >> 10,
        )
    })
}

#[cfg(test)]
mod tests;
