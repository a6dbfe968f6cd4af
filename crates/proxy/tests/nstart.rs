//! The window towards an origin over bad paths: random loss, a buffer that swells, a greedy client, an
//! origin that is slow now and then.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Local, Seed, SocketId};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, Datagram, MessageType, datagram};
use coapway_proxy::{
    Input, Limits, Listening, Output, Parameters, Patience, Proxy, SocketRole, UpstreamParameters,
};
use coapway_relay::{Route, Upstream, UpstreamId};
use coapway_time::Instant;

const ORIGIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 5683);
const LISTENER: Local = Local { socket: SocketRole::Listener(0).socket(), address: None };

/// The way to the origin and what it does there.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Each way.
    delay: f64,
    /// The share that is lost, each way.
    loss: f64,
    /// Seconds that each request takes in one queue without end, in which copies take as long.
    service: f64,
    /// The share of requests that take longer, by so many seconds, and not in the queue.
    slow: (f64, f64),
}

const NEAR: Path = Path { delay: 0.05, loss: 0.0, service: 0.0, slow: (0.0, 0.0) };

#[derive(Debug)]
enum Happening {
    Asks(u16),
    ReachesOrigin(SocketId, Vec<u8>),
    ReachesProxy(SocketId, Vec<u8>),
}

#[derive(Debug, Default)]
struct Client {
    asked: u32,
    answered: u32,
    waited: f64,
}

struct World {
    proxy: Proxy,
    path: Path,
    random: fastrand::Rng,
    now: Instant,
    wake: Option<Instant>,
    queue: BTreeMap<(Instant, u64), Happening>,
    entered: u64,
    free_from: Instant,
    /// What takes long, and when it is answered; copies of it are known.
    thinking: BTreeMap<Vec<u8>, Instant>,
    open: BTreeMap<Vec<u8>, (u16, Instant)>,
    clients: BTreeMap<u16, Client>,
    copies: u32,
    message_id: u16,
    windows: Vec<(f64, u32)>,
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

impl World {
    fn new(path: Path, seed: u64) -> Self {
        let authority = Authority { host: Host::Address(ORIGIN.ip()), port: ORIGIN.port() };
        let names = [("default", None), ("origin", Some(authority))];
        let parameters = Parameters {
            downstream: EndpointParameters::default(),
            upstreams: vec![UpstreamParameters::default(); 2],
            relay: coapway_relay::Parameters {
                upstreams: names.map(|(name, authority)| Upstream { name: name.into(), authority }).into(),
                routes: vec![Route { host: None, path: Vec::new(), upstream: UpstreamId(1), strip: false }],
                ..coapway_relay::Parameters::default()
            },
            answer_within: None,
            patience: Patience::Off,
            limits: Limits::default(),
        };
        Self {
            proxy: Proxy::new(parameters, Listening::default(), Seed::from_number(seed)),
            path,
            random: fastrand::Rng::with_seed(seed),
            now: Instant::ZERO,
            wake: None,
            queue: BTreeMap::new(),
            entered: 0,
            free_from: Instant::ZERO,
            thinking: BTreeMap::new(),
            open: BTreeMap::new(),
            clients: BTreeMap::new(),
            copies: 0,
            message_id: 0,
            windows: Vec::new(),
        }
    }

    fn enter(&mut self, after: f64, happening: Happening) {
        self.entered += 1;
        self.queue.insert((self.now + seconds(after), self.entered), happening);
    }

    /// Lets the proxy learn: a request each two seconds.
    fn warmed_up(mut self) -> Self {
        (0..30).for_each(|number| self.enter(f64::from(number) * 2.0, Happening::Asks(0)));
        self
    }

