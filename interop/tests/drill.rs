//! What real life brings: origins that move, full disks, no descriptors, a process that stood still, an
//! interface that goes and comes, a restart.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use coapway_interop::clock::now;
use coapway_interop::coapway::{Launch, Proxy};
use coapway_interop::datagram::{
    BAD_GATEWAY, CONTENT, Code, Datagram, EMPTY, GATEWAY_TIMEOUT, GET, Kind, PUT, option,
};
use coapway_interop::peers::{required, tell};
use coapway_interop::process::{Family, free_port};
use coapway_interop::raw::{RawClient, RawOrigin, Received, Reply};

const PATIENCE: Duration = Duration::from_secs(8);
/// What two busy cores may add to a time.
const SLACK: Duration = Duration::from_millis(300);
/// A failure that is known at once is answered at once.
const AT_ONCE: Duration = SLACK;
const SERVICE_UNAVAILABLE: Code = Code(0xa3);
const BLOCK1: u16 = 27;
const EPERM: i32 = 1;

fn here(request: &Datagram) -> Vec<Reply> {
    vec![Reply::now(&request.piggybacked(CONTENT).payload("here"))]
}

fn get(client: &RawClient, uri: &str) -> (Code, Duration) {
    let settled = client.settle(&RawClient::forward_request(Kind::Confirmable, GET, uri), PATIENCE);
    (settled.answer.code, settled.after)
}

fn get_x(client: &RawClient) -> (Code, Duration) {
    let settled = client.settle(&RawClient::reverse_request(Kind::Confirmable, GET, "x"), PATIENCE);
    (settled.answer.code, settled.after)
}

#[test]
fn an_origin_that_moves_is_found_again_by_its_name() {
    let directory = tempfile::tempdir().expect("the folder for temporary files is writable");
    let hosts = directory.path().join("hosts");
    let points_to = |address: IpAddr| {
        // Beside it and then over it, as it should be done.
        let new = directory.path().join("new");
        fs::write(&new, format!("{address} origin.example\n")).expect("the file is writable");
        fs::rename(&new, &hosts).expect("the folder is writable");
    };
    let (first, second) = (Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2));
    points_to(first.into());
    let resolver = format!("resolver=hosts:{}", hosts.display());
    let proxy = Launch::forward().set(&[&resolver, "upstream.max_wait=4s"]).start();
    let client = RawClient::new(proxy.address(Family::V4));
    let port = free_port();
    let uri = format!("coap://origin.example:{port}/x");

    let origin = RawOrigin::start_at(SocketAddr::new(first.into(), port), here);
    assert_eq!(get(&client, &uri).0, CONTENT);
    drop(origin);
    for _ in 0..5 {
        let (code, after) = get(&client, &uri);
        assert_eq!(code, BAD_GATEWAY);
        assert!(after < AT_ONCE, "in the gap: after {after:?}");
    }
    let _origin = RawOrigin::start_at(SocketAddr::new(second.into(), port), here);
    points_to(second.into());
    let (code, after) = get(&client, &uri);
    assert_eq!(code, CONTENT, "the first request behind the move");
    assert!(after < AT_ONCE, "after {after:?}");

    // A look at a file that is being written leaves the last one in place.
    fs::write(&hosts, "127.0.0.66 orig").expect("the file is writable");
    assert_eq!(get(&client, &uri).0, CONTENT);
}

#[test]
fn records_on_a_full_disk_hold_up_nobody() {
    const REQUESTS: usize = 100;
    let origin = RawOrigin::start(Family::V4, here);
    let proxy = Launch::reverse(origin.address()).record(Path::new("/dev/full")).start();
    let client = RawClient::new(proxy.address(Family::V4));
    for _ in 0..REQUESTS {
        let (code, after) = get_x(&client);
        assert!(code == CONTENT && after < AT_ONCE, "{code:?} after {after:?}");
    }
    let log = proxy.stop();
    assert_eq!(log.matches("cannot write forward records").count(), 1, "told once: {log}");
    let lost = log.lines().find(|line| line.contains("forward records were lost")).expect("counted");
    assert!(lost.contains(&format!("failed={REQUESTS}")), "{lost}");
}

