//! One line of forward records.

use std::borrow::Cow;

use serde::Deserialize;

/// What of a record is needed here.
#[derive(Debug)]
pub(super) struct Line<'l> {
    /// µs since 1970.
    pub(super) at: i64,
    event: Cow<'l, str>,
    pub(super) upstream: Cow<'l, str>,
    /// Where it went; nothing where no copy left.
    pub(super) origin: Option<Cow<'l, str>>,
    pub(super) client: Cow<'l, str>,
    method: Cow<'l, str>,
    message_type: Cow<'l, str>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) first_ack_ms: Option<f64>,
    pub(super) bytes_in: u32,
    cause: Cow<'l, str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attempt {
    pub(super) at_ms: f64,
    pub(super) rto_ms: f64,
}

#[derive(Deserialize)]
struct Fields<'l> {
    #[serde(borrow)]
    ts: Cow<'l, str>,
    #[serde(borrow)]
    event: Cow<'l, str>,
    #[serde(borrow, default)]
    upstream: Cow<'l, str>,
    #[serde(borrow, default)]
    origin: Option<Cow<'l, str>>,
    #[serde(borrow, default)]
    client: Cow<'l, str>,
    #[serde(borrow, default)]
    method: Cow<'l, str>,
    #[serde(borrow, default, rename = "type")]
    message_type: Cow<'l, str>,
    #[serde(default)]
    attempts: Vec<Attempt>,
    #[serde(default)]
    first_ack_ms: Option<f64>,
    #[serde(default)]
    bytes_in: u32,
    #[serde(borrow, default)]
    cause: Cow<'l, str>,
}

impl<'l> Line<'l> {
    /// A record, or nothing where there is none.
    pub(super) fn parse(bytes: &'l [u8]) -> Option<Self> {
        let fields: Fields<'l> = serde_json::from_slice(bytes).ok()?;
        let Fields { ts, event, upstream, origin, client, method, message_type, .. } = fields;
        let Fields { attempts, first_ack_ms, bytes_in, cause, .. } = fields;
        let line = Self {
            at: micros(&ts)?,
            event,
            upstream,
            origin,
            client,
            method,
            message_type,
            attempts,
            first_ack_ms,
            bytes_in,
            cause,
        };
        let times = line.attempts.iter().flat_map(|copy| [copy.at_ms, copy.rto_ms]).chain(line.first_ack_ms);
        let complete = !line.is_forward() || !line.upstream.is_empty() && !line.method.is_empty();
        (complete && times.into_iter().all(|time| (0.0..1e9).contains(&time))).then_some(line)
    }

    pub(super) fn is_forward(&self) -> bool {
        self.event == "forward"
    }

    /// Whether its copies were refused, by ICMP or by a Reset: they were not lost, and nothing acknowledged them.
    pub(super) fn is_rejected(&self) -> bool {
        matches!(&*self.cause, "unreachable" | "reset") && self.first_ack_ms.is_none()
    }

    pub(super) fn is_post(&self) -> bool {
        matches!(&*self.method, "POST" | "PATCH") && self.confirmable()
    }

    pub(super) fn confirmable(&self) -> bool {
        self.message_type == "con"
    }
}

/// RFC 3339 in UTC into µs since 1970.
fn micros(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (time.next()?.parse::<i64>().ok()?, time.next()?.parse::<i64>().ok()?);
    let seconds: f64 = time.next()?.parse().ok()?;
    let fits = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..61.0).contains(&seconds);
    fits.then(|| {
        ((days(year, month, day) * 24 + hour) * 60 + minute) * 60_000_000 + (seconds * 1e6).round() as i64
    })
}

/// Days since 1970 in the Gregorian calendar; years begin in March, so that a leap day is the last.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times() {
        assert_eq!(micros("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(micros("2000-03-01T00:00:00.25Z"), Some(951_868_800_250_000));
        assert_eq!(micros("2026-11-30T06:23:18.500000Z"), Some(1_796_019_798_500_000));
        for wrong in ["", "2026-11-30", "2026-13-01T00:00:00Z", "2026-11-30T25:00:00Z", "2026-11-30T06:23:18"]
        {
            assert_eq!(micros(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn reads_the_documented_record() {
        let page = include_str!("../../../../docs/record.md");
        let records = page.lines().filter(|line| line.starts_with("{\"ts\""));
        let lines: Vec<_> = records.map(|line| Line::parse(line.as_bytes()).expect("a record")).collect();
        assert_eq!(lines.iter().map(Line::is_forward).collect::<Vec<_>>(), [true, false]);
        let [line, _] = &lines[..] else { panic!("two records") };
        assert_eq!((&*line.upstream, line.attempts.len(), line.first_ack_ms), ("boiler", 2, Some(2272.690)));
        assert!(line.confirmable() && !line.is_post() && !line.is_rejected());
        assert_eq!(line.origin.as_deref(), Some("10.1.2.3:5683"));
    }

    #[test]
    fn what_is_no_record_is_none() {
        for wrong in ["", "{}", "null", "[1]", "{\"ts\":\"yesterday\",\"event\":\"forward\"}", "\u{1F980}"] {
            assert!(Line::parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
