//! The clients: what was planned, asked of all proxies at the same moments.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::plan::Plan;
use crate::coap::{self, ACK};
use crate::hostile::good::Tally;
use crate::hostile::good::requests::{Asked, Requests};
use crate::{clock, sys};

/// How often clients look for requests to repeat.
const SCAN: Duration = Duration::from_millis(25);

/// A proxy and where it has to ask for each origin.
pub(super) struct Front {
    pub(super) proxy: SocketAddr,
    pub(super) origins: Vec<SocketAddr>,
}

struct Clients {
    sockets: Vec<UdpSocket>,
    requests: Requests,
}

/// Asks everything and waits until all is answered or given up; what became of it, by proxy and origin.
pub(super) fn run(plan: &Plan, fronts: &[Front], mark: u32) -> Result<Vec<Vec<Tally>>> {
    let mut poller = sys::Poller::new(256)?;
    let mut all = Vec::new();
    for (place, front) in fronts.iter().enumerate() {
        all.push(Clients::new(plan, front, mark, place, &poller)?);
    }
    let (mut buffer, mut out) = ([0; 2048], Vec::with_capacity(128));
    let (begin, mut next) = (clock::now(), 0);
    let mut next_scan = begin;
    loop {
        let now = clock::now();
        while let Some(planned) = plan.requests.get(next).filter(|planned| begin + planned.at <= now) {
            for clients in &mut all {
                let client = plan.socket(*planned);
                let sequence = clients.requests.issue_by(client, planned.origin.into(), clock::now());
                clients.send(sequence, client, &mut out);
            }
            next += 1;
        }
        if now >= next_scan {
            next_scan = now + SCAN;
            for clients in &mut all {
                for (sequence, client) in clients.requests.due(now) {
                    clients.send(sequence, client, &mut out);
                }
            }
            if next == plan.requests.len() && all.iter().all(|clients| clients.requests.all_over()) {
                return Ok(all.into_iter().map(|clients| clients.requests.into_tallies()).collect());
            }
        }
        let wake = plan.requests.get(next).map_or(next_scan, |planned| next_scan.min(begin + planned.at));
        poller.wait_exactly(wake.saturating_duration_since(clock::now()))?;
        for key in poller.ready() {
            if let Some(clients) = all.get_mut((key >> 16) as usize) {
                clients.receive(key as u16, &mut buffer);
            }
        }
    }
}

impl Clients {
    fn new(plan: &Plan, front: &Front, mark: u32, place: usize, poller: &sys::Poller) -> Result<Self> {
        let mut sockets = Vec::new();
        for number in 0..plan.sockets() {
            let [origin, client] = [number / u16::from(plan.clients), number % u16::from(plan.clients)];
            // Proxies may tell clients apart by their addresses.
            let address = Ipv4Addr::new(127, 1, origin as u8, 1 + client as u8);
            let socket = UdpSocket::bind((address, 0)).context("no port for a client")?;
            socket.connect(front.proxy)?;
            socket.set_nonblocking(true)?;
            poller.add(&socket, (place as u64) << 16 | u64::from(number))?;
            sockets.push(socket);
        }
        let asked = Asked::ByPhase(front.origins.clone());
        Ok(Self { sockets, requests: Requests::new(asked, mark, plan.sockets(), front.origins.len()) })
    }

    fn send(&self, sequence: u32, client: u16, out: &mut Vec<u8>) {
        self.requests.write(sequence, out);
        // A refusal or a full buffer is a lost datagram; the request is repeated in time.
        let _lost = self.sockets.get(usize::from(client)).map(|socket| socket.send(out));
    }

    fn receive(&mut self, client: u16, buffer: &mut [u8]) {
        let Some(socket) = self.sockets.get(usize::from(client)) else { return };
        while let Ok(length) = socket.recv(buffer) {
            let datagram = buffer.get(..length).unwrap_or_default();
            if let Some(id) = self.requests.take(client, datagram, 0, clock::now()) {
                let _lost = socket.send(&coap::empty(ACK, id));
            }
        }
    }
}
