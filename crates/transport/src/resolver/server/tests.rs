//! Against a name server of the test's own, on loopback.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use domain::base::message_builder::AnswerBuilder;
use domain::base::{Record, Ttl};

use super::*;

type Reply = AnswerBuilder<Vec<u8>>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Answers over UDP what `answer` makes of a question, and over TCP without an end.
struct Fake {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, Rtype)>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Fake {
    fn start(answer: impl Fn(&str, Rtype, &Message<Vec<u8>>) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a port");
        let address = socket.local_addr().expect("bound");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("not zero");
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (stopped, log) = (Arc::clone(&stop), Arc::clone(&asked));
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 512];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                let query = Message::from_octets(buffer[..length].to_vec()).expect("a message");
                let question = query.sole_question().expect("one question");
                let name = question.qname().to_string().to_lowercase();
                log.lock().expect("nobody panics").push((name.clone(), question.qtype()));
                for bytes in answer(&name, question.qtype(), &query) {
                    socket.send_to(&bytes, from).expect("loopback takes it");
                }
            }
        });
        Self { address, asked, stop, thread: Some(thread) }
    }

    /// A server of these names: `name type value`, and `NXDOMAIN` for all others.
    fn with(zone: &'static [(&'static str, u32, &'static str)]) -> Self {
        Self::start(move |name, kind, query| vec![from_zone(zone, name, kind, query, false)])
    }

    fn look_up(&self, name: &str) -> Result<Found, LookupError> {
        NameServer::new(self.address).look_up(name)
    }

    fn asked(&self) -> Vec<(String, Rtype)> {
        self.asked.lock().expect("nobody panics").clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Records of the name and, behind an alias, of its target too when the server is `thorough`.
fn from_zone(
    zone: &[(&str, u32, &str)],
    name: &str,
    kind: Rtype,
    query: &Message<Vec<u8>>,
    thorough: bool,
) -> Vec<u8> {
    let code = if zone.iter().any(|(owner, ..)| *owner == name) { Rcode::NOERROR } else { Rcode::NXDOMAIN };
    let mut reply = reply_to(query, code);
    for &(owner, ttl, value) in zone.iter().filter(|(owner, ..)| *owner == name || thorough) {
        push(&mut reply, owner, ttl, kind, value);
    }
    reply.finish()
}

fn reply_to(query: &Message<Vec<u8>>, code: Rcode) -> Reply {
    MessageBuilder::new_vec().start_answer(query, code).expect("there is room")
}

/// Adds what `value` is, when that is of the kind asked for, or an alias.
fn push(reply: &mut Reply, owner: &str, ttl: u32, kind: Rtype, value: &str) {
    let owner: OwnedName = owner.parse().expect("a name");
    let ttl = Ttl::from_secs(ttl);
    let class = domain::base::iana::Class::IN;
    let pushed = match (value.parse(), kind) {
        (Ok(IpAddr::V4(address)), Rtype::A) => reply.push(Record::new(owner, class, ttl, A::new(address))),
        (Ok(IpAddr::V6(address)), Rtype::AAAA) => {
            reply.push(Record::new(owner, class, ttl, Aaaa::new(address)))
        }
        (Ok(_), _) => Ok(()),
        (Err(_), _) => {
            let target: OwnedName = value.parse().expect("a name");
            reply.push(Record::new(owner, class, ttl, Cname::new(target)))
        }
    };
    pushed.expect("there is room");
}

fn list(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().expect("an address")).collect()
}

#[test]
fn finds_addresses_of_both_families_and_how_long_they_last() -> Outcome {
    let server = Fake::with(&[
        ("both.example", 300, "127.0.0.1"),
        ("both.example", 7, "::1"),
        ("both.example", 300, "127.0.0.2"),
        ("four.example", 5, "127.0.0.4"),
        ("six.example", 0, "::1"),
    ]);
    let found = server.look_up("both.example")?;
    assert_eq!(found.addresses, list(&["::1", "127.0.0.1", "127.0.0.2"]));
    assert_eq!(found.ttl, Some(Duration::from_secs(7)));
    let found = server.look_up("Four.EXAMPLE.")?;
    assert_eq!((found.addresses, found.ttl), (list(&["127.0.0.4"]), Some(Duration::from_secs(5))));
    let found = server.look_up("six.example")?;
    assert_eq!((found.addresses, found.ttl), (list(&["::1"]), Some(Duration::ZERO)));
    Ok(())
}

#[test]
fn follows_aliases_within_an_answer_in_any_order_and_beyond_it() -> Outcome {
    const ZONE: &[(&str, u32, &str)] = &[
        ("c.example", 60, "127.0.0.3"),
        ("b.example", 20, "c.example"),
        ("a.example", 40, "b.example"),
        ("other.example", 1, "127.0.0.9"),
    ];
    for thorough in [true, false] {
        let server = Fake::start(move |name, kind, query| vec![from_zone(ZONE, name, kind, query, thorough)]);
        let found = server.look_up("a.example")?;
        assert_eq!(found.addresses, list(&["127.0.0.3"]), "thorough: {thorough}");
        assert_eq!(found.ttl, Some(Duration::from_secs(20)), "the shortest on the way");
    }
    Ok(())
}

