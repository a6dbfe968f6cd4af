//! Fifty thousand requests a second to one origin: are there Message IDs enough, and does each rest
//! for its lifetime (RFC 7252 §4.4)?

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::EndpointParameters;
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, MessageType};
use coapway_proxy::{Event, Limits, Listening, Parameters, UpstreamParameters};
use coapway_relay::{Route, Upstream, UpstreamId};
use coapway_time::Instant;

use super::stripped::{Peers, Post, Stripped};
use super::wire::{head, message, number};
use super::{Report, grouped, seconds};
use crate::sockets::{LISTENER, upstream_number};

/// EXCHANGE_LIFETIME with the protocol's own parameters.
const EXCHANGE_LIFETIME: Duration = Duration::from_secs(247);
/// How long the origin takes.
const THINKING: Duration = Duration::from_millis(1);
/// After the last request everything is over within this.
const AFTERMATH: Duration = Duration::from_secs(60);

/// What is to be asked.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    /// Requests a second.
    pub rate: u32,
    /// For how many seconds.
    pub seconds: u32,
    /// Ports of ours towards the origin.
    pub source_ports: u32,
}

impl Default for Flood {
    fn default() -> Self {
        // 256 ports are used up in 335 s; then Message IDs come round.
        Self { rate: 50_000, seconds: 420, source_ports: 256 }
    }
}

/// Asks them all.
///
/// Shape: fewer than 2^32 requests.
pub fn run(flood: Flood) -> Report {
    let Flood { rate, seconds: duration, source_ports } = flood;
    let requests = rate * duration;
    // A client that kept to the rules would run out of Message IDs of its own, too.
    let clients = (rate * 250).div_ceil(1 << 15).max(1);
    let listening = Listening { events: false, records: None, late: false };
    let mut world = Stripped::new(parameters(source_ports), listening, Both::new(requests, source_ports));
    for request in 0..requests {
        let at = Instant::from_micros(u64::from(request) * 1_000_000 / u64::from(rate));
        world.run_until(at);
        let asks = Asks { request, clients };
        world.post.send(Duration::ZERO, asks.client(), LISTENER, asks.bytes());
    }
    world.run_until(world.post.now() + AFTERMATH);
    report(flood, clients, &world)
}

fn report(flood: Flood, clients: u32, world: &Stripped<Both>) -> Report {
    let Flood { rate, seconds: duration, source_ports } = flood;
    let requests = u64::from(rate) * u64::from(duration);
    let Both { answered, answers, other, ids, .. } = &world.peers;
    let title = format!("{} requests/s to one origin for {duration} s", grouped(rate.into()));
    let mut report = Report::new(title);
    let succeeded = answers.get(&Code::CONTENT.0).copied().unwrap_or_default();
    report.row("requests", grouped(requests));
    report.row("clients", grouped(clients.into()));
    report.row("answered 2.05, each once, piggybacked and with its own token", grouped(succeeded));
    report.row("source ports allowed / used", format!("{source_ports} / {}", ids.ports()));
    report.row("Message IDs used twice", grouped(ids.used_again));
    report.row(
        "shortest time between two uses",
        ids.shortest.map_or_else(|| "none used twice".to_owned(), seconds),
    );
    report.must_agree("requests and 2.05", requests, succeeded);
    for (&code, &times) in answers.iter().filter(|&(&code, _)| code != Code::CONTENT.0) {
        report.must(false, || format!("{times} requests were answered {}", Code(code)));
    }
    report.must(*other == 0, || format!("{other} datagrams to clients were no piggybacked answers"));
    report.must_agree(
        "clients answered",
        requests,
        answered.iter().map(|word| u64::from(word.count_ones())).sum(),
    );
    report.must_agree("requests at the origin", requests, ids.seen);
    report.must_agree("used again within EXCHANGE_LIFETIME", 0, ids.too_soon);
    let (_, upstream) = world.proxy.counters();
    report.must_agree("retransmissions", 0, upstream.retransmissions);
    let occupancy = world.proxy.occupancy();
    report.must(world.proxy.is_idle(), || format!("left over: {occupancy:?}"));
    report
}

fn parameters(source_ports: u32) -> Parameters {
    let usual = UpstreamParameters { source_ports, ..UpstreamParameters::default() };
    let authority = Authority { host: Host::Address(ORIGIN.ip()), port: ORIGIN.port() };
    let relay = coapway_relay::Parameters {
        upstreams: vec![
            Upstream { name: "default".into(), authority: None },
            Upstream { name: "origin".into(), authority: Some(authority) },
        ],
        routes: vec![Route { host: None, path: Vec::new(), upstream: UpstreamId(1), strip: false }],
        own: vec![LISTENER],
        trusted: vec!["10.0.0.0/8".parse().expect("a network")],
        client_rate: 0,
        ..coapway_relay::Parameters::default()
    };
    Parameters {
        downstream: EndpointParameters::default(),
        upstreams: vec![usual; 2],
        relay,
        answer_within: None,
        patience: coapway_proxy::Patience::Off,
        limits: Limits::default(),
    }
}

const ORIGIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 2, 0, 1)), 5683);

/// One request of many clients in turn.
#[derive(Clone, Copy, Debug)]
struct Asks {
    request: u32,
    clients: u32,
}

impl Asks {
    fn client(self) -> SocketAddr {
        let [_, _, high, low] = (self.request % self.clients).to_be_bytes();
        SocketAddr::new([10, 1, high, low].into(), 40_000)
    }

    fn bytes(self) -> Vec<u8> {
        let [high, low] = ((self.request / self.clients) as u16).to_be_bytes();
        let [a, b, c, d] = self.request.to_be_bytes();
        vec![0x44, Code::GET.0, high, low, a, b, c, d, 0xB1, b't']
    }
}

/// All clients and the origin.
#[derive(Debug)]
struct Both {
    /// A bit for each request.
    answered: Vec<u64>,
    /// By code.
    answers: BTreeMap<u8, u64>,
    /// What came to clients beside one piggybacked answer each.
    other: u64,
    ids: Ids,
}

impl Both {
    fn new(requests: u32, source_ports: u32) -> Self {
        let answered = vec![0; requests as usize / 64 + 1];
        Self { answered, answers: BTreeMap::new(), other: 0, ids: Ids::new(source_ports) }
    }

    fn client_receives(&mut self, bytes: &[u8]) {
        let head = head(bytes).filter(|head| head.message_type == MessageType::Acknowledgement);
        let request = head.and_then(|head| Some((head.code, number(head.token)?)));
        let Some((code, request)) = request else {
            self.other += 1;
            return;
        };
        let (word, bit) = (request as usize / 64, 1 << (request % 64));
        match self.answered.get_mut(word) {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                *self.answers.entry(code.0).or_default() += 1;
            }
            _ => self.other += 1,
        }
    }
}

impl Peers for Both {
    fn receive(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], post: &mut Post) {
        if from == LISTENER {
            self.client_receives(bytes);
            return;
        }
        let (Some(head), Some(number)) = (head(bytes), upstream_number(from)) else { return };
        self.ids.take(number, head.message_id, post.now());
        let answer = message(MessageType::Acknowledgement, Code::CONTENT, head.message_id, head.token, b"1");
        post.send(THINKING, to, from, answer);
    }

    fn told(&mut self, _event: &Event) {}
}

/// When each Message ID was used last, port by port.
#[derive(Debug)]
struct Ids {
    /// In milliseconds, counted from 1; 0 is never.
    last: Vec<Vec<u32>>,
    seen: u64,
    used_again: u64,
    too_soon: u64,
    shortest: Option<Duration>,
}

impl Ids {
    fn new(source_ports: u32) -> Self {
        let last = vec![Vec::new(); source_ports as usize];
        Self { last, seen: 0, used_again: 0, too_soon: 0, shortest: None }
    }

    fn ports(&self) -> usize {
        self.last.iter().filter(|ids| !ids.is_empty()).count()
    }

    fn take(&mut self, port: u32, message_id: u16, now: Instant) {
        let millis = (now.as_micros() / 1000) as u32 + 1;
        self.seen += 1;
        let Some(ids) = self.last.get_mut(port as usize) else {
            self.too_soon += 1;
            return;
        };
        ids.resize(1 << 16, 0);
        let last = std::mem::replace(&mut ids[usize::from(message_id)], millis);
        if last == 0 {
            return;
        }
        let age = Duration::from_millis((millis - last).into());
        self.used_again += 1;
        self.shortest = Some(self.shortest.map_or(age, |shortest| shortest.min(age)));
        if age < EXCHANGE_LIFETIME {
            self.too_soon += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_used_again_too_soon_is_found() {
        let mut ids = Ids::new(2);
        let at = |seconds: u64| Instant::from_micros(seconds * 1_000_000);
        for (port, second, too_soon) in [(0, 0, 0), (1, 1, 0), (0, 248, 0), (1, 247, 1), (2, 400, 2)] {
            ids.take(port, 7, at(second));
            assert_eq!(ids.too_soon, too_soon, "port {port} at {second} s");
        }
        assert_eq!((ids.used_again, ids.shortest), (2, Some(Duration::from_secs(246))));
    }

    #[test]
    fn a_second_answer_is_found() {
        let mut both = Both::new(3, 1);
        let answer = message(MessageType::Acknowledgement, Code::CONTENT, 1, &2_u32.to_be_bytes(), b"1");
        both.client_receives(&answer);
        assert_eq!((both.other, both.answers[&Code::CONTENT.0]), (0, 1));
        both.client_receives(&answer);
        assert_eq!((both.other, both.answers[&Code::CONTENT.0]), (1, 1));
    }
}
