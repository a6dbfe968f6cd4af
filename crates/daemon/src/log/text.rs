//! How the fields of a line look as text: nobody's control characters reach a terminal.

use std::fmt;

use coapway_config::escaped;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{self, Writer};

/// `message name=value name=value`, on one line whatever is in it.
pub(super) fn fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    format::debug_fn(|writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| match field.name() {
        "message" => write!(writer, "{}", escaped(format_args!("{value:?}"))),
        name => write!(writer, "{name}={}", escaped(format_args!("{value:?}"))),
    })
    .delimited(" ")
}
