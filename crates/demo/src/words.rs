//! Numbers for people, with their units.

use std::time::Duration;

/// `95 ms`, `1.3 s`, `12 s`.
pub(crate) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        _ if seconds < 0.9995 => format!("{:.0} ms", seconds * 1000.0),
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}

/// The same of what may be unknown.
pub(crate) fn time_or_dash(duration: Option<Duration>) -> String {
    duration.map_or_else(dash, time)
}

/// `7.7 %`, `98.3 %`, `0 %`, `100 %`; without data a dash.
pub(crate) fn percent(share: Option<f64>) -> String {
    match share {
        None => dash(),
        Some(0.0) => "0 %".to_owned(),
        Some(1.0) => "100 %".to_owned(),
        // What is neither none nor all does not look like it.
        Some(share) => format!("{:.1} %", (share * 100.0).clamp(0.1, 99.9)),
    }
}

/// `20 %`.
pub(crate) fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// `0:07`, `61:10`.
pub(crate) fn clock(duration: Duration) -> String {
    format!("{}:{:02}", duration.as_secs() / 60, duration.as_secs() % 60)
}

fn dash() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_or_three_digits_that_mean_something() {
        let shown =
            [0.0304, 0.9993, 0.9996, 1.25, 9.94, 9.96, 93.0].map(|s| time(Duration::from_secs_f64(s)));
        assert_eq!(shown, ["30 ms", "999 ms", "1.0 s", "1.2 s", "9.9 s", "10 s", "93 s"]);
        let shares = [None, Some(0.0), Some(0.077), Some(0.9996), Some(1.0)].map(percent);
        assert_eq!(shares, ["–", "0 %", "7.7 %", "99.9 %", "100 %"]);
        assert_eq!([7, 3670].map(|seconds| clock(Duration::from_secs(seconds))), ["0:07", "61:10"]);
    }
}
