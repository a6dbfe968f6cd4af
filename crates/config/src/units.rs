//! Durations and sizes as people write them.

use std::time::Duration;

use crate::error::Wrong;

const DURATION_UNITS: [(&str, f64); 5] =
    [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];
const SIZE_UNITS: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Reads `500ms`, `2s`, `1.5s`, `5min` or `1h`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, Wrong> {
    let (number, unit) =
        split(text).ok_or_else(|| Wrong::new("not a duration").hint("write it like 2s or 500ms"))?;
    if unit.is_empty() {
        return Err(Wrong::new("a duration needs a unit").hint(format!("write {number}s or {number}ms")));
    }
    let Some((_, scale)) = DURATION_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(Wrong::new(format!("unknown unit {unit:?}")).hint("the units are us, ms, s, min and h"));
    };
    let seconds = number.parse::<f64>().unwrap_or(f64::INFINITY) * scale;
    Duration::try_from_secs_f64(seconds).map_err(|_| Wrong::new("too long"))
}

/// Reads plain seconds with decimals.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, Wrong> {
    match split(text) {
        Some((number, "")) => {
            let seconds = number.parse::<f64>().unwrap_or(f64::INFINITY);
            Duration::try_from_secs_f64(seconds).map_err(|_| Wrong::new("too long"))
        }
        Some(_) | None => {
            Err(Wrong::new("not a number of seconds")
                .hint("write it like 2 or 2.5, without unit and exponent"))
        }
    }
}

/// Reads `512B`, `64KiB`, `256MiB` or `1GiB`.
pub(crate) fn parse_size(text: &str) -> Result<u64, Wrong> {
    let wrong = || Wrong::new("not a size").hint("write it like 64KiB or 256MiB");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    if unit.is_empty() {
        return Err(Wrong::new("a size needs a unit").hint(format!("write {number}MiB or {number}B")));
    }
    let Some((_, scale)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(Wrong::new(format!("unknown unit {unit:?}")).hint("the units are B, KiB, MiB and GiB"));
    };
    let number: u64 = number.parse().map_err(|_| Wrong::new("a size is a whole number of its unit"))?;
    number.checked_mul(*scale).ok_or_else(|| Wrong::new("too large"))
}

/// The number, which has no sign and no exponent, and what follows it.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit())
        && number.matches('.').count() <= 1;
    is_number.then(|| (number, unit.trim_start()))
}

/// Writes a duration so that [`parse_duration`] reads it back, to the microsecond.
pub(crate) fn show_duration(duration: Duration) -> String {
    match duration.as_micros() {
        micros @ 1..1000 => format!("{micros}us"),
        micros if micros > 0 && micros < 1_000_000 && micros.is_multiple_of(1000) => {
            format!("{}ms", micros / 1000)
        }
        micros => format!("{}s", micros as f64 / 1e6),
    }
}

/// Writes a size so that [`parse_size`] reads it back.
pub(crate) fn show_size(bytes: u64) -> String {
    let (unit, scale) = SIZE_UNITS
        .into_iter()
        .rev()
        .find(|(_, scale)| bytes.is_multiple_of(*scale) && bytes >= *scale)
        .unwrap_or(SIZE_UNITS[0]);
    format!("{}{unit}", bytes / scale)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_units() {
        for (text, micros) in
            [("10us", 10), ("500ms", 500_000), ("2s", 2_000_000), ("1.5 s", 1_500_000), ("2min", 120_000_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_micros(micros)), "{text}");
        }
        for text in
            ["", "s", "2", "-1s", "+1s", "1e3s", "1.s", ".5s", "1.2.3s", "2m", "2 sec", "NaN", "inf", "1ss"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(parse_size("64KiB"), Ok(64 << 10));
        for text in ["64", "64KB", "1.5MiB", "-1B", "99999999999GiB", "99999999999999999999999B"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(parse_seconds("2.5"), Ok(Duration::from_millis(2500)));
        for text in ["abc", "-1", "NaN", "inf", "1e400", "2s", "", "1e3"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
        assert!(parse_duration(&format!("{}h", "9".repeat(400))).is_err());
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(micros in 0..u64::from(u32::MAX) * 1000, bytes: u64) {
            let duration = Duration::from_micros(micros);
            let read = parse_duration(&show_duration(duration)).expect("what we show is a duration");
            prop_assert!(read.abs_diff(duration) < Duration::from_micros(1));
            prop_assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_panics(text: String) {
            _ = (parse_duration(&text), parse_seconds(&text), parse_size(&text));
        }
    }
}
