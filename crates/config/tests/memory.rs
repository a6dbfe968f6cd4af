//! What strangers can make a proxy keep, measured.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_config::{Config, Overrides};
use coapway_endpoint::{Local, Seed};
use coapway_message::{Code, Content, Datagram, MessageType, Options, datagram};
use coapway_proxy::{Input, Listening, Output, Proxy, SocketRole};
use coapway_time::Instant;

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

struct World {
    proxy: Proxy,
    now: Instant,
    sent: Vec<(u32, SocketAddr, Box<[u8]>)>,
    listening: bool,
}

fn request(kind: MessageType, code: Code, id: u16, payload: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let payload = vec![7; payload];
    let content = Content { code, options: Options::NONE, payload: &payload };
    datagram::encode(&mut bytes, kind, id, b"\xA1\xA2", &content);
    bytes
}

impl World {
    fn new(settings: &[&str], reverse: &str, records: bool) -> Self {
        let overrides = Overrides {
            reverse: Some(reverse.to_owned()),
            set: settings.iter().map(|text| (*text).to_owned()).collect(),
            ..Overrides::default()
        };
        let config = Config::load(None, std::iter::empty::<(String, String)>(), &overrides).unwrap();
        let listening = Listening { events: false, records };
        let proxy = Proxy::new(config.parameters(), listening, Seed::from_number(1));
        Self { proxy, now: Instant::ZERO, sent: Vec::new(), listening: false }
    }

    fn input(&mut self, role: SocketRole, remote: SocketAddr, bytes: &[u8]) {
        let local = Local { socket: role.socket(), address: None };
        self.proxy.handle_input(Input::Datagram { local, remote, bytes, truncated: false }, self.now);
        self.drain();
    }

    fn wake(&mut self, after: Duration) {
        self.now = self.now + after;
        loop {
            self.proxy.handle_input(Input::Wake, self.now);
            if self.drain().is_none_or(|until| until > self.now) {
                break;
            }
        }
    }

    fn drain(&mut self) -> Option<Instant> {
        self.sent.clear();
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(t) => {
                    if self.listening {
                        self.sent.push((t.peer.local.socket.0, t.peer.remote, t.datagram.into()));
                    }
                }
                Output::Wait { until } => return until,
                Output::LookUp { .. } | Output::Event(_) => {}
            }
        }
    }
}

fn client(n: u32) -> SocketAddr {
    let [_, b, c, d] = n.to_be_bytes();
    ([127, b, c, d], 5683).into()
}

fn measured(name: &str, count: u64, before: u64) {
    println!("{name}: {} each", resident().saturating_sub(before) / count);
}

