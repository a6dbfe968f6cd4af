//! The proxy's settings of a storm, out of its seed.

use std::net::SocketAddr;
use std::time::Duration;

use coapway_endpoint::{EndpointParameters, Estimator, Nstart, RtoParameters, TransmissionParameters};
use coapway_message::uri::{Authority, Host};
use coapway_proxy::{
    CopyIds, Limits, Parameters, PostGuard, RetransmitParameters, RetryParameters, TokenPolicy,
    UpstreamParameters,
};
use coapway_relay::{Forward, Route, Upstream, UpstreamId};

use super::{DISCREET, STEADY, parsed};
use crate::sockets::LISTENER;

/// All settings.
pub(super) fn parameters(random: &mut fastrand::Rng) -> Parameters {
    let mut apart = random.clone();
    let mut usual = upstream(random);
    usual.retransmit = retransmit(&mut apart);
    Parameters {
        downstream: downstream(random),
        upstreams: vec![usual, UpstreamParameters { deduplicates: true, ..usual }, usual],
        relay: relay(random),
        answer_within: one_in(random, 4).then(|| Duration::from_secs(random.u64(1..20))),
        patience: coapway_proxy::Patience::Off,
        limits: Limits::default(),
    }
}

/// The same promises, told in another order.
pub(super) fn reorder(parameters: &mut Parameters, random: &mut fastrand::Rng) {
    let Parameters { upstreams, relay, limits, .. } = parameters;
    if random.bool() {
        upstreams.swap(1, 2);
        relay.upstreams.swap(1, 2);
        relay.routes.iter_mut().for_each(|route| route.upstream = UpstreamId(3 - route.upstream.0));
    }
    if random.bool() {
        let further = Host::Name("further.example".into());
        upstreams.push(upstreams[0]);
        relay.upstreams.push(Upstream {
            name: "further".into(),
            authority: Some(Authority { host: further, port: 5683 }),
        });
    }
    if random.bool() {
        relay.upstreams[1].name = "renamed".into();
    }
    if random.bool() {
        limits.origins = random.usize(4..10);
        upstreams.iter_mut().for_each(|upstream| upstream.queue = random.usize(1..100));
    }
}

fn one_in(random: &mut fastrand::Rng, n: u8) -> bool {
    random.u8(0..n) == 0
}

fn choice<T: Copy>(random: &mut fastrand::Rng, choices: &[T], usual: T) -> T {
    random.choice(choices).copied().unwrap_or(usual)
}

/// Towards origins.
fn upstream(random: &mut fastrand::Rng) -> UpstreamParameters {
    let nstarts = [Nstart::Fixed(1), Nstart::Fixed(4), Nstart::Auto { max: 1024 }];
    let guards = [PostGuard::None, PostGuard::None, PostGuard::Fingerprint, PostGuard::RequestTag];
    UpstreamParameters {
        nstart: choice(random, &nstarts, Nstart::Fixed(1)),
        rto: RtoParameters {
            estimator: if random.bool() {
                Estimator::P95
            } else {
                choice(random, &Estimator::ALL, Estimator::Fixed)
            },
            ..RtoParameters::default()
        },
        queue: if one_in(random, 4) { 2 } else { 4096 },
        max_wait: Duration::from_secs(random.u64(5..60)),
        source_ports: random.u32(1..4),
        probing_rate: choice(random, &[None, Some(1.0), Some(100.0)], None),
        token: choice(random, &[TokenPolicy::Fresh, TokenPolicy::Preserve], TokenPolicy::Fresh),
        post_guard: choice(random, &guards, PostGuard::None),
        post_guard_window: Duration::from_secs(random.u64(1..30)),
        retry: RetryParameters { max_attempts: random.u32(1..=3), ..RetryParameters::default() },
        ..UpstreamParameters::default()
    }
}

/// How copies are told apart, drawn apart.
fn retransmit(random: &mut fastrand::Rng) -> RetransmitParameters {
    let ids = [CopyIds::Same, CopyIds::Same, CopyIds::FreshSafe, CopyIds::FreshIdempotent];
    // What is drawn first of the same generator is drawn for other settings as well.
    let mut random = fastrand::Rng::with_seed(random.u64(..) ^ 1);
    RetransmitParameters { mid: choice(&mut random, &ids, CopyIds::Same), ..RetransmitParameters::default() }
}

/// Towards clients: the product's own defaults, mostly.
fn downstream(random: &mut fastrand::Rng) -> EndpointParameters {
    let nstarts =
        [Nstart::Auto { max: 1024 }, Nstart::Auto { max: 1024 }, Nstart::Fixed(1), Nstart::Fixed(3)];
    EndpointParameters {
        transmission: TransmissionParameters {
            ack_timeout: Duration::from_secs(1),
            ack_random_factor: 1.2,
            retry_jitter: 0.1,
            max_retransmit: 2,
        },
        max_wait: Duration::from_secs(10),
        nstart: choice(random, &nstarts, Nstart::Auto { max: 1024 }),
        ..EndpointParameters::default()
    }
}

fn relay(random: &mut fastrand::Rng) -> coapway_relay::Parameters {
    let upstream = |name: &str, address: SocketAddr| Upstream {
        name: name.into(),
        authority: Some(Authority { host: Host::Address(address.ip()), port: address.port() }),
    };
    let trusted = ["10.1.0.0/16".parse().expect("a network")];
    coapway_relay::Parameters {
        upstreams: vec![
            Upstream { name: "default".into(), authority: None },
            upstream("steady", parsed(STEADY)),
            upstream("discreet", parsed(DISCREET)),
        ],
        routes: vec![Route {
            host: None,
            path: vec![(*b"discreet").into()],
            upstream: UpstreamId(2),
            strip: random.bool(),
        }],
        forward: Forward::Open,
        own: vec![LISTENER],
        trusted: if random.bool() { trusted.into() } else { Vec::new() },
        client_rate: choice(random, &[0, 1, 1000, 1000], 1000),
        ..coapway_relay::Parameters::default()
    }
}
