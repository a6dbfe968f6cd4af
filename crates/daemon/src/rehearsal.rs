//! What the host says to a configuration, tried without leaving a trace: `check` hears of it before
//! `serve` fails at it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use coapway_config::{Config, ConfigError, LogDestination, RecordDestination};

use crate::interfaces::Interfaces;
use crate::sockets::{Bound, Unbound};
use crate::{files, machine, ourselves, sockets, unbound};

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What keeps `serve` from working.
    pub(crate) errors: Vec<ConfigError>,
    /// What is as it should be beside a running service, and keeps another one from working.
    pub(crate) notes: Vec<String>,
}

/// Tries files, and listeners where nothing else is wrong.
///
/// Shape: call it where tokio's runtime runs.
pub(crate) fn rehearse(config: &Config) -> Findings {
    let mut findings = Findings { errors: beforehand(config), notes: Vec::new() };
    if findings.errors.is_empty() {
        listeners(config, &mut findings);
    }
    findings
}

/// What this host has against a configuration, as far as that can be known before anything is bound.
pub(crate) fn beforehand(config: &Config) -> Vec<ConfigError> {
    let interfaces = Interfaces::ask().unwrap_or_default();
    let of_host = interfaces.objections(config).into_iter().chain(ourselves::objections(config, &interfaces));
    files::objections(config).into_iter().chain(of_host).collect()
}

/// What of this host deserves a look.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    sockets::warning().into_iter().chain(machine::warning(config)).collect()
}

/// Whether records would be taken at once: a FIFO without a reader takes none.
pub(crate) fn record_takes_lines(config: &Config) -> io::Result<()> {
    match &config.record().destination {
        RecordDestination::File(path) => has_reader(path),
        RecordDestination::Off | RecordDestination::StandardOutput => Ok(()),
    }
}

/// The same of lines of the log.
pub(crate) fn log_takes_lines(config: &Config) -> io::Result<()> {
    match &config.log().destination {
        LogDestination::File(path) => has_reader(path),
        LogDestination::StandardError => Ok(()),
    }
}

fn has_reader(path: &Path) -> io::Result<()> {
    let is_fifo = fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NONBLOCK);
    match is_fifo.then(|| options.open(path)).transpose() {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Err(io::Error::other("nobody reads it")),
        opened => opened.map(drop),
    }
}

/// Binds all listeners at once and lets go of them.
fn listeners(config: &Config, findings: &mut Findings) {
    let Err(unbound) = Bound::to(config.listen()) else { return };
    let is_in_use = |(_, error): &Unbound| error.kind() == io::ErrorKind::AddrInUse;
    let (in_use, impossible): (Vec<_>, Vec<_>) = unbound.into_iter().partition(is_in_use);
    findings.notes.extend(in_use.iter().map(|(address, _)| unbound::in_use(config, *address)));
    findings.errors.extend(unbound::objections(config, &impossible));
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use coapway_config::Overrides;

    use super::*;

    fn config(settings: &[&str]) -> Config {
        let set = settings.iter().map(|text| (*text).to_owned()).collect();
        let overrides = Overrides { set, ..Overrides::default() };
        let none = std::iter::empty::<(String, String)>();
        Config::load(None, none, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn findings(settings: &[&str]) -> Findings {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        rehearse(&config(settings))
    }

    #[test]
    fn listeners_are_tried_and_let_go() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let in_use = findings(&[&format!("listen=coap://{address}")]);
        assert!(in_use.errors.is_empty());
        let told = format!("coap://{address} (--set) is in use: ");
        assert!(matches!(&in_use.notes[..], [note] if note.starts_with(&told)), "{in_use:?}");

        drop(taken);
        for _ in 0..2 {
            let free = findings(&[&format!("listen=coap://{address}")]);
            assert!(free.errors.is_empty() && free.notes.is_empty(), "{free:?}");
        }

        let elsewhere = findings(&["listen=coap://192.0.2.1:5683", "forward.enabled=false"]);
        let [error] = &elsewhere.errors[..] else { panic!("{elsewhere:?}") };
        assert!(error.to_string().starts_with(
            "command line: --set listen=coap://192.0.2.1:5683\n    not an address of this host;"
        ));
    }
}
