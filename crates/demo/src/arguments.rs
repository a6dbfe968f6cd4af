//! The command line of the demo.

use std::path::PathBuf;
use std::time::Duration;

/// How the demo is run.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Where all chance comes from: one number is one weather.
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
    /// How many times as fast as the clock time passes, 0.1 to 100.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,
    /// Lines of text, as without a terminal.
    #[arg(long)]
    pub plain: bool,
    /// Stop when so much of the demo's own time has passed, e.g. 60s.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Writes one frame as SVG instead.
    #[arg(long, hide = true, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// Which frame that is.
    #[arg(long, hide = true, value_name = "DURATION", value_parser = duration, default_value = "94.5s")]
    pub at: Duration,
    /// Columns and rows of the picture.
    #[arg(long, hide = true, value_name = "CxR", value_parser = size, default_value = "112x33")]
    pub size: (u16, u16),
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=100.0).contains(&speed) { Ok(speed) } else { Err("0.1 to 100".to_owned()) }
}

/// `90`, `90s`, `1.5s`, `500ms`, `2m`, `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let stripped = units.iter().find_map(|&(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (number, seconds) = stripped.unwrap_or((text, 1.0));
    let number: f64 = number.parse().map_err(|_| "a number with ms, s, m or h".to_owned())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| "out of range".to_owned())
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parsed =
        text.split_once('x').and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
    parsed.filter(|&(columns, rows)| columns >= 20 && rows >= 5).ok_or_else(|| "COLUMNSxROWS".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let millis = |text| duration(text).map(|duration| duration.as_millis());
        assert_eq!(
            ["90", "90s", "1.5s", "250ms", "2m"].map(millis),
            [90_000, 90_000, 1500, 250, 120_000].map(Ok)
        );
        assert!(["", "s", "1d", "-1s", "1e400s"].iter().all(|text| duration(text).is_err()));
    }

    #[test]
    fn time_neither_stands_still_nor_runs_away() {
        assert_eq!(["0.1", "100"].map(speed), [Ok(0.1), Ok(100.0)]);
        assert!(["0", "-1", "101", "NaN", "x"].iter().all(|text| speed(text).is_err()));
    }
}