#[test]
fn records_resume_when_there_is_room_again() {
    let directory = tempfile::tempdir().expect("the folder for temporary files is writable");
    let file = directory.path().join("records");
    let origin = RawOrigin::start(Family::V4, here);
    // A limit on the size of files is a disk that is full, once its signal is ignored.
    let small = ["sh", "-c", "trap '' XFSZ; exec prlimit --fsize=8000: \"$0\" \"$@\""];
    let proxy = Launch::reverse(origin.address()).record(&file).within(&small).start();
    let client = RawClient::new(proxy.address(Family::V4));
    let mut requests = 0;
    let mut until = |what: &str| {
        let limit = now() + PATIENCE;
        while !proxy.process().output().contains(what) {
            assert!(now() < limit, "{what:?} is not told: {}", proxy.process().output());
            assert_eq!(get_x(&client).0, CONTENT);
            requests += 1;
        }
    };
    until("cannot write forward records");
    proxy.process().limit("fsize", "unlimited");
    until("forward records are written again");
    let log = proxy.stop();
    let lost = log.lines().find(|line| line.contains("forward records were lost")).expect("counted");
    let failed = lost.split("failed=").nth(1).and_then(|text| text.split_whitespace().next());
    let failed: usize = failed.and_then(|text| text.parse().ok()).expect("a number");
    let text = fs::read_to_string(&file).expect("it is text");
    let whole = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count();
    assert_eq!(whole + failed, requests, "each record is whole or counted: {log}");
    assert!(failed > 0 && whole > 10, "{failed} lost, {whole} written");
}

#[test]
fn out_of_descriptors_everybody_is_answered() {
    const CLIENTS: usize = 12;
    const FURTHER: usize = 3;
    let directory = tempfile::tempdir().expect("the folder for temporary files is writable");
    let hosts = directory.path().join("hosts");
    fs::write(&hosts, "127.0.0.1 known.example\n").expect("the file is writable");
    let origin = RawOrigin::start(Family::V4, here);
    let port = origin.address().port();
    let resolver = format!("resolver=hosts:{}", hosts.display());
    let proxy = Launch::forward().set(&[&resolver, "upstream.max_wait=4s"]).start();
    let client = RawClient::new(proxy.address(Family::V4));
    assert_eq!(get(&client, &format!("coap://known.example:{port}/x")).0, CONTENT);
    let before = proxy.process().descriptors();

    // Uploads of many clients to one resource each want a source port of their own.
    let upload = |number: usize| {
        let uri = format!("coap://127.0.0.1:{port}/upload");
        let client = RawClient::new(proxy.address(Family::V4));
        let block = RawClient::forward_request(Kind::Confirmable, PUT, &uri)
            .option(BLOCK1, [0x08])
            .payload([number as u8; 16]);
        client.settle(&block, PATIENCE)
    };
    proxy.process().limit("nofile", format!("{}:", before + FURTHER));
    let uploads: Vec<_> = (0..CLIENTS).map(upload).collect();
    let served = uploads.iter().filter(|settled| settled.answer.code == CONTENT).count();
    // The first socket towards origins was there from the start.
    assert!((2..CLIENTS).contains(&served), "{served} of {uploads:?}");
    for settled in uploads.iter().filter(|settled| settled.answer.code != CONTENT) {
        let text = String::from_utf8_lossy(&settled.answer.payload);
        assert_eq!(settled.answer.code, SERVICE_UNAVAILABLE, "{settled:?}");
        assert!(text.starts_with("not-executed") || text.starts_with("not-sent"), "{text}");
        assert!(settled.after < AT_ONCE, "{settled:?}");
    }
    assert_eq!(origin.requests().len(), 1 + served, "nothing of the others left");

    // Nothing can be looked up anew: what is known is used on, and nothing is learned to be unknown.
    fs::write(&hosts, "127.0.0.1 known.example new.example\n").expect("the file is writable");
    assert_eq!(get(&client, &format!("coap://new.example:{port}/x")).0, BAD_GATEWAY);
    assert_eq!(get(&client, &format!("coap://known.example:{port}/x")).0, CONTENT);
    assert_eq!(get(&client, &format!("coap://127.0.0.1:{port}/x")).0, CONTENT);

    proxy.process().limit("nofile", format!("{}:", before + 200));
    assert_eq!(get(&client, &format!("coap://new.example:{port}/x")).0, CONTENT, "at once");
    assert!((CLIENTS..2 * CLIENTS).map(upload).all(|settled| settled.answer.code == CONTENT));
    let log = proxy.stop();
    assert_eq!(log.matches("WARN cannot open a further socket").count(), 1, "once a minute: {log}");
    assert!(log.contains("lines like this were left out"), "{log}");
}

