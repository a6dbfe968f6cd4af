//! A recursive name server, asked for the addresses of one name at a time.
//!
//! ```text
//! thread ── A? AAAA? ──▶ UDP, connected, a port and an ID of its own each
//!            for 500 ms, then 1 s, then 2 s    cut short (TC) ──▶ TCP
//!            ends in an alias ──▶ asked again, at most 8 times; all within 5 s
//! ```
//! It keeps nothing: that is the caller's. Source: RFC 1035, RFC 2181, RFC 5452 §9, RFC 7766.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use domain::base::iana::{Rcode, Rtype};
use domain::base::message::RecordSection;
use domain::base::{Message, MessageBuilder, Name, ToName as _};
use domain::rdata::{A, Aaaa, Cname};

use super::{Found, LookupError};

/// How long an answer is waited for, one copy of the question after the other.
const WAITS: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
/// How long all of one look-up may take.
const LONGEST: Duration = Duration::from_secs(5);
/// How often an answer may end in an alias.
const MOST_ALIASES: usize = 8;
/// More than the 512 bytes that a server may send unless it is told of more.
const UDP_SIZE: usize = 4096;

type OwnedName = Name<Vec<u8>>;

/// Where to ask.
#[derive(Debug)]
pub(super) struct NameServer {
    address: SocketAddr,
}

impl NameServer {
    pub(super) const fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    /// The addresses of `name`, those first that we have a route to, IPv6 before IPv4.
    ///
    /// Errors: `NotFound` when the server says that there are none, `TimedOut` when it says nothing in time,
    ///         `Failed` when it does not say.
    pub(super) fn look_up(&self, name: &str) -> Result<Found, LookupError> {
        let bare = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if bare == "localhost" || bare.ends_with(".localhost") {
            // No matter for name servers (RFC 6761 §6.3).
            return Ok(vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()].into());
        }
        // A backslash would begin an escape; no name of a host has one.
        let name = Some(name).filter(|name| !name.contains('\\')).and_then(|name| name.parse().ok());
        let name: OwnedName = name.ok_or(LookupError::NotFound)?;
        let deadline = now() + LONGEST;
        let v4 = self.find(&name, Rtype::A, &WAITS, deadline);
        // Some servers keep silent about what they do not know, which is not worth a long wait when
        // there are addresses already; a server that said nothing at all has had its time.
        let waits = match &v4 {
            Ok(v4) if v4.addresses.is_empty() => &WAITS[..],
            Ok(_) => &WAITS[..1],
            Err(Unanswered::Silence) => &[],
            Err(_) => &WAITS[..1],
        };
        let v6 = self.find(&name, Rtype::AAAA, waits, deadline);
        let mut found = match (v6, v4) {
            (Ok(v6), Ok(v4)) => Found {
                addresses: v6.addresses.into_iter().chain(v4.addresses).collect(),
                ttl: v6.ttl.into_iter().chain(v4.ttl).min(),
            },
            (Ok(one), Err(_)) | (Err(_), Ok(one)) if !one.addresses.is_empty() => one,
            (_, Err(error)) | (Err(error), _) => {
                return Err(self.explain(&error));
            }
        };
        found.addresses.sort_by_key(|address| !has_route(*address));
        if found.addresses.is_empty() { Err(LookupError::NotFound) } else { Ok(found) }
    }

    fn explain(&self, error: &Unanswered) -> LookupError {
        let text = format!("{}: {error}", self.address);
        match error {
            Unanswered::Silence => LookupError::TimedOut(text),
            Unanswered::Refused(_) | Unanswered::Malformed | Unanswered::Aliases | Unanswered::Failed(_) => {
                LookupError::Failed(text)
            }
        }
    }

    /// The addresses of one kind, through aliases; none when there are none, or no such name.
    fn find(
        &self,
        name: &OwnedName,
        kind: Rtype,
        waits: &[Duration],
        deadline: Instant,
    ) -> Result<Found, Unanswered> {
        let mut name = name.clone();
        let mut ttl: Option<Duration> = None;
        for _ in 0..MOST_ALIASES {
            let answer = self.ask(&name, kind, waits, deadline)?;
            match answer.header().rcode() {
                Rcode::NOERROR => {}
                Rcode::NXDOMAIN => return Ok(Found::default()),
                code => return Err(Unanswered::Refused(code)),
            }
            let records = answer.answer().map_err(|_| Unanswered::Malformed)?;
            let (last, mut found) = follow(&name, kind, records);
            ttl = ttl.into_iter().chain(found.ttl).min();
            if last == name || !found.addresses.is_empty() {
                found.ttl = ttl;
                return Ok(found);
            }
            // The server left it to us to go on.
            name = last;
        }
        Err(Unanswered::Aliases)
    }

    fn ask(
        &self,
        name: &OwnedName,
        kind: Rtype,
        waits: &[Duration],
        deadline: Instant,
    ) -> Result<Message<Vec<u8>>, Unanswered> {
        let question = question(name, kind)?;
        let any: IpAddr = match self.address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
        // The kernel now drops what comes from elsewhere, and tells when nobody listens.
        socket.connect(self.address)?;
        let mut buffer = vec![0; UDP_SIZE];
        // Why the last copy cannot be answered, where more is known than that nobody said anything.
        let mut refused = None;
        for wait in waits {
            let until = deadline.min(now() + *wait);
            refused = socket.send(question.as_slice()).err();
            if refused.is_some() {
                continue;
            }
            while let Some(left) = until.checked_duration_since(now()).filter(|left| !left.is_zero()) {
                socket.set_read_timeout(Some(left))?;
                let length = match socket.recv(&mut buffer) {
                    Ok(length) => length,
                    // Silence, or nobody listens there at this moment: the next copy may do better.
                    Err(error) => {
                        let is_silence =
                            matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
                        refused = Some(error).filter(|_| !is_silence);
                        break;
                    }
                };
                let bytes = buffer.get(..length).unwrap_or_default().to_vec();
                match Message::from_octets(bytes) {
                    Ok(answer) if answer.is_answer(&question) => {
                        let cut = answer.header().tc();
                        return if cut { self.ask_over_tcp(&question, deadline) } else { Ok(answer) };
                    }
                    // Somebody guesses, or it is the answer to an earlier question of this port.
                    Ok(_) | Err(_) => {}
                }
            }
        }
        Err(refused.map_or(Unanswered::Silence, Unanswered::Failed))
    }

    fn ask_over_tcp(
        &self,
        question: &Message<Vec<u8>>,
        deadline: Instant,
    ) -> Result<Message<Vec<u8>>, Unanswered> {
        let left = || Some(deadline.saturating_duration_since(now())).filter(|left| !left.is_zero());
        let mut stream = TcpStream::connect_timeout(&self.address, left().ok_or(Unanswered::Silence)?)?;
        let length = u16::try_from(question.as_slice().len()).map_err(|_| Unanswered::Malformed)?;
        stream.set_write_timeout(Some(left().ok_or(Unanswered::Silence)?))?;
        stream.write_all(&[&length.to_be_bytes(), question.as_slice()].concat())?;
        let mut bytes = Vec::new();
        let mut wanted = 2;
        // Bytes that trickle in one by one do not make it take longer.
        while bytes.len() < wanted {
            stream.set_read_timeout(Some(left().ok_or(Unanswered::Silence)?))?;
            let mut buffer = [0; UDP_SIZE];
            let room = buffer.len().min(wanted - bytes.len());
            match stream.read(&mut buffer[..room])? {
                0 => return Err(Unanswered::Malformed),
                more => bytes.extend_from_slice(&buffer[..more]),
            }
            if let Some(length) = bytes.first_chunk() {
                wanted = 2 + usize::from(u16::from_be_bytes(*length));
            }
        }
        let answer = Message::from_octets(bytes.split_off(2)).map_err(|_| Unanswered::Malformed)?;
        if answer.is_answer(question) { Ok(answer) } else { Err(Unanswered::Malformed) }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("no answer in time")]
    Silence,
    #[error("the answer is {0}")]
    Refused(Rcode),
    #[error("the answer is malformed")]
    Malformed,
    #[error("too many aliases")]
    Aliases,
    #[error(transparent)]
    Failed(#[from] io::Error),
}

