//! The terminal, borrowed for a while and given back as it was, whatever happens.

use std::io::{self, BufWriter, Stdout, stdout};
use std::panic;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// A frame leaves in one piece.
const FRAME: usize = 1 << 16;

/// The terminal with its alternate screen and in raw mode, until dropped.
#[derive(Debug)]
pub(crate) struct Borrowed {
    pub(crate) terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Borrowed {
    /// Takes the terminal; a panic gives it back before it is told.
    pub(crate) fn take() -> io::Result<Self> {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back();
            tell(panic);
        }));
        enable_raw_mode()?;
        let taken = execute!(stdout(), EnterAlternateScreen, Hide).and_then(|()| {
            let backend = CrosstermBackend::new(BufWriter::with_capacity(FRAME, stdout()));
            Terminal::new(backend)
        });
        match taken {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        give_back();
    }
}

/// Each part is tried, whether or not the one before could be done: the terminal may be gone.
fn give_back() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
