//! coapway's own client against foreign origins, directly and through the proxy.

use std::process::Output;

use coapway_interop::aiocoap::text_of;
use coapway_interop::coapway::{self, Proxy};
use coapway_interop::exchange::Method;
use coapway_interop::peers::{self, Peer};
use coapway_interop::process::{Family, free_port};
use coapway_interop::stack::{Origin, Stack};

const VERBS: [Method; 4] = [Method::Get, Method::Post, Method::Put, Method::Delete];

#[test]
fn every_verb_reaches_aiocoap() {
    if !peers::present(&[Peer::Aiocoap]) {
        return;
    }
    let origin = Origin::start(Stack::Aiocoap);
    let Origin::Aiocoap(aiocoap) = &origin else { unreachable!("started as aiocoap") };
    for (family, proxy) in ways() {
        let proxy = Chosen::new(proxy.as_ref(), family);
        for method in VERBS {
            for confirmable in [true, false] {
                let key = format!("{family:?}-{}-{}-{confirmable}", proxy.name(), method.name());
                let resource = if method.has_payload() { "echo" } else { "size/20" };
                let uri = format!("coap://{}/{resource}?key={key}", family.address(origin.port()));
                let mut arguments = vec![method.name(), &uri];
                if !confirmable {
                    arguments.push("--non");
                }
                let payload = b"said by coapway's own client";
                if method.has_payload() {
                    arguments.extend(["--payload", "said by coapway's own client", "--content-format", "60"]);
                }
                let output = proxy.run(&arguments);
                assert!(output.status.success(), "{arguments:?}: {output:?}");
                let expected = if method.has_payload() { payload.to_vec() } else { text_of(20) };
                assert_eq!(trimmed(&output), expected, "{arguments:?}: {output:?}");

                let all = aiocoap.seen(&key);
                let [seen] = &all[..] else { panic!("{arguments:?}: the origin saw {all:?}") };
                assert_eq!(seen.method.to_lowercase(), method.name());
                assert_eq!(seen.content_format, method.has_payload().then_some(60));
                if matches!(proxy, Chosen::None) {
                    assert_eq!(seen.kind, if confirmable { "CON" } else { "NON" });
                }
            }
        }
    }
}

#[test]
fn verbs_work_on_a_resource_of_libcoap() {
    if !peers::present(&[Peer::LibcoapServer]) {
        return;
    }
    let origin = Origin::start(Stack::Libcoap);
    for (place, (family, proxy)) in ways().into_iter().enumerate() {
        let proxy = Chosen::new(proxy.as_ref(), family);
        let uri = format!("coap://{}/made-{place}", family.address(origin.port()));
        let succeeds = |arguments: &[&str], expected: &[u8]| {
            let output = proxy.run(arguments);
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            assert_eq!(trimmed(&output), expected, "{arguments:?}: {output:?}");
        };
        succeeds(&["put", &uri, "--payload", "first"], b"");
        succeeds(&["get", &uri], b"first");
        succeeds(&["post", &uri, "--payload", "second"], b"");
        succeeds(&["get", &uri], b"second");
        let fixed = format!("coap://{}/example_data", family.address(origin.port()));
        fails_with(&proxy.run(&["post", &fixed, "--payload", "third"]), "4.05");
        succeeds(&["delete", &uri], b"");
        fails_with(&proxy.run(&["get", &uri]), "4.04");
    }
}

#[test]
fn errors_of_an_origin_and_of_the_proxy_are_told() {
    if !peers::present(&[Peer::Aiocoap]) {
        return;
    }
    let origin = Origin::start(Stack::Aiocoap);
    let address = Family::V4.address(origin.port());
    let proxy = Proxy::forward(&[]);
    let proxy = Chosen::new(Some(&proxy), Family::V4);
    fails_with(&proxy.run(&["get", &format!("coap://{address}/status/5.03")]), "5.03");
    let closed = Family::V4.address(free_port());
    fails_with(&proxy.run(&["get", &format!("coap://{closed}/x")]), "5.02");
}

#[test]
fn options_reach_the_origin() {
    if !peers::present(&[Peer::Aiocoap]) {
        return;
    }
    let origin = Origin::start(Stack::Aiocoap);
    let Origin::Aiocoap(aiocoap) = &origin else { unreachable!("started as aiocoap") };
    for (family, proxy) in ways() {
        let proxy = Chosen::new(proxy.as_ref(), family);
        let key = format!("{family:?}-{}", proxy.name());
        let uri = format!("coap://{}/size/3?key={key}", family.address(origin.port()));
        let output = proxy.run(&["get", &uri, "--option", "65000=abc", "--option", "65000=d"]);
        assert!(output.status.success(), "{output:?}");
        let all = aiocoap.seen(&key);
        let [seen] = &all[..] else { panic!("the origin saw {all:?}") };
        let values: Vec<_> = seen.options.iter().filter(|(number, _)| *number == 65_000).collect();
        assert_eq!(values, [&(65_000, b"abc".to_vec()), &(65_000, b"d".to_vec())]);
    }
}

#[test]
fn ping_finds_who_is_there() {
    let proxy = Proxy::forward(&[]);
    for family in Family::ALL {
        let output = coapway::run(&["ping", &format!("coap://{}", proxy.address(family))]);
        assert!(output.status.success(), "{output:?}");
    }
    for stack in [Stack::Libcoap, Stack::Aiocoap] {
        if peers::present(&[stack.origin()]) {
            let origin = Origin::start(stack);
            let output = coapway::run(&["ping", &format!("coap://{}", Family::V4.address(origin.port()))]);
            assert!(output.status.success(), "{stack:?}: {output:?}");
        }
    }
    let output = coapway::run(&["ping", &format!("coap://{}", Family::V4.address(free_port()))]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// Each address family, without a proxy and with one.
fn ways() -> Vec<(Family, Option<Proxy>)> {
    let with = Family::ALL.map(|family| (family, Some(Proxy::forward(&[]))));
    Family::ALL.map(|family| (family, None)).into_iter().chain(with).collect()
}

enum Chosen {
    None,
    Proxy(String),
}

impl Chosen {
    fn new(proxy: Option<&Proxy>, family: Family) -> Self {
        proxy.map_or(Self::None, |proxy| Self::Proxy(format!("coap://{}", proxy.address(family))))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::None => "direct",
            Self::Proxy(_) => "proxy",
        }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        match self {
            Self::None => coapway::run(arguments),
            Self::Proxy(uri) => coapway::run(&[arguments, &["--proxy", uri]].concat()),
        }
    }
}

/// Standard output without the line end that a terminal likes.
fn trimmed(output: &Output) -> Vec<u8> {
    output.stdout.trim_ascii_end().to_vec()
}

fn fails_with(output: &Output, code: &str) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = [&output.stdout[..], &output.stderr[..]].concat();
    assert!(String::from_utf8_lossy(&told).contains(code), "{output:?} does not name {code}");
}
