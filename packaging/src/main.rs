//! What surrounds the program where it is installed: manual pages, completions, the Debian package.

mod completions;
mod manual;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "coapway-packaging")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Manual pages into FOLDER/man, completions into FOLDER/completions.
    Documents { folder: PathBuf },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Documents { folder } => {
            let command = coapway_daemon::command_line();
            manual::write(&command, &folder.join("man"))?;
            completions::write(&command, &folder.join("completions"))
        }
    }
}