/// What a client saw from the time at which the process stood still.
struct Seen {
    name: &'static str,
    request: Datagram,
    received: Vec<Received>,
}

/// For how long the process is stopped.
const STOPPED: Duration = Duration::from_secs(20);

#[test]
fn after_standing_still_for_20_s_there_is_no_burst_and_everybody_is_answered() {
    const ACK_TIMEOUT: Duration = Duration::from_secs(1);
    const EARLY: Duration = Duration::from_millis(30);
    /// From the first copy on: `max_wait`, which is inside MAX_TRANSMIT_SPAN.
    const SPAN: Duration = Duration::from_secs(30);
    let separate = |request: &Datagram, code| {
        Datagram::new(Kind::Confirmable, code, request.message_id ^ 0x5555, &request.token).payload("here")
    };
    let script = move |request: &Datagram| {
        let acknowledgement = Reply::now(&Datagram::empty(Kind::Acknowledgement, request.message_id));
        match request.values(option::URI_PATH).first() {
            Some(&b"silent" | &b"queued") => Vec::new(),
            Some(&b"acknowledged") => vec![acknowledgement],
            // Its answer comes while nobody listens.
            Some(&b"answered-meanwhile") => {
                vec![acknowledgement, Reply::later(Duration::from_secs(5), &separate(request, CONTENT))]
            }
            Some(&b"separate") => {
                vec![acknowledgement, Reply::later(Duration::from_millis(700), &separate(request, CONTENT))]
            }
            Some(_) | None => here(request),
        }
    };
    let (origin, single) = (RawOrigin::start(Family::V4, script), RawOrigin::start(Family::V6, script));
    let settings = ["upstream.max_wait=30s", "upstream.ack_timeout=1s", "downstream.max_wait=30s"];
    let proxy = Launch::forward().set(&settings).set(&["upstream.nstart=16"]).start();
    // Behind one request that is silent all others queue.
    let narrow = Launch::forward().set(&settings).set(&["upstream.nstart=1"]).start();
    let mut clients: Vec<_> = ["silent", "acknowledged", "answered-meanwhile", "separate", "at-once"]
        .into_iter()
        .map(|path| (path, RawClient::new(proxy.address(Family::V4)), origin.uri(&format!("/{path}"))))
        .collect();
    for path in ["silent", "queued", "queued"] {
        clients.push((path, RawClient::new(narrow.address(Family::V6)), single.uri(&format!("/{path}"))));
    }
    let began = now();
    let requests: Vec<_> = clients
        .iter()
        .map(|(_, client, uri)| {
            let request = RawClient::forward_request(Kind::Confirmable, GET, uri);
            client.send(&request);
            request
        })
        .collect();
    let limit = began + STOPPED + Duration::from_secs(17);
    let (resumed, seen) = thread::scope(|scope| {
        let listening: Vec<_> = clients
            .iter()
            .zip(requests)
            .map(|((name, client, _), request)| {
                scope.spawn(move || Seen { name, request, received: listen(client, limit) })
            })
            .collect();
        // By then the separate response has left, unacknowledged, and a second copy of what is silent.
        wait_until(began + Duration::from_millis(2600));
        let both = [&proxy, &narrow];
        both.iter().for_each(|one| one.process().signal("STOP"));
        wait_until(now() + STOPPED);
        let resumed = now();
        both.iter().for_each(|one| one.process().signal("CONT"));
        let seen = listening.into_iter().map(|one| one.join().expect("no client panics")).collect::<Vec<_>>();
        (resumed, seen)
    });

    for Seen { name, request, received } in &seen {
        let answers: Vec<_> = received.iter().filter(|one| one.message().token == request.token).collect();
        let first = answers.first().unwrap_or_else(|| panic!("{name}: never answered: {received:?}"));
        let expected = match *name {
            "silent" | "acknowledged" | "queued" => GATEWAY_TIMEOUT,
            _ => CONTENT,
        };
        assert_eq!(first.message().code, expected, "{name}: {received:?}");
        assert!(answers.iter().all(|one| one.bytes == first.bytes), "{name}: one answer: {received:?}");
        let deadline = began + Duration::from_secs(30);
        assert!(first.at < deadline + SLACK, "{name}: {:?} late", first.at.duration_since(deadline));
        apart(name, &answers, ACK_TIMEOUT - EARLY);
    }
    for origin in [&origin, &single] {
        let copies = origin.received();
        for one in &seen {
            let path = one.name.as_bytes();
            let mut ids: Vec<_> = of_path(&copies, path).map(|copy| copy.message().message_id).collect();
            ids.dedup();
            for id in ids {
                let copies: Vec<_> =
                    of_path(&copies, path).filter(|copy| copy.message().message_id == id).collect();
                apart(one.name, &copies, ACK_TIMEOUT - EARLY);
                let span = copies[copies.len() - 1].at - copies[0].at;
                assert!(span < SPAN, "{}: a copy after {span:?}", one.name);
            }
        }
    }
    let copies = |origin: &RawOrigin, path: &str| of_path(&origin.received(), path.as_bytes()).count();
    for path in ["acknowledged", "answered-meanwhile", "separate", "at-once"] {
        assert_eq!(copies(&origin, path), 1, "{path}: a copy after an acknowledgement");
    }
    let after = |from: Instant| {
        let received = seen.iter().flat_map(|one| &one.received);
        received.filter(|one| one.at >= from && one.at < from + SLACK).count()
    };
    assert!(after(resumed) <= 2 * seen.len(), "an Acknowledgement and an answer each, at most");
    tell(&format!(
        "20 s stopped: {} copies of what was silent, {} of what was queued; {} datagrams to {} clients at once after it\n",
        copies(&origin, "silent"),
        copies(&single, "queued"),
        after(resumed),
        seen.len(),
    ));
}

