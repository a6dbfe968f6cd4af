//! The program's own log.

mod limit;
mod text;

use std::fs::OpenOptions;
use std::io;
use std::sync::{Arc, OnceLock};

use coapway_config::{LogDestination, LogFormat, LogLevel, LogSettings};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use crate::clock::Clock;
use limit::{LeftOut, Limit};

/// The target of lines of which one a minute says it all.
pub(crate) const ONCE_A_MINUTE: &str = "once a minute";

/// The target of lines that only an operator can cause: none of them is left out.
pub(crate) const OPERATOR: &str = "operator";

static LIMIT: OnceLock<Limit> = OnceLock::new();
static LINES: OnceLock<Handle<Lines, Registry>> = OnceLock::new();

/// All that is between an event and its line.
pub(crate) type Lines = Box<dyn Layer<Registry> + Send + Sync>;

/// Sends log lines where the settings say.
///
/// Errors: the file cannot be opened.
pub(crate) fn start(settings: &LogSettings) -> io::Result<()> {
    let (lines, handle) = reload::Layer::new(open(settings)?);
    tracing_subscriber::registry().with(lines).init();
    let _ = LINES.set(handle);
    Ok(())
}

/// Sends further log lines elsewhere.
pub(crate) fn replace(lines: Lines) {
    if let Some(handle) = LINES.get() {
        // It fails where the log is gone, and then nobody could be told.
        let _ = handle.reload(lines);
    }
}

/// Opens what the settings name, for [`replace`].
///
/// Errors: the file cannot be opened.
pub(crate) fn open(settings: &LogSettings) -> io::Result<Lines> {
    let (writer, colours) = match &settings.destination {
        LogDestination::StandardError => {
            (BoxMakeWriter::new(io::stderr), io::IsTerminal::is_terminal(&io::stderr()))
        }
        LogDestination::File(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            // Each line is one write, to the end of the file.
            (BoxMakeWriter::new(Arc::new(file)), false)
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
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false);
    let lines = match settings.format {
        LogFormat::Text => lines.with_ansi(colours).fmt_fields(text::fields()).boxed(),
        LogFormat::Json => lines.map_writer(text::Visible).json().boxed(),
    };
    Ok(level.and_then(limit).and_then(lines).boxed())
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
