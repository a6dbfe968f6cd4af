use coapway_records::Bad;

use super::*;
use crate::dice::{Dice, Use};

pub(crate) fn record(second: f64, attempts: &[f64], ack: Option<f64>) -> String {
    let (minute, rest) = ((second / 60.0) as u32, second % 60.0);
    let attempts: Vec<_> = attempts
        .iter()
        .map(|at| format!("{{\"mid\":1,\"kind\":\"first\",\"at_ms\":{at},\"took_ms\":1,\"rto_ms\":500}}"))
        .collect();
    let (acks, ack) = ack.map_or((0, "null".to_owned()), |ack| (1, ack.to_string()));
    format!(
        "{{\"ts\":\"2026-01-01T00:{minute:02}:{rest:09.6}Z\",\"event\":\"forward\",\"id\":1,\"client\":\"10.0.0.7:1\",\
         \"upstream\":\"boiler\",\"origin\":null,\"method\":\"GET\",\"type\":\"con\",\"attempts\":[{}],\
         \"first_ack_ms\":{ack},\"acks\":{acks},\"answer_kind\":null,\"window\":1,\"queue_ms\":0,\"code\":\"2.05\",\
         \"cause\":\"ok\",\"evidence\":null,\"total_ms\":90000,\"bytes_in\":9}}\n",
        attempts.join(",")
    )
}

fn read_all(text: &str, only: Option<&str>) -> Replay {
    read(&mut text.as_bytes(), only).expect("text can be read")
}

#[test]
fn times_come_back_at_their_moments() {
    let text = record(10.0, &[0.0], Some(100.0))
        + &record(20.0, &[0.0], Some(300.0))
        + &record(30.0, &[5.0], Some(205.0));
    let replay = read_all(&text, None);
    let [scenario] = &replay.scenarios[..] else { panic!("{replay:?}") };
    let Law::Measured(measured) = &scenario.path.rtt else { panic!("{scenario:?}") };
    let moments: Vec<_> =
        measured.samples.iter().map(|(at, took)| ((at * 1e3).round(), (took * 1e3).round())).collect();
    assert_eq!(moments, [(0.0, 100.0), (10_000.0, 300.0), (20_005.0, 200.0)]);
    assert_eq!((&*scenario.name, scenario.path.up.loss), ("boiler", 0.0));
}

#[test]
fn the_share_that_is_lost_is_found_again() {
    let mut text = String::new();
    for number in 0..3000_u32 {
        let mut dice = Dice::new(1, Use::Run, number.into(), 0);
        let mut sent = Vec::new();
        loop {
            sent.push(sent.len() as f64 * 500.0);
            if dice.share() < 0.9 * 0.9 {
                break;
            }
        }
        let ack = sent.last().map(|at| at + 100.0);
        text += &record(f64::from(number) * 0.5, &sent, ack);
    }
    let loss = read_all(&text, None).scenarios[0].path.up.loss;
    assert!((loss - 0.1).abs() < 0.01, "{loss}");
}

#[test]
fn a_copy_too_young_to_have_brought_the_answer_does_not_count() {
    let text = record(1.0, &[0.0], Some(100.0)) + &record(2.0, &[0.0, 200.0], Some(220.0));
    assert_eq!(read_all(&text, None).scenarios[0].path.up.loss, 0.0);
}

#[test]
fn bad_lines_are_counted_and_others_are_used() {
    let mut text = String::from("nonsense\n\n{\"ts\":1}\n");
    text += &record(1.0, &[0.0], Some(100.0));
    text += "{\"ts\":\"2026-01-01T00:00:00Z\",\"event\":\"refused\",\"code\":\"4.29\",\"count\":3}\n";
    text += &record(2.0, &[0.0], Some(100.0))[..60];
    let replay = read_all(&text, None);
    assert_eq!((replay.lines, replay.bad, replay.scenarios.len()), (5, 3, 1));
    let (number, no_record) = replay.first_bad.expect("three are bad");
    assert_eq!((number, no_record.bad), (1, Bad::NotJson));
}

#[test]
fn what_is_no_record_for_tune_is_none_here() {
    let good = record(1.0, &[0.0], Some(100.0));
    for (from, to) in [
        ("\"id\":1,", ""),
        ("\"upstream\":\"boiler\"", "\"upstream\":\"\\u001b[31mboiler\""),
        ("\"upstream\":\"boiler\"", "\"upstream\":\"<&\""),
        ("00:00:01.000000Z", "00:00:01Z"),
        ("\"first_ack_ms\":100", "\"first_ack_ms\":90001"),
    ] {
        assert!(good.contains(from), "{from}");
        let replay = read_all(&good.replace(from, to), None);
        assert_eq!((replay.lines, replay.bad, replay.scenarios.len()), (1, 1, 0), "{to}");
    }
}

