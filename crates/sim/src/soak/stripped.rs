//! A world with nothing in it but the proxy, a clock and what is under way to the proxy.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::Seed;
use coapway_proxy::{Event, Input, Listening, Output, Parameters, Proxy, SocketRole};
use coapway_time::Instant;

use crate::sockets::{address, local};

/// Everybody the proxy speaks to.
pub(super) trait Peers {
    /// The proxy sent something.
    fn receive(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], post: &mut Post);
    /// The proxy told something.
    fn told(&mut self, event: &Event);
}

/// What is under way to the proxy.
#[derive(Debug, Default)]
pub(super) struct Post {
    now: Instant,
    entered: u64,
    queue: BinaryHeap<Reverse<Letter>>,
}

/// By arrival, and of equal ones in order of entry.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Letter {
    arrives: Instant,
    number: u64,
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Post {
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// Sends bytes to the proxy that arrive after `delay`.
    pub(super) fn send(&mut self, delay: Duration, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let letter = Letter { arrives: self.now + delay, number: self.entered, from, to, bytes };
        self.entered += 1;
        self.queue.push(Reverse(letter));
    }

    fn arrived(&mut self) -> Option<Letter> {
        let first = self.queue.peek_mut().filter(|first| first.0.arrives <= self.now)?;
        Some(PeekMut::pop(first).0)
    }
}

pub(super) struct Stripped<P> {
    pub(super) proxy: Proxy,
    pub(super) peers: P,
    pub(super) post: Post,
    wake: Option<Instant>,
}

impl<P: Peers> Stripped<P> {
    pub(super) fn new(parameters: Parameters, listening: Listening, peers: P) -> Self {
        let proxy = Proxy::new(parameters, listening, Seed::from_number(1));
        Self { proxy, peers, post: Post::default(), wake: None }
    }

    /// Lets everything happen up to `until`; what arrives comes before timers, as in a worker.
    pub(super) fn run_until(&mut self, until: Instant) {
        while let Some(at) = self.next().filter(|&at| at <= until) {
            self.post.now = at;
            match self.post.arrived() {
                Some(Letter { from, to, bytes, .. }) => {
                    if let Some(local) = local(to) {
                        let input = Input::Datagram { local, remote: from, bytes: &bytes, truncated: false };
                        self.proxy.handle_input(input, at);
                    }
                }
                None => self.proxy.handle_input(Input::Wake, at),
            }
            self.drain();
        }
        self.post.now = self.post.now.max(until);
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Option<Instant> {
        let arrival = self.post.queue.peek().map(|Reverse(letter)| letter.arrives);
        let wake = self.wake.map(|wake| wake.max(self.post.now));
        [arrival, wake].into_iter().flatten().min()
    }

    fn drain(&mut self) {
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    let from = address(SocketRole::of(transmit.peer.local.socket));
                    self.peers.receive(from, transmit.peer.remote, transmit.datagram, &mut self.post);
                }
                Output::LookUp { .. } => {}
                Output::Event(event) => self.peers.told(&event),
                Output::Records(_) => {}
                Output::Wait { until } => {
                    self.wake = until;
                    return;
                }
            }
        }
    }
}
