//! How the fields of a line look as text: nobody's control characters reach a terminal.

use std::fmt::{self, Write as _};

use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{self, Writer};

/// `message name=value name=value`, on one line whatever is in it.
pub(super) fn fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    format::debug_fn(|writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| match field.name() {
        "message" => write!(writer, "{}", escaped(value)),
        name => write!(writer, "{name}={}", escaped(value)),
    })
    .delimited(" ")
}

/// A value with its control characters written out.
pub(super) fn escaped(value: &dyn fmt::Debug) -> impl fmt::Display {
    fmt::from_fn(move |formatter| write!(Escaping(formatter), "{value:?}"))
}

struct Escaping<'f, 'g>(&'f mut fmt::Formatter<'g>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|symbol| match symbol.is_control() {
            true => write!(self.0, "{}", symbol.escape_default()),
            false => self.0.write_char(symbol),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        let value = format_args!("a\x1b[31m\r\nb\u{9b}\x7f é");
        assert_eq!(escaped(&value).to_string(), "a\\u{1b}[31m\\r\\nb\\u{9b}\\u{7f} é");
    }
}