#[test]
fn measure() {
    let mut kept = Vec::new();
    const N: u32 = 20_000;
    let base =
        ["upstream.queue=1000000", "upstream.nstart=65536", "dedup.memory=64MiB", "limits.fetches=1000000"];
    for (name, payload, nstart, records) in [
        ("small, sent", 8, "upstream.nstart=65536", false),
        ("large, sent", 2000, "upstream.nstart=65536", false),
        ("large, queued", 2000, "upstream.nstart=1", false),
        ("large, sent, recorded", 2000, "upstream.nstart=65536", true),
    ] {
        let before = resident();
        let mut world = World::new(&[&base[..], &[nstart]].concat(), "coap://10.0.0.1", records);
        for n in 0..N {
            world.input(
                SocketRole::Listener(0),
                client(n),
                &request(MessageType::Confirmable, Code::POST, 1, payload),
            );
        }
        measured(name, N.into(), before);
        world.wake(Duration::from_secs(3));
        measured(&format!("{name}, second copies at once"), N.into(), before);
        println!("{:?}", world.proxy.occupancy());
        kept.push(world);
    }
    // Separate responses.
    {
        let before = resident();
        let mut world = World::new(&base, "coap://10.0.0.1", false);
        world.listening = true;
        for n in 0..N {
            world.input(
                SocketRole::Listener(0),
                client(n),
                &request(MessageType::Confirmable, Code::GET, 1, 0),
            );
            let (socket, origin, bytes) = world.sent[0].clone();
            // a repeat has it acknowledged
            world.input(
                SocketRole::Listener(0),
                client(n),
                &request(MessageType::Confirmable, Code::GET, 1, 0),
            );
            let asked = Datagram::parse(&bytes).unwrap();
            let mut answer = Vec::new();
            let payload = vec![7; 2000];
            let content = Content { code: Code::CONTENT, options: Options::NONE, payload: &payload };
            datagram::encode(
                &mut answer,
                MessageType::Acknowledgement,
                asked.message_id,
                asked.token,
                &content,
            );
            let local = Local { socket: coapway_endpoint::SocketId(socket), address: None };
            world.proxy.handle_input(
                Input::Datagram { local, remote: origin, bytes: &answer, truncated: false },
                world.now,
            );
            world.drain();
        }
        measured("separate responses", N.into(), before);
        println!("{:?}", world.proxy.occupancy());
        world.wake(Duration::from_secs(3));
        measured("separate responses, second copies", N.into(), before);
        kept.push(world);
    }
    // Dedup.
    for (name, answer_size) in [("dedup small", 1usize), ("dedup large", 1000)] {
        let before = resident();
        let mut world = World::new(&["dedup.memory=64MiB"], "coap://10.0.0.1", false);
        world.listening = true;
        let payload = vec![7; answer_size];
        for n in 0..600_000u32 / (1 + answer_size as u32 / 100) {
            world.input(
                SocketRole::Listener(0),
                client(n % 1000),
                &request(MessageType::Confirmable, Code::GET, (n / 1000) as u16, 0),
            );
            let (socket, origin, bytes) = world.sent[0].clone();
            let asked = Datagram::parse(&bytes).unwrap();
            let mut answer = Vec::new();
            let content = Content { code: Code::CONTENT, options: Options::NONE, payload: &payload };
            datagram::encode(
                &mut answer,
                MessageType::Acknowledgement,
                asked.message_id,
                asked.token,
                &content,
            );
            let local = Local { socket: coapway_endpoint::SocketId(socket), address: None };
            world.proxy.handle_input(
                Input::Datagram { local, remote: origin, bytes: &answer, truncated: false },
                world.now,
            );
            world.drain();
        }
        println!("{name}: {} MiB of 64, {:?}", (resident() - before) >> 20, world.proxy.occupancy());
        kept.push(world);
    }
    // Origins.
    for (window, exchanges) in [(50, 0), (50, 1), (50, 60), (1000, 300)] {
        let n = if window == 1000 { 100 } else { 1000u32 };
        let before = resident();
        let mut world = World::new(
            &["dedup.memory=1MiB", &format!("upstream.rto.window={window}"), "forward.enabled=true"],
            "coap://10.0.0.1",
            false,
        );
        world.listening = true;
        for round in 0..exchanges.max(1) {
            for i in 0..n {
                let mut options = Vec::new();
                let mut writer = coapway_message::OptionsWriter::new(&mut options);
                writer.push(
                    coapway_message::OptionNumber::PROXY_URI,
                    format!("coap://10.7.{}.{}", i / 256, i % 256).as_bytes(),
                );
                let content = Content { code: Code::GET, options: writer.finish(), payload: b"" };
                let mut bytes = Vec::new();
                datagram::encode(&mut bytes, MessageType::Confirmable, round as u16, b"a", &content);
                world.input(SocketRole::Listener(0), client(i), &bytes);
                let (socket, origin, bytes) = world.sent[0].clone();
                if exchanges == 0 {
                    continue;
                }
                let asked = Datagram::parse(&bytes).unwrap();
                let mut answer = Vec::new();
                let content = Content { code: Code::CONTENT, options: Options::NONE, payload: b"x" };
                datagram::encode(
                    &mut answer,
                    MessageType::Acknowledgement,
                    asked.message_id,
                    asked.token,
                    &content,
                );
                let local = Local { socket: coapway_endpoint::SocketId(socket), address: None };
                world.now = world.now + Duration::from_micros(1 + u64::from(i));
                world.proxy.handle_input(
                    Input::Datagram { local, remote: origin, bytes: &answer, truncated: false },
                    world.now,
                );
                world.drain();
            }
        }
        measured(&format!("origins, {window} samples, {exchanges} ex"), n.into(), before);
        kept.push(world);
    }
    // NON: peers with Message IDs.
    {
        let before = resident();
        let mut world = World::new(&["dedup.memory=1MiB"], "coap://10.0.0.1", false);
        world.listening = true;
        for n in 0..100_000u32 {
            world.input(
                SocketRole::Listener(0),
                client(n),
                &request(MessageType::NonConfirmable, Code::GET, 1, 0),
            );
            let (socket, origin, bytes) = world.sent[0].clone();
            let asked = Datagram::parse(&bytes).unwrap();
            let mut answer = Vec::new();
            let content = Content { code: Code::CONTENT, options: Options::NONE, payload: b"x" };
            datagram::encode(
                &mut answer,
                MessageType::NonConfirmable,
                asked.message_id,
                asked.token,
                &content,
            );
            let local = Local { socket: coapway_endpoint::SocketId(socket), address: None };
            world.proxy.handle_input(
                Input::Datagram { local, remote: origin, bytes: &answer, truncated: false },
                world.now,
            );
            world.drain();
        }
        measured("clients with Message IDs", 100_000, before);
        kept.push(world);
    }
}
