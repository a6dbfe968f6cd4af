//! Addresses, bursts, floods and strangers, at the edge where the system's sockets begin.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use coapway_interop::clock::now;
use coapway_interop::coapway::{Launch, Proxy};
use coapway_interop::datagram::{BAD_GATEWAY, CONTENT, Code, Datagram, EMPTY, GET, Kind, POST, option};
use coapway_interop::peers::tell;
use coapway_interop::process::{Family, free_port};
use coapway_interop::raw::{RawClient, RawOrigin, Reply};

const PATIENCE: Duration = Duration::from_secs(5);
/// How long it is listened for what must not come.
const QUIET: Duration = Duration::from_millis(400);
/// What two busy cores may add to a time.
const SLACK: Duration = Duration::from_millis(300);
/// One further copy of a separate response soon.
const SETTINGS: [&str; 3] =
    ["downstream.ack_timeout=300ms", "downstream.early_ack_after=100ms", "upstream.max_wait=3s"];

const SECOND_LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// `slow` is answered separately after 300 ms, `bad` with a Reset, anything else at once.
fn answer(request: &Datagram) -> Vec<Reply> {
    let content = |kind, message_id| Datagram::new(kind, CONTENT, message_id, &request.token).payload("here");
    match request.values(option::URI_PATH).first() {
        Some(&b"slow") => vec![
            Reply::now(&Datagram::empty(Kind::Acknowledgement, request.message_id)),
            Reply::later(Duration::from_millis(300), &content(Kind::NonConfirmable, 0x4711)),
        ],
        Some(&b"bad") => vec![Reply::now(&Datagram::empty(Kind::Reset, request.message_id))],
        Some(_) | None if request.kind == Kind::NonConfirmable => {
            vec![Reply::now(&content(Kind::NonConfirmable, request.message_id))]
        }
        Some(_) | None => vec![Reply::now(&request.piggybacked(CONTENT).payload("here"))],
    }
}

#[test]
fn everything_leaves_from_the_address_that_was_asked() {
    let origin = RawOrigin::start(Family::V4, answer);
    let dead_end = Family::V4.address(free_port());
    for wildcard in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        let families: &[Family] = if wildcard.is_ipv6() { &Family::ALL } else { &[Family::V4] };
        let start = |origin: SocketAddr| {
            let port = free_port();
            let pinged: Vec<_> = families.iter().map(|family| family.address(port)).collect();
            Launch::reverse(origin).set(&SETTINGS).listen(SocketAddr::new(wildcard, port), &pinged).start()
        };
        let (proxy, leads_nowhere) = (start(origin.address()), start(dead_end));
        thread::scope(|scope| {
            for asked in families.iter().map(|family| family.loopback()).chain([SECOND_LOOPBACK]) {
                let (proxy, leads_nowhere) = (&proxy, &leads_nowhere);
                scope.spawn(move || {
                    let client = RawClient::new(SocketAddr::new(asked, proxy.port()));
                    leaves_from_where_it_was_asked(&client);
                    let client = RawClient::new(SocketAddr::new(asked, leads_nowhere.port()));
                    let request = RawClient::reverse_request(Kind::Confirmable, GET, "x");
                    let answer = client.settle(&request, PATIENCE).answer;
                    assert_eq!((answer.kind, answer.code), (Kind::Acknowledgement, BAD_GATEWAY));
                });
            }
        });
    }
}

/// The client panics at a datagram from any other address than the one it asks.
fn leaves_from_where_it_was_asked(client: &RawClient) {
    let next = || client.receive(now() + PATIENCE).expect("an answer").message().clone();
    let request = RawClient::reverse_request(Kind::Confirmable, GET, "x");
    assert_eq!(client.settle(&request, PATIENCE).answer.code, CONTENT);
    let request = RawClient::reverse_request(Kind::NonConfirmable, GET, "x");
    let answer = client.settle(&request, PATIENCE).answer;
    assert_eq!((answer.kind, answer.code), (Kind::NonConfirmable, CONTENT));
    let request = RawClient::reverse_request(Kind::Confirmable, GET, "bad");
    assert_eq!(client.settle(&request, PATIENCE).answer.code, BAD_GATEWAY);

    // The empty Acknowledgement, a separate response, and its retransmission.
    let slow = RawClient::reverse_request(Kind::Confirmable, GET, "slow");
    client.send(&slow);
    assert_eq!(next(), Datagram::empty(Kind::Acknowledgement, slow.message_id));
    let response = next();
    assert_eq!((response.kind, response.code), (Kind::Confirmable, CONTENT));
    assert_eq!(next(), response, "its retransmission");
    client.send(&Datagram::empty(Kind::Acknowledgement, response.message_id));

    client.send(&Datagram::empty(Kind::Confirmable, 0x0b0b));
    assert_eq!(next(), Datagram::empty(Kind::Reset, 0x0b0b));
    // An option that ends past the end of the datagram.
    client.send_bytes(&[0x40, 0x01, 0x0c, 0x0c, 0xb9, 0x01]);
    assert_eq!(next(), Datagram::empty(Kind::Reset, 0x0c0c));
    assert_eq!(client.receive(now() + QUIET).map(|more| more.bytes), None);
}

