//! One process: arguments, configuration, log, then a worker or a client.

mod arguments;
mod bells;
mod client;
mod clock;
mod events;
mod loading;
mod log;
mod names;
mod notify;
mod records;
mod rehearsal;
mod serve;
mod service;
mod signals;
mod sockets;
mod watch;
mod worker;

use std::process::ExitCode;

use clap::Parser as _;
use coapway_message::Method;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve(settings) => serve::serve(&settings),
        Command::Check { settings, dump } => serve::check(&settings, dump),
        Command::Get(arguments) => client::request(Method::Get, &arguments),
        Command::Post(arguments) => client::request(Method::Post, &arguments),
        Command::Put(arguments) => client::request(Method::Put, &arguments),
        Command::Delete(arguments) => client::request(Method::Delete, &arguments),
        Command::Ping(arguments) => client::ping(&arguments),
    }
}
