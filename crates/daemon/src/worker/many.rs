//! Many clients at once, real sockets, and a worker that takes its turns when the test says so.

use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::task::Poll;
use std::time::Duration;

use coapway_config::{Config, Overrides};
use coapway_endpoint::Seed;
use coapway_message::{Code, Content, Datagram, MessageType, Options, datagram};
use coapway_proxy::{Event, Listening};
use coapway_time::Instant;
use coapway_transport::{
    Options as SocketOptions, Progress, ReceiveBatch, Resolver, SendBatch, Source, UdpSocket,
};

use super::{Reader, Worker};
use crate::clock::Clock;
use crate::sockets::Sockets;

const LONGEST: Duration = Duration::from_secs(20);

/// Reads nothing.
struct Deaf;

impl Reader for Deaf {
    fn read(&mut self, _event: Event, _now: Instant, _sockets: &Sockets) {}

    fn flush(&mut self, _now: Instant) -> Option<Instant> {
        None
    }
}

/// A worker between its clients and one origin.
struct Crowd {
    worker: Worker<Deaf>,
    listener: SocketAddr,
    clients: UdpSocket,
    requests: SendBatch,
    batch: ReceiveBatch,
    origin: UdpSocket,
    /// What the origin will answer.
    asked: SendBatch,
    /// Where it writes an answer.
    answer: Vec<u8>,
    answered: usize,
    message_id: u16,
}

impl Crowd {
    fn new(clients: usize, settings: &[&str]) -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let origin = UdpSocket::bind(any, &SocketOptions::default()).expect("loopback has ports");
        let overrides = Overrides {
            reverse: Some(format!("coap://{}", origin.local_addr())),
            // On a slow machine too answers come before clients are told that they will come.
            set: [
                "upstream.nstart=1024",
                "downstream.client_ack_timeout=60s",
                "downstream.early_ack_after=30s",
            ]
            .iter()
            .chain(settings)
            .map(|text| (*text).to_owned())
            .collect(),
            ..Overrides::default()
        };
        let config = Config::load(None, std::iter::empty::<(String, String)>(), &overrides);
        let config = config.unwrap_or_else(|errors| panic!("{errors}"));
        let sockets = Sockets::bind(&[any]).expect("loopback has ports");
        let listener = sockets.listeners().next().expect("one was bound");
        let resolver = Resolver::new(Source::System, 1, 1).expect("threads can be started");
        let listening = Listening { events: false, records: None, late: false };
        let (clock, seed) = (Clock::start(), Seed::from_number(1));
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Self {
            worker: Worker::new(config.parameters(), listening, sockets, resolver, Deaf, clock, seed),
            listener,
            clients: UdpSocket::bind(any, &SocketOptions::default()).expect("there are ports"),
            requests: SendBatch::new(clients),
            batch: ReceiveBatch::new(),
            origin,
            asked: SendBatch::new(clients),
            answer: Vec::with_capacity(64),
            answered: 0,
            message_id: 0,
        }
    }

    /// Each client asks once; the worker does not run meanwhile.
    fn ask(&mut self, clients: usize) {
        self.message_id += 1;
        let [high, low] = self.message_id.to_be_bytes();
        for client in 0..clients as u16 {
            let [first, second] = client.to_be_bytes();
            let from = IpAddr::from([127, 64, first, second]);
            // A Confirmable GET for /t, the token being the client's number.
            let request = [0x42, 0x01, high, low, first, second, 0xb1, b't'];
            self.requests.push(self.listener, Some(from), &request);
        }
        send(&self.clients, &mut self.requests);
    }

    /// One turn of the worker.
    async fn turn(&mut self) {
        tokio::task::yield_now().await;
        poll_fn(|cx| Poll::Ready(self.worker.sockets.poll_ready(cx).is_ready())).await;
        self.worker.turn();
    }

    /// Lets the worker run until the origin has been asked by all clients.
    async fn arrive(&mut self, clients: usize) {
        let end = self.worker.clock.now() + LONGEST;
        while self.asked.len() < clients {
            assert!(self.worker.clock.now() < end, "{} of {clients} requests", self.asked.len());
            self.turn().await;
            while receive(&self.origin, &mut self.batch).await {
                for received in self.batch.iter() {
                    let request = Datagram::parse(received.datagram).expect("the worker's are valid");
                    let (message_id, token) = (request.message_id, request.token);
                    let content = Content { code: Code::CONTENT, options: Options::NONE, payload: b"answer" };
                    self.answer.clear();
                    let kind = MessageType::Acknowledgement;
                    datagram::encode(&mut self.answer, kind, message_id, token, &content);
                    self.asked.push(received.from, None, &self.answer);
                }
            }
        }
    }

    /// The origin answers all of them; the worker does not run meanwhile.
    fn answer(&mut self) {
        send(&self.origin, &mut self.asked);
    }

    /// Lets the worker run until all clients have their answers.
    async fn hear(&mut self, clients: usize) {
        let end = self.worker.clock.now() + LONGEST;
        let before = self.answered;
        while self.answered < before + clients {
            assert!(self.worker.clock.now() < end, "{} of {clients} answers", self.answered - before);
            self.turn().await;
            while receive(&self.clients, &mut self.batch).await {
                for received in self.batch.iter() {
                    let Some(IpAddr::V4(to)) = received.to else { panic!("{received:?}") };
                    assert_eq!(received.datagram[4..6], to.octets()[2..], "the client's own answer");
                    assert!(received.datagram.ends_with(b"\xffanswer"), "{received:?}");
                    self.answered += 1;
                }
            }
        }
    }
}