/// RFC 7252 §8.1: whoever asks everybody gets no Acknowledgement, no Reset and no error.
#[test]
fn who_asks_everybody_hears_nothing() {
    let origin = RawOrigin::start(Family::V4, answer);
    let port = free_port();
    let listen = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    let proxy =
        Launch::reverse(origin.address()).set(&SETTINGS).listen(listen, &[Family::V4.address(port)]).start();
    let group = Ipv4Addr::new(224, 0, 1, 187);
    let member = UdpSocket::bind("127.0.0.1:0").expect("loopback has a port");
    member.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).expect("loopback has groups");
    let client = UdpSocket::bind("127.0.0.1:0").expect("loopback has a port");
    client.set_broadcast(true).expect("a socket option");
    let request = |kind| RawClient::reverse_request(kind, GET, "x").encode();
    for to in [group, Ipv4Addr::new(127, 255, 255, 255)] {
        for bytes in [
            request(Kind::Confirmable),
            request(Kind::NonConfirmable),
            Datagram::empty(Kind::Confirmable, 0x1234).encode(),
            Datagram::new(Kind::Confirmable, CONTENT, 0x1235, b"unknown").encode(),
            vec![0x40, 0x01, 0x12, 0x36, 0xb9, 0x01],
        ] {
            client.send_to(&bytes, (to, port)).expect("loopback takes it");
        }
    }
    client.set_read_timeout(Some(QUIET)).expect("not zero");
    let mut buffer = [0; 64];
    let heard = client.recv(&mut buffer).map(|length| buffer[..length].to_vec());
    assert!(heard.is_err(), "{heard:02x?}");
    assert_eq!(origin.requests(), []);
    client.send_to(&request(Kind::Confirmable), (Ipv4Addr::LOCALHOST, port)).expect("loopback takes it");
    client.recv(&mut buffer).expect("who asks one is answered");
    let counted = counted(&proxy.stop(), "clients");
    assert_eq!(counted.of("group"), 10, "{counted:?}");
}

/// All are there before the first is read.
#[test]
fn a_thousand_clients_at_once_are_all_answered() {
    const CLIENTS: u16 = 1024;
    let origin = RawOrigin::start(Family::V4, answer);
    let proxy = Proxy::reverse(origin.address(), &["upstream.nstart=64", "upstream.max_wait=10s"]);
    let clients: Vec<_> = (0..CLIENTS).map(|_| RawClient::new(proxy.address(Family::V4))).collect();
    proxy.process().signal("STOP");
    let requests: Vec<_> = clients
        .iter()
        .map(|client| {
            let request = RawClient::reverse_request(Kind::Confirmable, GET, "x");
            client.send(&request);
            request
        })
        .collect();
    proxy.process().signal("CONT");
    let limit = now() + PATIENCE;
    let mut slowest = Duration::ZERO;
    for (client, request) in clients.iter().zip(&requests) {
        let answers = || std::iter::from_fn(|| client.receive(limit));
        let answer = answers().find(|one| one.message().code != EMPTY).expect("an answer");
        assert_eq!((answer.message().code, &answer.message().token), (CONTENT, &request.token));
        slowest = slowest.max(answer.at + PATIENCE - limit);
    }
    let mut copies: Vec<_> = origin.requests().iter().map(|request| request.token.clone()).collect();
    assert_eq!(copies.len(), usize::from(CLIENTS), "one copy of each");
    copies.sort();
    copies.dedup();
    assert_eq!(copies.len(), usize::from(CLIENTS));
    tell(&format!("{CLIENTS} clients at once: all answered after {slowest:.1?}\n"));
}

