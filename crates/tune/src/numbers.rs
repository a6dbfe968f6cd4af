//! Numbers as people read them.

use crate::advice::Unit;
use crate::interval::Interval;

/// A time in milliseconds, with three digits.
pub(crate) fn time(millis: f64) -> String {
    match millis {
        ..0.0 => format!("-{}", time(-millis)),
        0.0 => "0 ms".to_owned(),
        ..1.0 => format!("{millis:.3} ms"),
        ..10.0 => format!("{millis:.1} ms"),
        ..1000.0 => format!("{millis:.0} ms"),
        ..10_000.0 => format!("{:.2} s", millis / 1000.0),
        _ => format!("{:.1} s", millis / 1000.0),
    }
}

/// A share in percent, with as many digits as say something.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let from_end = percent.min(100.0 - percent).max(0.0);
    match from_end {
        0.0 => format!("{percent:.0} %"),
        ..0.1 => format!("{percent:.3} %"),
        ..1.0 => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// A count with a space between its thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut told = digits[..first].to_owned();
    for three in digits.as_bytes()[first..].chunks(3) {
        if !told.is_empty() {
            told.push(' ');
        }
        told.extend(three.iter().map(|&digit| char::from(digit)));
    }
    told
}

/// Bytes in the unit that fits.
pub(crate) fn bytes(number: u64) -> String {
    match number as f64 {
        small if small < 1e3 => format!("{small} B"),
        kilo if kilo < 1e6 => format!("{:.0} kB", kilo / 1e3),
        mega if mega < 1e9 => format!("{:.1} MB", mega / 1e6),
        giga => format!("{:.2} GB", giga / 1e9),
    }
}

/// `28.1 % (27.2 % to 29.0 %)`.
pub(crate) fn between(interval: &Interval, told: fn(f64) -> String) -> String {
    format!("{} ({} to {})", told(interval.value), told(interval.low), told(interval.high))
}

/// A prediction: `401 ms ±11 ms`; a share with both sides where one would go beyond 0 or 100 %.
pub(crate) fn predicted(interval: &Interval, unit: Unit) -> String {
    let half = (interval.high - interval.low) / 2.0;
    match unit {
        Unit::Millis => format!("{} ±{}", time(interval.value), time(half)),
        Unit::Share if interval.low < 0.0 || interval.high > 1.0 => {
            let (low, high) = (interval.low.max(0.0), interval.high.min(1.0));
            format!("{:.1} % ({:.1} to {:.1})", 100.0 * interval.value, 100.0 * low, 100.0 * high)
        }
        Unit::Share => format!("{:.2} % ±{:.2}", 100.0 * interval.value, 100.0 * half),
        Unit::Count => format!("{:.3} ±{half:.3}", interval.value),
    }
}

/// A value of a measure.
pub(crate) fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Millis => time(value),
        Unit::Share => format!("{:.2} %", 100.0 * value),
        Unit::Count => format!("{value:.3}"),
    }
}

/// µs since 1970 as `2026-11-30 06:23`.
pub(crate) fn minute(micros: i64) -> String {
    let minutes = micros.div_euclid(60_000_000);
    let (days, of_day) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    // Source: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms, `civil_from_days`.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", of_day / 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        assert_eq!([0.0, 0.0421, 0.5].map(time), ["0 ms", "0.042 ms", "0.500 ms"]);
        assert_eq!([9.96, 228.4, 1534.0, 30_000.0].map(time), ["10.0 ms", "228 ms", "1.53 s", "30.0 s"]);
        assert_eq!(
            [0.0, 0.5, 0.9998, 1.0, 0.004].map(percent),
            ["0 %", "50.0 %", "99.980 %", "100 %", "0.40 %"]
        );
        let share = |value, low, high| predicted(&Interval { value, low, high }, Unit::Share);
        assert_eq!(share(0.97, 0.95, 0.99), "97.00 % ±2.00");
        assert_eq!(share(0.97, 0.843, 1.097), "97.0 % (84.3 to 100.0)");
        assert_eq!(share(0.001, -0.02, 0.022), "0.1 % (0.0 to 2.2)");
        assert_eq!([7, 999, 10_000, 1_234_567].map(count), ["7", "999", "10 000", "1 234 567"]);
        assert_eq!([12, 5_400_000, 2_130_000_000].map(bytes), ["12 B", "5.4 MB", "2.13 GB"]);
        assert_eq!(minute(1_796_019_798_500_000), "2026-11-30 06:23");
        assert_eq!(minute(951_782_399_000_000), "2000-02-28 23:59");
    }
}
