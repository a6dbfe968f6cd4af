//! Times and rates as people write them.

/// Seconds out of `500ms`, `2s`, `1.5s`, `5min` or `1h`.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    scaled(text, &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)])
}

/// Bits a second out of `30kbit/s`.
pub(super) fn rate(text: &str) -> Option<f64> {
    scaled(text, &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6)])
}

/// Bytes out of `2500B` or `64KiB`.
pub(super) fn size(text: &str) -> Option<f64> {
    scaled(text, &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0)])
}

/// Seconds as a text that [`seconds`] reads back.
pub(super) fn show(seconds: f64) -> String {
    if seconds == 0.0 {
        "0s".to_owned()
    } else if seconds < 1e-3 {
        format!("{}us", (seconds * 1e6).round())
    } else if seconds < 1.0 {
        format!("{}ms", (seconds * 1e6).round() / 1e3)
    } else {
        format!("{seconds}s")
    }
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let (_, scale) = units.iter().find(|(name, _)| *name == unit.trim())?;
    Some(number.parse::<f64>().ok()? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_needed() {
        assert_eq!(["1.5s", "500ms", "2 min"].map(seconds), [Some(1.5), Some(0.5), Some(120.0)]);
        assert_eq!(["30kbit/s", "1Mbit/s"].map(rate), [Some(3e4), Some(1e6)]);
        assert_eq!(["2500B", "1KiB"].map(size), [Some(2500.0), Some(1024.0)]);
        assert!(["5", "s", "-1s", "1e3s", "1.2.3s", "", "5 kg"].iter().all(|text| seconds(text).is_none()));
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for value in [0.00001, 0.25, 1.5, 120.0] {
            let back = seconds(&show(value)).expect("a time");
            assert!((back / value - 1.0).abs() < 1e-9, "{value} {back}");
        }
    }
}
