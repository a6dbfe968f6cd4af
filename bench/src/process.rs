//! Child processes of a measurement, ended with their owner.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::coap::{self, ACK, CON, CONTENT, EMPTY, Message};
use crate::{clock, sys};

/// A process that this one started; dropping it ends the process.
pub(crate) struct Process {
    child: Child,
    handle: sys::Pidfd,
    grace: Duration,
}

impl Process {
    /// Starts `argv` on a core, or anywhere; `quiet` drops what it writes.
    pub(crate) fn start(argv: &[String], core: Option<usize>, quiet: bool) -> Result<Self> {
        let (program, arguments) = argv.split_first().context("an empty command")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        if quiet {
            command.stderr(Stdio::null());
        }
        let child = sys::spawn(&mut command, core).with_context(|| format!("cannot start {program}"))?;
        let handle = sys::Pidfd::of(&child)?;
        Ok(Self { child, handle, grace: Duration::from_secs(5) })
    }

    /// Its process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for it to end by itself; false when it still runs after `timeout`, or a minute.
    pub(crate) fn ends_within(&self, timeout: Duration) -> Result<bool> {
        Ok(self.handle.ends_within(timeout)?)
    }

    /// Asks it to read its settings again.
    pub(crate) fn reload(&self) -> Result<()> {
        self.handle.reload().context("cannot send a signal")
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) -> Result<()> {
        self.handle.terminate().context("cannot send a signal")
    }

    /// Ends it with SIGTERM and waits up to `grace`; false when it had to be killed.
    pub(crate) fn stop(mut self, grace: Duration) -> Result<bool> {
        self.grace = grace;
        self.end().context("cannot end a child process")
    }

    /// Waits until a request through `proxy` gets its answer from `origin`.
    pub(crate) fn wait_until_it_forwards(
        &mut self,
        proxy: SocketAddr,
        origin: SocketAddr,
        limit: Duration,
    ) -> Result<()> {
        let end = clock::now() + limit;
        while clock::now() < end {
            if let Some(status) = self.child.try_wait()? {
                bail!("ended at once, {status}");
            }
            if forwards(proxy, origin)? {
                return Ok(());
            }
            // A closed port refuses at once; this is the pause before the next attempt.
            self.handle.ends_within(Duration::from_millis(50))?;
        }
        bail!("forwarded nothing within {} s", limit.as_secs())
    }

    fn end(&mut self) -> Result<bool> {
        if self.child.try_wait()?.is_some() {
            return Ok(true);
        }
        self.handle.terminate()?;
        let ended = self.handle.ends_within(self.grace)?;
        if !ended {
            self.child.kill()?;
        }
        self.child.wait()?;
        Ok(ended)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing is left to be done for a child that cannot even be killed.
        let _outcome = self.end();
    }
}

/// A UDP port of the loopback interface that is free now.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(socket.local_addr()?)
}

fn forwards(proxy: SocketAddr, origin: SocketAddr) -> Result<bool> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(proxy)?;
    socket.set_read_timeout(Some(Duration::from_millis(500)))?;
    let mut datagram = Vec::new();
    let message_id = socket.local_addr()?.port();
    let uri = format!("coap://{origin}/ready/{message_id}");
    coap::write_get(&mut datagram, message_id, *b"rdy?", uri.as_bytes());
    let mut buffer = [0; 2048];
    // An unreachable port shows as an error of either call, and means: not yet.
    if socket.send(&datagram).is_err() {
        return Ok(false);
    }
    while let Ok(length) = socket.recv(&mut buffer) {
        let Some(message) = buffer.get(..length).and_then(Message::parse) else { return Ok(false) };
        if message.kind == CON {
            socket.send(&coap::empty(ACK, message.message_id))?;
        }
        // An empty Acknowledgement announces a separate response.
        if message.code != EMPTY {
            return Ok(message.code == CONTENT && message.payload == message_id.to_string().as_bytes());
        }
    }
    Ok(false)
}
