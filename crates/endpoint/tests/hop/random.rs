//! Any order of events: the tables never contradict each other, each request of a peer is told once,
//! each response ends once, no unverified request causes more than its share, and in the end nothing
//! is left.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use coapway_endpoint::{
    DuplicatesParameters, Endpoint, EndpointParameters, Event, Gate, Local, Nstart, Peer, Received, Schedule,
    Seed, TransmissionParameters,
};
use coapway_message::{Code, Content, Datagram, ExchangeId, Failure, MessageType, datagram};
use coapway_time::Instant;
use proptest::prelude::*;

use crate::hop::{PEER, bytes, payload_for};

#[derive(Clone, Debug)]
enum Step {
    /// A peer sends a request.
    Ask { peer: u8, message_id: u16, code: u8, confirmable: bool, gate: u8, token: u8, padding: u8 },
    /// The request that was taken last but so many is answered, with so many bytes.
    Respond { which: usize, bytes: usize },
    /// It gets no response.
    StaySilent { which: usize },
    /// It is acknowledged now.
    Acknowledge { which: usize },
    /// We send a request.
    Send { peer: u8, confirmable: bool, token: Option<[u8; 4]>, fresh_ids: bool },
    /// We send a ping.
    Ping { peer: u8 },
    /// We give one up.
    Cancel { which: usize },
    /// A peer acknowledges, rejects or answers a datagram that we sent last but so many.
    Reply { which: usize, how: u8 },
    /// The network refuses it.
    Refuse { which: usize, anywhere: bool },
    /// Bytes that mean nothing come.
    Noise { peer: u8, bytes: Vec<u8> },
    /// Time passes, and timers fire or are late.
    Wait { millis: u64, wakes: bool },
    /// The window towards clients changes.
    Nstart { nstart: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3u8, 0..6u16, 1..4u8, any::<bool>(), 0..8u8, 0..3u8, 0..40u8).prop_map(
            |(peer, message_id, code, confirmable, gate, token, padding)| Step::Ask {
                peer, message_id, code, confirmable, gate, token, padding,
            }
        ),
        6 => (0..6usize, 5..400usize).prop_map(|(which, bytes)| Step::Respond { which, bytes }),
        1 => (0..6usize).prop_map(|which| Step::StaySilent { which }),
        3 => (0..6usize).prop_map(|which| Step::Acknowledge { which }),
        2 => (0..3u8, any::<bool>(), proptest::option::of(any::<bool>()), any::<bool>())
            .prop_map(|(peer, confirmable, token, fresh_ids)| Step::Send {
                peer, confirmable, token: token.map(|token| [u8::from(token); 4]), fresh_ids,
            }),
        1 => (0..3u8).prop_map(|peer| Step::Ping { peer }),
        1 => (0..4usize).prop_map(|which| Step::Cancel { which }),
        5 => (0..12usize, 0..5u8).prop_map(|(which, how)| Step::Reply { which, how }),
        1 => (0..12usize, any::<bool>()).prop_map(|(which, anywhere)| Step::Refuse { which, anywhere }),
        1 => (0..3u8, proptest::collection::vec(any::<u8>(), 0..24))
            .prop_map(|(peer, bytes)| Step::Noise { peer, bytes }),
        3 => (0..4_000u64, any::<bool>()).prop_map(|(millis, wakes)| Step::Wait { millis, wakes }),
        1 => (1..4u32).prop_map(|nstart| Step::Nstart { nstart }),
    ]
}

struct World {
    endpoint: Endpoint,
    parameters: EndpointParameters,
    now: Instant,
    requests: Vec<ExchangeId>,
    sent: Vec<(Peer, Vec<u8>)>,
    ours: Vec<ExchangeId>,
    open: HashSet<ExchangeId>,
    separate: HashMap<ExchangeId, u32>,
}

fn peer(number: u8) -> Peer {
    let local = Local { address: Some(Ipv4Addr::LOCALHOST.into()), ..PEER.local };
    Peer { local, remote: ([127, 0, 0, 1], 6000 + u16::from(number)).into() }
}

impl World {
    fn new(memory: usize) -> Self {
        let parameters = EndpointParameters {
            duplicates: DuplicatesParameters { memory },
            max_wait: Duration::from_secs(10),
            nstart: Nstart::Fixed(1),
            ..EndpointParameters::default()
        };
        Self {
            endpoint: Endpoint::new(parameters, Seed::from_number(3)),
            parameters,
            now: Instant::ZERO,
            requests: Vec::new(),
            sent: Vec::new(),
            ours: Vec::new(),
            open: HashSet::new(),
            separate: HashMap::new(),
        }
    }

