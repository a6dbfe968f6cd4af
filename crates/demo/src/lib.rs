//! `coapway demo`: the proxy on a weak link, live in a terminal.
//!
//! ```text
//!             ┌─ Place: no proxy      ─┐
//! Weather ───▶│  Place: fixed timeout  │──▶ Figures, History, Forwards ─┐
//! Requests ──▶│  Place: learned  …     │                                ├──▶ view ──▶ terminal, picture
//!             └────────────────────────┘──▶ Story ──────────────────────┘ └─▶ plain lines
//! ```
//!
//! A [`Demo`] is some worlds of the simulator side by side, one per [`Policy`]: the shipped proxy between
//! the same devices and the same origin, on the very same weather. It knows virtual time only; what it
//! shows at an instant follows from its seed and the [`Command`]s it was given. [`run`] paces it by the
//! clock. Nothing is sent: there are no sockets.

mod arguments;
mod clock;
mod command;
mod demo;
mod devices;
mod figures;
mod forwards;
mod history;
mod live;
mod picture;
mod place;
mod plain;
mod policy;
mod signals;
mod story;
mod terminal;
mod theme;
mod view;
mod weather;
mod words;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

pub use arguments::Arguments;
pub use command::Command;
pub use demo::Demo;
pub use policy::Policy;

/// Runs the demo until it is left.
///
/// Shape: on the alternate screen where standard output is a terminal, else in lines of text.
pub fn run(arguments: &Arguments) -> ExitCode {
    let done = match &arguments.picture {
        Some(file) => picture::write(arguments, file),
        None if is_for_a_screen(arguments) => live::run(arguments),
        None => plain::run(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the lines has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // With nowhere to complain, the exit code says it.
            let _ = writeln!(io::stderr(), "coapway: demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_for_a_screen(arguments: &Arguments) -> bool {
    let knows_cursors = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    !arguments.plain && knows_cursors && io::stdout().is_terminal() && io::stdin().is_terminal()
}
