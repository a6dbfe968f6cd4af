//! The program's own log.

use std::fs::OpenOptions;
use std::io;
use std::sync::Mutex;

use coapway_config::{LogFormat, LogSettings, LogTarget};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

/// Sends log lines where the settings say. Standard error is the default; `-` is standard output.
///
/// Errors: the file cannot be opened.
pub(crate) fn start(settings: &LogSettings) -> io::Result<()> {
    let (writer, colours) = match &settings.target {
        LogTarget::StandardError => (BoxMakeWriter::new(io::stderr), io::IsTerminal::is_terminal(&io::stderr())),
        LogTarget::StandardOutput => (BoxMakeWriter::new(io::stdout), io::IsTerminal::is_terminal(&io::stdout())),
        LogTarget::File(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            (BoxMakeWriter::new(Mutex::new(file)), false)
        }
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&settings.level))
        .with_writer(writer)
        .with_ansi(colours)
        .with_target(false);
    match settings.format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
