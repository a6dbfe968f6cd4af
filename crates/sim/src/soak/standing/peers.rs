//! Many clients and three kinds of origin, which remember nothing beyond what is counted.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::Counters;
use coapway_message::{Code, MessageType};
use coapway_proxy::Event;

use crate::network::stream;
use crate::soak::Report;
use crate::soak::stripped::{self, Post};
use crate::soak::wire::{Head, head, message, number};
use crate::sockets::LISTENER;

/// There and back.
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// What an origin does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Acknowledges, and answers later in a message of its own.
    Slow,
    /// Acknowledges and says no more.
    Mute,
    /// Says nothing.
    Silent,
}

impl Kind {
    /// The kind of the request with this number.
    fn of(number: u32) -> Self {
        match chance(number) % 10 {
            0..7 => Self::Slow,
            7..9 => Self::Mute,
            _ => Self::Silent,
        }
    }

    /// Whether this is a right answer. An origin that stays silent is taken to be down in the end.
    fn may_be_answered(self, code: Code) -> bool {
        match self {
            Self::Slow => code == Code::CONTENT,
            Self::Mute => code == Code::GATEWAY_TIMEOUT,
            Self::Silent => [Code::GATEWAY_TIMEOUT, Code::SERVICE_UNAVAILABLE].contains(&code),
        }
    }

    /// Whom the request with this number is for. Origins that say nothing are many, so that few
    /// requests wait for one another.
    pub(super) fn origin(number: u32) -> SocketAddr {
        let [.., high, low] = (chance(number) >> 8).to_be_bytes();
        let host = match Self::of(number) {
            Self::Slow => [10, 2, 0, low],
            Self::Mute => [10, 2, 1, low],
            Self::Silent => [10, 3, high & 0x0F, low],
        };
        SocketAddr::new(host.into(), 5683)
    }

    fn at(origin: SocketAddr) -> Self {
        match origin.ip() {
            IpAddr::V4(ip) if ip.octets()[1] == 3 => Self::Silent,
            IpAddr::V4(ip) if ip.octets()[2] == 1 => Self::Mute,
            IpAddr::V4(_) | IpAddr::V6(_) => Self::Slow,
        }
    }
}

fn chance(number: u32) -> u64 {
    // The low bits of a stream's seed are drawn like all others.
    stream(number.into(), &["standing"])
}

/// All clients and origins, and what passed by them.
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// By request, the code of its answer.
    answers: Vec<Option<Code>>,
    /// Answers of another code than the one before, or to nobody.
    contradictions: u64,
    /// By token of the proxy, the copies that came to an origin.
    copies: BTreeMap<Vec<u8>, u64>,
    /// Separate responses of origins, and what acknowledged them.
    responses: u64,
    acknowledgements: u64,
    /// Copies of separate responses to clients.
    separate: u64,
    separate_copies: u64,
    empty_acknowledgements: u64,
    /// What the proxy told.
    received: u64,
    answered: u64,
    acknowledged_early: u64,
    delivered: u64,
    undelivered: u64,
}

impl Peers {
    /// The number of the next request.
    pub(super) fn begin(&mut self) -> u32 {
        self.answers.push(None);
        self.answers.len() as u32 - 1
    }

    pub(super) const fn asked(&self) -> u64 {
        self.answers.len() as u64
    }

    /// Requests with this answer.
    pub(super) fn answered(&self, code: Code) -> u64 {
        self.answers.iter().filter(|&&answer| answer == Some(code)).count() as u64
    }

