//! Methods, codes, types, sizes and address families between two stacks in both roles, forward and reverse.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use coapway_interop::aiocoap::{AiocoapOrigin, fingerprint, text_of};
use coapway_interop::coapway::Proxy;
use coapway_interop::datagram::option;
use coapway_interop::exchange::{Answer, Method, Request, Via};
use coapway_interop::libcoap::LibcoapOrigin;
use coapway_interop::peers::{self, Peer};
use coapway_interop::process::Family;
use coapway_interop::stack::{Client, Origin, Stack};

/// Around the one-byte and two-byte length extensions, and the largest payload that needs no blocks.
const SIZES: [usize; 6] = [0, 1, 13, 269, 1023, 1024];

/// All codes that RFC 7252, RFC 8132, RFC 8516 and RFC 8768 define for a whole response, and three that
/// nobody has defined yet.
const CODES: [&str; 27] = [
    "2.01", "2.02", "2.03", "2.04", "2.05", "4.00", "4.01", "4.02", "4.03", "4.04", "4.05", "4.06", "4.08",
    "4.09", "4.12", "4.13", "4.15", "4.22", "4.29", "5.00", "5.01", "5.02", "5.03", "5.04", "5.05", "5.08",
    "5.09",
];

/// Elective, safe to forward and part of the cache key: a proxy that does not know it passes it on.
const UNKNOWN_ELECTIVE: u16 = 65_000;
/// Critical and safe to forward: the origin that does not know it refuses.
const UNKNOWN_CRITICAL: u16 = 65_001;

const CBOR: u16 = 60;
const WORKERS: usize = 4;
/// After so many failures the rest would only cost time.
const ENOUGH_FAILURES: usize = 6;

#[test]
fn peers_found() {
    let mut table = String::from("peers:\n");
    for peer in Peer::ALL {
        table += &match peer.find() {
            Some(found) => {
                format!("  {:<14} {:<24} {}\n", format!("{peer:?}"), found.version, found.program.display())
            }
            None => format!("  {:<14} missing: install {}\n", format!("{peer:?}"), peer.hint()),
        };
    }
    peers::tell(&table);
    assert!(peers::present(&Peer::ALL) || !peers::required());
}

#[test]
fn the_stacks_agree_without_a_proxy() {
    for client in [Stack::Libcoap, Stack::Aiocoap] {
        for origin in [Stack::Libcoap, Stack::Aiocoap] {
            check(client, origin, &[Route::Direct]);
        }
    }
}

#[test]
fn libcoap_reaches_libcoap() {
    check(Stack::Libcoap, Stack::Libcoap, &[Route::ProxyUri, Route::Reverse]);
}

#[test]
fn libcoap_reaches_aiocoap() {
    check(Stack::Libcoap, Stack::Aiocoap, &[Route::ProxyUri, Route::Reverse]);
}

#[test]
fn aiocoap_reaches_libcoap() {
    check(Stack::Aiocoap, Stack::Libcoap, &[Route::ProxyUri, Route::ProxyScheme, Route::Reverse]);
}

#[test]
fn aiocoap_reaches_aiocoap() {
    check(Stack::Aiocoap, Stack::Aiocoap, &[Route::ProxyUri, Route::ProxyScheme, Route::Reverse]);
}

/// aiocoap's `ProxyForwarder` writes `::1` into Uri-Host, where RFC 7252 has `[::1]`.
#[test]
fn accepts_the_uri_host_that_aiocoap_writes_for_ipv6() {
    if !peers::present(&[Peer::Aiocoap]) {
        return;
    }
    let bench = Bench::start(Stack::Aiocoap, Stack::Aiocoap, &[Route::ProxyScheme]);
    let via = bench.via(Route::ProxyScheme, Family::V6, Family::V6);
    let request = Request::new(Method::Get, bench.origin_at(Family::V6), "/size/5", via);
    assert_eq!(bench.client.request(&request).map(|answer| answer.payload), Ok(text_of(5)));
}

