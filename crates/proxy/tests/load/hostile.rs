//! A host that sends whatever it likes as fast as it can, for ten minutes: memory stays within a bound that is known
//! beforehand, and everybody else is answered.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Content, Datagram, MessageType, OptionNumber, OptionsWriter, datagram};
use coapway_proxy::{Limits, Occupancy, Parameters};
use coapway_relay::Forward;
use coapway_time::Instant;

use crate::bench::{Bench, Heard, answer, origins, parameters};

const SECONDS: u32 = 600;
/// Datagrams a second of the hostile host; two thirds of them are requests.
const RATE: u32 = 3000;
/// Requests a second of all others together.
const GOOD: u32 = 20;
const MEMORY: usize = 8 << 20;
const LIMITS: Limits = Limits { fetches: 1024, origins: 128, names: 16, clients: 1024, hints: 64 };

/// What `coapway check` says that this takes at the most, but for the sockets: what is remembered with an
/// eighth for the allocator, requests, origins, clients with the Message IDs towards them, hints.
fn bound() -> i64 {
    let remembered = MEMORY + MEMORY / 8 + (1 << 20);
    let requests = LIMITS.fetches * (704 + 1088 + 2176 + 2 * (640 + 2176));
    let responses = 4096 * (2176 + 512);
    let origins = LIMITS.origins * (1024 + 64 * 32 + 896);
    // One host is as many peers as it has ports.
    let clients = LIMITS.clients * 96 + (1 << 16) * 896;
    (remembered + requests + responses + origins + clients + LIMITS.hints * 640 + (1 << 20)) as i64
}

/// `/s` leads to an origin that answers, `/t` to one that does not, `/u` to one that needs a second; forwarding is
/// on. Who is in 10.1.0.0/16 is believed.
fn settings() -> Parameters {
    let mut relay = origins(b"stu");
    relay.forward = Forward::Open;
    let mut settings = parameters(relay);
    settings.relay.trusted = vec!["10.1.0.0/16".parse().expect("a network")];
    settings.relay.client_rate = coapway_relay::Parameters::default().client_rate;
    settings.downstream.duplicates.memory = MEMORY;
    settings.downstream.max_wait = Duration::from_secs(10);
    settings.limits = LIMITS;
    settings
}

#[test]
fn ten_minutes_of_one_hostile_host_take_bounded_memory_and_nobody_elses_answer() {
    let answers = SocketAddr::from(([10, 2, 0, 1], 5683));
    let slow = SocketAddr::from(([10, 2, 0, 3], 5683));
    let body = [b'x'; 900];
    let mut bench = Bench::new(settings(), 1, move |asked| match asked.origin {
        origin if origin == answers => answer(&asked.request, b"1"),
        origin if origin == slow => answer(&asked.request, &body),
        _ => Vec::new(),
    });
    bench.round_trips.insert(slow, Duration::from_secs(1));
    let mut hostile = Hostile { random: fastrand::Rng::with_seed(7), last: (client(9), Vec::new()) };
    let mut good = Good::default();
    let (mut heap, mut peak, mut seen, mut fullest) = (0, 0, Vec::new(), 0);
    for until in (60..=SECONDS).step_by(60) {
        let counted = allocation_counter::measure(|| {
            for number in (until - 60) * RATE..until * RATE {
                bench.run_until(Instant::ZERO + Duration::from_secs(1) * number / RATE);
                let (from, bytes) = hostile.datagram(number);
                bench.ask(from, &bytes);
                if number.is_multiple_of(RATE / GOOD) {
                    good.ask(&mut bench);
                    let Occupancy { fetches, responses, .. } = bench.proxy.occupancy();
                    fullest = fullest.max(fetches + responses);
                }
                good.listen(&mut bench);
            }
        });
        peak = peak.max(heap + counted.bytes_max as i64);
        heap += counted.bytes_current;
        seen.push(heap);
        bench.proxy.check_invariants();
    }
    let end = bench.now + Duration::from_secs(1);
    bench.run_until(end);
    good.listen(&mut bench);
    println!("bytes after each minute: {seen:?}; at the most {peak} of {}", bound());
    println!("the slowest good answer took {:?}", good.slowest);
    assert_eq!((good.answered, good.wrong.first()), (GOOD * SECONDS, None));
    assert!(good.slowest < Duration::from_secs(1), "{:?}", good.slowest);
    // All that one site may hold, it held.
    let share = LIMITS.fetches / 8 * 7;
    assert!((share..LIMITS.fetches / 10 * 9).contains(&fullest), "{fullest} under way");
    assert!(peak <= bound(), "{peak} bytes, more than {}", bound());
    // It is as full as it gets after five minutes, when the first that was remembered is forgotten.
    let (first, last) = (seen[4], seen.iter().skip(5).max().expect("five more minutes"));
    assert!(*last <= first + first / 20, "{seen:?}");
    let (downstream, _) = bench.proxy.counters();
    for (what, count) in [
        ("dropped", downstream.dropped),
        ("malformed", downstream.malformed),
        ("duplicates", downstream.duplicates),
        ("forgotten", downstream.forgotten),
    ] {
        assert!(count > 0, "{what} is counted: {downstream:?}");
    }
    let over = bench.now + Duration::from_secs(300);
    bench.run_until(over);
    assert_eq!(bench.proxy.occupancy(), Occupancy::default());
}

