//! The hostile clients: many addresses and ports, one thread.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use fastrand::Rng;

use super::malformed::Malformed;
use super::pace::{Control, Pace};
use super::requests::{Mischief, Targets, write_random};
use crate::{clock, sys};

/// Ports at a time.
const PORTS: usize = 96;
/// After so many batches one of them is closed, and what the proxy still sends there comes back as ICMP.
const BATCHES_PER_PORT: u64 = 16;
/// Messages that may be repeated.
const REMEMBERED: usize = 256;
/// Addresses that send half of everything.
const LOUD: u8 = 16;

/// Where the strangers stand and what they aim at.
#[derive(Clone, Debug)]
pub(super) struct Aim {
    /// The listener that the good clients use, too.
    pub(super) shared: SocketAddrV4,
    /// A listener on an address of this host that is not loopback; it is its own clients' address, too.
    pub(super) other: Option<SocketAddrV4>,
    /// What the requests are for.
    pub(super) targets: Targets,
}

struct Port {
    socket: UdpSocket,
    /// Where it sends to, and its address when that is not any of 127.0.0.0/8.
    to: SocketAddrV4,
    fixed: Option<Ipv4Addr>,
}

struct Remembered {
    port: usize,
    from: Ipv4Addr,
    datagram: Vec<u8>,
}

struct Strangers {
    aim: Aim,
    random: Rng,
    ports: Vec<Port>,
    remembered: VecDeque<Remembered>,
    batch: sys::Batch,
}

/// Starts them; they are silent until `control` names a rate.
pub(super) fn start(aim: Aim, seed: u64, control: Arc<Control>) -> Result<JoinHandle<Result<()>>> {
    let mut strangers = Strangers {
        aim,
        random: Rng::with_seed(seed),
        ports: Vec::new(),
        remembered: VecDeque::new(),
        batch: sys::Batch::default(),
    };
    for index in 0..PORTS {
        let port = strangers.open(index)?;
        strangers.ports.push(port);
    }
    let run = move || {
        sys::give_way()?;
        let mut pace = Pace::new(&control, clock::now());
        let mut pause = sys::Poller::new(1)?;
        let mut batches: u64 = 0;
        while !control.is_stopped() {
            match pace.due(clock::now()) {
                0 => pause.wait(Duration::from_millis(1))?,
                due => {
                    pace.left(strangers.send(batches as usize % PORTS, due));
                    batches += 1;
                    if batches.is_multiple_of(BATCHES_PER_PORT) {
                        strangers.reopen()?;
                    }
                }
            }
        }
        Ok(())
    };
    thread::Builder::new().name("strangers".into()).spawn(run).context("no thread for the hostile clients")
}

impl Strangers {
    /// Every eighth port goes to the other listener, if there is one.
    fn open(&self, index: usize) -> Result<Port> {
        let other = self.aim.other.filter(|_| index % 8 == 7);
        let bind = other.map_or(Ipv4Addr::UNSPECIFIED, |other| *other.ip());
        let socket = UdpSocket::bind((bind, 0)).context("no port for a hostile client")?;
        // Nobody reads the answers; they are dropped as soon as this is full.
        sys::shrink_receive_buffer(&socket);
        Ok(Port { socket, to: other.unwrap_or(self.aim.shared), fixed: other.map(|other| *other.ip()) })
    }

    fn reopen(&mut self) -> Result<()> {
        let index = self.random.usize(..PORTS);
        let port = self.open(index)?;
        if let Some(place) = self.ports.get_mut(index) {
            *place = port;
        }
        Ok(())
    }

    fn send(&mut self, index: usize, datagrams: usize) -> usize {
        let Some(port) = self.ports.get(index) else { return 0 };
        let (to, fixed) = (port.to, port.fixed);
        for _ in 0..datagrams {
            let (from, datagram) = self.make(index);
            // A socket with an address of its own cannot claim another one.
            let from = fixed.map_or(Some(from), |_| None);
            self.batch.push(from, to, &datagram);
        }
        self.ports.get(index).map_or(0, |port| self.batch.send(&port.socket))
    }

