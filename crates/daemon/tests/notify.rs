//! What the service manager hears (sd_notify(3)).

use std::io::Read as _;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Running {
    child: Child,
    manager: UnixDatagram,
    directory: tempfile::TempDir,
    listener: std::net::SocketAddr,
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
        Self { child, manager, directory, listener: free }
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
fn a_reload_that_cannot_listen_changes_nothing_and_names_each_line() {
    let mut running = Running::start(None);
    assert!(running.next().starts_with("READY=1\n"));
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (own, taken_at) = (running.listener, taken.local_addr().unwrap());
    running.write(&format!(
        "[forward]\nenabled = false\n[[listen]]\nuri = \"coap://{taken_at}\"\n[[listen]]\nuri = \"coap://192.0.2.1\"\n\
         [[listen]]\nuri = \"coap://0.0.0.0:{}\"\n",
        own.port()
    ));
    running.signal("HUP");
    assert!(running.next().starts_with("RELOADING=1\n"));
    let told = running.next();
    let status = format!("READY=1\nSTATUS=configuration not reloaded, errors: 3; serving on coap://{own}");
    assert!(told.starts_with(&status), "{told}");

    // It serves as before: a ping is answered with a Reset.
    let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.send_to(b"\x40\x00\x12\x34", own).unwrap();
    let mut buffer = [0; 16];
    let (length, from) = client.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], from), (&b"\x70\x00\x12\x34"[..], own));

    running.signal("TERM");
    assert!(running.child.wait().unwrap().success());
    let mut log = String::new();
    running.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    let file = running.directory.path().join("coapway.toml");
    for (line, listener, reason) in [
        (4, taken_at.to_string(), "the port is in use by another program".to_owned()),
        (6, "192.0.2.1:5683".to_owned(), "not an address of this host; allowed: 0.0.0.0, ".to_owned()),
        (
            8,
            format!("0.0.0.0:{}", own.port()),
            format!("cannot listen there while we listen on coap://{own}"),
        ),
    ] {
        let told = format!("{}:{line}:7: listen = coap://{listener}; {reason}", file.display());
        assert!(log.contains(&told), "no {told:?} in\n{log}");
    }
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
