//! What is printed, for a reader who may leave before the end: what was found is found all the same.

use std::fmt;
use std::io::{self, Write as _};
use std::process;

/// Prints a text as it is.
pub(crate) fn output(text: impl fmt::Display) {
    match write!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            watcher(format_args!("cannot write to standard output: {error}\n"));
            process::exit(1);
        }
        Ok(()) | Err(_) => {}
    }
}

/// Tells a text as it is to whoever watches.
pub(crate) fn watcher(text: impl fmt::Display) {
    // Nobody could be told that it cannot be told.
    let _ = write!(io::stderr(), "{text}");
}

/// `println!`, which does not mind that nobody reads it.
macro_rules! say {
    ($($text:tt)*) => { $crate::saying::output(format_args!("{}\n", format_args!($($text)*))) };
}

/// `eprintln!`, which does not mind either.
macro_rules! tell {
    ($($text:tt)*) => { $crate::saying::watcher(format_args!("{}\n", format_args!($($text)*))) };
}

pub(crate) use {say, tell};
