//! The worker on real sockets against its twin in the virtual world.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::time::Duration;

use coapway_endpoint::Seed;
use coapway_proxy::{Event, Listening, Parameters};
use coapway_sim::play::{Arrival, Impossible, Stage, play};
use coapway_sim::scenario::Scenario;
use coapway_time::Instant;
use coapway_transport::{Resolver, Source};
use tokio::net::UdpSocket;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::{Reader, Worker};
use crate::clock::Clock;
use crate::sockets::Sockets;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Sends every event to the test, as the line two runs have in common.
struct Witness(mpsc::Sender<String>);

impl Reader for Witness {
    fn read(&mut self, event: Event, _now: Instant, _sockets: &Sockets) {
        // The test may be over already.
        let _ = self.0.send(event.to_string());
    }

    fn flush(&mut self, _now: Instant) -> Option<Instant> {
        None
    }
}

/// A worker in a thread of its own.
struct Running {
    listener: SocketAddr,
    parameters: mpsc::Sender<Parameters>,
    stop: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
    events: mpsc::Receiver<String>,
}

impl Running {
    fn start() -> Self {
        let (tell_address, address) = mpsc::channel();
        let (parameters, told) = mpsc::channel();
        let (tell_events, events) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let mut stopped = Some(stopped);
        let thread = std::thread::spawn(move || {
            runtime().block_on(async {
                let sockets = Sockets::bind(&[ANY]).expect("loopback has ports");
                tell_address.send(sockets.listeners().next().expect("one was bound")).expect("awaited");
                let parameters = told.recv().expect("the test goes on");
                let listening = Listening { events: true, records: None, late: false };
                let resolver = Resolver::new(Source::System, 1, 1).expect("threads can be started");
                let seed = Seed::from_number(1);
                let clock = Clock::start();
                let witness = Witness(tell_events);
                let mut worker = Worker::new(parameters, listening, sockets, resolver, witness, clock, seed);
                worker.run(|cx| ready_once(&mut stopped, cx)).await;
                worker.drain_within(Duration::from_secs(30));
                worker.run(|_| Poll::<()>::Pending).await;
            });
        });
        let listener = address.recv().expect("the worker binds");
        Self { listener, parameters, stop, thread, events }
    }

    /// Stops the worker and returns what it told.
    fn stop(self) -> Vec<String> {
        self.stop.send(()).expect("it runs");
        self.thread.join().expect("it does not panic");
        self.events.iter().collect()
    }
}

/// Ready when the test says so, and never again.
fn ready_once(stopped: &mut Option<oneshot::Receiver<()>>, cx: &mut Context<'_>) -> Poll<()> {
    let Some(receiver) = stopped else { return Poll::Pending };
    let poll = Pin::new(receiver).poll(cx).map(drop);
    if poll.is_ready() {
        *stopped = None;
    }
    poll
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime can be built")
}

/// Real sockets around a real worker.
struct Loopback {
    runtime: Runtime,
    clock: Clock,
    listener: SocketAddr,
    addresses: Vec<SocketAddr>,
    /// Closed while `None`.
    sockets: Vec<Option<UdpSocket>>,
}

impl Loopback {
    fn new(peers: usize, listener: SocketAddr) -> Self {
        let runtime = runtime();
        let sockets: Vec<_> =
            (0..peers).map(|_| runtime.block_on(UdpSocket::bind(ANY)).expect("loopback has ports")).collect();
        let addresses = sockets.iter().map(|socket| socket.local_addr().expect("bound")).collect();
        Self {
            runtime,
            clock: Clock::start(),
            listener,
            addresses,
            sockets: sockets.into_iter().map(Some).collect(),
        }
    }
}

impl Stage for Loopback {
    fn elapsed(&self) -> Duration {
        self.clock.now().since(Instant::ZERO)
    }

    fn tolerance(&self) -> Duration {
        Duration::from_millis(150)
    }

    fn listener(&self) -> SocketAddr {
        self.listener
    }

    fn address(&self, peer: usize) -> SocketAddr {
        self.addresses[peer]
    }

    fn send(&mut self, peer: usize, to: SocketAddr, bytes: &[u8]) {
        let socket = self.sockets[peer].as_ref().expect("a closed peer sends nothing");
        self.runtime.block_on(socket.send_to(bytes, to)).expect("loopback takes it");
    }

