//! Everybody's place: addresses, the proxy's configuration, the processes.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::coap::{self, CON, RST};
use crate::memory;
use crate::process::{Process, free_address};
use crate::proxies::{Coapway, this_program};

/// Ports where nobody listens.
const CLOSED: usize = 4;

/// A proxy between its origins.
pub(super) struct Stage {
    /// The proxy.
    pub(super) proxy: Process,
    /// Where all clients on loopback find it.
    pub(super) shared: SocketAddrV4,
    /// Where it listens beside loopback, when this host has a private address.
    pub(super) other: Option<SocketAddrV4>,
    /// The good origin.
    pub(super) good: SocketAddr,
    /// What the hostile origin answers on.
    pub(super) hostile: UdpSocket,
    /// Ports where nobody listens on any address of 127.9.0.0/16.
    pub(super) closed: Vec<u16>,
    /// The bound that the proxy's own check prints, in MiB.
    pub(super) bound: Option<f64>,
    /// Keep the closed ports from others, who would bind them on all addresses.
    _held: Vec<UdpSocket>,
    _origin: Process,
    _directory: TempDir,
}

impl Stage {
    /// Starts origin and proxy and waits until requests get through.
    pub(super) fn set(
        coapway: &Coapway,
        proxy_core: Option<usize>,
        load_core: Option<usize>,
    ) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let hostile = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no port for the hostile origin")?;
        let mut held = Vec::new();
        for _ in 0..CLOSED {
            held.push(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no port to hold")?);
        }
        let closed = held.iter().filter_map(|socket| Some(socket.local_addr().ok()?.port())).collect();
        let (good, shared) = (free_address()?, v4(free_address()?)?);
        let other = private_address().map(|address| SocketAddrV4::new(address, shared.port()));

        let hosts = directory.path().join("hosts");
        fs::write(&hosts, "127.0.0.1 good.test\n")?;
        let config = directory.path().join("coapway.toml");
        let text = configuration(&hosts, shared, other, good, hostile.local_addr()?);
        fs::write(&config, text).context("cannot write the configuration")?;

        let command = this_program(&["origin", "--listen", &good.to_string(), "--seconds", "86400"])?;
        let mut origin = Process::start(&command, load_core, false)?;
        origin.wait_until_it_forwards(good, good, Duration::from_secs(10)).context("the origin")?;
        let bound = printed_bound(coapway, config.clone())?;
        let command = coapway.with_config("serve", &config)?;
        let mut proxy = Process::start(&command, proxy_core, false)?;
        proxy
            .wait_until_it_forwards(shared.into(), good, Duration::from_secs(10))
            .with_context(|| format!("`{}`", command.join(" ")))?;
        Ok(Self {
            proxy,
            shared,
            other,
            good,
            hostile,
            closed,
            bound,
            _held: held,
            _origin: origin,
            _directory: directory,
        })
    }

    /// Who is where.
    pub(super) fn printed(&self) -> String {
        let other = self.other.map_or_else(String::new, |other| format!(" and {other}"));
        format!("proxy (process {}) on {}{other}", self.proxy.id(), self.shared)
    }

    /// Whether the proxy answers a CoAP ping, with copies for what gets lost.
    pub(super) fn answers_ping(&self) -> Result<bool> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(self.shared)?;
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        let message_id = socket.local_addr()?.port();
        let mut buffer = [0; 64];
        for _ in 0..10 {
            socket.send(&coap::empty(CON, message_id))?;
            if let Ok(length) = socket.recv(&mut buffer) {
                return Ok(buffer.get(..length) == Some(&coap::empty(RST, message_id)));
            }
        }
        Ok(false)
    }
}

fn configuration(
    hosts: &std::path::Path,
    shared: SocketAddrV4,
    other: Option<SocketAddrV4>,
    good: SocketAddr,
    hostile: SocketAddr,
) -> String {
    let mut text = format!("resolver = \"hosts:{}\"\n", hosts.display());
    for listener in [Some(shared), other].into_iter().flatten() {
        text += &format!("[[listen]]\nuri = \"coap://{listener}\"\n");
    }
    let clients = other.map_or_else(String::new, |other| format!(", \"{}/32\"", other.ip()));
    text += &format!(
        "[forward]\nclients = [\"127.0.0.0/8\"{clients}]\nallow = [\"127.9.0.0/16\", \"*.invalid\", \"*.test\"]\n"
    );
    for (name, uri) in [("good", good), ("hostile", hostile)] {
        text += &format!("[[upstreams]]\nname = \"{name}\"\nuri = \"coap://{uri}\"\n");
        text += &format!("[[routes]]\npath = \"/{name}\"\nupstream = \"{name}\"\n");
    }
    text
}

/// What `coapway check` says of memory.
fn printed_bound(coapway: &Coapway, config: PathBuf) -> Result<Option<f64>> {
    let command = coapway.with_config("check", &config)?;
    let (program, arguments) = command.split_first().context("an empty command")?;
    let output = Command::new(program).args(arguments).output().context("cannot run `coapway check`")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{}`: {errors}", command.join(" "));
    Ok(memory::bound_in(&String::from_utf8_lossy(&output.stdout)))
}

/// An IPv4 address of this host for private use: what is sent there never leaves it.
fn private_address() -> Option<Ipv4Addr> {
    let interfaces = if_addrs::get_if_addrs().ok()?;
    interfaces.iter().find_map(|interface| match interface.ip() {
        IpAddr::V4(address) if address.is_private() => Some(address),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    })
}

fn v4(address: SocketAddr) -> Result<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => anyhow::bail!("an IPv4 address was asked for"),
    }
}
