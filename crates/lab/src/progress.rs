//! How far it is, on a terminal.

use std::io::{IsTerminal as _, Write as _};

const WIDTH: usize = 40;

/// A bar on standard error, where that is a terminal and somebody wants it.
pub(crate) struct Progress {
    all: usize,
    shown: bool,
}

impl Progress {
    pub(crate) fn new(all: usize, wanted: bool) -> Self {
        Self { all, shown: wanted && std::io::stderr().is_terminal() }
    }

    pub(crate) fn done(&self, done: usize) {
        if self.shown {
            let full = WIDTH * done / self.all.max(1);
            let bar: String = (0..WIDTH).map(|place| if place < full { '█' } else { '░' }).collect();
            // Nobody could be told that it cannot be shown.
            let _ = write!(std::io::stderr(), "\r{bar} {done} of {} runs", self.all);
        }
    }

    pub(crate) fn end(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
