//! The program's own log.

mod limit;
mod text;

use std::fs::OpenOptions;
use std::io;
use std::sync::{Mutex, OnceLock};

use coapway_config::{LogDestination, LogFormat, LogLevel, LogSettings};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::clock::Clock;
use limit::{LeftOut, Limit};

/// The target of lines of which one a minute says it all.
pub(crate) const ONCE_A_MINUTE: &str = "once a minute";

static LIMIT: OnceLock<Limit> = OnceLock::new();

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
    let limit = LIMIT.get_or_init(|| Limit::new(Clock::start()));
    let registry = tracing_subscriber::registry().with(level).with(limit);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false);
    match settings.format {
        LogFormat::Text => registry.with(lines.with_ansi(colours).fmt_fields(text::fields())).init(),
        LogFormat::Json => registry.with(lines.json()).init(),
    }
    Ok(())
}

/// Tells how many lines were left out in minutes that are over; says whether some wait to be told.
pub(crate) fn tell_left_out() -> bool {
    let Some(limit) = LIMIT.get() else { return false };
    limit.take_left_out(false).into_iter().for_each(tell);
    limit.has_left_out()
}

/// Tells all that was left out, at the end of the program.
pub(crate) fn finish() {
    if let Some(limit) = LIMIT.get() {
        limit.take_left_out(true).into_iter().for_each(tell);
    }
}

fn tell(LeftOut { cause, lines, level }: LeftOut) {
    // A level is part of what a line is before it is made.
    if level <= tracing::Level::WARN {
        tracing::warn!(target: limit::ABOUT_LIMIT, lines, cause, "lines like this were left out");
    } else {
        tracing::info!(target: limit::ABOUT_LIMIT, lines, cause, "lines like this were left out");
    }
}
