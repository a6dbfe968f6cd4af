//! The process under test.

use std::env;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use crate::process::{Family, Process, free_port};

/// How a `coapway serve` is started.
#[derive(Clone, Debug)]
pub struct Launch {
    wrapper: Vec<String>,
    listen: Vec<SocketAddr>,
    pinged: Vec<SocketAddr>,
    record: String,
    log: String,
    arguments: Vec<String>,
    settings: Vec<String>,
}

impl Launch {
    /// On both loopback addresses, at a port that is free.
    fn on_loopback() -> Self {
        Self::at(free_port())
    }

    fn at(port: u16) -> Self {
        let listen = Family::ALL.map(|family| family.address(port)).to_vec();
        Self {
            wrapper: Vec::new(),
            pinged: listen.clone(),
            listen,
            record: "off".to_owned(),
            log: "-".to_owned(),
            arguments: Vec::new(),
            settings: Vec::new(),
        }
    }

    /// A forward proxy.
    pub fn forward() -> Self {
        Self::on_loopback()
    }

    /// A reverse proxy for the origin with this authority.
    pub fn reverse(authority: impl std::fmt::Display) -> Self {
        let arguments = vec!["--reverse".to_owned(), format!("coap://{authority}")];
        Self { arguments, ..Self::on_loopback() }
    }

    /// Adds `--set` arguments.
    pub fn set(mut self, settings: &[&str]) -> Self {
        self.settings.extend(settings.iter().map(|&setting| setting.to_owned()));
        self
    }

    /// Listens at this address instead; it is up when it answers at each of `pinged`.
    pub fn listen(self, address: SocketAddr, pinged: &[SocketAddr]) -> Self {
        Self { listen: vec![address], pinged: pinged.to_vec(), ..self }
    }

    /// Writes records to this file.
    pub fn record(self, file: &Path) -> Self {
        Self { record: file.display().to_string(), ..self }
    }

    /// Takes listeners and everything else from this file, which says nothing of records or the log.
    pub fn config(file: &Path, pinged: &[SocketAddr]) -> Self {
        let arguments = vec!["--config".to_owned(), file.display().to_string()];
        Self { listen: Vec::new(), pinged: pinged.to_vec(), arguments, ..Self::at(0) }
    }

    /// Writes its log to this file instead of standard error.
    pub fn log(self, file: &Path) -> Self {
        Self { log: file.display().to_string(), ..self }
    }

    /// Is started by another program, which gets this one as its last arguments.
    pub fn within(self, wrapper: &[&str]) -> Self {
        Self { wrapper: wrapper.iter().map(|&word| word.to_owned()).collect(), ..self }
    }

    /// Starts it and waits until it answers.
    pub fn start(&self) -> Proxy {
        let mut words = self.wrapper.iter().map(OsStr::new).chain([binary().as_os_str()]);
        let mut command = Command::new(words.next().expect("the binary at least"));
        command.args(words).arg("serve").args(["--admin", "off", "--log", &self.log]);
        command.args(["--record", &self.record]);
        command.args(&self.arguments);
        for address in &self.listen {
            command.args(["--listen", &format!("coap://{address}")]);
        }
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        let mut process = Process::start("coapway serve", &mut command);
        process.wait_until_it_answers(&self.pinged);
        let port = self.listen.first().or(self.pinged.first()).map_or(0, SocketAddr::port);
        Proxy { process, port }
    }
}

/// A running `coapway serve`.
pub struct Proxy {
    process: Process,
    port: u16,
}

impl Proxy {
    /// Starts a forward proxy on both loopback addresses; `settings` are `--set` arguments.
    pub fn forward(settings: &[&str]) -> Self {
        Launch::forward().set(settings).start()
    }

    /// Starts a reverse proxy for the origin at `origin`.
    pub fn reverse(origin: SocketAddr, settings: &[&str]) -> Self {
        Launch::reverse(origin).set(settings).start()
    }

