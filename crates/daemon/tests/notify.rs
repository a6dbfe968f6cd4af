//! What the service manager hears (sd_notify(3)).

use std::io::Read as _;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Running {
    child: Child,
    manager: UnixDatagram,
    directory: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(watchdog: Option<&str>) -> Self {
        let directory = tempfile::tempdir().expect("the folder for temporary files is writable");
        let (config, socket) = (directory.path().join("coapway.toml"), directory.path().join("notify"));
        let manager = UnixDatagram::bind(&socket).expect("nobody else is there");
        manager.set_read_timeout(Some(Duration::from_secs(20))).expect("it is not zero");
        let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let free = free.expect("loopback has ports");
        std::fs::write(&config, format!("[[listen]]\nuri = \"coap://{free}\"\n")).expect("it is writable");
        let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
        command.arg("serve").arg("--config").arg(&config).env_clear().env("NOTIFY_SOCKET", &socket);
        command.envs(watchdog.map(|micros| ("WATCHDOG_USEC", micros)));
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it can be started");
        Self { child, manager, directory }
    }

    /// The next notification, pings left out.
    fn next(&self) -> String {
        loop {
            let told = self.any();
            if told != "WATCHDOG=1\n" {
                return told;
            }
        }
    }

    fn any(&self) -> String {
        let mut buffer = [0; 1024];
        let length = self.manager.recv(&mut buffer).expect("something is told");
        String::from_utf8(buffer[..length].to_vec()).expect("it is text")
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "it takes {name}");
    }

    fn write(&self, text: &str) {
        std::fs::write(self.directory.path().join("coapway.toml"), text).expect("it is writable");
    }
}

#[test]
fn readiness_reloads_and_the_stop_are_told() {
    let mut running = Running::start(None);
    let told = running.next();
    assert!(told.starts_with("READY=1\nSTATUS=serving on coap://127.0.0.1:"), "{told}");
    running.signal("HUP");
    let told = running.next();
    let since = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap_or_else(|| panic!("{told}"));
    assert!(since.trim().parse::<u64>().is_ok_and(|since| since > 0), "{told}");
    assert!(running.next().starts_with("READY=1\nSTATUS=serving on "));

    running.write("nonsense = 1\nmore = 2\n");
    running.signal("HUP");
    assert!(running.next().starts_with("RELOADING=1\n"));
    let told = running.next();
    assert!(told.starts_with("READY=1\nSTATUS=configuration not reloaded, errors: 2; serving on "), "{told}");

    running.signal("TERM");
    let told = running.next();
    assert!(
        told.starts_with("STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000\nSTATUS=stopping; 0 requests"),
        "{told}"
    );
    assert!(running.child.wait().unwrap().success());
    let mut log = String::new();
    running.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("stopped"), "{log}");
}

#[test]
fn the_watchdog_is_fed_by_the_worker_where_one_is_asked_for() {
    let running = Running::start(Some("200000"));
    let told: Vec<_> = (0..6).map(|_| running.any()).collect();
    assert_eq!(told.iter().filter(|told| *told == "WATCHDOG=1\n").count(), 5, "{told:?}");
    // A worker that stands still says nothing.
    running.signal("STOP");
    running.manager.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut buffer = [0; 1024];
    // What was on its way when it stopped.
    let _ = running.manager.recv(&mut buffer);
    assert!(running.manager.recv(&mut buffer).is_err());
}