fn question(name: &OwnedName, kind: Rtype) -> Result<Message<Vec<u8>>, Unanswered> {
    let mut id = [0; 2];
    getrandom::fill(&mut id).map_err(io::Error::other)?;
    let mut message = MessageBuilder::new_vec();
    message.header_mut().set_id(u16::from_ne_bytes(id));
    message.header_mut().set_rd(true);
    let mut question = message.question();
    question.push((name, kind)).map_err(|_| Unanswered::Malformed)?;
    Ok(question.into_message())
}

/// Follows the aliases of `name` through `records`: where they end, and the addresses there.
///
/// The order of the records does not matter, and a record of any other name is left aside.
fn follow(name: &OwnedName, kind: Rtype, records: RecordSection<'_, Vec<u8>>) -> (OwnedName, Found) {
    let mut found = Found::default();
    let mut last = name.clone();
    let mut hops = 0;
    while hops < MOST_ALIASES {
        let mut alias = None;
        // A record that cannot be read ends the list.
        for record in records.map_while(Result::ok).filter(|record| record.owner() == last) {
            let ttl = record.ttl().into_duration();
            if let Ok(Some(cname)) = record.to_record::<Cname<_>>() {
                alias = Some((cname.data().cname().to_vec(), ttl));
                continue;
            }
            let address = match kind {
                Rtype::A => record.to_record::<A>().ok().flatten().map(|a| IpAddr::V4(a.data().addr())),
                _ => record.to_record::<Aaaa>().ok().flatten().map(|a| IpAddr::V6(a.data().addr())),
            };
            if let Some(address) = address {
                found.addresses.push(address);
                found.ttl = found.ttl.into_iter().chain([ttl]).min();
            }
        }
        let Some((target, ttl)) = alias.filter(|_| found.addresses.is_empty()) else { break };
        found.ttl = found.ttl.into_iter().chain([ttl]).min();
        last = target;
        hops += 1;
    }
    (last, found)
}

/// Whether the host knows a way to `address`. Nothing is sent.
fn has_route(address: IpAddr) -> bool {
    const ANY_PORT: u16 = 5683;
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| socket.connect((address, ANY_PORT))).is_ok()
}

#[expect(clippy::disallowed_methods, reason = "a look-up runs on a thread of its own, by the real clock")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