/// Twenty clients; each asks once a second.
#[derive(Debug, Default)]
struct Good {
    asked: Vec<Instant>,
    answered: u32,
    /// Anything but 2.05 to who asked, once.
    wrong: Vec<Heard>,
    slowest: Duration,
}

impl Good {
    fn ask(&mut self, bench: &mut Bench) {
        let number = self.asked.len() as u32;
        self.asked.push(bench.now);
        let [a, b, c, d] = number.to_be_bytes();
        let [high, low] = ((number / GOOD) as u16).to_be_bytes();
        let request = [0x44, Code::GET.0, high, low, a, b, c, d, 0xB1, b's', 0x01, b'a'];
        bench.ask(client((number % GOOD) as u8), &request);
    }

    fn listen(&mut self, bench: &mut Bench) {
        for heard in std::mem::take(&mut bench.heard) {
            if heard.client.ip() == HOSTILE {
                continue;
            }
            let message = Datagram::parse(&heard.bytes).expect("well formed");
            if message.message_type == MessageType::Confirmable {
                let id = message.message_id;
                bench.ask(heard.client, &datagram::empty(MessageType::Acknowledgement, id));
            } else if message.content.code == Code::EMPTY {
                continue;
            }
            let number = message.token.try_into().map_or(u32::MAX, u32::from_be_bytes);
            let asked = self.asked.get(number as usize).copied();
            match asked.filter(|_| message.content.code == Code::CONTENT) {
                Some(asked) if heard.client == client((number % GOOD) as u8) => {
                    self.answered += 1;
                    self.slowest = self.slowest.max(heard.at.since(asked));
                }
                _ => self.wrong.push(heard),
            }
        }
    }
}

const HOSTILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 9));

fn client(number: u8) -> SocketAddr {
    ([10, 1, 0, number + 1], 40_000).into()
}

/// One host with all of its ports, which acknowledges nothing.
struct Hostile {
    random: fastrand::Rng,
    last: (SocketAddr, Vec<u8>),
}

impl Hostile {
    fn datagram(&mut self, number: u32) -> (SocketAddr, Vec<u8>) {
        let random = &mut self.random;
        let from = SocketAddr::new(HOSTILE, random.u16(1024..));
        let (id, token) = (random.u16(..), number.to_be_bytes());
        let mut garbage = vec![0; random.usize(..1200)];
        random.fill(&mut garbage);
        let con = MessageType::Confirmable;
        let path = |path: &str| (OptionNumber::URI_PATH, path.as_bytes().to_vec());
        let get = |token: &[u8], options: &[_]| message(con, Code::GET, id, token, options, &[]);
        let bytes = match number % 16 {
            0..3 => get(&token, &[path("s"), path(&number.to_string())]),
            3 => message(con, Code::POST, id, &token, &[path("s")], &garbage[..garbage.len().min(500)]),
            4 => get(&token, &[path("t"), path(&number.to_string())]),
            5 => get(&token, &[path("u"), path(&number.to_string())]),
            6 => message(MessageType::NonConfirmable, Code::GET, id, &token, &[path("s")], &[]),
            7 => {
                let [_, b, c, d] = random.u32(..).to_be_bytes();
                let host = Host::Address([10, 3 + b % 200, c, d].into());
                let uri = format!("coap://{}/x", Authority { host, port: random.u16(1024..) });
                get(&token, &[(OptionNumber::PROXY_URI, uri.into_bytes())])
            }
            8 => datagram::empty(con, id).to_vec(),
            9 => [&get(&token, &[path("s")])[..], &[0xFF]].concat(),
            10 => garbage,
            11 => {
                let kinds = [MessageType::Acknowledgement, MessageType::Reset];
                datagram::empty(kinds[usize::from(random.bool())], id).to_vec()
            }
            12 => message(con, Code::CONTENT, id, &token, &[], b"nobody asked"),
            13 => get(&garbage[..garbage.len().min(300)], &[path("s")]),
            14 => {
                get(&token, &[path("s"), (OptionNumber(65_003), garbage[..garbage.len().min(1000)].to_vec())])
            }
            _ => return self.last.clone(),
        };
        self.last = (from, bytes.clone());
        (from, bytes)
    }
}

/// Options in ascending order.
fn message(
    kind: MessageType,
    code: Code,
    id: u16,
    token: &[u8],
    options: &[(OptionNumber, Vec<u8>)],
    payload: &[u8],
) -> Vec<u8> {
    let (mut written, mut bytes) = (Vec::new(), Vec::new());
    let mut writer = OptionsWriter::new(&mut written);
    options.iter().for_each(|(number, value)| writer.push(*number, value));
    datagram::encode(&mut bytes, kind, id, token, &Content { code, options: writer.finish(), payload });
    bytes
}