fn of_path<'r>(received: &'r [Received], path: &'r [u8]) -> impl Iterator<Item = &'r Received> {
    received.iter().filter(move |one| one.message().values(option::URI_PATH) == [path])
}

/// Copies of one message keep their distance.
fn apart(name: &str, copies: &[&Received], least: Duration) {
    for pair in copies.windows(2) {
        let gap = pair[1].at - pair[0].at;
        assert!(gap >= least, "{name}: two copies within {gap:?}: {copies:?}");
    }
}

/// All that comes until `limit`; separate responses are acknowledged from their third copy on.
fn listen(client: &RawClient, limit: Instant) -> Vec<Received> {
    let mut received: Vec<Received> = Vec::new();
    while let Some(one) = client.receive(limit) {
        let message = one.message().clone();
        let copies = received.iter().filter(|other| other.bytes == one.bytes).count();
        if message.kind == Kind::Confirmable && copies >= 2 {
            client.send(&Datagram::empty(Kind::Acknowledgement, message.message_id));
        }
        received.push(one);
    }
    received
}

fn wait_until(instant: Instant) {
    while let Some(left) = instant.checked_duration_since(now()) {
        thread::park_timeout(left);
    }
}

/// The answer lies behind more datagrams than one turn takes; a timer that ran out meanwhile has to wait.
#[test]
fn what_came_while_it_stood_still_is_heard_before_timers() {
    const NOISE: usize = 3000;
    let origin = UdpSocket::bind("127.0.0.1:0").expect("loopback has a port");
    let address = origin.local_addr().expect("it is bound");
    let proxy = Launch::reverse(address).set(&["upstream.ack_timeout=500ms"]).start();
    let client = RawClient::new(proxy.address(Family::V4));
    client.send(&RawClient::reverse_request(Kind::Confirmable, GET, "x"));
    let mut buffer = [0; 256];
    let (length, from) = origin.recv_from(&mut buffer).expect("the request arrives");
    proxy.process().signal("STOP");
    let request = Datagram::decode(&buffer[..length]).expect("well formed");
    for _ in 0..NOISE {
        origin.send_to(b"?", from).expect("loopback takes it");
    }
    origin.send_to(&request.piggybacked(CONTENT).encode(), from).expect("loopback takes it");
    wait_until(now() + Duration::from_secs(2));
    proxy.process().signal("CONT");
    let mut answers = std::iter::from_fn(|| client.receive(now() + PATIENCE));
    let answer = answers.find(|one| one.message().code != EMPTY).expect("an answer");
    assert_eq!(answer.message().code, CONTENT);
    origin.set_read_timeout(Some(SLACK)).expect("not zero");
    let copy = origin.recv(&mut buffer).map(|length| buffer[..length].to_vec());
    assert!(copy.is_err(), "a copy left although the answer was there: {copy:02x?}");
}

