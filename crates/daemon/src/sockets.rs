//! The sockets of one worker, by the numbers the proxy knows them under.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use coapway_endpoint::{Local, SocketId, Transmit};
use coapway_message::Failure;
use coapway_proxy::SocketRole;
use coapway_transport::{Options, Progress, SendBatch, SendFailure, UdpSocket};

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
}

/// All sockets of one worker.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Listeners first, then upstream sockets in the order in which they were opened.
    open: Vec<Socket>,
    places: BTreeMap<SocketId, usize>,
    /// Sockets with datagrams to send, by place.
    dirty: Vec<usize>,
    failures: Vec<SendFailure>,
    pub(crate) dropped: u64,
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
    /// Binds the listeners, numbered as they come.
    ///
    /// Errors: the address that cannot be bound, and why.
    pub(crate) fn bind(addresses: &[SocketAddr]) -> Result<Self, (SocketAddr, io::Error)> {
        let mut sockets = Self {
            open: Vec::new(),
            places: BTreeMap::new(),
            dirty: Vec::new(),
            failures: Vec::new(),
            dropped: 0,
        };
        for (number, &address) in (0..).zip(addresses) {
            let options = Options { dual_stack: true, ..Options::default() };
            let udp = UdpSocket::bind(address, &options).map_err(|error| (address, error))?;
            sockets.add(SocketRole::Listener(number).socket(), udp);
        }
        Ok(sockets)
    }

    /// Where the listeners are bound, ports given by the system included.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = SocketAddr> {
        self.open
            .iter()
            .filter(|socket| matches!(SocketRole::of(socket.id), SocketRole::Listener(_)))
            .map(|socket| socket.udp.local_addr())
    }

    pub(crate) fn local_addr(&self, id: SocketId) -> Option<SocketAddr> {
        self.places.get(&id).map(|&place| self.open[place].udp.local_addr())
    }

    pub(crate) const fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn at(&self, place: usize) -> &Socket {
        &self.open[place]
    }

    fn add(&mut self, id: SocketId, udp: UdpSocket) -> usize {
        let place = self.open.len();
        self.open.push(Socket { id, udp, outgoing: SendBatch::new(BATCH), blocked: false });
        self.places.insert(id, place);
        place
    }

    /// The place of a socket; an upstream socket is opened when it is first needed.
    fn place(&mut self, id: SocketId) -> io::Result<usize> {
        if let Some(&place) = self.places.get(&id) {
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
    pub(crate) fn push(&mut self, transmit: Transmit<'_>, unsent: &mut Vec<Unsent>) {
        let Transmit { peer, datagram } = transmit;
        let place = match self.place(peer.local.socket) {
            Ok(place) => place,
            Err(error) => {
                tracing::warn!(%error, "cannot open a socket towards origins");
                let (local, remote) = (peer.local, peer.remote);
                let failure = Failure::Unreachable;
                unsent.push(Unsent { local, remote, quoted: datagram.into(), failure });
                return;
            }
        };
        if self.open[place].blocked && self.waiting() >= HELD_BACK {
            self.dropped += 1;
            return;
        }
        let socket = &mut self.open[place];
        if socket.outgoing.is_empty() {
            self.dirty.push(place);
        }
        socket.outgoing.push(peer.remote, peer.local.address, datagram);
        if socket.outgoing.is_full() && !socket.blocked {
            self.send(place, unsent);
        }
    }

    /// Datagrams that wait, on all sockets.
    fn waiting(&self) -> usize {
        self.dirty.iter().map(|&place| self.open[place].outgoing.len()).sum()
    }

    /// Sends what was pushed, as far as the system takes it.
    pub(crate) fn flush(&mut self, unsent: &mut Vec<Unsent>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for &place in &dirty {
            self.send(place, unsent);
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
        if held_back && socket.outgoing.is_empty() {
            // What it took to hold so many back is given back.
            socket.outgoing = SendBatch::new(BATCH);
        }
        let local = Local { socket: socket.id, address: None };
        for SendFailure { to, error, quote, .. } in self.failures.drain(..) {
            let failure = match error.raw_os_error() {
                Some(libc::EMSGSIZE) => Failure::TooLarge,
                _ => Failure::Unreachable,
            };
            tracing::debug!(%error, "a datagram was not sent");
            unsent.push(Unsent { local, remote: to, quoted: quote, failure });
        }
    }

    /// Ready when a socket has something for us, or room for what it held back.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut ready = false;
        for socket in &self.open {
            ready |= socket.udp.poll_ready(cx).is_ready();
            ready |= socket.blocked && socket.udp.poll_writable(cx).is_ready();
        }
        if ready { Poll::Ready(()) } else { Poll::Pending }
    }
}
