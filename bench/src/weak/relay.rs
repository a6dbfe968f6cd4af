//! The weak link: a relay on loopback between proxies and an origin that loses and delays datagrams.
//!
//! ```text
//! proxy ─▶ one socket for each proxy and origin ─▶ lost? ─▶ delay ─▶ one socket for each port of the proxy ─▶ origin
//! ```
//! Each link delays all datagrams alike, so they stay in order.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::fate::Fates;
use super::plan::Plan;
use crate::statistics::Latencies;
use crate::{clock, sys};

/// The longest sleep, and so how late the end is noticed.
const NAP: Duration = Duration::from_millis(50);
/// Ports from which proxies send, in all; a runaway one must not take all descriptors.
const MOST_WAYS: usize = 16_384;

/// A relay at work; dropping it ends it.
pub(super) struct Relay {
    thread: Option<JoinHandle<Result<Vec<Passed>>>>,
    ended: Arc<AtomicBool>,
    /// What each proxy has to take for its origins.
    pub(super) addresses: Vec<Vec<SocketAddr>>,
}

/// What passed between one proxy and all its origins.
#[derive(Default)]
pub(super) struct Passed {
    /// Datagrams that came, up and down.
    pub(super) came: [u64; 2],
    /// Of which were lost.
    pub(super) lost: [u64; 2],
    /// Copies of requests among them, by origin.
    pub(super) copies: Vec<u64>,
    /// How much later than they should datagrams left.
    pub(super) late: Latencies,
}

/// One end of a link.
struct End {
    socket: UdpSocket,
    proxy: usize,
    origin: u8,
    side: Side,
}

#[derive(Clone, Copy)]
enum Side {
    /// Where the proxy sends to.
    Front,
    /// Towards the origin: for what this port of the proxy sent to that front.
    Back { front: usize, peer: SocketAddr },
}

struct Delayed {
    due: Instant,
    by: usize,
    /// Or to whom the socket is connected.
    to: Option<SocketAddr>,
    bytes: Vec<u8>,
}

struct Link {
    ends: Vec<End>,
    ways: HashMap<(usize, SocketAddr), usize>,
    poller: sys::Poller,
    delayed: VecDeque<Delayed>,
    fates: Vec<Fates>,
    passed: Vec<Passed>,
    delay: Duration,
    target: SocketAddr,
}

impl Relay {
    /// Starts one: for each share lost of `losses` there is a proxy, which finds each origin of the plan at an address
    /// of its own; all of them are `target`.
    pub(super) fn start(
        plan: &Arc<Plan>,
        losses: &[f64],
        delay: Duration,
        target: SocketAddr,
    ) -> Result<Self> {
        let mut link = Link {
            ends: Vec::new(),
            ways: HashMap::new(),
            poller: sys::Poller::new(256)?,
            delayed: VecDeque::new(),
            fates: losses.iter().map(|&loss| Fates::new(Arc::clone(plan), loss)).collect(),
            passed: losses.iter().map(|_| Passed::default()).collect(),
            delay,
            target,
        };
        let mut addresses = vec![Vec::new(); losses.len()];
        for (proxy, addresses) in addresses.iter_mut().enumerate() {
            for origin in 0..plan.chances.len() as u8 {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no port for a link")?;
                addresses.push(socket.local_addr()?);
                link.add(End { socket, proxy, origin, side: Side::Front })?;
            }
        }
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let run = move || link.run(&end);
        let thread =
            thread::Builder::new().name("link".into()).spawn(run).context("no thread for the link")?;
        Ok(Self { thread: Some(thread), ended, addresses })
    }

