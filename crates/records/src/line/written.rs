//! A record as JSON.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use smallvec::SmallVec;

use super::{Answer, Bad, Cause, Copy, Forward, Line, METHODS, NoRecord};

/// A record has at most so many copies: 11 of each of 5 exchanges.
const MOST_COPIES: usize = 55;
/// Times beyond a week are none that the product writes, in milliseconds.
const LONGEST: f64 = 7.0 * 86_400_000.0;

#[derive(Deserialize)]
struct Event<'l> {
    #[serde(borrow)]
    event: Cow<'l, str>,
    #[serde(default)]
    count: Option<u64>,
}

#[derive(Deserialize)]
struct Written<'l> {
    #[serde(borrow)]
    ts: Cow<'l, str>,
    #[serde(borrow)]
    event: Cow<'l, str>,
    id: u64,
    #[serde(borrow, default)]
    client: Cow<'l, str>,
    #[serde(borrow)]
    upstream: Cow<'l, str>,
    #[serde(borrow)]
    origin: Option<Cow<'l, str>>,
    #[serde(borrow)]
    method: Cow<'l, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'l, str>,
    attempts: Attempts,
    first_ack_ms: Option<f64>,
    #[serde(default)]
    first_ack_mid: Option<u16>,
    acks: u64,
    #[serde(default)]
    late: Option<Late>,
    #[serde(borrow)]
    answer_kind: Option<Cow<'l, str>>,
    window: u32,
    queue_ms: f64,
    #[serde(borrow)]
    code: Cow<'l, str>,
    #[serde(borrow)]
    cause: Cow<'l, str>,
    #[serde(borrow)]
    evidence: Option<Cow<'l, str>>,
    total_ms: f64,
    #[serde(default)]
    bytes_in: u32,
}

#[derive(Deserialize)]
struct Attempt<'l> {
    mid: u16,
    #[serde(borrow)]
    kind: Cow<'l, str>,
    at_ms: f64,
    rto_ms: f64,
}

/// The copies of a record; those beyond the most that there can be are left out.
struct Attempts(SmallVec<[Copy; 4]>);

impl<'de> Deserialize<'de> for Attempts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Attempts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of attempts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Attempts, A::Error> {
                let mut copies = SmallVec::new();
                while let Some(Attempt { mid, kind, at_ms, rto_ms }) = list.next_element()? {
                    if copies.len() < MOST_COPIES {
                        let begins = kind != "retransmission";
                        copies.push(Copy { at: at_ms, wait: rto_ms, message_id: mid, begins });
                    }
                }
                Ok(Attempts(copies))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// Arrivals after the answer: their number, or a list of them.
struct Late(u64);

impl<'de> Deserialize<'de> for Late {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Arrivals;
        impl<'de> Visitor<'de> for Arrivals {
            type Value = Late;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of arrivals, or a list of them")
            }

            fn visit_u64<E>(self, count: u64) -> Result<Late, E> {
                Ok(Late(count))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Late, A::Error> {
                let mut count = 0;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Late(count))
            }
        }
        deserializer.deserialize_any(Arrivals)
    }
}

/// Reads one line, without its end.
///
/// Errors: why it cannot be used, and in which words a parser says so.
pub(crate) fn read(line: &[u8]) -> Result<Line<'_>, NoRecord> {
    let no = |bad, why| Err(NoRecord { bad, why });
    let other = |event: &str| no(Bad::OtherEvent, format!("event {:?}", shortened(event)));
    match serde_json::from_slice::<Written<'_>>(line) {
        Ok(written) if written.event == "forward" => {
            check(written).map(|forward| Line::Forward(forward.into()))
        }
        Ok(written) => other(&written.event),
        Err(error) => match serde_json::from_slice::<Event<'_>>(line) {
            Ok(event) if event.event == "refused" => Ok(Line::Refused(event.count.unwrap_or(0))),
            Ok(event) if event.event != "forward" => other(&event.event),
            Ok(_) => no(Bad::Field, error.to_string()),
            Err(_) => {
                let bad = match error.classify() {
                    serde_json::error::Category::Eof => Bad::CutOff,
                    serde_json::error::Category::Data => Bad::Field,
                    serde_json::error::Category::Syntax | serde_json::error::Category::Io => Bad::NotJson,
                };
                no(bad, error.to_string())
            }
        },
    }
}

