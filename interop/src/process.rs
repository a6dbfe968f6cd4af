//! A process that a test started, its output, and its end.

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::now;
use crate::datagram::{Datagram, Kind};

/// How long a process may take until it answers; generous, since two cores start many at once.
const START_LIMIT: Duration = Duration::from_secs(30);

/// IPv4 or IPv6, both on loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// 127.0.0.1
    V4,
    /// `::1`
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The loopback address.
    pub fn loopback(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::LOCALHOST.into(),
            Self::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }

    /// The loopback address with a port.
    pub fn address(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.loopback(), port)
    }
}

/// A child process; dropping it ends it.
///
/// Dropping it also fails the test when the process had ended by itself.
pub struct Process {
    name: String,
    child: Child,
    output: Arc<Mutex<String>>,
    /// Those who read its output; done when it has closed it.
    readers: Vec<JoinHandle<()>>,
    has_ended: bool,
}

impl Process {
    /// Starts `command` and collects its standard output and standard error.
    pub fn start(name: &str, command: &mut Command) -> Self {
        let mut process = Self::start_dialogue(name, command.stdin(Stdio::null()));
        let stdout = process.child.stdout.take().expect("standard output is piped");
        process.readers.push(collect(stdout, &process.output));
        process
    }

    /// Starts `command`, collects its standard error only, and leaves the other ends to [`Self::dialogue`].
    pub fn start_dialogue(name: &str, command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let starting = PORTS.lock().expect("no holder panics");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        drop(starting);
        let output = Arc::default();
        let reader = collect(child.stderr.take().expect("standard error is piped"), &output);
        Self { name: name.to_owned(), child, output, readers: vec![reader], has_ended: false }
    }

    /// Standard input and standard output of a process started by [`Self::start_dialogue`].
    pub fn dialogue(&mut self) -> (ChildStdin, BufReader<ChildStdout>) {
        let stdin = self.child.stdin.take().expect("standard input is piped and not yet taken");
        let stdout = self.child.stdout.take().expect("standard output is piped and not yet taken");
        (stdin, BufReader::new(stdout))
    }

    /// Waits until the process answers a CoAP ping at each of the addresses.
    pub fn wait_until_it_answers(&mut self, addresses: &[SocketAddr]) {
        let limit = now() + START_LIMIT;
        for address in addresses {
            while !answers_ping(*address) {
                let ended = self.child.try_wait().expect("the child can be asked");
                assert!(ended.is_none(), "{} ended with {ended:?}:\n{}", self.name, self.output());
                assert!(now() < limit, "{} is silent at {address}:\n{}", self.name, self.output());
            }
        }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, by the name that `kill` knows.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "{} takes {name}", self.name);
    }

    /// Changes one of its limits, by the name of an option of `prlimit`.
    pub fn limit(&self, what: &str, value: impl std::fmt::Display) {
        let arguments = ["--pid".to_owned(), self.id().to_string(), format!("--{what}={value}")];
        let status = Command::new("prlimit").args(arguments).status();
        assert!(status.is_ok_and(|status| status.success()), "prlimit sets {what} of {}", self.name);
    }

    /// How many descriptors it has open.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.id())).expect("it runs").count()
    }

    /// Waits until it has ended by itself, well.
    pub fn wait(&mut self) {
        let limit = now() + START_LIMIT;
        let status = loop {
            match self.child.try_wait().expect("the child can be asked") {
                Some(status) => break status,
                None => assert!(now() < limit, "{} does not end:\n{}", self.name, self.output()),
            }
            thread::park_timeout(Duration::from_millis(5));
        };
        self.has_ended = true;
        for reader in self.readers.drain(..) {
            reader.join().expect("no reader panics");
        }
        assert!(status.success(), "{} ended with {status}:\n{}", self.name, self.output());
    }

    /// What the process has printed so far.
    pub fn output(&self) -> String {
        self.output.lock().expect("no reader panics").clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let ended_by_itself = self.child.try_wait().ok().flatten();
        self.child.kill().ok();
        self.child.wait().ok();
        let output = self.output();
        if thread::panicking() {
            let lines: Vec<_> = output.lines().collect();
            let tail = lines[lines.len().saturating_sub(30)..].join("\n");
            eprintln!("--- last output of {}:\n{tail}\n---", self.name);
        } else if let Some(status) = ended_by_itself.filter(|_| !self.has_ended) {
            panic!("{} ended by itself with {status}:\n{output}", self.name);
        }
    }
}

/// Ports that were given out. Held while a process is started, too: between fork and exec a child
/// has a copy of every socket, so one that only tried a port would keep it taken.
static PORTS: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// A port that is free on both loopback addresses and was not given out before by this process.
///
/// It lies below the range from which the kernel takes the ports of clients.
pub fn free_port() -> u16 {
    let mut given = PORTS.lock().expect("no holder panics");
    let given = given.get_or_insert_default();
    let random = RandomState::new().hash_one(std::process::id());
    (0..12_000)
        .map(|step| 20_000 + ((random % 12_000 + step) % 12_000) as u16)
        // One that was given out is not even tried: its owner may be about to bind it.
        .find(|port| {
            given.insert(*port)
                && Family::ALL.iter().all(|family| UdpSocket::bind(family.address(*port)).is_ok())
        })
        .expect("some port in 12 000 is free")
}

/// Whether an Empty confirmable message is answered by a Reset within 50 ms.
fn answers_ping(address: SocketAddr) -> bool {
    // An unconnected socket is not told of closed ports, so that its timeout paces the attempts.
    let socket = UdpSocket::bind(if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" })
        .expect("loopback has a free port");
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("the timeout is not zero");
    let message_id = (RandomState::new().hash_one(address) & 0xffff) as u16;
    let ping = Datagram::empty(Kind::Confirmable, message_id).encode();
    socket.send_to(&ping, address).expect("loopback takes a datagram");
    let mut buffer = [0; 64];
    match socket.recv(&mut buffer) {
        Ok(length) => buffer[..length] == Datagram::empty(Kind::Reset, message_id).encode(),
        Err(error) => {
            // A signal may end the wait, too: the next attempt tells.
            let told = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];
            assert!(told.contains(&error.kind()), "{error}");
            false
        }
    }
}

fn collect(stream: impl Read + Send + 'static, output: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let output = Arc::clone(output);
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let mut output = output.lock().expect("no reader panics");
            output.push_str(&line);
            output.push('\n');
        }
    })
}
