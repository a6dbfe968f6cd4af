//! What is lost on a link, told by what a datagram is and not by when it comes.
//!
//! The fate of the third copy of a client's tenth request, and that of the answer to it, are the same for every proxy,
//! and in the simulator.

use std::collections::HashMap;
use std::sync::Arc;

use coapway_lab::{Direction, Errand};

use super::plan::Plan;
use crate::coap::{EMPTY, Message};
use crate::hostile::good::requests::sequence_of;

/// Fates of the datagrams between one proxy and its origins.
pub(super) struct Fates {
    plan: Arc<Plan>,
    loss: f64,
    /// Copies of each request that came by.
    copies: HashMap<u32, u32>,
    /// The last copy with this Message ID on this way.
    last: HashMap<(usize, u16), Errand>,
    /// Datagrams that belong to no request, of each origin.
    others: Vec<u64>,
}

impl Fates {
    pub(super) fn new(plan: Arc<Plan>, loss: f64) -> Self {
        let others = vec![0; plan.chances.len()];
        Self { plan, loss, copies: HashMap::new(), last: HashMap::new(), others }
    }

    /// Whether a datagram that comes from the proxy is lost; `way` tells its port and that of its origin.
    pub(super) fn loses_up(&mut self, origin: u8, way: usize, datagram: &[u8]) -> bool {
        let message = Message::parse(datagram);
        let request = message.as_ref().and_then(|message| {
            let sequence = sequence_of(message.last_segment?)?;
            let planned = self.plan.requests.get(sequence as usize).filter(|it| it.origin == origin)?;
            Some((sequence, planned, message.message_id))
        });
        let errand = match request {
            Some((sequence, planned, message_id)) => {
                let copies = self.copies.entry(sequence).or_default();
                let errand =
                    Errand::Copy { client: planned.client.into(), number: planned.number, copy: *copies };
                *copies += 1;
                self.last.insert((way, message_id), errand);
                errand
            }
            None => self.other(origin),
        };
        self.loses(origin, errand, Direction::Up)
    }

    /// Whether what an origin answers is lost.
    pub(super) fn loses_down(&mut self, origin: u8, way: usize, datagram: &[u8]) -> bool {
        let response = Message::parse(datagram).filter(|message| message.code != EMPTY);
        let errand = response.and_then(|message| self.last.get(&(way, message.message_id)).copied());
        let errand = errand.unwrap_or_else(|| self.other(origin));
        self.loses(origin, errand, Direction::Down)
    }

    /// How many copies of requests there were for each origin.
    pub(super) fn copies(&self) -> Vec<u64> {
        let mut sums = vec![0; self.plan.chances.len()];
        for (sequence, copies) in &self.copies {
            let origin = self.plan.requests.get(*sequence as usize).map(|planned| planned.origin);
            if let Some(sum) = origin.and_then(|origin| sums.get_mut(usize::from(origin))) {
                *sum += u64::from(*copies);
            }
        }
        sums
    }

    fn other(&mut self, origin: u8) -> Errand {
        let others = &mut self.others[usize::from(origin)];
        *others += 1;
        Errand::Other(*others)
    }

    fn loses(&self, origin: u8, errand: Errand, to: Direction) -> bool {
        self.plan.chances[usize::from(origin)].loses(errand, to, self.loss)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use super::*;
    use crate::clock;
    use crate::coap::{self, CON, CONTENT};
    use crate::hostile::good::requests::{Asked, Requests};

    fn plan() -> Arc<Plan> {
        Arc::new(Plan::new(5, 2, 3, 10.0, Duration::from_secs(60)))
    }

    /// The requests of a plan, as a proxy could pass them on.
    fn datagrams(plan: &Plan) -> Vec<Vec<u8>> {
        let origins = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 5683)); 2];
        let mut requests = Requests::new(Asked::ByPhase(origins), 9, plan.sockets(), 2);
        let written = plan.requests.iter().map(|planned| {
            let mut out = Vec::new();
            let sequence = requests.issue_by(plan.socket(*planned), planned.origin.into(), clock::now());
            requests.write(sequence, &mut out);
            out
        });
        written.collect()
    }

    #[test]
    fn fates_depend_on_the_copy_and_not_on_what_else_passes() {
        let plan = plan();
        let datagrams = datagrams(&plan);
        let sent = || plan.requests.iter().zip(&datagrams);
        let (mut one, mut other) = (Fates::new(Arc::clone(&plan), 0.3), Fates::new(Arc::clone(&plan), 0.3));
        let forwards = [0, 1].map(|_| {
            sent().map(|(it, bytes)| one.loses_up(it.origin, it.origin.into(), bytes)).collect::<Vec<_>>()
        });
        assert_ne!(forwards[0], forwards[1], "second copies have a fate of their own");
        let mut backwards: Vec<bool> = sent()
            .rev()
            .map(|(it, bytes)| {
                other.loses_up(it.origin, it.origin.into(), &coap::empty(CON, 1));
                other.loses_up(it.origin, 7, bytes)
            })
            .collect();
        backwards.reverse();
        assert_eq!(forwards[0], backwards);
        let asked = [0, 1].map(|origin| sent().filter(|(it, _)| it.origin == origin).count() as u64);
        assert_eq!((one.copies(), other.copies()), (asked.map(|count| 2 * count).to_vec(), asked.to_vec()));
    }

    #[test]
    fn an_answer_has_the_fate_of_its_copy() {
        let plan = plan();
        let mut fates = Fates::new(Arc::clone(&plan), 0.5);
        for (planned, request) in plan.requests.iter().zip(datagrams(&plan)) {
            let chance = plan.chances[usize::from(planned.origin)];
            for copy in 0..2 {
                fates.loses_up(planned.origin, 4, &request);
                let mut answer = Vec::new();
                coap::write_reply(&mut answer, &Message::parse(&request).unwrap(), CONTENT, b"x");
                let errand = Errand::Copy { client: planned.client.into(), number: planned.number, copy };
                assert_eq!(
                    fates.loses_down(planned.origin, 4, &answer),
                    chance.loses(errand, Direction::Down, 0.5)
                );
            }
        }
    }
}
