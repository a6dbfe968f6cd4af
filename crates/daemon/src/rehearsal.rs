//! What the host says to a configuration, tried without leaving a trace: `check` hears of it before
//! `serve` fails at it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use coapway_config::{Config, ConfigError, LogDestination, RecordDestination, Resolver};

use crate::sockets::{Bound, Unbound};
use crate::unbound;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What keeps `serve` from working.
    pub(crate) errors: Vec<ConfigError>,
    /// What is as it should be beside a running service, and keeps another one from working.
    pub(crate) notes: Vec<String>,
}

/// Tries files and listeners.
///
/// Shape: call it where tokio's runtime runs.
pub(crate) fn rehearse(config: &Config) -> Findings {
    let mut findings = Findings { errors: files(config), notes: Vec::new() };
    listeners(config, &mut findings);
    findings
}

/// Tries the files that are named, without making any.
pub(crate) fn files(config: &Config) -> Vec<ConfigError> {
    let record = match &config.record().destination {
        RecordDestination::File(path) => Some(("record.file", appendable(path))),
        RecordDestination::Off | RecordDestination::StandardOutput => None,
    };
    let log = match &config.log().destination {
        LogDestination::File(path) => Some(("log.file", appendable(path))),
        LogDestination::StandardError => None,
    };
    let names = match config.resolver() {
        Resolver::Hosts(path) => Some(("resolver", readable(path))),
        Resolver::System | Resolver::Server(_) => None,
    };
    let program = config.on_alert().first().map(|program| ("on_alert", executable(Path::new(program))));
    let state = config.state().map(|path| ("state", replaceable(path)));
    let tried = [record, log, names, program, state].into_iter().flatten();
    tried.filter_map(|(key, result)| Some(config.object(key, result.err()?))).collect()
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

/// Whether the file can be read again and again. Others are not opened: a FIFO would wait for whoever writes
/// to it, and a device may do something.
fn readable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err("a directory, not a file".to_owned()),
        Ok(metadata) if !metadata.is_file() => Err("not a file".to_owned()),
        Ok(_) => fs::File::open(path).map(drop).map_err(|error| format!("cannot be read: {error}")),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// Whether the file can be run.
fn executable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err("no file, so it cannot be run".to_owned()),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Err("cannot be run".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("cannot be run: {error}")),
    }
}

/// Whether the file can be appended to, or made.
fn appendable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err("a directory, not a file".to_owned()),
        // To open a FIFO would wait for its reader.
        Ok(metadata) if metadata.file_type().is_fifo() => Ok(()),
        Ok(_) => {
            let opened = OpenOptions::new().append(true).open(path);
            opened.map(drop).map_err(|error| format!("cannot be written: {error}"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => takes_files(directory(path)),
        Err(error) => Err(format!("cannot be written: {error}")),
    }
}

/// Whether another file can be put in the place of this one, which need not be there.
fn replaceable(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err("a directory, not a file".to_owned()),
        Ok(metadata) if !metadata.is_file() => Err("not a file".to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(format!("cannot be written: {error}")),
        Ok(_) | Err(_) => takes_files(directory(path)),
    }
}

/// The directory a file is in.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

/// Whether a file can be made in a directory; the one that is made for this has no name.
fn takes_files(directory: &Path) -> Result<(), String> {
    match fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(format!("{} is not a directory", directory.display())),
        Err(error) => return Err(format!("no directory {}: {error}", directory.display())),
    }
    match OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(directory) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Err(format!("cannot be made in {}: {error}", directory.display()))
        }
        // Not every file system has files without a name.
        Ok(_) | Err(_) => Ok(()),
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
    fn files_are_tried_and_none_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().display();
        let files = |setting: &str| files(&config(&[setting]));
        assert!(files(&format!("record.file={place}/records")).is_empty());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        assert!(files(&format!("state={place}/learned")).is_empty());
        assert!(files("state=learned").is_empty());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        fs::write(directory.path().join("file"), "127.0.0.1 boiler\n").unwrap();
        assert!(files(&format!("log.file={place}/file")).is_empty());
        assert!(files(&format!("resolver=hosts:{place}/file")).is_empty());
        assert!(files(&format!("state={place}/file")).is_empty());
        let fifo = directory.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for (setting, reason) in [
            (format!("record.file={place}"), "a directory, not a file"),
            (format!("record.file={place}/none/records"), "no directory"),
            (format!("log.file={place}/file/log"), "cannot be written"),
            (format!("resolver=hosts:{place}/none"), "cannot be read"),
            (format!("resolver=hosts:{place}"), "a directory, not a file"),
            (format!("resolver=hosts:{place}/fifo"), "not a file"),
            ("resolver=hosts:/dev/zero".to_owned(), "not a file"),
            (format!("state={place}"), "a directory, not a file"),
            (format!("state={place}/none/learned"), "no directory"),
            (format!("state={place}/file/learned"), "cannot be written"),
            (format!("state={place}/fifo"), "not a file"),
        ] {
            let [error] = &files(&setting)[..] else { panic!("{setting}") };
            let text = error.to_string();
            assert!(text.starts_with(&format!("command line: --set {setting}\n")), "{text}");
            assert!(text.contains(reason), "{text}");
        }
        assert_eq!(fs::read_to_string(directory.path().join("file")).unwrap(), "127.0.0.1 boiler\n");
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