    /// Two reverse proxies, each of which takes the other for its origin.
    pub fn circle(settings: &[&str]) -> [Self; 2] {
        let (one, other) = (free_port(), free_port());
        [(one, other), (other, one)].map(|(port, next)| {
            let arguments = vec!["--reverse".to_owned(), format!("coap://{}", Family::V4.address(next))];
            Launch { arguments, ..Launch::at(port) }.set(settings).start()
        })
    }

    /// Where it listens.
    pub fn address(&self, family: Family) -> SocketAddr {
        family.address(self.port)
    }

    /// The port it listens at.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Asks it to stop, waits until it has, and returns all it has logged.
    pub fn stop(mut self) -> String {
        self.process.signal("TERM");
        self.process.wait();
        self.process.output()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if !thread::panicking() {
            let output = self.process.output();
            let complaint = output
                .lines()
                .find(|line| ["panicked at", " ERROR ", "\"ERROR\""].iter().any(|word| line.contains(word)));
            assert_eq!(complaint, None, "coapway complained");
        }
    }
}

/// Runs `coapway` with these arguments to its end.
pub fn run(arguments: &[&str]) -> Output {
    Command::new(binary()).args(arguments).stdin(Stdio::null()).output().expect("the binary can be started")
}

/// What `coapway check --dump` prints under these `--set` arguments.
pub fn dump(settings: &[&str]) -> String {
    let mut arguments = vec!["check", "--dump"];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    let output = run(&arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "check fails: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The duration that a dump gives for a key.
pub fn duration_in(dump: &str, key: &str) -> Duration {
    value_in(dump, key, parse_duration)
}

/// The number that a dump gives for a key.
pub fn number_in(dump: &str, key: &str) -> usize {
    value_in(dump, key, |value| value.parse().ok())
}

/// A dump has lines `key = value  # source`.
fn value_in<T>(dump: &str, key: &str, parse: impl Fn(&str) -> Option<T>) -> T {
    dump.lines()
        .find_map(|line| {
            let value = line.strip_prefix(key)?.strip_prefix(" = ")?;
            parse(value.split("  #").next()?)
        })
        .unwrap_or_else(|| panic!("no value for {key} in this dump:\n{dump}"))
}

fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.')?;
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "min" | "m" => 60.0,
        _ => return None,
    };
    Some(Duration::from_secs_f64(number.parse::<f64>().ok()? * seconds))
}

/// The binary: `COAPWAY_BIN`, or the one beside the test executable, brought up to date once per process.
fn binary() -> &'static Path {
    static BINARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let named = || env::var_os("COAPWAY_BIN").map(PathBuf::from);
    BINARY
        .get_or_init(|| named().or_else(build))
        .as_deref()
        .expect("coapway builds; cargo said above why not")
}

fn build() -> Option<PathBuf> {
    let executable = env::current_exe().expect("the running executable has a path");
    let profile_folder = executable.ancestors().nth(2).expect("tests run from PROFILE/deps");
    let target_folder = profile_folder.parent().expect("a profile lies in the target folder");
    let profile = match profile_folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--package", "coapway-daemon", "--bin", "coapway"])
        .args(["--profile", profile])
        .arg("--target-dir")
        .arg(target_folder)
        .current_dir(crate::peers::workspace())
        .status()
        .expect("cargo can be started");
    status.success().then(|| profile_folder.join(format!("coapway{}", env::consts::EXE_SUFFIX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_values_in_a_dump() {
        let dump =
            "upstream.max_wait = 1.5s  # --set\nupstream.max_retransmit = 4  # default\nupstream.max = 2ms";
        assert_eq!(duration_in(dump, "upstream.max_wait"), Duration::from_millis(1500));
        assert_eq!(duration_in(dump, "upstream.max"), Duration::from_millis(2));
        assert_eq!(number_in(dump, "upstream.max_retransmit"), 4);
    }
}
