//! What the log says at the start (R-USR-04).

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What `serve` tells until it is ready.
fn told(command: &mut Command) -> Vec<String> {
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program runs");
    let stderr = child.stderr.take().expect("piped");
    let _running = Running(child);
    let mut told = Vec::new();
    for line in BufReader::new(stderr).lines() {
        told.push(line.expect("text"));
        if told.last().is_some_and(|line| line.ends_with("ready")) {
            break;
        }
    }
    told
}

/// A command that serves at an address of its own, and that address.
fn serve() -> (Command, SocketAddr) {
    let free =
        std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has ports").local_addr().expect("bound");
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.args(["serve", "--listen", &format!("coap://{free}")]).env_clear();
    (command, free)
}

#[test]
fn a_start_tells_how_many_copies_fit_and_what_memory_there_may_be() {
    let (mut command, free) = serve();
    let told = told(command.args(["--set", "upstream.probing_rate=off"]));
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
fn what_is_told_follows_file_and_environment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("coapway.toml");
    std::fs::write(&file, "[upstream]\nmax_wait = \"12s\"\nack_timeout = \"3s\"\n").unwrap();
    let (mut command, _) = serve();
    command.arg("--config").arg(&file);
    command.envs([("COAP_UPSTREAM_ACK_TIMEOUT", "4"), ("COAP_UPSTREAM_MAX_RETRANSMIT", "2")]);
    let told = told(&mut command);
    let part = "1 of 2 retransmissions fit (number 2 would leave 12s to 18s after the first copy)";
    assert!(told.iter().any(|line| line.contains(part)), "no {part:?} in\n{}", told.join("\n"));
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
