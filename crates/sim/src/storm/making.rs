//! What a storm is made of, out of its seed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Estimator, Nstart, RtoParameters, TransmissionParameters};
use coapway_message::uri::{Authority, Host};
use coapway_message::{Code, Method};
use coapway_proxy::{Limits, Parameters, UpstreamParameters};
use coapway_relay::{Forward, Route, Upstream, UpstreamId};
use coapway_time::Instant;

use crate::actor::{Actor, Puppet};
use crate::client::{Client, Request, Target};
use crate::network::{Link, stream};
use crate::origin::{Memory, Mood, Origin};
use crate::sockets::LISTENER;
use crate::world::{Plan, World};

const CLIENTS: u32 = 5;
const REQUESTS: u32 = 8;

/// Deduplicates, and the settings say so.
const STEADY: &str = "10.2.0.1:5683";
/// Deduplicates; the settings do not know.
const DISCREET: &str = "10.2.0.2:5683";
/// Executes each copy.
const FORGETFUL: &str = "10.2.0.3:5683";
/// A host without a server.
const CLOSED: &str = "10.2.0.4:5683";
/// Sends noise and forgeries.
pub(super) const STRANGER: &str = "10.3.0.1:5683";
/// Nobody has this address.
const NOWHERE: &str = "10.2.0.99:5683";

/// The world of this seed, before anything happened.
pub fn world(seed: u64) -> World {
    let mut random = fastrand::Rng::with_seed(stream(seed, &["storm"]));
    let plan = plan(seed, &mut random);
    let mut world = World::new(plan);
    let rush = Duration::from_millis(*random.choice(&[500, 5_000, 60_000]).unwrap_or(&500));
    for number in 1..=CLIENTS {
        let planned = requests(number, rush, &mut random);
        let address = SocketAddr::new([10, 1, 0, number as u8].into(), 40_000);
        world.add(Actor::Client(Client::new(&format!("client{number}"), address, LISTENER, planned, seed)));
    }
    world.add(Actor::Puppet(Puppet::new("stranger", parsed(STRANGER))));
    let answers = [0, 0, 50, 300, 300, 1500, 3000].map(|millis| Mood::Answers(Duration::from_millis(millis)));
    let others = [
        Mood::Answers(Duration::from_secs(random.u64(2..40))),
        Mood::Refuses(Code::NOT_FOUND),
        Mood::Forgets,
        Mood::Ignores,
        Mood::Resets,
        Mood::Babbles,
        Mood::Reboots,
    ];
    let moods: Vec<_> = answers.into_iter().chain(others).collect();
    let mut origin = |name, address, memory| {
        world.add(Actor::Origin(Origin::new(name, parsed(address), memory, &moods, seed)));
    };
    origin("steady", STEADY, Memory::Deduplicates);
    origin("discreet", DISCREET, Memory::Deduplicates);
    origin("forgetful", FORGETFUL, Memory::None);
    origin("closed", CLOSED, Memory::None);
    world.network_mut().close(parsed(CLOSED));
    if random.u8(0..3) == 0 {
        let host = world.proxy_host();
        let from = Instant::ZERO + Duration::from_secs(random.u64(0..60));
        world.network_mut().set_outage(host, from, from + Duration::from_secs(random.u64(1..20)));
    }
    world
}

fn requests(client: u32, rush: Duration, random: &mut fastrand::Rng) -> Vec<Request> {
    let mut requests: Vec<_> = (0..REQUESTS)
        .map(|number| Request {
            at: Instant::from_micros(random.u64(0..rush.as_micros() as u64)),
            key: client * 100 + number,
            method: Method::ALL[random.usize(0..Method::ALL.len())],
            confirmable: random.u8(0..4) > 0,
            target: target(random),
            patience: Duration::from_secs(random.u64(5..100)),
        })
        .collect();
    requests.sort_by_key(|request| request.at);
    requests
}

fn target(random: &mut fastrand::Rng) -> Target {
    let uri = |authority: &str| Target::Uri(format!("coap://{authority}/t"));
    match random.u8(0..20) {
        0..6 => uri(STEADY),
        6..9 => uri(DISCREET),
        9..12 => uri(FORGETFUL),
        12 => uri(CLOSED),
        13 => uri(NOWHERE),
        14 => uri("steady.example"),
        15 => uri("unknown.example"),
        16 => uri("slow.example"),
        17 => Target::Path(vec!["nothing", "here"]),
        _ => Target::Path(vec!["discreet", "t"]),
    }
}

fn plan(seed: u64, random: &mut fastrand::Rng) -> Plan {
    let link = Link {
        delay: Duration::from_millis(random.u64(0..200)),
        jitter: Duration::from_millis(random.u64(0..400)),
        loss: 0.25,
        duplication: 0.25,
        reordering: 0.25,
    };
    let usual = UpstreamParameters {
        nstart: *random
            .choice(&[Nstart::Fixed(1), Nstart::Fixed(4), Nstart::Auto { max: 1024 }])
            .unwrap_or(&Nstart::Fixed(1)),
        rto: RtoParameters {
            estimator: if random.bool() { Estimator::P95 } else { Estimator::Fixed },
            ..RtoParameters::default()
        },
        queue: if random.u8(0..4) == 0 { 2 } else { 4096 },
        max_wait: Duration::from_secs(random.u64(5..60)),
        source_ports: random.u32(1..4),
        ..UpstreamParameters::default()
    };
    let upstream = |name: &str, address| Upstream {
        name: name.into(),
        authority: Some(Authority {
            host: Host::Address(parsed(address).ip()),
            port: parsed(address).port(),
        }),
    };
    let relay = coapway_relay::Parameters {
        upstreams: vec![
            Upstream { name: "default".into(), authority: None },
            upstream("steady", STEADY),
            upstream("discreet", DISCREET),
        ],
        routes: vec![Route {
            host: None,
            path: vec![(*b"discreet").into()],
            upstream: UpstreamId(2),
            strip: random.bool(),
        }],
        forward: Forward::Open,
        own: vec![LISTENER],
        ..coapway_relay::Parameters::default()
    };
    let parameters = Parameters {
        downstream: downstream(),
        upstreams: vec![usual, UpstreamParameters { deduplicates: true, ..usual }, usual],
        relay,
        answer_within: None,
        limits: Limits::default(),
    };
    let names = [
        ("steady.example", vec![parsed(STEADY).ip()], 50),
        ("slow.example", vec![parsed(CLOSED).ip(), parsed(DISCREET).ip()], random.u64(100..20_000)),
    ];
    let names: BTreeMap<_, _> = names
        .map(|(name, addresses, millis)| (name.to_owned(), (addresses, Duration::from_millis(millis))))
        .into();
    let lateness = Duration::from_millis(if random.u8(0..4) == 0 { 50 } else { 0 });
    Plan { parameters, names, link, lateness, seed }
}

/// The product's own defaults towards clients.
fn downstream() -> EndpointParameters {
    EndpointParameters {
        transmission: TransmissionParameters {
            ack_timeout: Duration::from_secs(1),
            ack_random_factor: 1.2,
            retry_jitter: 0.1,
            max_retransmit: 2,
        },
        max_wait: Duration::from_secs(10),
        ..EndpointParameters::default()
    }
}

pub(super) fn parsed(address: &str) -> SocketAddr {
    address.parse().expect("the addresses of this file are addresses")
}