    /// Ends it and tells what passed, for each proxy.
    pub(super) fn finish(mut self) -> Result<Vec<Passed>> {
        self.ended.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("the link has ended before")?;
        thread.join().map_err(|_| anyhow::anyhow!("the link panicked"))?
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl Link {
    fn run(mut self, ended: &AtomicBool) -> Result<Vec<Passed>> {
        let mut buffer = [0; 2048];
        while !ended.load(Ordering::Relaxed) {
            let now = clock::now();
            let wait = self.delayed.front().map_or(NAP, |first| first.due.saturating_duration_since(now));
            self.poller.wait_exactly(wait.min(NAP))?;
            let ready: Vec<u64> = self.poller.ready().collect();
            for end in ready {
                self.receive(end as usize, &mut buffer)?;
            }
            self.deliver();
        }
        for (passed, fates) in self.passed.iter_mut().zip(&self.fates) {
            passed.copies = fates.copies();
        }
        Ok(self.passed)
    }

    fn add(&mut self, end: End) -> Result<usize> {
        sys::enlarge_buffers(&end.socket);
        end.socket.set_nonblocking(true)?;
        let place = self.ends.len();
        self.poller.add(&end.socket, place as u64)?;
        self.ends.push(end);
        Ok(place)
    }

    fn receive(&mut self, place: usize, buffer: &mut [u8]) -> Result<()> {
        // An error is an empty socket, or tells that nobody listens: what is lost there is repeated.
        while let Ok((length, from)) = self.ends[place].socket.recv_from(buffer) {
            let bytes = buffer.get(..length).unwrap_or_default();
            let End { proxy, origin, side, .. } = self.ends[place];
            let (by, to, direction, is_lost) = match side {
                Side::Front => {
                    let way = self.way(place, from)?;
                    (way, None, 0, self.fates[proxy].loses_up(origin, way, bytes))
                }
                Side::Back { front, peer } => {
                    (front, Some(peer), 1, self.fates[proxy].loses_down(origin, place, bytes))
                }
            };
            let passed = &mut self.passed[proxy];
            passed.came[direction] += 1;
            if is_lost {
                passed.lost[direction] += 1;
            } else {
                let due = clock::now() + self.delay;
                self.delayed.push_back(Delayed { due, by, to, bytes: bytes.to_vec() });
            }
        }
        Ok(())
    }

    /// The socket towards the origin for this port of a proxy.
    fn way(&mut self, front: usize, peer: SocketAddr) -> Result<usize> {
        if let Some(&way) = self.ways.get(&(front, peer)) {
            return Ok(way);
        }
        ensure!(self.ways.len() < MOST_WAYS, "proxies send from more than {MOST_WAYS} ports");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no port towards the origin")?;
        socket.connect(self.target)?;
        let End { proxy, origin, .. } = self.ends[front];
        let way = self.add(End { socket, proxy, origin, side: Side::Back { front, peer } })?;
        self.ways.insert((front, peer), way);
        Ok(way)
    }

    fn deliver(&mut self) {
        let mut now = clock::now();
        while let Some(Delayed { due, by, to, bytes }) = self.delayed.pop_front_if(|first| first.due <= now) {
            let End { socket, proxy, .. } = &self.ends[by];
            // A full buffer or a refusal is one more loss.
            let _lost = match to {
                Some(to) => socket.send_to(&bytes, to),
                None => socket.send(&bytes),
            };
            self.passed[*proxy].late.push(now - due);
            now = clock::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(20);

    /// Sends three datagrams over one link, and one back for each; what came out at its end, and what was counted.
    fn cross(loss: f64) -> (Vec<Vec<u8>>, Vec<Passed>) {
        let plan = Arc::new(Plan::new(1, 2, 1, 1.0, Duration::from_secs(1)));
        let target = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::start(&plan, &[loss], DELAY, target.local_addr().unwrap()).unwrap();
        let proxy = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let begin = clock::now();
        for datagram in [b"1", b"2", b"3"] {
            proxy.send_to(datagram, relay.addresses[0][1]).unwrap();
        }
        target.set_read_timeout(Some(Duration::from_millis(if loss > 0.0 { 500 } else { 10_000 }))).unwrap();
        let mut got = Vec::new();
        let mut buffer = [0; 16];
        while got.len() < 3
            && let Ok((length, from)) = target.recv_from(&mut buffer)
        {
            got.push(buffer[..length].to_vec());
            target.send_to(b"back", from).unwrap();
        }
        if !got.is_empty() {
            assert!(clock::now() - begin >= DELAY);
            let (length, from) = proxy.recv_from(&mut buffer).unwrap();
            assert!(clock::now() - begin >= 2 * DELAY);
            assert_eq!((&buffer[..length], from), (&b"back"[..], relay.addresses[0][1]));
        }
        (got, relay.finish().unwrap())
    }

    #[test]
    fn what_is_not_lost_arrives_late_and_in_order() {
        let (got, passed) = cross(0.0);
        assert_eq!(got, [b"1", b"2", b"3"]);
        assert_eq!((passed[0].came[0], passed[0].lost), (3, [0, 0]));
        assert!(passed[0].late.len() >= 4);
    }

    #[test]
    fn what_is_lost_does_not_arrive() {
        let (got, passed) = cross(1.0);
        assert!(got.is_empty());
        assert_eq!((passed[0].came, passed[0].lost), ([3, 0], [3, 0]));
    }
}
