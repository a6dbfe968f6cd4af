//! The proxies that can be measured, each a start command with places to fill in.

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, Result};

/// A proxy and how to start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proxy {
    /// How it is called in the tables.
    pub(crate) name: String,
    /// Program and arguments; `{port}` and `{origin}` stand for what is known at the start only.
    argv: Vec<String>,
    /// Whether its standard error is dropped.
    pub(crate) is_quiet: bool,
}

/// How coapway is started.
#[derive(clap::Args)]
pub(crate) struct Coapway {
    /// The coapway program [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    coapway: Option<PathBuf>,
    /// Where coapway writes its forward record, or `off`.
    #[arg(long, value_name = "FILE|off", default_value = "off")]
    record: String,
    /// One further argument of `coapway serve`; may be repeated: `--arg=--set --arg=workers=1`.
    #[arg(long = "arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Coapway {
    /// The proxy itself, or an error that says how to build it.
    pub(crate) fn proxy(&self) -> Result<Proxy> {
        let program = self.program()?;
        let fixed = [
            "serve",
            "--listen",
            "coap://127.0.0.1:{port}",
            "--admin",
            "off",
            "--log",
            "/dev/null",
            "--record",
        ];
        let argv = [program]
            .into_iter()
            .chain(fixed.map(String::from))
            .chain([self.record.clone()])
            .chain(self.arguments.iter().cloned())
            .collect();
        Ok(Proxy { name: "coapway".into(), argv, is_quiet: false })
    }

    /// The command line of `serve` or `check` with a configuration file.
    pub(crate) fn with_config(&self, verb: &str, file: &Path) -> Result<Vec<String>> {
        let file = file.to_str().context("the path of the configuration is no text")?;
        let fixed = [verb, "--config", file, "--admin", "off", "--log", "/dev/null", "--record"];
        Ok([self.program()?]
            .into_iter()
            .chain(fixed.map(String::from))
            .chain([self.record.clone()])
            .chain(self.arguments.iter().cloned())
            .collect())
    }

    fn program(&self) -> Result<String> {
        let program = match &self.coapway {
            Some(program) => program.clone(),
            None => env::current_exe()?.with_file_name("coapway"),
        };
        let is_there = program.is_file();
        let program =
            program.into_os_string().into_string().ok().context("the path of coapway is no text")?;
        anyhow::ensure!(
            is_there,
            "{program} is missing; build it with `cargo build --release -p coapway-daemon`, or name it with --coapway"
        );
        Ok(program)
    }
}

impl Proxy {
    /// The bare forwarder of this very program.
    pub(crate) fn bare() -> Result<Self> {
        let arguments = ["bare", "--listen", "127.0.0.1:{port}", "--target", "{origin}"];
        Ok(Self { name: "bare".into(), argv: this_program(&arguments)?, is_quiet: false })
    }

    /// A proxy under its own name, from one line with `{port}` in it.
    pub(crate) fn from_command(name: &str, command: &str) -> Result<Self, String> {
        if !command.contains("{port}") {
            return Err("the command lacks {port}, the port to listen on".into());
        }
        let argv = command.split_whitespace().map(String::from).collect();
        Ok(Self { name: name.into(), argv, is_quiet: true })
    }

    /// The same with further arguments.
    pub(crate) fn with(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.argv.extend(arguments);
        self
    }

    /// The command that listens on `listen`.
    pub(crate) fn command(&self, listen: SocketAddr, origin: SocketAddr) -> Vec<String> {
        let (port, origin) = (listen.port().to_string(), origin.to_string());
        self.argv.iter().map(|word| word.replace("{port}", &port).replace("{origin}", &origin)).collect()
    }
}

impl FromStr for Proxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, command)) if !name.is_empty() => Self::from_command(name, command),
            _ => Err("NAME=COMMAND is wanted".into()),
        }
    }
}

/// A command line that starts this program again.
pub(crate) fn this_program(arguments: &[&str]) -> Result<Vec<String>> {
    let program = env::current_exe()?.into_os_string().into_string();
    let program = program.ok().context("the path of this program is no text")?;
    Ok([program].into_iter().chain(arguments.iter().map(|word| (*word).to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_peer_and_fills_in_its_ports() {
        let peer: Proxy = "libcoap=coap-server -p {port} -P ,x".parse().expect("a peer");
        let listen = SocketAddr::from(([127, 0, 0, 1], 5683));
        assert_eq!(peer.name, "libcoap");
        assert_eq!(peer.command(listen, listen), ["coap-server", "-p", "5683", "-P", ",x"]);
    }

    #[test]
    fn refuses_a_peer_without_name_or_port() {
        for text in ["coap-server -p {port}", "=coap-server -p {port}", "libcoap=coap-server -p 5683"] {
            assert!(text.parse::<Proxy>().is_err(), "{text}");
        }
    }
}