    /// Clients, by port, ask so often each second, for `time` seconds after the first minute; then all wait
    /// for their answers.
    fn run(mut self, rates: &[(u16, f64)], time: f64) -> Self {
        for &(port, rate) in rates {
            for number in 0..(rate * time) as u32 {
                let at = 60.0 + (f64::from(number) + self.random.f64()) / rate;
                self.enter(at, Happening::Asks(port));
            }
        }
        loop {
            let next = self.queue.first_key_value().map(|(&(at, _), _)| at);
            match (next, self.wake) {
                (Some(at), wake) if wake.is_none_or(|wake| at <= wake) => {
                    let (_, happening) = self.queue.pop_first().expect("it is there");
                    self.now = at;
                    self.happen(happening);
                }
                (_, Some(wake)) if wake <= Instant::ZERO + seconds(time + 120.0) => {
                    self.now = self.now.max(wake);
                    self.give(Input::Wake);
                }
                _ => return self,
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Asks(port) => {
                self.message_id = self.message_id.wrapping_add(1);
                let mut bytes = Vec::new();
                let token = self.entered.to_be_bytes();
                self.entered += 1;
                let get = Content::bare(Code::GET);
                datagram::encode(&mut bytes, MessageType::Confirmable, self.message_id, &token, &get);
                self.open.insert(token.to_vec(), (port, self.now));
                self.clients.entry(port).or_default().asked += 1;
                self.proxy_hears(port, &bytes);
            }
            Happening::ReachesOrigin(socket, bytes) => {
                let request = Datagram::parse(&bytes).expect("well formed");
                let mut reply = Vec::new();
                let content = Content::bare(Code::CONTENT);
                let (message_id, token) = (request.message_id, request.token);
                datagram::encode(&mut reply, MessageType::Acknowledgement, message_id, token, &content);
                self.free_from = self.free_from.max(self.now) + seconds(self.path.service);
                if self.thinking.get(token).is_some_and(|&until| self.now < until) {
                    return;
                }
                let slow = if self.random.f64() < self.path.slow.0 { self.path.slow.1 } else { 0.0 };
                self.thinking.insert(token.to_vec(), self.now + seconds(slow));
                if self.random.f64() >= self.path.loss {
                    let after = self.free_from.since(self.now).as_secs_f64() + slow + self.path.delay;
                    self.enter(after, Happening::ReachesProxy(socket, reply));
                }
            }
            Happening::ReachesProxy(socket, bytes) => {
                let local = Local { socket, address: None };
                self.give(Input::Datagram { local, remote: ORIGIN, bytes: &bytes, truncated: false });
            }
        }
    }

    fn proxy_hears(&mut self, port: u16, bytes: &[u8]) {
        let remote = SocketAddr::from(([127, 0, 0, 1], port));
        self.give(Input::Datagram { local: LISTENER, remote, bytes, truncated: false });
    }

    fn give(&mut self, input: Input<'_>) {
        self.proxy.handle_input(input, self.now);
        let (mut to_origin, mut to_clients) = (Vec::new(), Vec::new());
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(transmit) => {
                    let (socket, to) = (transmit.peer.local.socket, transmit.peer.remote);
                    match SocketRole::of(socket) {
                        SocketRole::Upstream { .. } => to_origin.push((socket, transmit.datagram.to_vec())),
                        SocketRole::Listener(_) => to_clients.push((to.port(), transmit.datagram.to_vec())),
                    }
                }
                Output::Wait { until } => {
                    self.wake = until;
                    break;
                }
                Output::LookUp { .. } | Output::Event(_) | Output::Records(_) => {}
            }
        }
        for (socket, bytes) in to_origin {
            self.copies += 1;
            if self.random.f64() >= self.path.loss {
                self.enter(self.path.delay, Happening::ReachesOrigin(socket, bytes));
            }
        }
        if let Some(learned) = self.proxy.learned(ORIGIN, UpstreamId(1)) {
            self.windows.push((self.now.as_micros() as f64 / 1e6, learned.window));
        }
        for (port, bytes) in to_clients {
            self.client_hears(port, &bytes);
        }
    }