#[test]
fn killed_and_started_again_it_serves_at_once() {
    let origin = RawOrigin::start(Family::V4, here);
    let launch = Launch::reverse(origin.address());
    let first_ids: Vec<_> = (0..3)
        .map(|_| {
            // Dropped, it is killed by a signal that nobody can catch.
            let proxy = launch.start();
            let (code, after) = get_x(&RawClient::new(proxy.address(Family::V4)));
            assert!(code == CONTENT && after < AT_ONCE, "{code:?} after {after:?}");
            let requests = origin.requests();
            let last = requests.last().expect("a request");
            (last.message_id, last.token.clone())
        })
        .collect();
    // Two in three may agree by chance, once in 20 000 runs.
    assert!(first_ids[0] != first_ids[1] && first_ids[1] != first_ids[2], "{first_ids:?}");
    assert!(first_ids.windows(2).all(|pair| pair[0].1 != pair[1].1), "tokens: {first_ids:?}");
    assert!(first_ids.iter().any(|(id, _)| *id != first_ids[0].0), "Message IDs: {first_ids:?}");
}

const OWN_NAMESPACE: &str = "COAPWAY_DRILL_NAMESPACE";

/// Runs itself again in a network namespace of its own, where it may take an interface away.
#[test]
fn an_interface_that_goes_and_comes_back() {
    if std::env::var_os(OWN_NAMESPACE).is_some() {
        return in_a_namespace();
    }
    let setup = "ip link set lo up && ip link add gone0 type veth peer name gone1";
    let Some(text) = again_in_a_namespace(setup, "an_interface_that_goes_and_comes_back") else { return };
    let line = text.lines().find(|line| line.contains("the interface went"));
    tell(&format!("{}\n", line.unwrap_or_else(|| panic!("{text}"))));
}

/// Runs one test of this file again, behind a setup; what it printed, where that is allowed.
fn again_in_a_namespace(setup: &str, test: &str) -> Option<String> {
    let program = std::env::current_exe().expect("it runs");
    let script = format!("{setup} && {OWN_NAMESPACE}=1 exec \"$0\" --exact {test} --nocapture");
    let output = Command::new("unshare").args(["-rn", "sh", "-c", &script]).arg(&program).output();
    let output = output.map(|output| {
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    });
    match output {
        Ok((true, text)) => return Some(text),
        Ok((_, text)) if required() || text.contains("panicked") => panic!("{text}"),
        Err(error) if required() => panic!("unshare: {error}"),
        Ok(_) | Err(_) => tell("no right to make a network namespace; this test checked nothing\n"),
    }
    None
}

