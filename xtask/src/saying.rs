//! What is told, to a reader who may leave before the end: what was found is found all the same.

use std::fmt;
use std::io::{self, Write as _};

/// Tells a text as it is to whoever watches.
pub(crate) fn watcher(text: impl fmt::Display) {
    // Nobody could be told that it cannot be told.
    let _ = write!(io::stderr(), "{text}");
}

/// `eprintln!`, which does not mind that nobody reads it.
macro_rules! tell {
    ($($text:tt)*) => { $crate::saying::watcher(format_args!("{}\n", format_args!($($text)*))) };
}

pub(crate) use tell;
