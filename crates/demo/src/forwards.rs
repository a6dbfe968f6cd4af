//! The newest forwards, while they are under way and when they have ended.

use std::collections::VecDeque;
use std::time::Duration;

use coapway_message::{Code, Evidence, ExchangeId};
use coapway_proxy::{Cause, Event};
use coapway_time::Instant;

use crate::devices::device_at;

/// More fit on no screen.
const MOST: usize = 100;

/// One forward as it is seen so far.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forward {
    request: ExchangeId,
    pub(crate) device: usize,
    pub(crate) received: Instant,
    /// When its copies left.
    pub(crate) copies: Vec<Instant>,
    /// When its device got an empty Acknowledgement.
    pub(crate) early_ack: Option<Instant>,
    pub(crate) end: Option<End>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) at: Instant,
    pub(crate) code: Code,
    pub(crate) cause: Cause,
    pub(crate) evidence: Option<Evidence>,
}

impl Forward {
    /// How long it took, or has been under way.
    pub(crate) fn took(&self, now: Instant) -> Duration {
        self.end.map_or(now, |end| end.at).since(self.received)
    }
}

/// The newest forwards, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Forwards {
    rows: VecDeque<Forward>,
}

impl Forwards {
    pub(crate) fn told(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::Received { request, client, .. } => {
                let Some(device) = device_at(client) else { return };
                if self.rows.len() == MOST {
                    self.rows.pop_front();
                }
                let (copies, early_ack, end) = (Vec::new(), None, None);
                self.rows.push_back(Forward { request, device, received: at, copies, early_ack, end });
            }
            Event::Sent { request, .. } => self.note(request, |row| row.copies.push(at)),
            Event::Retransmitted { request, copies } => self.note(request, |row| {
                // The wait for the last copy runs out, too.
                if row.copies.len() < copies as usize {
                    row.copies.push(at);
                }
            }),
            Event::EmptyAckSent { request } => self.note(request, |row| row.early_ack = Some(at)),
            Event::Answered { request, code, cause, evidence } => {
                self.note(request, |row| row.end = Some(End { at, code, cause, evidence }));
            }
            Event::Repeated { .. }
            | Event::Acknowledged { .. }
            | Event::Delivered { .. }
            | Event::Alert(_)
            | Event::Refused(_) => {}
        }
    }

    /// The newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &Forward> {
        self.rows.iter().rev()
    }

    /// Those that have ended, the last one first.
    pub(crate) fn ended(&self) -> impl Iterator<Item = &Forward> {
        let mut ended: Vec<_> = self.rows.iter().filter_map(|row| Some((row.end?.at, row))).collect();
        ended.sort_by_key(|&(at, _)| at);
        ended.into_iter().rev().map(|(_, row)| row)
    }

    /// The forward of an open request.
    pub(crate) fn get(&self, request: ExchangeId) -> Option<&Forward> {
        self.newest().find(|row| row.request == request)
    }

    fn note(&mut self, request: ExchangeId, add: impl FnOnce(&mut Forward)) {
        if let Some(row) = self.rows.iter_mut().rev().find(|row| row.request == request) {
            add(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::address;

    #[test]
    fn follows_a_forward_from_receipt_to_answer() {
        let at = |millis: u64| Instant::from_micros(millis * 1000);
        let request = ExchangeId { slot: 3, generation: 1 };
        let mut forwards = Forwards::default();
        let received = Event::Received { request, client: address(1), code: Code::POST, confirmable: true };
        forwards.told(at(0), &received);
        forwards.told(at(0), &Event::Sent { request, origin: address(9) });
        forwards.told(at(500), &Event::EmptyAckSent { request });
        forwards.told(at(2000), &Event::Retransmitted { request, copies: 2 });
        forwards.told(at(5000), &Event::Retransmitted { request, copies: 2 });
        let row = forwards.newest().next().cloned().expect("a row");
        assert_eq!((row.device, &row.copies[..], row.early_ack), (1, &[at(0), at(2000)][..], Some(at(500))));
        assert_eq!((row.end, row.took(at(5500))), (None, Duration::from_millis(5500)));
        let (code, cause) = (Code::GATEWAY_TIMEOUT, Cause::Refused);
        forwards.told(at(6000), &Event::Answered { request, code, cause, evidence: None });
        assert_eq!(forwards.newest().next().map(|row| row.took(at(9000))), Some(Duration::from_secs(6)));
    }

    #[test]
    fn only_the_newest_are_kept() {
        let mut forwards = Forwards::default();
        for slot in 0..500 {
            let request = ExchangeId { slot, generation: 0 };
            let event = Event::Received { request, client: address(0), code: Code::GET, confirmable: true };
            forwards.told(Instant::ZERO, &event);
        }
        assert_eq!(forwards.newest().count(), MOST);
        assert_eq!(forwards.newest().next().map(|row| row.request.slot), Some(499));
    }
}