#[test]
fn a_byte_order_mark_costs_no_line() {
    let replay = read_all(&format!("\u{feff}{}", record(1.0, &[0.0], Some(100.0))), None);
    assert_eq!((replay.lines, replay.bad, replay.scenarios.len()), (1, 0, 1));
}

#[test]
fn round_trips_below_a_millisecond_are_told() {
    let replay = read_all(&record(1.0, &[0.0], Some(0.25)), None);
    let about = &replay.scenarios[0].about;
    assert!(about.contains("half of the answers within 0.000250 s"), "{about}");
}

#[test]
fn a_line_of_3_mb_is_one_line() {
    let good = record(1.0, &[0.0], Some(100.0));
    let long = |bytes: usize| "x".repeat(bytes) + "\n";
    let text = good.clone() + &long(3 << 20) + &good + &long(1 << 16) + &good + &long(3 << 20);
    for text in [&*text, text.trim_end()] {
        let replay = read_all(text, None);
        assert_eq!((replay.lines, replay.bad), (6, 3));
        assert!(replay.scenarios[0].about.starts_with("3 forwards"), "{}", replay.scenarios[0].about);
    }
}

#[test]
fn what_was_rejected_was_not_lost() {
    let rejected = |cause: &str| {
        let line = record(3.0, &[0.0, 500.0], None);
        line.replace("\"cause\":\"ok\"", &format!("\"cause\":\"{cause}\""))
    };
    let answered = record(1.0, &[0.0], Some(100.0)) + &record(2.0, &[0.0], Some(100.0));
    for cause in ["unreachable", "reset"] {
        let replay = read_all(&(answered.clone() + &rejected(cause)), None);
        assert_eq!((replay.rejected, replay.scenarios[0].path.up.loss), (1, 0.0), "{cause}");
        assert!(replay.scenarios[0].about.starts_with("3 forwards in"), "it was asked all the same");
    }
    let replay = read_all(&(answered + &rejected("timeout")), None);
    assert_eq!(replay.rejected, 0);
    assert!((replay.scenarios[0].path.up.loss - (1.0 - 0.5_f64.sqrt())).abs() < 1e-9, "two of four copies");
}

#[test]
fn an_answer_before_a_rejection_is_an_answer() {
    let line = record(1.0, &[0.0], Some(100.0));
    let replay = read_all(&line.replace("\"cause\":\"ok\"", "\"cause\":\"reset\""), None);
    assert_eq!((replay.rejected, replay.scenarios.len()), (0, 1));
}

fn to(upstream: &str, origin: u32, took: f64) -> String {
    let line = record(f64::from(origin), &[0.0], Some(took));
    line.replace(
        "\"upstream\":\"boiler\",\"origin\":null",
        &format!("\"upstream\":\"{upstream}\",\"origin\":\"10.0.1.{origin}:5683\""),
    )
}

#[test]
fn origins_without_an_upstream_are_a_path_each() {
    let replay =
        read_all(&(to("default", 1, 10.0) + &to("default", 2, 900.0) + &to("default", 2, 900.0)), None);
    let found: Vec<_> =
        replay.scenarios.iter().map(|scenario| (&*scenario.name, scenario.path.rtt.typical())).collect();
    assert_eq!(found, [("10.0.1.1:5683", 0.01), ("10.0.1.2:5683", 0.9)]);
    let unsent = record(1.0, &[], None).replace("boiler", "default");
    assert!(read_all(&unsent, None).without_samples.is_empty());
}

#[test]
fn origins_that_are_taken_as_one_are_counted() {
    let one = read_all(&(to("boiler", 1, 10.0) + &to("boiler", 2, 10.0)), None);
    let about = &*one.scenarios[0].about;
    assert!(about.starts_with("2 forwards to 2 origins taken as one in records"), "{about}");
    let many: String = (1..=20).map(|origin| to("default", origin, 10.0)).collect();
    let replay = read_all(&many, Some("default"));
    assert_eq!(replay.scenarios.len(), MOST_PATHS + 1);
    let rest = replay.scenarios.iter().find(|scenario| scenario.name == "default").expect("the rest");
    assert!(rest.about.starts_with("4 forwards to 4 origins taken as one"), "{}", rest.about);
}

#[test]
fn only_what_is_asked_for_and_only_what_says_something() {
    let text = record(1.0, &[0.0], Some(100.0)) + &record(2.0, &[0.0], None).replace("boiler", "silent");
    let replay = read_all(&text, None);
    assert_eq!((replay.scenarios.len(), &replay.without_samples[..]), (1, &["silent".to_owned()][..]));
    assert!(read_all(&text, Some("other")).scenarios.is_empty());
}