fn send(socket: &UdpSocket, batch: &mut SendBatch) {
    let mut failures = Vec::new();
    assert_eq!(socket.send(batch, &mut failures), Progress::Done);
    assert!(failures.is_empty(), "{failures:?}");
}

/// Takes what has come, if anything has.
async fn receive(socket: &UdpSocket, batch: &mut ReceiveBatch) -> bool {
    tokio::task::yield_now().await;
    poll_fn(|cx| Poll::Ready(socket.poll_ready(cx).is_ready())).await;
    socket.receive(batch).expect("loopback gives it") > 0
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built")
}

#[test]
fn a_thousand_clients_that_begin_at_once_lose_nothing_in_a_buffer() {
    const CLIENTS: usize = 1024;
    let granted = SocketOptions::default().granted_receive_buffer().expect("a socket can be had");
    if granted < CLIENTS * 1024 {
        eprintln!("left out: the system grants {granted} bytes of receive buffer; see net.core.rmem_max");
        return;
    }
    runtime().block_on(async {
        let mut crowd = Crowd::new(CLIENTS, &[]);
        crowd.turn().await;
        // Both bursts find the worker busy with something else.
        crowd.ask(CLIENTS);
        crowd.arrive(CLIENTS).await;
        crowd.answer();
        crowd.hear(CLIENTS).await;
        let counters = crowd.worker.sockets.counters();
        assert_eq!((counters.lost, counters.received, counters.sent), (0, 2048, 2048), "{counters:?}");
    });
}

#[test]
fn a_forward_allocates_nothing_once_all_tables_are_as_large_as_they_get() {
    const CLIENTS: usize = 64;
    let runtime = runtime();
    let mut crowd = runtime.block_on(async { Crowd::new(CLIENTS, &["dedup.memory=1MiB"]) });
    let mut rounds = |rounds: usize| {
        runtime.block_on(async {
            for _ in 0..rounds {
                crowd.ask(CLIENTS);
                crowd.arrive(CLIENTS).await;
                crowd.answer();
                crowd.hear(CLIENTS).await;
            }
        });
    };
    rounds(300);
    let counted = allocation_counter::measure(|| rounds(100));
    // What is noted once a second may need one.
    assert!(counted.count_total <= 2, "{} in {} forwards", counted.count_total, 100 * CLIENTS);
}
