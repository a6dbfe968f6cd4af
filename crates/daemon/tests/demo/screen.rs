//! A pseudo-terminal with the demo on it, and eyes that read its screen.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OutputModes, Termios, Winsize, tcgetattr, tcsetwinsize};

/// Nothing takes longer, on a busy machine either.
const PATIENCE: Duration = Duration::from_secs(60);
/// How soon something is to be seen.
const START: Duration = Duration::from_secs(3);
/// Between two looks at whether the program has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The demo on a terminal of 112 columns and 33 rows.
pub(crate) struct Demo {
    child: Child,
    master: File,
    /// Keeps the terminal open when the program has ended.
    terminal: File,
    before: Termios,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    started: Instant,
}

impl Demo {
    pub(crate) fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("a pseudo-terminal");
        unlockpt(&master).expect("a pseudo-terminal");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let path = OsStr::from_bytes(name.as_bytes());
        let terminal = OpenOptions::new().read(true).write(true).open(path).expect("its other end");
        let (master, before) = (File::from(master), tcgetattr(&terminal).expect("a terminal has modes"));
        tcsetwinsize(&terminal, size(112, 33)).expect("a terminal has a size");
        let end = || terminal.try_clone().expect("a further descriptor");
        let mut command = Command::new(env!("CARGO_BIN_EXE_coapway"));
        command.arg("demo").args(arguments).env_remove("NO_COLOR").env("TERM", "xterm-256color");
        command.envs(environment.iter().copied()).stdin(end()).stdout(end()).stderr(end());
        let started = now();
        let child = command.spawn().expect("the program starts");
        let output = read(master.try_clone().expect("a further descriptor"));
        let screen = vt100::Parser::new(cells(33), cells(112), 0);
        Self { child, master, terminal, before, output, screen, started }
    }

    /// Something is to be seen within three seconds.
    pub(crate) fn wait_for_start(&mut self) {
        self.wait_until("the first frame", |contents| {
            contents.contains("coapway demo") && contents.contains("q quit")
        });
        let took = self.started.elapsed();
        assert!(took < START, "it took {took:?}");
        assert!(self.screen.screen().alternate_screen() && self.screen.screen().hide_cursor());
        let modes = tcgetattr(&self.terminal).expect("a terminal has modes").local_modes;
        assert!(!modes.intersects(LocalModes::ICANON | LocalModes::ECHO), "keys come one by one");
    }

    pub(crate) fn wait_for(&mut self, part: &str) {
        self.wait_until(part, |contents| contents.contains(part));
    }

    pub(crate) fn wait_until(&mut self, what: &str, holds: impl Fn(&str) -> bool) {
        let limit = now() + PATIENCE;
        while !holds(&self.contents()) {
            let left = limit.saturating_duration_since(now());
            assert!(!left.is_zero(), "no {what:?} in\n{}", self.contents());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("the terminal is gone"),
            }
        }
    }

    pub(crate) fn contents(&self) -> String {
        self.screen.screen().contents()
    }

    pub(crate) fn has_colours(&self) -> bool {
        let screen = self.screen.screen();
        let (rows, columns) = screen.size();
        let mut cells = (0..rows.get())
            .flat_map(|row| (0..columns.get()).filter_map(move |column| screen.cell(row, column)));
        cells.any(|cell| cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default)
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("keys can be pressed");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program runs");
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.screen.screen_mut().set_size(cells(rows), cells(columns));
        tcsetwinsize(&self.terminal, size(columns, rows)).expect("a terminal has a size");
        // It is not the terminal of a session, which would be told by the kernel.
        self.signal(Signal::WINCH);
    }

    /// The program ends with this code and has given back what it took.
    pub(crate) fn must_leave_cleanly(&mut self, code: i32) {
        let status = self.wait_for_end();
        // What was written before the end is there by now.
        while let Ok(bytes) = self.output.recv_timeout(LOOK * 10) {
            self.screen.process(&bytes);
        }
        assert_eq!(status.code(), Some(code), "{status}\n{}", self.contents());
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "the alternate screen is left");
        assert!(!screen.hide_cursor(), "the cursor is shown");
        let after = tcgetattr(&self.terminal).expect("a terminal has modes");
        assert_eq!(modes(&after), modes(&self.before), "the terminal behaves as before");
    }

    fn wait_for_end(&mut self) -> ExitStatus {
        let limit = now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the program can be waited for") {
                return status;
            }
            assert!(now() < limit, "it does not end\n{}", self.contents());
            if let Ok(bytes) = self.output.recv_timeout(LOOK) {
                self.screen.process(&bytes);
            }
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a terminal does with what it gets.
fn modes(termios: &Termios) -> (LocalModes, OutputModes, u32) {
    (termios.local_modes, termios.output_modes, termios.input_modes.bits())
}

fn cells(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("a terminal has cells")
}

const fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// All that is written to the terminal, as it comes.
fn read(mut master: File) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = master.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[expect(clippy::disallowed_methods, reason = "a program on a real terminal is waited for in real time")]
fn now() -> Instant {
    Instant::now()
}
