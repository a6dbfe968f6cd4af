//! `coapway demo` on a terminal: it starts at once, tells its story, obeys its keys, and leaves the
//! terminal as it was, however it ends.

mod screen;

use std::process::{Command, Stdio};

use rustix::process::Signal;
use screen::Demo;

/// `timeout 294 ms` or so: well under the 2 s it begins with.
fn has_learned(contents: &str) -> bool {
    let timeouts = contents.split("timeout ").skip(1);
    let millis = timeouts.filter_map(|rest| rest.split_once(" ms")?.0.parse::<u32>().ok());
    millis.into_iter().any(|millis| millis < 500)
}

#[test]
fn starts_at_once_and_tells_its_story() {
    let mut demo = Demo::start(&["--speed", "4"], &[]);
    demo.wait_for_start();
    demo.wait_until("a learned timeout", has_learned);
    demo.wait_for("25 % lost each way");
    demo.wait_until("a retry", |contents| contents.contains("2.05 ×2") || contents.contains("2.04 ×2"));
    demo.wait_for("outage: nothing passes");
    demo.wait_for("5.04 ");
    assert!(demo.contents().contains("outage: nothing passes"), "{}", demo.contents());
    demo.wait_for("The link is back");
    demo.press("q");
    demo.must_leave_cleanly(0);
}

#[test]
fn obeys_its_keys() {
    let mut demo = Demo::start(&["--speed", "0.1"], &[]);
    demo.wait_for_start();
    for (key, shown) in [
        (" ", "paused"),
        ("+", " 5 % lost each way"),
        ("+", "10 % lost each way"),
        ("-", " 5 % lost each way"),
        ("o", "outage: nothing passes"),
        ("o", " 5 % lost each way"),
        ("s", "origin, slow: 2.5 s"),
        ("f", "forgetful origin"),
        ("e", "▶1 fixed timeout"),
        ("e", "▶2 learned timeout"),
        ("d", "▶4 … deduplicates"),
        ("3", "▶3 … POST only once"),
        (">", "×0.25"),
        ("<", "×0.1"),
        ("?", "Help"),
    ] {
        demo.press(key);
        demo.wait_for(shown);
    }
    // It closes the help first.
    demo.press("q");
    demo.wait_until("no help", |contents| !contents.contains("Help"));
    demo.press(" ");
    demo.wait_until("no pause", |contents| !contents.contains("paused"));
    demo.press("q");
    demo.must_leave_cleanly(0);
}

#[test]
fn follows_the_size_of_the_terminal() {
    let mut demo = Demo::start(&[], &[]);
    demo.wait_for_start();
    demo.wait_for("POST unanswered");
    demo.resize(60, 20);
    demo.wait_until("a narrow table", |contents| contents.contains("POST lost") && contents.contains("quit"));
    demo.resize(112, 33);
    demo.wait_for("POST unanswered");
    demo.press("\x1b");
    demo.must_leave_cleanly(0);
}

#[test]
fn leaves_the_terminal_as_it_was_when_asked_to_stop() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut demo = Demo::start(&[], &[]);
        demo.wait_for_start();
        demo.signal(signal);
        demo.must_leave_cleanly(0);
    }
    let mut demo = Demo::start(&[], &[]);
    demo.wait_for_start();
    demo.press("\x03");
    demo.must_leave_cleanly(0);
}

#[test]
fn leaves_the_terminal_as_it_was_when_it_crashes() {
    // A release cannot be asked to.
    if !cfg!(debug_assertions) {
        return;
    }
    let mut demo = Demo::start(&["--speed", "4"], &[("COAPWAY_TEST_DEMO_CRASHES_AT", "1")]);
    demo.wait_for_start();
    demo.must_leave_cleanly(101);
    assert!(demo.contents().contains("the demo was asked to crash"), "{}", demo.contents());
}

#[test]
fn ends_when_its_time_is_over() {
    let mut demo = Demo::start(&["--speed", "20", "--for", "10s"], &[]);
    demo.wait_for_start();
    demo.must_leave_cleanly(0);
}

#[test]
fn needs_no_colours() {
    let mut demo = Demo::start(&[], &[("NO_COLOR", "1")]);
    demo.wait_for_start();
    assert!(!demo.has_colours());
    demo.press("q");
    demo.must_leave_cleanly(0);
    let mut demo = Demo::start(&[], &[]);
    demo.wait_for_start();
    assert!(demo.has_colours());
}

#[test]
fn a_terminal_that_knows_nothing_gets_lines() {
    let mut demo = Demo::start(&["--speed", "100", "--for", "2s"], &[("TERM", "dumb")]);
    demo.must_leave_cleanly(0);
    assert!(demo.contents().contains("… deduplicates"), "{}", demo.contents());
}

#[test]
fn without_a_terminal_it_tells_the_story_in_lines() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
    command.args(["demo", "--speed", "100", "--for", "25s"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    for part in
        ["Timeout learned", "copy 2 left after", "Outage", "5.04", "The link is back", "POST unanswered"]
    {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!((25..60).contains(&text.lines().count()), "{text}");
}
