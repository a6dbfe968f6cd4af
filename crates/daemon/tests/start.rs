//! What the log says at the start (R-USR-04).

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_start_tells_how_many_copies_fit_and_what_memory_there_may_be() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.args(["serve", "--listen", &format!("coap://{free}"), "--set", "upstream.probing_rate=off"]);
    let mut child = command.env_clear().stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = child.stderr.take().unwrap();
    let _running = Running(child);
    let mut told = Vec::new();
    for line in BufReader::new(stderr).lines() {
        told.push(line.unwrap());
        if told.last().is_some_and(|line| line.ends_with("ready")) {
            break;
        }
    }
    for part in [
        "3 of 4 retransmissions fit (number 4 would leave 30s to 45s after the first copy)",
        "3.6 / 7.7 / 19 % at 10 / 15 / 25 % loss each way; with deduplicates = true",
        "memory is at most",
        "WARN upstream.probing_rate = \"off\"",
        &format!("listening on coap://{free}"),
    ] {
        assert!(told.iter().any(|line| line.contains(part)), "no {part:?} in\n{}", told.join("\n"));
    }
}

#[test]
fn who_waits_for_the_reader_of_a_fifo_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("records");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.args(["serve", "--listen", &format!("coap://{free}"), "--record"]).arg(&fifo);
    let mut child = command.env_clear().stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = child.stderr.take().unwrap();
    let mut running = Running(child);
    let mut lines = BufReader::new(stderr).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("waiting until somebody reads")));
    let stop = Command::new("kill").args(["-s", "TERM", &running.0.id().to_string()]).status();
    assert!(stop.unwrap().success());
    // The log ends with the process.
    assert!(lines.last().is_some_and(|line| line.contains("stopped")));
    assert!(running.0.wait().unwrap().success());
}
