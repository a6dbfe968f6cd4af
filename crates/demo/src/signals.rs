//! Signals that ask the demo to stop.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// How long the demo has to stop by itself: a terminal that hangs may hold it up for ever.
const GRACE: Duration = Duration::from_secs(1);

/// Whether one came; until dropped, at most [`GRACE`] passes between one and the end of the process.
#[derive(Debug)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    _running: Sender<()>,
}

impl Signals {
    /// From now on they are noticed instead of ending the process; `rescue` is what must be done before the
    /// end, should the demo not stop in time.
    pub(crate) fn listen(rescue: fn()) -> io::Result<Self> {
        let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
        let stop = Arc::new(AtomicBool::new(false));
        let (running, ended) = mpsc::channel();
        let asked = Arc::clone(&stop);
        thread::spawn(move || {
            let Some(signal) = signals.forever().next() else { return };
            asked.store(true, Ordering::Relaxed);
            if ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
                thread::spawn(rescue);
                let _ = ended.recv_timeout(GRACE);
                process::exit(128 + signal);
            }
        });
        Ok(Self { stop, _running: running })
    }

    pub(crate) fn say_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
