//! Exchanges that stay open: clients that each ask once, and an origin that acknowledges and is in no hurry.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::coap::{self, ACK, CON, CONTENT, EMPTY, GET, Message};
use crate::{clock, sys};

/// Requests that leave before the origin is looked at.
const BATCH: usize = 64;
/// Requests on their way to the origin at a time: fewer than a learned NSTART lets wait.
const ON_THE_WAY: usize = 512;
/// How long nothing may happen before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(20);

/// Both ends of the exchanges; client N has the address 127.64.0.0 + N.
pub(super) struct Held {
    clients: UdpSocket,
    origin: UdpSocket,
    proxy: SocketAddrV4,
    uri: Vec<u8>,
    /// By client: where its request came to the origin from, and under which token.
    requests: Vec<Option<(SocketAddrV4, [u8; 8], u8)>>,
    asked: usize,
    arrived: usize,
    answered: usize,
    acknowledged: Vec<bool>,
    /// Length of one request.
    pub(super) request: usize,
}

impl Held {
    pub(super) fn new(proxy: SocketAddrV4) -> Result<Self> {
        let open = |address: Ipv4Addr| -> Result<UdpSocket> {
            let socket = UdpSocket::bind((address, 0)).context("no port")?;
            socket.set_nonblocking(true)?;
            sys::enlarge_buffers(&socket);
            Ok(socket)
        };
        let (clients, origin) = (open(Ipv4Addr::UNSPECIFIED)?, open(Ipv4Addr::LOCALHOST)?);
        let uri = format!("coap://{}/hold/", origin.local_addr()?).into_bytes();
        Ok(Self {
            clients,
            origin,
            proxy,
            uri,
            requests: Vec::new(),
            asked: 0,
            arrived: 0,
            answered: 0,
            acknowledged: Vec::new(),
            request: 0,
        })
    }

    /// Opens further exchanges until `count` are, each acknowledged by the origin.
    pub(super) fn open(&mut self, count: usize) -> Result<()> {
        self.requests.resize(count, None);
        self.acknowledged.resize(count, false);
        let mut batch = sys::Batch::default();
        let mut datagram = Vec::new();
        self.until("requests do not arrive at the origin", |held| {
            let room =
                (held.arrived + ON_THE_WAY).saturating_sub(held.asked).min(BATCH).min(count - held.asked);
            for client in held.asked..held.asked + room {
                let mut uri = held.uri.clone();
                uri.extend(format!("{client:08x}").into_bytes());
                coap::write_get(&mut datagram, client as u16, (client as u32).to_be_bytes(), &uri);
                held.request = datagram.len();
                batch.push(Some(address(client)), held.proxy, &datagram);
            }
            held.asked += room;
            ensure!(batch.send(&held.clients) == room, "the system refuses requests");
            Ok((held.arrived == count, held.arrived))
        })
    }

    /// Lets the clients hear what the proxy has for them for a while.
    pub(super) fn listen(&mut self, duration: Duration) -> Result<()> {
        let mut poller = self.poller()?;
        let end = clock::now() + duration;
        while clock::now() < end {
            poller.wait(Duration::from_millis(20))?;
            self.receive()?;
        }
        Ok(())
    }

    /// The origin answers, and every client gets its answer.
    pub(super) fn close(&mut self) -> Result<()> {
        let mut batch = sys::Batch::default();
        let mut datagram = Vec::new();
        let (mut sent, count) = (0, self.requests.len());
        self.until("answers do not arrive at the clients", |held| {
            let room = (held.answered + ON_THE_WAY).saturating_sub(sent).min(BATCH).min(count - sent);
            for client in sent..sent + room {
                let Some((from, token, length)) = held.requests[client] else { bail!("an unknown request") };
                datagram.clear();
                coap::write_head(&mut datagram, CON, CONTENT, client as u16, &token[..length.into()]);
                datagram.push(coap::PAYLOAD_MARKER);
                datagram.extend((client as u32).to_be_bytes());
                batch.push(None, from, &datagram);
            }
            sent += room;
            ensure!(batch.send(&held.origin) == room, "the system refuses answers");
            Ok((held.answered == count, held.answered))
        })
    }

    fn poller(&self) -> Result<sys::Poller> {
        let poller = sys::Poller::new(2)?;
        poller.add(&self.clients, 0)?;
        poller.add(&self.origin, 1)?;
        Ok(poller)
    }

    /// Does `step` and receives until it says that it is done; it also says how far it has come.
    fn until(
        &mut self,
        complaint: &str,
        mut step: impl FnMut(&mut Self) -> Result<(bool, usize)>,
    ) -> Result<()> {
        let mut poller = self.poller()?;
        let mut last = (0, clock::now());
        loop {
            let (done, progress) = step(self)?;
            if done {
                return Ok(());
            }
            if progress != last.0 {
                last = (progress, clock::now());
            }
            ensure!(clock::now() < last.1 + PATIENCE, "{complaint}: {progress} of {}", self.requests.len());
            poller.wait(Duration::from_millis(1))?;
            self.receive()?;
        }
    }

    fn receive(&mut self) -> Result<()> {
        let mut buffer = [0; 2048];
        let mut batch = sys::Batch::default();
        while let Ok((length, from)) = self.origin.recv_from(&mut buffer) {
            let message = buffer.get(..length).and_then(Message::parse).context("no CoAP at the origin")?;
            let from = super::v4(from)?;
            if message.code == GET {
                let name = message.last_segment.and_then(|name| std::str::from_utf8(name).ok());
                let client = name.and_then(|name| usize::from_str_radix(name, 16).ok());
                let place = client.and_then(|client| self.requests.get_mut(client));
                let place = place.context("a request that nobody sent")?;
                let mut token = [0; 8];
                token[..message.token.len()].copy_from_slice(message.token);
                if place.replace((from, token, message.token.len() as u8)).is_none() {
                    self.arrived += 1;
                }
                batch.push(None, from, &coap::empty(ACK, message.message_id));
            }
        }
        batch.send(&self.origin);
        while let Ok(length) = self.clients.recv(&mut buffer) {
            let message = buffer.get(..length).and_then(Message::parse).context("no CoAP at a client")?;
            if message.code == EMPTY {
                continue;
            }
            let token: [u8; 4] = message.token.try_into().context("a foreign token")?;
            let client = u32::from_be_bytes(token) as usize;
            ensure!(
                message.code == CONTENT && message.payload == token,
                "client {client} got {}",
                coap::printed(message.code)
            );
            if message.kind == CON {
                batch.push(Some(address(client)), self.proxy, &coap::empty(ACK, message.message_id));
            }
            let before = self.acknowledged.get_mut(client).context("a client that never asked")?;
            if !std::mem::replace(before, true) {
                self.answered += 1;
            }
        }
        batch.send(&self.clients);
        Ok(())
    }
}

fn address(client: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 64, 0, 1).to_bits() + client as u32)
}
