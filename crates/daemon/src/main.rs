//! `coapway`; all of it is in the library, where those who describe the program find its command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    coapway_daemon::run()
}
