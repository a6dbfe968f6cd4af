//! What the program says outside of its log: on standard output and standard error.

use std::io::{self, Write as _};
use std::process::ExitCode;

use coapway_config::escaped_lines;

/// Exit code for wrong use or configuration.
pub(crate) const WRONG_USE: u8 = 2;

/// Prints an error as one block and says how the process ends.
pub(crate) fn complain(code: u8, text: &str) -> ExitCode {
    // With nowhere to complain, the exit code says it.
    let _ = writeln!(io::stderr(), "coapway: {}", escaped_lines(text.trim_end()));
    ExitCode::from(code)
}

/// Prints what was asked for and says how the process ends.
pub(crate) fn say(text: &str) -> ExitCode {
    let mut output = io::stdout().lock();
    said(output.write_all(text.as_bytes()).and_then(|()| output.flush()))
}

fn said(written: io::Result<()>) -> ExitCode {
    match written {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read it has seen enough; what was found stays what it is.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => complain(1, &format!("cannot write to standard output: {error}")),
    }
}

/// Help, the version, or what is wrong with the arguments.
pub(crate) fn instead_of_arguments(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return said(error.print().and_then(|()| io::stdout().flush()));
    }
    let is_foreign = |argument: std::ffi::OsString| argument.to_string_lossy().contains(char::is_control);
    // Colours are control characters too, so what was given may be shown in them only without its own.
    let _ = match std::env::args_os().any(is_foreign) {
        true => write!(io::stderr(), "{}", escaped_lines(error.render())),
        false => error.print(),
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(WRONG_USE))
}
