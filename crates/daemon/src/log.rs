//! The program's own log.

use std::fs::OpenOptions;
use std::io;
use std::sync::Mutex;

use coapway_config::{LogDestination, LogFormat, LogLevel, LogSettings};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

/// Sends log lines where the settings say.
///
/// Errors: the file cannot be opened.
pub(crate) fn start(settings: &LogSettings) -> io::Result<()> {
    let (writer, colours) = match &settings.destination {
        LogDestination::StandardError => {
            (BoxMakeWriter::new(io::stderr), io::IsTerminal::is_terminal(&io::stderr()))
        }
        LogDestination::File(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            (BoxMakeWriter::new(Mutex::new(file)), false)
        }
    };
    let level = match settings.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(writer)
        .with_ansi(colours)
        .with_target(false);
    match settings.format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