    fn receive(&mut self, peer: Peer, bytes: &[u8], gate: Gate) {
        let got = match self.endpoint.handle_datagram(&peer, bytes, self.now, || gate) {
            Received::Nothing => None,
            Received::Request { exchange, .. } => {
                assert_ne!(gate, Gate::Drop);
                Some(exchange)
            }
            Received::Response { exchange, .. } => {
                assert!(self.open.remove(&exchange), "each request ends once");
                None
            }
        };
        self.requests.extend(got);
    }

    fn take(&mut self, step: Step) {
        let (endpoint, now) = (&mut self.endpoint, self.now);
        let last = |list: &[ExchangeId], which: usize| list.len().checked_sub(which + 1).map(|at| list[at]);
        match step {
            Step::Ask { peer: number, message_id, code, confirmable, gate, token, padding } => {
                let message_type =
                    if confirmable { MessageType::Confirmable } else { MessageType::NonConfirmable };
                let gate = match gate {
                    0 => Gate::Drop,
                    1..4 => Gate::TakeUnverified,
                    _ => Gate::Take,
                };
                let padding = vec![b'p'; padding.into()];
                // The token says who asked, so that each answer leads to its request.
                let token = [number, message_id as u8, token, code];
                let content = Content { payload: &padding, ..Content::bare(Code(code)) };
                let ask = bytes(message_type, message_id, &token, &content);
                self.receive(peer(number), &ask, gate);
            }
            Step::Respond { which, bytes } => {
                let Some(exchange) = last(&self.requests, which) else { return };
                let payload = payload_for(bytes.max(10), 4);
                let content = Content { payload: &payload, ..Content::bare(Code::CONTENT) };
                let _ = endpoint.respond(exchange, &content, now);
            }
            Step::StaySilent { which } => {
                let Some(exchange) = last(&self.requests, which) else { return };
                let _ = endpoint.stay_silent(exchange, now);
            }
            Step::Acknowledge { which } => {
                let Some(exchange) = last(&self.requests, which) else { return };
                endpoint.acknowledge_early(exchange);
            }
            Step::Send { peer: number, confirmable, token, fresh_ids } => {
                let schedule =
                    Schedule { fresh_ids, ..Schedule::new(&TransmissionParameters::default(), now) };
                let content = Content::bare(Code::GET);
                let token = token.as_ref().map(|token| &token[..]);
                let exchange = endpoint
                    .send_request(&peer(number), confirmable, token, &content, &schedule, now)
                    .expect("Message IDs are free");
                assert_eq!(endpoint.sent_content(exchange), Some(content));
                self.ours.push(exchange);
                self.open.insert(exchange);
            }
            Step::Ping { peer: number } => {
                let schedule = Schedule::new(&TransmissionParameters::default(), now);
                let ping = endpoint.send_ping(&peer(number), &schedule, now).expect("Message IDs are free");
                self.open.insert(ping);
            }
            Step::Cancel { which } => {
                let Some(exchange) = last(&self.ours, which) else { return };
                assert_eq!(endpoint.cancel(exchange).is_some(), self.open.remove(&exchange));
            }
            Step::Reply { which, how } => {
                let Some(at) = self.sent.len().checked_sub(which + 1) else { return };
                let (peer, sent) = self.sent[at].clone();
                let Ok(Datagram { message_id, token, .. }) = Datagram::parse(&sent) else { return };
                let answer = Content::bare(Code::CONTENT);
                let reply = match how {
                    0 | 1 => datagram::empty(MessageType::Acknowledgement, message_id).to_vec(),
                    2 => datagram::empty(MessageType::Reset, message_id).to_vec(),
                    3 => bytes(MessageType::Acknowledgement, message_id, token, &answer),
                    _ => bytes(MessageType::Confirmable, 9, token, &answer),
                };
                self.receive(peer, &reply, Gate::Take);
            }
            Step::Refuse { which, anywhere } => {
                let Some(at) = self.sent.len().checked_sub(which + 1) else { return };
                let (mut peer, sent) = self.sent[at].clone();
                if anywhere {
                    peer.local.address = None;
                }
                endpoint.handle_unreachable(&peer, &sent, Failure::Unreachable, now);
            }
            Step::Noise { peer: number, bytes } => self.receive(peer(number), &bytes, Gate::Take),
            Step::Wait { millis, wakes } => {
                self.now = now + Duration::from_millis(millis);
                if wakes {
                    self.endpoint.handle_timeout(self.now);
                }
            }
            Step::Nstart { nstart } => {
                self.parameters.nstart = Nstart::Fixed(nstart);
                endpoint.set_parameters(self.parameters);
            }
        }
    }

