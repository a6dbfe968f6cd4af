//! What strangers can make a proxy keep, measured against what `check` says it is at the most.
//!
//! All in one test, and nothing is given back before its end: the process's resident memory tells the
//! sum, and memory that was used before would hide what is used next.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_config::{Config, Overrides};
use coapway_endpoint::{Local, Seed, SocketId};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, Options, OptionsWriter, datagram};
use coapway_proxy::{Input, Listening, Output, Proxy, Sampling, SocketRole};
use coapway_time::Instant;

/// A datagram is at most 2 048 bytes.
const LONGEST: usize = 2030;

/// What the process has in memory, in bytes; `None` where the system does not tell.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// A proxy, its clock, and what it sent last.
struct World {
    proxy: Proxy,
    now: Instant,
    sent: Vec<(SocketId, SocketAddr, Box<[u8]>)>,
}

impl World {
    fn new(settings: &[&str], records: bool) -> (Self, Config) {
        let overrides = Overrides {
            reverse: Some("coap://10.0.0.1".to_owned()),
            set: ["upstream.queue=1000000", "forward.enabled=true", "dedup.memory=8MiB"]
                .iter()
                .chain(settings)
                .map(|text| (*text).to_owned())
                .collect(),
            record: records.then(|| "-".to_owned()),
            ..Overrides::default()
        };
        let none = std::iter::empty::<(String, String)>();
        let config = Config::load(None, none, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
        let listening = Listening { events: false, records: records.then_some(Sampling::ALL), late: false };
        let proxy = Proxy::new(config.parameters(), listening, Seed::from_number(1));
        (Self { proxy, now: Instant::ZERO, sent: Vec::new() }, config)
    }

    fn receive(&mut self, socket: SocketId, remote: SocketAddr, bytes: &[u8]) {
        let local = Local { socket, address: None };
        self.sent.clear();
        self.proxy.handle_input(Input::Datagram { local, remote, bytes, truncated: false }, self.now);
        self.drain();
    }

    fn request(&mut self, client: u32, request: &[u8]) {
        let [_, b, c, d] = client.to_be_bytes();
        self.receive(SocketRole::Listener(0).socket(), ([127, b, c, d], 5683).into(), request);
    }

    /// The origin answers what was sent to it last.
    fn answer(&mut self, message_type: MessageType, payload: &[u8]) {
        let Some((socket, origin, bytes)) = self.sent.pop() else { panic!("nothing was sent") };
        let asked = Datagram::parse(&bytes).expect("our own is valid");
        let content = Content { code: Code::CONTENT, options: Options::NONE, payload };
        let mut answer = Vec::new();
        datagram::encode(&mut answer, message_type, asked.message_id, asked.token, &content);
        self.receive(socket, origin, &answer);
    }

    /// A wake that comes late, when all timers are due.
    fn wake(&mut self, after: Duration) {
        self.now += after;
        loop {
            self.sent.clear();
            self.proxy.handle_input(Input::Wake, self.now);
            if self.drain().is_none_or(|until| until > self.now) {
                return;
            }
        }
    }

    fn drain(&mut self) -> Option<Instant> {
        loop {
            match self.proxy.poll_output() {
                Output::Transmit(out) => {
                    self.sent.push((out.peer.local.socket, out.peer.remote, out.datagram.into()));
                }
                Output::Wait { until } => return until,
                Output::LookUp { .. } | Output::Event(_) | Output::Records(_) => {}
            }
        }
    }
}

fn request(
    message_type: MessageType,
    code: Code,
    message_id: u16,
    options: &[u8],
    payload: usize,
) -> Vec<u8> {
    let (mut bytes, payload) = (Vec::new(), vec![7; payload]);
    let mut encoded = Vec::new();
    let mut writer = OptionsWriter::new(&mut encoded);
    if !options.is_empty() {
        writer.push(OptionNumber::PROXY_URI, options);
    }
    let content = Content { code, options: writer.finish(), payload: &payload };
    datagram::encode(&mut bytes, message_type, message_id, b"\xA1\xA2", &content);
    bytes
}

/// What the dump says that `part` takes at the most, in bytes.
fn promised(config: &Config, part: &str) -> u64 {
    let (dump, prefix) = (config.dump(), format!("memory.{part} = "));
    let line =
        dump.lines().find_map(|line| line.strip_prefix(&*prefix)).unwrap_or_else(|| panic!("no {part}"));
    line.split_once("MiB").and_then(|(mebibytes, _)| mebibytes.parse::<u64>().ok()).expect("MiB") << 20
}

/// Grows a world and compares; the world is kept.
fn compare(
    name: &str,
    part: &str,
    (mut world, config): (World, Config),
    grow: impl FnOnce(&mut World),
) -> World {
    let Some(before) = resident() else { return world };
    grow(&mut world);
    let grown = resident().unwrap_or(before).saturating_sub(before);
    // What is remembered for repeats is a part of its own, as full as it may be here.
    let promised = promised(&config, part) + promised(&config, "remembered");
    println!("{name}: {} KiB of {} KiB", grown >> 10, promised >> 10);
    assert!(grown <= promised, "{name} takes {grown} bytes, more than the {promised} that are promised");
    world
}

#[test]
fn nothing_takes_more_than_check_says() {
    const COUNT: u32 = 5000;
    let (con, non) = (MessageType::Confirmable, MessageType::NonConfirmable);
    let count = format!("limits.fetches={COUNT}");
    let mut kept = Vec::new();
    for (name, nstart, records) in [
        ("requests under way", "upstream.nstart=65536", false),
        ("requests in a queue", "upstream.nstart=1", false),
        ("recorded requests", "upstream.nstart=65536", true),
    ] {
        let world = World::new(&[&count, nstart], records);
        kept.push(compare(name, "requests", world, |world| {
            let asked = request(con, Code::PUT, 1, b"", LONGEST);
            (0..COUNT + 100).for_each(|client| world.request(client, &asked));
            assert_eq!(world.proxy.occupancy().fetches, COUNT as usize);
            // All copies, and a second attempt where there is a budget for it.
            (0..5).for_each(|_| world.wake(Duration::from_secs(5)));
        }));
    }

    let world = World::new(&[&count, "upstream.nstart=65536"], false);
    kept.push(compare("separate responses", "requests", world, |world| {
        let asked = request(con, Code::GET, 1, b"", 0);
        for client in 0..COUNT {
            world.request(client, &asked);
            let sent = std::mem::take(&mut world.sent);
            // The repeat has the request acknowledged.
            world.request(client, &asked);
            world.sent = sent;
            world.answer(MessageType::Acknowledgement, &[7; LONGEST]);
        }
        assert_eq!(world.proxy.occupancy().responses, COUNT as usize);
        world.wake(Duration::from_secs(3));
    }));

    for (name, size) in [("short answers to repeat", 1), ("long answers to repeat", 1000)] {
        kept.push(compare(name, "responses", World::new(&[], false), |world| {
            for number in 0..80_000_u32 / (1 + size as u32 / 100) {
                world.request(number % 1000, &request(con, Code::GET, (number / 1000) as u16, b"", 0));
                world.answer(MessageType::Acknowledgement, &vec![7; size]);
            }
        }));
    }

    let world = World::new(&["limits.origins=1000"], false);
    kept.push(compare("origins", "origins", world, |world| {
        for round in 0..55 {
            for origin in 0..1000_u32 {
                let uri = format!("coap://10.7.{}.{}", origin / 256, origin % 256);
                world.request(origin, &request(con, Code::GET, round, uri.as_bytes(), 0));
                world.answer(MessageType::Acknowledgement, b"x");
            }
        }
    }));

    kept.push(compare("clients", "clients", World::new(&[], false), |world| {
        for client in 0..30_000 {
            world.request(client, &request(non, Code::GET, 1, b"", 0));
            world.answer(non, b"x");
        }
    }));

    // No name server answers here: each name is looked up for one request.
    let world = World::new(&["limits.names=2000", &count], false);
    kept.push(compare("names", "names", world, |world| {
        for name in 0..2000 {
            let uri = format!("coap://{name:0>63}.{:a>63}.{:b>63}", "", "");
            world.request(name, &request(con, Code::GET, 1, uri.as_bytes(), 0));
        }
    }));
    assert!(!kept.is_empty(), "nothing was given back before");
}
