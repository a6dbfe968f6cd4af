//! What one request takes on the heap, byte by byte, against what `check` counts for it: neither less, nor so
//! much more that the printed bound says nothing.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use coapway_config::{Config, Overrides};
use coapway_endpoint::{Local, Seed};
use coapway_message::{Code, Content, MessageType, OptionNumber, OptionsWriter, datagram};
use coapway_proxy::{Input, Listening, Output, Proxy, Sampling, SocketRole};
use coapway_time::Instant;

/// One more than a power of two: tables have just doubled.
const COUNT: u32 = 4097;
/// As many as the resolver keeps.
const ADDRESSES: u8 = 32;

struct World {
    proxy: Proxy,
    config: Config,
    now: Instant,
    lookups: Vec<u64>,
}

impl World {
    fn new(records: bool) -> Self {
        let set = [
            &format!("limits.fetches={COUNT}"),
            "dedup.memory=1MiB",
            "forward.enabled=true",
            "upstream.nstart=65536",
            "upstream.queue=1000000",
            "upstream.max_wait=600s",
            "upstream.retry.max_attempts=1",
        ];
        let record = records.then(|| "-".to_owned());
        let set = set.map(str::to_owned).to_vec();
        let overrides = Overrides { set, record, ..Overrides::default() };
        let none = std::iter::empty::<(String, String)>();
        let config = Config::load(None, none, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
        let listening = Listening { events: false, records: records.then_some(Sampling::ALL), late: records };
        let proxy = Proxy::new(config.parameters(), listening, Seed::from_number(1));
        Self { proxy, config, now: Instant::ZERO, lookups: Vec::new() }
    }

    fn give(&mut self, input: Input<'_>) {
        self.proxy.handle_input(input, self.now);
        loop {
            match self.proxy.poll_output() {
                Output::LookUp { lookup, .. } => self.lookups.push(lookup),
                Output::Wait { .. } => return,
                Output::Transmit(_) | Output::Event(_) | Output::Records(_) => {}
            }
        }
    }

    fn request(&mut self, client: u32, bytes: &[u8]) {
        let [_, b, c, d] = client.to_be_bytes();
        let remote = SocketAddr::from(([127, b, c, d], 5683));
        let local = Local { socket: SocketRole::Listener(0).socket(), address: None };
        self.give(Input::Datagram { local, remote, bytes, truncated: false });
    }

    /// All look-ups end with as many addresses as are kept.
    fn resolve(&mut self) {
        let addresses: Vec<_> = (1..=ADDRESSES).map(|last| IpAddr::from([192, 0, 2, last])).collect();
        for lookup in std::mem::take(&mut self.lookups) {
            self.give(Input::Resolved { lookup, addresses: &addresses, ttl: None });
        }
    }

    /// What `check` counts, in bytes, for each request, and for what is remembered for repeats.
    fn counted(&self) -> (u64, u64) {
        let dump = self.config.dump();
        let line = |part: &str| {
            let prefix = format!("memory.{part} = ");
            let line =
                dump.lines().find(|line| line.starts_with(&prefix)).unwrap_or_else(|| panic!("no {part}"));
            line[prefix.len()..].to_owned()
        };
        let each = line("requests");
        let each = each.split("limits.fetches of ").nth(1).and_then(|rest| rest.split(' ').next());
        let remembered = line("remembered");
        let remembered = remembered.split("MiB").next().and_then(|number| number.parse::<u64>().ok());
        let each = each.and_then(|number| number.parse().ok()).expect("bytes of a request");
        (each, remembered.expect("MiB") << 20)
    }
}

fn by_name(message_id: u16, path: &[u8], payload: usize) -> Vec<u8> {
    let mut options = Vec::new();
    let mut writer = OptionsWriter::new(&mut options);
    writer.push(OptionNumber::URI_HOST, b"a.example");
    path.chunks(250).for_each(|segment| writer.push(OptionNumber::URI_PATH, segment));
    writer.push(OptionNumber::PROXY_SCHEME, b"coap");
    let payload = vec![7; payload];
    let content = Content { code: Code::PUT, options: writer.finish(), payload: &payload };
    let mut bytes = Vec::new();
    datagram::encode(&mut bytes, MessageType::Confirmable, message_id, b"\xA1\xA2", &content);
    assert!((1990..=2048).contains(&bytes.len()), "{} bytes", bytes.len());
    bytes
}

/// Requests by a name with many addresses, the longest there are.
fn fill(records: bool, path: &[u8], payload: usize) {
    let mut world = World::new(records);
    let (each, remembered) = world.counted();
    let asked = by_name(1, path, payload);
    let grown = allocation_counter::measure(|| {
        for client in 0..COUNT {
            world.request(client, &asked);
            world.resolve();
        }
        (0..6).for_each(|_| {
            world.now += Duration::from_secs(5);
            world.give(Input::Wake);
        });
    });
    assert_eq!(world.proxy.occupancy().exchanges, COUNT as usize);
    let (counted, took) = (each * u64::from(COUNT), grown.bytes_max);
    println!("{} bytes each of {each}", took / u64::from(COUNT));
    assert!(took <= counted + remembered, "{took} bytes, {counted} counted");
    assert!(counted <= took + took / 2, "{counted} bytes counted for {took}");
}

#[test]
fn a_request_takes_no_more_than_is_counted_and_not_much_less() {
    fill(false, b"a", 1990);
}

#[test]
fn a_request_with_its_record_takes_no_more_than_is_counted_and_not_much_less() {
    // Each byte of the path takes three in the record.
    fill(true, &[0xFF; 1990], 0);
}