    fn client_receives(&mut self, client: SocketAddr, head: Head<'_>, post: &mut Post) {
        if head.code == Code::EMPTY {
            self.empty_acknowledgements += 1;
            return;
        }
        if head.message_type == MessageType::Confirmable {
            self.separate_copies += 1;
            let acknowledgement =
                message(MessageType::Acknowledgement, Code::EMPTY, head.message_id, &[], &[]);
            post.send(ROUND_TRIP, client, LISTENER, acknowledgement);
        }
        // Asked only to be remembered.
        if head.token.is_empty() {
            return;
        }
        let answer = number(head.token).and_then(|number| self.answers.get_mut(number as usize));
        match answer {
            Some(answer @ None) => {
                *answer = Some(head.code);
                self.separate += u64::from(head.message_type == MessageType::Confirmable);
            }
            Some(Some(code)) if *code == head.code => {}
            Some(Some(_)) | None => self.contradictions += 1,
        }
    }

    fn origin_receives(&mut self, origin: SocketAddr, from: SocketAddr, head: Head<'_>, post: &mut Post) {
        if !head.code.is_request() {
            self.acknowledgements += 1;
            return;
        }
        let copies = self.copies.entry(head.token.to_vec()).or_default();
        *copies += 1;
        let kind = Kind::at(origin);
        if kind == Kind::Silent {
            return;
        }
        let acknowledgement = message(MessageType::Acknowledgement, Code::EMPTY, head.message_id, &[], &[]);
        post.send(ROUND_TRIP, origin, from, acknowledgement);
        if kind == Kind::Slow && *copies == 1 {
            self.responses += 1;
            let thinking = Duration::from_millis(30_000 + self.responses * 7919 % 240_000);
            let message_id = self.responses as u16;
            let response = message(MessageType::Confirmable, Code::CONTENT, message_id, head.token, b"1");
            post.send(thinking, origin, from, response);
        }
    }

    /// What the proxy told and counted is what its peers saw.
    pub(super) fn judge(&self, report: &mut Report, downstream: &Counters, upstream: &Counters) {
        let asked = self.asked();
        report.must_agree("requests asked and received", asked, self.received);
        report.must_agree("requests asked and answered", asked, self.answered);
        let wrong = (0..)
            .zip(&self.answers)
            .filter(|&(number, answer)| !answer.is_some_and(|code| Kind::of(number).may_be_answered(code)));
        report.must_agree("requests without the right answer", 0, wrong.count() as u64);
        report.must_agree("further answers", 0, self.contradictions);
        report.must_agree("early acknowledgements", self.acknowledged_early, self.empty_acknowledgements);
        report.must_agree("separate answers delivered", self.separate, self.delivered);
        report.must_agree("separate answers not delivered", 0, self.undelivered);
        report.must_agree("responses acknowledged", self.responses, self.acknowledgements);
        let further = self.copies.values().map(|copies| copies - 1).sum();
        report.must_agree("further copies to origins", further, upstream.retransmissions);
        let further = self.separate_copies - self.separate;
        report.must_agree("further copies to clients", further, downstream.retransmissions);
        for counters in [downstream, upstream] {
            // Both are part of a good run; all else would be the peers' fault or ours.
            let Counters { retransmissions, waited, .. } = *counters;
            let expected = Counters { retransmissions, waited, ..Counters::default() };
            report.must(*counters == expected, || format!("counted beside that: {counters:?}"));
        }
    }
}

impl stripped::Peers for Peers {
    fn receive(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], post: &mut Post) {
        let Some(head) = head(bytes) else { return };
        match from == LISTENER {
            true => self.client_receives(to, head, post),
            false => self.origin_receives(to, from, head, post),
        }
    }

    fn told(&mut self, event: &Event) {
        match event {
            Event::Received { .. } => self.received += 1,
            Event::Answered { .. } => self.answered += 1,
            Event::EmptyAckSent { .. } => self.acknowledged_early += 1,
            Event::Delivered { outcome: Ok(()), .. } => self.delivered += 1,
            Event::Delivered { outcome: Err(_), .. } => self.undelivered += 1,
            Event::Repeated { .. }
            | Event::Sent { .. }
            | Event::Retransmitted { .. }
            | Event::Acknowledged { .. }
            | Event::Alert(_)
            | Event::Refused(_) => {}
        }
    }
}