    /// The next datagram and where it claims to come from.
    fn make(&mut self, port: usize) -> (Ipv4Addr, Vec<u8>) {
        let random = &mut self.random;
        let from = match random.bool() {
            true => Ipv4Addr::new(127, 1, 0, random.u8(1..=LOUD)),
            false => Ipv4Addr::new(127, random.u8(2..=255), random.u8(..), random.u8(1..255)),
        };
        let mut datagram = Vec::with_capacity(64);
        match random.u8(..100) {
            0..20 => Malformed::any(random).write(random, &mut datagram),
            20..28 => write_random(random, 1200, &mut datagram),
            28..34 => self.aim.targets.write_random_rest(random, &mut datagram),
            34..40 => self.aim.targets.write_turned(random, &mut datagram),
            40..55 => return self.repeat(port).unwrap_or((from, datagram)),
            55..60 => return self.reuse(port).unwrap_or((from, datagram)),
            _ => {
                self.aim.targets.write(Mischief::any(random), random, &mut datagram);
                if self.remembered.len() >= REMEMBERED {
                    self.remembered.pop_front();
                }
                self.remembered.push_back(Remembered { port, from, datagram: datagram.clone() });
            }
        }
        (from, datagram)
    }

    /// The same bytes again, from the same port if it sent anything, or from this one.
    fn repeat(&mut self, port: usize) -> Option<(Ipv4Addr, Vec<u8>)> {
        let own = self.remembered.iter().rev().find(|remembered| remembered.port == port);
        let any = self.remembered.get(self.random.usize(..self.remembered.len().max(1)));
        let chosen = if self.random.bool() { own.or(any) } else { any }?;
        Some((chosen.from, chosen.datagram.clone()))
    }

    /// Another message under a Message ID that its sender used a moment ago.
    fn reuse(&mut self, port: usize) -> Option<(Ipv4Addr, Vec<u8>)> {
        let own = self.remembered.iter().rev().find(|remembered| remembered.port == port)?;
        let mut datagram = Vec::with_capacity(64);
        let mischief = if self.random.bool() { Mischief::GoodLooking } else { Mischief::Post };
        self.aim.targets.write(mischief, &mut self.random, &mut datagram);
        datagram.get_mut(2..4)?.copy_from_slice(own.datagram.get(2..4)?);
        Some((own.from, datagram))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strangers() -> Strangers {
        let shared = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
        let targets = Targets { good: shared.into(), closed: vec![9] };
        Strangers {
            aim: Aim { shared, other: None, targets },
            random: Rng::with_seed(7),
            ports: Vec::new(),
            remembered: VecDeque::new(),
            batch: sys::Batch::default(),
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_datagrams() {
        let (mut one, mut other) = (strangers(), strangers());
        for port in 0..2000 {
            assert_eq!(one.make(port % PORTS), other.make(port % PORTS));
        }
    }

    #[test]
    fn no_address_is_outside_of_loopback_or_the_good_clients_own() {
        let mut strangers = strangers();
        for port in 0..5000 {
            let (from, _) = strangers.make(port % PORTS);
            assert!(from.is_loopback() && from != Ipv4Addr::LOCALHOST, "{from}");
        }
        assert_eq!(strangers.remembered.len(), REMEMBERED);
    }

    #[test]
    fn a_reused_message_id_is_the_senders_own() {
        let mut strangers = strangers();
        let remembered =
            Remembered { port: 3, from: Ipv4Addr::new(127, 1, 0, 1), datagram: vec![0x40, 1, 0xab, 0xcd] };
        strangers.remembered.push_back(remembered);
        let (from, datagram) = strangers.reuse(3).expect("something was sent from this port");
        assert_eq!((from, datagram.get(2..4)), (Ipv4Addr::new(127, 1, 0, 1), Some(&[0xab, 0xcd][..])));
        assert!(strangers.reuse(4).is_none());
    }
}
