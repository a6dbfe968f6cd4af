//! The hostile origin and those who help it: one thread.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use fastrand::Rng;

use super::answers::{Seen, When, answer, forge};
use super::pace::{BATCH, Control, Pace};
use crate::coap::Message;
use crate::{clock, sys};

/// Sockets that forgeries come from.
const FORGERS: usize = 8;
/// Answers that may wait for their time, and messages that are remembered.
const KEPT: usize = 4096;

struct Late {
    at: Instant,
    to: SocketAddrV4,
    datagram: Vec<u8>,
}

struct Origin {
    socket: UdpSocket,
    forgers: Vec<UdpSocket>,
    random: Rng,
    /// Where the proxy sent from, and what.
    seen: VecDeque<(SocketAddrV4, Seen)>,
    late: Vec<Late>,
    batch: sys::Batch,
}

/// Starts it on `socket`. It answers whenever it is asked, also while `control` says nothing is to be
/// sent: then the proxy asks for nothing.
pub(super) fn start(socket: UdpSocket, seed: u64, control: Arc<Control>) -> Result<JoinHandle<Result<()>>> {
    socket.set_nonblocking(true)?;
    sys::enlarge_buffers(&socket);
    let mut forgers = Vec::new();
    for _ in 0..FORGERS {
        let forger = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context("no port for a forger")?;
        sys::shrink_receive_buffer(&forger);
        forgers.push(forger);
    }
    let mut origin = Origin {
        socket,
        forgers,
        random: Rng::with_seed(seed),
        seen: VecDeque::new(),
        late: Vec::new(),
        batch: sys::Batch::default(),
    };
    let run = move || {
        sys::give_way()?;
        let mut pace = Pace::new(&control, clock::now());
        let mut poller = sys::Poller::new(1)?;
        poller.add(&origin.socket, 0)?;
        while !control.is_stopped() {
            let now = clock::now();
            let answered = origin.answer(now)?;
            pace.left(answered);
            let due = pace.due(now);
            pace.left(origin.forge(due));
            if answered == 0 && due == 0 {
                poller.wait(Duration::from_millis(1))?;
            }
        }
        Ok(())
    };
    thread::Builder::new().name("origin".into()).spawn(run).context("no thread for the hostile origin")
}

impl Origin {
    /// Takes what the proxy sent, a batch at most, and what is due of earlier answers; returns how many
    /// datagrams left.
    fn answer(&mut self, now: Instant) -> Result<usize> {
        let mut buffer = [0; 2048];
        let mut out = Vec::new();
        let mut elsewhere = sys::Batch::default();
        for _ in 0..BATCH {
            let Ok((length, SocketAddr::V4(from))) = self.socket.recv_from(&mut buffer) else { break };
            let Some(message) = buffer.get(..length).and_then(Message::parse) else { continue };
            if self.seen.len() >= KEPT {
                self.seen.pop_front();
            }
            self.seen.push_back((from, Seen::of(&message)));
            match answer(&message, &mut self.random, &mut out) {
                None => {}
                Some(When::Now) => self.batch.push(None, from, &out),
                Some(When::Repeatedly(copies)) => {
                    (0..copies).for_each(|_| self.batch.push(None, from, &out));
                }
                Some(When::Elsewhere) => elsewhere.push(None, from, &out),
                Some(When::Late(milliseconds)) if self.late.len() < KEPT => {
                    let at = now + Duration::from_millis(milliseconds);
                    self.late.push(Late { at, to: from, datagram: out.clone() });
                }
                Some(When::Late(_)) => {}
            }
        }
        let batch = &mut self.batch;
        self.late.retain(|late| {
            if late.at <= now {
                batch.push(None, late.to, &late.datagram);
            }
            late.at > now
        });
        let forger = self.forgers.first().context("there are forgers")?;
        Ok(self.batch.send(&self.socket) + elsewhere.send(forger))
    }

    /// Sends forgeries to the proxy's upstream ports, as far as they are known: half from other
    /// addresses and ports, half from the origin's own.
    fn forge(&mut self, datagrams: usize) -> usize {
        if self.seen.is_empty() || datagrams == 0 {
            return 0;
        }
        let own = self.random.bool();
        let mut out = Vec::new();
        for _ in 0..datagrams {
            let from = Ipv4Addr::new(127, self.random.u8(1..), self.random.u8(..), self.random.u8(1..255));
            let Some((to, seen)) = self.seen.get(self.random.usize(..self.seen.len())) else { break };
            forge(Some(seen), &mut self.random, &mut out);
            self.batch.push((!own).then_some(from), *to, &out);
        }
        let forger = self.forgers.get(self.random.usize(..FORGERS)).filter(|_| !own);
        self.batch.send(forger.unwrap_or(&self.socket))
    }
}