fn in_a_namespace() {
    let there = Ipv4Addr::new(10, 77, 1, 1);
    let ip = |arguments: &str| {
        let status = Command::new("ip").args(arguments.split(' ')).status();
        assert!(status.is_ok_and(|status| status.success()), "ip {arguments}");
    };
    let comes = || {
        ip("addr add 10.77.1.1/24 dev gone0");
        ip("link set gone0 up");
    };
    comes();
    let port = free_port();
    let origin = RawOrigin::start_at(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port), here);
    let proxy = Launch::reverse(SocketAddr::new(there.into(), port)).set(&["upstream.max_wait=2s"]).start();
    let client = RawClient::new(proxy.address(Family::V4));
    assert_eq!(get_x(&client).0, CONTENT);
    let mut codes = Vec::new();
    for round in 0..3 {
        ip("link set gone0 down");
        ip("addr flush dev gone0");
        for _ in 0..3 {
            let (code, after) = get_x(&client);
            assert!(code == BAD_GATEWAY && after < AT_ONCE, "round {round}: {code:?} after {after:?}");
            codes.push(code);
        }
        comes();
        let (code, after) = get_x(&client);
        assert!(code == CONTENT && after < AT_ONCE, "round {round}, back again: {code:?} after {after:?}");
    }
    drop(origin);
    let mut output = std::io::stdout();
    writeln!(output, "the interface went and came three times; meanwhile {codes:?}").expect("it is open");
}

#[test]
fn a_way_that_is_forbidden_or_not_there_is_a_bad_gateway_at_once() {
    if std::env::var_os(OWN_NAMESPACE).is_some() {
        return forbidden_ways();
    }
    // What a policy blocks is refused as by a filter of packets: EPERM.
    let setup = format!(
        "ip link set lo up && ip route add blackhole 10.77.2.1 && ip route add unreachable 10.77.2.2 && \
         ip route add prohibit 10.77.2.3 && ip link add gone0 type veth peer name gone1 && \
         ip addr add 10.77.4.1/24 dev gone0 && ip addr add fd77:4::1/64 dev gone0 nodad && \
         ip link set gone0 up && ip link set gone1 up && \
         ip xfrm policy add dst {FILTERED}/32 dir out action block && \
         ip xfrm policy add dst {FILTERED_IPV6}/128 dir out action block"
    );
    again_in_a_namespace(&setup, "a_way_that_is_forbidden_or_not_there_is_a_bad_gateway_at_once");
}

const FILTERED: &str = "10.77.4.9";
const FILTERED_IPV6: &str = "fd77:4::9";

fn forbidden_ways() {
    const PROMPT: Duration = Duration::from_millis(250);
    let filtered = [FILTERED, FILTERED_IPV6].map(|host| host.parse::<IpAddr>().expect("an address"));
    for host in filtered {
        let any: IpAddr =
            if host.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).expect("there are ports");
        let refused = socket.send_to(b"x", (host, 5683)).map_err(|error| error.raw_os_error());
        assert_eq!(refused, Err(Some(EPERM)), "the policy is in force");
    }
    let proxy = Proxy::forward(&["upstream.max_wait=2s"]);
    let check = |proxy: &Proxy, host: &str, request: &Datagram| {
        let client = RawClient::new(proxy.address(Family::V4));
        let settled = client.settle(request, PATIENCE);
        assert_eq!(settled.answer.code, BAD_GATEWAY, "{host}: {settled:?}");
        assert!(settled.after < PROMPT, "{host}: after {:?}", settled.after);
        assert!(settled.answer.payload.starts_with(b"not-executed"), "{host}: {settled:?}");
        assert_eq!(client.receive(now() + Duration::from_millis(30)).map(|more| more.bytes), None);
    };
    let [filtered, filtered_ipv6] = [FILTERED.to_owned(), format!("[{FILTERED_IPV6}]")];
    let hosts = ["10.77.2.1", "10.77.2.2", "10.77.2.3", "10.77.3.1", "[fd77::1]", &filtered, &filtered_ipv6];
    for host in hosts {
        let reverse = Launch::reverse(host).set(&["upstream.max_wait=2s"]).start();
        for kind in [Kind::Confirmable, Kind::NonConfirmable] {
            check(&proxy, host, &RawClient::forward_request(kind, GET, &format!("coap://{host}/x")));
            check(&reverse, host, &RawClient::reverse_request(kind, GET, "x"));
        }
    }
}
