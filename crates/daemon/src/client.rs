//! `coapway get`, `put`, `post`, `delete`, `fetch`, `patch`, `ipatch` and `ping`: one exchange from the
//! command line. `coapway observe`: one, and the notifications that follow it.
//!
//! ```text
//! arguments ──▶ request.rs ──▶ conversation.rs ──▶ report.rs ──▶ standard output: the payload
//!               whom to ask    one socket, one ▲                 standard error:  everything else
//!               what to send   `Endpoint`      └── observe.rs    exit code
//! ```
//!
//! The message layer is the proxy's own. A representation goes to standard output byte for byte. A
//! diagnostic, the text of a 4.xx or 5.xx without Content-Format, stands behind the code on standard
//! error instead, so that it is never taken for one.

mod arguments;
mod conversation;
mod observe;
mod order;
mod outcome;
mod report;
mod request;
mod value;

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

use coapway_config::escaped_lines;
use coapway_message::{Method, OptionNumber};

pub(crate) use arguments::{ObserveArguments, PingArguments, RequestArguments};
use outcome::What;
use request::{Destination, Request, Role};

/// Sends a request and shows its response.
pub(crate) fn request(method: Method, arguments: &RequestArguments) -> ExitCode {
    at_the_terminal(arguments.asking.verbose, |console| run_request(method, arguments, console))
}

/// Observes a resource and shows its notifications.
pub(crate) fn observe(arguments: &ObserveArguments) -> ExitCode {
    at_the_terminal(arguments.asking.verbose, |console| {
        runtime()?.block_on(observe::observe(arguments, console, observe::interrupts, observe::grace()))
    })
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
    /// Whether a payload without a line break at its end gets one.
    ends_lines: bool,
    notes: &'c mut dyn Write,
    verbose: bool,
    /// Whether whoever read the output has seen enough: `coapway observe … | head -n 1`.
    reader_left: bool,
}

impl Console<'_> {
    /// A line on standard error. Nobody could be told that it cannot be written.
    fn note(&mut self, text: impl fmt::Display) {
        let _ = writeln!(self.notes, "{}", escaped_lines(text));
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
    let mut console = Console {
        ends_lines: output.is_terminal(),
        output,
        notes: &mut io::stderr().lock(),
        verbose,
        reader_left: false,
    };
    let exit = run(&mut console).unwrap_or_else(|trouble| {
        console.note(&trouble);
        trouble.exit
    });
    exit.into()
}

fn runtime() -> Result<tokio::runtime::Runtime, Trouble> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Trouble::failed(format!("cannot start: {error}"), ""))
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
    let RequestArguments { asking, content_format, .. } = arguments;
    let format = content_format.map(|format| (OptionNumber::CONTENT_FORMAT, format));
    let request = Request::new(method, asking, format, &payload)?;
    let what = What::Request { confirmable: !asking.non, token: None, content: request.content.as_content() };
    let conversation = conversation::hold(&request.destination, what, asking.timeout, console);
    let (_, answer) = runtime()?.block_on(conversation)?;
    report::show(&answer, console)
}

fn run_ping(arguments: &PingArguments, console: &mut Console<'_>) -> Result<Exit, Trouble> {
    let destination = Destination::parse(&arguments.uri, Role::Endpoint)?;
    let conversation = conversation::hold(&destination, What::Ping, arguments.timeout, console);
    let (_, answer) = runtime()?.block_on(conversation)?;
    report::show(&answer, console)
}

#[cfg(test)]
mod tests;
