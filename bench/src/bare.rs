//! The yardstick: a forwarder that knows nothing of CoAP.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::{clock, sys};

/// Runs a bare UDP forwarder: what no proxy can do without.
///
/// One recvfrom and one sendto per datagram, one upstream socket per client address, epoll. It reads
/// nothing of what it forwards and keeps nothing but the clients' addresses.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address and port to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5731")]
    listen: SocketAddr,
    /// Where every datagram goes.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5711")]
    target: SocketAddr,
    /// Ends by itself after so many seconds.
    #[arg(long, default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Client addresses to remember; datagrams of further ones are dropped.
    #[arg(long, default_value_t = 15_000)]
    max_clients: usize,
}

const FRONT: u64 = u64::MAX;
/// Datagrams taken from the listening socket before the upstream ones get their turn.
const BATCH: usize = 64;

struct Flow {
    client: SocketAddr,
    upstream: UdpSocket,
}

struct Forwarder {
    front: UdpSocket,
    target: SocketAddr,
    poller: sys::Poller,
    flows: Vec<Flow>,
    by_client: HashMap<SocketAddr, usize>,
    max_clients: usize,
}

/// Forwards until the time is over.
pub(crate) fn run(args: &Args) -> Result<()> {
    sys::raise_open_files()?;
    let front = UdpSocket::bind(args.listen).with_context(|| format!("cannot listen on {}", args.listen))?;
    front.set_nonblocking(true)?;
    sys::enlarge_buffers(&front);
    let poller = sys::Poller::new(256)?;
    poller.add(&front, FRONT)?;
    let mut forwarder = Forwarder {
        front,
        target: args.target,
        poller,
        flows: Vec::new(),
        by_client: HashMap::new(),
        max_clients: args.max_clients,
    };
    let end = clock::now() + Duration::from_secs(args.seconds);
    let mut ready = Vec::new();
    let mut buffer = [0; 65_536];
    while clock::now() < end {
        forwarder.poller.wait(Duration::from_millis(500))?;
        ready.clear();
        ready.extend(forwarder.poller.ready());
        for key in &ready {
            match *key {
                FRONT => forwarder.upstream(&mut buffer)?,
                flow => forwarder.downstream(flow as usize, &mut buffer),
            }
        }
    }
    Ok(())
}

impl Forwarder {
    fn upstream(&mut self, buffer: &mut [u8]) -> Result<()> {
        for _ in 0..BATCH {
            let Ok((length, client)) = self.front.recv_from(buffer) else { break };
            let Some(flow) = self.flow(client)? else { continue };
            if let (Some(flow), Some(datagram)) = (self.flows.get(flow), buffer.get(..length)) {
                // Here as below: what cannot be sent is lost, as on any network.
                let _lost = flow.upstream.send(datagram);
            }
        }
        Ok(())
    }

    /// Reads once: a client of the bench has one request under way, and a second read would only cost time.
    fn downstream(&self, flow: usize, buffer: &mut [u8]) {
        let Some(flow) = self.flows.get(flow) else { return };
        let Ok(length) = flow.upstream.recv(buffer) else { return };
        if let Some(datagram) = buffer.get(..length) {
            let _lost = self.front.send_to(datagram, flow.client);
        }
    }

    fn flow(&mut self, client: SocketAddr) -> Result<Option<usize>> {
        let vacant = match self.by_client.entry(client) {
            Entry::Occupied(known) => return Ok(Some(*known.get())),
            Entry::Vacant(_) if self.flows.len() >= self.max_clients => return Ok(None),
            Entry::Vacant(vacant) => vacant,
        };
        let any = match self.target {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let upstream = UdpSocket::bind(any).context("cannot open an upstream socket")?;
        upstream.connect(self.target)?;
        upstream.set_nonblocking(true)?;
        let index = self.flows.len();
        self.poller.add(&upstream, index as u64)?;
        self.flows.push(Flow { client, upstream });
        vacant.insert(index);
        Ok(Some(index))
    }
}
