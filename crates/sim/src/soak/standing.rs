//! An hour with ten thousand exchanges outstanding all the time, towards origins that are slow or say
//! nothing at all. When it is over and the last lifetimes are, too, nothing is left.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::EndpointParameters;
use coapway_message::{Code, OptionNumber, OptionsWriter};
use coapway_proxy::{Limits, Listening, Occupancy, Parameters, UpstreamParameters};
use coapway_relay::{Forward, Upstream};
use coapway_time::Instant;

use super::stripped::Stripped;
use super::{Report, grouped, seconds};
use crate::sockets::LISTENER;

mod peers;

use peers::{Kind, Peers};

const MAX_WAIT: Duration = Duration::from_secs(300);
/// How often what is outstanding is counted and filled up.
const PACE: Duration = Duration::from_millis(10);
/// How often the proxy's parts are compared with each other, all of them.
const INSPECTION: Duration = Duration::from_secs(60);
/// `max_wait` on both legs, EXCHANGE_LIFETIME, and some seconds.
const LAST_LIFETIMES: Duration = Duration::from_secs(300 + 100 + 247 + 10);
const CLIENTS: u32 = 512;

/// What is to be kept up.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// Exchanges with origins, at any time.
    pub exchanges: usize,
    /// For how long.
    pub duration: Duration,
}

impl Default for Standing {
    fn default() -> Self {
        Self { exchanges: 10_000, duration: Duration::from_secs(3600) }
    }
}

/// Keeps it up, ends it, and looks at what is left.
pub fn run(standing: Standing) -> Report {
    let Standing { exchanges, duration } = standing;
    // Between two counts some end, never more than were asked between two.
    let enough = exchanges + exchanges / 50 + 10;
    let at_once = exchanges.div_ceil(1000);
    let listening = Listening { events: true, records: None, late: false };
    let mut world = Stripped::new(parameters(), listening, Peers::default());
    let mut seen = Seen::default();
    let mut full_since = None;
    let mut inspect = Instant::ZERO;
    while full_since.is_none_or(|since| world.post.now() < since + duration) {
        let now = world.post.now();
        let occupancy = world.proxy.occupancy();
        for _ in (occupancy.exchanges..enough).take(at_once) {
            ask(&mut world);
        }
        if occupancy.exchanges >= exchanges {
            full_since.get_or_insert(now);
        }
        if full_since.is_some() {
            seen.note(&occupancy);
        }
        if now >= inspect {
            world.proxy.check_invariants();
            inspect = now + INSPECTION;
        }
        world.run_until(now + PACE);
    }
    let at_the_end = world.proxy.occupancy();
    world.run_until(world.post.now() + LAST_LIFETIMES);
    world.proxy.check_invariants();
    let mut report = report(standing, &seen, &at_the_end, &world);
    forget(&mut world, &mut report);
    report
}

/// Messages older than their lifetime make room for new ones, a few at a time; until then they are
/// still counted.
fn forget(world: &mut Stripped<Peers>, report: &mut Report) {
    let remembered = world.proxy.occupancy().remembered;
    let further = remembered.div_ceil(4) + 1;
    for number in 0..further as u32 {
        let [_, _, high, low] = number.to_be_bytes();
        let client = SocketAddr::new([10, 4, 0, (number >> 16) as u8].into(), 40_000);
        world.post.send(Duration::ZERO, client, LISTENER, vec![0x40, Code::GET.0, high, low]);
    }
    world.run_until(world.post.now() + Duration::from_secs(1));
    let left = world.proxy.occupancy().remembered.saturating_sub(further);
    report.row("messages still remembered then / after further traffic", format!("{remembered} / {left}"));
    report.must(left == 0, || format!("{left} messages are remembered for too long"));
}

/// The least and most there was of everything while it was full.
#[derive(Debug, Default)]
struct Seen {
    least: Option<usize>,
    most: Occupancy,
}

impl Seen {
    fn note(&mut self, occupancy: &Occupancy) {
        self.least = Some(self.least.map_or(occupancy.exchanges, |least| least.min(occupancy.exchanges)));
        self.most.exchanges = self.most.exchanges.max(occupancy.exchanges);
        self.most.queued = self.most.queued.max(occupancy.queued);
        self.most.remembered = self.most.remembered.max(occupancy.remembered);
    }
}

fn ask(world: &mut Stripped<Peers>) {
    let number = world.peers.begin();
    let [a, b, c, d] = number.to_be_bytes();
    let uri = format!("coap://{}/t", Kind::origin(number));
    let mut buffer = Vec::new();
    let mut options = OptionsWriter::new(&mut buffer);
    options.push(OptionNumber::PROXY_URI, uri.as_bytes());
    let options = options.finish();
    let [high, low] = ((number / CLIENTS) as u16).to_be_bytes();
    let mut bytes = vec![0x44, Code::GET.0, high, low, a, b, c, d];
    bytes.extend_from_slice(options.as_encoded());
    world.post.send(Duration::ZERO, client(number), LISTENER, bytes);
}

fn client(number: u32) -> SocketAddr {
    let [_, _, high, low] = (number % CLIENTS).to_be_bytes();
    SocketAddr::new([10, 1, high, low].into(), 40_000)
}

fn parameters() -> Parameters {
    let relay = coapway_relay::Parameters {
        upstreams: vec![Upstream { name: "default".into(), authority: None }],
        forward: Forward::Open,
        own: vec![LISTENER],
        trusted: vec!["10.0.0.0/8".parse().expect("a network")],
        client_rate: 0,
        ..coapway_relay::Parameters::default()
    };
    Parameters {
        downstream: EndpointParameters::default(),
        upstreams: vec![UpstreamParameters { max_wait: MAX_WAIT, ..UpstreamParameters::default() }],
        relay,
        answer_within: None,
        patience: coapway_proxy::Patience::Off,
        limits: Limits::default(),
    }
}

fn report(standing: Standing, seen: &Seen, at_the_end: &Occupancy, world: &Stripped<Peers>) -> Report {
    let Standing { exchanges, duration } = standing;
    let (downstream, upstream) = world.proxy.counters();
    let occupancy = world.proxy.occupancy();
    let peers = &world.peers;
    let title = format!("{} exchanges outstanding for {}", grouped(exchanges as u64), seconds(duration));
    let mut report = Report::new(title);
    report.row("requests", grouped(peers.asked()));
    report.row("answered 2.05 by slow origins", grouped(peers.answered(Code::CONTENT)));
    report.row("answered 5.04 for mute and silent ones", grouped(peers.answered(Code::GATEWAY_TIMEOUT)));
    report.row(
        "answered 5.03 for silent ones taken to be down",
        grouped(peers.answered(Code::SERVICE_UNAVAILABLE)),
    );
    let least = seen.least.unwrap_or_default();
    report.row("exchanges outstanding, least and most", format!("{least} to {}", seen.most.exchanges));
    report.row("most requests queued", grouped(seen.most.queued as u64));
    report.row("most messages remembered", grouped(seen.most.remembered as u64));
    report.row("retransmissions towards origins", grouped(upstream.retransmissions));
    report.must(least >= exchanges, || format!("only {least} exchanges were outstanding"));
    report.must(at_the_end.exchanges >= exchanges, || format!("only {} at the end", at_the_end.exchanges));
    let nothing = Occupancy { remembered: occupancy.remembered, ..Occupancy::default() };
    report.must(occupancy == nothing, || format!("left over: {occupancy:?}"));
    report.must(world.next().is_none(), || "something is still due".to_owned());
    peers.judge(&mut report, downstream, upstream);
    report
}
