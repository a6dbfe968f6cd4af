use coapway_time::Instant;
use std::time::Duration;

use super::*;
use crate::command::Command;

fn text(demo: &Demo, columns: u16, rows: u16, help: bool) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    let screen = Screen { theme: Theme::COLOURS, speed: 1.0, paused: false, help };
    draw(demo, &screen, buffer.area, &mut buffer);
    let rows = buffer.content.chunks(columns.into());
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
}

fn demo(seconds: f64) -> Demo {
    let mut demo = Demo::new(7);
    demo.run_until(Instant::ZERO + Duration::from_secs_f64(seconds));
    demo
}

#[test]
fn a_frame_shows_what_the_demo_is_about() {
    let text = text(&demo(17.6), 112, 33, false);
    for part in [
        "coapway demo",
        "outage: nothing passes",
        "5.04 outcome-unknown",
        "learned timeout",
        "window",
        "×1",
        "✗",
        "POST unanswered",
        "quit",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn small_screens_stay_readable() {
    let demo = demo(17.6);
    let narrow = text(&demo, 60, 20, false);
    for part in ["coapway demo", "Never", "5.04", "timeout", "answered", "silent", "quit", "help"] {
        assert!(narrow.contains(part), "no {part:?} in\n{narrow}");
    }
    let usual = text(&demo, 80, 24, false);
    for part in ["RTT", "5.04", "twice", "░", "slow origin"] {
        assert!(usual.contains(part), "no {part:?} in\n{usual}");
    }
}

#[test]
fn no_size_is_too_small_to_draw() {
    let mut demo = demo(14.0);
    demo.perform(Command::SlowOrigin);
    demo.perform(Command::ForgetfulOrigin);
    for columns in (1..130).step_by(7) {
        for rows in (1..40).step_by(2) {
            text(&demo, columns, rows, rows % 4 == 1);
        }
    }
}

#[test]
fn help_names_every_key() {
    let text = text(&demo(1.0), 100, 30, true);
    for part in [
        "an outage",
        "the origin takes",
        "does not recognise repeats",
        "slower, faster",
        "pause",
        "count anew",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}