/// What does not concern a listener that is flooded goes on: other listeners, and timers.
#[test]
fn a_flood_at_one_listener_holds_up_no_other() {
    let origin = RawOrigin::start(Family::V4, answer);
    let proxy = Proxy::reverse(origin.address(), &SETTINGS);
    let flooded = proxy.address(Family::V4);
    let over = AtomicBool::new(false);
    let (mut times, mut sent, mut took) = (Vec::new(), 0_u64, Duration::ZERO);
    thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a port");
            let noise: [&[u8]; 3] =
                [b"\x00", b"\x60\x45\x12\x34", b"\x58\x45\x12\x34\x01\x02\x03\x04\x05\x06\x07\x08"];
            let began = now();
            let mut sent = 0_u64;
            while !over.load(Ordering::Relaxed) {
                for bytes in noise {
                    sent += u64::from(socket.send_to(bytes, flooded).is_ok());
                }
            }
            (sent, began.elapsed())
        });
        let client = RawClient::new(proxy.address(Family::V6));
        let until = now() + Duration::from_secs(3);
        while now() < until {
            let request = RawClient::reverse_request(Kind::Confirmable, GET, "x");
            times.push(client.settle(&request, PATIENCE).after);
        }
        // Timers: the empty Acknowledgement after 100 ms.
        let request = RawClient::reverse_request(Kind::Confirmable, GET, "slow");
        let settled = client.settle(&request, PATIENCE);
        let acknowledged = settled.empty_acknowledgement.expect("it is slow");
        assert!(acknowledged < Duration::from_millis(100) + SLACK, "{acknowledged:?}");
        over.store(true, Ordering::Relaxed);
        (sent, took) = flood.join().expect("the flood does not panic");
    });
    times.sort();
    let (median, high) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let rate = sent as f64 / took.as_secs_f64();
    tell(&format!(
        "{rate:.0} datagrams/s of noise at one listener, {} requests at another: median {median:.1?}, 99 % {high:.1?}, \
         longest {:.1?}\n",
        times.len(),
        times[times.len() - 1],
    ));
    assert!(high < SLACK, "99 % within {high:?}");
}

#[test]
fn strangers_are_told_once_and_counted_exactly() {
    const FORGED: usize = 1000;
    let origin = RawOrigin::start(Family::V4, answer);
    let proxy = Proxy::reverse(origin.address(), &SETTINGS);
    let client = RawClient::new(proxy.address(Family::V4));
    let paced = |number: usize| {
        // In step with the proxy, so that no buffer overflows and the count is exact.
        if number.is_multiple_of(100) {
            client.send(&Datagram::empty(Kind::Confirmable, number as u16));
            client.receive(now() + PATIENCE).expect("a pong");
        }
    };
    for number in 0..FORGED {
        let message_id = number as u16;
        client.send(&Datagram::new(Kind::NonConfirmable, CONTENT, message_id, b"forged").payload("x"));
        client.send(&Datagram::empty(Kind::Acknowledgement, message_id));
        client.send(&Datagram::empty(Kind::Reset, message_id));
        // A response code of class 2 in an option that is cut short, and a terminal's escape codes.
        client.send_bytes(b"\x50\x01\x00\x01\xbd\x1b[31m\x07\r\n");
        client.send_bytes(b"\x01");
        paced(number);
    }
    client.settle(&RawClient::reverse_request(Kind::Confirmable, GET, "x"), PATIENCE);
    let log = proxy.stop();
    let counted = counted(&log, "clients");
    assert_eq!(counted.of("unmatched"), FORGED, "{counted:?}");
    assert_eq!(counted.of("unexpected"), 2 * FORGED, "{counted:?}");
    assert_eq!(counted.of("malformed"), FORGED, "{counted:?}");
    assert_eq!(counted.of("ignored"), FORGED, "{counted:?}");
    let alerts: Vec<_> = log.lines().filter(|line| line.contains("messages that match nothing")).collect();
    assert_eq!(alerts.len(), 1, "{log}");
    assert!(alerts[0].contains("WARN"), "{alerts:?}");
    assert!(log.lines().count() < 30, "{log}");
    assert!(log.chars().all(|symbol| symbol == '\n' || !symbol.is_control()), "{log:?}");
}