#[test]
fn aliases_in_a_circle_come_to_an_end() {
    let server = Fake::with(&[("a.example", 1, "b.example"), ("b.example", 1, "a.example")]);
    assert!(matches!(server.look_up("a.example"), Err(LookupError::Failed(_))));
    assert!(server.asked().len() <= 2 * MOST_ALIASES, "{:?}", server.asked());
}

#[test]
fn tells_no_such_name_from_no_answer() {
    let server = Fake::with(&[("c.example", 60, "127.0.0.3")]);
    assert_eq!(server.look_up("nowhere.example"), Err(LookupError::NotFound));
    for name in ["", ".", "a..b", "a\\.b", "a\0b", &"x".repeat(64), &"x.".repeat(200)] {
        assert_eq!(server.look_up(name), Err(LookupError::NotFound), "{name:?}");
    }
    for code in [Rcode::SERVFAIL, Rcode::REFUSED] {
        let server = Fake::start(move |_, _, query| vec![reply_to(query, code).finish()]);
        let failed = server.look_up("c.example");
        assert!(matches!(&failed, Err(LookupError::Failed(_))), "{code}: {failed:?}");
    }
    let closed = server.address;
    drop(server);
    let failed = NameServer::new(closed).look_up("c.example");
    assert!(matches!(&failed, Err(LookupError::Failed(_))), "{failed:?}");
}

#[test]
fn tells_silence_from_a_server_that_is_not_there() {
    const WAITS: [Duration; 2] = [Duration::from_millis(20); 2];
    let name = "a.example".parse().expect("a name");
    let ask = |server: &NameServer| {
        server
            .find(&name, Rtype::A, &WAITS, now() + LONGEST)
            .map_err(|error| server.explain(&error))
            .expect_err("nobody answers")
    };
    let silent = Fake::start(|_, _, _| Vec::new());
    let server = NameServer::new(silent.address);
    let failed = ask(&server);
    let told = format!("name look-up timed out: {}: no answer in time", silent.address);
    assert_eq!((failed.to_string(), silent.asked().len()), (told, 2));
    drop(silent);
    let failed = ask(&server);
    assert!(matches!(&failed, LookupError::Failed(why) if why.contains("refused")), "{failed:?}");
}

#[test]
fn one_family_is_enough_when_the_other_gets_no_answer() -> Outcome {
    let server = Fake::start(|name, kind, query| match kind {
        Rtype::A => vec![from_zone(&[("a.example", 9, "127.0.0.3")], name, kind, query, false)],
        _ => Vec::new(),
    });
    assert_eq!(server.look_up("a.example")?.addresses, list(&["127.0.0.3"]));
    assert_eq!(server.asked().len(), 2, "not worth a second copy");
    Ok(())
}

#[test]
fn asks_again_when_a_question_is_lost_and_believes_no_other_answer() -> Outcome {
    let copies = AtomicU32::new(0);
    let server = Fake::start(move |name, kind, query| {
        let right = from_zone(&[("a.example", 9, "127.0.0.3")], name, kind, query, false);
        let wrong = from_zone(&[("a.example", 9, "127.0.0.66")], name, kind, query, false);
        if kind == Rtype::A && copies.fetch_add(1, Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let mut other_id = wrong.clone();
        other_id[0] ^= 1;
        let mut no_answer = wrong.clone();
        no_answer[2] &= 0x7F;
        let mut other_question = wrong.clone();
        other_question[13] ^= 1;
        vec![other_id, no_answer, other_question, wrong[..11].to_vec(), Vec::new(), right]
    });
    assert_eq!(server.look_up("a.example")?.addresses, list(&["127.0.0.3"]));
    let asked = server.asked();
    assert_eq!(asked.iter().filter(|(_, kind)| *kind == Rtype::A).count(), 2, "{asked:?}");
    Ok(())
}

#[test]
fn a_cut_answer_is_fetched_over_tcp() -> Outcome {
    const MANY: u8 = 100;
    let answer = |query: &Message<Vec<u8>>| {
        let mut reply = reply_to(query, Rcode::NOERROR);
        for last in 0..MANY {
            push(&mut reply, "many.example", 30, Rtype::A, &format!("127.0.1.{last}"));
        }
        reply.finish()
    };
    let server = Fake::start(move |_, kind, query| {
        let mut reply = reply_to(query, Rcode::NOERROR);
        reply.header_mut().set_tc(kind == Rtype::A);
        vec![reply.finish()]
    });
    let listener = TcpListener::bind(server.address)?;
    let thread = std::thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut query = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut query)?;
        let bytes = answer(&Message::from_octets(query).expect("a message"));
        let bytes = [&(bytes.len() as u16).to_be_bytes(), &bytes[..]].concat();
        // In pieces, as TCP may deliver it.
        bytes.chunks(97).try_for_each(|piece| stream.write_all(piece))
    });
    assert_eq!(server.look_up("many.example")?.addresses.len(), usize::from(MANY));
    thread.join().expect("no panic")?;
    Ok(())
}

#[test]
fn localhost_is_no_matter_for_name_servers() -> Outcome {
    let server = Fake::with(&[]);
    assert_eq!(server.look_up("LocalHost.")?.addresses, list(&["::1", "127.0.0.1"]));
    assert_eq!(server.asked(), []);
    Ok(())
}
