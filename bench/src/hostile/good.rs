//! The good load: an open loop of requests, one thread.

pub(crate) mod requests;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::coap::{self, ACK};
use crate::{clock, sys};
use requests::{Asked, Requests};

pub(crate) use requests::Tally;

/// How often the clients look for requests to repeat.
const SCAN: Duration = Duration::from_millis(25);
/// What the load makes up for after it was held up.
const BACKLOG: Duration = Duration::from_millis(250);

/// What to ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Good {
    /// The proxy.
    pub(crate) proxy: SocketAddr,
    /// The origin.
    pub(crate) origin: SocketAddr,
    /// Clients, each with a port of its own.
    pub(crate) clients: u16,
    /// Requests a second, of all of them together.
    pub(crate) rate: u32,
    /// Tells this run's requests from another's.
    pub(crate) mark: u32,
    /// How many phases there will be.
    pub(crate) phases: usize,
}

/// What the phases tell the load.
#[derive(Default)]
pub(crate) struct Control {
    phase: AtomicUsize,
    stopped: AtomicBool,
    abandoned: AtomicBool,
}

impl Control {
    /// Requests count in this phase from now on.
    pub(crate) fn set_phase(&self, phase: usize) {
        self.phase.store(phase, Ordering::Relaxed);
    }

    /// Ends the load; what is not answered by now is given up.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// Ends the load when everything is answered or given up.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Starts the load; it ends with the tallies of all phases.
pub(crate) fn start(good: Good, control: Arc<Control>) -> Result<JoinHandle<Result<Vec<Tally>>>> {
    let mut sockets = Vec::new();
    for _ in 0..good.clients {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no port for a good client")?;
        socket.connect(good.proxy)?;
        socket.set_nonblocking(true)?;
        sockets.push(socket);
    }
    let run = move || load(good, &sockets, &control);
    thread::Builder::new().name("good".into()).spawn(run).context("no thread for the good clients")
}

fn load(good: Good, sockets: &[UdpSocket], control: &Control) -> Result<Vec<Tally>> {
    let mut requests = Requests::new(Asked::Mixed(good.origin), good.mark, good.clients, good.phases);
    let mut poller = sys::Poller::new(256)?;
    for (index, socket) in sockets.iter().enumerate() {
        poller.add(socket, index as u64)?;
    }
    let between = Duration::from_secs(1) / good.rate;
    let mut next = clock::now();
    let mut next_scan = next;
    let mut buffer = [0; 4096];
    let mut out = Vec::with_capacity(128);
    // A refusal or a full buffer is a lost datagram; the request is repeated in time.
    let send = |client: u16, datagram: &[u8]| {
        let _lost = sockets.get(usize::from(client)).map(|socket| socket.send(datagram));
    };
    loop {
        let now = clock::now();
        let phase = control.phase.load(Ordering::Relaxed);
        let is_stopped = control.stopped.load(Ordering::Relaxed);
        let is_abandoned = control.abandoned.load(Ordering::Relaxed);
        if is_abandoned {
            requests.give_up();
        }
        if is_stopped && (is_abandoned || requests.all_over()) {
            return Ok(requests.into_tallies());
        }
        next = next.max(now.checked_sub(BACKLOG).unwrap_or(now));
        while !is_stopped && next <= now {
            next += between;
            // The clock is read again: what left later was also on its way for less long.
            let (sequence, client) = requests.issue(phase, clock::now());
            requests.write(sequence, &mut out);
            send(client, &out);
        }
        if now >= next_scan {
            next_scan = now + SCAN;
            for (sequence, client) in requests.due(now) {
                requests.write(sequence, &mut out);
                send(client, &out);
            }
        }
        poller.wait(Duration::from_millis(1))?;
        for index in poller.ready() {
            let Some(socket) = sockets.get(index as usize) else { continue };
            // Level-triggered: what is left comes with the next look.
            let Ok(length) = socket.recv(&mut buffer) else { continue };
            let datagram = buffer.get(..length).unwrap_or_default();
            if let Some(id) = requests.take(index as u16, datagram, phase, clock::now()) {
                send(index as u16, &coap::empty(ACK, id));
            }
        }
    }
}