/// What is broken in an Acknowledgement or Reset is no reason to reply to it, however often it comes.
#[test]
fn broken_acknowledgements_and_resets_make_no_storm() {
    const TIMES: usize = 1000;
    let origin = RawOrigin::start(Family::V4, answer);
    let proxy = Proxy::reverse(origin.address(), &SETTINGS);
    let client = RawClient::new(proxy.address(Family::V4));
    // A token of 15 bytes, one longer than its datagram, a marker without payload.
    let broken: [&[u8]; 3] = [b"\x6f\x45\x14\x11", b"\x79\x00\x14\x12", b"\x60\x45\x14\x13\xff"];
    let mut costs = Vec::new();
    for bytes in broken {
        let before = cpu_time(&proxy);
        for number in 0..TIMES {
            client.send_bytes(bytes);
            // In step with the proxy, so that no buffer overflows. A pong is the first that comes back.
            if number % 100 == 99 {
                let ping = Datagram::empty(Kind::Confirmable, number as u16);
                client.send(&ping);
                let pong = client.receive(now() + PATIENCE).expect("a pong");
                assert_eq!(
                    *pong.message(),
                    Datagram::empty(Kind::Reset, ping.message_id),
                    "after {bytes:02x?}"
                );
            }
        }
        costs.push(cpu_time(&proxy) - before);
    }
    assert_eq!(client.receive(now() + QUIET).map(|more| more.bytes), None);
    assert_eq!(origin.received().len(), 0, "nothing goes further");
    // A thousand cost some 10 ms; a storm or a loop would take all there is.
    assert!(costs.iter().all(|cost| *cost < Duration::from_millis(500)), "{costs:?}");
    client.settle(&RawClient::reverse_request(Kind::Confirmable, GET, "x"), PATIENCE);
    let log = proxy.stop();
    let counted = counted(&log, "clients");
    assert_eq!(counted.of("malformed"), broken.len() * TIMES, "{counted:?}");
    assert!(log.lines().count() < 20, "{log}");
}

/// What a process has used of the processors, to a hundredth of a second.
fn cpu_time(proxy: &Proxy) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", proxy.process().id())).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("its name is in brackets");
    // utime and stime, fields 14 and 15 of the whole.
    let ticks = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number"));
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// 4.00 to 5.08, each by what brings it about: eight bytes of token on the wire, and just these.
#[test]
fn whatever_the_proxy_answers_by_itself_has_the_token_that_was_asked_with() {
    const TOKEN: [u8; 8] = [0xf0, 0xe1, 0xd2, 0xc3, 0xb4, 0xa5, 0x96, 0x87];
    const UNKNOWN_CRITICAL: u16 = 65_003;
    let silent = RawOrigin::black_hole(Family::V4);
    let settings =
        ["upstream.max_wait=1s", "upstream.nstart=1", "upstream.queue=0", "downstream.early_ack_after=100ms"];
    let proxy = Proxy::forward(&settings);
    let route = Proxy::reverse(silent.address(), &settings);
    let message = |kind, code, message_id| Datagram::new(kind, code, message_id, &TOKEN);
    let closed = format!("coap://127.0.0.1:{}/x", free_port());
    let path = |request: Datagram| request.option(option::URI_PATH, "x");
    let by_uri = |request: Datagram, uri: &str| request.option(option::PROXY_URI, uri);
    type Asks<'a> = Box<dyn Fn(Datagram) -> Datagram + 'a>;
    let uri = |uri: &str| -> Asks<'_> {
        let uri = uri.to_owned();
        Box::new(move |request| by_uri(request, &uri))
    };
    let cases: [(u8, &Proxy, u8, Asks<'_>); 9] = [
        (0x80, &route, 1, Box::new(|request| path(request).option(option::HOP_LIMIT, [0]))),
        (0x82, &proxy, 1, Box::new(|request| path(request).option(UNKNOWN_CRITICAL, "x"))),
        (0x84, &proxy, 1, Box::new(path)),
        (0x85, &route, 31, Box::new(path)),
        (0x8d, &proxy, 2, Box::new(|request| by_uri(request, &closed).payload([b'x'; 2100]))),
        (0xa1, &proxy, 1, uri("coap://224.0.1.187/x")),
        (0xa2, &proxy, 1, uri(&closed)),
        (0xa5, &proxy, 1, uri("ftp://127.0.0.1/x")),
        (0xa8, &route, 1, Box::new(|request| path(request).option(option::HOP_LIMIT, [1]))),
    ];
    let mut message_id = 0x1000;
    for (code, proxy, method, asks) in &cases {
        for (kind, head) in [(Kind::Confirmable, 0x68), (Kind::NonConfirmable, 0x58)] {
            message_id += 1;
            let client = RawClient::new(proxy.address(Family::V4));
            client.send(&asks(message(kind, Code(*method), message_id)));
            let answer = client.receive(now() + PATIENCE).expect("never silence").bytes;
            let wanted = [[head, *code].as_slice(), &answer[2..4], &TOKEN].concat();
            assert_eq!(answer[..12], wanted, "{:?}", Code(*code));
            assert!(head == 0x58 || answer[2..4] == message_id.to_be_bytes(), "{answer:02x?}");
            assert_eq!(client.receive(now() + Duration::from_millis(20)).map(|more| more.bytes), None);
        }
    }
    // One waits until 5.04 while another finds no place: 5.03.
    let [waits, finds_none] = [(); 2].map(|()| RawClient::new(route.address(Family::V4)));
    waits.send(&path(message(Kind::Confirmable, GET, 0x2001)));
    let acknowledgement = waits.receive(now() + PATIENCE).expect("it is acknowledged").bytes;
    assert_eq!(acknowledgement, [0x60, 0, 0x20, 0x01]);
    finds_none.send(&message(Kind::Confirmable, GET, 0x2002).option(option::URI_PATH, "y"));
    let refused = finds_none.receive(now() + PATIENCE).expect("never silence").bytes;
    assert_eq!(refused[..12], [[0x68, 0xa3, 0x20, 0x02].as_slice(), &TOKEN].concat());
    let timeout = waits.receive(now() + PATIENCE).expect("never silence").bytes;
    assert_eq!(timeout[..12], [[0x48, 0xa4].as_slice(), &timeout[2..4], &TOKEN].concat());
    waits.send_bytes(&[0x60, 0, timeout[2], timeout[3]]);
}

