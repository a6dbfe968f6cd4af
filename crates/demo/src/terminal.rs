//! The terminal, borrowed for a while and given back as it was, whatever happens.

use std::io::{self, BufWriter, Stdout, stdin, stdout};
use std::mem::ManuallyDrop;
use std::panic;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A frame leaves in one piece.
const FRAME: usize = 1 << 16;

/// The terminal with its alternate screen and in raw mode, until dropped.
#[derive(Debug)]
pub(crate) struct Borrowed {
    /// Never dropped: it would complain to a terminal that may be gone, or finish a frame on one that is
    /// given back.
    pub(crate) terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
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
            Ok(terminal) => Ok(Self { terminal: ManuallyDrop::new(terminal) }),
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
pub(crate) fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}

/// Whether somebody presses keys within this time.
///
/// Errors: the terminal is gone; whoever reads from it then might do so for ever.
pub(crate) fn has_keys(within: Duration) -> io::Result<bool> {
    let input = stdin();
    let mut polled = [PollFd::new(&input, PollFlags::IN)];
    let within = Timespec { tv_sec: 0, tv_nsec: within.subsec_nanos().into() };
    match poll(&mut polled, Some(&within)) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let [polled] = polled.map(|polled| polled.revents());
    if polled.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(polled.contains(PollFlags::IN))
}