    fn client_hears(&mut self, port: u16, bytes: &[u8]) {
        let datagram = Datagram::parse(bytes).expect("well formed");
        if !datagram.content.code.is_response() {
            return;
        }
        if let Some((port, since)) = self.open.remove(datagram.token)
            && datagram.content.code == Code::CONTENT
        {
            let client = self.clients.entry(port).or_default();
            client.answered += 1;
            client.waited += self.now.since(since).as_secs_f64();
        }
        if datagram.message_type == MessageType::Confirmable {
            let mut reply = Vec::new();
            let empty = Content::bare(Code::EMPTY);
            datagram::encode(&mut reply, MessageType::Acknowledgement, datagram.message_id, b"", &empty);
            self.proxy_hears(port, &reply);
        }
    }

    fn answered(&self) -> f64 {
        let sum = |of: fn(&Client) -> u32| f64::from(self.clients.values().map(of).sum::<u32>());
        sum(|client| client.answered) / sum(|client| client.asked)
    }

    fn answers(&self) -> u32 {
        self.clients.values().map(|client| client.answered).sum()
    }

    fn mean_wait(&self) -> f64 {
        self.clients.values().map(|client| client.waited).sum::<f64>() / f64::from(self.answers())
    }

    /// The largest window in this time.
    fn largest(&self, from: f64, until: f64) -> u32 {
        let windows = self.windows.iter().filter(|(at, _)| (from..until).contains(at));
        windows.map(|&(_, window)| window).max().unwrap_or(0)
    }
}

#[test]
fn random_loss_does_not_strangle_a_hundred_requests_a_second() {
    for seed in 0..10 {
        let path = Path { loss: 0.15, ..NEAR };
        let rates: Vec<_> = (1..=20).map(|port| (port, 5.0)).collect();
        let world = World::new(path, seed).warmed_up().run(&rates, 15.0);
        assert!(world.answered() >= 0.99, "seed {seed}: {}", world.answered());
        assert!(world.mean_wait() < 1.0, "seed {seed}: {}", world.mean_wait());
    }
}

#[test]
fn a_buffer_that_swells_brings_the_window_down_and_stays_busy() {
    // 37.5 requests a second fit through; 200 are wanted. Half a second and more on the way: 22 fill it.
    let path = Path { delay: 0.3, service: 0.0267, ..NEAR };
    for seed in 0..3 {
        let rates: Vec<_> = (1..=50).map(|port| (port, 4.0)).collect();
        let world = World::new(path, seed).run(&rates, 120.0);
        let most = 150.0 / path.service;
        let (share, largest) = (f64::from(world.answers()) / most, world.largest(90.0, 180.0));
        let copies = f64::from(world.copies) / f64::from(world.answers());
        assert!(largest <= 64, "seed {seed}: {largest}");
        assert!(share > 0.75, "seed {seed}: {share}");
        assert!(copies < 1.15, "seed {seed}: {copies}");
    }
}

#[test]
fn a_greedy_client_does_not_take_what_a_modest_one_asks_for() {
    let path = Path { service: 0.025, ..NEAR };
    for seed in 0..3 {
        let world = World::new(path, seed).run(&[(1, 200.0), (2, 5.0)], 60.0);
        let modest = &world.clients[&2];
        let wait = modest.waited / f64::from(modest.answered);
        assert!(f64::from(modest.answered) >= 0.99 * f64::from(modest.asked), "seed {seed}: {modest:?}");
        assert!(wait < 1.5, "seed {seed}: {wait} s");
    }
}

#[test]
fn an_origin_that_is_slow_now_and_then_is_not_taken_for_a_full_buffer() {
    let path = Path { delay: 0.01, slow: (0.05, 4.0), ..NEAR };
    for seed in 0..3 {
        let rates: Vec<_> = (1..=20).map(|port| (port, 5.0)).collect();
        let world = World::new(path, seed).run(&rates, 60.0);
        assert!(world.answered() >= 0.99, "seed {seed}: {}", world.answered());
        assert!(world.mean_wait() < 100.0, "seed {seed}: {}", world.mean_wait());
    }
}
