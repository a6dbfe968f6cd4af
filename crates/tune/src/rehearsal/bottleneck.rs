//! Many endpoints behind one link with an endless buffer: where a timeout that is too short fills the
//! buffer with copies, which makes it too short (bufferbloat).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use coapway_endpoint::SocketId;
use coapway_message::{Code, Datagram, MessageType};
use coapway_proxy::{SocketRole, UpstreamParameters};

use super::node::{Bytes, Kind, Node, ORIGIN, acknowledgement, client, request, response};

/// What the link takes for each reply, in µs: 100 bytes at 30 kbit/s.
pub(crate) const SERVICE: u64 = 26_700;
/// The way there and back without the buffer.
const DELAY: u64 = 50_000;
/// Until here all may settle; from here on it is counted, up to the end.
const SETTLED: u64 = 400_000_000;
const END: u64 = 600_000_000;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A reply has passed the link.
    Arrive(usize, u32, Bytes),
    Acknowledge(usize, u32, Bytes),
    Wake(usize),
}

/// The share of replies, duplicates served, that answered something.
pub(crate) fn useful_share(policy: &UpstreamParameters, endpoints: usize, seed: u64) -> f64 {
    let mut link =
        Link { nodes: Vec::new(), queue: BinaryHeap::new(), entered: 0, free: 0, served: 0, answered: 0 };
    for place in 0..endpoints {
        link.nodes.push((Node::new(policy, None, seed.wrapping_add(place as u64)), 0));
        link.ask(place, 0);
        link.settle(place, 0);
    }
    while let Some(Reverse((now, _, happening))) = link.queue.pop() {
        if now > END {
            break;
        }
        link.happen(happening, now);
    }
    link.answered as f64 / link.served.max(1) as f64
}

struct Link {
    /// Each with the number of its request.
    nodes: Vec<(Node, u32)>,
    queue: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    entered: u64,
    /// When the link is free again.
    free: u64,
    served: u64,
    answered: u64,
}

impl Link {
    fn enter(&mut self, at: u64, happening: Happening) {
        self.entered += 1;
        self.queue.push(Reverse((at, self.entered, happening)));
    }

    fn happen(&mut self, happening: Happening, now: u64) {
        let place = match happening {
            Happening::Arrive(place, socket, bytes) => {
                self.served += u64::from(now >= SETTLED);
                self.nodes[place].0.arrive(SocketId(socket), ORIGIN, &bytes, now);
                place
            }
            Happening::Acknowledge(place, number, bytes) => {
                self.nodes[place].0.arrive(SocketRole::Listener(0).socket(), client(number), &bytes, now);
                place
            }
            Happening::Wake(place) => {
                if self.nodes[place].0.wake().is_none_or(|wake| wake > now) {
                    return;
                }
                self.nodes[place].0.tick(now);
                place
            }
        };
        self.settle(place, now);
    }

    fn ask(&mut self, place: usize, now: u64) {
        let (node, number) = &mut self.nodes[place];
        let bytes = request(*number, Kind { confirmable: true, once: false });
        node.arrive(SocketRole::Listener(0).socket(), client(*number), &bytes, now);
    }

    /// Sees to what a node sent, until it waits.
    fn settle(&mut self, place: usize, now: u64) {
        loop {
            let sent = self.nodes[place].0.take_sent();
            if sent.is_empty() {
                break;
            }
            for sent in sent {
                let Ok(message) = Datagram::parse(&sent.bytes) else { continue };
                if message.content.code == Code::EMPTY {
                    continue;
                }
                if !sent.is_for_client() {
                    let reply = response(MessageType::Acknowledgement, message.message_id, message.token);
                    self.free = self.free.max(now) + SERVICE;
                    self.enter(self.free + DELAY, Happening::Arrive(place, sent.from.0, reply));
                    continue;
                }
                let number = self.nodes[place].1;
                if message.message_type == MessageType::Confirmable {
                    let bytes = acknowledgement(message.message_id);
                    self.enter(now, Happening::Acknowledge(place, number, bytes));
                }
                if message.token == number.to_be_bytes() {
                    let useful = message.content.code == Code::CONTENT && now >= SETTLED;
                    self.answered += u64::from(useful);
                    self.nodes[place].1 += 1;
                    self.ask(place, now);
                }
            }
        }
        if let Some(wake) = self.nodes[place].0.wake() {
            self.enter(wake.max(now), Happening::Wake(place));
        }
    }
}
