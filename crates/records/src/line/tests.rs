use super::written::timestamp;
use super::*;

const USUAL: &str = include_str!("../../../proxy/src/record/tests/plain.jsonl");
const FAILED: &str = include_str!("../../../proxy/src/record/tests/failed.jsonl");

fn forward(line: &str) -> Box<Forward<'_>> {
    match read(line.trim_end().as_bytes()) {
        Ok(Line::Forward(forward)) => forward,
        other => panic!("{other:?}"),
    }
}

fn bad(line: &str) -> Bad {
    read(line.as_bytes()).expect_err("it cannot be used").bad
}

#[test]
fn reads_what_the_proxy_writes() {
    let usual = forward(USUAL);
    assert_eq!((&*usual.upstream, usual.origin.as_deref()), ("boiler", Some("10.1.2.3:5683")));
    assert_eq!(usual.received, 1_796_019_798_500_000);
    assert_eq!((METHODS[usual.method], usual.confirmable, usual.code), ("GET", true, 0x45));
    assert_eq!((usual.first_ack, usual.acks, usual.answer), (Some(2272.69), 1, Some(Answer::Piggybacked)));
    assert_eq!(&usual.copies[..], [Copy { at: 0.0, wait: 2211.288, message_id: 17, begins: true }]);
    assert_eq!((usual.cause, usual.late, usual.outcome_unknown), (Cause::Origin, Some(0), false));

    let failed = forward(FAILED);
    assert_eq!((failed.copies.len(), failed.copies[2].message_id), (3, 18));
    assert_eq!([0, 1, 2].map(|place| failed.copies[place].begins), [true, false, true]);
    assert_eq!((usual.first_ack_id, failed.first_ack_id), (Some(17), Some(17)));
    assert_eq!((failed.cause, failed.outcome_unknown, failed.answer), (Cause::TimedOut, true, None));
    assert_eq!((failed.queued, failed.total, failed.code), (0.412, 2272.69, 0xA4));
    assert_eq!((&*usual.client, usual.bytes), ("10.0.0.7:40000", 12));
}

#[test]
fn says_why_a_line_cannot_be_used() {
    let line = USUAL.trim_end();
    assert_eq!(bad(&line[..200]), Bad::CutOff);
    assert_eq!(bad("hello"), Bad::NotJson);
    assert_eq!(bad("\u{0}\u{1}"), Bad::NotJson);
    assert_eq!(bad("[1,2]"), Bad::Field);
    assert_eq!(bad("{}"), Bad::Field);
    assert_eq!(bad(r#"{"event":"alert"}"#), Bad::OtherEvent);
    assert_eq!(bad(r#"{"event":"forward"}"#), Bad::Field);
    for (from, to) in [
        ("\"total_ms\":2272.690", "\"total_ms\":\"2272.690\""),
        ("\"acks\":1", "\"acks\":-1"),
        ("\"attempts\":[{", "\"attempts\":[3,{"),
        ("\"mid\":17", "\"mid\":65536"),
        ("\"upstream\":\"boiler\",", ""),
    ] {
        assert!(line.contains(from), "{from}");
        assert_eq!(bad(&line.replace(from, to)), Bad::Field, "{to}");
    }
    for (from, to) in [
        ("\"total_ms\":2272.690", "\"total_ms\":-1.0"),
        ("\"total_ms\":2272.690", "\"total_ms\":1e300"),
        ("\"total_ms\":2272.690", "\"total_ms\":2000.0"),
        ("\"first_ack_ms\":2272.690", "\"first_ack_ms\":2272.691"),
        ("\"upstream\":\"boiler\"", "\"upstream\":\"boi ler\""),
        ("\"upstream\":\"boiler\"", "\"upstream\":\"\\u001b[31m\""),
        ("\"origin\":\"10.1.2.3:5683\"", "\"origin\":\"x\\\"\\nnstart = 9\""),
        ("\"code\":\"2.05\"", "\"code\":\"2.33\""),
        ("\"answer_kind\":\"piggybacked\"", "\"answer_kind\":\"pigeon\""),
        ("T06:23:18", "T26:23:18"),
    ] {
        assert!(line.contains(from), "{from}");
        assert_eq!(bad(&line.replace(from, to)), Bad::Value, "{to}");
    }
}

#[test]
fn refusals_are_counted() {
    let line = r#"{"ts":"2026-11-30T06:23:18.500000Z","event":"refused","code":"4.29","cause":"refused","count":1742}"#;
    assert_eq!(read(line.as_bytes()).unwrap(), Line::Refused(1742));
}

#[test]
fn later_versions_may_write_more() {
    let line = USUAL.trim_end().replace("\"late\":0,", "");
    for (added, late) in [
        ("\"late\":3,", Some(3)),
        ("\"late\":[{\"at_ms\":3.0}],", Some(1)),
        ("\"late\":null,", None),
        ("\"weather\":{\"rain\":[1,2]},", None),
    ] {
        let line = line.replace("\"window\"", &format!("{added}\"window\""));
        assert_eq!(forward(&line).late, late, "{added}");
    }
}

#[test]
fn dates_follow_the_calendar() {
    let at = |text: &str| timestamp(text.as_bytes());
    for (text, seconds) in [
        ("1970-01-01T00:00:00.000000Z", 0),
        ("2000-02-29T00:00:00.000000Z", 951_782_400),
        ("2024-02-29T23:59:59.000000Z", 1_709_251_199),
        ("2100-03-01T00:00:00.000000Z", 4_107_542_400),
    ] {
        assert_eq!(at(text), Some(seconds * 1_000_000), "{text}");
    }
    assert_eq!(at("2026-11-30 06:23:18.500000Z"), None);
    assert_eq!(at("2026-13-30T06:23:18.500000Z"), None);
    assert_eq!(at("2026-11-30T06:23:18.5Z"), None);
}