fn check(written: Written<'_>) -> Result<Forward<'_>, NoRecord> {
    let wrong = |what: &str| NoRecord { bad: Bad::Value, why: what.to_owned() };
    let is_name = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if !is_name(&written.upstream) {
        return Err(wrong("upstream"));
    }
    if written.origin.as_deref().is_some_and(|origin| origin.parse::<SocketAddr>().is_err()) {
        return Err(wrong("origin"));
    }
    let times = [written.queue_ms, written.total_ms, written.first_ack_ms.unwrap_or(0.0)];
    let attempts = &written.attempts.0;
    let mut all = times.into_iter().chain(attempts.iter().flat_map(|copy| [copy.at, copy.wait]));
    if !all.all(|time| (0.0..LONGEST).contains(&time)) {
        return Err(wrong("a time"));
    }
    let late_copy = attempts.iter().any(|copy| copy.at > written.total_ms);
    if late_copy || written.first_ack_ms.is_some_and(|ack| ack > written.total_ms) {
        return Err(wrong("something after the answer"));
    }
    let answer = match written.answer_kind.as_deref() {
        None => None,
        Some("piggybacked") => Some(Answer::Piggybacked),
        Some("separate") => Some(Answer::Separate),
        Some("non") => Some(Answer::NonConfirmable),
        Some(_) => return Err(wrong("answer_kind")),
    };
    Ok(Forward {
        received: timestamp(written.ts.as_bytes()).ok_or_else(|| wrong("ts"))?,
        id: written.id,
        client: written.client,
        upstream: written.upstream,
        origin: written.origin,
        method: METHODS.iter().position(|&name| name == written.method).unwrap_or(METHODS.len()),
        confirmable: match &*written.kind {
            "con" => true,
            "non" => false,
            _ => return Err(wrong("type")),
        },
        copies: written.attempts.0,
        first_ack: written.first_ack_ms,
        first_ack_id: written.first_ack_mid,
        acks: written.acks,
        late: written.late.map(|late| late.0),
        answer,
        window: written.window,
        queued: written.queue_ms,
        code: code(written.code.as_bytes()).ok_or_else(|| wrong("code"))?,
        cause: Cause::of(&written.cause),
        outcome_unknown: written.evidence.as_deref() == Some("outcome-unknown"),
        total: written.total_ms,
        bytes: written.bytes_in,
    })
}

/// `2.05` as the byte of a message.
fn code(text: &[u8]) -> Option<u8> {
    let &[class @ b'0'..=b'7', b'.', tens @ b'0'..=b'3', ones @ b'0'..=b'9'] = text else { return None };
    let detail = 10 * (tens - b'0') + (ones - b'0');
    (detail < 32).then_some((class - b'0') << 5 | detail)
}

/// `2026-11-30T06:23:17.500000Z` in µs since 1970.
pub(super) fn timestamp(text: &[u8]) -> Option<i64> {
    let digits = |from: usize, to: usize| {
        text.get(from..to)?.iter().try_fold(0, |number: i64, byte| {
            byte.is_ascii_digit().then(|| 10 * number + i64::from(byte - b'0'))
        })
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (26, b'Z')];
    if text.len() != 27 || separators.iter().any(|&(place, byte)| text[place] != byte) {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    let is_one =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    is_one.then_some(())?;
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1_000_000 + digits(20, 26)?)
}

/// Days since 1970-01-01 of a date. Years begin in March here, so that a leap day is the last of its year.
///
/// Source: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms, `days_from_civil`.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The beginning of a text that a stranger wrote.
fn shortened(text: &str) -> String {
    text.chars().take(32).collect()
}
