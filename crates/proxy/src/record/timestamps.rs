//! Points in time as the calendar has them.

use coapway_time::Instant;

use super::digits::{four, pair};

/// `2026-11-30T06:23:17.500000Z`: RFC 3339, UTC, with microseconds.
pub type Timestamp = [u8; 27];

/// Writes instants as [`Timestamp`]s. Those of one second share all but the last digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timestamps {
    /// µs from 1970 to [`Instant::ZERO`].
    start: u64,
    /// The second that `text` begins with.
    second: u64,
    text: Timestamp,
}

impl Timestamps {
    /// Instants begin `start` µs after 1970. They end with the year 9999, the last one that can be
    /// written.
    pub(super) const fn new(start: u64) -> Self {
        Self { start, second: 0, text: *b"1970-01-01T00:00:00.000000Z" }
    }

    /// The text of `instant`.
    #[inline(always)]
    pub(super) fn at(&mut self, instant: Instant) -> &Timestamp {
        const LAST: u64 = 253_402_300_800_000_000 - 1;
        let micros = self.start.saturating_add(instant.as_micros()).min(LAST);
        let (second, micros) = (micros / 1_000_000, (micros % 1_000_000) as u32);
        if self.second != second {
            self.begin(second);
        }
        let ([a, b], [c, d, e, f]) = (pair(micros / 10_000), four(micros % 10_000));
        if let Some(end) = self.text.last_chunk_mut() {
            *end = [a, b, c, d, e, f, b'Z'];
        }
        &self.text
    }

    #[cold]
    fn begin(&mut self, second: u64) {
        self.second = second;
        let (year, month, day) = civil(second / 86_400);
        let [a, b, c, d] = four(year as u32);
        let [[e, f], [g, h]] = [month, day].map(|number| pair(number as u32));
        let of_day = [second / 3600 % 24, second / 60 % 60, second % 60];
        let [[i, j], [k, l], [m, n]] = of_day.map(|number| pair(number as u32));
        if let Some(start) = self.text.first_chunk_mut() {
            *start = [a, b, c, d, b'-', e, f, b'-', g, h, b'T', i, j, b':', k, l, b':', m, n, b'.'];
        }
    }
}

/// Year, month and day of a day since 1970-01-01.
///
/// Years begin in March here, so that a leap day is the last of its year; an era is 400 years.
/// Source: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms, `civil_from_days`.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + (month <= 2) as u64;
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn text(timestamps: &mut Timestamps, instant: Instant) -> String {
        String::from_utf8(timestamps.at(instant).to_vec()).expect("ASCII")
    }

    #[test]
    fn they_follow_the_calendar() {
        let date = |seconds: u64| text(&mut Timestamps::new(seconds * 1_000_000), Instant::from_micros(42));
        assert_eq!(date(0), "1970-01-01T00:00:00.000042Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00.000042Z");
        assert_eq!(date(1_709_251_199), "2024-02-29T23:59:59.000042Z");
        assert_eq!(date(1_735_689_599), "2024-12-31T23:59:59.000042Z");
        assert_eq!(date(4_107_542_400), "2100-03-01T00:00:00.000042Z", "2100 is no leap year");
        let end = text(&mut Timestamps::new(u64::MAX), Instant::ZERO);
        assert_eq!(end, "9999-12-31T23:59:59.999999Z");
    }

    #[test]
    fn the_second_is_remembered() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut timestamps = Timestamps::new(1_796_019_797_500_000);
        assert_eq!(text(&mut timestamps, at(0)), "2026-11-30T06:23:17.500000Z");
        assert_eq!(text(&mut timestamps, at(499)), "2026-11-30T06:23:17.999000Z");
        assert_eq!(text(&mut timestamps, at(500)), "2026-11-30T06:23:18.000000Z");
        assert_eq!(text(&mut timestamps, at(10)), "2026-11-30T06:23:17.510000Z", "time may go back");
    }
}
