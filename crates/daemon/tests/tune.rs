//! `coapway tune` as a program: where it reads from, and what its end says.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

const RECORD: &str = include_str!("../../proxy/src/record/tests/plain.jsonl");

fn tune(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.arg("tune").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("coapway starts");
    let mut stdin = child.stdin.take().expect("it has a standard input");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

#[test]
fn reads_standard_input_and_says_how_much_it_needs() {
    let output = tune(&["-"], &RECORD.repeat(20));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("boiler: 20 forwards") && text.contains("Too little to say more"), "{text}");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(1), 0), "no progress but on a terminal");
}

#[test]
fn programs_get_json() {
    let output = tune(&["-", "--json"], RECORD);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["upstreams"][0]["verdict"], "too-little");
    assert_eq!(value["forwards"], 1);
}

#[test]
fn says_what_is_wrong_with_what_it_is_given() {
    for (arguments, code, told) in [
        (&["/nowhere/records.jsonl"][..], 1, "/nowhere/records.jsonl: cannot be opened"),
        (&["-", "--upstream", "door"][..], 2, "no forward record is of upstream \"door\""),
        (&["-", "--config", "/nowhere/coapway.toml"][..], 2, "/nowhere/coapway.toml: cannot be read"),
        (&[][..], 2, "RECORDS"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
        let output = command.arg("tune").args(arguments).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(told), "{text}");
    }
}