    fn receive(&mut self, until: Duration) -> Option<Arrival> {
        let until = self.clock.in_runtime(Instant::ZERO + until);
        let mut buffer = [0; 2048];
        let sockets = &self.sockets;
        let (peer, length, from) = self.runtime.block_on(async {
            let any = std::future::poll_fn(|cx| {
                for (peer, socket) in sockets.iter().enumerate() {
                    let Some(socket) = socket else { continue };
                    let mut room = tokio::io::ReadBuf::new(&mut buffer);
                    // An ICMP error about something sent earlier is none of the script's business.
                    if let Poll::Ready(Ok(from)) = socket.poll_recv_from(cx, &mut room) {
                        return Poll::Ready((peer, room.filled().len(), from));
                    }
                }
                Poll::Pending
            });
            tokio::time::timeout_at(until, any).await.ok()
        })?;
        Some(Arrival { peer, at: self.elapsed(), from, bytes: buffer[..length].to_vec() })
    }

    fn listen(&mut self, peer: usize, listens: bool) -> Result<(), Impossible> {
        self.sockets[peer] = match listens {
            false => None,
            true => Some(self.runtime.block_on(UdpSocket::bind(self.addresses[peer])).expect("it was ours")),
        };
        Ok(())
    }

    fn stall(&mut self, _duration: Duration) -> Result<(), Impossible> {
        Err(Impossible)
    }
}

#[test]
fn a_stop_refuses_new_requests_and_lets_the_running_one_finish() {
    let path = Path::new("drain.scenario");
    let text = "client sends CON GET /t MID=1 token=a1\nproxy sends CON GET /t\n";
    let scenario = Scenario::parse(path, text).unwrap_or_else(|failed| panic!("{failed}"));
    let worker = Running::start();
    let mut stage = Loopback::new(scenario.script.peers.len(), worker.listener);
    let address = |peer: usize| stage.addresses[peer];
    let parameters = scenario.settings.parameters(&scenario.script, worker.listener, address);
    worker.parameters.send(parameters.unwrap_or_else(|errors| panic!("{errors}"))).expect("the worker waits");
    play(&scenario.script, &mut stage).unwrap_or_else(|deviation| panic!("{deviation}"));

    // Under way towards a silent origin: it is not over before it is answered or time runs out.
    let Running { stop, thread, events, .. } = worker;
    stop.send(()).expect("it runs");
    let late = b"\x41\x01\x00\x02\xA2\xB1t";
    let answer = loop {
        // Until the signal has arrived, requests are still taken.
        stage.send(0, stage.listener, late);
        let arrival = stage.receive(stage.elapsed() + Duration::from_secs(5)).expect("never silence");
        if arrival.peer == 0 && arrival.bytes.starts_with(b"\x61\xA3") {
            break arrival.bytes;
        }
    };
    assert!(answer.ends_with(b"not-sent: shutting down"), "{answer:02x?}");
    assert!(!thread.is_finished());
    drop((thread, events));
}

#[test]
fn one_script_gives_one_event_log_on_real_sockets_and_in_the_virtual_world() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/worker/twins.scenario");
    let scenario = Scenario::read(&path).unwrap_or_else(|failed| panic!("{failed}"));
    let (rehearsed, journal) = scenario.rehearse(1);
    rehearsed.unwrap_or_else(|failed| panic!("in the virtual world: {failed}"));
    let virtual_log: Vec<_> = journal.events().iter().map(|(_, event)| event.to_string()).collect();

    let worker = Running::start();
    let mut stage = Loopback::new(scenario.script.peers.len(), worker.listener);
    let address = |peer: usize| stage.addresses[peer];
    let parameters = scenario.settings.parameters(&scenario.script, worker.listener, address);
    let parameters = parameters.unwrap_or_else(|errors| panic!("{errors}"));
    worker.parameters.send(parameters).expect("the worker waits");
    let played = play(&scenario.script, &mut stage);
    let real_log = worker.stop();
    played.unwrap_or_else(|deviation| panic!("on real sockets: {deviation}\n{}", real_log.join("\n")));

    assert!(virtual_log.len() > 30, "{virtual_log:#?}");
    // Records are told in the virtual world only.
    let virtual_log: Vec<_> =
        virtual_log.into_iter().filter(|line| line != "record" && !line.starts_with("answered ")).collect();
    assert_eq!(real_log, virtual_log);
}