    fn settle(&mut self) {
        self.endpoint.check_invariants();
        while let Some(transmit) = self.endpoint.poll_transmit() {
            self.sent.push((*transmit.peer, transmit.datagram.to_vec()));
        }
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Failed { exchange, .. } | Event::Alive { exchange, .. } => {
                    assert!(self.open.remove(&exchange), "each request ends once");
                }
                Event::Delivered { exchange, .. } => *self.separate.entry(exchange).or_default() += 1,
                Event::EmptyAckSent { .. }
                | Event::Repeated { .. }
                | Event::Acknowledged { .. }
                | Event::AcknowledgedAgain { .. }
                | Event::Retransmitted { .. }
                | Event::Exhausted { .. } => {}
            }
        }
        assert!(self.separate.values().all(|&times| times == 1), "each response is told once");
    }

    fn end(&mut self) {
        for exchange in std::mem::take(&mut self.requests) {
            let _ = self.endpoint.respond(exchange, &Content::bare(Code::NOT_FOUND), self.now);
            self.settle();
        }
        while let Some(wake) = self.endpoint.poll_timeout() {
            self.now = self.now.max(wake);
            self.endpoint.handle_timeout(self.now);
            self.settle();
        }
        assert_eq!((self.endpoint.outstanding(), self.endpoint.pending_requests()), (0, 0));
        assert!(self.open.is_empty(), "each request of ours ended");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn tables_never_contradict_each_other(
        steps in proptest::collection::vec(step(), 0..120),
        memory in prop_oneof![Just(600usize), Just(3_000), Just(1 << 20)],
    ) {
        let mut world = World::new(memory);
        for step in steps {
            world.take(step);
            world.settle();
        }
        world.end();
    }

    #[test]
    fn no_unverified_request_causes_more_than_its_share(
        confirmable: bool,
        padding in 0..200usize,
        nstart in 1..3u32,
        steps in proptest::collection::vec((0..8u8, 10..700usize, 0..3_000u64), 1..60),
    ) {
        let parameters = EndpointParameters {
            nstart: Nstart::Fixed(nstart),
            max_wait: Duration::from_secs(10),
            ..EndpointParameters::default()
        };
        let mut endpoint = Endpoint::new(parameters, Seed::from_number(5));
        let message_type =
            if confirmable { MessageType::Confirmable } else { MessageType::NonConfirmable };
        let padding = vec![b'p'; padding];
        let code = if padding.is_empty() { Code::GET } else { Code::FETCH };
        let ask = bytes(message_type, 7, b"abcd", &Content { payload: &padding, ..Content::bare(code) });
        let (mut now, mut received, mut sent, mut exchange) = (Instant::ZERO, 0, 0, None);
        for (what, bytes, millis) in steps {
            match what {
                0..3 => {
                    received += ask.len();
                    let gate = || Gate::TakeUnverified;
                    if let Received::Request { exchange: new, .. } =
                        endpoint.handle_datagram(&PEER, &ask, now, gate)
                    {
                        prop_assert!(exchange.replace(new).is_none(), "it is taken once");
                    }
                }
                3..5 => {
                    if let Some(exchange) = exchange {
                        let payload = payload_for(bytes, 4);
                        let content = Content { payload: &payload, ..Content::bare(Code::CONTENT) };
                        let refused = endpoint.respond(exchange, &content, now).is_err();
                        prop_assert!(!refused || bytes > 60 || endpoint.pending_requests() == 0);
                    }
                }
                5 => exchange.into_iter().for_each(|exchange| endpoint.acknowledge_early(exchange)),
                _ => {
                    now += Duration::from_millis(millis);
                    endpoint.handle_timeout(now);
                }
            }
            while let Some(transmit) = endpoint.poll_transmit() {
                sent += transmit.datagram.len();
            }
            while endpoint.poll_event().is_some() {}
            endpoint.check_invariants();
            prop_assert!(sent <= (3 * received).max(136), "{} bytes for {}", sent, received);
        }
    }
}
