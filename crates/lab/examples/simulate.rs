//! The verb alone, without the rest of the program around it.

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: coapway_lab::Arguments,
}

fn main() -> ExitCode {
    coapway_lab::run(&Line::parse().arguments)
}
