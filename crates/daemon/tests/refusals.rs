//! What the program refuses before it does anything, and how it says so.

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Nothing that is refused takes longer; what is not refused is ended then.
const LONGEST: Duration = Duration::from_secs(20);

/// Runs the program; how it ends, and what it says on standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.args(arguments).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("the program runs");
    let (id, (over, ended)) = (child.id().to_string(), channel::<()>());
    let guard = thread::spawn(move || {
        // It was not waited for yet, so that its number is nobody else's.
        if ended.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-s", "KILL", &id]).status();
        }
    });
    let ended = child.wait_with_output().expect("it ends");
    drop(over);
    guard.join().expect("it only waits");
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn what_is_wrong_with_files_is_told_before_anything_is_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let listen = format!("coap://{}", taken.local_addr().expect("bound"));
    let file = folder.path().join("coapway.toml");
    let name = file.display().to_string();
    let none = folder.path().join("none").display().to_string();
    for (settings, place, reason) in [
        (format!("record.file = '{none}/records'"), "1:15: record.file", "no directory"),
        (format!("log.file = '{none}/log'"), "1:12: log.file", "no directory"),
        (format!("state = '{none}/learned'"), "1:9: state", "no directory"),
        (format!("resolver = 'hosts:{none}'"), "1:12: resolver", "cannot be read"),
        (format!("record.file = '{name}'"), "1:15: record.file", "the same file as this configuration"),
    ] {
        std::fs::write(&file, &settings).expect("written");
        for verb in ["serve", "check"] {
            let (code, told) = run(&[verb, "--config", &name, "--listen", &listen]);
            let begins = format!("coapway: 1 error in the configuration\n\n{name}:{place} = ");
            assert!(code == Some(2) && told.starts_with(&begins) && told.contains(reason), "{verb}: {told}");
        }
        assert_eq!(std::fs::read_to_string(&file).expect("it is left alone"), settings);
    }
}

#[test]
fn nothing_is_added_to_what_somebody_else_keeps() {
    let folder = tempfile::tempdir().expect("a folder");
    let [foreign, records] = ["foreign", "records"].map(|name| folder.path().join(name));
    let record = "{\"ts\":\"2026-01-01T00:00:00.000000Z\",\"event\":\"refused\"}\n";
    std::fs::write(&records, record).expect("written");
    let name = |path: &std::path::Path| path.display().to_string();
    for (option, content, reason) in [
        ("--record", &b"root:x:0:0:root:/root:/bin/sh\n"[..], "it begins with what is no record"),
        ("--log", b"SQLite format 3\0\x10\0", "its first line is not text"),
        ("--log", b"#!/bin/sh\nexit\n", "a script"),
    ] {
        std::fs::write(&foreign, content).expect("written");
        for verb in ["serve", "check"] {
            let (code, told) = run(&[verb, "--listen", "coap://127.0.0.1:9", option, &name(&foreign)]);
            let begins = format!(
                "coapway: 1 error in the configuration\n\ncommand line: {option} {}\n    {reason}",
                name(&foreign)
            );
            assert!(code == Some(2) && told.starts_with(&begins), "{told}");
        }
        assert_eq!(std::fs::read(&foreign).expect("it is left alone"), content);
    }
    let (code, told) =
        run(&["check", "--record", &name(&records), "--log", &name(&folder.path().join("log"))]);
    assert_eq!((code, &*told), (Some(0), ""));
}

#[test]
fn memory_that_is_not_there_is_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.current_dir(folder.path()).env_clear().stdin(Stdio::null());
    let check = command.args(["check", "--set", "limits.fetches=16777216", "--set", "dedup.memory=64GiB"]);
    let ended = check.output().expect("the program runs");
    let told = String::from_utf8(ended.stdout).expect("text");
    assert!(ended.status.success(), "{told}");
    for part in ["warning: memory may come to ", " has ", "limits.fetches = 16777216 (--set)"] {
        assert!(told.contains(part), "no {part:?} in\n{told}");
    }
}

#[test]
fn nobody_listens_where_everybody_is_meant() {
    // The broadcast address of loopback's own network.
    for verb in ["serve", "check"] {
        let (code, told) =
            run(&[verb, "--listen", "coap://127.255.255.255:5683", "--set", "forward.enabled=false"]);
        let begins = "coapway: 1 error in the configuration\n\ncommand line: --listen coap://127.255.255.255:5683\n    \
                      a broadcast address";
        assert!(code == Some(2) && told.starts_with(begins), "{told}");
    }
}

#[test]
fn what_was_given_is_shown_without_its_control_characters() {
    let hostile = "\x1b[31m\u{9b}1m\x07";
    let uri = format!("coap://{hostile}");
    for arguments in [
        &["serve", hostile][..],
        &["check", "--set", hostile],
        &["check", "--record", hostile],
        &["check", "--config", hostile],
        &["get", &uri],
        &["simulate", hostile],
        &["tune", hostile],
        &["demo", hostile],
    ] {
        let (code, told) = run(arguments);
        assert!(code.is_some_and(|code| code > 0) && !told.is_empty(), "{arguments:?}");
        assert!(!told.replace('\n', "").contains(char::is_control), "{arguments:?}: {told:?}");
    }
}
