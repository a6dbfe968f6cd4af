//! The command replays what a failing test names.

use std::process::{Command, Output};

fn command(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_coapway-sim")).args(arguments).output().expect("the command runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn replays_a_seed_as_diagram_and_as_log() {
    let diagram = command(&["run", "--seed", "3"]);
    assert_eq!(diagram.status.code(), Some(0), "{}", text(&diagram));
    assert!(text(&diagram).contains("client1 → proxy  "), "{}", text(&diagram));
    let log = command(&["run", "--seed", "3", "--log"]);
    assert!(text(&log).contains("event 0.0 received"), "{}", text(&log));
    assert_eq!(text(&log), text(&command(&["run", "--seed", "3", "--log"])));
}

#[test]
fn who_has_read_enough_is_no_failure() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/piggybacked.scenario");
    for arguments in [&["run", "--seed", "3"][..], &["run", "--seeds", "3..4"], &["scenario", file]] {
        let (reader, writer) = std::io::pipe().expect("pipes can be had");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_coapway-sim"));
        let ended = command.args(arguments).stdout(writer).output().expect("the command runs");
        assert_eq!(
            (ended.status.code(), &*String::from_utf8_lossy(&ended.stderr)),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn plays_a_scenario() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/piggybacked.scenario");
    let played = command(&["scenario", file]);
    assert_eq!(played.status.code(), Some(0), "{}", text(&played));
    assert!(text(&played).contains("proxy.0 → origin  CON GET /temperature"), "{}", text(&played));
}

#[test]
fn numbers_have_an_upper_end_and_are_told_it() {
    for (which, most) in [
        ("storms", &[1_000_000_000_u64, 256][..]),
        ("standing", &[1_000_000, 604_800]),
        ("flood", &[1_000_000, 604_800, 4096]),
    ] {
        for (place, most) in most.iter().enumerate() {
            for wrong in ["0", "4000000000", "18446744073709551615", "1e99"] {
                let mut arguments = vec!["soak", which];
                arguments.extend(std::iter::repeat_n("1", place));
                arguments.push(wrong);
                let ended = command(&arguments);
                let told = String::from_utf8_lossy(&ended.stderr);
                assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {told}");
                assert!(told.contains(&format!("{wrong:?} is no whole number from 1 to {most}\n")), "{told}");
            }
        }
    }
}

#[test]
fn wrong_use_is_told_from_failure() {
    assert_eq!(command(&["run"]).status.code(), Some(2));
    assert_eq!(command(&["run", "--seed", "x"]).status.code(), Some(2));
    assert_eq!(command(&["scenario", "/nowhere"]).status.code(), Some(1));
}