/// The counters that one leg told when the proxy stopped.
#[derive(Debug)]
struct Counted(String);

impl Counted {
    fn of(&self, name: &str) -> usize {
        let value =
            self.0.split(&format!(" {name}: ")).nth(1).unwrap_or_else(|| panic!("{name} in {self:?}"));
        let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    }
}

fn counted(log: &str, leg: &str) -> Counted {
    let lines: Vec<_> = log.lines().filter(|line| line.contains("counted")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    let text = lines[0].split(&format!("{leg}=Counters {{")).nth(1).expect("a leg of counters");
    Counted(text.split('}').next().unwrap_or_default().to_owned())
}

/// A request of so many bytes, most of them queries.
fn sized(method: Code, size: usize) -> Datagram {
    let mut request = RawClient::reverse_request(Kind::Confirmable, method, "x");
    while size - request.encode().len() > 250 {
        request = request.option(option::URI_QUERY, "q".repeat(200));
    }
    let last = |length: usize| request.clone().option(option::URI_QUERY, "q".repeat(length));
    (1..=255).map(last).find(|request| request.encode().len() == size).expect("there is one of each size")
}

#[test]
fn requests_of_every_size_about_that_of_a_packet_leave_whole() {
    let origin = RawOrigin::start(Family::V4, answer);
    // The token of the proxy is longer, and it adds a Hop-Limit, the origin's name and, to a POST, a Request-Tag.
    let directory = tempfile::tempdir().expect("the folder for temporary files is writable");
    let hosts = directory.path().join("hosts");
    std::fs::write(&hosts, "127.0.0.1 origin.example\n").expect("the file is writable");
    let resolver = format!("resolver=hosts:{}", hosts.display());
    let settings = [&resolver, "insert_hop_limit=16", "upstream.post_guard=request-tag"];
    let port = origin.address().port();
    let proxy = Launch::reverse(format!("origin.example:{port}")).set(&settings).start();
    let client = RawClient::new(proxy.address(Family::V4));
    for size in (1140..=1152).chain([1472, 1500, 2000]).chain(2040..=2048) {
        for method in [GET, POST] {
            let request = sized(method, size);
            let settled = client.settle(&request, PATIENCE);
            assert_eq!(settled.answer.code, CONTENT, "{size}: {settled:?}");
            let seen = origin.requests().pop().expect("it came");
            let expected = request
                .option(option::URI_HOST, "origin.example")
                .option(option::HOP_LIMIT, [16])
                .options
                .into_iter()
                .chain(seen.values(REQUEST_TAG).first().map(|tag| (REQUEST_TAG, tag.to_vec())))
                .collect::<Vec<_>>();
            assert_eq!(seen.options, expected, "{size}: nothing is cut");
            assert_eq!(seen.values(REQUEST_TAG).len(), usize::from(method == POST), "{size}");
            assert!(seen.encode().len() > size, "{size}: it has grown");
        }
    }
    // One byte more is cut by the socket, here inside of an option.
    let before = origin.requests().len();
    let request = sized(GET, 2049);
    let settled = client.settle(&request, PATIENCE);
    assert_eq!((settled.answer.code, origin.requests().len()), (Code(0x8d), before), "{settled:?}");

    let forward = Launch::forward().set(&settings).start();
    let client = RawClient::new(forward.address(Family::V4));
    let long = |length: usize| {
        let authority = format!("coap://origin.example:{port}");
        let path = "/a".repeat(length);
        format!("{authority}{}", &path[..length - authority.len()])
    };
    let uri = long(1034);
    let segments = uri.split('/').skip(3).map(str::as_bytes).collect::<Vec<_>>();
    let settled = client.settle(&RawClient::forward_request(Kind::Confirmable, POST, &uri), PATIENCE);
    assert_eq!(settled.answer.code, CONTENT, "{settled:?}");
    let seen = origin.requests().pop().expect("it came");
    assert_eq!(seen.values(option::URI_PATH), segments, "nothing is cut");
    assert_eq!(seen.values(option::URI_HOST), [b"origin.example"]);
    let before = origin.requests().len();
    let request = RawClient::forward_request(Kind::Confirmable, POST, &long(1035));
    let settled = client.settle(&request, PATIENCE);
    assert_eq!((settled.answer.code, origin.requests().len()), (Code(0x82), before), "{settled:?}");
    assert!(settled.after < SLACK, "{settled:?}");
}

const REQUEST_TAG: u16 = 292;

/// One socket for IPv4 and IPv6: whoever reads what happened finds clients by the addresses they have.
#[test]
fn a_socket_for_both_families_serves_both_and_tells_them_by_their_own_addresses() {
    let origin = RawOrigin::start(Family::V4, answer);
    let directory = tempfile::tempdir().expect("the folder for temporary files is writable");
    let file = directory.path().join("records");
    let port = free_port();
    let pinged = Family::ALL.map(|family| family.address(port));
    let listen = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let launch = Launch::reverse(origin.address()).set(&SETTINGS).record(&file);
    let proxy = launch.listen(listen, &pinged).start();
    for family in Family::ALL {
        let client = RawClient::new(family.address(port));
        for path in ["x", "slow"] {
            let request = RawClient::reverse_request(Kind::Confirmable, GET, path);
            let settled = client.settle(&request, PATIENCE);
            assert_eq!((settled.answer.code, &settled.answer.token), (CONTENT, &request.token), "{family:?}");
            assert_eq!(settled.empty_acknowledgement.is_some(), path == "slow", "{settled:?}");
        }
    }
    let log = proxy.stop();
    let records = std::fs::read_to_string(&file).expect("it is text");
    assert!(!log.contains("ffff") && !records.contains("ffff"), "{log}{records}");
    for address in ["127.0.0.1:", "[::1]:"] {
        let by_client = |line: &&str| line.contains(&format!("\"client\":\"{address}"));
        assert_eq!(records.lines().filter(by_client).count(), 2, "{address}: {records}");
    }
}

#[test]
fn targets_that_fail_again_and_again_cost_no_descriptor() {
    const REQUESTS: usize = 5000;
    let proxy = Launch::forward().set(&["limits.client_rate=0"]).start();
    let client = RawClient::new(proxy.address(Family::V4));
    let targets: Vec<_> = (0..20).map(|_| Family::V4.address(free_port())).collect();
    let ask = |number: usize| {
        let uri = format!("coap://{}/{number}", targets[number % targets.len()]);
        client.settle(&RawClient::forward_request(Kind::Confirmable, GET, &uri), PATIENCE).answer.code
    };
    assert_eq!(ask(0), BAD_GATEWAY);
    let before = proxy.process().descriptors();
    assert!((1..REQUESTS).all(|number| ask(number) == BAD_GATEWAY));
    let after = proxy.process().descriptors();
    assert!(after.abs_diff(before) <= 10, "{before} descriptors before, {after} after");
}
