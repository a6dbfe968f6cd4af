use super::*;

const USUAL: &str = include_str!("../../../proxy/src/record/tests/plain.jsonl");

fn tally(text: &str) -> Tally {
    let mut tally = Tally::default();
    tally.read("records", text.as_bytes(), |_| {}).unwrap();
    tally.finish();
    tally
}

fn numbered(id: u64, upstream: &str) -> String {
    USUAL.replace("\"id\":17", &format!("\"id\":{id}")).replace("boiler", upstream)
}

#[test]
fn bad_lines_are_counted_and_the_first_of_a_kind_is_kept() {
    let bad = USUAL.replace("\"acks\":1", "\"acks\":\"1\"");
    let refused = "{\"event\":\"refused\",\"count\":7}\n";
    let tally = tally(&format!("{USUAL}{bad}hello\n\n{bad}{refused}{}", &USUAL[..100]));
    assert_eq!((tally.forwards, tally.refused, tally.bad_lines()), (1, 7, 4));
    let (count, example) = &tally.bad[&Bad::Field];
    assert_eq!((*count, example.line, &*example.file), (2, 2, "records"));
    assert!(example.why.contains("expected u64"), "{}", example.why);
    assert_eq!(tally.bad[&Bad::NotJson].1.line, 3);
    assert_eq!(tally.bad[&Bad::CutOff].1.line, 7);
}

#[test]
fn each_upstream_has_its_own_and_there_is_a_most() {
    let lines: String = (0..MOST_UPSTREAMS as u64 + 10).map(|id| numbered(id, &format!("u{id}"))).collect();
    let tally = tally(&(lines + &numbered(1, "u0")));
    assert_eq!((tally.upstreams.len(), tally.beyond), (MOST_UPSTREAMS, 10));
    assert_eq!(tally.upstreams["u0"].forwards, 2);
}

#[test]
fn numbers_say_what_share_was_recorded() {
    let lines = |every: u64, count: u64| (0..count).map(|id| numbered(id * every, "a")).collect::<String>();
    assert!((tally(&lines(1, 2000)).recorded() - 1.0).abs() < 1e-9);
    assert!((tally(&lines(10, 2000)).recorded() - 0.1).abs() < 0.001);
    // A process that starts again counts from 0.
    let twice = format!("{}{}", lines(100, 2000), lines(100, 2000));
    assert!((tally(&twice).recorded() - 0.01).abs() < 0.001);
}

#[test]
fn an_empty_file_is_no_records() {
    let tally = tally("");
    assert_eq!((tally.forwards, tally.lines, tally.bad_lines()), (0, 0, 0));
}
