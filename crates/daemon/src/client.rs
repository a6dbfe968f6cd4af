//! `coapway get`, `put`, `post`, `delete` and `ping`: one exchange from the command line.
//!
//! ```text
//! arguments ──▶ request.rs ──▶ conversation.rs ──▶ report.rs ──▶ standard output: the payload
//!               whom to ask    one socket, one                   standard error:  everything else
//!               what to send   `Endpoint`                        exit code
//! ```
//!
//! The message layer is the proxy's own. A representation goes to standard output byte for byte. A
//! diagnostic, the text of a 4.xx or 5.xx without Content-Format, stands behind the code on standard
//! error instead, so that it is never taken for one.

mod conversation;
mod outcome;
mod report;
mod request;
mod value;

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use coapway_message::Method;

use outcome::What;
use request::{Destination, Request, Role};
use value::OptionArgument;

/// What fits into an IPv4 datagram; header and options take of it.
const MAX_PAYLOAD: usize = 65_507;
/// The longest time that makes sense to wait.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A request from the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArguments {
    /// The resource, e.g. coap://127.0.0.1/temperature.
    #[arg(value_name = "URI")]
    uri: String,
    /// Ask this proxy, e.g. coap://127.0.0.1:5683; the resource may then have any scheme.
    #[arg(long, value_name = "URI")]
    proxy: Option<String>,
    /// Send a Non-confirmable request: one copy, and no Acknowledgement.
    #[arg(long)]
    non: bool,
    /// The payload: a text, @FILE for a file, @- for standard input.
    #[arg(long, value_name = "TEXT|@FILE|@-", allow_hyphen_values = true, value_parser = Payload::parse)]
    payload: Option<Payload>,
    /// The payload's format, by number: 0 text, 50 JSON, 60 CBOR.
    #[arg(long, value_name = "N")]
    content_format: Option<u16>,
    /// The format asked for, by number.
    #[arg(long, value_name = "N")]
    accept: Option<u16>,
    /// One more option, sent as written; may be repeated. NAME is its number or registered name,
    /// VALUE a text, 0x… for bytes, or a decimal where the option is a number.
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = OptionArgument::parse)]
    options: Vec<OptionArgument>,
    /// How long to wait for the response.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    timeout: Duration,
    /// Tell what happens, and show code and options of every response.
    #[arg(long, short)]
    verbose: bool,
}

/// A ping from the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct PingArguments {
    /// The endpoint, e.g. coap://127.0.0.1:5683.
    #[arg(value_name = "URI")]
    uri: String,
    /// How long to wait for the answer.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    timeout: Duration,
    /// Tell what happens.
    #[arg(long, short)]
    verbose: bool,
}

/// Sends a request and shows its response.
pub(crate) fn request(method: Method, arguments: &RequestArguments) -> ExitCode {
    at_the_terminal(arguments.verbose, |console| run_request(method, arguments, console))
}

/// Asks an endpoint whether it is alive.
pub(crate) fn ping(arguments: &PingArguments) -> ExitCode {
    at_the_terminal(arguments.verbose, |console| run_ping(arguments, console))
}

/// How a verb ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// 2.xx, or a ping that was answered.
    Success = 0,
    /// Another response, or none.
    Failed = 1,
    /// Arguments that cannot be used; nothing was sent.
    WrongUse = 2,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why there is no response to show, and what can be done about it.
#[derive(Debug)]
struct Trouble {
    exit: Exit,
    what: String,
    hint: String,
}

impl Trouble {
    fn wrong_use(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::WrongUse, what: what.into(), hint: hint.into() }
    }

    fn failed(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, what: what.into(), hint: hint.into() }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "coapway: {}", self.what)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "\n  hint: {}", self.hint) }
    }
}

/// Where the verbs write.
struct Console<'c> {
    output: &'c mut dyn Write,
    is_terminal: bool,
    notes: &'c mut dyn Write,
    verbose: bool,
}

impl Console<'_> {
    /// A line on standard error. Nobody could be told that it cannot be written.
    fn note(&mut self, text: impl fmt::Display) {
        let _ = writeln!(self.notes, "{text}");
    }

    /// A line on standard error for those who want to know everything.
    fn tell(&mut self, text: impl fmt::Display) {
        if self.verbose {
            self.note(text);
        }
    }
}

fn at_the_terminal(verbose: bool, run: impl FnOnce(&mut Console<'_>) -> Result<Exit, Trouble>) -> ExitCode {
    let output = &mut io::stdout().lock();
    let mut console =
        Console { is_terminal: output.is_terminal(), output, notes: &mut io::stderr().lock(), verbose };
    let exit = run(&mut console).unwrap_or_else(|trouble| {
        console.note(&trouble);
        trouble.exit
    });
    exit.into()
}

fn run_request(
    method: Method,
    arguments: &RequestArguments,
    console: &mut Console<'_>,
) -> Result<Exit, Trouble> {
    let payload = match &arguments.payload {
        Some(payload) => payload.read()?,
        None => Vec::new(),
    };
    let request = Request::new(method, arguments, &payload)?;
    let what = What::Request { confirmable: !arguments.non, content: request.content.as_content() };
    let answer = conversation::hold(&request.destination, what, arguments.timeout, console)?;
    report::show(&answer, console)
}

fn run_ping(arguments: &PingArguments, console: &mut Console<'_>) -> Result<Exit, Trouble> {
    let destination = Destination::parse(&arguments.uri, Role::Endpoint)?;
    let answer = conversation::hold(&destination, What::Ping, arguments.timeout, console)?;
    report::show(&answer, console)
}

/// Where a payload comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Payload {
    Text(String),
    File(PathBuf),
    StandardInput,
}

impl Payload {
    #[expect(clippy::unnecessary_wraps, reason = "clap wants a Result")]
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text.strip_prefix('@') {
            None => Self::Text(text.to_owned()),
            Some("-") => Self::StandardInput,
            Some(path) => Self::File(path.into()),
        })
    }

    fn read(&self) -> Result<Vec<u8>, Trouble> {
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
fn parse_time(text: &str) -> Result<Duration, String> {
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
mod tests;
