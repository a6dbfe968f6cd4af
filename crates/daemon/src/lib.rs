//! One process: arguments, configuration, log, then a worker or a client.

mod arguments;
mod bells;
mod client;
mod clock;
mod commands;
mod events;
mod files;
mod interfaces;
mod loading;
mod log;
mod machine;
mod names;
mod notify;
mod on_alert;
mod ourselves;
mod reading;
mod records;
mod rehearsal;
mod saying;
mod serve;
mod service;
mod signals;
mod sockets;
mod state;
mod unbound;
mod watch;
mod worker;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use coapway_message::Method;

use arguments::{Arguments, Command};

/// The command line's definitions, from which the manual page and the completions are made.
pub fn command_line() -> clap::Command {
    Arguments::command()
}

/// Runs the program with the arguments of its process, to its end.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return saying::instead_of_arguments(&error),
    };
    match arguments.command {
        Command::Serve(settings) => serve::serve(&settings),
        Command::Check { settings, dump } => serve::check(&settings, dump),
        Command::Get(arguments) => client::request(Method::Get, &arguments),
        Command::Post(arguments) => client::request(Method::Post, &arguments),
        Command::Put(arguments) => client::request(Method::Put, &arguments),
        Command::Delete(arguments) => client::request(Method::Delete, &arguments),
        Command::Fetch(arguments) => client::request(Method::Fetch, &arguments),
        Command::Patch(arguments) => client::request(Method::Patch, &arguments),
        Command::Ipatch(arguments) => client::request(Method::IPatch, &arguments),
        Command::Observe(arguments) => client::observe(&arguments),
        Command::Ping(arguments) => client::ping(&arguments),
        Command::Simulate(arguments) => coapway_lab::run(&arguments),
        Command::Tune(arguments) => coapway_tune::run(&arguments),
        Command::Demo(arguments) => coapway_demo::run(&arguments),
    }
}
