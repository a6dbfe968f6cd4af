//! The arguments of the verbs.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use super::Trouble;
use super::value::OptionArgument;

/// What fits into an IPv4 datagram; header and options take of it.
pub(super) const MAX_PAYLOAD: usize = 65_507;
/// The longest time that makes sense to wait.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// What every request has.
#[derive(Debug, clap::Args)]
pub(super) struct AskingArguments {
    /// The resource, e.g. coap://127.0.0.1/temperature.
    #[arg(value_name = "URI")]
    pub(super) uri: String,
    /// Ask this proxy, e.g. coap://127.0.0.1:5683; the resource may then have any scheme.
    #[arg(long, value_name = "URI")]
    pub(super) proxy: Option<String>,
    /// Send a Non-confirmable request: one copy, and no Acknowledgement.
    #[arg(long)]
    pub(super) non: bool,
    /// The format asked for, by number.
    #[arg(long, value_name = "N")]
    pub(super) accept: Option<u16>,
    /// One more option, sent as written; may be repeated. NAME is its number or registered name,
    /// VALUE a text, 0x… for bytes, or a decimal where the option is a number.
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = OptionArgument::parse)]
    pub(super) options: Vec<OptionArgument>,
    /// How long to wait for the response.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    pub(super) timeout: Duration,
    /// Tell what happens, and show code and options of every response.
    #[arg(long, short)]
    pub(super) verbose: bool,
}

/// A request from the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArguments {
    #[command(flatten)]
    pub(super) asking: AskingArguments,
    /// The payload: a text, @FILE for a file, @- for standard input.
    #[arg(long, value_name = "TEXT|@FILE|@-", allow_hyphen_values = true, value_parser = Payload::parse)]
    pub(super) payload: Option<Payload>,
    /// The payload's format, by number: 0 text, 50 JSON, 60 CBOR.
    #[arg(long, value_name = "N")]
    pub(super) content_format: Option<u16>,
}

/// An observation from the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct ObserveArguments {
    #[command(flatten)]
    pub(super) asking: AskingArguments,
    /// End after N notifications, the first answer included.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,
    /// End after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub(super) duration: Option<Duration>,
}

/// A ping from the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct PingArguments {
    /// The endpoint, e.g. coap://127.0.0.1:5683.
    #[arg(value_name = "URI")]
    pub(super) uri: String,
    /// How long to wait for the answer.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    pub(super) timeout: Duration,
    /// Tell what happens.
    #[arg(long, short)]
    pub(super) verbose: bool,
}

/// Where a payload comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Text(String),
    File(PathBuf),
    StandardInput,
}

impl Payload {
    #[expect(clippy::unnecessary_wraps, reason = "clap wants a Result")]
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Ok(match text.strip_prefix('@') {
            None => Self::Text(text.to_owned()),
            Some("-") => Self::StandardInput,
            Some(path) => Self::File(path.into()),
        })
    }

    pub(super) fn read(&self) -> Result<Vec<u8>, Trouble> {
        let hint = "@FILE names a file, @- standard input; a text must not begin with @";
        match self {
            Self::Text(text) => limited(text.as_bytes()),
            Self::File(path) => File::open(path).and_then(limited),
            Self::StandardInput => limited(io::stdin().lock()),
        }
        .map_err(|error| Trouble::wrong_use(format!("cannot read the payload: {error}"), hint))
        .and_then(|payload| {
            if payload.len() > MAX_PAYLOAD {
                return Err(Trouble::wrong_use(
                    format!("the payload has more than {MAX_PAYLOAD} bytes"),
                    "a request is one datagram; block-wise transfer is not there yet",
                ));
            }
            Ok(payload)
        })
    }
}

/// Reads at most one byte more than a payload may have.
fn limited(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut payload = Vec::new();
    reader.take(MAX_PAYLOAD as u64 + 1).read_to_end(&mut payload)?;
    Ok(payload)
}

/// Reads `30s`, `500ms`, `1.5min` or `1h`.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("write it with a unit: 500ms, 30s, 2min or 1h".to_owned()),
    };
    match number.parse::<f64>().map(|number| Duration::try_from_secs_f64(number * scale)) {
        Ok(Ok(time)) if time >= Duration::from_millis(1) && time <= LONGEST => Ok(time),
        Ok(_) => Err("from 1ms to 24h".to_owned()),
        Err(_) => Err("not a number with a unit".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Exit;
    use super::*;

    #[test]
    fn payloads_come_from_files_too() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("payload");
        std::fs::write(&path, b"from a file").expect("written");
        let payload = Payload::parse(&format!("@{}", path.display())).expect("a payload");
        assert_eq!(payload.read().expect("readable"), b"from a file");
        assert_eq!(Payload::parse("@-"), Ok(Payload::StandardInput));
        let missing = Payload::File(directory.path().join("missing"));
        assert_eq!(missing.read().expect_err("there is none").exit, Exit::WrongUse);
        let large = Payload::Text("x".repeat(MAX_PAYLOAD + 1));
        assert_eq!(large.read().expect_err("too much").exit, Exit::WrongUse);
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(parse_time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_time("2min"), Ok(Duration::from_secs(120)));
        for wrong in ["30", "", "s", "0s", "25h", "1.2.3s", "-1s", "1e3s"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