/// libcoap's client sends Hop-Limit 16 with each request for a proxy.
#[test]
fn takes_one_from_the_hop_limit_of_libcoap() {
    if !peers::present(&[Peer::LibcoapClient, Peer::Aiocoap]) {
        return;
    }
    let bench = Bench::start(Stack::Libcoap, Stack::Aiocoap, &[Route::ProxyUri]);
    let via = bench.via(Route::ProxyUri, Family::V4, Family::V4);
    let request = Request::new(Method::Get, bench.origin_at(Family::V4), "/size/5?key=hop", via);
    assert_eq!(bench.client.request(&request).map(|answer| answer.code), Ok("2.05".to_owned()));
    let Origin::Aiocoap(origin) = &bench.origin else { unreachable!("started as aiocoap") };
    let [seen] = &origin.seen("hop")[..] else { panic!("the origin saw {:?}", origin.seen("hop")) };
    let hop_limits: Vec<_> = seen.options.iter().filter(|(number, _)| *number == 16).collect();
    assert_eq!(hop_limits, [&(16, vec![15])]);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Direct,
    ProxyUri,
    ProxyScheme,
    Reverse,
}

#[derive(Clone, Copy, Debug)]
enum Content {
    /// The payload goes there and comes back: `/echo` at aiocoap, a resource of its own at libcoap.
    Sized(Method, usize),
    /// The origin answers with this code.
    Status(Method, &'static str),
}

#[derive(Clone, Copy, Debug)]
struct Case {
    number: usize,
    route: Route,
    client_family: Family,
    origin_family: Family,
    confirmable: bool,
    content: Content,
}

struct Bench {
    client: Client,
    origin: Origin,
    forward: Option<Proxy>,
    reverse: Option<[Proxy; 2]>,
}

fn check(client: Stack, origin: Stack, routes: &[Route]) {
    if !peers::present(&[client.client(), origin.origin()]) {
        return;
    }
    let bench = Bench::start(client, origin, routes);
    let cases = cases(origin, routes);
    let failures = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while failures.lock().expect("no holder panics").len() < ENOUGH_FAILURES {
                    let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    if let Err(text) = bench.run(case) {
                        failures.lock().expect("no holder panics").push(format!("{case:?}\n    {text}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no holder panics");
    let heading = format!("{client:?} to {origin:?}, {} cases", cases.len());
    assert!(failures.is_empty(), "{heading}:\n  {}", failures.join("\n  "));
}

fn cases(origin: Stack, routes: &[Route]) -> Vec<Case> {
    let contents: Vec<Content> = match origin {
        // One run of a libcoap case already goes through all methods.
        Stack::Libcoap => SIZES.map(|size| Content::Sized(Method::Put, size)).to_vec(),
        Stack::Aiocoap => {
            Method::ALL.iter().flat_map(|method| SIZES.map(|size| Content::Sized(*method, size))).collect()
        }
    };
    let mut cases = Vec::new();
    let mut add = |route: Route, client_family, origin_family, confirmable, content| {
        // Without a proxy there is one family only, and aiocoap's Uri-Host for IPv6 has a test of its own.
        let possible = match route {
            Route::Direct => client_family == origin_family,
            Route::ProxyScheme => origin_family == Family::V4,
            Route::ProxyUri | Route::Reverse => true,
        };
        if possible {
            let number = cases.len();
            cases.push(Case { number, route, client_family, origin_family, confirmable, content });
        }
    };
    for route in routes {
        for client_family in Family::ALL {
            for origin_family in Family::ALL {
                for confirmable in [true, false] {
                    for content in &contents {
                        add(*route, client_family, origin_family, confirmable, *content);
                    }
                }
            }
        }
        if origin == Stack::Aiocoap {
            for (place, method) in Method::ALL.iter().enumerate() {
                for (row, code) in CODES.iter().enumerate() {
                    // Types and families take turns here; the sizes above have every combination.
                    let family = Family::ALL[(row / 2) % 2];
                    let confirmable = (place + row) % 2 == 0;
                    if *code != "2.03" || *method == Method::Get {
                        add(*route, family, family, confirmable, Content::Status(*method, code));
                        add(*route, Family::V4, Family::V4, !confirmable, Content::Status(*method, code));
                    }
                }
            }
        }
    }
    cases
}

impl Bench {
    fn start(client: Stack, origin: Stack, routes: &[Route]) -> Self {
        let origin = Origin::start(origin);
        let forwards = routes.iter().any(|route| matches!(route, Route::ProxyUri | Route::ProxyScheme));
        let reverse = |family: Family| Proxy::reverse(family.address(origin.port()), &[]);
        Self {
            client: Client::start(client),
            forward: forwards.then(|| Proxy::forward(&[])),
            reverse: routes.contains(&Route::Reverse).then(|| Family::ALL.map(reverse)),
            origin,
        }
    }

    fn origin_at(&self, family: Family) -> SocketAddr {
        family.address(self.origin.port())
    }

    fn via(&self, route: Route, client_family: Family, origin_family: Family) -> Via {
        let forward = || self.forward.as_ref().expect("started with a forward route").address(client_family);
        match route {
            Route::Direct => Via::Direct,
            Route::ProxyUri => Via::ProxyUri(forward()),
            Route::ProxyScheme => Via::ProxyScheme(forward()),
            Route::Reverse => {
                let proxies = self.reverse.as_ref().expect("started with a reverse route");
                Via::Reverse(proxies[origin_family as usize].address(client_family))
            }
        }
    }

    fn run(&self, case: &Case) -> Result<(), String> {
        match &self.origin {
            Origin::Libcoap(origin) => self.run_libcoap(origin, case),
            Origin::Aiocoap(origin) => self.run_aiocoap(origin, case),
        }
    }

    fn request(&self, case: &Case, method: Method, path: String, port: u16) -> Request {
        let via = self.via(case.route, case.client_family, case.origin_family);
        let origin = case.origin_family.address(port);
        Request { confirmable: case.confirmable, ..Request::new(method, origin, path, via) }
    }

    fn send(&self, case: &Case, request: &Request) -> Result<Answer, String> {
        let answer = self.client.request(request)?;
        let kinds: &[&str] = if case.confirmable { &["ACK", "CON"] } else { &["NON"] };
        same("type in", &kinds.contains(&answer.kind.as_str()), &true)
            .map_err(|e| format!("{e}: {answer:?}"))?;
        Ok(answer)
    }

    fn run_aiocoap(&self, origin: &AiocoapOrigin, case: &Case) -> Result<(), String> {
        let key = format!("{:?}-{}", case.route, case.number);
        let (method, segments) = match case.content {
            Content::Sized(method, _) if method.has_payload() => (method, vec!["echo".to_owned()]),
            Content::Sized(method, size) => (method, vec!["size".to_owned(), size.to_string()]),
            Content::Status(method, code) => (method, vec!["status".to_owned(), code.to_owned()]),
        };
        let path = format!("/{}?key={key}&x=%26%C3%A9", segments.join("/"));
        let mut request = self.request(case, method, path, origin.port());
        if method.has_payload() {
            request.payload = match case.content {
                Content::Sized(_, size) => payload(size, case.number),
                Content::Status(..) => b"body".to_vec(),
            };
            request.content_format = Some(CBOR);
        }
        request.options.push((UNKNOWN_ELECTIVE, b"option".to_vec()));
        if matches!(case.content, Content::Status(_, "2.03")) {
            request.options.insert(0, (option::ETAG, b"origin".to_vec()));
        }

        let mut answer = self.send(case, &request)?;
        if let Content::Status(_, "5.08") = case.content
            && let Some(place) = answer.payload.windows(7).position(|window| window == b"status ")
        {
            // RFC 8768 lets each proxy on the way put its name in front.
            answer.payload.drain(..place);
        }
        let (code, payload, content_format, etag) = match case.content {
            Content::Sized(method, size) if !method.has_payload() => {
                (usual_code(method), text_of(size), None, None)
            }
            Content::Sized(method, _) => (usual_code(method), request.payload.clone(), Some(CBOR), None),
            Content::Status(_, "2.03") => ("2.03", Vec::new(), None, Some(b"origin".to_vec())),
            Content::Status(_, code) => (code, format!("status {code}").into_bytes(), None, None),
        };
        let expected =
            Answer { code: code.to_owned(), kind: answer.kind.clone(), payload, content_format, etag };
        same("answer", &answer, &expected)?;

        let all = origin.seen(&key);
        let [seen] = &all[..] else {
            return Err(format!("the origin executed it {} times: {all:?}", all.len()));
        };
        same("method", &seen.method.to_lowercase().as_str(), &method.name())?;
        same("path", &seen.path, &segments)?;
        same("query", &seen.query, &vec![format!("key={key}"), "x=&é".to_owned()])?;
        same("Content-Format at the origin", &seen.content_format, &request.content_format)?;
        same("payload length at the origin", &seen.length, &request.payload.len())?;
        same("payload at the origin", &seen.fingerprint, &fingerprint(&request.payload))?;
        same("elective option", &values(&seen.options, UNKNOWN_ELECTIVE), &vec![b"option".to_vec()])?;
        if case.route != Route::Direct {
            for number in [option::PROXY_URI, option::PROXY_SCHEME, option::URI_HOST, option::URI_PORT] {
                same(&format!("option {number} at the origin"), &values(&seen.options, number), &Vec::new())?;
            }
        }
        Ok(())
    }

    /// libcoap's server makes a resource of whatever is PUT. It knows no 5.xx for a plain request.
    fn run_libcoap(&self, origin: &LibcoapOrigin, case: &Case) -> Result<(), String> {
        let Content::Sized(_, size) = case.content else { unreachable!("libcoap has sized cases only") };
        let (first, second) = (payload(size, case.number), payload(size, case.number + 1));
        let path = format!("/{:?}-{}", case.route, case.number);
        let send = |method: Method, payload: &[u8], options: &[(u16, Vec<u8>)]| {
            let mut request = self.request(case, method, path.clone(), origin.port());
            request.payload = payload.to_vec();
            request.options = options.to_vec();
            self.send(case, &request).map_err(|text| format!("{method:?}: {text}"))
        };
        let expect = |method: Method, payload: &[u8], code: &str, body: &[u8]| {
            let answer = send(method, payload, &[])?;
            same(&format!("{method:?} code"), &answer.code.as_str(), &code)?;
            same(&format!("{method:?} payload"), &answer.payload.as_slice(), &body)
        };
        expect(Method::Put, &first, "2.01", b"")?;
        expect(Method::Get, b"", "2.05", &first)?;
        // What a proxy has stored for the GET is no longer true after this.
        expect(Method::Post, &second, "2.04", b"")?;
        expect(Method::Get, b"", "2.05", &second)?;
        for method in [Method::Fetch, Method::Patch, Method::Ipatch] {
            expect(method, &first, "4.05", b"Method Not Allowed")?;
        }
        // libcoap's server resets the same request in a NON, and its client ignores the option that comes back.
        if case.confirmable && matches!(self.client, Client::Aiocoap(_)) {
            let refused = send(Method::Get, b"", &[(UNKNOWN_CRITICAL, b"option".to_vec())])?;
            same("code for a critical option", &refused.code.as_str(), &"4.02")?;
        }
        expect(Method::Put, &first, "2.04", b"")?;
        expect(Method::Delete, b"", "2.02", b"")?;
        expect(Method::Get, b"", "4.04", b"Not Found")
    }
}

/// Every byte value, so that no text conversion goes unnoticed; `salt` tells cases apart.
fn payload(size: usize, salt: usize) -> Vec<u8> {
    (0..size).map(|index| (index * 7 + salt * 31 + 0xf0) as u8).collect()
}

fn usual_code(method: Method) -> &'static str {
    match method {
        Method::Get | Method::Fetch => "2.05",
        Method::Delete => "2.02",
        Method::Post | Method::Put | Method::Patch | Method::Ipatch => "2.04",
    }
}

fn values(options: &[(u16, Vec<u8>)], number: u16) -> Vec<Vec<u8>> {
    options.iter().filter(|(other, _)| *other == number).map(|(_, value)| value.clone()).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: found {found:?}, expected {expected:?}")) }
}
