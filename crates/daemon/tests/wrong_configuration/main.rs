//! Each kind of mistake stops the program before it does anything, and says where it is, which key and
//! value are meant, and what is allowed instead (R-USR-06, R-PAR-04).

mod mistakes;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use mistakes::{MISTAKES, Mistake};

fn run(verb: &str, directory: &Path, mistake: &Mistake) -> Output {
    let mut command = command(verb, directory);
    command.args(["--config", "coapway.toml", "--log", "log"]).args(mistake.arguments);
    command.envs(mistake.environment.iter().copied()).output().expect("the program runs")
}

fn command(verb: &str, directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.arg(verb).env_clear().current_dir(directory).stdin(Stdio::null());
    command
}

#[test]
fn each_mistake_is_told_with_its_place_and_what_is_allowed_and_nothing_starts() {
    assert!(MISTAKES.len() >= 20);
    for mistake in MISTAKES {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("coapway.toml"), mistake.file).unwrap();
        for verb in ["check", "serve"] {
            let Output { status, stdout, stderr } = run(verb, directory.path(), mistake);
            let told = String::from_utf8(stderr).expect("the message is text");
            let kind = mistake.kind;
            assert_eq!(status.code(), Some(2), "{verb}, {kind}: {told}");
            assert!(stdout.is_empty(), "{verb}, {kind}: {}", String::from_utf8_lossy(&stdout));
            for part in mistake.told {
                assert!(told.contains(part), "{verb}, {kind}: no {part:?} in\n{told}");
            }
            let made: Vec<_> = std::fs::read_dir(directory.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            assert_eq!(made, ["coapway.toml"], "{verb}, {kind}: a file was made");
        }
    }
}

#[test]
fn a_file_that_is_none_is_told_with_the_option_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("large"), vec![b'\n'; (1 << 20) + 1]).unwrap();
    for (file, reason) in [
        ("none", "cannot be read"),
        (".", "cannot be read"),
        ("large", "too large"),
        ("/dev/zero", "too large"),
    ] {
        for verb in ["check", "serve"] {
            let Output { status, stderr, .. } =
                command(verb, directory.path()).args(["--config", file]).output().unwrap();
            let told = String::from_utf8(stderr).expect("the message is text");
            assert_eq!(status.code(), Some(2), "{file}: {told}");
            assert!(told.contains(&format!("command line: --config {file}\n    {reason}")), "{told}");
            assert!(told.contains("allowed: a file of at most 1MiB"), "{told}");
        }
    }
}

#[test]
fn a_port_in_use_stops_serve_and_is_a_note_of_check() {
    let directory = tempfile::tempdir().unwrap();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let file = format!("[log]\nfile = \"log\"\n[[listen]]\nuri = \"coap://{address}\"\n");
    std::fs::write(directory.path().join("coapway.toml"), file).unwrap();
    let run = |verb| command(verb, directory.path()).args(["--config", "coapway.toml"]).output().unwrap();

    let Output { status, stdout, stderr } = run("serve");
    let told = String::from_utf8(stderr).unwrap();
    assert_eq!((status.code(), &stdout[..]), (Some(2), &b""[..]), "{told}");
    for part in [
        &format!("coapway.toml:4:7: listen = coap://{address}\n    the port is in use by another program\n"),
        "hint: ss -ulpn",
    ] {
        assert!(told.contains(part), "no {part:?} in\n{told}");
    }
    assert!(!directory.path().join("log").exists(), "nothing was begun");

    let Output { status, stdout, stderr } = run("check");
    let told = String::from_utf8(stdout).unwrap();
    assert!(status.success() && stderr.is_empty(), "{told}");
    let note = format!("note: coap://{address} (coapway.toml:4) is in use: ");
    assert!(told.contains(&note) && told.contains("configuration ok"), "{told}");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("coapway.toml"), "workers = 0\n[log]\nlevel = \"inf\"\n").unwrap();
    let mut check = command("check", directory.path());
    check
        .args(["--config", "coapway.toml", "--set", "upstream.queue=-1"])
        .env("COAP_UPSTREAM_MAX_WAIT", "soon");
    let told = String::from_utf8(check.output().unwrap().stderr).unwrap();
    assert!(told.starts_with("coapway: 4 errors in the configuration\n"), "{told}");
}

#[test]
fn a_good_configuration_is_told_too() {
    let directory = tempfile::tempdir().unwrap();
    let file = "[[listen]]\nuri = \"coap://127.0.0.1:5683\"\n[record]\nfile = \"records\"\n";
    std::fs::write(directory.path().join("coapway.toml"), file).unwrap();
    let Output { status, stdout, stderr } = command("check", directory.path())
        .args(["--config", "coapway.toml", "--log", "log"])
        .output()
        .unwrap();
    let told = String::from_utf8(stdout).unwrap();
    assert!(status.success() && stderr.is_empty(), "{told}");
    for line in ["3 of 4 retransmissions fit", "memory is at most", "configuration ok"] {
        assert!(told.contains(line), "no {line:?} in\n{told}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was made");
}
