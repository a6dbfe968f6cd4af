//! Measures what coapway costs per forwarded request, against a forwarder that does nothing but forward.
//!
//! ```text
//!          core 1                core 0               core 1
//!   load: C closed-loop  ──▶  the proxy under  ──▶  origin: echoes the
//!   clients, CON GET     ◀──  test, or `bare`  ◀──  last path segment
//! ```
//! `forward` compares CPU time, `instructions` and `syscalls` count what a forward takes, `outstanding`
//! weighs exchanges that stay open, `hostile` watches good load beside hostile datagrams, `reload` has settings read
//! again under load, `weak` holds a link that loses datagrams against its simulation; all start and end their processes themselves and stay on this host.

mod bare;
mod callgrind;
mod clock;
mod coap;
mod forward;
mod hostile;
mod instructions;
mod load;
mod machine;
mod memory;
mod origin;
mod outstanding;
mod process;
mod proxies;
mod reload;
mod report;
mod run;
mod saying;
mod statistics;
#[allow(unsafe_code, reason = "epoll, CPU sets, process clocks and pidfds are not in the standard library")]
mod sys;
mod syscalls;
mod weak;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use saying::tell;

/// Measures what coapway costs per forwarded request.
///
/// Every load is bounded in time and number and stays on the loopback interface; only processes that the
/// bench started are ended.
#[derive(Parser)]
#[command(name = "coapway-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Forward(forward::Args),
    Hostile(hostile::Args),
    Instructions(instructions::Args),
    Outstanding(outstanding::Args),
    Reload(reload::Args),
    Syscalls(syscalls::Args),
    Weak(weak::Args),
    Bare(bare::Args),
    Origin(origin::Args),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Forward(args) => forward::run(&args),
        Command::Hostile(args) => hostile::run(&args),
        Command::Instructions(args) => instructions::run(&args),
        Command::Outstanding(args) => outstanding::run(&args),
        Command::Reload(args) => reload::run(&args),
        Command::Syscalls(args) => syscalls::run(&args),
        Command::Weak(args) => weak::run(&args),
        Command::Bare(args) => bare::run(&args),
        Command::Origin(args) => origin::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
